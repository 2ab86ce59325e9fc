//! Quantities with a unit in their type: congestion windows and rates.

use crate::time::Duration;
use core::fmt;

/// A congestion window or slow-start threshold: bytes with 16 fraction bits.
///
/// Fractions are valid everywhere: a window of a hundredth of a segment means one full segment
/// every hundred round trips. Only algorithms themselves round a window to a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Window(u64);

impl Window {
    /// Fraction bits of the fixed-point form.
    pub const FRACTION_BITS: u32 = 16;
    /// The empty window: nothing may be sent.
    pub const ZERO: Self = Self(0);
    /// Larger than any usable window; the customary initial `ssthresh` (RFC 5681, section 3.1).
    pub const MAX: Self = Self(u64::MAX);

    /// A window of whole bytes; saturates at 2^48 - 1 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        if bytes >> (64 - Self::FRACTION_BITS) != 0 { Self::MAX } else { Self(bytes << Self::FRACTION_BITS) }
    }

    /// A window from its fixed-point form: bytes times 2^16.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The fixed-point form: bytes times 2^16.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// A window of `bytes` with their fraction, rounded down to 2^-16 byte; saturates; negative
    /// numbers and NaN give the empty window.
    #[must_use]
    pub const fn from_f64(bytes: f64) -> Self {
        Self((bytes * 65_536.0) as u64)
    }

    /// Bytes including the fraction; exact up to 128 GiB.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64 / 65_536.0
    }

    /// Whole bytes, rounded down.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0 >> Self::FRACTION_BITS
    }

    /// The sum; saturates.
    #[must_use]
    pub const fn saturating_add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }

    /// The difference, or the empty window if `rhs` is larger.
    #[must_use]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }

    /// `self * numerator / denominator` with a 128-bit product, rounded down to 2^-16 byte;
    /// saturates, and a denominator of zero gives [`Window::MAX`].
    #[must_use]
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::MAX;
        }
        if let Some(product) = self.0.checked_mul(numerator) {
            return Self(product / denominator);
        }
        let raw = self.0 as u128 * numerator as u128 / denominator as u128;
        if raw > u64::MAX as u128 { Self::MAX } else { Self(raw as u64) }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("unlimited");
        }
        write!(f, "{}B", self.bytes())?;
        let fraction = self.0 & 0xffff;
        if fraction != 0 {
            write!(f, "+{fraction}/65536")?;
        }
        Ok(())
    }
}

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Rate(u64);

impl Rate {
    /// The rate zero.
    pub const ZERO: Self = Self(0);
    /// The largest rate.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `rate` bytes per second.
    #[must_use]
    pub const fn from_bytes_per_second(rate: u64) -> Self {
        Self(rate)
    }

    /// A rate of `rate` bits per second, rounded down to whole bytes per second.
    #[must_use]
    pub const fn from_bits_per_second(rate: u64) -> Self {
        Self(rate / 8)
    }

    /// `bytes` delivered in `time`; [`Rate::MAX`] if `time` is zero.
    #[must_use]
    pub const fn from_bytes_over(bytes: u64, time: Duration) -> Self {
        if time.is_zero() {
            return Self::MAX;
        }
        let rate = bytes as u128 * 1_000_000_000 / time.as_nanos() as u128;
        if rate > u64::MAX as u128 { Self::MAX } else { Self(rate as u64) }
    }

    /// Bytes per second.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// Bits per second; saturates.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// The time that `bytes` take at this rate, rounded down to the nanosecond; [`Duration::MAX`]
    /// at rate zero.
    #[must_use]
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = bytes as u128 * 1_000_000_000 / self.0 as u128;
        if nanos > u64::MAX as u128 { Duration::MAX } else { Duration::from_nanos(nanos as u64) }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s", self.bits_per_second())
    }
}
