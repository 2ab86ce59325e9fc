//! Startup (section 5.3.1): ends when the pipe is full, or when a round trip loses too much in too
//! many places.

use super::episode::UndoState;
use super::{Ack, Bbr, State};
use ackline_tcp_core::policy::cc::Phase;

/// Separate ranges that must be lost in a round trip (`BBRStartupFullLossCnt`): a single burst may
/// be bad luck.
const FULL_LOSS_RANGES: u32 = 6;

impl Bbr {
    pub(super) const fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// `BBRCheckStartupDone`.
    pub(super) fn leave_startup(&mut self, ack: &Ack<'_>) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_pipe.reached && self.is_startup_loss_high(ack) {
            self.episode.undo_state = Some(UndoState::Startup);
            self.fill_by_loss();
        }
        if self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// Section 5.3.1.3, `BBRCheckStartupHighLoss`. Without SACK it is not known how much was lost:
    /// any loss is too much.
    fn is_startup_loss_high(&self, ack: &Ack<'_>) -> bool {
        if ack.view.phase != Phase::Recovery {
            return false;
        }
        if !ack.view.has_sack {
            return true;
        }
        let too_much = ack.rs.is_some_and(|rs| self.is_too_high(rs.lost, rs.tx_in_flight));
        self.loss_round.start && self.loss_round.ranges() >= FULL_LOSS_RANGES && too_much
    }

    /// The pipe is full because of losses or marks, and holds what arrived in spite of them.
    pub(super) fn fill_by_loss(&mut self) {
        self.full_pipe.declare();
        let bdp = self.bdp(self.model.max_bw.get());
        self.model.inflight_longterm = bdp.max(self.loss_round.inflight_latest());
    }
}
