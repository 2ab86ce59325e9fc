//! Numbers as iperf3's users read and write them: sizes in multiples of 1024, rates in multiples of
//! 1000.

use super::limits::MAX_BURST;
use ackline::core::quantity::{RATE, SIZE};
use std::str::FromStr;

/// The unit of bitrates that `-f` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RateFormat {
    /// Bits, in the unit that fits.
    #[default]
    Adaptive,
    /// `k`, `m`, `g`, `t`: bits, in the unit of this index in [`BITS`].
    Bits(usize),
    /// `K`, `M`, `G`, `T`: bytes, in the unit of this index in [`BYTES`].
    Bytes(usize),
}

const BITS: [&str; 5] = ["bits", "Kbits", "Mbits", "Gbits", "Tbits"];
const BYTES: [&str; 5] = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];

impl FromStr for RateFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const LETTERS: &str = "kmgt";
        let mut letters = text.chars();
        let unit = match (letters.next(), letters.next()) {
            (Some(letter), None) => LETTERS.find(letter.to_ascii_lowercase()).map(|at| (letter, at + 1)),
            _ => None,
        };
        match unit {
            Some((letter, unit)) if letter.is_ascii_lowercase() => Ok(Self::Bits(unit)),
            Some((_, unit)) => Ok(Self::Bytes(unit)),
            None => Err("not a unit; write k, m, g or t for bits, K, M, G or T for bytes".to_owned()),
        }
    }
}

/// Bytes in the unit that fits: `1.25 MBytes`, ` 767 KBytes`.
pub(crate) fn transfer(bytes: u64) -> String {
    adaptive(bytes as f64, 1024.0, BYTES)
}

/// A rate, without the `/sec`: `10.5 Mbits`.
pub(crate) fn rate(bits_per_second: f64, format: RateFormat) -> String {
    match format {
        RateFormat::Adaptive => adaptive(bits_per_second, 1000.0, BITS),
        RateFormat::Bits(unit) => scaled(bits_per_second, 1000.0, unit, BITS),
        RateFormat::Bytes(unit) => scaled(bits_per_second / 8.0, 1024.0, unit, BYTES),
    }
}

fn adaptive(value: f64, base: f64, names: [&str; 5]) -> String {
    let mut unit = 0;
    let mut rest = value;
    while rest >= base && unit + 1 < names.len() {
        rest /= base;
        unit += 1;
    }
    scaled(value, base, unit, names)
}

/// Four characters, as long as three digits before the point are enough.
fn scaled(value: f64, base: f64, unit: usize, names: [&str; 5]) -> String {
    let value = (0..unit).fold(value, |value, _| value / base);
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.digits$} {}", names.get(unit).unwrap_or(&""))
}

/// A number of bytes; 0 is allowed.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    SIZE.parse(text).map_err(|_| {
        format!("not a number of bytes; write 1000, or 64K, 10M, 1G (units: {})", SIZE.unit_names())
    })
}

/// A number of blocks, in multiples of 1024 as in iperf3; 0 is allowed.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let names_bytes = text.ends_with(['b', 'B']);
    SIZE.parse(text).ok().filter(|_| !names_bytes).ok_or_else(|| {
        "not a number of blocks; write 1000, or 64K, 10M, 1G (units: K, M, G, T, of 1024)".to_owned()
    })
}

/// A bitrate with a decimal suffix, and how many blocks may leave at once: `10M`, `1.5G/8`; 0 is
/// unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bitrate {
    /// Bits per second.
    pub(crate) rate: u64,
    /// Blocks.
    pub(crate) burst: Option<u32>,
}

impl FromStr for Bitrate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The stroke of `10Mbit/s` is part of the unit.
        let (rate, burst) = match text.rsplit_once('/') {
            Some((rate, burst)) if RATE.parse(text).is_err() => (rate, Some(burst)),
            _ => (text, None),
        };
        let burst = burst
            .map(|burst| {
                burst.parse().ok().filter(|burst| (1..=MAX_BURST).contains(burst)).ok_or_else(|| {
                    format!("{burst:?} is not a burst; write 1 to {MAX_BURST} blocks behind the /")
                })
            })
            .transpose()?;
        RATE.parse_bare(rate, 1).map(|rate| Self { rate, burst }).map_err(|_| {
            let units = RATE.unit_names();
            format!(
                "not a bitrate; write bits per second, or 100K, 10M, 1G (units: {units}; K is 1000 bit/s)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and texts as iperf 3.12 shows them.
    #[test]
    fn transfers_are_binary() {
        assert_eq!(transfer(0), "0.00 Bytes");
        assert_eq!(transfer(131_072), " 128 KBytes");
        assert_eq!(transfer(655_360), " 640 KBytes");
        assert_eq!(transfer(1_048_576), "1.00 MBytes");
        assert_eq!(transfer(1_178_694), "1.12 MBytes");
        assert_eq!(transfer(1_310_720), "1.25 MBytes");
        assert_eq!(transfer(2_490_368), "2.38 MBytes");
        assert_eq!(transfer(1023 << 10), "1023 KBytes");
    }

    #[test]
    fn rates_are_decimal() {
        let adaptive = |bits| rate(bits, RateFormat::Adaptive);
        assert_eq!(adaptive(0.0), "0.00 bits");
        assert_eq!(adaptive(10_484_438.9), "10.5 Mbits");
        assert_eq!(adaptive(9_939_237.9), "9.94 Mbits");
        assert_eq!(adaptive(26_886_564_102.6), "26.9 Gbits");
        assert_eq!(adaptive(999_600.0), "1000 Kbits");
    }

    #[test]
    fn rates_in_a_given_unit() {
        let shown = |letter: &str| rate(10_484_438.9, letter.parse().expect("a unit"));
        assert_eq!(shown("k"), "10484 Kbits");
        assert_eq!(shown("m"), "10.5 Mbits");
        assert_eq!(shown("G"), "0.00 GBytes");
        assert_eq!(shown("M"), "1.25 MBytes");
        for bad in ["", "x", "kk", "b", "é"] {
            assert!(bad.parse::<RateFormat>().is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_have_binary_suffixes() {
        assert_eq!(parse_count("0"), Ok(0));
        assert_eq!(parse_count("1500"), Ok(1500));
        assert_eq!(parse_count("128K"), Ok(131_072));
        assert_eq!(parse_count("1.5m"), Ok(3 << 19));
        assert_eq!(parse_count("2T"), Ok(2 << 40));
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        for bad in ["", "K", "-1", "+1", "1e3", "1x", "1KB", "inf", "NaN", "1.2.3", "99999999T", "1é", "."] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_bytes("1KB"), Ok(1_024));
    }

    #[test]
    fn bitrates_have_decimal_suffixes_and_bursts() {
        let parse = |text: &str| text.parse::<Bitrate>().map(|it| (it.rate, it.burst));
        assert_eq!(parse("10M"), Ok((10_000_000, None)));
        assert_eq!(parse("1.5g/8"), Ok((1_500_000_000, Some(8))));
        assert_eq!(parse("10Mbit/8"), Ok((10_000_000, Some(8))));
        assert_eq!(parse("10Mbit/s"), Ok((10_000_000, None)));
        assert_eq!(parse("10Mbit/s/8"), Ok((10_000_000, Some(8))));
        assert_eq!(parse("0"), Ok((0, None)));
        for bad in ["", "M", "10M/", "10M/0", "10M/1001", "/5", "10MB"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse("10M/x").unwrap_err(), "\"x\" is not a burst; write 1 to 1000 blocks behind the /");
    }
}
