//! One endpoint with its device and timer, behind one lock.
//!
//! Whoever holds the lock may run the stack: the driver task does so for packets and deadlines, an
//! application's task for what its own write, read or close makes leave at once. No system call under the lock
//! can block: descriptors are non-blocking.

use super::state::{StackState, Waits};
use crate::device::Device;
use crate::timer::{self, Timer};
use ackline_tcp_core::{Endpoint, Instant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// One endpoint, shared by its driver task and by all handles.
#[derive(Debug)]
pub(crate) struct Shard {
    state: Mutex<StackState>,
}

/// What handles own of a shard: when the last one goes, the driver ends as soon as no connection needs it.
#[derive(Debug)]
pub(crate) struct Anchor {
    shard: Arc<Shard>,
}

impl Anchor {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self { shard }
    }
}

impl std::ops::Deref for Anchor {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shard.lock();
            state.orphaned = true;
            state.driver.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Shard {
    pub(crate) fn new(endpoint: Endpoint, device: Box<dyn Device>, timer: Timer, waits: Waits) -> Self {
        Self { state: Mutex::new(StackState::new(endpoint, device, timer, waits)) }
    }

    /// The state. A panic of an application's closure under the lock leaves it usable: the core is only
    /// borrowed by such a closure.
    pub(crate) fn lock(&self) -> MutexGuard<'_, StackState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something for an application under the lock, sends what may leave because of it, and wakes whom
    /// it concerns after the lock is free.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut StackState, Instant, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::default();
        let outcome = {
            let mut state = self.lock();
            let now = timer::now();
            let outcome = act(&mut state, now, &mut wakes);
            let was_full = state.device.is_full();
            let more = state.flush(now, &mut wakes);
            // The driver waits for room in the device, sends the rest of a long queue, and spins.
            let more = more || state.spins() || state.is_polling(now);
            if more || (state.device.is_full() && !was_full) || state.failure().is_some() {
                wakes.extend(state.driver.take());
            }
            outcome
        };
        wakes.wake_all();
        outcome
    }
}

/// Whom to wake once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    wakers: Vec<Waker>,
    arrivals: Vec<Arc<Notify>>,
    news: Vec<Arc<Notify>>,
}

impl Wakes {
    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.wakers.extend(wakers);
    }

    /// One of those who wait for a listener's connections.
    pub(crate) fn arrival(&mut self, listener: &Arc<Notify>) {
        self.arrivals.push(listener.clone());
    }

    /// All of those who wait for news of a connection, or for connections of which there will be none.
    pub(crate) fn everyone(&mut self, news: &Arc<Notify>) {
        self.news.push(news.clone());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wakers.is_empty() && self.arrivals.is_empty() && self.news.is_empty()
    }

    pub(crate) fn wake_all(&mut self) {
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        for listener in self.arrivals.drain(..) {
            listener.notify_one();
        }
        for news in self.news.drain(..) {
            news.notify_waiters();
        }
    }
}

/// Stores a waker, without a clone if it is the one already there.
pub(crate) fn store(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}
