//! The Ethernet device against the kernel: a veth pair between two network namespaces, the stack on
//! one end, the kernel behind the other.

mod neighbours;
mod sharing;
mod transfer;
mod world;
