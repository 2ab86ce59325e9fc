//! What the tests of whole networks share.

use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::topologies::{self, Duplex, HostAt, HostSpec, Pair};
use ackline_netsim::{AppId, LinkSpec, Sim};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig, ListenOn, Target};
use ackline_tcp_core::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) const PORT: u16 = 80;

/// A link of `rate` bits per second and `delay` ms, with an unlimited buffer.
pub(crate) fn link(rate: u64, delay: u64) -> LinkSpec {
    LinkSpec::new(rate, Duration::from_millis(delay))
}

/// The way to `host`'s sink.
pub(crate) fn target(host: &HostAt) -> Target {
    Target::new(SocketAddr::new(host.address, PORT))
}

/// Reads whatever comes to `host`.
pub(crate) fn sink(sim: &mut Sim, host: &HostAt) -> AppId {
    let accept = AcceptConfig::new(Arc::new(ConnConfig::default()));
    sim.add_app(host.node, Instant::ZERO, Sink::new(ListenOn::Port(PORT), accept, Reading::Instant))
}

/// Sends from `from` to `to` from the first millisecond on.
pub(crate) fn transfer(sim: &mut Sim, from: &HostAt, to: &HostAt, amount: Amount) -> AppId {
    let bulk = Bulk::new(target(to), Arc::new(ConnConfig::default()), amount);
    sim.add_app(from.node, Instant::from_millis(1), bulk)
}

/// Two default hosts at the ends of one link.
pub(crate) fn pair(sim: &mut Sim, link: Duplex) -> Pair {
    topologies::pair(sim, HostSpec::default(), HostSpec::default(), link)
}
