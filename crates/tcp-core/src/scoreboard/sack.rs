//! What SACK blocks report.

use super::record::tag;
use super::{AckCx, Scoreboard};
use crate::seq::SeqNum;

impl Scoreboard {
    /// The head is SACKed: a peer that holds it would acknowledge it, so it has dropped it again,
    /// or lies (RFC 2018, section 8).
    pub(crate) fn head_is_sacked(&self) -> bool {
        self.records.front().is_some_and(|record| record.is(tag::SACKED))
    }

    /// A SACK block reports `[start, end)`, which lies within what is outstanding. Returns the
    /// bytes newly SACKed; they also go into `ack`.
    pub(crate) fn sack(&mut self, start: SeqNum, end: SeqNum, ack: &mut AckCx) -> u32 {
        let mut newly = 0;
        let mut at = start;
        while let Some((from, to)) = self.sacked.first_gap(at, end) {
            if let Some((from, to)) = self.tag_sacked(from, to, ack) {
                newly += to.distance_from(from);
                self.sacked.insert(from, to);
            }
            at = to;
        }
        newly
    }

    /// Tags the whole segments within `[from, to)`, which are not tagged so far; gives what they
    /// cover.
    fn tag_sacked(&mut self, from: SeqNum, to: SeqNum, ack: &mut AckCx) -> Option<(SeqNum, SeqNum)> {
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
            ack.add(record);
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

    /// True if everything in `[start, end)` is SACKed.
    pub(crate) fn is_sacked(&self, start: SeqNum, end: SeqNum) -> bool {
        !self.sacked.is_empty() && self.sacked.first_gap(start, end).is_none()
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
}
