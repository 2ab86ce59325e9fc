//! What waits for the thread.

use crate::background::queue::Queued;
use crate::pcapng::Direction;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{SegmentClass, SendReason};
use ackline_tcp_core::{ConnId, Instant};

/// A packet without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRecord {
    pub(super) at: Instant,
    pub(super) direction: Direction,
    /// Length on the wire.
    pub(super) original: u32,
    /// Bytes that were copied.
    pub(super) captured: u32,
    /// The device or the peer's kernel completes the checksum, or nobody does.
    pub(super) incomplete_checksum: bool,
    /// Place in a super-packet that was split, and the number of its segments.
    pub(super) segment: Option<(u16, u16)>,
    /// Octets of data per segment of a super-packet that was not.
    pub(super) segment_size: Option<u16>,
    /// Of a packet that was sent.
    pub(super) sent: Option<Sent>,
}

/// What the core says of a packet that it sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) conn: Option<ConnId>,
    pub(super) reason: SendReason,
    pub(super) class: SegmentClass,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    Packet(PacketRecord),
    Event(ConnId, Instant, TraceEvent),
    /// So many packets came while the queue was full.
    Gap(u64),
}

impl Queued for Record {
    fn gap(packets: u64) -> Self {
        Self::Gap(packets)
    }
}
