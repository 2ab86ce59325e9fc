//! The peer: it sees all that the endpoint sends, and can say anything. In the end it is honest,
//! and has nothing but what it has acknowledged.

use super::rng::Rng;
use ackline::core::wire::{
    AccEcnOption, AccEcnOrder, Ecn, HeaderBuf, SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpSegment,
    Timestamps, TxChecksumMode, emit_tcp,
};
use ackline::core::{Instant, SeqNum};
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(super) const MAX_SEEN: usize = 64;

/// The octet of a stream at a place.
pub(super) fn octet_at(ours: bool, place: u64) -> u8 {
    (place.wrapping_add(u64::from(ours) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A segment of the peer before it is emitted.
#[derive(Clone, Debug)]
pub(super) struct Say {
    pub(super) seq: SeqNum,
    pub(super) ack: SeqNum,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) sack: SackBlocks,
    pub(super) timestamps: Option<Timestamps>,
    pub(super) accecn: Option<AccEcnOption>,
    /// Codepoint of the IP header.
    pub(super) ecn: Ecn,
    /// Place and length of its data in the peer's stream.
    pub(super) data: (u64, u64),
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) here: SocketAddr,
    pub(super) there: SocketAddr,
    pub(super) iss: SeqNum,
    /// What its SYN says.
    pub(super) syn: TcpOptions,
    /// The flags by which its SYN or SYN-ACK negotiates ECN.
    pub(super) syn_ecn: TcpFlags,
    /// Octets of its stream.
    pub(super) total: u64,
    /// Its FIN may have been heard somewhere else than at the end of the stream.
    pub(super) lied_about_fin: bool,
    /// It has sent its FIN, wherever.
    pub(super) sent_fin: bool,
    /// One past the highest octet of its stream that it has sent.
    pub(super) sent: u64,
    /// The endpoint's initial sequence number, once its SYN was seen.
    pub(super) irs: Option<SeqNum>,
    /// The endpoint's SYN, as seen last.
    pub(super) their_syn: TcpOptions,
    /// One past the highest sequence number that the endpoint has sent.
    pub(super) seen_nxt: SeqNum,
    /// Segments of the endpoint with data or FIN, the latest last.
    pub(super) seen: VecDeque<(SeqNum, SeqNum)>,
    /// The endpoint's RCV.NXT and window, as last shown.
    pub(super) shown_ack: SeqNum,
    pub(super) shown_window: u32,
    /// TSval and TSecr of the endpoint's last segment.
    pub(super) shown_ts: Option<Timestamps>,
    /// The highest acknowledgment number that it has sent for something that was sent to it.
    pub(super) claimed: SeqNum,
    /// Once it is honest: what it has.
    pub(super) rcv_nxt: SeqNum,
    /// Once it is honest: what it has out of order.
    pub(super) held: Vec<(SeqNum, SeqNum)>,
    pub(super) keeps_out_of_order: bool,
}

impl Peer {
    /// The endpoint has sent a segment; true if an honest peer would answer it.
    pub(super) fn see(&mut self, seg: &TcpSegment<'_>) -> bool {
        let flags = seg.flags;
        if flags.contains(TcpFlags::RST) {
            return false;
        }
        if flags.contains(TcpFlags::SYN) {
            if self.irs != Some(seg.seq) {
                self.irs = Some(seg.seq);
                self.seen_nxt = seg.seq + 1;
                self.claimed = seg.seq;
                self.rcv_nxt = seg.seq + 1;
            }
            self.their_syn = seg.options;
        }
        if flags.contains(TcpFlags::ACK) {
            if seg.ack.gt(self.shown_ack) {
                self.shown_ack = seg.ack;
            }
            let shift = if flags.contains(TcpFlags::SYN) { 0 } else { self.their_shift() };
            self.shown_window = u32::from(seg.window) << shift;
        }
        if let Some(ts) = seg.options.timestamps {
            self.shown_ts = Some(ts);
        }
        let Some(irs) = self.irs else { return false };
        let place = u64::from(seg.seq.distance_from(irs + 1));
        for (i, octet) in seg.payload.iter().enumerate() {
            assert_eq!(
                octet,
                octet_at(true, place + i as u64),
                "octet {place} + {i} is not what was written"
            );
        }
        let end = seg.seq + seg.seg_len();
        if end.gt(self.seen_nxt) {
            self.seen_nxt = end;
        }
        if seg.seg_len() > 0 && !flags.contains(TcpFlags::SYN) {
            self.seen.push_back((seg.seq, end));
            if self.seen.len() > MAX_SEEN {
                self.seen.pop_front();
            }
        }
        self.take(seg.seq, end);
        seg.seg_len() > 0 || seg.seq.lt(self.rcv_nxt)
    }

    /// `[start, end)` has arrived.
    fn take(&mut self, start: SeqNum, end: SeqNum) {
        if start.gt(self.rcv_nxt) {
            if self.keeps_out_of_order && start.lt(end) {
                self.held.push((start, end));
            }
            return;
        }
        if end.gt(self.rcv_nxt) {
            self.rcv_nxt = end;
        }
        while let Some(i) = self.held.iter().position(|range| range.0.le(self.rcv_nxt)) {
            let range = self.held.swap_remove(i);
            if range.1.gt(self.rcv_nxt) {
                self.rcv_nxt = range.1;
            }
        }
    }

    pub(super) const fn uses_timestamps(&self) -> bool {
        self.syn.timestamps.is_some() && self.their_syn.timestamps.is_some()
    }

    pub(super) const fn uses_sack(&self) -> bool {
        self.syn.sack_permitted && self.their_syn.sack_permitted
    }

    fn their_shift(&self) -> u8 {
        match (self.syn.window_scale, self.their_syn.window_scale) {
            (Some(_), Some(shift)) => shift.min(14),
            _ => 0,
        }
    }

    /// The field that says at least 64 KiB.
    pub(super) fn open_window(&self) -> u16 {
        let scaled = self.syn.window_scale.is_some() && self.their_syn.window_scale.is_some();
        let shift = if scaled { self.syn.window_scale.unwrap_or(0).min(14) } else { 0 };
        u16::try_from((65_535_u32 >> shift).max(4)).unwrap_or(u16::MAX)
    }

    pub(super) fn seq_of(&self, place: u64) -> SeqNum {
        self.iss + 1 + place as u32
    }

    /// The place in its stream up to which the endpoint has acknowledged; the FIN counts.
    pub(super) fn acknowledged(&self) -> u64 {
        u64::from(self.shown_ack.saturating_distance_from(self.iss + 1))
    }

    /// A clock that the endpoint accepts: never behind what it echoes.
    fn clock(&self, now: Instant) -> u32 {
        let clock = now.as_millis() as u32;
        match self.shown_ts {
            Some(ts) if SeqNum(ts.ecr).gt(SeqNum(clock)) => ts.ecr.wrapping_add(1),
            _ => clock,
        }
    }

    /// An honest segment at `place`, with `len` octets of data.
    pub(super) fn honest(&self, now: Instant, place: u64, len: u64) -> Say {
        let len = len.min(self.total.saturating_sub(place));
        let mut flags = TcpFlags::ACK;
        if place + len == self.total && len > 0 {
            flags = flags.union(TcpFlags::PSH);
        }
        let timestamps = self
            .uses_timestamps()
            .then(|| Timestamps { val: self.clock(now), ecr: self.shown_ts.map_or(0, |ts| ts.val) });
        let mut held: Vec<_> = self.held.clone();
        held.sort_by_key(|range| range.0.distance_from(self.rcv_nxt));
        let mut blocks: Vec<(SeqNum, SeqNum)> = vec![];
        for range in held {
            match blocks.last_mut() {
                Some(last) if range.0.le(last.1) => {
                    last.1 = if range.1.gt(last.1) { range.1 } else { last.1 }
                }
                _ => blocks.push(range),
            }
        }
        let sack =
            if self.uses_sack() { blocks.into_iter().take(3).collect() } else { SackBlocks::default() };
        // Behind an acknowledged FIN nothing follows.
        let ended = self.acknowledged() > self.total && place == self.total;
        Say {
            seq: self.seq_of(place) + u32::from(ended),
            ack: self.rcv_nxt,
            flags,
            window: self.open_window(),
            sack,
            timestamps,
            accecn: None,
            ecn: Ecn::NotEct,
            data: (place, len),
        }
    }

    /// Its SYN, or SYN-ACK once it has seen the endpoint's.
    pub(super) fn syn(&self, now: Instant) -> Say {
        let mut say = self.honest(now, 0, 0);
        say.seq = self.iss;
        say.flags = match self.irs {
            Some(irs) => {
                say.ack = irs + 1;
                TcpFlags::SYN.union(TcpFlags::ACK)
            }
            None => TcpFlags::SYN,
        };
        say.flags = say.flags.union(self.syn_ecn);
        say.sack = SackBlocks::default();
        say.window = u16::MAX;
        say
    }

    /// The packet that says it.
    pub(super) fn emit(&mut self, say: &Say) -> Vec<u8> {
        let (place, len) = say.data;
        let mut header = TcpHeader::new(self.here, self.there);
        (header.seq, header.ack, header.flags, header.window) = (say.seq, say.ack, say.flags, say.window);
        header.tos = say.ecn as u8;
        if say.flags.contains(TcpFlags::SYN) {
            header.options = self.syn;
            header.options.timestamps =
                self.syn.timestamps.map(|_| say.timestamps.unwrap_or(Timestamps { val: 1, ecr: 0 }));
        } else {
            header.options = TcpOptions {
                timestamps: say.timestamps,
                sack: say.sack,
                accecn: say.accecn,
                ..TcpOptions::NONE
            };
        }
        let data: Vec<u8> = (place..place + len).map(|place| octet_at(false, place)).collect();
        self.sent = self.sent.max(place + len);
        self.sent_fin |= say.flags.contains(TcpFlags::FIN);
        if say.flags.contains(TcpFlags::ACK) && say.ack.le(self.seen_nxt) && say.ack.gt(self.claimed) {
            self.claimed = say.ack;
        }
        let mut buf = HeaderBuf::new();
        if emit_tcp(&header, [&data, &[]], TxChecksumMode::Complete, &mut buf).is_err() {
            return vec![];
        }
        [buf.as_slice(), &data].concat()
    }

    /// A lie, or half a truth.
    pub(super) fn lie(&mut self, rng: &mut Rng, now: Instant, una: SeqNum, synchronized: bool) -> Say {
        let place = self.acknowledged().min(self.total);
        let mut say = self.honest(now, place, 0);
        let nxt = self.seen_nxt;
        let flight = nxt.saturating_distance_from(una);
        let near = |rng: &mut Rng, peer: &Self| match rng.below(6) {
            0 => una,
            1 => nxt,
            2 => una + rng.below(u64::from(flight) + 1) as u32,
            3 => una + rng.below(140_000) as u32 - 70_000,
            _ if peer.seen.is_empty() => una,
            n => {
                let range = peer.seen[rng.below(peer.seen.len() as u64) as usize];
                if n == 4 { range.0 } else { range.1 }
            }
        };
        // Acknowledgments mostly stand still or move on a little, or nothing would be left to lie
        // about.
        say.ack = match rng.below(12) {
            0 => near(rng, self),
            1 => nxt,
            2 | 3 => self
                .seen
                .iter()
                .map(|range| range.1)
                .filter(|end| end.gt(una))
                .min_by_key(|end| end.distance_from(una))
                .unwrap_or(una),
            4 => SeqNum(rng.next() as u32),
            5 => una - rng.below(3_000) as u32,
            _ => una,
        };
        say.window = match rng.below(8) {
            0 => 0,
            1 => rng.size(16) as u16,
            2 => 1,
            3 => u16::MAX,
            _ => self.open_window(),
        };
        say.sack = SackBlocks::default();
        if rng.one_in(2) {
            say.sack = match rng.below(4) {
                // All but the head.
                0 if flight > 2 => {
                    [(una + 1 + rng.below(u64::from(flight) - 1) as u32, nxt)].into_iter().collect()
                }
                // What was seen, in any order.
                1 | 2 if !self.seen.is_empty() => (0..rng.within(1..4))
                    .map(|_| self.seen[rng.below(self.seen.len() as u64) as usize])
                    .collect(),
                _ => (0..rng.within(1..5)).map(|_| (near(rng, self), near(rng, self))).collect(),
            };
        }
        if rng.one_in(3) {
            let from = match rng.below(3) {
                0 => place.saturating_sub(rng.size(12)),
                1 => (place + rng.size(17)).min(self.total),
                _ => place,
            };
            say.data = (from, rng.size(11).min(self.total - from));
            say.seq = self.seq_of(from);
        } else if rng.one_in(4) {
            say.seq = match rng.below(4) {
                0 => SeqNum(rng.next() as u32),
                1 => self.seq_of(place) - 1,
                _ => self.seq_of(place) + rng.below(140_000) as u32 - 70_000,
            };
        }
        if let Some(ts) = &mut say.timestamps
            && rng.one_in(4)
        {
            match rng.below(5) {
                0 => ts.val = rng.next() as u32,
                1 => ts.ecr = rng.next() as u32,
                2 => ts.ecr = ts.ecr.wrapping_sub(rng.size(20) as u32),
                3 => ts.val = ts.val.wrapping_add(rng.size(31) as u32),
                _ => *ts = Timestamps { val: 0, ecr: 0 },
            }
        }
        let flip = |rng: &mut Rng, say: &mut Say, flag: TcpFlags, odds: u64| {
            if rng.one_in(odds) {
                say.flags = say.flags.union(flag);
            }
        };
        flip(rng, &mut say, TcpFlags::ECE, 6);
        flip(rng, &mut say, TcpFlags::CWR, 12);
        flip(rng, &mut say, TcpFlags::AE, 12);
        say.ecn = rng.pick(&[Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
        if rng.one_in(6) {
            let order = rng.pick(&[AccEcnOrder::Ect0First, AccEcnOrder::Ect1First]);
            let [ect0, ce, ect1] = std::array::from_fn(|_| rng.size(24));
            say.accecn = Some(AccEcnOption::new(order, rng.within(0..4) as usize, ect0, ce, ect1));
        }
        flip(rng, &mut say, TcpFlags::URG, 20);
        flip(rng, &mut say, TcpFlags::PSH, 6);
        if rng.one_in(30) {
            // Without ACK nothing after the fifth check counts.
            say.flags = TcpFlags::PSH;
        }
        if rng.one_in(60) {
            say.flags = say.flags.union(TcpFlags::FIN);
            self.lied_about_fin |=
                say.data.0 + say.data.1 != self.total || say.seq != self.seq_of(say.data.0);
        }
        if rng.one_in(40) {
            self.forge_reset_or_syn(rng, &mut say, synchronized);
        }
        say
    }

    /// An RST that must not end the connection, for it is not exactly at RCV.NXT (RFC 5961, section
    /// 3.2); or a SYN.
    fn forge_reset_or_syn(&self, rng: &mut Rng, say: &mut Say, synchronized: bool) {
        let beyond = self.seq_of(self.sent.max(self.acknowledged())) + 2 + rng.size(16) as u32;
        say.data = (0, 0);
        say.seq = if rng.one_in(2) { beyond } else { self.shown_ack - 1 - rng.size(20) as u32 };
        // Before, a SYN may open the connection anew.
        let kind = if synchronized && rng.one_in(2) { TcpFlags::SYN } else { TcpFlags::RST };
        say.flags = if rng.one_in(2) { kind } else { kind.union(TcpFlags::ACK) };
        if !self.shown_ack.gt(self.iss) {
            // In SYN-SENT only one that acknowledges the SYN counts.
            say.flags = TcpFlags::RST;
        }
    }
}
