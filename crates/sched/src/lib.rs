//! Egress schedulers for ackline, and the shaper that gives them something to decide.
//!
//! | name | what leaves next |
//! |---|---|
//! | `fifo` | what was queued first |
//!
//! Every scheduler of the table takes the shaper's parameters too: `fifo:rate=10mbit,burst=5ms`. With a rate
//! below that of the device, the queue stands in the host, where the scheduler can act on it; without one a
//! packet goes straight through. [`SCHED`] is the table from which such names are resolved.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bucket;
mod fifo;
pub mod shaper;

pub use ackline_tcp_core::policy::builtin::Fifo;
pub use bucket::TokenBucket;
pub use shaper::{Shaped, ShaperParams};

use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::spec::Entry;

/// The egress schedulers of this crate.
pub const SCHED: &[Entry<NewEgressScheduler>] = &[fifo::ENTRY];
