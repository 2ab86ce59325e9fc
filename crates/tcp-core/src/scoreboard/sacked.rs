//! Which sequence ranges SACK blocks reported: disjoint, ordered, merged where they touch.
//!
//! The scoreboard asks it two things on an ACK: which part of a block is new, so that only that
//! part is walked, and above which sequence number enough is SACKed for the rest to be lost. Both
//! cost the logarithm of the number of ranges.

use crate::seq::SeqNum;
use alloc::collections::VecDeque;

/// The ranges, in order of sequence.
#[derive(Debug, Default)]
pub(crate) struct SackedRanges {
    ranges: VecDeque<(SeqNum, SeqNum)>,
}

impl SackedRanges {
    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<(SeqNum, SeqNum)>()
    }

    /// The first part of `[at, end)` that is not covered.
    pub(crate) fn first_gap(&self, at: SeqNum, end: SeqNum) -> Option<(SeqNum, SeqNum)> {
        let i = self.ranges.partition_point(|range| range.1.le(at));
        let (start, next) = match self.ranges.get(i) {
            Some(range) if range.0.le(at) => {
                // Ranges that touch are one, so the next one begins past a gap.
                (range.1, self.ranges.get(i + 1).map_or(end, |next| next.0))
            }
            Some(range) => (at, range.0),
            None => (at, end),
        };
        let stop = next.min(end);
        start.lt(stop).then_some((start, stop))
    }

    /// Adds `[start, end)`, which is not covered so far.
    pub(crate) fn insert(&mut self, mut start: SeqNum, mut end: SeqNum) {
        let mut i = self.ranges.partition_point(|range| range.1.lt(start));
        while let Some(&(from, to)) = self.ranges.get(i)
            && from.le(end)
        {
            start = start.min(from);
            end = end.max(to);
            // The common case extends one range: then it is changed in place.
            if self.ranges.get(i + 1).is_none_or(|next| next.0.gt(end)) {
                if let Some(range) = self.ranges.get_mut(i) {
                    *range = (start, end);
                }
                return;
            }
            self.ranges.remove(i);
        }
        i = i.min(self.ranges.len());
        self.ranges.insert(i, (start, end));
    }

    /// Everything before `una` is acknowledged.
    pub(crate) fn release(&mut self, una: SeqNum) {
        while self.ranges.front().is_some_and(|range| range.1.le(una)) {
            self.ranges.pop_front();
        }
        if let Some(range) = self.ranges.front_mut() {
            range.0 = range.0.max(una);
        }
    }

    /// One past the highest byte reported.
    pub(crate) fn highest(&self) -> Option<SeqNum> {
        self.last().map(|range| range.1)
    }

    /// The highest range.
    pub(crate) fn last(&self) -> Option<(SeqNum, SeqNum)> {
        self.ranges.back().copied()
    }

    /// RFC 6675, IsLost: everything not SACKed below the result has `dup_thresh` ranges, or more
    /// than `(dup_thresh - 1) * smss` bytes, SACKed above it.
    pub(crate) fn loss_edge(&self, dup_thresh: u32, smss: u32) -> Option<SeqNum> {
        let enough = (dup_thresh - 1).saturating_mul(smss);
        let mut bytes = 0_u32;
        for (count, range) in (1..=dup_thresh).zip(self.ranges.iter().rev()) {
            bytes = bytes.saturating_add(range.1.distance_from(range.0));
            if bytes > enough || count == dup_thresh {
                return Some(range.0);
            }
        }
        None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }
}
