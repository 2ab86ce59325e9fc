//! A delay histogram of fixed size.
//!
//! Its buckets are logarithmic: 32 per doubling, so a percentile is at most 3.2 % too high.
//! Recording costs a shift and an addition, and does not allocate.

use crate::time::Duration;

/// Buckets per doubling, as a power of two.
const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// Resolution, as a power of two of nanoseconds: about a microsecond.
const UNIT_BITS: u32 = 10;
/// Doublings above the linear part: up to 2^32 units, more than an hour.
const DOUBLINGS: usize = 27;
const BUCKETS: usize = SUB * (1 + DOUBLINGS);

/// Delays from a microsecond to an hour.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    buckets: [u32; BUCKETS],
    count: u64,
    max: Duration,
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, max: Duration::ZERO }
    }
}

impl DelayHistogram {
    /// Counts one delay.
    pub fn record(&mut self, delay: Duration) {
        let bucket = &mut self.buckets[bucket_of(delay)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.max = self.max.max(delay);
    }

    /// Number of recorded delays.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest delay, exactly.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The delay not exceeded by `percent` per cent of all values, at most 3.2 % (or a microsecond)
    /// too high; zero if nothing was recorded.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (u128::from(self.count) * u128::from(percent.min(100))).div_ceil(100) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank && seen > 0 {
                return upper_edge(index).min(self.max);
            }
        }
        self.max
    }
}

/// The bucket of a delay.
fn bucket_of(delay: Duration) -> usize {
    let units = delay.as_nanos() >> UNIT_BITS;
    if units < SUB as u64 {
        return units as usize;
    }
    // At least SUB_BITS: the value has more than that many bits.
    let doubling = units.ilog2() - SUB_BITS;
    let within = (units >> doubling) as usize & (SUB - 1);
    (SUB * (doubling as usize + 1) + within).min(BUCKETS - 1)
}

/// The longest delay in a bucket.
fn upper_edge(bucket: usize) -> Duration {
    let (doubling, within) = (bucket / SUB, bucket % SUB);
    let next = match doubling {
        0 => within as u64 + 1,
        _ => ((SUB + within) as u64 + 1) << (doubling - 1),
    };
    Duration::from_nanos((next << UNIT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut histogram = DelayHistogram::default();
        for ms in 1..=1_000 {
            histogram.record(Duration::from_millis(ms));
        }
        for (percent, ms) in [(50, 500), (90, 900), (99, 990)] {
            let got = histogram.percentile(percent).as_nanos() as f64 / 1e6;
            assert!((f64::from(ms)..=f64::from(ms) * 1.032).contains(&got), "p{percent}: {got} ms");
        }
        assert_eq!((histogram.count(), histogram.max()), (1_000, Duration::from_secs(1)));
        assert_eq!(histogram.percentile(100), Duration::from_secs(1));
    }

    #[test]
    fn nothing_counted_is_zero_and_the_extremes_have_a_place() {
        let mut histogram = DelayHistogram::default();
        assert_eq!(histogram.percentile(99), Duration::ZERO);
        histogram.record(Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!(
            (histogram.percentile(50) < Duration::from_micros(2), histogram.max()),
            (true, Duration::MAX)
        );
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_sorted_delays(
            mut delays in proptest::collection::vec(0_u64..4_000_000_000_000, 1..200),
            percent in 1_u64..=100,
        ) {
            let mut histogram = DelayHistogram::default();
            for delay in &delays {
                histogram.record(Duration::from_nanos(*delay));
            }
            delays.sort_unstable();
            let sorted: Vec<u64> = delays;
            let rank = (sorted.len() as u64 * percent).div_ceil(100) as usize;
            let exact = sorted[rank - 1];
            let got = histogram.percentile(percent).as_nanos();
            prop_assert!(got >= exact && got <= exact + exact / 31 + 1_024, "{got} for {exact}");
        }
    }
}
