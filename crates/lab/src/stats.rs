//! Statistics, with their definitions.

use ackline_netsim::SimRng;
use ackline_netsim::record::DelayRecord;
use serde::{Deserialize, Serialize};

/// How a set of values is spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values themselves (divisor: count).
    pub sd: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of values in any order; `None` of nothing.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Self::of_sorted(&values)
    }

    /// Of ascending values; `None` of nothing.
    #[must_use]
    pub fn of_sorted(values: &[f64]) -> Option<Self> {
        let (min, max) = (*values.first()?, *values.last()?);
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Some(Self {
            count: values.len() as u64,
            mean,
            sd: libm::sqrt(squares / values.len() as f64),
            min,
            p50: quantile(values, 0.5),
            p95: quantile(values, 0.95),
            p99: quantile(values, 0.99),
            max,
        })
    }

    /// Of queueing delays, in seconds. Percentiles are nearest ranks, right to a thousandth.
    #[must_use]
    pub fn of_delays(delays: &DelayRecord) -> Option<Self> {
        let quantile = |q| delays.quantile_ns(q).map(|nanos| nanos as f64 / 1e9);
        Some(Self {
            count: delays.count,
            mean: delays.mean_ns / 1e9,
            sd: delays.sd_ns / 1e9,
            min: delays.min_ns as f64 / 1e9,
            p50: quantile(0.5)?,
            p95: quantile(0.95)?,
            p99: quantile(0.99)?,
            max: delays.max_ns as f64 / 1e9,
        })
    }
}

/// The arithmetic mean; 0 of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The value below which the share `q` (0 to 1) of ascending `values` lies, linearly between the
/// two nearest (definition 7 of Hyndman and Fan, 1996); 0 of nothing.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = libm::floor(place) as usize;
    let above = (below + 1).min(last);
    values[below] + (values[above] - values[below]) * (place - below as f64)
}

/// Jain's fairness index: (sum x)^2 / (n * sum x^2), from 1/n to 1; `None` of fewer than two
/// values, or if all are zero.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (values.len() > 1 && squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// The estimate of a mean from independent runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Runs.
    pub runs: usize,
    /// Mean over runs.
    pub mean: f64,
    /// Standard deviation over runs (divisor: runs - 1); `None` of one run.
    pub sd: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile over runs.
    pub p95: f64,
    /// Largest.
    pub max: f64,
    /// 95 % confidence interval of the mean, by bootstrap; `None` of one run.
    pub ci: Option<(f64, f64)>,
}

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

impl Estimate {
    /// Of one number per run; `None` of nothing. The interval is the percentile bootstrap's (Efron,
    /// 1979): means of 2,000 samples drawn with replacement, from the 2.5th to the 97.5th
    /// percentile. The draws have a fixed seed.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let spread = Spread::of_sorted(&sorted)?;
        let runs = values.len();
        let many = runs > 1;
        let sd = many.then(|| spread.sd * libm::sqrt(runs as f64 / (runs as f64 - 1.0)));
        Some(Self {
            runs,
            mean: spread.mean,
            sd,
            min: spread.min,
            p50: spread.p50,
            p95: spread.p95,
            max: spread.max,
            ci: many.then(|| bootstrap(&sorted)),
        })
    }
}

fn bootstrap(values: &[f64]) -> (f64, f64) {
    if values.first() == values.last() {
        return (values[0], values[0]);
    }
    let mut rng = SimRng::new(0x6163_6b6c, values.len() as u64);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = |_| values[rng.below(values.len() as u64) as usize];
            (0..values.len()).map(draw).sum::<f64>() / values.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (quantile(&means, 0.025), quantile(&means, 0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 2.0), (0.5, 4.0), (0.625, 6.0), (0.95, 14.4), (1.0, 16.0)] {
            assert!((quantile(&values, q) - expected).abs() < 1e-12, "{q}: {}", quantile(&values, q));
        }
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[3.0], 0.99), 3.0);
    }

    #[test]
    fn spread_of_known_values() {
        // The textbook's set: mean 5, standard deviation 2.
        let spread = Spread::of(vec![9.0, 2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0]).unwrap();
        assert_eq!((spread.count, spread.mean, spread.sd), (8, 5.0, 2.0));
        assert_eq!((spread.min, spread.p50, spread.max), (2.0, 4.5, 9.0));
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn jain_is_one_where_all_have_the_same() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14)
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain(&[1.0]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn estimates_have_an_interval_from_two_runs_on() {
        let one = Estimate::of(&[2.5]).unwrap();
        assert_eq!((one.runs, one.mean, one.sd, one.ci), (1, 2.5, None, None));
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        // Squared deviations 2.25, 0.25, 0.25, 2.25 over 3.
        assert!((estimate.sd.unwrap() - libm::sqrt(5.0 / 3.0)).abs() < 1e-12);
        let same = Estimate::of(&[7.0; 5]).unwrap();
        assert_eq!((same.sd, same.ci), (Some(0.0), Some((7.0, 7.0))));
    }

    /// With two values a resample's mean is the smaller with probability 1/4, the larger with 1/4,
    /// else between.
    #[test]
    fn bootstrap_of_two_values_spans_both() {
        assert_eq!(Estimate::of(&[1.0, 3.0]).unwrap().ci, Some((1.0, 3.0)));
    }

    /// For many values the interval is near mean +- 1.96 sd / sqrt(n).
    #[test]
    fn bootstrap_agrees_with_the_normal_approximation() {
        let mut rng = SimRng::new(3, 0);
        let values: Vec<f64> = (0..400).map(|_| rng.unit()).collect();
        let estimate = Estimate::of(&values).unwrap();
        let (low, high) = estimate.ci.unwrap();
        let half = 1.96 * estimate.sd.unwrap() / 20.0;
        assert!((low - (estimate.mean - half)).abs() < 0.15 * half, "{low}");
        assert!((high - (estimate.mean + half)).abs() < 0.15 * half, "{high}");
    }
}
