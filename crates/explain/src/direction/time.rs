//! What a sender's time went for: intervals without gaps, each with a cause.

use crate::story::{Cause, Interval, Share};

/// Intervals that are kept, and to how many they are reduced.
const LIMIT: usize = 1_024;
/// Stalls that are kept.
const STALLS: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Up to where it is written; `None` before the first packet.
    until: Option<u64>,
    intervals: Vec<(u64, u64, Cause)>,
    /// No interval is shorter, ns; zero if none had to go.
    grain: u64,
    totals: [u64; Cause::ALL.len()],
    /// The longest: start, length, cause.
    stalls: Vec<(u64, u64, Cause)>,
    last: Option<Cause>,
}

impl Ledger {
    /// Begins at `at_ns`, unless it has begun.
    pub(super) const fn begin(&mut self, at_ns: u64) {
        if self.until.is_none() {
            self.until = Some(at_ns);
        }
    }

    /// The cause of the last entry.
    pub(super) const fn last(&self) -> Option<Cause> {
        self.last
    }

    /// What is not written yet goes to `cause`, up to `until_ns`. Waits of at least `stall_ns` are
    /// stalls.
    pub(super) fn write(&mut self, cause: Cause, until_ns: u64, stall_ns: u64) {
        let Some(from) = self.until.filter(|from| *from < until_ns) else { return };
        let length = until_ns - from;
        self.until = Some(until_ns);
        self.last = Some(cause);
        let total = &mut self.totals[cause as usize];
        *total = total.saturating_add(length);
        if length >= stall_ns {
            self.stall(from, length, cause);
        }
        match self.intervals.last_mut() {
            Some((_, end, last)) if *last == cause && *end == from => *end = until_ns,
            _ => self.intervals.push((from, until_ns, cause)),
        }
        if self.intervals.len() > LIMIT {
            self.coarsen();
        }
    }

    fn stall(&mut self, from: u64, length: u64, cause: Cause) {
        // A wait whose end an earlier one touches is the same.
        if let Some(last) = self.stalls.last_mut()
            && last.2 == cause
            && last.0 + last.1 == from
        {
            last.1 += length;
            return;
        }
        self.stalls.push((from, length, cause));
        if self.stalls.len() > STALLS {
            let shortest = (0..self.stalls.len()).min_by_key(|place| self.stalls[*place].1);
            shortest.map(|place| self.stalls.remove(place));
        }
    }

    /// Joins intervals shorter than the grain with the one before, and makes the grain so large
    /// that half of the places become free.
    fn coarsen(&mut self) {
        let (Some(first), Some(last)) = (self.intervals.first(), self.intervals.last()) else { return };
        let finest = ((last.1.saturating_sub(first.0)) / LIMIT as u64 / 64).max(1);
        loop {
            let grain = self.grain;
            self.intervals.dedup_by(|next, kept| {
                let joins = next.1 - next.0 < grain || next.2 == kept.2;
                if joins {
                    kept.1 = next.1;
                }
                joins
            });
            if self.intervals.len() <= LIMIT / 2 {
                return;
            }
            self.grain = self.grain.saturating_mul(2).max(finest);
        }
    }

    pub(super) const fn grain_ns(&self) -> u64 {
        self.grain
    }

    pub(super) fn shares(&self) -> Vec<Share> {
        let whole = self.totals.iter().fold(0, |sum: u64, total| sum.saturating_add(*total));
        let share = |time_ns: u64| time_ns as f64 / whole.max(1) as f64;
        let mut shares: Vec<Share> = Cause::ALL
            .iter()
            .map(|cause| (*cause, self.totals[*cause as usize]))
            .filter(|(_, time_ns)| *time_ns > 0)
            .map(|(cause, time_ns)| Share { cause, time_ns, share: share(time_ns) })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.time_ns));
        shares
    }

    /// The intervals, counted from `start_ns`.
    pub(super) fn intervals(&self, start_ns: u64) -> Vec<Interval> {
        let shown = |(from, until, cause): &(u64, u64, Cause)| Interval {
            at_ns: from.saturating_sub(start_ns),
            time_ns: until - from,
            cause: *cause,
        };
        self.intervals.iter().map(shown).collect()
    }

    pub(super) fn stalls(&self, start_ns: u64) -> Vec<Interval> {
        let shown = |(from, time_ns, cause): &(u64, u64, Cause)| Interval {
            at_ns: from.saturating_sub(start_ns),
            time_ns: *time_ns,
            cause: *cause,
        };
        self.stalls.iter().map(shown).collect()
    }
}
