//! Numbers that are short to read, and the units in which they are.

/// The size of a unit in which numbers up to `most` are short, and its name: `one` (`B`),
/// `thousand` (`kB`), and the same with M and G for k.
#[must_use]
pub fn prefixed(most: f64, one: &str, thousand: &str) -> (f64, String) {
    let with = |prefix: &str| thousand.replacen('k', prefix, 1);
    match most {
        _ if most >= 2e9 => (1e9, with("G")),
        _ if most >= 2e6 => (1e6, with("M")),
        _ if most >= 2e3 => (1e3, thousand.to_owned()),
        _ => (1.0, one.to_owned()),
    }
}

/// A number with about four digits.
#[must_use]
pub fn short(number: f64) -> String {
    let size = number.abs();
    let text = match size {
        _ if size == 0.0 => return "0".to_owned(),
        _ if size >= 1_000.0 => format!("{number:.0}"),
        _ if size >= 100.0 => format!("{number:.1}"),
        _ if size >= 10.0 => format!("{number:.2}"),
        _ if size >= 0.01 => format!("{number:.3}"),
        _ => return format!("{number:.2e}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
