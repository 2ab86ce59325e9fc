//! What runs inside the stack: it copies.

use super::record::{PacketRecord, Record, Sent};
use crate::background::queue::Queue;
use crate::labels;
use crate::pcapng::Direction;
use ackline_tcp_core::events::{PacketObserver, TraceEvent, Tracer};
use ackline_tcp_core::packet::TxPacket;
use ackline_tcp_core::wire::gso;
use ackline_tcp_core::wire::{
    HeaderBuf, PROTOCOL_TCP, Payload, RxChecksum, RxPacket, TxChecksum, TxChecksumMode,
};
use ackline_tcp_core::{ConnId, Instant};
use std::num::NonZeroU16;
use std::sync::Arc;

/// Copies packets into the queue.
#[derive(Debug)]
pub(super) struct CopyPackets {
    pub(super) queue: Arc<Queue<Record>>,
    pub(super) snap_length: u32,
    pub(super) split: bool,
    /// The headers of a segment.
    pub(super) headers: HeaderBuf,
}

impl CopyPackets {
    /// Copies a packet: as it is, or as the segments of `segment_size` octets that it is split into on the wire.
    fn copy(
        &mut self,
        mut record: PacketRecord,
        (headers, payload): (&[u8], Payload<'_>),
        segment_size: Option<NonZeroU16>,
    ) {
        if self.split
            && let Some(size) = segment_size
            // A thread completes what is captured as a whole.
            && let Ok(mut segments) = gso::split(headers, payload, size, TxChecksumMode::Partial)
        {
            let count = segments.remaining();
            for place in 1..=count {
                let Some((emitted, data)) = segments.next_into(&mut self.headers) else { break };
                record.incomplete_checksum = true;
                record.segment = Some((place as u16, count as u16));
                let [a, b, c] = data.slices();
                let header = self.headers.as_slice();
                self.push(record, emitted.header_len + data.len(), [header, a, b, c]);
            }
            return;
        }
        record.segment_size = segment_size.map(NonZeroU16::get);
        let [a, b, c] = payload.slices();
        self.push(record, headers.len() + payload.len(), [headers, a, b, c]);
    }

    fn push(&self, mut record: PacketRecord, length: usize, slices: [&[u8]; 4]) {
        record.original = length as u32;
        record.captured = record.original.min(self.snap_length);
        let captured = record.captured as usize;
        self.queue.push(Record::Packet(record), captured, &slices);
    }
}

const fn record(at: Instant, direction: Direction, incomplete_checksum: bool) -> PacketRecord {
    PacketRecord {
        at,
        direction,
        original: 0,
        captured: 0,
        incomplete_checksum,
        segment: None,
        segment_size: None,
        sent: None,
    }
}

impl PacketObserver for CopyPackets {
    fn received(&mut self, now: Instant, packet: &RxPacket<'_>) {
        let record = record(now, Direction::Inbound, packet.checksum != RxChecksum::Verify);
        let [second, third] = packet.more;
        let length = tcp_headers(packet.head).unwrap_or(packet.head.len());
        let (headers, data) = packet.head.split_at(length);
        self.copy(record, (headers, Payload::new([data, second, third])), packet.segment_size);
    }

    fn sent(&mut self, now: Instant, packet: &TxPacket<'_>) {
        let mut record = record(now, Direction::Outbound, packet.checksum != TxChecksum::Complete);
        record.sent = Some(Sent { conn: packet.conn, reason: packet.reason, class: packet.class });
        self.copy(record, (packet.header, packet.payload.into()), packet.segment_size);
    }
}

/// Octets of a packet's IP and TCP headers; `None` if that is not what it begins with.
fn tcp_headers(packet: &[u8]) -> Option<usize> {
    let (protocol, ip) = super::transport(packet)?;
    let offset = usize::from(packet.get(ip + 12)? >> 4) * 4;
    (protocol == PROTOCOL_TCP && ip + offset <= packet.len()).then_some(ip + offset)
}

/// Copies the events that comments may tell of.
#[derive(Debug)]
pub(super) struct CopyEvents(pub(super) Arc<Queue<Record>>);

impl Tracer for CopyEvents {
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent) {
        match event {
            // Every packet brings these.
            TraceEvent::Sent { .. } | TraceEvent::Received { .. } | TraceEvent::Congestion { .. } => {}
            // The reason of the packet says that it is a probe.
            TraceEvent::TailLossProbe { .. } => {}
            // Nearly every burst ends with these.
            TraceEvent::Blocked { cause } if labels::waits_for(*cause).is_none() => {}
            event => self.0.push_unless_gap(Record::Event(conn, now, *event)),
        }
    }
}
