//! A deterministic network simulator in virtual time. Its hosts are ackline endpoints, and its
//! packets what they send: segments that become octets where somebody wants them. There is no
//! second model of TCP.
//!
//! ```text
//!   Sim ── hosts (endpoint + applications) ── links (queue, rate, impairments, delay) ── routers
//!    └─ one queue of events, ordered by (time, creation)
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod app;
mod event;
mod host;
pub mod impair;
mod link;
mod middlebox;
mod observe;
mod packet;
pub mod pattern;
pub mod pcapng;
mod port;
pub mod queue;
pub mod record;
mod rng;
mod routes;
mod service;
mod sim;
pub mod stis;
pub mod topologies;
mod topology;
mod traces;
mod view;

pub use event::{EventQueue, Order};
pub use host::Egress;
pub use link::{LinkSpec, LinkStats};
pub use middlebox::{Middlebox, MiddleboxCx};
pub use observe::{Observer, ObserverId, PacketEvent};
pub use packet::{EcnField, Origin, Packet, PacketData, SuperPacket};
pub use rng::SimRng;
pub use service::{DELIVERY, Service, Trace, TraceError, serialisation};
pub use sim::{AppId, Change, Checksums, Sim};
pub use topology::{LinkId, NodeId};
pub use view::View;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
