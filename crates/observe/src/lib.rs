//! Captures of what a TCP stack of ackline does, with the reasons that only the stack knows.
//!
//! [`Capture`] writes the packets of a running stack to pcapng files. A comment on each packet says why it was sent, and
//! what it did to its connection. Nothing of that is in the way of the stack: its driver copies what is captured into a
//! bounded queue, and a thread writes.
//!
//! ```text
//!   driver ── PacketObserver ─┐
//!                             ├─► bounded queue ─► thread: checksums, comments ─► file, file, ...
//!   core ──── Tracer ─────────┘
//! ```
//!
//! [`pcapng`] is the format alone, and [`labels`] the words of comments and records; the simulator uses both.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod capture;
pub mod labels;
pub mod pcapng;

pub use capture::{Capture, CaptureOptions};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
