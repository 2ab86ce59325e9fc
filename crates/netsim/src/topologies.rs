//! Common topologies, built in one call, with nodes and links named by their role.
//!
//! Host addresses depend on side and index: the n-th host of side s (both from 0) has 10.s.h.l,
//! where h and l are the octets of n + 1.

use crate::host::Egress;
use crate::link::LinkSpec;
use crate::sim::Sim;
use crate::topology::{LinkId, NodeId};
use ackline_tcp_core::config::EndpointConfig;
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use std::net::{IpAddr, Ipv4Addr};

/// The parameters of a host. The topology sets its address.
#[derive(Debug)]
pub struct HostSpec {
    /// The endpoint's configuration.
    pub config: EndpointConfig,
    /// Its egress scheduler.
    pub scheduler: Box<dyn EgressScheduler>,
    /// How its packets reach its link.
    pub egress: Egress,
}

impl Default for HostSpec {
    /// The defaults of tcp-core, first in first out.
    fn default() -> Self {
        Self {
            config: EndpointConfig::default(),
            scheduler: Box::new(Fifo::default()),
            egress: Egress::default(),
        }
    }
}

/// Both directions of a link.
#[derive(Debug)]
pub struct Duplex {
    /// From the first node to the second: from hosts to routers, from left to right.
    pub there: LinkSpec,
    /// The other direction.
    pub back: LinkSpec,
}

impl Duplex {
    /// Both directions made by `make`.
    pub fn symmetric(make: impl Fn() -> LinkSpec) -> Self {
        Self { there: make(), back: make() }
    }
}

/// Both directions of a link in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// From the first node to the second.
    pub there: LinkId,
    /// From the second to the first.
    pub back: LinkId,
}

/// A host of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAt {
    /// The node.
    pub node: NodeId,
    /// Its address.
    pub address: IpAddr,
    /// Its link; `there` is outgoing.
    pub access: Wire,
}

/// The position of a host or link while a topology is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPosition {
    /// The side: 0 for senders, 1 for receivers; in a [parking lot](parking_lot) the senders of hop
    /// h are on side 2 h + 2, its receivers on 2 h + 3; in a [star] all are on side 0.
    pub side: u8,
    /// The index on that side, from 0.
    pub index: usize,
}

impl HostPosition {
    /// The address of the host there.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        let number = self.index + 1;
        IpAddr::V4(Ipv4Addr::new(10, self.side, (number >> 8) as u8, number as u8))
    }
}

/// Makes the hosts of a topology and their access links, by position.
#[expect(missing_debug_implementations, reason = "two functions")]
pub struct Edge<'a> {
    /// The host at a place.
    pub host: &'a mut dyn FnMut(HostPosition) -> HostSpec,
    /// The link between it and its router.
    pub access: &'a mut dyn FnMut(HostPosition) -> Duplex,
}

impl Edge<'_> {
    fn add(&mut self, sim: &mut Sim, place: HostPosition, router: NodeId) -> HostAt {
        let (node, address) = add_host(sim, (self.host)(place), place);
        HostAt { node, address, access: wire(sim, node, router, (self.access)(place)) }
    }

    fn side(&mut self, sim: &mut Sim, side: u8, hosts: usize, router: NodeId) -> Vec<HostAt> {
        (0..hosts).map(|index| self.add(sim, HostPosition { side, index }, router)).collect()
    }
}

fn add_host(sim: &mut Sim, mut spec: HostSpec, place: HostPosition) -> (NodeId, IpAddr) {
    let address = place.address();
    spec.config.addresses = vec![address];
    (sim.add_host(spec.config, spec.scheduler, spec.egress), address)
}

fn wire(sim: &mut Sim, first: NodeId, second: NodeId, duplex: Duplex) -> Wire {
    Wire { there: sim.add_link(first, second, duplex.there), back: sim.add_link(second, first, duplex.back) }
}

/// See [`pair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The host on side 0.
    pub sender: HostAt,
    /// The host on side 1; its `access` is the sender's wire, seen from this host.
    pub receiver: HostAt,
}

/// Two hosts and one link, whose two directions may differ (an asymmetric path).
pub fn pair(sim: &mut Sim, sender: HostSpec, receiver: HostSpec, link: Duplex) -> Pair {
    let (from, from_address) = add_host(sim, sender, HostPosition { side: 0, index: 0 });
    let (to, to_address) = add_host(sim, receiver, HostPosition { side: 1, index: 0 });
    let wire = wire(sim, from, to, link);
    Pair {
        sender: HostAt { node: from, address: from_address, access: wire },
        receiver: HostAt {
            node: to,
            address: to_address,
            access: Wire { there: wire.back, back: wire.there },
        },
    }
}

/// See [`dumbbell`] and [`chain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Hosts on side 0, at the first router.
    pub senders: Vec<HostAt>,
    /// Hosts on side 1, at the last router.
    pub receivers: Vec<HostAt>,
    /// The routers, from the senders' side to the receivers'.
    pub routers: Vec<NodeId>,
    /// The links between them.
    pub hops: Vec<Wire>,
}

impl Chain {
    /// The first link between two routers.
    ///
    /// # Panics
    /// If the chain has no such link.
    #[must_use]
    pub fn bottleneck(&self) -> Wire {
        self.hops[0]
    }
}

/// `pairs` senders and as many receivers on the two sides of one link.
///
/// ```text
///   s0 ─┐                        ┌─ r0
///   s1 ─┼─ router ─ bottleneck ─ router ─┼─ r1
///   s2 ─┘                        └─ r2
/// ```
pub fn dumbbell(sim: &mut Sim, pairs: usize, bottleneck: Duplex, edge: &mut Edge<'_>) -> Chain {
    chain(sim, pairs, vec![bottleneck], edge)
}

/// `pairs` senders and as many receivers at the two ends of a chain of links.
pub fn chain(sim: &mut Sim, pairs: usize, hops: Vec<Duplex>, edge: &mut Edge<'_>) -> Chain {
    let (routers, hops) = spine(sim, hops);
    let last = routers[routers.len() - 1];
    let senders = edge.side(sim, 0, pairs, routers[0]);
    let receivers = edge.side(sim, 1, pairs, last);
    Chain { senders, receivers, routers, hops }
}

/// Routers in a row: one more than there are links.
fn spine(sim: &mut Sim, hops: Vec<Duplex>) -> (Vec<NodeId>, Vec<Wire>) {
    let mut routers = vec![sim.add_router()];
    let mut wires = vec![];
    for hop in hops {
        let router = sim.add_router();
        wires.push(wire(sim, routers[routers.len() - 1], router, hop));
        routers.push(router);
    }
    (routers, wires)
}

/// See [`parking_lot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkingLot {
    /// The pairs that cross every hop, and the chain itself.
    pub long: Chain,
    /// For each hop, the senders that only cross that hop.
    pub cross_senders: Vec<Vec<HostAt>>,
    /// Their receivers.
    pub cross_receivers: Vec<Vec<HostAt>>,
}

/// A chain with `long` pairs from end to end, and `cross` pairs at each hop. At most 120 hops.
pub fn parking_lot(
    sim: &mut Sim,
    long: usize,
    cross: usize,
    hops: Vec<Duplex>,
    edge: &mut Edge<'_>,
) -> ParkingLot {
    let long = chain(sim, long, hops, edge);
    let mut lot = ParkingLot { long, cross_senders: vec![], cross_receivers: vec![] };
    for (hop, ends) in lot.long.routers.windows(2).enumerate() {
        let side = 2 * hop as u8 + 2;
        lot.cross_senders.push(edge.side(sim, side, cross, ends[0]));
        lot.cross_receivers.push(edge.side(sim, side + 1, cross, ends[1]));
    }
    lot
}

/// See [`star`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Star {
    /// The hosts.
    pub hosts: Vec<HostAt>,
    /// The router in the middle.
    pub router: NodeId,
}

/// Hosts around one router.
pub fn star(sim: &mut Sim, hosts: usize, edge: &mut Edge<'_>) -> Star {
    let router = sim.add_router();
    Star { hosts: edge.side(sim, 0, hosts, router), router }
}
