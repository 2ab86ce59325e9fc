//! What became of records so far, for whoever watches a capture or a trace while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the counters of a capture or a trace while it runs, from any thread, at no cost to the
/// stack.
///
/// Clones read the same counters. The default reads zeros.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    dropped: AtomicU64,
    unwritten: AtomicU64,
}

/// What became of the packets of a capture, or the records of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordCounts {
    /// In files, also in those that a rotation has deleted since.
    pub written: u64,
    /// Came while the queue was full. The file learns of them once there is room again.
    pub dropped: u64,
    /// Came after the file had been cut short: its disk is full, or it has reached its size.
    pub unwritten: u64,
}

impl Meter {
    /// The counters now. What waits in the queue is in none of them.
    #[must_use]
    pub fn read(&self) -> RecordCounts {
        let Counters { written, dropped, unwritten } = &*self.0;
        let [written, dropped, unwritten] =
            [written, dropped, unwritten].map(|counter| counter.load(Ordering::Relaxed));
        RecordCounts { written, dropped, unwritten }
    }

    /// Counts entries that found the queue full.
    pub(super) fn add_dropped(&self, count: u64) {
        self.0.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets how many have been written in all, and how many came too late.
    pub(super) fn set(&self, written: u64, unwritten: u64) {
        self.0.written.store(written, Ordering::Relaxed);
        self.0.unwritten.store(unwritten, Ordering::Relaxed);
    }
}
