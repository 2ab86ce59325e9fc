//! Axes: linear, logarithmic, or of names; with round ticks.

use crate::summary::short;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// How values stand along an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    /// In proportion.
    #[default]
    Linear,
    /// By their logarithm; values must be larger than zero.
    Log,
    /// Value n is the n-th name.
    Names(Vec<String>),
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    kind: Kind,
}

/// Most ticks of an axis.
const TICKS: f64 = 7.0;

impl Scale {
    /// For values from `low` to `high`.
    pub(super) fn new(kind: &Kind, low: f64, high: f64) -> Self {
        match kind {
            Kind::Linear => Self::linear(low, high),
            Kind::Log if low > 0.0 => Self::log(low, high),
            Kind::Log => Self::linear(low, high),
            Kind::Names(names) => Self {
                low: -0.5,
                high: names.len().max(1) as f64 - 0.5,
                ticks: (0..names.len()).map(|place| place as f64).collect(),
                kind: kind.clone(),
            },
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_up((high - low) / TICKS);
        let first = libm::floor(low / step + 1e-9) as i64;
        let last = libm::ceil(high / step - 1e-9) as i64;
        let ticks: Vec<f64> = (first..=last).map(|place| place as f64 * step).collect();
        Self { low: first as f64 * step, high: last as f64 * step, ticks, kind: Kind::Linear }
    }

    fn log(low: f64, high: f64) -> Self {
        let (first, last) = (libm::floor(libm::log10(low)) as i32, libm::ceil(libm::log10(high)) as i32);
        let steps: &[f64] = match last - first {
            0..=2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = (first..=last).flat_map(|decade| {
            let power = libm::pow(10.0, f64::from(decade));
            steps.iter().map(move |step| step * power)
        });
        let (low, high) = (low / 1.05, if high > low { high * 1.05 } else { low * 2.0 });
        let ticks = decades.filter(|tick| (low..=high).contains(tick)).collect();
        Self { low, high, ticks, kind: Kind::Log }
    }
}

/// The next of 1, 2, 5, 10, 20...
fn round_up(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| nice * power >= step * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = match self.kind {
            Kind::Log => {
                let place = libm::log(value.max(self.low) / self.low);
                place / libm::log(self.high / self.low)
            }
            _ => (value - self.low) / (self.high - self.low),
        };
        limit.0 + libm::round(f64::from(limit.1 - limit.0) * share) as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        match &self.kind {
            Kind::Names(names) => names.get(libm::round(*value) as usize).cloned().unwrap_or_default(),
            _ if value.abs() < 1e-12 => "0".to_owned(),
            _ => prefixed(*value),
        }
    }
}

/// With k, M, G behind large numbers.
fn prefixed(value: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e4, "k")];
    match steps.iter().find(|(size, _)| value.abs() >= *size) {
        Some((1e4, name)) => format!("{}{name}", short(value / 1e3)),
        Some((size, name)) => format!("{}{name}", short(value / size)),
        None => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        let scale = Scale::new(&Kind::Linear, 0.0, 93.0);
        assert_eq!(scale.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(scale.map(&50.0, (0, 1_000)), 500);
        let scale = Scale::new(&Kind::Log, 1e6, 1e9);
        assert_eq!(
            scale.ticks.iter().map(|tick| scale.format_ext(tick)).collect::<Vec<_>>(),
            ["1M", "10M", "100M", "1G"]
        );
        let middle = libm::sqrt(1e6 * 1e9);
        assert_eq!(scale.map(&middle, (0, 1_000)), 500);
        let flat = Scale::new(&Kind::Linear, 5.0, 5.0);
        assert!(flat.low <= 5.0 && flat.high > 5.0);
    }
}
