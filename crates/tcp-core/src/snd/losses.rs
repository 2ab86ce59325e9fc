//! What a sender keeps only once something was lost or limited it: the response to timeouts, and
//! totals.
//!
//! Most connections never see a timeout, so the response is not made before the first one. Made
//! later it is the same: nothing is shown to it before an expiry.

use crate::config::ConnConfig;
use crate::policy::{NewRtoResponse, RtoResponse};
use crate::scoreboard::Stamp;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// Exists from the first loss, retransmission, timeout, DSACK or reordering, from the end of the
/// first flight that the peer's window, the send buffer or the scheduler limited, or since the
/// application asked for the response.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The connection's own response; `None` before it is needed.
    response: Option<Box<dyn RtoResponse>>,
    /// The response has been called at least once.
    asked: bool,
    /// Wire segments retransmitted.
    pub(super) total_retrans: u32,
    /// Retransmission timeouts.
    pub(super) timeouts: u32,
    /// Recoveries that a timeout began.
    pub(super) rto_recoveries: u32,
    /// DSACK blocks received.
    pub(super) dsack_dups: u32,
    /// ACKs that showed reordering.
    pub(super) reord_seen: u32,
    /// Bytes declared lost since the connection began, whatever became of them; wraps around.
    pub(super) lost: u32,
    /// Payload bytes retransmitted.
    pub(super) bytes_retrans: u64,
    /// Time in recoveries that a timeout began, without the present one.
    rto_time: Duration,
    /// When the present one began.
    rto_since: Option<Instant>,
    /// Time limited by the peer's window, in earlier flights.
    pub(super) rwnd_limited: Duration,
    /// Time limited by the send buffer, in earlier flights.
    pub(super) sndbuf_limited: Duration,
    /// Time limited by the egress scheduler, in earlier flights.
    pub(super) sched_limited: Duration,
}

impl Losses {
    /// Nothing was lost.
    pub(super) const NONE: Self = Self {
        response: None,
        asked: false,
        total_retrans: 0,
        timeouts: 0,
        rto_recoveries: 0,
        dsack_dups: 0,
        reord_seen: 0,
        lost: 0,
        bytes_retrans: 0,
        rto_time: Duration::ZERO,
        rto_since: None,
        rwnd_limited: Duration::ZERO,
        sndbuf_limited: Duration::ZERO,
        sched_limited: Duration::ZERO,
    };

    /// Bytes allocated, with itself.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self) + self.response.as_deref().map_or(0, size_of_val)
    }

    /// A transmission of `bytes` that left with `stamp` is declared lost. Returns what was declared
    /// lost since it left, itself included.
    pub(super) fn on_lost(&mut self, stamp: &Stamp, bytes: u32) -> u32 {
        self.lost = self.lost.wrapping_add(bytes);
        self.lost.wrapping_sub(stamp.lost)
    }

    /// An ACK showed reordering.
    pub(super) fn on_reordering(&mut self) {
        self.reord_seen = self.reord_seen.saturating_add(1);
    }

    /// A timeout begins a recovery, or another one happens in it.
    pub(super) fn begin_rto_recovery(&mut self, now: Instant) {
        self.rto_since.get_or_insert(now);
    }

    /// It has ended.
    pub(super) fn end_rto_recovery(&mut self, now: Instant) {
        self.rto_time = self.rto_time(now);
        self.rto_since = None;
    }

    /// Time in recoveries that a timeout began.
    pub(super) fn rto_time(&self, now: Instant) -> Duration {
        self.rto_since.map_or(self.rto_time, |since| self.rto_time.saturating_add(now.since(since)))
    }

    /// The response, once it was asked.
    pub(super) fn asked_response(&self) -> Option<&dyn RtoResponse> {
        self.response.as_deref().filter(|_| self.asked)
    }

    /// The same, to ask it about an ACK.
    pub(super) fn asked_response_mut(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        if self.asked { self.response.as_deref_mut() } else { None }
    }

    /// The response, to ask it about a timeout.
    pub(super) fn ask_response(&mut self, config: &ConnConfig) -> &mut (dyn RtoResponse + 'static) {
        self.asked = true;
        self.response_mut(config)
    }

    /// The response, to configure.
    pub(super) fn response_mut(&mut self, config: &ConnConfig) -> &mut (dyn RtoResponse + 'static) {
        &mut **self.response.get_or_insert_with(|| (config.policies.rto)())
    }

    /// Shows `reader` the response, or one as it would be made.
    pub(super) fn show_response<R>(
        &self,
        config: &ConnConfig,
        reader: impl FnOnce(&dyn RtoResponse) -> R,
    ) -> R {
        match self.response.as_deref() {
            Some(response) => reader(response),
            None => reader(&*(config.policies.rto)()),
        }
    }

    /// Replaces the response. The new one begins with the next expiry.
    pub(super) fn swap_response(&mut self, make: &NewRtoResponse) {
        (self.response, self.asked) = (Some(make()), false);
    }
}
