//! Steps 14 and 30: how many data segments pass between two samplings.
//!
//! While the samples agree the interval grows, so that their cost vanishes; when they change it
//! becomes short.

/// The longest interval, in segments.
const LONGEST: u32 = 65_535;

/// `ISP_t` and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// The shortest interval, in segments.
    shortest: u32,
    /// `ISP_t`, in segments.
    length: u32,
    /// Segments left in this interval.
    left: u32,
}

impl Interval {
    pub(super) const fn new(shortest: u32) -> Self {
        Self { shortest, length: shortest, left: shortest }
    }

    /// Step 14: `segments` data segments arrived.
    pub(super) const fn count(&mut self, segments: u32) {
        self.left = self.left.saturating_sub(segments);
    }

    pub(super) const fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Restarts the count.
    pub(super) const fn restart(&mut self) {
        self.left = self.length;
    }

    /// Step 30: the sample matches the previous one. `fewer`: multiplies by four instead of three.
    pub(super) fn lengthen(&mut self, fewer: bool) {
        let factor = if fewer { 4 } else { 3 };
        self.length = self.length.saturating_mul(factor).min(LONGEST);
    }

    /// Steps 29 and 30: the sample differs. Divides by a divisor, or resets to the shortest.
    pub(super) fn shorten(&mut self, divisor: Option<u32>) {
        let shorter = divisor.and_then(|divisor| self.length.checked_div(divisor)).unwrap_or(0);
        self.length = shorter.max(self.shortest);
    }

    pub(super) const fn length(&self) -> u32 {
        self.length
    }

    pub(super) const fn left(&self) -> u32 {
        self.left
    }

    #[cfg(test)]
    pub(super) const fn preset(&mut self, length: u32, left: u32) {
        (self.length, self.left) = (length, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_stays_within_its_limits() {
        let mut interval = Interval::new(10);
        let lengths: std::vec::Vec<u32> = (0..9)
            .map(|_| {
                interval.lengthen(false);
                interval.length()
            })
            .collect();
        assert_eq!(lengths, [30, 90, 270, 810, 2_430, 7_290, 21_870, 65_535, 65_535]);
        interval.shorten(Some(2));
        assert_eq!(interval.length(), 32_767);
        interval.shorten(None);
        assert_eq!(interval.length(), 10);
        interval.shorten(Some(2));
        assert_eq!(interval.length(), 10);
    }
}
