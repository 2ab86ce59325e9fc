//! The packet device: Ethernet frames on an interface.

pub mod neighbours;
