//! Episodes of loss, and what an undo restores (sections 5.5.11, 5.6.4.4).

use super::model::UNSET;
use super::{Bbr, State};
use ackline_tcp_core::Window;
use ackline_tcp_core::policy::cc::{FlowView, Phase};

/// The state to which an undo returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoState {
    /// Losses ended Startup.
    Startup,
    /// Losses ended Up.
    Up,
}

/// What was in force when the episode began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    /// It lasts: its first loss has saved the rest.
    open: bool,
    prior_cwnd: u64,
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    pub(super) undo_state: Option<UndoState>,
}

impl Default for Episode {
    fn default() -> Self {
        Self {
            open: false,
            prior_cwnd: 0,
            bw_shortterm: UNSET,
            inflight_shortterm: UNSET,
            inflight_longterm: UNSET,
            undo_state: None,
        }
    }
}

impl Episode {
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// It is over.
    pub(super) const fn close(&mut self) {
        self.open = false;
    }

    /// An ACK arrives in `phase`: outside of an episode of the core's, none is open here.
    pub(super) fn on_phase(&mut self, phase: Phase) {
        if matches!(phase, Phase::Open | Phase::Disorder) {
            self.close();
        }
    }
}

impl Bbr {
    /// `BBRSaveCwnd`; `keep_higher`: the flow is in an episode or in ProbeRTT, and the saved window
    /// may be higher.
    pub(super) fn save_cwnd(&mut self, keep_higher: bool) {
        let kept = if keep_higher { self.episode.prior_cwnd } else { 0 };
        self.episode.prior_cwnd = kept.max(self.cwnd());
    }

    /// `BBRRestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.control.cwnd = self.control.cwnd.max(Window::from_bytes(self.episode.prior_cwnd));
    }

    /// `BBRSaveStateUponLoss`: once per episode, by its first loss or its checkpoint, whichever
    /// comes first. If each lossy round did it, an undo would return to bounds that the episode
    /// itself has lowered.
    pub(super) fn save_state(&mut self) {
        self.save_cwnd(self.episode.open || self.state == State::ProbeRtt);
        if self.episode.open {
            return;
        }
        self.episode.open = true;
        self.episode.bw_shortterm = self.model.bw_shortterm;
        self.episode.inflight_shortterm = self.model.inflight_shortterm;
        self.episode.inflight_longterm = self.model.inflight_longterm;
        self.episode.undo_state = None;
    }

    /// Everything outstanding at the start of the episode is acknowledged.
    pub(super) fn end_episode(&mut self) {
        self.episode.close();
        self.restore_cwnd();
        self.bound_restored_cwnd();
    }

    /// `BBRHandleSpuriousLossDetection`: the losses were none. The window is at least `floor`, as
    /// far as the model permits.
    pub(super) fn take_back(&mut self, view: &FlowView, floor: u64) {
        self.episode.close();
        self.restore_cwnd();
        self.control.cwnd = self.control.cwnd.max(Window::from_bytes(floor));
        self.loss_round.forgive();
        self.full_pipe.reset(0);
        let model = &mut self.model;
        model.bw_shortterm = model.bw_shortterm.max(self.episode.bw_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(self.episode.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(self.episode.inflight_longterm);
        match self.episode.undo_state.take() {
            Some(UndoState::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(UndoState::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.enter_refill(view);
            }
            _ => {}
        }
        self.model.bound_bw();
        self.bound_restored_cwnd();
    }

    /// The retransmission timer has fired (section 5.6.4.4, `BBROnEnterRTO`): one segment beyond
    /// what is left in the network, no more than the response proposes, until the next ACK. What
    /// was in force until now becomes the short-term bound (Linux, `bbr_set_state`).
    pub(super) fn on_rto(&mut self, view: &FlowView, window: Window) {
        if !self.state.probes_bandwidth() && self.model.inflight_shortterm == UNSET {
            self.model.inflight_shortterm = self.cwnd().max(self.episode.prior_cwnd);
        }
        let one_more = Window::from_bytes(u64::from(view.pipe) + self.control.smss);
        self.control.cwnd = self.control.cwnd.min(one_more).min(window);
    }
}
