//! Quantities in text: `10mbit`, `64K`, `250ms`.
//!
//! One table of units per quantity, for options, policy parameters, scenario files and command
//! lines alike. The units are those of tc, iperf3 and ping: rates have decimal multiples, sizes
//! have binary ones.
//!
//! ```
//! use ackline_tcp_core::quantity::{RATE, SIZE, parse_time};
//!
//! assert_eq!(RATE.parse("1.5mbit"), Ok(1_500_000));
//! assert_eq!(SIZE.parse("64K"), Ok(65_536));
//! assert_eq!(parse_time("250ms").map(|time| time.as_micros()), Some(250_000));
//! ```

use crate::time::Duration;
use crate::units::Rate;
use core::fmt;

/// A kind of quantity and its units.
#[derive(Debug)]
pub struct Measure {
    /// Its name in a sentence: `a rate`.
    pub noun: &'static str,
    /// The units, smallest first. Their sizes are multiples of the base unit: bits per second,
    /// bytes, nanoseconds.
    pub units: &'static [Unit],
    /// Whether `M` and `m` are the same.
    ignores_case: bool,
    /// The unit of a number that has none.
    bare: Option<u64>,
}

/// A unit of a [`Measure`].
#[derive(Debug)]
pub struct Unit {
    /// Its names; errors mention the first.
    pub names: &'static [&'static str],
    /// Size in base units.
    pub size: u64,
}

const fn unit(size: u64, names: &'static [&'static str]) -> Unit {
    Unit { names, size }
}

/// Bits per second, in decimal multiples. `bps` is bits, too, unlike in tc.
pub const RATE: Measure = Measure {
    noun: "a rate",
    units: &[
        unit(1, &["bit", "bps", "bit/s"]),
        unit(1_000, &["kbit", "K", "kbps", "kbit/s"]),
        unit(1_000_000, &["Mbit", "M", "Mbps", "Mbit/s"]),
        unit(1_000_000_000, &["Gbit", "G", "Gbps", "Gbit/s"]),
        unit(1_000_000_000_000, &["Tbit", "T", "Tbps", "Tbit/s"]),
    ],
    ignores_case: true,
    bare: None,
};

/// Bytes, in binary multiples: `KB` and `KiB` are both 1024 bytes, as in tc. A number without a
/// unit is bytes.
pub const SIZE: Measure = Measure {
    noun: "a size",
    units: &[
        unit(1, &["B"]),
        unit(1 << 10, &["K", "KB", "KiB"]),
        unit(1 << 20, &["M", "MB", "MiB"]),
        unit(1 << 30, &["G", "GB", "GiB"]),
        unit(1 << 40, &["T", "TB", "TiB"]),
    ],
    ignores_case: true,
    bare: Some(1),
};

/// Nanoseconds. Zero needs no unit. Units are in lower case, so that `10M` is not taken for
/// minutes.
pub const TIME: Measure = Measure {
    noun: "a time",
    units: &[
        unit(1, &["ns"]),
        unit(1_000, &["us", "µs", "μs", "usec"]),
        unit(1_000_000, &["ms", "msec"]),
        unit(SECOND, &["s", "sec"]),
        unit(60 * SECOND, &["m", "min"]),
        unit(3_600 * SECOND, &["h"]),
        unit(86_400 * SECOND, &["d"]),
    ],
    ignores_case: false,
    bare: None,
};

/// Nanoseconds in a second: the unit of a bare number in commands that take seconds, like `ping -i`
/// and `iperf3 -t`.
pub const SECOND: u64 = 1_000_000_000;

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It does not start with a decimal number. Signs and exponents are not accepted.
    Number,
    /// The unit is missing.
    NoUnit,
    /// The unit does not belong to this quantity.
    UnknownUnit,
    /// It does not fit into 64 bits in base units.
    TooLarge,
}

impl Measure {
    /// Parses a number and its unit, with or without a space between them. The result is in base
    /// units, rounded to the nearest.
    ///
    /// # Errors
    /// What is wrong with `text`.
    pub fn parse(&self, text: &str) -> Result<u64, Malformed> {
        self.read(text, self.bare)
    }

    /// The same, but a number without a unit counts in units of `bare` base units.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), except [`Malformed::NoUnit`].
    pub fn parse_bare(&self, text: &str, bare: u64) -> Result<u64, Malformed> {
        self.read(text, Some(bare))
    }

    fn read(&self, text: &str, bare: Option<u64>) -> Result<u64, Malformed> {
        let text = text.trim();
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (number, name) = text.split_at(text.find(|c| !is_digit(c)).unwrap_or(text.len()));
        let (number, name) = (Decimal::parse(number).ok_or(Malformed::Number)?, name.trim_start());
        if name.is_empty() {
            return match bare {
                Some(size) => number.times(size),
                None if number.is_zero() => Ok(0),
                None => Err(Malformed::NoUnit),
            };
        }
        let is_name = |known: &&str| *known == name || self.ignores_case && known.eq_ignore_ascii_case(name);
        let unit = self.units.iter().find(|unit| unit.names.iter().any(is_name));
        number.times(unit.ok_or(Malformed::UnknownUnit)?.size)
    }

    /// The units in one line, for errors: `bit, kbit, Mbit, Gbit, Tbit`.
    #[must_use]
    pub const fn unit_names(&self) -> UnitNames<'_> {
        UnitNames(self)
    }
}

/// The first name of each unit of a [`Measure`].
#[derive(Clone, Copy, Debug)]
pub struct UnitNames<'a>(&'a Measure);

impl fmt::Display for UnitNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, name) in self.0.units.iter().filter_map(|unit| unit.names.first()).enumerate() {
            write!(f, "{}{name}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A decimal number without a sign.
struct Decimal {
    whole: u64,
    /// The first digits after the point, as a whole number.
    fraction: u64,
    /// Ten to the number of those digits.
    scale: u64,
}

impl Decimal {
    /// Digits after the point beyond these are dropped.
    const DIGITS: usize = 18;

    /// Parses digits with at most one point.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.get(..Self::DIGITS).unwrap_or(fraction);
        let or_zero = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        let scale = (0..fraction.len()).fold(1, |scale, _| scale * 10);
        Some(Self { whole: or_zero(whole)?, fraction: or_zero(fraction)?, scale })
    }

    const fn is_zero(&self) -> bool {
        self.whole == 0 && self.fraction == 0
    }

    /// Multiplied by `size`, rounded to the nearest.
    fn times(&self, size: u64) -> Result<u64, Malformed> {
        let (size, scale) = (u128::from(size), u128::from(self.scale));
        let fraction = (u128::from(self.fraction) * size + scale / 2) / scale;
        u64::try_from(u128::from(self.whole) * size + fraction).map_err(|_| Malformed::TooLarge)
    }
}

/// The largest number of base units that settings accept: about 31 years, or 10^18 bytes.
const MOST: u64 = 1_000_000_000_000_000_000;

/// A time such as `40ms`, `1.5s` or `2m`; see [`TIME`].
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    TIME.parse(text).ok().filter(|nanos| *nanos < MOST).map(Duration::from_nanos)
}

/// A rate of at least a byte per second, such as `100kbit` or `1.5M`; see [`RATE`].
#[must_use]
pub fn parse_rate(text: &str) -> Option<Rate> {
    let bits = RATE.parse(text).ok()?;
    (8..MOST).contains(&bits).then(|| Rate::from_bits_per_second(bits))
}

/// A number of bytes such as `1500`, `64K` or `1GiB`; see [`SIZE`].
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    SIZE.parse(text).ok().filter(|bytes| *bytes < MOST)
}

/// An amount of data, in bytes or as a duration at some rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Size(u64),
    /// The data that a rate transfers in this time.
    Time(Duration),
}

/// A size or a time. `5m` is a size, as in tc.
#[must_use]
pub fn parse_amount(text: &str) -> Option<Amount> {
    parse_size(text).map(Amount::Size).or_else(|| parse_time(text).map(Amount::Time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn rates_are_decimal() {
        for (text, bits) in [
            ("9600bit", 9_600),
            ("10kbit", 10_000),
            ("10mbit", 10_000_000),
            ("10Mbit", 10_000_000),
            ("10M", 10_000_000),
            ("10m", 10_000_000),
            ("10 Mbit/s", 10_000_000),
            ("10Mbps", 10_000_000),
            ("1.5gbit", 1_500_000_000),
            (".5G", 500_000_000),
            ("2t", 2_000_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(RATE.parse(text), Ok(bits), "{text}");
        }
        assert_eq!(parse_rate("10Gbit/s"), Some(Rate::from_bits_per_second(10_000_000_000)));
        assert_eq!(
            (parse_rate("7bit"), parse_rate("0mbit"), parse_rate("8bit").is_some()),
            (None, None, true)
        );
    }

    #[test]
    fn sizes_are_binary() {
        for (text, bytes) in [
            ("1500", 1_500),
            ("1500B", 1_500),
            ("64K", 65_536),
            ("64k", 65_536),
            ("64KB", 65_536),
            ("64KiB", 65_536),
            ("1.5M", 3 << 19),
            ("2T", 2 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(SIZE.parse(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_size("18446744073709551615"), None);
    }

    #[test]
    fn times_have_a_unit_in_lower_case() {
        for (text, nanos) in [
            ("100ns", 100),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("40ms", 40_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120 * SECOND),
            ("2min", 120 * SECOND),
            ("24h", 86_400 * SECOND),
            ("365d", 365 * 86_400 * SECOND),
            ("0", 0),
        ] {
            assert_eq!(TIME.parse(text), Ok(nanos), "{text}");
        }
        assert_eq!(TIME.parse("10M"), Err(Malformed::UnknownUnit));
        assert_eq!(TIME.parse("40"), Err(Malformed::NoUnit));
        assert_eq!(TIME.parse_bare("0.5", SECOND), Ok(SECOND / 2));
        assert_eq!(TIME.parse_bare("40ms", SECOND), Ok(40_000_000));
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        for text in ["", "-1", "+1", ".", "1.2.3", "mbit", "inf", "NaN", "é"] {
            assert_eq!(RATE.parse(text), Err(Malformed::Number), "{text}");
        }
        for text in ["1e3", "10mb", "5knots", "1é", "10 m bit", "0x10"] {
            assert_eq!(RATE.parse(text), Err(Malformed::UnknownUnit), "{text}");
        }
        assert_eq!(RATE.parse("10"), Err(Malformed::NoUnit));
        assert_eq!(SIZE.parse("99999999T"), Err(Malformed::TooLarge));
        assert_eq!(SIZE.parse("99999999999999999999999"), Err(Malformed::Number));
    }

    #[test]
    fn a_burst_is_a_size_or_a_time() {
        assert_eq!(parse_amount("5m"), Some(Amount::Size(5 << 20)));
        assert_eq!(parse_amount("5ms"), Some(Amount::Time(Duration::from_millis(5))));
        assert_eq!(parse_amount("5mbit"), None);
    }

    #[test]
    fn names_are_unambiguous_and_listed() {
        for measure in [&RATE, &SIZE, &TIME] {
            for unit in measure.units {
                for name in unit.names {
                    assert_eq!(measure.parse(&alloc::format!("3{name}")), Ok(3 * unit.size), "{name}");
                }
            }
        }
        assert_eq!(RATE.unit_names().to_string(), "bit, kbit, Mbit, Gbit, Tbit");
        assert_eq!(SIZE.unit_names().to_string(), "B, K, M, G, T");
        assert_eq!(TIME.unit_names().to_string(), "ns, us, ms, s, m, h, d");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            for measure in [&RATE, &SIZE, &TIME] {
                let _ = (measure.parse(&text), measure.parse_bare(&text, SECOND));
            }
            let _ = (parse_time(&text), parse_rate(&text), parse_amount(&text));
        }

        /// Whole numbers are exact, as floating point would not be.
        #[test]
        fn whole_numbers_are_exact(number in 0..=u64::MAX >> 20) {
            prop_assert_eq!(SIZE.parse(&alloc::format!("{number}M")), Ok(number << 20));
            prop_assert_eq!(SIZE.parse(&number.to_string()), Ok(number));
        }
    }
}
