//! The data of a peer, as the trace of the stack that received it has it. What limited the peer is
//! not in there.

use super::positions::{ORIGIN, Positions};
use super::segment_size::SegmentSize;
use crate::story::{Acks, ArrivalCounts as Story, Direction};
use std::net::SocketAddr;

/// Data that a stack receives.
#[derive(Debug)]
pub(crate) struct ReceivedData {
    from: SocketAddr,
    positions: Positions,
    rcv_nxt: u64,
    highest: u64,
    fin: Option<u64>,
    fin_ns: Option<u64>,
    packets: u64,
    largest: u32,
    segment: SegmentSize,
    first_ns: Option<u64>,
    last_ns: u64,
    acks: Acks,
    received: Story,
}

impl ReceivedData {
    pub(crate) fn new(from: SocketAddr) -> Self {
        Self {
            from,
            positions: Positions::default(),
            rcv_nxt: ORIGIN,
            highest: ORIGIN,
            fin: None,
            fin_ns: None,
            packets: 0,
            largest: 0,
            segment: SegmentSize::default(),
            first_ns: None,
            last_ns: 0,
            acks: Acks::default(),
            received: Story::default(),
        }
    }

    /// When a FIN came first, and whether it was acknowledged.
    pub(crate) fn fin(&self) -> (Option<u64>, bool) {
        (self.fin_ns, self.fin.is_some_and(|fin| self.rcv_nxt > fin))
    }

    /// A packet came: `length` octets from `seq`, which is a SYN's if `syn`.
    pub(crate) fn came(&mut self, at: u64, seq: u32, length: u32, syn: bool, fin: bool) {
        let start = self.positions.of(seq.wrapping_add(u32::from(syn)), self.highest);
        let end = start + u64::from(length);
        if fin {
            self.fin_ns.get_or_insert(at);
            self.fin.get_or_insert(end);
        }
        if length == 0 {
            return;
        }
        self.first_ns.get_or_insert(at);
        self.last_ns = at;
        self.packets += 1;
        self.largest = self.largest.max(length);
        self.segment.learn(length);
        self.received.again += u64::from(end <= self.rcv_nxt);
        self.received.behind_gap += u64::from(start > self.highest);
        self.highest = self.highest.max(end);
    }

    /// Something of the packet that came last was not accepted.
    pub(crate) const fn dropped(&mut self) {
        self.received.dropped += 1;
    }

    /// The stack acknowledged everything before `ack`; `pure`: by a segment without data.
    pub(crate) fn acknowledged(&mut self, ack: u32, pure: bool) {
        if !self.positions.is_known() {
            return;
        }
        let ack = self.positions.of(ack, self.highest);
        if ack > self.rcv_nxt {
            self.acks.advancing += u64::from(pure);
            self.rcv_nxt = ack;
        } else if ack == self.rcv_nxt {
            self.acks.duplicates += u64::from(pure && self.highest > ack);
        }
    }

    /// What is told of it; `start_ns` is the connection's begin.
    pub(crate) fn finish(self, start_ns: u64) -> Direction {
        let fin = u64::from(self.fin().1);
        Direction {
            bytes: self.rcv_nxt.saturating_sub(ORIGIN + fin),
            packets: self.packets,
            largest: self.largest,
            mss: self.segment.seen(),
            acks: self.acks.over(self.rcv_nxt.saturating_sub(ORIGIN), self.segment.octets()),
            received: Some(self.received),
            unacknowledged: self.highest.saturating_sub(self.rcv_nxt),
            ..Direction::between(self.from, start_ns, self.first_ns, self.last_ns)
        }
    }
}
