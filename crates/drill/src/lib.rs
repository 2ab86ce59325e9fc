//! Runs scripts of the packetdrill language against the TCP of ackline, in virtual time.
//!
//! A script is a dialogue: system calls, packets in, packets expected out, each at its time. The
//! stack is an [`Endpoint`](ackline_tcp_core::Endpoint), its clock is the script's, and nothing
//! waits: a script takes less than a millisecond, needs no rights, and has the same result each
//! time.
//!
//! ```text
//!   text ─► Script ─► run: ┬─ < packets ────► octets ─────► Endpoint ─► octets ─► > packets, compared
//!                          ├─ system calls ─► sockets ────►    │
//!                          └─ %{ python }% ◄─ tcp_info ◄───────┘
//! ```
//!
//! ```
//! use ackline_drill::{Options, Outcome, run};
//!
//! let script = "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 bind(3, ..., ...) = 0
//!    +0 listen(3, 1) = 0
//!    +0 < S 0:0(0) win 65535 <mss 1460>
//!    +0 > S. 0:0(0) ack 1 <mss 1460>
//!  +.05 < . 1:1(0) ack 1 win 65535
//!    +0 accept(3, ..., ...) = 4
//! ";
//! assert_eq!(run(script, &Options::default()).outcome, Outcome::Passed);
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod calls;
mod cookie;
mod expect;
mod flow;
mod host;
mod inbound;
mod info;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod kernel;
mod outcome;
mod python;
mod record;
mod report;
mod run;
pub mod script;
mod settings;
mod stack;
mod symbols;
mod world;

pub use host::{Attempt, Host, OpenCall, Progress, SentPacket};
pub use outcome::{DialoguePacket, Failure, Outcome, Report};
pub use python::Block;
pub use record::{CapturedPacket, RecordError, record};
pub use run::{judge, run, run_on};
pub use script::{Script, ScriptError};
pub use settings::{Environment, IpVersion, Options, Profile, Relaxations};
pub use symbols::Errno;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
