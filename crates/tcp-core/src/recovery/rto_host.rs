//! The host of the response to a retransmission timeout (RFC 6298, section 5): what it remembers, and its rules.
//!
//! A response proposes, the core disposes. Three rules hold whatever a response wants: each expiry sends at
//! most one segment and backs off; after [`ConnConfig::max_undecided_rtos`] expiries without a decision the
//! conventional response takes over, head first; new data stays inside the peer's window. An expiry is decided
//! where it repeats the head and leaves the window to congestion control; one that repeats the head of the last
//! expiry, which nothing answered, leaves no more undecided than that did.
//!
//! A response hears of ACKs from the first expiry of a connection on: before that it has nothing to judge.
//!
//! [`ConnConfig::max_undecided_rtos`]: crate::config::ConnConfig::max_undecided_rtos

use crate::policy::RtoResponse;
use crate::policy::rto::{RtoCc, RtoGate, RtoPhase, RtoSend, RtoStep, RtoTags};
use crate::scoreboard::{LostRange, Scoreboard};
use crate::units::Window;

/// What the host remembers of timeouts.
#[derive(Debug)]
pub(crate) struct RtoHost {
    /// Consecutive expiries without a cumulative ACK.
    pub(crate) expiries: u32,
    /// Consecutive expiries without a decision.
    undecided: u32,
    /// The conventional response has taken over until the recovery point is acknowledged.
    takeover: bool,
    /// Congestion control was told of a timeout since SND.UNA advanced last.
    told: bool,
    /// What an expiry (or a step on an ACK) wants sent, and did not leave yet.
    pub(crate) send: Option<RtoSend>,
    /// What may be sent apart from that.
    gate: RtoGate,
    /// The last expiry kept its episode from congestion control, whose window has no force while the gate is closed.
    suspended: bool,
}

impl Default for RtoHost {
    fn default() -> Self {
        Self {
            expiries: 0,
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
    /// The conventional response has taken over: the connection's own hears of nothing.
    pub(crate) const fn has_taken_over(&self) -> bool {
        self.takeover
    }

    /// Where the response to the last timeout stands. `repairing`: the recovery point is not acknowledged. `response`: the
    /// connection's own, once it was asked.
    pub(crate) fn phase(&self, repairing: bool, response: Option<&dyn RtoResponse>) -> RtoPhase {
        match response {
            _ if self.takeover && repairing => RtoPhase::Repair,
            Some(response) if !self.takeover => response.phase(),
            _ => RtoPhase::Open,
        }
    }

    /// What may be sent apart from what an expiry wants sent. Only a response in the middle of an episode may hold
    /// data back.
    pub(crate) fn gate(&self, phase: RtoPhase) -> RtoGate {
        if phase == RtoPhase::Open { RtoGate::ByCc } else { self.gate }
    }

    /// The window that is in force: congestion control's, or what the response has put in its place.
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
        self.takeover = false;
        self.gate = RtoGate::ByCc;
    }

    /// What is done of the `step` that the response made of an expiry: the conventional one, if it has left `limit`
    /// expiries in succession undecided.
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
            // Nothing came since the last expiry, so that there was nothing to decide upon.
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

    /// The evidence that the response waited for came before what was to be sent for it had left.
    pub(crate) fn on_evidence(&mut self) {
        self.send = None;
        self.undecided = 0;
    }

    /// SND.UNA advanced; `probing`: the response still waits for evidence.
    pub(crate) fn on_progress(&mut self, probing: bool) {
        self.expiries = 0;
        self.told = false;
        if !probing && self.gate == RtoGate::ByCc {
            self.undecided = 0;
        }
    }

    /// The response that was in `phase` is replaced. An episode under way is none of the new one's, and ends as one that
    /// was left undecided for too long.
    pub(crate) fn on_swap(&mut self, phase: RtoPhase) {
        (self.undecided, self.gate, self.suspended) = (0, RtoGate::ByCc, false);
        self.takeover |= phase != RtoPhase::Open;
        if phase == RtoPhase::Probe {
            // What the expiry wanted sent was for evidence that nobody waits for any more.
            self.send = None;
        }
    }

    /// Remembers what a step wants sent. True unless congestion control hears of a timeout, and heard of one since SND.UNA
    /// advanced last.
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

/// What becomes of the tags. True if what the step holds to be lost ends at SND.NXT.
pub(crate) fn retag(board: &mut Scoreboard, tags: RtoTags) -> bool {
    let (keep_sacked, lost) = match tags {
        RtoTags::Keep => return false,
        RtoTags::ClearSack => (false, LostRange::None),
        RtoTags::AllLost => (false, LostRange::All),
        RtoTags::UnsackedLost => (true, LostRange::All),
        RtoTags::LostBefore(limit) => (true, LostRange::Before(limit)),
        RtoTags::Unmark => (true, LostRange::None),
    };
    board.retag(keep_sacked, lost);
    lost != LostRange::None
}
