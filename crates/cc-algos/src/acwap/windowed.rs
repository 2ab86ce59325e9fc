//! A windowed minimum (W8) over the last ten seconds: keeps the best, second and third best values
//! in order of arrival (Kathleen Nichols's filter).

use ackline_tcp_core::{Duration, Instant};

/// How long a value is remembered.
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMin {
    /// Increasing values at increasing times; all equal after a new minimum. `None` before the
    /// first value.
    best: Option<[(Instant, u64); 3]>,
}

impl WindowedMin {
    /// Adds `value` and returns the minimum.
    pub(super) fn update(&mut self, now: Instant, value: u64) -> u64 {
        let new = (now, value);
        let Some([first, second, third]) = &mut self.best else {
            self.best = Some([new; 3]);
            return value;
        };
        if value <= first.1 || now.since(third.0) > WINDOW {
            (*first, *second, *third) = (new, new, new);
            return value;
        }
        if value <= second.1 {
            (*second, *third) = (new, new);
        } else if value <= third.1 {
            *third = new;
        }
        let age = now.since(first.0);
        if age > WINDOW {
            (*first, *second, *third) = (*second, *third, new);
            if now.since(first.0) > WINDOW {
                (*first, *second) = (*second, *third);
            }
        } else if second.0 == first.0 && age > WINDOW.div(4) {
            // A quarter of the window has passed without a second best: take this one, so that
            // there is one when the best expires.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > WINDOW.div(2) {
            *third = new;
        }
        first.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn a_smaller_value_is_taken_at_once() {
        let mut min = WindowedMin::default();
        assert_eq!(min.update(at(0), 50), 50);
        assert_eq!(min.update(at(1), 70), 50);
        assert_eq!(min.update(at(2), 40), 40);
    }

    #[test]
    fn an_old_minimum_makes_way_for_the_best_since() {
        let mut min = WindowedMin::default();
        min.update(at(0), 10);
        for (second, value) in [(3, 30), (6, 40), (9, 35)] {
            assert_eq!(min.update(at(second), value), 10);
        }
        assert_eq!(min.update(at(11), 60), 30);
        assert_eq!(min.update(at(14), 60), 35);
    }

    #[test]
    fn after_a_long_pause_only_the_newest_counts() {
        let mut min = WindowedMin::default();
        min.update(at(0), 10);
        assert_eq!(min.update(at(100), 90), 90);
    }
}
