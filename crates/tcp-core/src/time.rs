//! Time in the core: nanoseconds on the driver's clock.
//!
//! The core never reads a clock. Every input carries an [`Instant`], and so does every wake-up that
//! the core asks for. The driver chooses the origin; it only has to stay the same during the life
//! of an endpoint.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Bits of a count of nanoseconds that coarse units leave out.
const COARSE: u32 = 20;

/// A point in time: nanoseconds since an origin chosen by the driver.
///
/// Arithmetic saturates, so no input can make it wrap; a `u64` of nanoseconds spans 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Instant(u64);

impl Instant {
    /// The driver's origin of time.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that can occur.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the origin; saturates.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the origin; saturates.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the origin; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the origin, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since the origin, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// In units of 2^20 ns, about a millisecond; wraps after 52 days. For what is kept per
    /// connection in four bytes.
    pub(crate) const fn coarse(self) -> u32 {
        (self.0 >> COARSE) as u32
    }

    /// The instant, at most 52 days before `self`, that was `coarse`: at most a unit too early.
    pub(crate) const fn before(self, coarse: u32) -> Self {
        let age = self.coarse().wrapping_sub(coarse);
        Self((self.0 >> COARSE).saturating_sub(age as u64) << COARSE)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A span of time in whole nanoseconds. Takes eight bytes (`core::time::Duration`: sixteen);
/// arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds; saturates.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds; saturates.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `secs` seconds; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// In units of 2^20 ns, about a millisecond; at most 52 days. The phase of the clock at `now`
    /// decides whether it is rounded up, so the sum of many short spans is right on average.
    pub(crate) fn to_coarse(self, now: Instant) -> u32 {
        let phase = now.0 % (1 << COARSE);
        u32::try_from(self.0.saturating_add(phase) >> COARSE).unwrap_or(u32::MAX)
    }

    /// This number of units.
    pub(crate) const fn from_coarse(units: u32) -> Self {
        Self((units as u64) << COARSE)
    }

    /// The span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The span in seconds, for display and statistics.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// True if the span is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or [`Duration::MAX`] if it overflows.
    #[must_use]
    pub const fn saturating_add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }

    /// The difference, or zero if `rhs` is longer.
    #[must_use]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }

    /// `factor` times the span; saturates.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The span divided by `divisor`, rounded down; a divisor of zero gives [`Duration::MAX`].
    #[must_use]
    pub const fn div(self, divisor: u64) -> Self {
        match self.0.checked_div(divisor) {
            Some(nanos) => Self(nanos),
            None => Self::MAX,
        }
    }

    /// `self * numerator / denominator` with a 128-bit product, rounded down; saturates, and a
    /// denominator of zero gives [`Duration::MAX`].
    #[must_use]
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::MAX;
        }
        if let Some(product) = self.0.checked_mul(numerator) {
            return Self(product / denominator);
        }
        let nanos = self.0 as u128 * numerator as u128 / denominator as u128;
        if nanos > u64::MAX as u128 { Self::MAX } else { Self(nanos as u64) }
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        self.saturating_add(rhs)
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        self.saturating_sub(rhs)
    }
}

impl From<core::time::Duration> for Duration {
    fn from(value: core::time::Duration) -> Self {
        Self(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(value: Duration) -> Self {
        Self::from_nanos(value.0)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::time::Duration::from_nanos(self.0).fmt(f)
    }
}
