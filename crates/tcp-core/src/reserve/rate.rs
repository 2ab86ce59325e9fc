//! A number of events per interval that several endpoints of one host have together.
//!
//! One word says which interval it is and what is left of it, so that no two endpoints begin the
//! same one. Nothing is written for an event that is refused: a flood costs each endpoint the look
//! at a word that does not change.

use crate::sync::{AtomicU32, Ordering};

/// The largest number that an interval can have.
pub(crate) const MOST: u16 = u16::MAX - 1;

/// Left before the first interval.
const NONE_YET: u32 = u16::MAX as u32;

/// An endpoint may believe in an interval that is over for so long: the instants of its events are
/// older than those of others.
const LATE: u16 = 8;

/// What is left of the current interval.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct HostRate {
    /// The interval's number in the upper half, and what is left of it in the lower one.
    word: AtomicU32,
}

impl HostRate {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(NONE_YET) }
    }

    /// Takes one of what the interval with this number has; `whole` says how many that are at its
    /// beginning, at most [`MOST`]. False if none is left.
    pub(crate) fn take(&self, interval: u64, whole: impl Fn() -> u16) -> bool {
        let number = interval as u16;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (current, left) = ((word >> 16) as u16, word & 0xffff);
            let is_new = left == NONE_YET || (1..=u16::MAX - LATE).contains(&number.wrapping_sub(current));
            let (current, left) = if is_new { (number, whole().min(MOST)) } else { (current, left as u16) };
            let Some(left) = left.checked_sub(1) else { return false };
            let next = u32::from(current) << 16 | u32::from(left);
            match self.word.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostRate;
    use crate::sync::Ordering;

    fn taken(rate: &HostRate, interval: u64, of: u16) -> usize {
        (0..100).filter(|_| rate.take(interval, || of)).count()
    }

    #[test]
    fn each_interval_has_its_own() {
        let rate = HostRate::new();
        // Also much later, and after the number has wrapped.
        for interval in [0, 1, 3, 30_000, 60_000, 65_535, 65_536, 70_000, 1 << 40, (1 << 40) + 40_000] {
            assert_eq!(taken(&rate, interval, 7), 7, "{interval}");
            assert_eq!(taken(&rate, interval, 7), 0, "{interval}");
        }
        assert_eq!(taken(&HostRate::new(), 1_000_000, 0), 0);
        assert_eq!(taken(&HostRate::new(), 65_535, u16::MAX), 100);
    }

    #[test]
    fn whoever_is_late_begins_nothing_anew() {
        let rate = HostRate::new();
        assert_eq!(taken(&rate, 65_540, 7), 7);
        for interval in 65_533..=65_540 {
            assert_eq!(taken(&rate, interval, 7), 0, "{interval}");
        }
        assert!(rate.take(65_541, || 3) && rate.take(65_540, || 7) && rate.take(65_541, || 7));
        assert!(!rate.take(65_540, || 7));
    }

    #[test]
    fn what_is_refused_writes_nothing() {
        let rate = HostRate::new();
        assert_eq!(taken(&rate, 5, 7), 7);
        let word = rate.word.load(Ordering::Relaxed);
        assert_eq!(taken(&rate, 5, 7) + taken(&rate, 6, 0), 0);
        assert_eq!(rate.word.load(Ordering::Relaxed), word);
    }
}
