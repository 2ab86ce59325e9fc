//! Steps 19 to 27: a sampling, in which the receiver stays silent to see how much the sender can
//! send without an ACK.
//!
//! ```text
//!   ACK for all, with the whole window          the sender's burst arrives             ACK
//!   ────●───────────────── one round trip ───────●──●──●──●───── 1.3 IPAT ──────────────●───► time
//!       └──────── SP_timer: at least 1.5 RTT ─────────────┘ └ moved on by each arrival ─┘
//! ```

use ackline_tcp_core::policy::ack::RecvView;
use ackline_tcp_core::{Duration, Instant, SeqNum};

/// A sampling, from the ACK that starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// `SP_timer`: when it ends.
    deadline: Instant,
    /// In-order bytes that arrived during it.
    got: u32,
    /// The ACK that starts it has not been sent.
    pending: bool,
    /// Where the last segment started, and how often it arrived in a row.
    last: Option<SeqNum>,
    times: u8,
}

/// How an arrival affects a sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Step 23: the window is used up.
    Full,
    /// Step 25: its time limit is reached.
    Over,
    /// It continues until this instant.
    Until(Instant),
}

/// How much the sender may still send, in bytes.
pub(super) fn window_left(view: &RecvView) -> u32 {
    view.edge.saturating_distance_from(view.rcv_nxt)
}

impl Sampling {
    /// Step 19: how long a sampling lasts if no arrival prolongs it.
    pub(super) fn length(rtt: Duration) -> Duration {
        rtt.mul_ratio(3, 2)
    }

    /// Step 20: at least one and a half round trips from `now` on.
    pub(super) fn new(now: Instant, rtt: Duration) -> Self {
        Self { deadline: now + Self::length(rtt), got: 0, pending: true, last: None, times: 0 }
    }

    /// The ACK has been sent. Returns the end.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.pending = false;
        self.deadline = self.deadline.max(now);
        self.deadline
    }

    /// The ACK that starts it has not been sent.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// In-order bytes that arrived during it.
    pub(super) const fn got(&self) -> u32 {
        self.got
    }

    /// A segment starting at `start` arrived.
    pub(super) fn note(&mut self, start: SeqNum) {
        self.times = if self.last == Some(start) { self.times.saturating_add(1) } else { 1 };
        self.last = Some(start);
    }

    /// The last segment arrived three times in a row.
    pub(super) const fn is_third(&self) -> bool {
        self.times >= 3
    }

    /// Steps 22 to 25: in-order data arrived. `least`: the smallest window into which the sender
    /// would send; `wait`: by how much the arrival prolongs the sampling; `bound`: the longest time
    /// that data may wait for its ACK.
    pub(super) fn on_data(
        &mut self,
        view: &RecvView,
        least: u32,
        wait: Option<Duration>,
        bound: Duration,
    ) -> Step {
        if self.pending {
            // It belongs to the data that the starting ACK will cover.
            return Step::Until(self.deadline.max(view.now));
        }
        // Step 22: no ACK was sent, so the unacknowledged data is what arrived.
        self.got = view.unacked();
        // Step 23.
        if window_left(view) < least {
            return Step::Full;
        }
        // Step 24: near the end, the next arrival of the burst decides. Otherwise the sampling
        // lasts as planned.
        if let Some(wait) = wait
            && self.deadline.since(view.now) <= wait
        {
            self.deadline = view.now + wait;
        }
        let deadline = self.cap(view, bound);
        if deadline <= view.now { Step::Over } else { Step::Until(deadline) }
    }

    /// Step 25: no byte waits longer than `bound` (RFC 9293, section 3.8.6.3, MUST-40). Returns the
    /// end.
    pub(super) fn cap(&mut self, view: &RecvView, bound: Duration) -> Instant {
        if let Some(first) = view.oldest_unacked {
            self.deadline = self.deadline.min(first + bound);
        }
        self.deadline
    }
}
