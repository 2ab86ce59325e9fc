//! Which outstanding data goes out again: the parts of RFC 6675's NextSeg that the records decide.

use super::Scoreboard;
use super::record::{Record, tag};
use crate::seq::SeqNum;

impl Scoreboard {
    /// RFC 6675, NextSeg, rule 1: the first lost data that was not sent again, at most `max` bytes
    /// of it.
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

    /// RFC 6675, NextSeg, rule 3: the first data at or after `from` that is not SACKed and was not
    /// sent again, below what SACK reported, at most `max` bytes of it.
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

    /// The outstanding segment that contains `seq`, at most `max` bytes of it from there on; with
    /// those behind it that fit as a whole, and of which SACK says the same.
    pub(crate) fn segment_at(&self, seq: SeqNum, max: u32) -> Option<(SeqNum, SeqNum)> {
        let mut records = self.records.iter().skip(self.index_of(seq));
        let first = records.next().filter(|record| record.start.le(seq))?;
        let kind = |record: &Record| record.tags & (tag::SACKED | tag::EVER_SACKED | tag::RESERVED);
        let limit = seq + max;
        let fits = |record: &&Record| kind(record) == kind(first) && record.end.le(limit);
        let end = records.take_while(fits).last().map_or(first.end, |last| last.end);
        Some((seq, end.min(limit)))
    }
}
