//! What both ends count.

use ackline::core::Duration;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What has come through since the start of the measurement.
#[derive(Debug, Default)]
pub(crate) struct Board {
    bytes: AtomicU64,
    /// Flows that carried some of these.
    flows: AtomicUsize,
    /// Measurements that have begun.
    starts: AtomicU64,
    /// Of connections that got their byte back, and the number of those that did not.
    connections: Mutex<(Vec<Duration>, usize)>,
    /// Connections that ended on the server's side as they should.
    ended: AtomicUsize,
}

impl Board {
    /// Forgets what was counted.
    pub(crate) fn start(&self) {
        *self.connections() = Default::default();
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.flows.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Of bulk data, and the flows that had a share in it.
    pub(crate) fn bulk(&self) -> (u64, usize) {
        (self.bytes.load(Ordering::Relaxed), self.flows.load(Ordering::Relaxed))
    }

    /// `None`: it got no byte back.
    pub(crate) fn connection(&self, took: Option<Duration>) {
        let mut connections = self.connections();
        match took {
            Some(took) => connections.0.push(took),
            None => connections.1 += 1,
        }
    }

    /// The times of connections, shortest first, and how many failed.
    pub(crate) fn take_connections(&self) -> (Vec<Duration>, usize) {
        let mut connections = std::mem::take(&mut *self.connections());
        connections.0.sort_unstable();
        connections
    }

    pub(crate) fn server_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Since the last call.
    pub(crate) fn take_servers_ended(&self) -> usize {
        self.ended.swap(0, Ordering::Relaxed)
    }

    fn connections(&self) -> MutexGuard<'_, (Vec<Duration>, usize)> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving end of one flow.
pub(crate) struct Flow<'a> {
    board: &'a Board,
    /// The measurement in which it was counted.
    counted: u64,
}

impl<'a> Flow<'a> {
    pub(crate) const fn new(board: &'a Board) -> Self {
        // Before the first measurement nobody counts flows.
        Self { board, counted: 0 }
    }

    /// `bytes` arrived.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.board.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let starts = self.board.starts.load(Ordering::Relaxed);
        if self.counted != starts {
            self.counted = starts;
            self.board.flows.fetch_add(1, Ordering::Relaxed);
        }
    }
}
