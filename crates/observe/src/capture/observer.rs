//! What runs inside the stack: it copies.

use super::checksum::transport;
use super::pieces;
use super::record::{PacketRecord, Record, SentPacket};
use crate::background::queue::Queue;
use crate::labels;
use crate::pcapng::{Direction, LinkType};
use ackline_tcp_core::events::{PacketObserver, TraceEvent, Tracer};
use ackline_tcp_core::packet::TxPacket;
use ackline_tcp_core::wire::gso;
use ackline_tcp_core::wire::{PROTOCOL_TCP, Payload, RxChecksum, RxPacket, TxChecksum};
use ackline_tcp_core::{ConnId, Instant};
use std::sync::Arc;

/// Copies packets into the queue.
#[derive(Debug)]
pub(super) struct CopyPackets {
    pub(super) queue: Arc<Queue<Record>>,
    pub(super) snap_length: u32,
    pub(super) split: bool,
    pub(super) link_type: LinkType,
}

/// For a packet that has had no Ethernet header: no stations, and the type of its version of IP.
const NO_ETHERNET: [[u8; 14]; 2] =
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd]];

impl CopyPackets {
    /// Copies a packet: as it is, or as the segments of `segment_size` octets that it is split into
    /// on the wire. What the thread can find out from the headers is left to it.
    fn copy(&self, mut record: PacketRecord, link: &[u8], headers: &[u8], mut payload: Payload<'_>) {
        let link: &[u8] = match self.link_type {
            LinkType::Ethernet if link.is_empty() => {
                let v6 = headers.first().is_some_and(|first| first >> 4 == 6);
                &NO_ETHERNET[usize::from(v6)]
            }
            LinkType::Ethernet => link,
            LinkType::Raw | LinkType::Ipv4 | LinkType::Ipv6 => &[],
        };
        let front = link.len() + headers.len();
        let length = front + payload.len();
        // Two stations, a tag or two, and a type.
        record.link = link.len() as u8;
        record.original = length as u32;
        record.snap_length = self.snap_length;
        let snap_length = self.snap_length as usize;
        if self.split
            && let Some(size) = record.segment_size
            && let Ok(segments) = gso::split_headers(headers, payload.len(), size)
        {
            // They fit a `HeaderBuf`.
            record.split = Some(headers.len() as u8);
            let (count, size) = (segments.remaining(), usize::from(size.get()));
            let room = snap_length.saturating_sub(front);
            let most = front + count * (room.min(size) + pieces::SUM);
            self.queue.push(Record::Packet(record), count as u64, most, |bytes| {
                bytes.extend_from_slice(link);
                bytes.extend_from_slice(headers);
                for _ in 0..count {
                    pieces::keep(bytes, payload.split_to(size).slices(), room, true);
                }
            });
            return;
        }
        let [a, b, c] = payload.slices();
        let most = length.min(snap_length) + pieces::SUM;
        self.queue.push(Record::Packet(record), 1, most, |bytes| {
            pieces::keep(bytes, [link, headers, a, b, c], snap_length, record.incomplete_checksum);
        });
    }
}

const fn record(at: Instant, direction: Direction, incomplete_checksum: bool) -> PacketRecord {
    PacketRecord {
        at,
        direction,
        link: 0,
        original: 0,
        snap_length: 0,
        incomplete_checksum,
        segment_size: None,
        split: None,
        sent: None,
    }
}

impl PacketObserver for CopyPackets {
    fn received(&mut self, now: Instant, link: &[u8], packet: &RxPacket<'_>) {
        let mut record = record(now, Direction::Inbound, packet.checksum != RxChecksum::Verify);
        record.segment_size = packet.segment_size;
        let [second, third] = packet.more;
        let length = tcp_headers(packet.head).unwrap_or(packet.head.len());
        let (headers, data) = packet.head.split_at(length);
        self.copy(record, link, headers, Payload::new([data, second, third]));
    }

    fn sent(&mut self, now: Instant, link: &[u8], packet: &TxPacket<'_>) {
        let mut record = record(now, Direction::Outbound, packet.checksum != TxChecksum::Complete);
        record.segment_size = packet.segment_size;
        record.sent = Some(SentPacket { conn: packet.conn, reason: packet.reason, class: packet.class });
        self.copy(record, link, packet.header, packet.payload.into());
    }
}

/// Octets of a packet's IP and TCP headers; `None` if that is not what it begins with.
fn tcp_headers(packet: &[u8]) -> Option<usize> {
    let (protocol, ip) = transport(packet)?;
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
