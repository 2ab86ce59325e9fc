//! The sans-IO TCP of ackline.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod config;
mod conn;
pub mod counters;
mod ctx;
mod ecn;
pub mod endpoint;
pub mod error;
pub mod events;
mod four_tuple;
pub mod id;
pub mod info;
pub mod packet;
mod plan;
pub mod policy;
pub mod queueing;
mod rate_limit;
mod rcv;
mod recovery;
mod ring;
mod scoreboard;
pub mod seq;
mod snd;
pub mod state;
pub mod time;
pub mod units;
mod window_use;
pub mod wire;

pub use config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
pub use endpoint::{Conn, Endpoint, Ingested};
pub use events::{Event, WakeReason, Wakeup};
pub use id::{ConnId, ListenerId, TxId};
pub use packet::{TxBudget, TxPacket, TxReport};
pub use seq::SeqNum;
pub use state::State;
pub use time::{Duration, Instant};
pub use units::{Rate, Window};
pub use wire::RxPacket;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
