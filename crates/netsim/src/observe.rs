//! Observers of a simulation: recorders, captures, tests.

use crate::packet::Packet;
use crate::queue::DropReason;
use crate::topology::{LinkId, NodeId};
use crate::view::View;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::{ConnId, Instant};
use std::any::Any;
use std::fmt::Debug;

/// An event of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It arrived at the link, before any decision about it.
    Offered,
    /// Its first bit leaves: it waited from [`PacketData::queued_at`](crate::PacketData::queued_at)
    /// until now.
    Started,
    /// Its last bit left the sending node.
    Left,
    /// It arrived at the far node.
    Delivered,
    /// It was dropped.
    Dropped(DropReason),
}

impl PacketEvent {
    /// The event as a word, or the reason for a drop.
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

/// Observes a simulation. All methods do nothing by default.
pub trait Observer: Debug + Send + Any {
    /// True if it keeps octets and needs valid transport checksums.
    fn needs_checksums(&self) -> bool {
        false
    }

    /// False if it ignores the departure of last bits from `link`. Links whose departures are not
    /// watched need fewer events, and may not report [`PacketEvent::Left`]; nothing else changes.
    fn watches_departures(&self, link: LinkId) -> bool {
        let _ = link;
        true
    }

    /// Something happened to a packet on `link`.
    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let _ = (now, link, event, packet);
    }

    /// True if it wants trace events of connections.
    fn needs_traces(&self) -> bool {
        false
    }

    /// A trace event of a connection on the host `node`: while a timer was served, or while a
    /// packet was processed, before that packet is reported as delivered.
    fn trace(&mut self, now: Instant, node: NodeId, conn: ConnId, event: &TraceEvent) {
        let _ = (now, node, conn, event);
    }

    /// A sampling instant: the whole simulation can be inspected.
    fn sample(&mut self, now: Instant, view: &mut View<'_>) {
        let _ = (now, view);
    }
}

/// Identifies an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObserverId(pub(crate) usize);

/// Placeholder for an observer that was taken out.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    fn watches_departures(&self, _link: LinkId) -> bool {
        false
    }
}
