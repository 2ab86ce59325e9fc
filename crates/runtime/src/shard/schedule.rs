//! When the driver wakes: for the core's deadlines and departures, and for those of the runtime.

use crate::pacing::{Pacing, Wait, Waiter};
use crate::stats::Meters;
use crate::timer::Timer;
use ackline_tcp_core::{ConnId, Duration, Instant, WakeReason, Wakeup};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::task::{Context, Poll};

/// The driver's finished wait for departures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepartureWait {
    /// Until then.
    pub(crate) ended: Instant,
    /// The departure that it waited for, at most a few microseconds later.
    pub(crate) departs: Instant,
}

/// Deadlines of the runtime itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// The time for a dropped stream's background close is over.
    Linger(ConnId),
    /// The time for a shutdown is over.
    Shutdown,
    /// The interface has been down for so long that packets wait no longer.
    HoldOver,
    /// Applications that have the stack have had it for long.
    Handover,
}

/// The timer, and what it is set for.
#[derive(Debug)]
pub(crate) struct Schedule {
    timer: Timer,
    /// Deadlines other than departures are rounded up to multiples of this.
    granularity: Duration,
    /// How to wait for departures.
    pub(super) waiter: Waiter,
    /// How to wait for the next departure or deadline of the core.
    pub(super) wait: Option<Wait>,
    /// Deadlines of the runtime itself, soonest first.
    alarms: BinaryHeap<Reverse<(Instant, Alarm)>>,
}

impl Schedule {
    pub(super) fn new(timer: Timer, granularity: Duration, pacing: Pacing) -> Self {
        Self { timer, granularity, waiter: Waiter::new(pacing), wait: None, alarms: BinaryHeap::new() }
    }

    /// Sets an alarm; it rings if the timer is [armed](Self::arm) afterwards.
    pub(super) fn set(&mut self, at: Instant, alarm: Alarm) {
        self.alarms.push(Reverse((at, alarm)));
    }

    /// The alarm that rings next.
    pub(super) fn next_alarm(&self) -> Option<&(Instant, Alarm)> {
        self.alarms.peek().map(|Reverse(next)| next)
    }

    /// An alarm that rings at `now`, or should have rung before.
    pub(super) fn take_alarm(&mut self, now: Instant) -> Option<Alarm> {
        self.next_alarm().filter(|(at, _)| *at <= now)?;
        self.alarms.pop().map(|Reverse((_, alarm))| alarm)
    }

    /// The core is next to be served at `next`; the device is full until it is to be asked again at
    /// `full`, if it is.
    pub(super) fn arm(
        &mut self,
        now: Instant,
        next: Option<Wakeup>,
        full: Option<Instant>,
    ) -> io::Result<()> {
        self.wait = next.map(|wakeup| match (is_departure(&wakeup), full) {
            (true, Some(recheck)) => Wait::Sleep(recheck),
            (true, None) => self.waiter.wait(now, wakeup.at),
            (false, _) => Wait::Sleep(round_up(wakeup.at, self.granularity)),
        });
        let core = match self.wait {
            Some(Wait::Sleep(until)) => Some(until),
            // The driver is awake.
            Some(Wait::Yield | Wait::Hold(..)) | None => None,
        };
        let own = self.next_alarm().map(|(at, _)| *at);
        self.timer.arm(core.into_iter().chain(own).min())
    }

    /// True if a departure is due so soon that the driver does not sleep.
    pub(super) const fn spins(&self) -> bool {
        matches!(self.wait, Some(Wait::Yield | Wait::Hold(..)))
    }

    /// True if the timer has expired or the driver spins, and the wait for a departure that has
    /// ended so. Polled until pending, so that the next expiry wakes the task.
    pub(super) fn poll_expired(
        &mut self,
        cx: &mut Context<'_>,
        meters: &mut Meters,
    ) -> io::Result<(bool, Option<DepartureWait>)> {
        let (mut expired, mut waited) = (self.spins(), None);
        loop {
            let deadline = self.timer.deadline();
            let Poll::Ready(at) = self.timer.poll_expired(cx) else { return Ok((expired, waited)) };
            let at = at?;
            expired = true;
            meters.timer_expiries += 1;
            if let (Some(Wait::Sleep(_)), Some(deadline)) = (self.wait, deadline) {
                self.waiter.on_wake_up(at.since(deadline));
                waited = Some(DepartureWait { ended: at, departs: at });
            }
        }
    }

    /// Takes note of expiries for which there is nothing to do.
    pub(super) fn ignore_expiry(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Ok(_)) = self.timer.poll_expired(cx) {}
    }
}

/// True for a departure that pacing or a shaper holds back.
pub(super) const fn is_departure(wakeup: &Wakeup) -> bool {
    matches!(wakeup.reason, WakeReason::Pace | WakeReason::Shaper)
}

/// The first multiple of `step` at or after `at`.
fn round_up(at: Instant, step: Duration) -> Instant {
    let (nanos, step) = (at.as_nanos(), step.as_nanos().max(1));
    Instant::from_nanos(nanos.checked_next_multiple_of(step).unwrap_or(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_rounded_up_to_the_granularity() {
        let rounded =
            |nanos, step| round_up(Instant::from_nanos(nanos), Duration::from_nanos(step)).as_nanos();
        assert_eq!(rounded(101, 50), 150);
        assert_eq!(rounded(150, 50), 150);
        assert_eq!(rounded(7, 1), 7);
        assert_eq!(rounded(7, 0), 7, "no granularity");
        assert_eq!(rounded(u64::MAX, 50), u64::MAX, "the end of time");
    }
}
