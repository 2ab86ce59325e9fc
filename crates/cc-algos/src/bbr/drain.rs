//! Drain (section 5.3.2): the queue of Startup leaves, until the flight is what the path holds.

use super::{Ack, Bbr, State};

/// Rounds after which Drain ends whatever the flight is.
const MOST_ROUNDS: u64 = 3;

impl Bbr {
    pub(super) const fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count;
    }

    /// `BBRCheckDrainDone`.
    pub(super) fn leave_drain(&mut self, ack: &Ack<'_>) {
        if self.state != State::Drain {
            return;
        }
        let empty = ack.pipe() <= self.inflight(self.model.bw);
        if empty || self.rounds.count > self.drain_start_round + MOST_ROUNDS {
            self.enter_down(ack.view);
        }
    }
}
