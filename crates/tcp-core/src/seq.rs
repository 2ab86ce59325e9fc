//! Sequence numbers: 32 bits that wrap (RFC 9293, section 3.4).
//!
//! ```text
//!        a.lt(b)                     b - a in 1 ..= 2^31 - 1
//!   ────┬────────┬───────────────►   (modulo 2^32)
//!       a        b
//! ```
//!
//! Comparison is only meaningful within half the number space, which every window respects (RFC
//! 7323, section 2.2 caps windows at 2^30). There is deliberately no `Ord`: an order that wraps is
//! not total.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A sequence number of the stream, with arithmetic modulo 2^32 that never panics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// True if `self` comes before `other`.
    #[must_use]
    pub const fn lt(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// True if `self` is `other` or comes before it.
    #[must_use]
    pub const fn le(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) <= 0
    }

    /// True if `self` comes after `other`.
    #[must_use]
    pub const fn gt(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// True if `self` is `other` or comes after it.
    #[must_use]
    pub const fn ge(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) >= 0
    }

    /// True if `self` lies in `[start, end)`.
    #[must_use]
    pub const fn within(self, start: Self, end: Self) -> bool {
        start.le(self) && self.lt(end)
    }

    /// The earlier of the two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.lt(other) { self } else { other }
    }

    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.gt(other) { self } else { other }
    }

    /// Octets from `earlier` to `self`, modulo 2^32; the caller must ensure that `self` is not
    /// before `earlier`.
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Octets from `earlier` to `self`, or zero if `self` comes before it.
    #[must_use]
    pub const fn saturating_distance_from(self, earlier: Self) -> u32 {
        if self.gt(earlier) { self.0.wrapping_sub(earlier.0) } else { 0 }
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    fn add(self, rhs: u32) -> Self {
        Self(self.0.wrapping_add(rhs))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    fn sub(self, rhs: u32) -> Self {
        Self(self.0.wrapping_sub(rhs))
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SeqNum;
    use proptest::prelude::*;

    #[test]
    fn comparison_wraps() {
        let before = SeqNum(u32::MAX - 9);
        let after = before + 20;
        assert!(before.lt(after) && after.gt(before) && !after.lt(before));
        assert_eq!(after.distance_from(before), 20);
        assert_eq!(before.saturating_distance_from(after), 0);
    }

    proptest! {
        #[test]
        fn order_within_half_the_space(start: u32, step in 1u32..0x8000_0000) {
            let (a, b) = (SeqNum(start), SeqNum(start) + step);
            prop_assert!(a.lt(b) && a.le(b) && b.gt(a) && b.ge(a));
            prop_assert!(a.within(a, b) && !b.within(a, b));
            prop_assert_eq!(a.max(b), b);
            prop_assert_eq!(a.min(b), a);
            prop_assert_eq!(b - step, a);
        }
    }
}
