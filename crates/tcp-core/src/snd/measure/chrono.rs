//! How long the sender had something to deliver, and how much of that the peer's window, the send
//! buffer or the egress scheduler held it up (Linux, `tcp_chrono_start` and `tcp_chrono_stop`,
//! which do not see what happens below the sender).
//!
//! What waits in the scheduler counts against the peer's window, so that a window may be full of
//! data that has not left the host: then the scheduler is what limits it.
//!
//! The clock turns when the cause changes, at the end of a burst of packets. Nothing is measured
//! per segment, and no memory is needed while nothing is outstanding.

use crate::time::{Duration, Instant};

/// What a sender spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snd) enum Spending {
    /// Nothing is unsent or unacknowledged.
    Idle,
    /// The path, or its own rules, limit it.
    Busy,
    /// The peer's window has no room for a segment.
    ReceiveWindow,
    /// All that the send buffer took has left and the congestion window has room, but the writer
    /// waits for space.
    SendBuffer,
    /// The egress scheduler has deferred the next data, or holds data in its queue.
    Scheduler,
}

/// Times so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::snd) struct Times {
    /// Something was unsent or unacknowledged; the others are parts of this.
    pub(in crate::snd) busy: Duration,
    /// Limited by the peer's window.
    pub(in crate::snd) rwnd_limited: Duration,
    /// Limited by the send buffer.
    pub(in crate::snd) sndbuf_limited: Duration,
    /// Limited by the egress scheduler.
    pub(in crate::snd) sched_limited: Duration,
}

impl Times {
    pub(in crate::snd) const ZERO: Self = Self {
        busy: Duration::ZERO,
        rwnd_limited: Duration::ZERO,
        sndbuf_limited: Duration::ZERO,
        sched_limited: Duration::ZERO,
    };
}

/// The times of one flight.
#[derive(Debug)]
pub(in crate::snd) struct Chrono {
    now: Spending,
    /// Since when.
    since: Instant,
    /// Times until then.
    times: Times,
}

impl Chrono {
    pub(in crate::snd) const NEW: Self =
        Self { now: Spending::Idle, since: Instant::ZERO, times: Times::ZERO };

    /// From `now` on the time goes into `spending`.
    pub(in crate::snd) fn turn(&mut self, now: Instant, spending: Spending) {
        if spending != self.now {
            *self = Self { now: spending, since: now, times: self.times(now) };
        }
    }

    /// True if the time goes into `spending`.
    pub(in crate::snd) fn is_in(&self, spending: Spending) -> bool {
        self.now == spending
    }

    /// The times until `now`.
    pub(in crate::snd) fn times(&self, now: Instant) -> Times {
        let mut times = self.times;
        let lap = now.since(self.since);
        match self.now {
            Spending::Idle => return times,
            Spending::Busy => {}
            Spending::ReceiveWindow => times.rwnd_limited = times.rwnd_limited.saturating_add(lap),
            Spending::SendBuffer => times.sndbuf_limited = times.sndbuf_limited.saturating_add(lap),
            Spending::Scheduler => times.sched_limited = times.sched_limited.saturating_add(lap),
        }
        times.busy = times.busy.saturating_add(lap);
        times
    }
}
