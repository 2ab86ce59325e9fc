//! Steps 19 to 27: a sampling, in which the receiver is silent to see what the sender can send without an ACK.
//!
//! ```text
//!   ACK for all, with the whole window          the sender's burst arrives             ACK
//!   ────●───────────────── one round trip ───────●──●──●──●───── 1.3 IPAT ──────────────●───► time
//!       └──────── SP_timer: at least 1.5 RTT ─────────────┘ └ moved on by each arrival ─┘
//! ```

use ackline_tcp_core::policy::ack::RecvView;
use ackline_tcp_core::{Duration, Instant, SeqNum};

/// A sampling, from the ACK that begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// `SP_timer`: when it ends.
    deadline: Instant,
    /// Bytes that arrived in order in it.
    got: u32,
    /// The ACK that begins it has not left.
    pending: bool,
    /// Where the last segment began, and how often it came in a row.
    last: Option<SeqNum>,
    times: u8,
}

/// What an arrival makes of a sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Step 23: the window is used up.
    Full,
    /// Step 25: it has lasted as long as it may.
    Over,
    /// It lasts up to this instant.
    Until(Instant),
}

/// What the sender may still send, bytes.
pub(super) fn window_left(view: &RecvView) -> u32 {
    view.edge.saturating_distance_from(view.rcv_nxt)
}

impl Sampling {
    /// Step 20: at least one and a half round trips from `now` on.
    pub(super) fn new(now: Instant, rtt: Duration) -> Self {
        Self { deadline: now + rtt.mul_ratio(3, 2), got: 0, pending: true, last: None, times: 0 }
    }

    /// The ACK has left. Gives the end.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.pending = false;
        self.deadline = self.deadline.max(now);
        self.deadline
    }

    /// The ACK that begins it has not left.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Bytes that arrived in order in it.
    pub(super) const fn got(&self) -> u32 {
        self.got
    }

    /// A segment that begins at `start` arrived.
    pub(super) fn note(&mut self, start: SeqNum) {
        self.times = if self.last == Some(start) { self.times.saturating_add(1) } else { 1 };
        self.last = Some(start);
    }

    /// The last segment came three times in a row.
    pub(super) const fn is_third(&self) -> bool {
        self.times >= 3
    }

    /// Steps 22 to 25: data in order arrived. `least`: the smallest window into which the sender would send; `bound`: the longest
    /// that data may wait for its ACK.
    pub(super) fn on_data(
        &mut self,
        view: &RecvView,
        least: u32,
        ipat: Option<Duration>,
        bound: Duration,
    ) -> Step {
        if self.pending {
            // It still belongs to what the ACK will answer.
            return Step::Until(self.deadline.max(view.now));
        }
        // Step 22: since no ACK left, what is unacknowledged is what arrived.
        self.got = view.unacked();
        // Step 23.
        if window_left(view) < least {
            return Step::Full;
        }
        // Step 24: nearly over, so that what may be the next arrival of the burst decides. Else it lasts as long as was meant.
        if let Some(ipat) = ipat {
            let wait = ipat.mul_ratio(13, 10);
            if self.deadline.since(view.now) <= wait {
                self.deadline = view.now + wait;
            }
        }
        let deadline = self.cap(view, bound);
        if deadline <= view.now { Step::Over } else { Step::Until(deadline) }
    }

    /// Step 25: no byte waits longer than `bound` (RFC 9293, section 3.8.6.3, MUST-40). Gives the end.
    pub(super) fn cap(&mut self, view: &RecvView, bound: Duration) -> Instant {
        if let Some(first) = view.oldest_unacked {
            self.deadline = self.deadline.min(first + bound);
        }
        self.deadline
    }
}
