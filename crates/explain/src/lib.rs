//! The story of each TCP connection in a capture: how it was opened, what limited it, what it lost
//! and how that was found, whether a retransmission was needless, what its own queue cost, who
//! ended it.
//!
//! Captures may be of any stack, made at either end or in the middle of the path; what cannot be
//! inferred from there is not claimed. Captures of ackline and of its simulator have comments that
//! say why a packet was sent, and these count. Traces of ackline ([`ackline_observe::trace`]) have
//! no packets, but what the stack concluded from them, and their stories state it.
//!
//! ```text
//!   capture::Reader ─ Frame ─► Explainer ─┬─ a connection: handshake, distance of both ends, end
//!                                         └─ its two directions: outstanding data, losses, round trips, what time went for
//!   trace::Reader ── Record ─►     └─ a connection as its stack states it: its sender, what it received
//!                                  └──────► Story ─► text, JSON
//! ```
//!
//! Memory is bounded ([`Limits`]), so a capture may be of any size. No clock is read.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod capture;
mod conn;
mod copies;
mod direction;
mod explainer;
mod loss_detection;
pub mod picture;
mod segment;
pub mod story;
pub mod text;
mod traced;

pub use capture::{ReadError, Reader};
pub use explainer::{Explainer, Limits};
pub use segment::SkippedPackets;
pub use story::Story;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
