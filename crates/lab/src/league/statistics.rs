//! Intervals over seeds. The unit is the run; packets of several runs are never pooled.

use crate::stats::{mean, quantile};
use ackline_netsim::SimRng;
use serde::{Deserialize, Serialize};

/// A mean over seeds, with its intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Runs.
    pub n: usize,
    /// Mean over runs; geometric, if logarithms were taken.
    pub mean: f64,
    /// 95 % interval.
    pub ci95: (f64, f64),
    /// 99 % interval.
    pub ci99: (f64, f64),
}

/// From how many runs on the interval is a bootstrap's.
const BOOTSTRAP: usize = 10;
const RESAMPLES: usize = 10_000;

impl Interval {
    /// Of one value per run: Student's t of fewer than ten runs, of more the bias-corrected and
    /// accelerated bootstrap (Efron 1987), with 10,000 resamples and a fixed seed. With `log` of
    /// the logarithms; values that are not positive have none and take the place of the smallest
    /// positive number.
    pub(super) fn of(values: &[f64], log: bool) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let forward = |value: &f64| if log { libm::log(value.max(1e-9)) } else { *value };
        let back = |value: f64| if log { libm::exp(value) } else { value };
        let values: Vec<f64> = values.iter().map(forward).collect();
        let (low95, high95) = interval(&values, 0.95);
        let (low99, high99) = interval(&values, 0.99);
        Some(Self {
            n: values.len(),
            mean: back(mean(&values)),
            ci95: (back(low95), back(high95)),
            ci99: (back(low99), back(high99)),
        })
    }

    /// True if all runs gave the same.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.n > 1 && self.ci95.0 == self.ci95.1
    }
}

fn interval(values: &[f64], level: f64) -> (f64, f64) {
    let n = values.len();
    let middle = mean(values);
    if n < 2 || values.iter().all(|value| *value == values[0]) {
        return (middle, middle);
    }
    if n >= BOOTSTRAP {
        return bca(values, level);
    }
    let squares: f64 = values.iter().map(|value| (value - middle) * (value - middle)).sum();
    let error = libm::sqrt(squares / (n as f64 - 1.0) / n as f64);
    let half = student(n - 1, level) * error;
    (middle - half, middle + half)
}

/// Student's t for fewer than ten runs: two-sided 95 % or 99 %, by degrees of freedom.
fn student(freedom: usize, level: f64) -> f64 {
    const T95: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    const T99: [f64; 9] = [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250];
    let table = if level > 0.97 { T99 } else { T95 };
    table[freedom.clamp(1, table.len()) - 1]
}

/// The bias-corrected and accelerated bootstrap's interval of the mean.
fn bca(values: &[f64], level: f64) -> (f64, f64) {
    let n = values.len();
    let middle = mean(values);
    let mut rng = SimRng::new(0x6c65_6167, n as u64);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..n).map(|_| values[rng.below(n as u64) as usize]).sum::<f64>() / n as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let below = means.iter().filter(|value| **value < middle).count() as f64;
    let bias = probit((below / RESAMPLES as f64).clamp(1e-4, 1.0 - 1e-4));
    // The jackknife's means are middle + (middle - value) / (n - 1).
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in values {
        let d = (value - middle) / (n as f64 - 1.0);
        squares += d * d;
        cubes += d * d * d;
    }
    let acceleration = cubes / (6.0 * squares * libm::sqrt(squares));
    let at = |share: f64| {
        let z = bias + probit(share);
        quantile(&means, normal(bias + z / (1.0 - acceleration * z)))
    };
    let tail = (1.0 - level) / 2.0;
    (at(tail), at(1.0 - tail))
}

/// The normal distribution.
fn normal(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

/// Its inverse, by bisection.
fn probit(share: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if normal(middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_runs_have_students_interval() {
        // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5).
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0], false).unwrap();
        let half = 2.776 * libm::sqrt(0.5);
        assert!(
            (interval.ci95.0 - (3.0 - half)).abs() < 1e-12 && (interval.ci95.1 - (3.0 + half)).abs() < 1e-12
        );
        assert!(interval.ci99.0 < interval.ci95.0 && !interval.is_deterministic());
        assert!(Interval::of(&[2.0, 2.0], false).unwrap().is_deterministic());
    }

    #[test]
    fn ratios_have_the_interval_of_their_logarithms() {
        let interval = Interval::of(&[0.5, 2.0], true).unwrap();
        assert!((interval.mean - 1.0).abs() < 1e-12);
        assert!((interval.ci95.0 * interval.ci95.1 - 1.0).abs() < 1e-9, "{interval:?}");
    }

    /// Of many normal values the bootstrap's interval is near mean +- 1.96 standard errors, and
    /// that of skewed ones leans to the long tail.
    #[test]
    fn many_runs_have_the_bootstraps_interval() {
        assert!((probit(0.975) - 1.959_964).abs() < 1e-5);
        let mut rng = SimRng::new(4, 0);
        let normals: Vec<f64> = (0..200).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0).collect();
        let interval = Interval::of(&normals, false).unwrap();
        let half = 1.96 / libm::sqrt(200.0);
        assert!((interval.ci95.1 - interval.ci95.0 - 2.0 * half).abs() < 0.25 * half, "{interval:?}");
        let skewed: Vec<f64> = (0..30).map(|_| rng.exponential(1.0)).collect();
        let interval = Interval::of(&skewed, false).unwrap();
        assert!(interval.ci95.1 - interval.mean > interval.mean - interval.ci95.0, "{interval:?}");
    }
}
