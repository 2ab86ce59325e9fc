//! A share of a link as an exact fraction, and the resulting weights (step 19).

use ackline_tcp_core::policy::SpecError;
use alloc::format;
use core::fmt;
use core::str::FromStr;

/// The largest denominator of a fraction.
const MAX_DENOMINATOR: u32 = 65_535;
/// The largest denominator when a decimal is converted.
const MAX_DECIMAL_DENOMINATOR: u64 = 1_000;
/// Maximum digits used of a decimal: more than any `f64` has, and its products fit a u64.
const MAX_DIGITS: usize = 17;

/// The share of data in a link's bytes, `f = p/q` in lowest terms, `0 < p < q <= 65535`.
///
/// Parses `9/50` exactly, and `0.18` as the nearest fraction with a denominator up to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    p: u32,
    q: u32,
}

impl Share {
    /// The share `p/q`; `None` unless `0 < p < q` and, in lowest terms, `q <= 65535`.
    #[must_use]
    pub const fn new(p: u32, q: u32) -> Option<Self> {
        if p == 0 || p >= q {
            return None;
        }
        let divisor = gcd(p as u64, q as u64) as u32;
        let (p, q) = (p / divisor, q / divisor);
        if q > MAX_DENOMINATOR { None } else { Some(Self { p, q }) }
    }

    /// Cost of a byte of data: `q - p`.
    #[must_use]
    pub const fn data_weight(&self) -> u32 {
        self.q - self.p
    }

    /// Cost of a byte of an ACK: `p`.
    #[must_use]
    pub const fn ack_weight(&self) -> u32 {
        self.p
    }

    /// The share as a number, for display.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        f64::from(self.p) / f64::from(self.q)
    }
}

impl Default for Share {
    /// One half.
    fn default() -> Self {
        Self { p: 1, q: 2 }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.p, self.q)
    }
}

impl FromStr for Share {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let fraction = match text.split_once('/') {
            Some((p, q)) => p.trim().parse().ok().zip(q.trim().parse().ok()),
            None => decimal(text).map(|(numerator, denominator)| nearest(numerator, denominator)),
        };
        match fraction {
            Some((0, q)) if q > 0 => Err(SpecError::new(format!(
                "f={text} leaves nothing to data: f must be above 0 (ack-priority is what f=0 would be)"
            ))),
            Some((p, q)) if p == q && q > 0 => Err(SpecError::new(format!(
                "f={text} leaves nothing to ACKs: f must be below 1, such as 1/2, 9/50 or 0.8"
            ))),
            Some((p, q)) => Self::new(p, q).ok_or_else(|| impossible(text)),
            None => Err(impossible(text)),
        }
    }
}

fn impossible(text: &str) -> SpecError {
    SpecError::new(format!(
        "f={text} is not possible: f must lie between 0 and 1, as a fraction (9/50, with at most 65535 below) or a decimal (0.18)"
    ))
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Parses a decimal without rounding, as `(numerator, denominator)`; digits after the 17th are
/// dropped.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !digits(whole) || !digits(part) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= 1)? };
    let part = part.get(..part.len().min(MAX_DIGITS))?;
    let denominator = 10_u64.pow(u32::try_from(part.len()).ok()?);
    let numerator: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    Some((whole * denominator + numerator, denominator))
}

/// The fraction nearest to `numerator / denominator` with a denominator up to 1000: its best
/// approximation from the Stern-Brocot tree, by continued fractions.
fn nearest(numerator: u64, denominator: u64) -> (u32, u32) {
    // Convergents h/k; the one before the first is 1/0.
    let (mut h, mut k, mut before_h, mut before_k) = (0_u64, 1_u64, 1_u64, 0_u64);
    // Continued fraction of denominator / numerator would skip the first term; this keeps it: 0 or
    // 1.
    let (mut a, mut b) = (numerator, denominator);
    let mut first = true;
    while b != 0 {
        let term = a / b;
        (a, b) = (b, a % b);
        if first {
            h = term;
            first = false;
            continue;
        }
        let room = (MAX_DECIMAL_DENOMINATOR - before_k) / k;
        let steps = term.min(room);
        let (next_h, next_k) = (steps * h + before_h, steps * k + before_k);
        if steps < term {
            // A semiconvergent is better if it is nearer than the last convergent.
            let distance = |h: u64, k: u64| {
                let (x, y) = (u128::from(h) * u128::from(denominator), u128::from(k) * u128::from(numerator));
                (x.abs_diff(y), k)
            };
            let (new, old) = (distance(next_h, next_k), distance(h, k));
            // |h/k - n/d| = distance / (k * d): compare crosswise.
            if steps > 0 && new.0 * u128::from(old.1) < old.0 * u128::from(new.1) {
                (h, k) = (next_h, next_k);
            }
            break;
        }
        (before_h, before_k, h, k) = (h, k, next_h, next_k);
    }
    // Both are at most 1000.
    (h as u32, k as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn a_share_is_read_from_fractions_and_decimals() {
        for (text, p, q) in [
            ("1/2", 1, 2),
            ("0.5", 1, 2),
            (".5", 1, 2),
            ("9/50", 9, 50),
            ("0.18", 9, 50),
            ("18/100", 9, 50),
            ("4/5", 4, 5),
            ("0.8", 4, 5),
            ("0.333", 333, 1000),
            ("0.3333333333", 1, 3),
            ("0.66666666666666666666", 2, 3),
            ("65534/65535", 65_534, 65_535),
            ("32768/65536", 1, 2),
            ("0.001", 1, 1000),
            ("0.999", 999, 1000),
        ] {
            assert_eq!(text.parse::<Share>().unwrap(), Share { p, q }, "{text}");
        }
    }

    #[test]
    fn what_leaves_nothing_to_one_class_is_refused() {
        for text in ["0", "0.0", "0/5", "1", "1.0", "7/7", "0.0000001", "0.9999999"] {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("leaves nothing"), "{error}");
        }
        for text in
            ["", ".", "2", "1.5", "-0.5", "3/2", "1/0", "0/0", "1/65536", "a/b", "0.5x", "1e-1", "1/2/3"]
        {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains("is not possible"), "{text}: {error}");
        }
    }

    #[test]
    fn weights_are_those_of_the_reduced_fraction() {
        let share: Share = "0.8".parse().unwrap();
        assert_eq!((share.ack_weight(), share.data_weight()), (4, 1));
        let share: Share = "9/50".parse().unwrap();
        assert_eq!((share.ack_weight(), share.data_weight()), (9, 41));
    }

    proptest! {
        /// No fraction with a denominator up to 1000 is nearer to a decimal than the one that it is
        /// read as.
        #[test]
        fn a_decimal_is_read_as_the_nearest_fraction(digits in 1_u64..1_000_000) {
            let denominator = 1_000_000_u64;
            let (h, k) = nearest(digits, denominator);
            prop_assert!(u64::from(k) <= MAX_DECIMAL_DENOMINATOR && k > 0);
            let off = |h: u64, k: u64| {
                let exact = u128::from(h * denominator).abs_diff(u128::from(k * digits));
                (exact, u128::from(k))
            };
            let ours = off(h.into(), k.into());
            for k in 1..=MAX_DECIMAL_DENOMINATOR {
                for h in [digits * k / denominator, digits * k / denominator + 1] {
                    let other = off(h, k);
                    prop_assert!(ours.0 * other.1 <= other.0 * ours.1, "{h}/{k} is nearer");
                }
            }
        }
    }
}
