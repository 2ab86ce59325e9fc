//! The sans-IO TCP of ackline.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

// The layers, lowest first. A module imports only from layers that come earlier in this list, and
// modules that stand together do not import one another. `tests/layers` reads this list and checks
// every import.

// Data that need not be kept.
pub mod pattern;

// What endpoints on several threads share is made of these.
mod sync;

// Values that need nothing else, and what several endpoints have together.
pub mod counters;
mod ecn;
pub mod error;
mod four_tuple;
pub mod id;
mod reserve;
pub mod seq;
pub mod state;
pub mod time;

// What is counted, measured and sent.
mod memory;
mod rate_limit;
pub mod units;
mod window_use;
pub mod wire;

// Quantities in text, and which of several endpoints a packet is for.
pub mod quantity;
pub mod steering;

// What leaves, as drivers and schedulers see it.
pub mod packet;

// The seams.
pub mod policy;

// What only the repetition of published measurements needs.
mod published;

// Settings and plans name policies and their terms.
pub mod config;
mod plan;
pub mod queueing;

// A connection as it is.
pub mod info;

// What happens, and why what came was dropped.
pub mod events;

// What every event of a connection needs from its endpoint.
mod ctx;

// What was sent, and the facts of an ACK.
mod scoreboard;

// The halves of a connection; what is lost is found below the sender.
mod rcv;
mod recovery;

mod snd;

// One connection.
mod conn;

// What the parts of an endpoint have in common.
mod share;

// The parts of an endpoint: connections, the way out, IP; then what opens connections, and UDP.
mod table;

mod egress;

mod ip;

mod opens;
mod udp;

// Many connections.
pub mod endpoint;

pub use config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
pub use endpoint::{Conn, Endpoint};
pub use events::{DropReason, Event, WakeReason, Wakeup};
pub use four_tuple::FourTuple;
pub use id::{ConnId, ListenerId, TxId, UdpId};
pub use packet::{TxBudget, TxPacket, TxReport};
pub use seq::SeqNum;
pub use share::Ingested;
pub use state::State;
pub use time::{Duration, Instant};
pub use units::{Rate, Window};
pub use wire::RxPacket;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
