//! Hands the right to run the stack from thread to thread, on a runtime with workers.
//!
//! There, a driver that has more to do cannot let the applications go first as on a single thread:
//! a task that wakes itself wakes another worker, too, which takes it. Then driver and application
//! sleep and wake on two processors, meet at the stack's lock, and what one has written is in the
//! other's cache. So a driver that woke few applications hands the stack over to them and sleeps.
//! Each reads and writes until it would have to wait; the last one then runs the next turn on its
//! own thread, in the call in which it would have waited. If nothing is left to do at once, the
//! driver waits for the device and the timer, as always. It also goes on if the applications have
//! run the stack for a [stint], because only the driver lets the runtime go round.
//!
//! An application that has not come back after [`PATIENCE`] has something else to do. Then the
//! driver goes on, and for [`CALM`] turns it runs beside the applications. It also does if a turn
//! woke more than [`FEW`]: those have enough to do for several workers.
//!
//! Alternatives: a thread of the driver's own, with a queue of chunks for each stream in place of
//! the lock, was measured (`ackline-tun-workers-queues` of `benches/compare`). On two processors it
//! is faster than one thread only if 100 flows receive, and takes more processor time, because each
//! batch costs a wake-up across processors. So streams have no queues of their own; a program that
//! wants them builds them from `read_chunk`, `write_bytes` and a channel. Watching the device one
//! event at a time measured worse with 100 flows.

use super::stint;
use ackline_tcp_core::{Duration, Instant};
use std::task::Waker;

/// Time after which the driver no longer waits for applications that it woke.
pub(super) const PATIENCE: Duration = Duration::from_micros(500);

/// Turns without a hand-over after one that was not given back.
const CALM: u32 = 64;

/// Applications to which the stack is handed over.
const FEW: usize = 4;

/// Whether applications have the stack.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The driver's waker, if it runs on a runtime with worker threads and has run.
    driver: Option<Waker>,
    /// When it ran last.
    driven: Instant,
    /// Of the current turn, from 1.
    turn: u32,
    /// Connections whose tasks the current turn woke, and that have not come back.
    called: usize,
    /// They are to run the next turn.
    open: bool,
    /// Since when.
    opened: Instant,
    /// There is an alarm for those that do not come back.
    alarmed: bool,
    /// Turns since somebody did not come back.
    calm: u32,
    /// An application runs the current turn.
    pub(super) inline: bool,
}

impl Handover {
    pub(super) const fn new() -> Self {
        Self {
            driver: None,
            driven: Instant::ZERO,
            turn: 1,
            called: 0,
            open: false,
            opened: Instant::ZERO,
            alarmed: false,
            calm: CALM,
            inline: false,
        }
    }

    /// The driver runs on a runtime with worker threads, and has this waker.
    pub(super) fn on_driver(&mut self, now: Instant, waker: &Waker) {
        self.inline = false;
        self.open = false;
        self.driven = now;
        crate::wakes::store(&mut self.driver, waker);
    }

    /// A turn begins.
    pub(super) const fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.called = 0;
        self.open = false;
        self.calm = self.calm.saturating_add(1);
    }

    /// A task of a connection was woken; `called` is the turn in which that happened last.
    pub(super) const fn call(&mut self, called: &mut u32) {
        if *called != self.turn {
            *called = self.turn;
            self.called += 1;
        }
    }

    /// A task of a connection has nothing more to do.
    pub(super) const fn give_back(&mut self, called: &mut u32) {
        if *called == self.turn {
            *called = self.turn.wrapping_sub(1);
            self.called = self.called.saturating_sub(1);
        }
    }

    /// Applications run the stack, so the driver need not be woken.
    pub(crate) const fn is_open(&self) -> bool {
        self.open
    }

    /// The driver's waker, if it has run on a runtime with worker threads.
    pub(super) const fn driver(&self) -> Option<&Waker> {
        self.driver.as_ref()
    }

    /// Applications may have the stack: the turn woke some that are likely to come back.
    pub(super) const fn may_open(&self) -> bool {
        self.driver.is_some() && self.called > 0 && self.called <= FEW && self.calm >= CALM
    }

    /// Applications have the stack, and an alarm is set for those that do not come back.
    pub(super) const fn open(&mut self, now: Instant) {
        (self.open, self.opened, self.alarmed) = (true, now, true);
    }

    /// There is an alarm.
    pub(super) const fn is_alarmed(&self) -> bool {
        self.alarmed
    }

    /// It rang.
    pub(super) const fn on_alarm(&mut self) {
        self.alarmed = false;
    }

    /// When the applications have had the stack for too long.
    pub(super) fn ends_at(&self) -> Instant {
        self.opened + PATIENCE
    }

    /// True if they have: it is not handed over again soon.
    pub(super) fn is_lost(&mut self, now: Instant) -> bool {
        let lost = now >= self.ends_at();
        if lost {
            self.calm = 0;
        }
        lost
    }

    /// The driver has run so recently that applications may run another turn.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        now.since(self.driven) < stint::TIME
    }

    /// Applications had the stack, and all have come back.
    pub(super) const fn is_due(&self) -> bool {
        self.open && self.called == 0
    }
}
