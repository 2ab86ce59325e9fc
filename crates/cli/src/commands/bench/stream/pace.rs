//! A bitrate, kept by the application as iperf3 does it: a block leaves when the mean since the
//! start has room for it.

use ackline::core::{Duration, Instant};
use ackline::runtime::timer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `-b`: what one stream may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bitrate {
    /// Bits per second; more than 0.
    pub(crate) rate: u64,
    /// Blocks that leave without a look at the clock; at least 1.
    pub(crate) burst: u32,
}

/// How often the mean was begun anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restarts(Arc<AtomicU64>);

impl Restarts {
    /// Lets all streams begin their mean anew.
    pub(crate) fn restart(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The mean of one stream.
#[derive(Debug)]
pub(super) struct Pace {
    bitrate: Bitrate,
    restarts: Restarts,
    seen: u64,
    start: Instant,
    sent: u64,
    /// Blocks that may leave before the next look at the clock.
    free: u32,
}

impl Pace {
    pub(super) fn new(bitrate: Bitrate, restarts: Restarts) -> Self {
        let seen = restarts.0.load(Ordering::Relaxed);
        Self { bitrate, restarts, seen, start: timer::now(), sent: 0, free: 0 }
    }

    /// Waits until a block of `bytes` may leave.
    pub(super) async fn wait(&mut self, bytes: u64) {
        let restarts = self.restarts.0.load(Ordering::Relaxed);
        if restarts != self.seen {
            (self.seen, self.start, self.sent, self.free) = (restarts, timer::now(), 0, 0);
        }
        if self.free == 0 {
            let due = self.start + due(self.sent, self.bitrate.rate);
            // Milliseconds, as iperf3 does by default; the mean makes up for what a sleep is too
            // long.
            let early = due.since(timer::now());
            if early > Duration::ZERO {
                tokio::time::sleep(early.into()).await;
            }
            self.free = self.bitrate.burst;
        }
        self.free = self.free.saturating_sub(1);
        self.sent = self.sent.saturating_add(bytes);
    }
}

/// When the mean of `sent` bytes falls to `rate`, after the start.
fn due(sent: u64, rate: u64) -> Duration {
    let nanos = u128::from(sent) * 8 * 1_000_000_000 / u128::from(rate.max(1));
    // A day is the longest test; a thousand of them is never.
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).min(86_400_000 * 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_block_is_due_when_the_mean_has_room_for_it() {
        assert_eq!(due(0, 8_000_000), Duration::ZERO);
        assert_eq!(due(1_000_000, 8_000_000), Duration::from_secs(1));
        assert_eq!(due(131_072, 10_000_000), Duration::from_nanos(104_857_600));
        assert_eq!(due(u64::MAX, 1), Duration::from_secs(86_400_000));
    }
}
