//! The host of the response to a retransmission timeout (RFC 6298, section 5): its state and its
//! rules.
//!
//! The response proposes, the core enforces three rules: each expiry sends at most one segment and
//! backs off; after [`ConnConfig::max_undecided_rtos`] expiries without a decision the conventional
//! response takes over, starting with the head; new data stays inside the peer's window. An expiry
//! counts as decided if it retransmits the head and leaves the window to congestion control; one
//! that repeats the unanswered head of the previous expiry adds nothing undecided.
//!
//! A response is told of ACKs from the connection's first expiry on: before that it has nothing to
//! judge.
//!
//! A response sees facts (pipe before tags change, SACK and DSACK apart, what TSecr proves) and
//! returns a step. The core applies the step, and then asks congestion control, which may send
//! less.
//!
//! [`ConnConfig::max_undecided_rtos`]: crate::config::ConnConfig::max_undecided_rtos

use crate::policy::RtoResponse;
use crate::policy::rto::{RtoCc, RtoGate, RtoPhase, RtoSend, RtoStep, RtoTags};
use crate::scoreboard::{LostRange, OnLost, Scoreboard};
use crate::units::Window;

/// The host's state.
#[derive(Debug)]
pub(crate) struct RtoHost {
    /// Consecutive expiries without a cumulative ACK.
    pub(crate) expiries: u32,
    /// Of these, consecutive ones without any [answer](Self::on_answer).
    pub(crate) unanswered: u32,
    /// Consecutive expiries without a decision.
    undecided: u32,
    /// The conventional response is in charge until the recovery point is acknowledged.
    takeover: bool,
    /// Congestion control has been told of a timeout since SND.UNA last advanced.
    told: bool,
    /// What an expiry (or a step on an ACK) wants to send and has not sent yet.
    pub(crate) send: Option<RtoSend>,
    /// What else may be sent.
    gate: RtoGate,
    /// The last expiry kept its episode from congestion control, whose window is ignored while the
    /// gate is closed.
    suspended: bool,
}

impl Default for RtoHost {
    fn default() -> Self {
        Self {
            expiries: 0,
            unanswered: 0,
            undecided: 0,
            takeover: false,
            told: false,
            send: None,
            gate: RtoGate::ByCc,
            suspended: false,
        }
    }
}

impl RtoHost {
    /// The conventional response is in charge: the connection's own is not called.
    pub(crate) const fn has_taken_over(&self) -> bool {
        self.takeover
    }

    /// The phase of the response to the last timeout. `repairing`: the recovery point is not
    /// acknowledged. `response`: the connection's own, once it has been called.
    pub(crate) fn phase(&self, repairing: bool, response: Option<&dyn RtoResponse>) -> RtoPhase {
        match response {
            _ if self.takeover && repairing => RtoPhase::Repair,
            Some(response) if !self.takeover => response.phase(),
            _ => RtoPhase::Open,
        }
    }

    /// What may be sent apart from what an expiry wants to send. Only a response in the middle of
    /// an episode may hold data back.
    pub(crate) fn gate(&self, phase: RtoPhase) -> RtoGate {
        if phase == RtoPhase::Open { RtoGate::ByCc } else { self.gate }
    }

    /// The effective window: congestion control's, or the response's replacement.
    pub(crate) fn gated(&self, phase: RtoPhase, window: Window) -> Window {
        match self.gate(phase) {
            RtoGate::Closed if self.suspended => Window::ZERO,
            RtoGate::NewOnly { window: new, .. } => window.min(new),
            RtoGate::ByCc | RtoGate::Closed => window,
        }
    }

    /// The timer fired.
    pub(crate) fn on_expiry(&mut self) {
        self.expiries = self.expiries.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.takeover = false;
        self.gate = RtoGate::ByCc;
    }

    /// Returns the step to apply: the response's `step` for an expiry, or the conventional one if
    /// it has left `limit` consecutive expiries undecided.
    pub(crate) fn dispose(
        &mut self,
        step: RtoStep,
        response: &mut dyn RtoResponse,
        limit: u32,
        smss: u32,
    ) -> RtoStep {
        let probing = response.phase() == RtoPhase::Probe;
        let head = step.send == RtoSend::Head;
        let mut disposed = step;
        if head && !probing && step.gate == RtoGate::ByCc {
            self.undecided = 0;
        } else if head && self.expiries > 1 {
            // Nothing arrived since the last expiry, so there was nothing to decide on.
        } else if limit == 0 || self.undecided < limit {
            self.undecided = self.undecided.saturating_add(1);
        } else {
            self.undecided = 0;
            self.takeover = true;
            disposed = RtoStep::conventional(smss);
            response.on_takeover();
        }
        self.suspended = disposed.cc == RtoCc::Untold;
        disposed
    }

    /// The evidence arrived before what should have provoked it was sent.
    pub(crate) fn on_evidence(&mut self) {
        self.send = None;
        self.undecided = 0;
    }

    /// The peer has answered what the timer sent, without taking it.
    pub(crate) const fn on_answer(&mut self) {
        self.unanswered = 0;
    }

    /// SND.UNA advanced; `probing`: the response still waits for evidence.
    pub(crate) fn on_progress(&mut self, probing: bool) {
        self.expiries = 0;
        self.unanswered = 0;
        self.told = false;
        if !probing && self.gate == RtoGate::ByCc {
            self.undecided = 0;
        }
    }

    /// The response in `phase` is being replaced. An episode in progress does not belong to the new
    /// one, and ends like one left undecided for too long.
    pub(crate) fn on_swap(&mut self, phase: RtoPhase) {
        (self.undecided, self.gate, self.suspended) = (0, RtoGate::ByCc, false);
        self.takeover |= phase != RtoPhase::Open;
        if phase == RtoPhase::Probe {
            // What the expiry wanted to send was for evidence that is no longer needed.
            self.send = None;
        }
    }

    /// Records what a step wants to send. True unless congestion control is to be told of a
    /// timeout, and has already been told of one since SND.UNA last advanced.
    pub(crate) fn take_step(&mut self, send: RtoSend, gate: RtoGate, cc: &RtoCc) -> bool {
        self.gate = gate;
        if send != RtoSend::Nothing {
            self.send = Some(send);
        }
        match cc {
            RtoCc::Timeout { .. } => !core::mem::replace(&mut self.told, true),
            _ => true,
        }
    }
}

/// Changes the tags. True if what the step considers lost ends at SND.NXT.
pub(crate) fn retag(board: &mut Scoreboard, tags: RtoTags, on_lost: OnLost<'_>) -> bool {
    let (keep_sacked, lost) = match tags {
        RtoTags::Keep => return false,
        RtoTags::ClearSack => (false, LostRange::None),
        RtoTags::AllLost => (false, LostRange::All),
        RtoTags::UnsackedLost => (true, LostRange::All),
        RtoTags::LostBefore(limit) => (true, LostRange::Before(limit)),
        RtoTags::Unmark => (true, LostRange::None),
    };
    board.retag(keep_sacked, lost, on_lost);
    lost != LostRange::None
}
