//! Queueing delays of packets.

use ackline_tcp_core::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Queueing delays of one queue within the window: from a packet's arrival to its first bit on the
/// link, without its own serialisation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayRecord {
    /// Packets.
    pub count: u64,
    /// Arithmetic mean, ns; 0 without packets.
    pub mean_ns: f64,
    /// Standard deviation (of the population), ns.
    pub sd_ns: f64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
    /// Histogram: (ns, packets), ascending. Values are accurate to a thousandth.
    pub histogram: Vec<(u64, u64)>,
    /// The first delays individually: (when the wait ended, how long it was), ns.
    pub exact: Vec<(u64, u64)>,
    /// Delays that are only in the histogram.
    pub omitted: u64,
}

impl DelayRecord {
    /// The delay not exceeded by the fraction `q` (0 to 1) of packets, ns, accurate to a
    /// thousandth; `None` without packets.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = (libm::ceil(q.clamp(0.0, 1.0) * self.count as f64) as u64).max(1);
        let mut seen = 0;
        for &(value, packets) in &self.histogram {
            seen += packets;
            if seen >= rank {
                return Some(value.clamp(self.min_ns, self.max_ns));
            }
        }
        None
    }
}

/// Collects delays.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    histogram: Option<Histogram<u64>>,
    exact: Vec<(u64, u64)>,
    limit: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Mean and sum of squared deviations so far (Welford, 1962).
    mean: f64,
    squares: f64,
}

impl Delays {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            // Three digits. It is refused for more than five.
            histogram: Histogram::new(3).ok(),
            exact: vec![],
            limit,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    pub(super) fn add(&mut self, now: Instant, delay: Duration) {
        let nanos = delay.as_nanos();
        self.count += 1;
        self.sum += u128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        let before = nanos as f64 - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (nanos as f64 - self.mean);
        // It grows to take any value.
        let recorded = self.histogram.as_mut().map(|histogram| histogram.record(nanos));
        debug_assert!(matches!(recorded, Some(Ok(()))), "{recorded:?}");
        if self.exact.len() < self.limit {
            self.exact.push((now.as_nanos(), nanos));
        }
    }

    pub(super) fn record(&self) -> DelayRecord {
        if self.count == 0 {
            return DelayRecord::default();
        }
        let counts = self.histogram.iter().flat_map(|histogram| histogram.iter_recorded());
        DelayRecord {
            count: self.count,
            mean_ns: self.sum as f64 / self.count as f64,
            sd_ns: libm::sqrt((self.squares / self.count as f64).max(0.0)),
            min_ns: self.min,
            max_ns: self.max,
            histogram: counts.map(|step| (step.value_iterated_to(), step.count_at_value())).collect(),
            exact: self.exact.clone(),
            omitted: self.count - self.exact.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_samples() {
        let mut delays = Delays::new(3);
        for nanos in (1..=1_000).rev() {
            delays.add(Instant::ZERO, Duration::from_nanos(nanos * 1_000));
        }
        let record = delays.record();
        assert_eq!((record.count, record.min_ns, record.max_ns), (1_000, 1_000, 1_000_000));
        assert_eq!(record.mean_ns, 500_500.0);
        // Of 1..=n: (n^2 - 1) / 12.
        assert!((record.sd_ns - libm::sqrt(999_999.0 / 12.0) * 1e3).abs() < 1e-3);
        for (q, expected) in [(0.0, 1_000.0), (0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let value = record.quantile_ns(q).unwrap() as f64;
            assert!((value / expected - 1.0).abs() <= 0.001, "{q}: {value}");
        }
        assert_eq!((record.exact.len(), record.omitted), (3, 997));
        assert_eq!(Delays::new(0).record().quantile_ns(0.5), None);
    }
}
