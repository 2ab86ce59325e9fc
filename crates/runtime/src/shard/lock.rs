//! The lock of a shard: applications block on it, the driver waits for it without keeping its
//! thread.
//!
//! On a runtime with worker threads, an application has the stack while the driver is due on
//! another worker, at nearly every turn. If the driver blocked there, two threads would put each
//! other to sleep and wake each other up for what takes microseconds. So it returns, and whoever
//! lets go of the lock wakes it. That puts it on that task's own worker, behind the task, where the
//! data is in the cache.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError, TryLockError, fence};
use std::ops::{Deref, DerefMut};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
pub(crate) struct Lock<T> {
    inside: Mutex<T>,
    /// The driver, if it found the lock taken.
    driver: Mutex<Option<Waker>>,
    /// There may be a waker in `driver`.
    waited_for: AtomicBool,
    /// Set once the driver has said that it does not block.
    crowded: AtomicBool,
}

/// The locked value, until this is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'a, T> {
    lock: &'a Lock<T>,
    /// `None` only while it is dropped.
    inside: Option<MutexGuard<'a, T>>,
}

impl<T> Lock<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self {
            inside: Mutex::new(inside),
            driver: Mutex::new(None),
            waited_for: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
        }
    }

    /// The driver and applications run on several threads: from now on
    /// [`poll_lock`](Self::poll_lock) does not block.
    pub(crate) fn crowd(&self) {
        // Whoever locks after this sees it.
        let _locked = self.lock();
        self.crowded.store(true, Ordering::Relaxed);
    }

    /// Blocks the thread until the lock is free. If an application's closure panicked under the
    /// lock, the value stays usable: such a closure only borrows the core.
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        self.locked(self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For the driver, the only task that calls it. Pending if somebody else has the lock; the task
    /// is woken once it is free.
    pub(crate) fn poll_lock(&self, cx: &Context<'_>) -> Poll<Locked<'_, T>> {
        if !self.crowded.load(Ordering::Relaxed) {
            return Poll::Ready(self.lock());
        }
        if let Some(locked) = self.try_lock() {
            return Poll::Ready(locked);
        }
        {
            let mut driver = self.driver();
            *driver = Some(cx.waker().clone());
            self.waited_for.store(true, Ordering::Relaxed);
        }
        // Either the lock is let go before this and taken below, or who lets go sees that it is
        // waited for.
        fence(Ordering::SeqCst);
        self.try_lock().map_or(Poll::Pending, Poll::Ready)
    }

    fn try_lock(&self) -> Option<Locked<'_, T>> {
        match self.inside.try_lock() {
            Ok(inside) => Some(self.locked(inside)),
            Err(TryLockError::Poisoned(inside)) => Some(self.locked(inside.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    const fn locked<'a>(&'a self, inside: MutexGuard<'a, T>) -> Locked<'a, T> {
        Locked { lock: self, inside: Some(inside) }
    }

    fn driver(&self) -> MutexGuard<'_, Option<Waker>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock has been let go.
    fn let_driver_in(&self) {
        if !self.crowded.load(Ordering::Relaxed) {
            return;
        }
        fence(Ordering::SeqCst);
        if self.waited_for.load(Ordering::Relaxed) {
            let waker = {
                let mut driver = self.driver();
                self.waited_for.store(false, Ordering::Relaxed);
                driver.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.inside = None;
        self.lock.let_driver_in();
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inside.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inside.as_mut().expect("it is there until it is dropped")
    }
}
