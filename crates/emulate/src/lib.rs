//! Simulated network paths in real time.
//!
//! [`Emulator`] drives an [`ackline_netsim::Sim`] by the machine's clock. At a *port* of the
//! simulation a [`Device`] brings packets in, and takes those that arrive there: a TUN device
//! behind which the kernel's TCP is, a packet socket, or a stack in the same process. Between them
//! is what the simulator has: links with rates and delays, queues, impairments, changes of the
//! network, recorders and captures.
//!
//! ```text
//!   TUN ── port ── link (queue, rate, impairments, delay) ── port ── TUN
//!                               Sim
//!   ───────────── Emulator: the real clock ─────────────
//! ```
//!
//! What arrives at a port leaves at the simulation's instant if the machine keeps up. [`PortStats`]
//! tells how late it did.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod emulator;
mod load;
mod path;
mod port;
mod record;
#[cfg(all(feature = "scenarios", target_os = "linux"))]
pub mod stage;
mod wake_up;

pub use ackline_netsim::pcapng::Capture;
pub use ackline_netsim::{LinkSpec, LinkStats};
pub use emulator::Emulator;
pub use load::{Load, LoadWatch};
pub use path::Path;
pub use port::{AttachError, LATEST, Offload, PortStats};
pub use record::{LinkRecord, PathRecord, Span};

#[cfg(doc)]
use ackline_runtime::Device;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
