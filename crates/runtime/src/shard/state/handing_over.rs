//! Hands the stack over to applications, and has them run its turns; see
//! [`handover`](crate::shard::handover).

use super::StackState;
use super::turn::Turn;
use crate::pacing::Wait;
use crate::shard::handover::PATIENCE;
use crate::shard::schedule::Alarm;
use crate::wakes::Wakes;
use ackline_tcp_core::{ConnId, Instant};
use std::task::Context;

impl StackState {
    /// After a turn with more to do: hands the stack over, if the turn woke somebody who is likely
    /// to come back. Otherwise the driver goes on.
    pub(in crate::shard) fn hand_over(&mut self, now: Instant) -> bool {
        if !self.handover.may_open() || self.spins() || self.busy_poll.goes_on(now) {
            return false;
        }
        if !self.handover.is_alarmed() {
            self.schedule.set(now + PATIENCE, Alarm::Handover);
            if self.arm(now).is_err() {
                // The next turn meets the error again.
                return false;
            }
        }
        self.handover.open(now);
        true
    }

    /// The driver was woken: true if it is to sleep on, because applications have the stack.
    pub(in crate::shard) fn is_handed_over(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        if !self.handover.is_open() || self.handover.is_due() || self.failure().is_some() {
            return false;
        }
        if self.handover.is_lost(now) {
            return false;
        }
        let core = self.endpoint.poll_timeout().is_some_and(|wakeup| wakeup.at <= now);
        let own =
            self.schedule.next_alarm().is_some_and(|(at, alarm)| *at <= now && *alarm != Alarm::Handover);
        if core || own {
            return false;
        }
        // The alarm that rang was one of an earlier turn.
        self.schedule.ignore_expiry(cx);
        if self.schedule.take_alarm(now).is_some() {
            self.schedule.set(self.handover.ends_at(), Alarm::Handover);
        }
        self.arm(now).is_ok()
    }

    /// A task of `conn` is about to wait, or is gone.
    pub(crate) fn give_back(&mut self, conn: ConnId) {
        if self.handover.is_open()
            && let Some(slot) = self.slots.get(conn)
        {
            self.handover.give_back(&mut slot.called);
        }
    }

    /// A task of `conn` has run a turn after which there is more to do, and need not wait: it comes
    /// back.
    pub(crate) fn go_on(&mut self, conn: ConnId, wakes: &mut Wakes) {
        if let Some(slot) = self.slots.get(conn) {
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
        let Some(driver) = self.handover.driver().cloned() else { return };
        let mut cx = Context::from_waker(&driver);
        // Then the driver decides how to go on.
        while self.handover.lasts(self.last) {
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
