//! A connection's time-sequence diagram, as its sender sees it (Shepard, "TCP Packet Trace
//! Analysis", MIT/LCS/TR-494, 1991): which bytes left when, which of them were sent again, what the
//! receiver acknowledged, and up to where its window reached.
//!
//! Memory is bounded by time, not by the number of packets. If there are too many, neighbours in
//! the same short interval that continue each other become one stroke, and of several ACKs the last
//! one stays. A retransmission is never merged with new data, and none is left out.

use ackline_netsim::{LinkId, NodeId, Observer, Packet, PacketEvent};
use ackline_tcp_core::policy::sched::SegmentClass;
use ackline_tcp_core::wire::{self, TcpSegment};
use ackline_tcp_core::{Duration, Instant};

/// What is kept before neighbours are merged: segments, and ACKs.
const LIMIT: usize = 6_000;

/// Intervals in which neighbours are merged first.
const FINEST: u64 = 1 << 16;

/// The time-sequence diagram of one connection. Bytes are counted from the first one of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSequence {
    /// What left the sender, in order.
    pub segments: Vec<SentBytes>,
    /// ACKs that reached the sender, in order.
    pub acks: Vec<ReceivedAck>,
    /// Segments that a queue or link dropped: when, in nanoseconds, and their first byte.
    pub drops: Vec<(u64, u64)>,
}

/// Bytes that left the sender at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBytes {
    /// When the first of them did, ns.
    pub at_ns: u64,
    /// The first byte.
    pub from: u64,
    /// The one after the last.
    pub until: u64,
    /// They had been sent before.
    pub again: bool,
}

/// An ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedAck {
    /// When it came, ns.
    pub at_ns: u64,
    /// All bytes before this one have arrived.
    pub ack: u64,
    /// The receiver takes bytes before this one.
    pub edge: u64,
}

/// Watches the first connection of a flow.
#[derive(Debug)]
pub(crate) struct SequenceRecorder {
    /// The port that only this flow uses, and the one at its other end once a SYN has named it.
    port: u16,
    other: Option<u16>,
    sender: NodeId,
    /// Both ends of each link.
    links: Vec<(NodeId, NodeId)>,
    /// The sequence number of the stream's first byte.
    first: Option<u32>,
    /// The latest byte seen: others are near it.
    latest: u64,
    /// The window scale that each end offered (RFC 7323, section 2.2): the sender's, the
    /// receiver's.
    scales: [Option<u8>; 2],
    duration: Duration,
    /// Length of the intervals in which neighbours are merged, ns; zero: none are.
    interval: u64,
    /// Strokes of new data.
    fresh: usize,
    sequence: TimeSequence,
}

impl SequenceRecorder {
    /// For a flow that sends from `sender` and uses `port`, in a run of length `duration`.
    pub(crate) fn new(
        port: u16,
        sender: NodeId,
        links: impl Iterator<Item = (NodeId, NodeId)>,
        duration: Duration,
    ) -> Self {
        Self {
            port,
            other: None,
            sender,
            links: links.collect(),
            first: None,
            latest: 0,
            scales: [None; 2],
            duration,
            interval: 0,
            fresh: 0,
            sequence: TimeSequence::default(),
        }
    }

    pub(crate) fn into_sequence(self) -> TimeSequence {
        self.sequence
    }

    fn is_of_connection(&mut self, segment: &TcpSegment<'_>) -> bool {
        let other = match (segment.src_port == self.port, segment.dst_port == self.port) {
            (true, _) => segment.dst_port,
            (_, true) => segment.src_port,
            _ => return false,
        };
        *self.other.get_or_insert(other) == other
    }

    /// The place of a byte in the stream: the nearest to the latest one that has this number.
    fn place(&self, seq: u32) -> Option<u64> {
        let here = self.first?.wrapping_add(self.latest as u32);
        self.latest.checked_add_signed(i64::from(seq.wrapping_sub(here).cast_signed()))
    }

    fn sent(&mut self, now: Instant, segment: &TcpSegment<'_>, class: SegmentClass) {
        if segment.flags.contains(wire::TcpFlags::SYN) {
            self.first = Some(segment.seq.0.wrapping_add(1));
            self.scales[0] = segment.options.window_scale;
        }
        let length = segment.payload.len() as u64;
        let Some(from) = self.place(segment.seq.0).filter(|_| length > 0) else { return };
        self.latest = self.latest.max(from + length);
        let again = class == SegmentClass::Retransmit;
        self.sequence.segments.push(SentBytes { at_ns: now.as_nanos(), from, until: from + length, again });
        self.fresh += usize::from(!again);
        if self.fresh > LIMIT {
            self.merge();
        }
    }

    fn received(&mut self, now: Instant, segment: &TcpSegment<'_>) {
        if segment.flags.contains(wire::TcpFlags::SYN) {
            self.scales[1] = segment.options.window_scale;
            return;
        }
        // RFC 7323, section 2.2: windows are scaled if both SYNs say so.
        let scale = if let [Some(_), Some(scale)] = self.scales { scale.min(14) } else { 0 };
        let Some(ack) = self.place(segment.ack.0) else { return };
        let edge = ack + (u64::from(segment.window) << scale);
        self.sequence.acks.push(ReceivedAck { at_ns: now.as_nanos(), ack, edge });
        if self.sequence.acks.len() > LIMIT {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.interval = (self.interval * 2).max(self.duration.as_nanos() / FINEST).max(1);
        let interval = self.interval;
        let TimeSequence { segments, acks, .. } = &mut self.sequence;
        segments.dedup_by(|next, last| {
            let near = next.at_ns / interval == last.at_ns / interval;
            let continues = next.again == last.again && (last.from..=last.until).contains(&next.from);
            if near && continues {
                last.until = last.until.max(next.until);
            }
            near && continues
        });
        self.fresh = segments.iter().filter(|bytes| !bytes.again).count();
        acks.dedup_by(|next, last| {
            let near = next.at_ns / interval == last.at_ns / interval;
            if near {
                *last = *next;
            }
            near
        });
    }
}

impl Observer for SequenceRecorder {
    fn watches_departures(&self, _: LinkId) -> bool {
        false
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let Some((from, to)) = self.links.get(link.index()).copied() else { return };
        let leaves = event == PacketEvent::Offered && from == self.sender;
        let arrives = event == PacketEvent::Delivered && to == self.sender;
        let dropped = matches!(event, PacketEvent::Dropped(_));
        if !(leaves || arrives || dropped) {
            return;
        }
        let Some(segment) = packet.segment() else { return };
        if !self.is_of_connection(&segment) {
            return;
        }
        if leaves {
            self.sent(now, &segment, packet.origin.class);
        } else if arrives {
            self.received(now, &segment);
        } else if packet.from == Some(self.sender)
            && !segment.payload.is_empty()
            && let Some(from) = self.place(segment.seq.0)
        {
            self.sequence.drops.push((now.as_nanos(), from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> SequenceRecorder {
        let sender = ackline_netsim::Sim::new(1).add_router();
        let mut recorder = SequenceRecorder::new(1, sender, std::iter::empty(), Duration::from_secs(100));
        recorder.first = Some(u32::MAX - 999);
        recorder
    }

    #[test]
    fn bytes_are_counted_across_the_end_of_sequence_numbers() {
        let mut recorder = recorder();
        assert_eq!(recorder.place(u32::MAX - 999), Some(0));
        assert_eq!(recorder.place(500), Some(1_500));
        recorder.latest = 5 << 32;
        assert_eq!(recorder.place(500), Some((5 << 32) + 1_500));
        assert_eq!(recorder.place(u32::MAX - 1_999), Some((5 << 32) - 1_000));
    }

    /// A hundred thousand segments of 10 bytes, a millisecond apart. Each hundredth is sent again
    /// right afterwards.
    #[test]
    fn many_segments_become_few_strokes_and_no_retransmission_is_lost() {
        let mut recorder = recorder();
        for place in 0..100_000 {
            let at_ns = place * 1_000_000;
            let bytes = SentBytes { at_ns, from: place * 10, until: place * 10 + 10, again: false };
            recorder.sequence.segments.push(bytes);
            recorder.fresh += 1;
            if place % 100 == 0 {
                recorder.sequence.segments.push(SentBytes { again: true, ..bytes });
            }
            let ack = ReceivedAck { at_ns, ack: place * 10, edge: place * 10 + 5_000 };
            recorder.sequence.acks.push(ack);
            if recorder.fresh > LIMIT || recorder.sequence.acks.len() > LIMIT {
                recorder.merge();
            }
        }
        let TimeSequence { segments, acks, .. } = recorder.into_sequence();
        let (again, fresh): (Vec<&SentBytes>, Vec<&SentBytes>) =
            segments.iter().partition(|bytes| bytes.again);
        assert!(fresh.len() <= LIMIT && acks.len() <= LIMIT, "{} and {}", fresh.len(), acks.len());
        let covered =
            |byte: u64, of: &[&SentBytes]| of.iter().any(|bytes| (bytes.from..bytes.until).contains(&byte));
        assert!((0..100_000).step_by(997).all(|place| covered(place * 10, &fresh)));
        assert!((0..100_000).step_by(100).all(|place| covered(place * 10, &again)));
        assert_eq!(acks.last().map(|ack| ack.ack), Some(999_990));
    }
}
