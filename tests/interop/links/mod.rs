//! The link of the stack: Ethernet, its state, and its MTU and that of the path behind it.

mod ethernet;
mod link_state;
mod mtu;
mod path_mtu;
