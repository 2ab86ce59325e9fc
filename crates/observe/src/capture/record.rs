//! What waits for the thread.

use crate::background::queue::QueueEntry;
use crate::pcapng::Direction;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::packet::{SegmentClass, SendReason};
use ackline_tcp_core::{ConnId, Instant};
use std::num::NonZeroU16;

/// A packet without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRecord {
    pub(super) at: Instant,
    pub(super) direction: Direction,
    /// Octets of the link's header, which are part of the packet.
    pub(super) link: u8,
    /// Its length, or that of the whole super-packet.
    pub(super) original: u32,
    /// Bytes of it, or of each segment, that are captured; the rest is cut off.
    pub(super) snap_length: u32,
    /// The device or the peer's kernel completes the checksum, or nobody does.
    pub(super) incomplete_checksum: bool,
    /// Octets of data per segment of a super-packet.
    pub(super) segment_size: Option<NonZeroU16>,
    /// Octets of a super-packet's IP and TCP headers, if it is to be split into its segments: all
    /// headers come first, then a [piece](super::pieces) per segment. Otherwise the packet is one
    /// piece.
    pub(super) split: Option<u8>,
    /// Of a packet that was sent.
    pub(super) sent: Option<SentPacket>,
}

/// What the core says of a packet that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentPacket {
    pub(super) conn: Option<ConnId>,
    pub(super) reason: SendReason,
    pub(super) class: SegmentClass,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    Packet(PacketRecord),
    Event(ConnId, Instant, TraceEvent),
    /// Packets that came while the queue was full.
    Gap(u64),
}

impl QueueEntry for Record {
    fn gap(packets: u64) -> Self {
        Self::Gap(packets)
    }
}
