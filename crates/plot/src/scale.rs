//! Axes: linear, logarithmic, or of names; with round ticks.

use super::unit::short;
use serde::{Deserialize, Serialize};

/// How values stand along an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// In proportion.
    #[default]
    Linear,
    /// By their logarithm. Values that have none, zero among them, stand at the lower edge.
    Log,
    /// Value n is the n-th name.
    Names(Vec<String>),
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Values with their texts.
    pub(super) ticks: Vec<(f64, String)>,
    log: bool,
}

/// A tick is the end of an axis if that leaves no more than this share of it empty.
const SLACK: f64 = 0.12;

impl Scale {
    /// For values from `low` to `high`, with about `most` ticks at the most.
    pub(super) fn around(kind: &Kind, low: f64, high: f64, most: f64) -> Self {
        match kind {
            Kind::Names(names) => Self {
                low: -0.5,
                high: names.len().max(1) as f64 - 0.5,
                ticks: names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect(),
                log: false,
            },
            Kind::Log if low > 0.0 => {
                let margin = libm::pow((high / low).max(1.5), 0.04);
                Self::log(low / margin, high * margin, most)
            }
            _ => {
                let (low, high) = if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) };
                let step = step(high - low, most);
                let edge = |value: f64, round: fn(f64) -> f64, margin: f64| {
                    let tick = round(value / step) * step;
                    let near = (tick - value).abs() <= SLACK * (high - low);
                    if near || value == 0.0 { tick } else { value + margin * (high - low) }
                };
                let up = |value| libm::ceil(value - 1e-9);
                let down = |value| libm::floor(value + 1e-9);
                Self::linear(edge(low, down, -0.03), edge(high, up, 0.03), step)
            }
        }
    }

    /// With these ends.
    pub(super) fn between(kind: &Kind, low: f64, high: f64, most: f64) -> Self {
        match kind {
            Kind::Linear if high > low => Self::linear(low, high, step(high - low, most)),
            Kind::Log if low > 0.0 && high > low => Self::log(low, high, most),
            _ => Self::around(kind, low, high, most),
        }
    }

    fn linear(low: f64, high: f64, step: f64) -> Self {
        let ticks: Vec<f64> = multiples(low, high, step);
        Self { low, high, ticks: labelled(&ticks, step), log: false }
    }

    fn log(low: f64, high: f64, most: f64) -> Self {
        let (first, last) = (libm::floor(libm::log10(low)) as i32, libm::ceil(libm::log10(high)) as i32);
        let within = |parts: &[f64], every: usize| -> Vec<f64> {
            let decades = (first..=last).step_by(every).map(|decade| libm::pow(10.0, f64::from(decade)));
            let ticks = decades.flat_map(|power| parts.iter().map(move |part| part * power));
            ticks.filter(|tick| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(tick)).collect()
        };
        let choices = [(&[1.0, 2.0, 5.0][..], 1), (&[1.0], 1), (&[1.0], 2), (&[1.0], 3)];
        let fitting = choices
            .iter()
            .map(|(parts, every)| within(parts, *every))
            .find(|ticks| ticks.len() as f64 <= most);
        let ticks = fitting.unwrap_or_else(|| within(&[1.0], (last - first).max(1) as usize));
        if ticks.len() < 2 {
            let step = step(high - low, most);
            return Self { low, high, ticks: labelled(&multiples(low, high, step), step), log: true };
        }
        Self { low, high, ticks: ticks.into_iter().map(|tick| (tick, prefixed(tick))).collect(), log: true }
    }

    /// Where a value stands: 0 at the lower end, 1 at the upper one.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.log {
            libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

fn step(span: f64, most: f64) -> f64 {
    round_up(span / most.max(1.0))
}

/// The next of 1, 2, 5, 10, 20...
fn round_up(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| nice * power >= step * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = libm::ceil(low / step - 1e-9) as i64;
    let last = libm::floor(high / step + 1e-9) as i64;
    (first..=last).map(|place| place as f64 * step).collect()
}

/// Ticks with texts that have the same digits behind the point and the same prefix.
fn labelled(ticks: &[f64], step: f64) -> Vec<(f64, String)> {
    let most = ticks.iter().map(|tick| tick.abs()).fold(0.0, f64::max);
    let (size, name) = prefix(most);
    let digits = (-libm::floor(libm::log10(step / size) + 1e-9)).clamp(0.0, 9.0) as usize;
    let text = |tick: f64| {
        if tick == 0.0 { "0".to_owned() } else { signed(&format!("{:.digits$}{name}", tick / size)) }
    };
    ticks.iter().map(|tick| (*tick, text(*tick))).collect()
}

/// The size of a prefix, and its name, for numbers up to `most`.
fn prefix(most: f64) -> (f64, &'static str) {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")];
    match steps.into_iter().find(|(size, _)| most >= *size) {
        Some((1e4, name)) => (1e3, name),
        Some(step) => step,
        None => (1.0, ""),
    }
}

/// A tick of a logarithmic axis.
fn prefixed(value: f64) -> String {
    let (size, name) = prefix(value);
    let exponent = libm::floor(libm::log10(value) + 1e-9);
    if exponent < -3.0 {
        let digit = libm::round(value / libm::pow(10.0, exponent));
        let factor = if digit == 1.0 { String::new() } else { format!("{digit}·") };
        return format!("{factor}10{}", superscript(exponent as i32));
    }
    if exponent < 0.0 {
        return format!("{value:.0$}", -exponent as usize);
    }
    format!("{}{name}", short(value / size))
}

/// With a minus sign for a hyphen.
fn signed(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |character: char| character.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    number.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        let scale = Scale::around(&Kind::Linear, 0.0, 93.0, 7.0);
        assert_eq!(texts(&scale), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!((scale.low, scale.high, scale.share(50.0)), (0.0, 100.0, 0.5));
        let scale = Scale::around(&Kind::Linear, 0.0, 0.31, 4.0);
        assert_eq!(texts(&scale), ["0", "0.1", "0.2", "0.3"]);
        assert!(scale.high > 0.31 && scale.high < 0.33, "a little room, not a whole step: {}", scale.high);
        let flat = Scale::around(&Kind::Linear, 5.0, 5.0, 7.0);
        assert!(flat.low <= 5.0 && flat.high > 5.0);
        let below = Scale::around(&Kind::Linear, -20_000.0, 20_000.0, 5.0);
        assert_eq!(texts(&below), ["−20k", "−10k", "0", "10k", "20k"]);
    }

    #[test]
    fn ends_that_are_given_stay() {
        let scale = Scale::between(&Kind::Linear, 3.0, 17.0, 5.0);
        assert_eq!((scale.low, scale.high), (3.0, 17.0));
        assert_eq!(texts(&scale), ["5", "10", "15"]);
    }

    #[test]
    fn a_logarithmic_axis_has_decades() {
        let scale = Scale::around(&Kind::Log, 1e6, 1e9, 7.0);
        assert_eq!(texts(&scale), ["1M", "10M", "100M", "1G"]);
        let middle = libm::sqrt(1e6 * 1e9);
        assert!((scale.share(middle) - 0.5).abs() < 1e-9);
        assert_eq!(
            texts(&Scale::around(&Kind::Log, 1e-6, 1e-2, 7.0)),
            ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01"]
        );
        assert_eq!(texts(&Scale::around(&Kind::Log, 2.0, 160.0, 7.0)), ["2", "5", "10", "20", "50", "100"]);
        assert_eq!(
            texts(&Scale::around(&Kind::Log, 2e-5, 5e-4, 7.0)),
            ["2·10⁻⁵", "5·10⁻⁵", "10⁻⁴", "2·10⁻⁴", "5·10⁻⁴"]
        );
        let narrow = Scale::around(&Kind::Log, 32.0, 44.0, 7.0);
        assert!(narrow.ticks.len() > 2, "{narrow:?}");
    }

    #[test]
    fn zero_stands_at_the_lower_edge_of_a_logarithmic_axis() {
        let scale = Scale::around(&Kind::Log, 1.0, 100.0, 7.0);
        assert_eq!([0.0, -5.0].map(|value| scale.share(value)), [0.0, 0.0]);
    }
}
