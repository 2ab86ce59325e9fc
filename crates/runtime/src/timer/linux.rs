//! Linux: `CLOCK_MONOTONIC` and a timerfd.
//!
//! A timerfd is an hrtimer with nanosecond deadlines; its expiry wakes the runtime's epoll as a
//! packet does.

use super::Alarm;
use crate::sys::readiness;
use ackline_tcp_core::{Duration, Instant};
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

/// A timerfd.
#[derive(Debug)]
pub(super) struct Timerfd {
    fd: AsyncFd<OwnedFd>,
}

impl Alarm for Timerfd {
    /// Wake-ups come some tens of microseconds late on a busy machine.
    const RESOLUTION: Duration = Duration::from_micros(50);

    /// Time since the machine started.
    fn now() -> Instant {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
        // The monotonic clock counts up from zero, so neither part is negative.
        Instant::from_nanos((tv_sec as u64).saturating_mul(NANOS_PER_SEC).saturating_add(tv_nsec as u64))
    }

    fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd: readiness::register(fd, Interest::READABLE)? })
    }

    fn set(&mut self, at: Instant) -> io::Result<()> {
        // Zero would disarm the timerfd; a deadline in the past expires at once.
        let nanos = at.as_nanos().max(1);
        let value = Timespec {
            // At most 2^64 / 10^9, far below the kernel's limit.
            tv_sec: (nanos / NANOS_PER_SEC) as _,
            tv_nsec: (nanos % NANOS_PER_SEC) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    fn poll_ring(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Each expiry is one edge for epoll, and setting the timerfd clears an unread expiry, so it
        // never has to be read.
        ready!(self.fd.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}
