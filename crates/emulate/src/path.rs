//! The simplest network: one path between what is inside and everything else.

use ackline_netsim::pcapng::CapturePoint;
use ackline_netsim::{LinkId, LinkSpec, NodeId, Sim};
use std::net::IpAddr;

/// A path of two links between two ports.
#[derive(Debug)]
pub struct Path {
    /// The network.
    pub sim: Sim,
    /// The port of the inner addresses.
    pub inside: NodeId,
    /// The port of all other addresses.
    pub outside: NodeId,
    /// The link from inside to outside.
    pub up: LinkId,
    /// The link from outside to inside.
    pub down: LinkId,
}

impl Path {
    /// `inner`: addresses inside. All random numbers derive from `seed`.
    #[must_use]
    pub fn new(inner: impl IntoIterator<Item = IpAddr>, up: LinkSpec, down: LinkSpec, seed: u64) -> Self {
        let mut sim = Sim::new(seed);
        let (inside, outside) = (sim.add_port(inner), sim.add_port([]));
        sim.set_default_node(outside);
        let (up, down) = (sim.add_link(inside, outside, up), sim.add_link(outside, inside, down));
        Self { sim, inside, outside, up, down }
    }

    /// Where a [`Capture`](crate::Capture) sees each packet of both directions once: as it leaves
    /// the queue, or as it is dropped. The interfaces are `up` and `down`.
    #[must_use]
    pub fn capture_points(&self) -> Vec<CapturePoint> {
        [CapturePoint::of_link(self.up, "up"), CapturePoint::of_link(self.down, "down")].concat()
    }
}
