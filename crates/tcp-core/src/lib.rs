//! The sans-IO TCP of ackline.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod seq;
pub mod time;
pub mod units;
pub mod wire;

pub use seq::SeqNum;
pub use time::{Duration, Instant};
pub use units::{Rate, Window};
