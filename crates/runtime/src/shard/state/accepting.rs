//! The accept queue of a listener, which all shards fill.

use crate::wakes::{Wakes, store};
use ackline_tcp_core::ConnId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// Established connections that no `accept` has taken, and the tasks that wait for them. Its lock
/// is taken within those of the shards, and no other within it.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    waiting: Mutex<AcceptState>,
    /// Notified of each connection, and of the end.
    pub(crate) arrivals: Arc<Notify>,
}

#[derive(Debug, Default)]
struct AcceptState {
    /// Each with its shard. Bounded by the core: they count against the listener's backlog.
    conns: VecDeque<(usize, ConnId)>,
    /// The task that polls for them.
    waker: Option<Waker>,
    /// Others wait for the listener's SYNs.
    holds_syns: bool,
}

impl AcceptQueue {
    fn lock(&self) -> MutexGuard<'_, AcceptState> {
        // Only the allocator can panic under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this shard waits.
    pub(super) fn push(&self, shard: usize, conn: ConnId, wakes: &mut Wakes) {
        let mut waiting = self.lock();
        waiting.conns.push_back((shard, conn));
        if waiting.holds_syns {
            // One of them alone may be woken who waits for a SYN.
            wakes.everyone(&self.arrivals);
        } else {
            wakes.arrival(&self.arrivals);
        }
        wakes.extend(waiting.waker.take());
    }

    /// The connection that has waited for longest, and its shard; or the waker is kept.
    pub(crate) fn pop(&self, waker: Option<&Waker>) -> Option<(usize, ConnId)> {
        let mut waiting = self.lock();
        let next = waiting.conns.pop_front();
        if let (None, Some(waker)) = (next, waker) {
            store(&mut waiting.waker, waker);
        }
        next
    }

    /// SYNs are held from now on.
    pub(super) fn hold_syns(&self) {
        self.lock().holds_syns = true;
    }

    /// Keeps the waker of a task that polls for SYNs.
    pub(super) fn keep(&self, waker: &Waker) {
        store(&mut self.lock().waker, waker);
    }

    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&self, wakes: &mut Wakes) {
        wakes.everyone(&self.arrivals);
        wakes.extend(self.lock().waker.take());
    }

    /// Connections of this shard that wait.
    pub(super) fn len(&self, shard: usize) -> usize {
        self.lock().conns.iter().filter(|(of, _)| *of == shard).count()
    }

    /// The listener of this shard is gone, and its connections with it.
    pub(super) fn forget(&self, shard: usize) {
        self.lock().conns.retain(|(of, _)| *of != shard);
    }
}
