//! How late a sleeping emulator wakes up.

use ackline_tcp_core::Duration;

/// Longest time by which it wakes early: what it then waits for awake is no longer than this.
const MOST: Duration = Duration::from_micros(100);
/// Before anything is known.
const START: Duration = Duration::from_micros(20);

/// The median of the delays of wake-ups, by steps: a delay above it raises it as much as one below
/// lowers it.
///
/// Who wakes early by the median is awake in time every second time, and waits for the rest, which
/// is short. Otherwise it is as late as wake-ups differ, not as they take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeUp(Duration);

impl WakeUp {
    pub(crate) const fn new() -> Self {
        Self(START)
    }

    pub(crate) const fn median(self) -> Duration {
        self.0
    }

    /// A wake-up came so late.
    pub(crate) fn take(&mut self, late: Duration) {
        let step = Duration::from_nanos(self.0.as_nanos() / 32 + 100);
        self.0 = if late > self.0 { (self.0 + step).min(MOST) } else { self.0.saturating_sub(step) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(delays: impl IntoIterator<Item = u64>) -> u64 {
        let mut wake_up = WakeUp::new();
        delays.into_iter().for_each(|late| wake_up.take(Duration::from_micros(late)));
        wake_up.median().as_micros()
    }

    #[test]
    fn it_follows_the_median() {
        // Most take 50 us, every fourth 5 ms, every fourth 5 us.
        let delays = (0..1_000).map(|n| [50, 5_000, 50, 5][n % 4]);
        assert!((45..=55).contains(&after(delays)), "outliers do not count by their length");
        assert!(after([3; 1_000]) <= 4);
    }

    #[test]
    fn it_is_bounded() {
        assert_eq!(after([1_000_000; 1_000]), 100);
        assert_eq!(after([0; 1_000]), 0);
    }
}
