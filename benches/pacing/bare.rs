//! Loops that only wait: for a timerfd, by reading the clock, by tokio's timers.
//!
//! They wait for the departures that ackline's pacer has in the same mode: as many segments at
//! once, each behind the one before it by its gap on the schedule, and by a quarter of it at least
//! if that is behind.

use crate::Outcome;
use crate::case::{Case, Who};
use crate::log::Departure;
use ackline_runtime::timer::now;
use ackline_tcp_core::{Duration, Instant};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// The most lateness that is made up for, as the pacer has it.
const SLACK: Duration = Duration::from_millis(1);

/// What a loop saw.
pub(crate) struct LoopLog {
    pub(crate) late: Vec<Duration>,
    pub(crate) passed: Vec<Departure>,
}

pub(crate) fn wait(case: &Case, length: Duration) -> Outcome<LoopLog> {
    match case.who {
        Who::BareTimer => by_timerfd(case, length),
        Who::TokioSleep => by_tokio(case, length),
        _ => Ok(by_spinning(case, length)),
    }
}

/// The departures that a loop waits for, and what came of them.
struct Schedule {
    gap: Duration,
    segments: u64,
    /// On the schedule.
    due: Instant,
    /// What is waited for.
    next: Instant,
    end: Instant,
    waited: LoopLog,
}

impl Schedule {
    fn new(case: &Case, length: Duration) -> Self {
        let gap = case.gap.saturating_mul(case.segments());
        let expected = (length.as_nanos() / gap.as_nanos() + 1) as usize;
        let start = now() + gap;
        Self {
            gap,
            segments: case.segments(),
            due: start,
            next: start,
            end: start + length,
            waited: LoopLog { late: Vec::with_capacity(expected), passed: Vec::with_capacity(expected) },
        }
    }

    /// A departure at `at`; true if another one follows.
    fn depart(&mut self, at: Instant) -> bool {
        self.waited.late.push(at.since(self.next));
        self.waited.passed.push(Departure { at, segments: self.segments });
        self.due = self.due.max(at - SLACK) + self.gap;
        self.next = self.due.max(at + self.gap.div(4));
        at < self.end
    }
}

fn by_timerfd(case: &Case, length: Duration) -> Outcome<LoopLog> {
    let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let mut schedule = Schedule::new(case, length);
    loop {
        let nanos = schedule.next.as_nanos();
        let value =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&fd, TimerfdTimerFlags::ABSTIME, &once)?;
        rustix::io::read(&fd, &mut [0; 8])?;
        if !schedule.depart(now()) {
            return Ok(schedule.waited);
        }
    }
}

fn by_spinning(case: &Case, length: Duration) -> LoopLog {
    let mut schedule = Schedule::new(case, length);
    loop {
        let mut at = now();
        while at < schedule.next {
            std::hint::spin_loop();
            at = now();
        }
        if !schedule.depart(at) {
            return schedule.waited;
        }
    }
}

fn by_tokio(case: &Case, length: Duration) -> Outcome<LoopLog> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let mut schedule = Schedule::new(case, length);
        loop {
            tokio::time::sleep(schedule.next.since(now()).into()).await;
            if !schedule.depart(now()) {
                return Ok(schedule.waited);
            }
        }
    })
}
