//! The clock and the one timer of a driver.
//!
//! tokio's own timers tick in milliseconds, too coarse for pacing; a timerfd is an hrtimer with nanosecond
//! deadlines whose expiry wakes the runtime's epoll like a packet does.

use crate::sys::readiness;
use ackline_tcp_core::Instant;
use rustix::fd::OwnedFd;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds since the machine started.
#[must_use]
pub fn now() -> Instant {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts up from zero, so neither part is negative.
    Instant::from_nanos((tv_sec as u64).saturating_mul(NANOS_PER_SEC).saturating_add(tv_nsec as u64))
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

/// A timer with nanosecond deadlines on the clock of [`now`].
///
/// [`arm`](Self::arm) as often as the deadline changes, then await [`poll_expired`](Self::poll_expired).
/// A deadline that moves later, as the retransmission timer does with every ACK, costs no system call: the
/// timerfd keeps the earlier time and is set anew when that has passed.
#[derive(Debug)]
pub struct Timer {
    fd: AsyncFd<OwnedFd>,
    /// What the caller wants.
    deadline: Option<Instant>,
    /// What the timerfd is set to; never later than `deadline`.
    set_to: Option<Instant>,
}

impl Timer {
    /// A timer without a deadline.
    ///
    /// # Errors
    /// Where the process has no descriptors left.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd: readiness::register(fd, Interest::READABLE)?, deadline: None, set_to: None })
    }

    /// The deadline that is waited for.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Waits for `deadline` from here on; `None`: for nothing.
    ///
    /// # Errors
    /// Where the kernel refuses the time, which it does not for any instant that [`now`] can reach.
    pub fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.deadline = deadline;
        match (deadline, self.set_to) {
            (Some(wanted), Some(set)) if set <= wanted => Ok(()),
            (Some(wanted), _) => self.set(wanted),
            // An expiry that nobody waits for is swallowed by `poll_expired`.
            (None, _) => Ok(()),
        }
    }

    /// Ready when the deadline has passed, which disarms the timer; with the time at which that was noticed.
    /// Pending without a deadline.
    ///
    /// # Errors
    /// Where the descriptor fails.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Instant>> {
        loop {
            // Each expiry is one edge for epoll, and setting the timerfd anew takes an unread expiry back: so nothing
            // needs to be read, and the clock says whether the edge belongs to the time that it is set to.
            ready!(self.fd.poll_read_ready(cx))?.clear_ready();
            let now = now();
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

    /// Waits until the deadline has passed; forever without one.
    ///
    /// # Errors
    /// As [`poll_expired`](Self::poll_expired).
    pub async fn expired(&mut self) -> io::Result<Instant> {
        std::future::poll_fn(|cx| self.poll_expired(cx)).await
    }

    fn set(&mut self, deadline: Instant) -> io::Result<()> {
        // Zero would disarm the timerfd; a deadline in the past expires at once.
        let nanos = deadline.as_nanos().max(1);
        let value = Timespec {
            // At most 2^64 / 10^9, far below the kernel's limit.
            tv_sec: (nanos / NANOS_PER_SEC) as i64,
            tv_nsec: (nanos % NANOS_PER_SEC) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        self.set_to = Some(deadline);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::Duration;

    fn in_ms(ms: u64) -> Option<Instant> {
        Some(now() + Duration::from_millis(ms))
    }

    /// How long until expiry, on the timer's own clock.
    async fn wait(timer: &mut Timer) -> Duration {
        let start = now();
        timer.expired().await.expect("a timerfd can be read").since(start)
    }

    #[tokio::test]
    async fn fires_at_the_deadline_and_never_before() {
        let mut timer = Timer::new().expect("a timerfd");
        for micros in [1, 200, 1_000, 20_000] {
            let deadline = now() + Duration::from_micros(micros);
            timer.arm(Some(deadline)).expect("arm");
            let at = timer.expired().await.expect("expire");
            assert!(at >= deadline, "fired {:?} early", deadline.since(at));
            // Generous: other processes share the machine. tokio's own timers would pass this too; that the
            // timer is finer is measured by the driver's histogram of lateness.
            assert!(at.since(deadline) < Duration::from_millis(100), "fired {:?} late", at.since(deadline));
        }
    }

    #[tokio::test]
    async fn is_finer_than_a_millisecond() {
        let mut timer = Timer::new().expect("a timerfd");
        let mut best = Duration::MAX;
        for _ in 0..50 {
            let deadline = now() + Duration::from_micros(300);
            timer.arm(Some(deadline)).expect("arm");
            best = best.min(timer.expired().await.expect("expire").since(deadline));
        }
        assert!(best < Duration::from_micros(500), "at its best {best:?} late");
    }

    #[tokio::test]
    async fn an_earlier_deadline_takes_over() {
        let mut timer = Timer::new().expect("a timerfd");
        timer.arm(in_ms(60_000)).expect("arm");
        timer.arm(in_ms(5)).expect("arm");
        assert!(wait(&mut timer).await < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn a_later_deadline_is_not_served_early() {
        let mut timer = Timer::new().expect("a timerfd");
        timer.arm(in_ms(2)).expect("arm");
        let deadline = in_ms(30);
        timer.arm(deadline).expect("arm");
        let at = timer.expired().await.expect("expire");
        assert!(Some(at) >= deadline);
        assert_eq!(timer.deadline(), None);
    }

    #[tokio::test]
    async fn without_a_deadline_nothing_comes() {
        let mut timer = Timer::new().expect("a timerfd");
        timer.arm(in_ms(1)).expect("arm");
        timer.arm(None).expect("disarm");
        let outcome = tokio::time::timeout(std::time::Duration::from_millis(20), timer.expired()).await;
        assert!(outcome.is_err(), "a disarmed timer fired");
        timer.arm(in_ms(1)).expect("arm");
        wait(&mut timer).await;
    }

    /// The edge of a time that is no longer waited for, noticed late, must neither end the next wait nor hide its edge.
    #[tokio::test]
    async fn an_expiry_that_nobody_noticed_is_forgotten() {
        let mut timer = Timer::new().expect("a timerfd");
        for _ in 0..20 {
            let unnoticed = now() + Duration::from_micros(100);
            timer.arm(Some(unnoticed)).expect("arm");
            while now() < unnoticed + Duration::from_micros(100) {
                std::hint::spin_loop();
            }
            // The runtime fetches the edge, and the timer is set before it is asked.
            tokio::task::yield_now().await;
            timer.set_to = None;
            let deadline = now() + Duration::from_millis(2);
            timer.arm(Some(deadline)).expect("arm");
            let expired = tokio::time::timeout(std::time::Duration::from_secs(10), timer.expired()).await;
            let at = expired.expect("the next expiry was hidden").expect("expire");
            assert!(at >= deadline, "fired {:?} early", deadline.since(at));
        }
    }

    #[tokio::test]
    async fn a_deadline_in_the_past_fires_at_once() {
        let mut timer = Timer::new().expect("a timerfd");
        timer.arm(Some(Instant::ZERO)).expect("arm");
        assert!(wait(&mut timer).await < Duration::from_secs(1));
    }
}
