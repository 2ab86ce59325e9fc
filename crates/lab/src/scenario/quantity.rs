//! Numbers with their units, as they stand in a scenario.

use ackline_tcp_core::policy::spec::{parse_bytes, parse_duration, parse_rate};

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Nothing but a number.
    One,
}

impl Unit {
    /// The unit in words, for the axis of a plot.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "bit/s",
            Self::Time => "s",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::One => "",
        }
    }
}

/// The number that `text` stands for, in the unit's base.
#[must_use]
pub(crate) fn quantity(text: &str) -> Option<(f64, Unit)> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, Unit::One));
    }
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse::<f64>().ok().map(|number| (number / 100.0, Unit::One));
    }
    let lower = text.to_ascii_lowercase();
    if lower.contains("bit") {
        return parse_rate(text).map(|rate| (rate.bits_per_second() as f64, Unit::Rate));
    }
    if let Some(packets) = lower.strip_suffix('p') {
        return packets.trim().parse().ok().map(|packets| (packets, Unit::Packets));
    }
    if lower.ends_with('s') || lower.ends_with("min") {
        return parse_duration(text).map(|time| (time.as_secs_f64(), Unit::Time));
    }
    parse_bytes(text).map(|bytes| (bytes as f64, Unit::Bytes))
}

/// The number as it would be written in a scenario, with four significant digits.
#[must_use]
pub(crate) fn written(number: f64, unit: Unit) -> String {
    let scaled = |steps: &[(f64, &str)]| {
        let (size, name) =
            steps.iter().find(|(size, _)| number >= *size).or(steps.last()).copied().unwrap_or((1.0, ""));
        format!("{}{name}", digits(number / size))
    };
    match unit {
        Unit::Rate => scaled(&[(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1.0, "bit")]),
        Unit::Time => scaled(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]),
        Unit::Bytes => format!("{}", libm::round(number)),
        Unit::Packets => format!("{}p", libm::round(number)),
        Unit::One => digits(number),
    }
}

/// Four significant digits, without trailing zeros.
fn digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let magnitude = libm::floor(libm::log10(libm::fabs(number))) as i32;
    let places = (3 - magnitude).clamp(0, 15) as usize;
    let unit = libm::pow(10.0, f64::from((magnitude - 3).max(0)));
    let text = format!("{:.places$}", libm::round(number / unit) * unit);
    if unit > 1.0 || places == 0 {
        return text;
    }
    let text = format!("{number:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        for (text, number, unit) in [
            ("10mbit", 1e7, Unit::Rate),
            ("250us", 250e-6, Unit::Time),
            ("1.5s", 1.5, Unit::Time),
            ("50p", 50.0, Unit::Packets),
            ("0.01", 0.01, Unit::One),
            ("12340", 12_340.0, Unit::One),
        ] {
            let (value, found) = quantity(text).unwrap();
            assert_eq!((value, found), (number, unit), "{text}");
            assert_eq!(written(value, found), text);
        }
        assert_eq!(quantity("64k"), Some((65_536.0, Unit::Bytes)));
        assert_eq!(quantity("1%"), Some((0.01, Unit::One)));
        assert_eq!(quantity("cubic"), None);
        assert_eq!(written(3_162_277.66, Unit::Rate), "3.162mbit");
        assert_eq!(written(0.000_316_227, Unit::One), "0.0003162");
        assert_eq!(written(123_456.0, Unit::One), "123500");
    }
}
