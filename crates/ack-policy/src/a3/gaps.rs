//! Step 11: the inter-packet arrival time (IPAT).
//!
//! Of five gaps the shortest and the longest are dropped; the estimate is the mean of the others.
//! The groups do not overlap, and every segment with data counts, during a sampling or not; a
//! super-packet is one arrival.

use ackline_tcp_core::{Duration, Instant};

const GROUP: usize = 5;

/// The gaps between arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// When data last arrived; `None` before the first.
    last: Option<Instant>,
    /// The current group; the first `count` are in use.
    gaps: [Duration; GROUP],
    count: usize,
    mean: Option<Duration>,
}

impl Gaps {
    /// Data arrived.
    pub(super) fn arrived(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        if let Some(slot) = self.gaps.get_mut(self.count) {
            *slot = now.since(last);
            self.count += 1;
        }
        if self.count == GROUP {
            self.gaps.sort_unstable();
            let [_, middle @ .., _] = &self.gaps;
            let sum = middle.iter().fold(Duration::ZERO, |sum, gap| sum + *gap);
            self.mean = Some(sum.div(middle.len() as u64));
            self.count = 0;
        }
    }

    /// When data last arrived.
    pub(super) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// The estimate; `None` before the sixth arrival.
    pub(super) const fn mean(&self) -> Option<Duration> {
        self.mean
    }

    #[cfg(test)]
    pub(super) fn preset(&mut self, mean: Duration) {
        self.mean = Some(mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_three_of_five_gaps_count() {
        let mut gaps = Gaps::default();
        let means: std::vec::Vec<Option<u64>> = [0, 900, 901, 911, 921, 1_000, 1_001]
            .iter()
            .map(|&at| {
                gaps.arrived(Instant::from_micros(at));
                gaps.mean().map(Duration::as_nanos)
            })
            .collect();
        // Gaps of 900, 1, 10, 10 and 79 µs.
        assert_eq!(means, [None, None, None, None, None, Some(33_000), Some(33_000)]);
    }
}
