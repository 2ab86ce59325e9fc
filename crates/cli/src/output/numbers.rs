//! Numbers with units, as people read them.

use std::time::Duration;

/// Bytes with a binary unit: `1.50 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.995 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2} {}", UNITS[unit])
}

/// `bytes` over `time`, in 10^9 bits per second; 0 if no time passed.
pub(crate) fn gbit_s(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() / 1e9 }
}

/// `bytes` over `time` with a decimal unit: `20.5 Gbit/s`.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    bit_rate(gbit_s(bytes, time) * 1e9)
}

/// Bits per second with a decimal unit.
pub(crate) fn bit_rate(bits: f64) -> String {
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let digits = digits(value);
    format!("{value:.digits$} {unit}")
}

/// Digits behind the point that give three digits in all.
fn digits(value: f64) -> usize {
    match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    }
}

/// Seconds: `0.412 s`, `83.1 s`.
pub(crate) fn seconds(time: Duration) -> String {
    let value = time.as_secs_f64();
    if value < 10.0 { format!("{value:.3} s") } else { format!("{value:.1} s") }
}

/// A round-trip time: `85 µs`, `1.35 ms`.
pub(crate) fn round_trip(time: Option<Duration>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time) if time < Duration::from_millis(1) => format!("{} µs", time.as_micros()),
        Some(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1 << 20), "1.00 MiB");
        assert_eq!(bytes((1 << 30) - 1), "1.00 GiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
    }

    #[test]
    fn rates_have_decimal_units_and_three_digits() {
        let second = Duration::from_secs(1);
        assert_eq!(rate(2_562_500_000, second), "20.5 Gbit/s");
        assert_eq!(rate(125_000, second), "1.00 Mbit/s");
        assert_eq!(rate(12_500_000, second), "100 Mbit/s");
        assert_eq!(rate(1, second), "8.00 bit/s");
        assert_eq!(rate(1, Duration::ZERO), "0.00 bit/s");
    }

    #[test]
    fn times() {
        assert_eq!(seconds(Duration::from_millis(412)), "0.412 s");
        assert_eq!(round_trip(Some(Duration::from_micros(85))), "85 µs");
        assert_eq!(round_trip(Some(Duration::from_micros(1_350))), "1.35 ms");
        assert_eq!(round_trip(None), "-");
    }
}
