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
//! | file | holds |
//! |---|---|
//! | `record.rs` | one record, its tags, and the sums over all |
//! | `sack.rs`, `sacked.rs` | what SACK blocks report |
//! | `loss.rs`, `unnamed.rs` | what is held to be lost, with SACK and without |
//! | `departures.rs` | the order of departures in time |
//! | `next.rs` | what goes out again |
//! | `ack_cx.rs`, `claim.rs` | the facts of one ACK |
//!
//! Records are contiguous and in order of sequence; one stands for one departure, which may be a
//! super-packet. They are split where an ACK, a loss or a retransmission ends inside of one, at
//! multiples of the segment size only, so that a peer cannot break them into crumbs. A record is
//! never dropped before it is acknowledged; tags may be cleared (RFC 2018, section 8).
//!
//! Cost: a departure appends, a cumulative ACK removes at the front, a SACK block walks what it
//! newly covers, loss marking and retransmission walk with cursors that move forward. RACK asks for
//! the oldest departure that is still in the network: a queue of departures in order of time gives
//! it, from whose front go those that are acknowledged, SACKed, lost, or repeated since. Nothing
//! walks the whole window but an expired timer, a swap of the segment size, and the undoing of a
//! reduction.
//!
//! [`AckCx`] gathers what an ACK covers, record by record, for everybody who asks.

mod ack_cx;
mod claim;
mod departures;
mod loss;
mod next;
mod record;
mod sack;
mod sacked;
mod unnamed;

pub(crate) use ack_cx::AckCx;
pub(crate) use claim::Claim;
pub(crate) use loss::{LostRange, OnLost, OverdueData};
pub(crate) use record::{Record, Stamp, Tally, sent_after};

use crate::seq::SeqNum;
use crate::time::Instant;
use alloc::collections::VecDeque;
use departures::Departure;
use record::tag;
use sacked::SackedRanges;

/// The records. See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    sacked: SackedRanges,
    /// Departures in order of time, if losses are found by time.
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

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        let order = self.order.as_ref().map_or(0, |order| order.capacity() * size_of::<Departure>());
        self.records.capacity() * size_of::<Record>() + order + self.sacked.memory()
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

    /// Bytes believed to be in the network (RFC 6675, section 4, SetPipe): for each octet that is
    /// not SACKed, one if it is not lost, and one if it was sent again. Without SACK, duplicate
    /// ACKs take bytes off.
    pub(crate) const fn pipe(&self) -> u32 {
        let Tally { outstanding, again, reserved, .. } = self.tally;
        outstanding.saturating_add(again).saturating_add(reserved).saturating_sub(self.gone())
    }

    /// Bytes that are outstanding, and whose first transmission has left the network.
    pub(crate) const fn gone(&self) -> u32 {
        let Tally { sacked, lost, .. } = self.tally;
        sacked.saturating_add(lost).saturating_add(self.unnamed)
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

    /// Payload bytes and last departure of the packet that began at `seq`; `None` if none did, or
    /// if it is SACKed.
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

    /// Payload bytes of the largest packet that is SACKed. O(number of records).
    pub(crate) fn largest_sacked(&self) -> u16 {
        let sacked = self.records.iter().filter(|record| record.is(tag::SACKED));
        sacked.map(Record::packet_len).max().unwrap_or(0)
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

    /// Everything before `una` is acknowledged; what no SACK had covered goes into `ack`.
    pub(crate) fn acknowledge(&mut self, una: SeqNum, ack: &mut AckCx) {
        let mut looked_at = 0;
        while let Some(record) = self.records.front_mut()
            && record.start.lt(una)
        {
            looked_at += 1;
            if record.end.le(una) {
                let record = *record;
                if !record.is(tag::SACKED) {
                    ack.add(&record);
                    ack.repairs |= record.ever_retransmitted();
                }
                self.tally.remove(&record);
                self.records.pop_front();
            } else {
                let mut part = *record;
                part.end = una;
                if !part.is(tag::SACKED) {
                    ack.add(&part);
                    ack.repairs |= part.ever_retransmitted();
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

    /// Makes one record of those in `[start, end)`, which left as one packet, so that its segments
    /// begin at multiples of their size from its start. What was SACKed stays apart from what never
    /// was.
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

    /// Cuts the `i`-th record after its first `len` bytes, if it is longer.
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
