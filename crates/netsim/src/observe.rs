//! Who watches a simulation: recorders, captures, tests.

use crate::packet::Packet;
use crate::queue::DropReason;
use crate::sim::View;
use crate::topology::{LinkId, NodeId};
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, Instant};
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// What happened to a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It came to the link, before any decision about it.
    Offered,
    /// Its first bit leaves: it waited from [`Packet::queued_at`] until now.
    Started,
    /// Its last bit left the sending end.
    Left,
    /// It arrived at the other end.
    Delivered,
    /// It was dropped.
    Dropped(DropReason),
}

impl PacketEvent {
    /// The event as a word, or the reason of a drop.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Started => "started",
            Self::Left => "left",
            Self::Delivered => "delivered",
            Self::Dropped(reason) => reason.as_str(),
        }
    }
}

/// Watches a simulation. All methods do nothing by default.
pub trait Observer: Debug + Send + Any {
    /// True if it keeps octets whose transport checksums must be right.
    fn needs_checksums(&self) -> bool {
        false
    }

    /// False if it does nothing when a packet's last bit leaves `link`. Links whose departures nobody watches take
    /// fewer events, and [`PacketEvent::Left`] may be missing there; nothing else changes.
    fn watches_departures(&self, link: LinkId) -> bool {
        let _ = link;
        true
    }

    /// Something happened to a packet on `link`.
    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let _ = (now, link, event, packet);
    }

    /// True if it wants to hear of what happens inside connections.
    fn needs_traces(&self) -> bool {
        false
    }

    /// Something happened inside a connection of the host `node`: while a timer was served, or while a packet was taken
    /// in, before that is reported as delivered.
    fn trace(&mut self, now: Instant, node: NodeId, conn: ConnId, event: &TraceEvent) {
        let _ = (now, node, conn, event);
    }

    /// A sampling instant: everything can be looked at.
    fn sample(&mut self, now: Instant, view: &mut View<'_>) {
        let _ = (now, view);
    }
}

/// An observer's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObserverId(pub(crate) usize);

/// What an endpoint traces, until the simulation tells its observers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces(Arc<Mutex<Vec<(ConnId, TraceEvent)>>>);

impl Traces {
    /// Takes what has come.
    pub(crate) fn take(&self) -> Vec<(ConnId, TraceEvent)> {
        // Whoever holds the lock does nothing that could panic.
        self.0.lock().map_or_else(|_| Vec::new(), |mut traces| std::mem::take(&mut *traces))
    }
}

impl Tracer for Traces {
    fn trace(&mut self, _now: Instant, conn: ConnId, event: &TraceEvent) {
        if let Ok(mut traces) = self.0.lock() {
            traces.push((conn, *event));
        }
    }
}

/// Stands where an observer was taken out.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    fn watches_departures(&self, _link: LinkId) -> bool {
        false
    }
}
