//! Numbers with their units.

/// A time with three digits: `85.0 µs`, `1.35 s`.
#[must_use]
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    three(value, unit)
}

/// Octets with a decimal unit: `1.45 kB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => three(value / 1e3, "kB"),
        1_000_000..1_000_000_000 => three(value / 1e6, "MB"),
        _ => three(value / 1e9, "GB"),
    }
}

/// Octets over a time: `9.63 Mbit/s`.
#[must_use]
pub fn rate(bytes: u64, ns: u64) -> String {
    let bits = bytes as f64 * 8e9 / ns.max(1) as f64;
    match bits {
        b if b >= 1e9 => three(b / 1e9, "Gbit/s"),
        b if b >= 1e6 => three(b / 1e6, "Mbit/s"),
        b if b >= 1e3 => three(b / 1e3, "kbit/s"),
        b => three(b, "bit/s"),
    }
}

fn three(value: f64, unit: &str) -> String {
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 1.0 { format!("{value:.2} %") } else { format!("{value:.0} %") }
}

/// `1 packet`, `1,200 packets`.
pub(super) fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

pub(super) fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{} times", grouped(more)),
    }
}

pub(super) fn times_again(number: u64) -> String {
    format!("sent again {}", times(number))
}

/// `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
