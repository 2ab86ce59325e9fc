//! Series of bounded length.

use serde::{Deserialize, Serialize};

/// Decides which points of a series to keep: every one, then every second, every fourth...
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinning {
    limit: usize,
    every: u64,
    seen: u64,
}

impl Thinning {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(2), every: 1, seen: 0 }
    }

    /// What to do with the next point of a series of length `len`.
    pub(super) fn next(&mut self, len: usize) -> Next {
        let place = self.seen;
        self.seen += 1;
        if !place.is_multiple_of(self.every) {
            return Next::Skip;
        }
        if len < self.limit {
            return Next::Keep;
        }
        self.every *= 2;
        if place.is_multiple_of(self.every) { Next::HalveAndKeep } else { Next::HalveAndSkip }
    }
}

/// See [`Thinning::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Keep,
    Skip,
    HalveAndKeep,
    HalveAndSkip,
}

/// Removes every second point, keeping the first.
pub(super) fn halve<T>(points: &mut Vec<T>) {
    let mut place = 0_usize;
    points.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// A metric of a policy or a queue, one value per sample of its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its owner: `cc`, `ack`, `rto`, `queue`.
    pub owner: String,
    /// Its name, with the unit unless that is bytes.
    pub name: String,
    /// Its values; `None` if it was not reported.
    pub values: Vec<Option<f64>>,
}

/// Sets the value of a metric for the sample at `place`.
pub(super) fn report(metrics: &mut Vec<Metric>, place: usize, owner: &str, name: &str, value: f64) {
    let known = metrics.iter().position(|metric| metric.owner == owner && metric.name == name);
    let at = known.unwrap_or_else(|| {
        metrics.push(Metric { owner: owner.to_owned(), name: name.to_owned(), values: vec![] });
        metrics.len() - 1
    });
    let values = &mut metrics[at].values;
    values.resize(place + 1, None);
    values[place] = value.is_finite().then_some(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_equal_distances() {
        let mut thinning = Thinning::new(8);
        let mut points = vec![];
        for point in 0..1_000_u64 {
            let next = thinning.next(points.len());
            if matches!(next, Next::HalveAndKeep | Next::HalveAndSkip) {
                halve(&mut points);
            }
            if matches!(next, Next::Keep | Next::HalveAndKeep) {
                points.push(point);
            }
            assert!(points.len() <= 8);
        }
        assert_eq!(points, (0..8).map(|n| n * 128).collect::<Vec<_>>());
    }
}
