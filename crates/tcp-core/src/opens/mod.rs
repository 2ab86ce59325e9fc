//! How connections begin: listeners, half-open connections, held SYNs, fast open and active opens.
//! And how segments are answered for which there is no connection.
//!
//! | file | holds |
//! |---|---|
//! | `segments.rs` | segments without a connection: whom they are for, and RSTs |
//! | `listeners.rs`, `connect.rs` | listeners, and active opens |
//! | `half_open.rs`, `syn_cache.rs` | half-open connections: rules and entries |
//! | `syn_cookies.rs` | passive opens without an entry |
//! | `incoming.rs`, `held_syns.rs` | SYNs held for the application: rules and records |
//! | `fast_open.rs`, `fast_open_cookies.rs` | TCP Fast Open on both sides, and the server's cookies |
//! | `time_wait.rs` | what segments for records in TIME-WAIT call for |

mod connect;
mod fast_open;
mod fast_open_cookies;
mod half_open;
mod held_syns;
mod incoming;
mod listeners;
mod segments;
mod syn_cache;
mod syn_cookies;
mod time_wait;

pub(crate) use held_syns::RECORD as HELD_SYN;
pub use held_syns::{IncomingSyn, SynEvent, SynId};
pub use incoming::{IncomingSyns, Refusal};

pub(crate) use fast_open::FastOpenNews;
pub(crate) use segments::{Inbound, Opened};

use crate::config::EndpointConfig;
use crate::egress::Egress;
use crate::events::{WakeReason, Wakeup};
use crate::four_tuple::FourTuple;
use crate::ip::Ip;
use crate::rate_limit::RateLimit;
use crate::share::{Cx, Keys, SECOND};
use crate::table::Table;
use crate::wire::{HeaderBuf, TxChecksum};
use fast_open::FastOpens;
use held_syns::HeldSyns;
use listeners::Listeners;
use syn_cache::SynCache;
use syn_cookies::SynCookies;

/// What a half-open connection takes, with its share of the tables.
pub(crate) const HALF_OPEN: usize = 128;

/// The opening side of an endpoint.
#[derive(Debug)]
pub(crate) struct Opens {
    pub(crate) listeners: Listeners,
    /// Passive opens whose handshake is not complete.
    pub(crate) syn_cache: SynCache,
    cookies: SynCookies,
    /// SYNs that wait for the application's answer.
    pub(crate) held_syns: HeldSyns,
    pub(crate) fast_opens: FastOpens,
    /// RSTs without a connection per second.
    pub(crate) resets: RateLimit,
    /// Challenge ACKs of all connections per second.
    pub(crate) challenges: RateLimit,
}

/// The layers that openings work on.
#[derive(Debug)]
pub(crate) struct Below<'a> {
    pub(crate) table: &'a mut Table,
    pub(crate) egress: &'a mut Egress,
    pub(crate) ip: &'a mut Ip,
}

impl Opens {
    /// Nothing listens.
    pub(crate) fn new(config: &EndpointConfig, keys: &Keys) -> Self {
        Self {
            listeners: Listeners::default(),
            syn_cache: SynCache::new(keys.syn_cache),
            cookies: SynCookies::new(keys.syn_cookies),
            held_syns: HeldSyns::new(keys.held_syns),
            fast_opens: FastOpens::new(keys.fast_open_cookies, keys.fast_open_servers),
            resets: RateLimit::concealed(config.resets_per_second, SECOND, keys.reset_limit),
            challenges: RateLimit::concealed(config.challenge_acks_per_second, SECOND, keys.rate_limit),
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.syn_cache.memory() + self.held_syns.memory() + self.fast_opens.memory()
    }

    /// When a half-open connection's timer expires, or a SYN has been held for too long, and which.
    pub(crate) fn deadline(&self) -> Option<Wakeup> {
        let half_open = self.syn_cache.next_deadline().map(|at| Wakeup::new(at, WakeReason::Rto, None));
        let held_syn = self.held_syns.next_end().map(|at| Wakeup::new(at, WakeReason::HeldSyn, None));
        half_open.into_iter().chain(held_syn).min_by_key(|wakeup| wakeup.at)
    }

    /// Builds the SYN-ACK of the half-open connection `tuple`; `None` if it is not due any more.
    pub(crate) fn build_syn_ack(
        &self,
        cx: &Cx<'_>,
        tuple: &FourTuple,
        ts_offset: u32,
        buf: &mut HeaderBuf,
    ) -> Option<TxChecksum> {
        let cookie = || self.fast_opens.cookie(cx.now, cx.config.fast_open_key_lifetime, tuple);
        self.syn_cache.build_syn_ack(cx.now, cx.config, tuple, ts_offset, cookie, buf)
    }

    /// Serves the timers of half-open connections and held SYNs.
    pub(crate) fn expire(&mut self, below: &mut Below<'_>, cx: &mut Cx<'_>) {
        self.expire_half_open(below.egress, cx);
        self.expire_held_syns(below, cx);
    }
}
