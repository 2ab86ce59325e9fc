//! Captures and traces of what a TCP stack of ackline does, with the reasons that only the stack
//! knows.
//!
//! [`Capture`] writes the packets of a running stack to pcapng files. A comment on each packet says
//! why it was sent, and what it did to its connection. [`Trace`] writes what happened inside
//! connections, as JSON in qlog's container, and [`trace::Reader`] reads it. Nothing of that is in
//! the way of the stack: it copies into a bounded queue, and a thread writes.
//!
//! ```text
//!   driver ── PacketObserver ─┐
//!                             ├─► bounded queue ─► thread: checksums, comments ─► pcapng files
//!   core ──── Tracer ─────────┘
//!        └─── Tracer ───────────► bounded queue ─► thread: JSON ─► file
//! ```
//!
//! [`pcapng`] is the format of captures alone, and [`labels`] the words of comments and records;
//! the simulator uses both.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod background;
pub mod capture;
pub mod labels;
pub mod pcapng;
mod record_file;
pub mod trace;

pub use background::meter::{Meter, RecordCounts};
pub use capture::{Capture, CaptureOptions};
pub use trace::{Trace, TraceOptions};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
