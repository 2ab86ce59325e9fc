//! Integer arithmetic without overflow.

/// `a * b / c` with a 128-bit product, rounded down; saturates. `c` of zero counts as one.
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let c = c.max(1);
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// `percent` percent of `value`.
pub(super) fn percent(value: u64, percent: u32) -> u64 {
    mul_div(value, u64::from(percent), 100)
}
