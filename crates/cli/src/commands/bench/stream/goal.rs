//! When a test of a number of bytes or blocks is over.

use crate::commands::bench::report::record::Length;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// What all streams of a direction have to move together, in whole blocks; nothing counts before
/// [`count`](Self::count).
#[derive(Debug)]
pub(crate) struct Goal {
    /// Bytes; `None`: no limit.
    bytes: Option<u64>,
    counts: AtomicBool,
    claimed: AtomicU64,
    received: AtomicU64,
    reached: Notify,
}

impl Goal {
    /// For the side that decides when the test ends.
    pub(crate) fn new(length: Length, block: u64) -> Self {
        let bytes = match length {
            Length::Seconds(_) => None,
            Length::Bytes(bytes) => Some(bytes),
            Length::Blocks(blocks) => Some(blocks.saturating_mul(block)),
        };
        Self {
            bytes,
            counts: AtomicBool::new(false),
            claimed: AtomicU64::new(0),
            received: AtomicU64::new(0),
            reached: Notify::new(),
        }
    }

    /// For the side that goes on until the other one has had enough.
    pub(crate) fn endless() -> Self {
        Self::new(Length::Seconds(0), 0)
    }

    /// From here on everything counts.
    pub(crate) fn count(&self) {
        self.counts.store(true, Ordering::Relaxed);
    }

    /// True if one more block of `block` bytes is to be sent.
    pub(super) fn claim(&self, block: u64) -> bool {
        let Some(bytes) = self.bytes.filter(|_| self.counts.load(Ordering::Relaxed)) else { return true };
        self.claimed.fetch_add(block, Ordering::Relaxed) < bytes
    }

    /// Books what was received.
    pub(super) fn received(&self, bytes: u64) {
        let Some(limit) = self.bytes.filter(|_| self.counts.load(Ordering::Relaxed)) else { return };
        if self.received.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= limit {
            self.reached.notify_one();
        }
    }

    /// Waits until as much was received as is wanted.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_sent_whole_and_only_after_what_is_omitted() {
        let goal = Goal::new(Length::Bytes(250), 100);
        assert!((0..9).all(|_| goal.claim(100)));
        goal.count();
        assert_eq!([(); 5].map(|()| goal.claim(100)), [true, true, true, false, false]);
        let goal = Goal::new(Length::Blocks(2), 100);
        goal.count();
        assert_eq!([(); 3].map(|()| goal.claim(100)), [true, true, false]);
        let goal = Goal::endless();
        goal.count();
        assert!((0..1000).all(|_| goal.claim(u64::MAX)));
    }
}
