//! What concerns IP, and no connection: fragments, ICMP, packets that nobody accepts, and those that
//! a program takes.
//!
//! | file | holds |
//! |---|---|
//! | `fragments.rs`, `reassembly.rs` | fragments: rules, and those of incomplete packets |
//! | `icmp.rs`, `refuse.rs` | pings, and ICMP errors received and sent |
//! | `packets.rs` | packets that the stack does not use itself, and those that the program has made |

mod fragments;
mod icmp;
mod packets;
mod reassembly;
mod refuse;

pub use packets::RawPackets;

pub(crate) use fragments::Fragmented;
pub(crate) use refuse::port_unreachable;

use crate::config::EndpointConfig;
use crate::conn::PathNews;
use crate::rate_limit::RateLimit;
use crate::share::{Cx, Keys, PathCache, SECOND};
use crate::time::Instant;
use core::net::IpAddr;
use packets::Packets;
use reassembly::Reassembly;

/// The IP side of an endpoint.
#[derive(Debug)]
pub(crate) struct Ip {
    /// Fragments of packets that are not complete.
    reassembly: Reassembly,
    /// Packets for the program.
    packets: Packets,
    /// What paths carry.
    pub(crate) paths: PathCache,
    /// Echo replies per second.
    pings: RateLimit,
    /// ICMP errors per second.
    pub(crate) errors: RateLimit,
}

impl Ip {
    /// Nothing has come yet.
    pub(crate) fn new(config: &EndpointConfig, keys: &Keys) -> Self {
        Self {
            reassembly: Reassembly::new(keys.reassembly),
            packets: Packets::default(),
            paths: PathCache::new(keys.paths),
            pings: RateLimit::new(config.pings_per_second, SECOND),
            errors: RateLimit::concealed(config.icmp_errors_per_second, SECOND, keys.icmp_limit),
        }
    }

    /// A connection to `to` has found out what its path carries.
    pub(crate) fn learn_path(&mut self, cx: &mut Cx<'_>, to: IpAddr, news: PathNews) {
        match news {
            PathNews::Narrow { mtu, expiry } => {
                let most = cx.config.max_path_entries;
                let replaced = self.paths.learn(cx.now, to, mtu, cx.now + expiry, most);
                cx.observe.counters.tcp_path_mtu_replaced += u64::from(replaced);
            }
            PathNews::Wide => self.paths.forget(to),
        }
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.reassembly.memory() + self.packets.memory() + self.paths.memory()
    }

    /// When a packet that is not complete has waited for too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.reassembly.next_end()
    }

    /// Number of packets of which some fragments have come, and not all.
    pub(crate) const fn incomplete_packets(&self) -> usize {
        self.reassembly.len()
    }
}
