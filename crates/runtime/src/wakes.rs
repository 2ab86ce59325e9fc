//! Tasks to wake, which is done without a lock, and wakers that are kept.

use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// Tasks to wake once the lock is released.
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

    /// Wakes one task that waits for a listener's connections.
    pub(crate) fn arrival(&mut self, listener: &Arc<Notify>) {
        self.arrivals.push(listener.clone());
    }

    /// Wakes all tasks that wait for news of a connection, or for connections that will never come.
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

/// Stores a waker; does not clone it if it is already there.
pub(crate) fn store(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}
