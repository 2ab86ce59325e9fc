//! Acknowledgments that arrive in bunches (section 5.5.9): how much more than the bandwidth gives
//! is acknowledged at once. The window holds it on top of the bandwidth-delay product, so that the
//! link does not run dry between two bunches.

use super::full_pipe::FullPipe;
use super::model::Rounds;
use super::{Ack, mul_div};
use ackline_tcp_core::Instant;

/// Rounds that the maximum covers.
const WINDOW: usize = 10;

/// Bytes acknowledged beyond what the bandwidth gives.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// When the present bunch began.
    since: Instant,
    /// Bytes acknowledged since.
    delivered: u64,
    /// The highest excess of each of the last [`WINDOW`] rounds, by round number.
    highest: [u64; WINDOW],
    extra_acked: u64,
}

impl Aggregation {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, delivered: 0, highest: [0; WINDOW], extra_acked: 0 }
    }

    /// The highest excess of the last ten rounds; of the present one before the pipe is full.
    pub(super) const fn extra_acked(&self) -> u64 {
        self.extra_acked
    }

    /// `BBRUpdateACKAggregation`.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>, bw: u64, cwnd: u64, rounds: &Rounds, full: &FullPipe) {
        let now = ack.view.now;
        let mut expected = mul_div(bw, now.since(self.since).as_nanos(), 1_000_000_000);
        if self.delivered <= expected {
            self.restart(now);
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(ack.newly_acked());
        let extra = (self.delivered - expected).min(cwnd);
        // Below WINDOW: the remainder fits.
        let slot = (rounds.count % WINDOW as u64) as usize;
        if let Some(highest) = self.highest.get_mut(slot) {
            *highest = if rounds.start { extra } else { extra.max(*highest) };
            self.extra_acked = *highest;
        }
        if full.reached {
            self.extra_acked = self.highest.iter().copied().max().unwrap_or(0);
        }
    }

    /// A bunch begins; also with the first packet after idleness.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.since = now;
        self.delivered = 0;
    }
}
