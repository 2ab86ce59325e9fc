//! Two hosts joined by memory: what the benches drive, once made of ackline and once of smoltcp.

pub mod ours;
pub mod smol;

/// Payload bytes of a full segment: an MTU of 1,500 without TCP options.
pub const SEGMENT: usize = 1_460;
