//! Whether the pipe is full (section 5.3.1.2): the bandwidth has grown by less than a quarter in
//! three rounds. It ends Startup, and each probe for more bandwidth.

use super::Ack;

/// Rounds without growth that mean a plateau.
const ROUNDS: u8 = 3;

/// The search for a plateau.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that growth is measured from, in bytes per second.
    baseline: u64,
    /// Rounds without growth since.
    count: u8,
    /// A plateau was seen since the last reset.
    pub(super) now: bool,
    /// One was seen since the start.
    pub(super) reached: bool,
}

impl FullPipe {
    /// `BBRCheckFullBWReached`; `round_start`: the ACK ends a round.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>, round_start: bool) {
        let Some(rs) = &ack.rs else { return };
        if self.now || !round_start || rs.app_limited {
            return;
        }
        if rs.rate.saturating_mul(4) >= self.baseline.saturating_mul(5) {
            self.reset(rs.rate);
            return;
        }
        self.count += 1;
        if self.count >= ROUNDS {
            self.declare();
        }
    }

    /// `BBRResetFullBW`: growth is measured from `baseline` on.
    pub(super) const fn reset(&mut self, baseline: u64) {
        self.baseline = baseline;
        self.count = 0;
        self.now = false;
    }

    /// The pipe is full, by whatever evidence.
    pub(super) const fn declare(&mut self) {
        self.now = true;
        self.reached = true;
    }
}
