//! Individual packets.

use super::Select;
use crate::observe::PacketEvent;
use crate::packet::{EcnField, Packet};
use crate::topology::LinkId;
use ackline_observe::labels;
use ackline_tcp_core::Instant;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Which packets to keep.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Links to record.
    pub links: Select<LinkId>,
    /// Record all events: also when a packet enters the queue, and when its first and last bit
    /// leave. Arrivals at the far node and drops are always recorded.
    pub all_events: bool,
    /// Leave out arrivals: only drops, unless `all_events` is set.
    pub only_drops: bool,
    /// Maximum rows; further ones are [counted](PacketTrace::omitted).
    pub limit: usize,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { links: Select::All, all_events: false, only_drops: false, limit: 100_000 }
    }
}

/// Events of packets, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketTrace {
    /// The first rows.
    pub rows: Vec<TraceRow>,
    /// Rows beyond the limit.
    pub omitted: u64,
}

/// One event of one packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRow {
    /// When, ns.
    pub at_ns: u64,
    /// Index of the link among all links.
    pub link: usize,
    /// The event: `offered`, `started`, `left`, `delivered`, or why it was dropped: `overflow`,
    /// `aqm`, `impairment`.
    pub event: Cow<'static, str>,
    /// True if it was dropped.
    pub dropped: bool,
    /// Number of the packet; duplicates share it.
    pub packet: u64,
    /// Index of the connection on the sending host.
    pub conn: Option<usize>,
    /// The kind of packet.
    pub class: Cow<'static, str>,
    /// Why it was sent; empty if that is not known.
    pub reason: Cow<'static, str>,
    /// IP bytes.
    pub ip_bytes: u32,
    /// ECN field: `not-ect`, `ect`, `ce`.
    pub ecn: Cow<'static, str>,
    /// Its TCP header; `None` if there is none (any more).
    pub tcp: Option<TcpRow>,
}

/// The TCP header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpRow {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Payload bytes.
    pub payload: u32,
    /// Flags, as in octets 12 and 13 of the header without the data offset.
    pub flags: u16,
    /// Window field, not scaled.
    pub window: u16,
}

/// Keeps rows.
#[derive(Debug)]
pub(super) struct Tracer {
    options: TraceOptions,
    trace: PacketTrace,
}

impl Tracer {
    pub(super) fn new(options: TraceOptions) -> Self {
        Self { options, trace: PacketTrace::default() }
    }

    pub(super) fn watches_departures(&self, link: LinkId) -> bool {
        self.options.all_events && self.options.links.has(&link)
    }

    pub(super) const fn trace(&self) -> &PacketTrace {
        &self.trace
    }

    pub(super) fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let essential = match event {
            PacketEvent::Dropped(_) => true,
            PacketEvent::Delivered => !self.options.only_drops,
            _ => false,
        };
        if !(self.options.all_events || essential) || !self.options.links.has(&link) {
            return;
        }
        if self.trace.rows.len() >= self.options.limit {
            self.trace.omitted += 1;
            return;
        }
        self.trace.rows.push(TraceRow {
            at_ns: now.as_nanos(),
            link: link.index(),
            event: event.as_str().into(),
            dropped: matches!(event, PacketEvent::Dropped(_)),
            packet: packet.number,
            conn: packet.origin.conn.map(|conn| conn.index()),
            class: labels::segment_class(packet.origin.class).into(),
            reason: packet.origin.reason.map_or("", labels::send_reason).into(),
            ip_bytes: packet.len() as u32,
            ecn: match packet.ecn() {
                EcnField::NotEct => "not-ect",
                EcnField::Ect0 => "ect0",
                EcnField::Ect1 => "ect1",
                EcnField::Ce => "ce",
            }
            .into(),
            tcp: tcp_row(packet),
        });
    }
}

fn tcp_row(packet: &Packet) -> Option<TcpRow> {
    let segment = packet.segment()?;
    Some(TcpRow {
        src_port: segment.src_port,
        dst_port: segment.dst_port,
        seq: segment.seq.0,
        ack: segment.ack.0,
        payload: segment.payload.len() as u32,
        flags: segment.flags.bits(),
        window: segment.window,
    })
}
