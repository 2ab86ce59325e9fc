//! The clock and the timer of a driver.
//!
//! On Linux a timerfd, because tokio's timers tick in milliseconds, too coarse for pacing.
//! Elsewhere tokio's timers and std's clock. (`--cfg ackline_portable_timer` selects those on
//! Linux, too: for tests.)
//!
//! Either sets its alarm as seldom as possible, and passes the same tests. Nothing else in the
//! driver differs between platforms.

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

/// Smallest distance of two deadlines that a [`Timer`] can tell apart.
pub(crate) const RESOLUTION: Duration = Native::RESOLUTION;

/// The monotonic clock, in nanoseconds: on Linux `CLOCK_MONOTONIC`, since the machine started;
/// elsewhere std's clock, since the process first called this.
#[must_use]
pub fn now() -> Instant {
    Native::now()
}

/// Spins until the clock reaches `at`; returns the time it read.
pub fn spin_until(at: Instant) -> Instant {
    loop {
        let now = now();
        if now >= at {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// A timer on the clock of [`now`]: with nanosecond deadlines on Linux, up to a millisecond late
/// elsewhere (up to 16 ms on Windows, as are its own timers).
///
/// [`arm`](Self::arm) it whenever the deadline changes, then await
/// [`poll_expired`](Self::poll_expired). Moving the deadline later, as the retransmission timer
/// does with every ACK, costs no system call: the alarm keeps the earlier time and is set again
/// when that has passed.
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

    /// The current deadline.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.lazy.deadline
    }

    /// Sets the deadline; `None` disarms the timer. The task that polled last is woken when the
    /// deadline has passed.
    ///
    /// # Errors
    /// If the kernel refuses the time, which it never does for an instant that [`now`] can reach.
    pub fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.lazy.arm(deadline)
    }

    /// Ready when the deadline has passed, with the current time; this disarms the timer. Pending
    /// without a deadline.
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

/// An alarm and its clock.
trait Alarm: Sized {
    /// Smallest distance of two times that it can tell apart.
    const RESOLUTION: Duration;

    /// The clock.
    fn now() -> Instant;

    /// An alarm that is not set.
    fn new() -> io::Result<Self>;

    /// Sets the alarm to `at`, replacing the time set before. Wakes the task that polled last.
    fn set(&mut self, at: Instant) -> io::Result<()>;

    /// Ready when it has rung since the last call, or may have.
    fn poll_ring(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// Sets its alarm as rarely as possible.
#[derive(Debug)]
struct Lazy<A> {
    alarm: A,
    /// The caller's deadline.
    deadline: Option<Instant>,
    /// The alarm's time; never later than `deadline`.
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
            // `poll_expired` ignores a ring without a deadline.
            (None, _) => Ok(()),
        }
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Instant>> {
        loop {
            ready!(self.alarm.poll_ring(cx))?;
            // The clock tells whether the ring belongs to the time that the alarm is set to.
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
