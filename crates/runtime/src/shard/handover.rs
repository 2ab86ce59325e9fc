//! Whose turn it is to run the stack, on a runtime with worker threads.
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

use super::driver::Turn;
use super::state::{Alarm, StackState};
use super::stint;
use crate::pacing::Wait;
use crate::wakes::Wakes;
use ackline_tcp_core::{ConnId, Duration, Instant};
use std::cmp::Reverse;
use std::task::{Context, Poll, Waker};

/// Time after which the driver no longer waits for applications that it woke.
const PATIENCE: Duration = Duration::from_micros(500);

/// Turns without a hand-over after one that nobody gave back.
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

    /// Applications have the stack, and nobody has to wake the driver.
    pub(crate) const fn is_open(&self) -> bool {
        self.open
    }

    /// Applications had the stack, and all have come back.
    const fn is_due(&self) -> bool {
        self.open && self.called == 0
    }
}

impl StackState {
    /// After a turn with more to do: hands the stack over, if the turn woke somebody who is likely
    /// to come back. Otherwise the driver goes on.
    pub(super) fn hand_over(&mut self, now: Instant) -> bool {
        let Handover { driver, called, calm, .. } = &self.handover;
        if driver.is_none()
            || *called == 0
            || *called > FEW
            || *calm < CALM
            || self.spins()
            || self.is_polling(now)
        {
            return false;
        }
        if !self.handover.alarmed {
            self.alarms.push(Reverse((now + PATIENCE, Alarm::Handover)));
            if self.arm(now).is_err() {
                // The next turn meets the error again.
                return false;
            }
            self.handover.alarmed = true;
        }
        self.handover.open = true;
        self.handover.opened = now;
        true
    }

    /// The alarm rang.
    pub(super) fn on_handover_alarm(&mut self) {
        self.handover.alarmed = false;
    }

    /// The driver was woken: true if it is to sleep on, because applications have the stack.
    pub(super) fn is_handed_over(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        if !self.handover.open || self.handover.is_due() || self.failure().is_some() {
            return false;
        }
        if now.since(self.handover.opened) >= PATIENCE {
            self.handover.calm = 0;
            return false;
        }
        let core = self.endpoint.poll_timeout().is_some_and(|wakeup| wakeup.at <= now);
        let own =
            self.alarms.peek().is_some_and(|Reverse((at, alarm))| *at <= now && *alarm != Alarm::Handover);
        if core || own {
            return false;
        }
        // The alarm that rang was one of an earlier turn.
        while let Poll::Ready(Ok(_)) = self.timer.poll_expired(cx) {}
        if self.alarms.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            self.alarms.pop();
            self.alarms.push(Reverse((self.handover.opened + PATIENCE, Alarm::Handover)));
        }
        self.arm(now).is_ok()
    }

    /// A task of `conn` is about to wait, or is gone.
    pub(crate) fn give_back(&mut self, conn: ConnId) {
        if self.handover.open
            && let Some(slot) = self.slots.get_mut(conn.index()).filter(|slot| slot.id == conn)
        {
            self.handover.give_back(&mut slot.called);
        }
    }

    /// A task of `conn` has run a turn after which there is more to do, and need not wait: it comes
    /// back.
    pub(crate) fn go_on(&mut self, conn: ConnId, wakes: &mut Wakes) {
        if let Some(slot) = self.slots.get_mut(conn.index()).filter(|slot| slot.id == conn) {
            self.handover.call(&mut slot.called);
        }
        if !self.hand_over(self.last) {
            wakes.extend(self.driver.take());
        }
    }

    /// If applications had the stack and all have come back, runs its next turns in the call of the
    /// last one: until `enough`, until there is nothing to do at once, until applications were
    /// woken, or until the driver has not run for a stint.
    pub(crate) fn take_turns(&mut self, wakes: &mut Wakes, mut enough: impl FnMut(&mut Self) -> bool) {
        if !self.handover.is_due() || self.failure().is_some() {
            return;
        }
        let Some(driver) = self.handover.driver.clone() else { return };
        let mut cx = Context::from_waker(&driver);
        // Then the driver decides how to go on.
        while self.last.since(self.handover.driven) < stint::TIME {
            self.handover.inline = true;
            let outcome = self.turn(&mut cx, wakes, None);
            self.handover.inline = false;
            match outcome {
                Turn::Wait(None | Some(Wait::Sleep(_))) | Turn::HandedOver => return,
                // What only the driver can do.
                Turn::Ended(_) | Turn::Wait(Some(Wait::Yield | Wait::Hold(..))) => break,
                Turn::Again => {
                    if enough(self) {
                        return;
                    }
                    if !wakes.is_empty() {
                        break;
                    }
                }
            }
        }
        wakes.extend(self.driver.take());
    }
}
