//! The smallest and the largest of the values that a window of time has seen: keeps the best, second
//! and third best in order of arrival (Kathleen Nichols's filter, as in Linux's `lib/minmax.c`).

use ackline_tcp_core::{Duration, Instant};

/// The smallest value of the last `window`.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMin {
    /// Increasing values at increasing times; all equal after a new minimum. `None` before the
    /// first value.
    best: Option<[(Instant, u64); 3]>,
}

impl WindowedMin {
    /// Adds `value` and returns the minimum of the last `window`, which may differ from call to
    /// call.
    pub(crate) fn update(&mut self, now: Instant, value: u64, window: Duration) -> u64 {
        let new = (now, value);
        let Some([first, second, third]) = &mut self.best else {
            self.best = Some([new; 3]);
            return value;
        };
        if value <= first.1 || now.since(third.0) > window {
            (*first, *second, *third) = (new, new, new);
            return value;
        }
        if value <= second.1 {
            (*second, *third) = (new, new);
        } else if value <= third.1 {
            *third = new;
        }
        let age = now.since(first.0);
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if now.since(first.0) > window {
                (*first, *second) = (*second, *third);
            }
        } else if second.0 == first.0 && age > window.div(4) {
            // A quarter of the window has passed without a second best: take this one, so that
            // there is one when the best expires.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > window.div(2) {
            *third = new;
        }
        first.1
    }
}

/// The largest value of the last `window`.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax(WindowedMin);

impl WindowedMax {
    /// Adds `value` and returns the maximum of the last `window`.
    pub(crate) fn update(&mut self, now: Instant, value: u64, window: Duration) -> u64 {
        u64::MAX - self.0.update(now, u64::MAX - value, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn a_smaller_value_is_taken_at_once() {
        let mut min = WindowedMin::default();
        assert_eq!(min.update(at(0), 50, WINDOW), 50);
        assert_eq!(min.update(at(1), 70, WINDOW), 50);
        assert_eq!(min.update(at(2), 40, WINDOW), 40);
    }

    #[test]
    fn an_old_minimum_makes_way_for_the_best_since() {
        let mut min = WindowedMin::default();
        min.update(at(0), 10, WINDOW);
        for (second, value) in [(3, 30), (6, 40), (9, 35)] {
            assert_eq!(min.update(at(second), value, WINDOW), 10);
        }
        assert_eq!(min.update(at(11), 60, WINDOW), 30);
        assert_eq!(min.update(at(14), 60, WINDOW), 35);
    }

    #[test]
    fn after_a_long_pause_only_the_newest_counts() {
        let mut min = WindowedMin::default();
        min.update(at(0), 10, WINDOW);
        assert_eq!(min.update(at(100), 90, WINDOW), 90);
    }

    #[test]
    fn the_largest_is_the_smallest_of_what_is_left() {
        let mut max = WindowedMax::default();
        for (second, value, largest) in [(0, 10, 10), (3, 30, 30), (9, 20, 30), (14, 5, 20), (40, 1, 1)] {
            assert_eq!(max.update(at(second), value, WINDOW), largest, "{second} s");
        }
    }
}
