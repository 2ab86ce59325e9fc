//! What observers see of a simulation while it is paused.

use crate::host::Host;
use crate::link::{Link, LinkStats};
use crate::middlebox::Placed;
use crate::port::Port;
use crate::queue::Queue;
use crate::topology::{LinkId, NodeId};
use ackline_tcp_core::{ConnId, Endpoint, Instant};

/// A node.
#[derive(Debug)]
pub(crate) enum Node {
    Router,
    Host(Box<Host>),
    Middlebox(Box<Placed>),
    Port(Port),
}

/// A view of a paused simulation.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) nodes: &'a mut [Node],
    pub(crate) links: &'a [Link],
}

impl View<'_> {
    /// The host's endpoint; `None` for a router.
    pub fn endpoint(&mut self, node: NodeId) -> Option<&mut Endpoint> {
        match self.nodes.get_mut(node.index())? {
            Node::Host(host) => Some(&mut host.endpoint),
            Node::Router | Node::Middlebox(_) | Node::Port(_) => None,
        }
    }

    /// The connections of applications on `node`, with the application's number.
    #[must_use]
    pub fn conns(&self, node: NodeId) -> Vec<(ConnId, u32)> {
        match self.nodes.get(node.index()) {
            Some(Node::Host(host)) => host.owners.conns().collect(),
            _ => vec![],
        }
    }

    /// True if the node is a host.
    #[must_use]
    pub fn is_host(&self, node: NodeId) -> bool {
        matches!(self.nodes.get(node.index()), Some(Node::Host(_)))
    }

    /// Hosts.
    #[must_use]
    pub fn hosts(&self) -> Vec<NodeId> {
        let is_host = |node: &Node| matches!(node, Node::Host(_));
        (0..self.nodes.len())
            .filter(|index| is_host(&self.nodes[*index]))
            .map(|index| NodeId(index as u32))
            .collect()
    }

    /// Links, in order of creation.
    #[must_use]
    pub fn links(&self) -> Vec<LinkId> {
        (0..self.links.len() as u32).map(LinkId).collect()
    }

    /// The queue before a link.
    #[must_use]
    pub fn queue(&self, link: LinkId) -> &dyn Queue {
        self.links[link.index()].spec.queue.as_ref()
    }

    /// The counters of a link at this instant.
    #[must_use]
    pub fn stats(&self, link: LinkId) -> LinkStats {
        let link = &self.links[link.index()];
        let mut stats = link.stats;
        stats.busy = stats.busy.saturating_sub(link.done.at.since(self.now));
        stats
    }

    /// The two nodes of a link.
    #[must_use]
    pub fn ends(&self, link: LinkId) -> (NodeId, NodeId) {
        let link = &self.links[link.index()];
        (link.from, link.to)
    }

    /// Bits per second that a link serialises, over a whole period if it follows a trace;
    /// `u64::MAX` if it takes no time.
    #[must_use]
    pub fn rate(&self, link: LinkId) -> u64 {
        self.links[link.index()].spec.service.rate()
    }

    /// Packets queued before a link, being serialised, or in propagation.
    #[must_use]
    pub fn inside(&self, link: LinkId) -> usize {
        self.links[link.index()].inside()
    }
}
