//! Numbers with their units, as they stand in a scenario.

use ackline_tcp_core::quantity::{parse_rate, parse_size, parse_time};

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

/// The number that `text` stands for as the value of `key`, in the unit's base. The key matters for
/// units that have two meanings: `10M` is a rate for `link.wire.rate`, and a size elsewhere.
#[must_use]
pub(crate) fn quantity(key: &str, text: &str) -> Option<(f64, Unit)> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, Unit::One));
    }
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse::<f64>().ok().map(|number| (number / 100.0, Unit::One));
    }
    if let Some(packets) = text.strip_suffix('p').and_then(|packets| packets.trim().parse().ok()) {
        return Some((packets, Unit::Packets));
    }
    let rate = || parse_rate(text).map(|rate| (rate.bits_per_second() as f64, Unit::Rate));
    let size = || parse_size(text).map(|bytes| (bytes as f64, Unit::Bytes));
    let time = || parse_time(text).map(|time| (time.as_secs_f64(), Unit::Time));
    match key.rsplit('.').next() {
        Some("rate") => rate().or_else(size),
        _ => size().or_else(rate),
    }
    .or_else(time)
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
            let (value, found) = quantity("key", text).unwrap();
            assert_eq!((value, found), (number, unit), "{text}");
            assert_eq!(written(value, found), text);
        }
        assert_eq!(quantity("queue", "64k"), Some((65_536.0, Unit::Bytes)));
        assert_eq!(quantity("loss", "1%"), Some((0.01, Unit::One)));
        assert_eq!(quantity("cc", "cubic"), None);
        assert_eq!(quantity("link.wire.rate", "10M"), Some((1e7, Unit::Rate)));
        assert_eq!(quantity("conn.send_buffer", "10M"), Some((10_485_760.0, Unit::Bytes)));
        assert_eq!(quantity("app.flow.start", "2h"), Some((7_200.0, Unit::Time)));
        assert_eq!(written(3_162_277.66, Unit::Rate), "3.162mbit");
        assert_eq!(written(0.000_316_227, Unit::One), "0.0003162");
        assert_eq!(written(123_456.0, Unit::One), "123500");
    }
}
