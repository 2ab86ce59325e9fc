//! Whether packets wait in the device because the stack, or its applications, do not keep up.

use ackline_tcp_core::{Duration, Instant};

/// How long the device must not have been found empty.
pub(crate) const DEFAULT_BACKLOG_TIME: Duration = Duration::from_millis(1);

/// Since when the device has not been found empty.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Time after which that counts.
    time: Duration,
    since: Option<Instant>,
    /// It counts.
    stands: bool,
    times: u64,
}

impl Backlog {
    pub(super) const fn new(time: Duration) -> Self {
        Self { time, since: None, stands: false, times: 0 }
    }

    /// The driver has received a batch at `now`, and found the device `empty` after it. True while
    /// packets wait.
    pub(super) fn on_batch(&mut self, now: Instant, empty: bool) -> bool {
        let stood = self.stands;
        self.since = (!empty).then(|| self.since.unwrap_or(now));
        self.stands = self.since.is_some_and(|since| now.since(since) >= self.time);
        self.times += u64::from(self.stands && !stood);
        self.stands
    }

    /// Number of times that packets began to wait.
    pub(crate) const fn times(&self) -> u64 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_found_empty_for_a_millisecond_has_a_backlog() {
        let mut backlog = Backlog::new(DEFAULT_BACKLOG_TIME);
        let mut batch = |micros, empty| backlog.on_batch(Instant::from_micros(micros), empty);
        assert!(!batch(5_000, false), "the first batch after a sleep");
        assert!(!batch(5_999, false));
        assert!(batch(6_000, false) && batch(6_001, false));
        assert!(!batch(6_002, true) && !batch(6_003, false), "it begins anew");
        assert!(!batch(7_002, false) && batch(7_003, false));
        assert_eq!(backlog.times(), 2);
    }

    #[test]
    fn without_an_end_it_never_counts() {
        let mut backlog = Backlog::new(Duration::MAX);
        assert!(!backlog.on_batch(Instant::ZERO, false));
        assert!(!backlog.on_batch(Instant::from_secs(1_000_000), false));
    }
}
