//! Units in which numbers are short.

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
