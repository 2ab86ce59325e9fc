//! Who watches a simulation: recorders, captures, tests.

use crate::packet::Packet;
use crate::queue::DropReason;
use crate::sim::View;
use crate::topology::LinkId;
use ackline_tcp_core::Instant;
use std::any::Any;
use std::fmt::Debug;

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
    /// True where it keeps octets whose transport checksums must be right.
    fn needs_checksums(&self) -> bool {
        false
    }

    /// Something happened to a packet on `link`.
    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let _ = (now, link, event, packet);
    }

    /// A sampling instant: everything can be looked at.
    fn sample(&mut self, now: Instant, view: &mut View<'_>) {
        let _ = (now, view);
    }
}

/// An observer's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObserverId(pub(crate) usize);

/// Stands where an observer was taken out.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {}
