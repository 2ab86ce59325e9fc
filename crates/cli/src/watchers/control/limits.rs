//! What clients of a control socket may take up, and what they did.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What clients may take up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Clients at once; others are told that there are too many.
    pub(super) clients: usize,
    /// Longest request, in bytes, with its line end.
    pub(super) request: u64,
    /// A client that asks nothing, or does not read its answer, for this long is sent away.
    pub(super) timeout: Duration,
}

/// Counters of a control socket.
#[derive(Debug, Default)]
pub(super) struct ControlCounters {
    /// Requests answered in full.
    pub(super) requests: AtomicU64,
    /// Clients refused because there were too many.
    pub(super) overflows: AtomicU64,
    /// Requests refused: malformed, too long, or not possible.
    pub(super) refused: AtomicU64,
    /// Clients sent away because they asked nothing or did not read in time.
    pub(super) timeouts: AtomicU64,
}

impl ControlCounters {
    /// Name and value of each, in a fixed order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { requests, overflows, refused, timeouts } = self;
        [
            ("AcklineControlRequests", requests),
            ("AcklineControlOverflows", overflows),
            ("AcklineControlRefused", refused),
            ("AcklineControlTimeouts", timeouts),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
        .into_iter()
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
