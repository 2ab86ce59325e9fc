//! The clock and the one timer of a driver.
//!
//! On Linux a timerfd, because tokio's own timers tick in milliseconds, too coarse for pacing. Elsewhere these, and the clock of
//! std. (`--cfg ackline_portable_timer` takes them on Linux, too: for tests.)

#[cfg(all(target_os = "linux", any(test, not(ackline_portable_timer))))]
mod linux;
#[cfg(any(test, not(target_os = "linux"), ackline_portable_timer))]
mod portable;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", not(ackline_portable_timer)))]
use linux::Timerfd as Native;
#[cfg(any(not(target_os = "linux"), ackline_portable_timer))]
use portable::Sleeper as Native;

use ackline_tcp_core::{Duration, Instant};
use std::io;
use std::task::{Context, Poll, ready};

/// How far apart two wake-ups of a [`Timer`] must be to be told apart.
pub(crate) const RESOLUTION: Duration = Native::RESOLUTION;

/// The monotonic clock, in nanoseconds: on Linux `CLOCK_MONOTONIC`, since the machine started; elsewhere std's clock, since
/// the process first asked.
#[must_use]
pub fn now() -> Instant {
    Native::now()
}

/// Reads the clock until it says `at`; what it says then.
pub(crate) fn spin_until(at: Instant) -> Instant {
    loop {
        let now = now();
        if now >= at {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// A timer on the clock of [`now`]: with nanosecond deadlines on Linux, and up to a millisecond late elsewhere (on Windows up
/// to 16 ms, as its own timers are).
///
/// [`arm`](Self::arm) as often as the deadline changes, then await [`poll_expired`](Self::poll_expired).
/// A deadline that moves later, as the retransmission timer does with every ACK, costs no system call: the alarm
/// keeps the earlier time and is set anew when that has passed.
#[derive(Debug)]
pub struct Timer {
    lazy: Lazy<Native>,
}

impl Timer {
    /// A timer without a deadline.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn new() -> io::Result<Self> {
        Ok(Self { lazy: Lazy::new()? })
    }

    /// The deadline that is waited for.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.lazy.deadline
    }

    /// Waits for `deadline` from here on; `None`: for nothing. Whoever polled last is woken when it has passed.
    ///
    /// # Errors
    /// If the kernel refuses the time, which it does not for any instant that [`now`] can reach.
    pub fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.lazy.arm(deadline)
    }

    /// Ready when the deadline has passed, which disarms the timer; with the time at which that was noticed.
    /// Pending without a deadline.
    ///
    /// # Errors
    /// If the descriptor fails.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Instant>> {
        self.lazy.poll_expired(cx)
    }

    /// Waits until the deadline has passed; forever without one.
    ///
    /// # Errors
    /// As [`poll_expired`](Self::poll_expired).
    pub async fn expired(&mut self) -> io::Result<Instant> {
        std::future::poll_fn(|cx| self.poll_expired(cx)).await
    }
}

/// What rings at a time that is set, and the clock that it goes by.
trait Alarm: Sized {
    /// How far apart two times must be to be told apart.
    const RESOLUTION: Duration;

    /// The clock.
    fn now() -> Instant;

    /// An alarm that is not set.
    fn new() -> io::Result<Self>;

    /// Rings at `at`, and not at the time that was set before. Wakes whoever polled last.
    fn set(&mut self, at: Instant) -> io::Result<()>;

    /// Ready when it has rung since the last call, or may have.
    fn poll_ring(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// An alarm that is set as seldom as possible.
#[derive(Debug)]
struct Lazy<A> {
    alarm: A,
    /// What the caller wants.
    deadline: Option<Instant>,
    /// What the alarm is set to; never later than `deadline`.
    set_to: Option<Instant>,
}

impl<A: Alarm> Lazy<A> {
    fn new() -> io::Result<Self> {
        Ok(Self { alarm: A::new()?, deadline: None, set_to: None })
    }

    fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.deadline = deadline;
        match (deadline, self.set_to) {
            (Some(wanted), Some(set)) if set <= wanted => Ok(()),
            (Some(wanted), _) => self.set(wanted),
            // A ring that nobody waits for is swallowed by `poll_expired`.
            (None, _) => Ok(()),
        }
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Instant>> {
        loop {
            ready!(self.alarm.poll_ring(cx))?;
            // The clock says whether the ring belongs to the time that the alarm is set to.
            let now = A::now();
            if self.set_to.is_none_or(|set| now < set) {
                continue;
            }
            self.set_to = None;
            let Some(deadline) = self.deadline else { continue };
            if now >= deadline {
                self.deadline = None;
                return Poll::Ready(Ok(now));
            }
            self.set(deadline)?;
        }
    }

    fn set(&mut self, deadline: Instant) -> io::Result<()> {
        self.alarm.set(deadline)?;
        self.set_to = Some(deadline);
        Ok(())
    }
}
