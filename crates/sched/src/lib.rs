//! Egress schedulers for ackline, and the shaper that makes them effective.
//!
//! | name | what leaves next | use it for |
//! |---|---|---|
//! | `fifo` | what was queued first | a fast uplink, or as a baseline for the others |
//! | `kalampoukas` | data and ACKs by their share of bytes | a slow uplink with uploads and downloads |
//! | `ack-priority` | ACKs first | downloads that matter more than any upload |
//! | `backpressure` | what was queued first, from a queue kept short | the same if the peer sends few ACKs |
//! | `drr` | connections in turn | fairness between connections, whatever they send |
//! | `flow-queue` | the same, those with little to send first | requests and ACKs beside bulk data |
//! | `dualpi2` | L4S traffic by a weight, after it was marked | `prague` on an uplink whose queue is in the host |
//!
//! Every scheduler in the table also takes the parameters of the [queue] and the [shaper]:
//! `kalampoukas:f=0.5,rate=10mbit,burst=5ms`. With a rate below the device's, the queue builds up
//! in the host, where the scheduler can act on it; without a rate packets go straight through.
//! [`SCHED`] is the table that resolves such names. Your own scheduler gets the same parameters
//! from [`entry::of`] and [`entry::keyed`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ack_priority;
pub mod aqm;
pub mod backpressure;
mod bucket;
mod class;
pub mod drr;
pub mod dualpi2;
pub mod entry;
mod fifo;
pub mod kalampoukas;
pub mod queue;
pub mod shaper;
#[cfg(test)]
mod testing;
mod waiters;

pub use ack_priority::AckPriority;
pub use ackline_tcp_core::policy::builtin::Fifo;
pub use backpressure::Backpressure;
pub use bucket::TokenBucket;
pub use class::Class;
pub use drr::Drr;
pub use dualpi2::{DualPi2, DualPi2Params};
pub use kalampoukas::{Kalampoukas, KalampoukasParams, Share};
pub use queue::{LimitedQueue, QueueParams};
pub use shaper::{Shaped, ShaperParams};

use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::spec::Entry;

/// The egress schedulers of this crate.
pub const SCHED: &[Entry<NewEgressScheduler>] = &[
    fifo::ENTRY,
    kalampoukas::ENTRY,
    ack_priority::ENTRY,
    backpressure::ENTRY,
    drr::ENTRY,
    drr::FLOW_QUEUE,
    dualpi2::ENTRY,
];

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
