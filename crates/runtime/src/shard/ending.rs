//! How far a shard is on its way to its end: an orderly one, or the device's.

use std::task::Waker;

/// What a shutdown still waits for.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Tasks that wait for all connections to end.
    pub(super) closers: Vec<Waker>,
    /// The time for a shutdown is over.
    pub(super) overdue: bool,
    /// All slots before this one have been found drained.
    pub(super) witness: usize,
    /// No new connections.
    pub(super) closing: bool,
    /// No handle is left.
    pub(super) orphaned: bool,
    /// Why the device is gone.
    pub(super) failure: Option<String>,
}
