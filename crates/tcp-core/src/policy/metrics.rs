//! What a policy shows of itself: variables with names, values and units.
//!
//! [`Conn::metrics`](crate::Conn::metrics) and
//! [`Endpoint::scheduler_metrics`](crate::Endpoint::scheduler_metrics) pass them on; the core
//! stores none of them.

use crate::time::Duration;
use crate::units::{Rate, Window};
use core::fmt;

/// One variable of a policy at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name, the same for the life of the policy and different from its others. It ends with
    /// the unit's [suffix](Unit::suffix).
    pub name: &'static str,
    /// Its value in that unit.
    pub value: f64,
    /// What the value counts.
    pub unit: Unit,
}

impl fmt::Display for Metric {
    /// As `cwnd 14480 B`: with three digits after the point, or none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.strip_suffix(self.unit.suffix()).unwrap_or(self.name);
        match self.unit {
            Unit::Flag => return write!(f, "{name} {}", if self.value == 0.0 { "no" } else { "yes" }),
            _ if ((self.value.abs() * 1e3 + 0.5) as u64).is_multiple_of(1_000) => {
                write!(f, "{name} {:.0}", self.value)?;
            }
            _ => write!(f, "{name} {:.3}", self.value)?,
        }
        match self.unit.symbol() {
            "" => Ok(()),
            symbol => write!(f, " {symbol}"),
        }
    }
}

/// The unit of a [`Metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// None: a count, a ratio, a state, or a number in the terms of the algorithm.
    Number,
    /// No (0) or yes (1).
    Flag,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Bits per second.
    BitsPerSecond,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 6] =
        [Self::Number, Self::Flag, Self::Bytes, Self::Micros, Self::Millis, Self::BitsPerSecond];

    /// The end of the name of a metric with this unit, so that a name and a number say enough.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Number | Self::Flag | Self::Bytes => "",
            Self::Micros => "_us",
            Self::Millis => "_ms",
            Self::BitsPerSecond => "_bit",
        }
    }

    /// The symbol of the unit; empty if it has none.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::Flag => "",
            Self::Bytes => "B",
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::BitsPerSecond => "bit/s",
        }
    }
}

/// Receives a policy's variables: one call for each, in the same order every time.
///
/// A variable that has no value yet (an RTT before the first sample) is left out.
pub struct Metrics<'a> {
    visit: &'a mut dyn FnMut(Metric),
}

impl<'a> Metrics<'a> {
    /// A receiver that calls `visit` for each variable.
    pub fn new(visit: &'a mut dyn FnMut(Metric)) -> Self {
        Self { visit }
    }

    /// The value of the variable `name` among those that `report` reports.
    #[must_use]
    pub fn find(name: &str, report: impl FnOnce(&mut Metrics<'_>)) -> Option<f64> {
        let mut found = None;
        report(&mut Metrics::new(&mut |metric| {
            if metric.name == name {
                found = Some(metric.value);
            }
        }));
        found
    }

    /// Reports a number without a unit: a count, a ratio, a state.
    pub fn number(&mut self, name: &'static str, value: impl Into<f64>) {
        self.report(name, value.into(), Unit::Number);
    }

    /// Reports a count of events.
    pub fn count(&mut self, name: &'static str, count: u64) {
        self.report(name, count as f64, Unit::Number);
    }

    /// Reports whether something is so.
    pub fn flag(&mut self, name: &'static str, is_set: bool) {
        self.report(name, f64::from(u8::from(is_set)), Unit::Flag);
    }

    /// Reports bytes.
    pub fn bytes(&mut self, name: &'static str, bytes: impl Into<f64>) {
        self.report(name, bytes.into(), Unit::Bytes);
    }

    /// Reports a window in bytes, without their fraction; nothing if it is [`Window::MAX`], which
    /// stands for none.
    pub fn window(&mut self, name: &'static str, window: Window) {
        if window != Window::MAX {
            self.report(name, window.bytes() as f64, Unit::Bytes);
        }
    }

    /// Reports a time in microseconds. The name ends with `_us`.
    pub fn micros(&mut self, name: &'static str, time: Duration) {
        self.report(name, time.as_nanos() as f64 / 1e3, Unit::Micros);
    }

    /// Reports a time in milliseconds. The name ends with `_ms`.
    pub fn millis(&mut self, name: &'static str, time: Duration) {
        self.report(name, time.as_nanos() as f64 / 1e6, Unit::Millis);
    }

    /// Reports a rate in bits per second. The name ends with `_bit`.
    pub fn rate(&mut self, name: &'static str, rate: Rate) {
        self.report(name, rate.bits_per_second() as f64, Unit::BitsPerSecond);
    }

    /// Reports a variable that is computed as a number.
    pub fn report(&mut self, name: &'static str, value: f64, unit: Unit) {
        (self.visit)(Metric { name, value, unit });
    }
}

impl fmt::Debug for Metrics<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    fn shown(report: impl Fn(&mut Metrics<'_>)) -> Vec<String> {
        let mut shown = Vec::new();
        report(&mut Metrics::new(&mut |metric| shown.push(metric.to_string())));
        shown
    }

    #[test]
    fn values_are_shown_with_their_units() {
        let lines = shown(|report| {
            report.bytes("cwnd", 14_480_u32);
            report.window("ssthresh", Window::MAX);
            report.window("w_max", Window::from_bytes(20_000));
            report.number("alpha", 0.062_5);
            report.count("samples", 3);
            report.flag("sampling", true);
            report.micros("srtt_us", Duration::from_nanos(1_234_500));
            report.millis("delay_ms", Duration::from_nanos(39_999_990));
            report.rate("pacing_bit", Rate::from_bits_per_second(1_000_000));
        });
        let expected = [
            "cwnd 14480 B",
            "w_max 20000 B",
            "alpha 0.062",
            "samples 3",
            "sampling yes",
            "srtt 1234.500 µs",
            "delay 40 ms",
            "pacing 1000000 bit/s",
        ];
        assert_eq!(lines, expected);
    }
}
