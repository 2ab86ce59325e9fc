//! Round trips: their distribution, and whether they grow with what is in flight.

use crate::story::Rtt;
use std::collections::BTreeMap;

/// Buckets per doubling: a bucket is 2.2 % wide.
const PER_OCTAVE: f64 = 32.0;

#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    samples: u64,
    min: u64,
    max: u64,
    /// Samples by the logarithm of their length.
    buckets: BTreeMap<u16, u64>,
    /// RFC 6298's estimate and variation, ns; and the latest sample.
    smoothed: f64,
    variation: f64,
    /// Running means and sums of squares (Welford), of round trips and of octets in flight.
    mean: [f64; 2],
    squares: [f64; 2],
    product: f64,
}

impl RoundTrips {
    pub(super) fn add(&mut self, rtt_ns: u64, flight: u64) {
        let rtt = rtt_ns as f64;
        if self.samples == 0 {
            (self.min, self.smoothed, self.variation) = (rtt_ns, rtt, rtt / 2.0);
        } else {
            self.variation += (f64::abs(self.smoothed - rtt) - self.variation) / 4.0;
            self.smoothed += (rtt - self.smoothed) / 8.0;
        }
        self.samples += 1;
        self.min = self.min.min(rtt_ns);
        self.max = self.max.max(rtt_ns);
        *self.buckets.entry(bucket(rtt_ns)).or_default() += 1;
        let count = self.samples as f64;
        let values = [rtt, flight as f64];
        let before = [values[0] - self.mean[0], values[1] - self.mean[1]];
        for side in 0..2 {
            self.mean[side] += before[side] / count;
            self.squares[side] += before[side] * (values[side] - self.mean[side]);
        }
        self.product += before[0] * (values[1] - self.mean[1]);
    }

    /// The shortest.
    pub(super) fn min_ns(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.min)
    }

    pub(super) fn smoothed_ns(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.smoothed as u64)
    }

    /// RFC 6298's timeout without its minimum.
    pub(super) fn timeout_ns(&self) -> Option<u64> {
        (self.samples > 0).then_some((self.smoothed + 4.0 * self.variation) as u64)
    }

    pub(super) fn finish(&self) -> Option<Rtt> {
        if self.samples == 0 {
            return None;
        }
        let spread = (self.squares[0] * self.squares[1]).sqrt();
        let with_flight = if spread > 0.0 { self.product / spread } else { 0.0 };
        // What is common to both: RTT over flight as a line, from the smallest RTT up.
        let grows = with_flight > 0.6 && self.max - self.min > self.min / 5 && self.max - self.min > 500_000;
        let p95_ns = self.quantile(0.95);
        Some(Rtt {
            samples: self.samples,
            min_ns: self.min,
            median_ns: self.quantile(0.5),
            p95_ns,
            max_ns: self.max,
            with_flight,
            own_queue_ns: grows.then_some(p95_ns - self.min),
        })
    }

    fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.samples as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= wanted {
                return middle(*bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

fn bucket(ns: u64) -> u16 {
    (f64::log2(ns.max(1) as f64) * PER_OCTAVE) as u16
}

fn middle(bucket: u16) -> u64 {
    f64::exp2((f64::from(bucket) + 0.5) / PER_OCTAVE) as u64
}
