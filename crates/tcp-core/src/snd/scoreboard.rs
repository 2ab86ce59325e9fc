//! Records of what was sent and is not acknowledged, with their tags, and RFC 6675's pipe.
//!
//! ```text
//!    SND.UNA                                                      SND.NXT
//!   ────┬───────┬───────┬───────────────┬───────┬────────────────────┬────
//!       │ lost  │ lost  │    SACKed     │       │  one super-packet  │
//!       │ again │       │               │       │                    │
//!   ────┴───────┴───────┴───────────────┴───────┴────────────────────┴────
//!                       ▲ loss edge: below it, what is not SACKed is lost
//! ```
//!
//! Records are contiguous and in order of sequence; one stands for one departure, which may be a super-packet.
//! They are split where an ACK, a loss or a retransmission ends inside of one, at multiples of the segment size
//! only, so that a peer cannot break them into crumbs. A record is never dropped before it is acknowledged;
//! tags may be cleared (RFC 2018, section 8).
//!
//! Cost: a departure appends, a cumulative ACK removes at the front, a SACK block walks what it newly covers,
//! loss marking and retransmission walk with cursors that move forward. RACK asks for the oldest departure that is
//! still in the network: a queue of departures in order of time gives it, from whose front go those that are
//! acknowledged, SACKed, lost, or repeated since. Nothing walks the whole window but an
//! expired timer, a swap of the segment size, and the undoing of a reduction.

use super::rate::{Covered, Stamp};
use super::sacked::SackedRanges;
use crate::recovery::rack::{Overdue, sent_after};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

/// Tags of a record.
mod tag {
    /// A SACK block covers it.
    pub(crate) const SACKED: u8 = 1;
    /// It is held to be lost.
    pub(crate) const LOST: u8 = 1 << 1;
    /// It left again, and that copy is held to be in the network.
    pub(crate) const AGAIN: u8 = 1 << 2;
    /// It left more than once: no RTT sample (Karn).
    pub(crate) const EVER_AGAIN: u8 = 1 << 3;
    /// Its retransmission waits in the egress scheduler.
    pub(crate) const RESERVED: u8 = 1 << 4;
    /// It left while the application limited the flow.
    pub(crate) const APP_LIMITED: u8 = 1 << 5;
    /// A SACK block has covered it, also where the tag was cleared since: it counts as delivered.
    pub(crate) const EVER_SACKED: u8 = 1 << 6;
}

/// One departure, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// First sequence number.
    pub(crate) start: SeqNum,
    /// One past the last; a FIN counts.
    pub(crate) end: SeqNum,
    /// The last departure.
    pub(crate) stamp: Stamp,
    /// Payload bytes per wire segment; at least 1.
    mss: u16,
    tags: u8,
}

impl Record {
    /// Sequence numbers.
    pub(crate) const fn len(&self) -> u32 {
        self.end.distance_from(self.start)
    }

    /// Wire segments.
    pub(crate) fn segments(&self) -> u32 {
        let (len, mss) = (self.len(), u32::from(self.mss));
        if len <= mss { 1 } else { len.div_ceil(mss) }
    }

    /// Payload bytes of its largest packet.
    pub(crate) fn packet_len(&self) -> u16 {
        u16::try_from(self.len()).map_or(self.mss, |len| len.min(self.mss))
    }

    const fn is(&self, tag: u8) -> bool {
        self.tags & tag != 0
    }

    const fn set(&mut self, tag: u8, on: bool) {
        if on {
            self.tags |= tag;
        } else {
            self.tags &= !tag;
        }
    }

    /// It left more than once.
    pub(crate) const fn ever_retransmitted(&self) -> bool {
        self.is(tag::EVER_AGAIN)
    }

    /// A SACK block has covered it before: when it arrived, nobody knows any more.
    pub(crate) const fn ever_sacked(&self) -> bool {
        self.is(tag::EVER_SACKED)
    }

    /// A copy of it is held to be in the network; of what was SACKed before, one that left since.
    pub(crate) const fn left_again(&self) -> bool {
        self.is(tag::AGAIN)
    }

    /// It left while the application limited the flow.
    pub(crate) const fn app_limited(&self) -> bool {
        self.is(tag::APP_LIMITED)
    }

    /// Believed to be in the network, as its last departure.
    const fn in_network(&self) -> bool {
        !self.is(tag::SACKED) && (!self.is(tag::LOST) || self.is(tag::AGAIN))
    }

    /// Lost, and not sent again since.
    const fn wants_retransmission(&self) -> bool {
        self.is(tag::LOST) && self.tags & (tag::AGAIN | tag::RESERVED | tag::SACKED) == 0
    }
}

/// Bytes by tag, of all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// All.
    pub(crate) outstanding: u32,
    /// SACKed.
    pub(crate) sacked: u32,
    /// Wire segments SACKed.
    sacked_segments: u32,
    /// Lost and not SACKed.
    pub(crate) lost: u32,
    /// Sent again and not SACKed, lost or not.
    pub(crate) again: u32,
    /// Lost, and neither sent again nor reserved.
    pub(crate) pending: u32,
    /// Retransmissions that wait in the egress scheduler.
    pub(crate) reserved: u32,
}

impl Tally {
    fn apply(&mut self, record: &Record, sign: impl Fn(&mut u32, u32)) {
        let len = record.len();
        sign(&mut self.outstanding, len);
        if record.is(tag::RESERVED) {
            sign(&mut self.reserved, len);
        }
        if record.is(tag::SACKED) {
            sign(&mut self.sacked, len);
            sign(&mut self.sacked_segments, record.segments());
            return;
        }
        if record.is(tag::LOST) {
            sign(&mut self.lost, len);
        }
        if record.is(tag::AGAIN) {
            sign(&mut self.again, len);
        }
        if record.wants_retransmission() {
            sign(&mut self.pending, len);
        }
    }

    fn add(&mut self, record: &Record) {
        self.apply(record, |sum, len| *sum += len);
    }

    fn remove(&mut self, record: &Record) {
        self.apply(record, |sum, len| *sum -= len);
    }
}

/// A departure, as long as something of it may be in the network.
#[derive(Clone, Copy, Debug)]
struct Departure {
    start: SeqNum,
    end: SeqNum,
    at: Instant,
}

/// The records. See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    sacked: SackedRanges,
    /// Departures in order of time, where losses are found by time.
    order: Option<VecDeque<Departure>>,
    tally: Tally,
    /// No record before it wants to be sent again.
    next_lost: SeqNum,
    /// Everything before it that is not SACKed was marked lost.
    lost_edge: SeqNum,
    /// Bytes that duplicate ACKs without SACK stand for: they left the network, nobody knows which.
    unnamed: u32,
    /// Records that were looked at, beside those that a search by sequence number finds.
    #[cfg(test)]
    pub(crate) work: core::cell::Cell<u64>,
}

impl Scoreboard {
    /// No records. `timed`: losses are found by time.
    pub(crate) fn new(una: SeqNum, timed: bool) -> Self {
        Self {
            records: VecDeque::new(),
            sacked: SackedRanges::default(),
            order: timed.then(VecDeque::new),
            tally: Tally::default(),
            next_lost: una,
            lost_edge: una,
            unnamed: 0,
            #[cfg(test)]
            work: Default::default(),
        }
    }

    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Wire segments SACKed and not acknowledged.
    pub(crate) const fn sacked_segments(&self) -> u32 {
        self.tally.sacked_segments
    }

    /// Bytes that left the network without anybody knowing which ([`add_unnamed`](Self::add_unnamed)).
    pub(crate) const fn unnamed(&self) -> u32 {
        self.unnamed
    }

    /// Bytes believed to be in the network (RFC 6675, section 4, SetPipe): for each octet that is not SACKed,
    /// one if it is not lost, and one if it was sent again. Without SACK, duplicate ACKs take bytes off.
    pub(crate) const fn pipe(&self) -> u32 {
        let Tally { outstanding, sacked, lost, again, reserved, .. } = self.tally;
        let gone = sacked.saturating_add(lost).saturating_add(self.unnamed);
        outstanding.saturating_add(again).saturating_add(reserved).saturating_sub(gone)
    }

    /// Departure of the oldest outstanding record.
    pub(crate) fn oldest_departure(&self) -> Option<Instant> {
        self.records.front().map(|record| record.stamp.sent_at)
    }

    /// First sequence number of the highest outstanding segment that begins before `limit`.
    pub(crate) fn highest_before(&self, limit: SeqNum) -> Option<SeqNum> {
        let record = self.records.iter().rev().find(|record| record.start.lt(limit))?;
        let (len, mss) = (record.end.min(limit).distance_from(record.start), u32::from(record.mss));
        Some(record.start + (len - 1) / mss * mss)
    }

    /// Records that are in the network, up to `most`; super-packets count as their segments.
    pub(crate) fn segments_out(&self, most: u32) -> u32 {
        let mut count = 0;
        for record in &self.records {
            if count >= most {
                break;
            }
            let out = u32::from(!record.is(tag::LOST)) + u32::from(record.is(tag::AGAIN));
            if !record.is(tag::SACKED) {
                count += out * record.segments();
            }
        }
        count.min(most)
    }

    /// Payload bytes and last departure of the packet that began at `seq`; `None` if none did, or if it is SACKed.
    pub(crate) fn packet_at(&self, seq: SeqNum) -> Option<(u32, Instant)> {
        let record = self.records.get(self.index_of(seq))?;
        if seq.lt(record.start) || record.is(tag::SACKED) {
            return None;
        }
        let (at, mss) = (seq.distance_from(record.start), u32::from(record.mss));
        at.is_multiple_of(mss).then(|| ((record.len() - at).min(mss), record.stamp.sent_at))
    }

    /// Payload bytes of the packet at the head.
    pub(crate) fn head_packet_len(&self) -> u16 {
        self.records.front().map_or(0, Record::packet_len)
    }

    /// The outstanding octet is held to be lost.
    pub(crate) fn is_lost(&self, seq: SeqNum) -> bool {
        self.records.get(self.index_of(seq)).is_some_and(|record| record.is(tag::LOST))
    }

    /// `[start, end)` left for the first time.
    pub(crate) fn push(&mut self, start: SeqNum, end: SeqNum, stamp: Stamp, mss: u32, app_limited: bool) {
        let mss = u16::try_from(mss).unwrap_or(u16::MAX).max(1);
        let record = Record { start, end, stamp, mss, tags: if app_limited { tag::APP_LIMITED } else { 0 } };
        self.tally.add(&record);
        self.records.push_back(record);
        if let Some(order) = &mut self.order {
            order.push_back(Departure { start, end, at: stamp.sent_at });
        }
    }

    /// Everything before `una` is acknowledged; what no SACK had covered goes into `covered`.
    pub(crate) fn acknowledge(&mut self, una: SeqNum, covered: &mut Covered) {
        let mut looked_at = 0;
        while let Some(record) = self.records.front_mut()
            && record.start.lt(una)
        {
            looked_at += 1;
            if record.end.le(una) {
                let record = *record;
                if !record.is(tag::SACKED) {
                    covered.add(&record);
                    covered.repairs |= record.ever_retransmitted();
                }
                self.tally.remove(&record);
                self.records.pop_front();
            } else {
                let mut part = *record;
                part.end = una;
                if !part.is(tag::SACKED) {
                    covered.add(&part);
                    covered.repairs |= part.ever_retransmitted();
                }
                self.tally.remove(record);
                record.start = una;
                self.tally.add(record);
                break;
            }
        }
        self.count(looked_at);
        self.next_lost = self.next_lost.max(una);
        self.lost_edge = self.lost_edge.max(una);
        if let Some(order) = &mut self.order {
            while order.front().is_some_and(|departure| departure.end.le(una)) {
                order.pop_front();
            }
        }
        self.sacked.release(una);
    }

    /// The head is SACKed: a peer that holds it would acknowledge it, so it has dropped it again, or lies
    /// (RFC 2018, section 8).
    pub(crate) fn head_is_sacked(&self) -> bool {
        self.records.front().is_some_and(|record| record.is(tag::SACKED))
    }

    /// A SACK block reports `[start, end)`, which lies within what is outstanding. Returns the bytes newly
    /// SACKed; they also go into `covered`.
    pub(crate) fn sack(&mut self, start: SeqNum, end: SeqNum, covered: &mut Covered) -> u32 {
        let mut newly = 0;
        let mut at = start;
        while let Some((from, to)) = self.sacked.first_gap(at, end) {
            if let Some((from, to)) = self.tag_sacked(from, to, covered) {
                newly += to.distance_from(from);
                self.sacked.insert(from, to);
            }
            at = to;
        }
        newly
    }

    /// Tags the whole segments within `[from, to)`, which are not tagged so far; gives what they cover.
    fn tag_sacked(&mut self, from: SeqNum, to: SeqNum, covered: &mut Covered) -> Option<(SeqNum, SeqNum)> {
        let mut i = self.index_of(from);
        let record = self.records.get(i)?;
        if record.start.lt(from) {
            let mss = u32::from(record.mss);
            let whole = from.distance_from(record.start).div_ceil(mss) * mss;
            let (at, end) = (record.start + whole, record.end);
            if whole < record.len() && at.lt(to) {
                self.split(i, at);
            } else if end.gt(to) {
                return None;
            }
            i += 1;
        }
        let first = self.records.get(i)?.start;
        let mut last = first;
        while let Some(record) = self.records.get(i)
            && record.start.lt(to)
        {
            if record.end.gt(to) {
                let mss = u32::from(record.mss);
                let whole = to.distance_from(record.start) / mss * mss;
                if whole == 0 {
                    break;
                }
                self.split(i, record.start + whole);
            }
            self.count(1);
            let Some(record) = self.records.get_mut(i) else { break };
            self.tally.remove(record);
            covered.add(record);
            record.set(tag::SACKED | tag::EVER_SACKED, true);
            record.set(tag::LOST | tag::AGAIN, false);
            self.tally.add(record);
            last = record.end;
            i += 1;
        }
        first.lt(last).then_some((first, last))
    }

    /// One past the highest byte that a SACK block reported.
    pub(crate) fn highest_sacked(&self) -> Option<SeqNum> {
        self.sacked.highest()
    }

    /// RFC 6675, Update and IsLost: marks what the SACK blocks prove lost, and returns the bytes newly marked.
    pub(crate) fn mark_lost_by_sack(&mut self, dup_thresh: u32, smss: u32) -> u32 {
        let Some(edge) = self.sacked.loss_edge(dup_thresh, smss) else { return 0 };
        if edge.le(self.lost_edge) {
            return 0;
        }
        let mut newly = 0;
        let mut i = self.index_of(self.lost_edge);
        while let Some(record) = self.records.get_mut(i)
            && record.end.le(edge)
        {
            newly += Self::mark_lost(&mut self.tally, record);
            i += 1;
        }
        if newly > 0 {
            self.next_lost = self.next_lost.min(self.lost_edge);
        }
        self.lost_edge = edge;
        newly
    }

    /// Marks the segment at the head lost, whatever its size up to `smss`. Returns the bytes newly marked.
    pub(crate) fn mark_head_lost(&mut self, smss: u32) -> u32 {
        self.split_after(0, smss);
        let Some(record) = self.records.front_mut() else { return 0 };
        // A head that was sent again is lost again only where the caller has proof.
        self.next_lost = self.next_lost.min(record.start);
        Self::mark_lost(&mut self.tally, record)
    }

    /// RFC 8985, section 6.2, step 5: marks lost what is in the network, left before `latest` (departure and end
    /// of what arrived), and for longer than `window`.
    pub(crate) fn mark_overdue(
        &mut self,
        latest: (Instant, SeqNum),
        now: Instant,
        window: Duration,
    ) -> Overdue {
        let mut found = Overdue::default();
        while let Some(i) = self.oldest_in_network()
            && let Some(record) = self.records.get_mut(i)
        {
            let sent_at = record.stamp.sent_at;
            if !sent_after(latest, (sent_at, record.end)) {
                break;
            }
            if sent_at + window > now {
                found.next = Some(sent_at + window);
                break;
            }
            self.tally.remove(record);
            if record.is(tag::AGAIN) {
                found.lost_again += record.segments();
            }
            record.set(tag::LOST, true);
            record.set(tag::AGAIN, false);
            self.tally.add(record);
            found.bytes += record.len();
            self.next_lost = self.next_lost.min(record.start);
        }
        found
    }

    /// Index of the record that left first of those in the network. Drops departures that are not there any more.
    fn oldest_in_network(&mut self) -> Option<usize> {
        while let Some(&departure) = self.order.as_ref()?.front() {
            let mut i = self.index_of(departure.start);
            while let Some(record) = self.records.get(i)
                && record.start.lt(departure.end)
            {
                if record.stamp.sent_at == departure.at && record.in_network() {
                    let start = record.start;
                    if let Some(front) = self.order.as_mut()?.front_mut() {
                        front.start = front.start.max(start);
                    }
                    return Some(i);
                }
                i += 1;
            }
            self.order.as_mut()?.pop_front();
        }
        None
    }

    /// Makes the queue of departures anew, after tags were cleared.
    fn reorder(&mut self) {
        self.count(self.records.len());
        let Some(order) = &mut self.order else { return };
        order.clear();
        let in_network = self.records.iter().filter(|record| record.in_network());
        order.extend(in_network.map(|record| Departure {
            start: record.start,
            end: record.end,
            at: record.stamp.sent_at,
        }));
        let Some(first) = order.front().map(|departure| departure.start) else { return };
        order
            .make_contiguous()
            .sort_unstable_by_key(|departure| (departure.at, departure.start.distance_from(first)));
    }

    /// Nothing is held to be lost any more; copies that left again stay in the network.
    pub(crate) fn unmark_lost(&mut self) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            if record.is(tag::LOST) {
                self.tally.remove(record);
                record.set(tag::LOST, false);
                self.tally.add(record);
            }
        }
        self.unnamed = 0;
        self.lost_edge = una;
        self.reorder();
    }

    fn mark_lost(tally: &mut Tally, record: &mut Record) -> u32 {
        if record.is(tag::SACKED) || record.is(tag::LOST) {
            return 0;
        }
        tally.remove(record);
        record.set(tag::LOST, true);
        tally.add(record);
        record.len()
    }

    /// Marks lost what left in segments larger than `smss`: the path does not carry it (RFC 1191, section 5).
    pub(crate) fn mark_larger_than(&mut self, smss: u32) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            if u32::from(record.mss) > smss && record.len() > smss {
                self.tally.remove(record);
                if !record.is(tag::SACKED) {
                    record.set(tag::LOST, true);
                    record.set(tag::AGAIN, false);
                }
                self.tally.add(record);
            }
        }
        self.next_lost = una;
    }

    /// Every tag but those of Karn's algorithm is set anew: what is SACKed stays so if `keep_sacked`, what is
    /// lost becomes so by `lost`, and no copy is held to be in the network any more.
    pub(crate) fn retag(&mut self, keep_sacked: bool, lost: Lost) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        for record in &mut self.records {
            self.tally.remove(record);
            if !keep_sacked {
                record.set(tag::SACKED, false);
            }
            let is_lost = match lost {
                Lost::All => true,
                Lost::Before(limit) => record.start.lt(limit),
                Lost::None => false,
            };
            record.set(tag::LOST, is_lost && !record.is(tag::SACKED));
            record.set(tag::AGAIN, false);
            self.tally.add(record);
        }
        if !keep_sacked {
            self.sacked.clear();
        }
        self.unnamed = 0;
        self.next_lost = una;
        self.lost_edge = match lost {
            Lost::All => self.records.back().map_or(una, |record| record.end),
            Lost::Before(limit) => {
                let end = self.records.back().map_or(una, |record| record.end);
                limit.max(una).min(end)
            }
            Lost::None => una,
        };
        self.reorder();
    }

    /// What was SACKed counts as outstanding again, after the peer reneged.
    pub(crate) fn forget_sacked(&mut self) {
        let Some(una) = self.records.front().map(|record| record.start) else { return };
        self.count(self.records.len());
        for record in &mut self.records {
            if record.is(tag::SACKED) {
                self.tally.remove(record);
                record.set(tag::SACKED, false);
                self.tally.add(record);
            }
        }
        self.sacked.clear();
        self.lost_edge = una;
        self.reorder();
    }

    /// RFC 6675, NextSeg, rule 1: the first lost data that was not sent again, at most `max` bytes of it.
    pub(crate) fn next_lost(&mut self, max: u32) -> Option<(SeqNum, SeqNum)> {
        let mut i = self.index_of(self.next_lost);
        while let Some(record) = self.records.get(i) {
            if record.wants_retransmission() {
                let start = record.start.max(self.next_lost);
                self.next_lost = start;
                return Some((start, self.run_end(i, start + max, Record::wants_retransmission)));
            }
            i += 1;
        }
        None
    }

    /// RFC 6675, NextSeg, rule 3: the first data at or after `from` that is not SACKed and was not sent again,
    /// below what SACK reported, at most `max` bytes of it.
    pub(crate) fn next_hole(&self, from: SeqNum, max: u32) -> Option<(SeqNum, SeqNum)> {
        let highest = self.sacked.highest()?;
        let mut at = from;
        while let Some((start, end)) = self.sacked.first_gap(at, highest) {
            let i = self.index_of(start);
            let record = self.records.get(i)?;
            if record.tags & (tag::AGAIN | tag::RESERVED) == 0 {
                return Some((start, end.min(start + max).min(record.end)));
            }
            at = record.end;
        }
        None
    }

    /// RFC 6675, NextSeg, rule 4: the highest data that is not SACKed, at most `max` bytes of it.
    pub(crate) fn rescue(&self, max: u32) -> Option<(SeqNum, SeqNum)> {
        let end = self.records.back()?.end;
        let end = self.sacked.last().filter(|range| range.1 == end).map_or(end, |range| range.0);
        let record = self.records.get(self.index_of(end - 1))?;
        let rescued = record.start.lt(end) && !record.is(tag::RESERVED);
        rescued.then(|| (record.start.max(end - max), end))
    }

    /// The end of the run of records from the `i`-th on that satisfy `wanted`, not beyond `limit`.
    fn run_end(&self, i: usize, limit: SeqNum, wanted: impl Fn(&Record) -> bool) -> SeqNum {
        let mut end = limit;
        for record in self.records.iter().skip(i) {
            if record.start.ge(limit) || !wanted(record) {
                return record.start.min(limit);
            }
            end = record.end.min(limit);
        }
        end
    }

    /// The outstanding segment that contains `seq`, at most `max` bytes of it from there on.
    pub(crate) fn segment_at(&self, seq: SeqNum, max: u32) -> Option<(SeqNum, SeqNum)> {
        let record = self.records.get(self.index_of(seq))?;
        (record.start.le(seq)).then(|| (seq, record.end.min(seq + max)))
    }

    /// True where everything in `[start, end)` is SACKed.
    pub(crate) fn is_sacked(&self, start: SeqNum, end: SeqNum) -> bool {
        !self.sacked.is_empty() && self.sacked.first_gap(start, end).is_none()
    }

    /// The retransmission of `[start, end)` waits in the egress scheduler, or does not any more.
    pub(crate) fn set_reserved(&mut self, start: SeqNum, end: SeqNum, reserved: bool) {
        self.update(start, end, |record| record.set(tag::RESERVED, reserved));
        if !reserved {
            self.next_lost = self.next_lost.min(start);
        }
    }

    /// `[start, end)` left again.
    pub(crate) fn on_retransmitted(
        &mut self,
        start: SeqNum,
        end: SeqNum,
        stamp: Stamp,
        mss: u32,
        limited: bool,
    ) {
        let mss = u16::try_from(mss).unwrap_or(u16::MAX).max(1);
        self.update(start, end, |record| {
            record.stamp = stamp;
            record.mss = mss;
            record.set(tag::APP_LIMITED, limited);
            record.set(tag::RESERVED, false);
            record.set(tag::EVER_AGAIN, true);
            if !record.is(tag::SACKED) {
                record.set(tag::AGAIN, true);
            }
        });
        self.join(start, end);
        // Retransmissions that nothing answers must not make the queue grow.
        self.oldest_in_network();
        if let Some(order) = &mut self.order {
            order.push_back(Departure { start, end, at: stamp.sent_at });
        }
        if self.next_lost.within(start, end) {
            self.next_lost = end;
        }
    }

    /// Makes one record of those in `[start, end)`, which left as one packet, so that its segments begin at
    /// multiples of their size from its start. What was SACKed stays apart from what never was.
    fn join(&mut self, start: SeqNum, end: SeqNum) {
        let (first, last) = (self.index_of(start), self.index_of(end - 1));
        if last <= first {
            return;
        }
        let Some(ever) = self.records.get(first).map(|record| record.tags & tag::EVER_SACKED) else { return };
        let alike = |record: &Record| record.tags & (tag::SACKED | tag::EVER_SACKED) == ever;
        if !self.records.range(first..=last).all(alike) {
            return;
        }
        let lost = self.records.range(first..=last).all(|record| record.is(tag::LOST));
        self.records.drain(first + 1..=last).for_each(|record| self.tally.remove(&record));
        if let Some(record) = self.records.get_mut(first) {
            self.tally.remove(record);
            record.end = end;
            record.set(tag::LOST, lost);
            self.tally.add(record);
        }
    }

    /// Changes the records of `[start, end)`, splitting those at its ends.
    fn update(&mut self, start: SeqNum, end: SeqNum, change: impl Fn(&mut Record)) {
        let mut i = self.index_of(start);
        if self.records.get(i).is_some_and(|record| record.start.lt(start)) {
            self.split(i, start);
            i += 1;
        }
        while let Some(record) = self.records.get(i)
            && record.start.lt(end)
        {
            if record.end.gt(end) {
                self.split(i, end);
            }
            let Some(record) = self.records.get_mut(i) else { break };
            self.tally.remove(record);
            change(record);
            self.tally.add(record);
            i += 1;
        }
    }

    /// A duplicate ACK without SACK: `bytes` more have left the network. Bounded by what is outstanding beyond
    /// the head.
    pub(crate) fn add_unnamed(&mut self, bytes: u32) {
        let most = self.tally.outstanding.saturating_sub(self.tally.lost.max(bytes));
        self.unnamed = self.unnamed.saturating_add(bytes).min(most);
    }

    /// A cumulative ACK of `acked` bytes without SACK: one segment of `smss` was the hole, the rest is what
    /// earlier duplicate ACKs stood for.
    pub(crate) fn resolve_unnamed(&mut self, acked: u32, smss: u32) {
        let most = self.tally.outstanding.saturating_sub(self.tally.lost);
        self.unnamed = self.unnamed.saturating_sub(acked.saturating_sub(smss)).min(most);
    }

    pub(crate) fn clear_unnamed(&mut self) {
        self.unnamed = 0;
    }

    /// `records` were looked at: what tests bound in place of time.
    fn count(&self, records: usize) {
        #[cfg(test)]
        self.work.set(self.work.get() + records as u64);
        #[cfg(not(test))]
        let _ = records;
    }

    /// Bytes that SACK blocks have covered at some time: what of it counts as delivered.
    #[cfg(test)]
    pub(crate) fn ever_sacked(&self) -> u32 {
        self.records.iter().filter(|record| record.ever_sacked()).map(Record::len).sum()
    }

    /// Recomputes every sum and compares.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut tally = Tally::default();
        let mut next = None;
        for record in &self.records {
            assert!(next.is_none_or(|next| next == record.start), "records are contiguous");
            assert!(record.start.lt(record.end), "no record is empty");
            assert!(!record.wants_retransmission() || self.next_lost.lt(record.end), "the cursor is past it");
            let covered = self.sacked.first_gap(record.start, record.end).is_none();
            assert_eq!(covered, record.is(tag::SACKED), "ranges and tags agree");
            assert!(record.ever_sacked() || !record.is(tag::SACKED), "what is SACKed is so for ever");
            next = Some(record.end);
            tally.add(record);
        }
        assert_eq!(tally, self.tally);
        let Some(order) = &self.order else { return };
        assert!(order.iter().is_sorted_by_key(|departure| departure.at), "departures are in order of time");
        for record in self.records.iter().filter(|record| record.in_network()) {
            let known = order.iter().any(|departure| {
                departure.at == record.stamp.sent_at
                    && departure.start.le(record.start)
                    && record.end.le(departure.end)
            });
            assert!(known, "the departure of {record:?} is not known");
        }
    }

    /// Index of the record that contains `seq`, or of the first one after it.
    fn index_of(&self, seq: SeqNum) -> usize {
        match self.records.front() {
            Some(record) if record.end.gt(seq) => 0,
            _ => self.records.partition_point(|record| record.end.le(seq)),
        }
    }

    /// Cuts the `i`-th record after its first `len` bytes, where it is longer.
    fn split_after(&mut self, i: usize, len: u32) {
        if let Some(record) = self.records.get(i)
            && record.len() > len
        {
            let at = record.start + len;
            self.split(i, at);
        }
    }

    /// Cuts the `i`-th record at `at`, which lies inside of it.
    fn split(&mut self, i: usize, at: SeqNum) {
        let Some(record) = self.records.get_mut(i) else { return };
        self.tally.remove(record);
        let rest = Record { start: at, ..*record };
        record.end = at;
        self.tally.add(record);
        self.tally.add(&rest);
        self.records.insert(i + 1, rest);
    }
}

/// What [`Scoreboard::retag`] holds to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Everything that is not SACKed.
    All,
    /// Of that, what begins before this sequence number.
    Before(SeqNum),
    /// Nothing.
    None,
}
