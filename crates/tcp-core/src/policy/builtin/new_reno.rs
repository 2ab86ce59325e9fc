//! NewReno's window (RFC 5681 section 3.1, RFC 6582 section 3.2, appropriate byte counting of RFC 3465).
//!
//! ```text
//!   cwnd < ssthresh:  cwnd += min(acked, 2 SMSS)          slow start
//!   otherwise:        cwnd += SMSS per cwnd bytes acked   congestion avoidance
//!   loss:             ssthresh = max(flight / 2, 2 SMSS), cwnd = ssthresh
//! ```

use crate::policy::Metrics;
use crate::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Phase, Reaction, Restart, SendDecision,
    SsthreshRule, Undo,
};
use crate::units::Window;

/// The window of NewReno.
#[derive(Clone, Debug)]
pub struct NewReno {
    cwnd: Window,
    ssthresh: Window,
    /// Bytes acknowledged towards the next segment of growth in congestion avoidance.
    acked: u64,
    before: (Window, Window),
}

impl NewReno {
    /// A flow that starts from `init`.
    #[must_use]
    pub fn new(init: &CcInit) -> Self {
        Self {
            cwnd: init.initial_window,
            ssthresh: init.ssthresh,
            acked: 0,
            before: (init.initial_window, init.ssthresh),
        }
    }

    /// Lowers window and `ssthresh` to `window`, and no further than two segments: for algorithms that differ from
    /// NewReno only in how far they reduce.
    pub fn reduce_to(&mut self, view: &FlowView, window: Window) {
        self.ssthresh = window.max(Window::from_bytes(2 * u64::from(view.smss)));
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.acked = 0;
    }

    /// RFC 5681, equation 4. Where the window limits the flow, the window stands for the flight: an ACK that
    /// covers many segments leaves a small flight behind until the window is filled again.
    fn lower_ssthresh(&mut self, view: &FlowView, flight: u32) {
        let used = if view.cwnd_limited { self.cwnd.bytes() } else { u64::from(flight) };
        self.ssthresh = Window::from_bytes((used / 2).max(2 * u64::from(view.smss)));
        self.acked = 0;
    }

    /// Halves the flight. A window that a restart has cut below that stays.
    fn reduce(&mut self, view: &FlowView, flight: u32) {
        self.lower_ssthresh(view, flight);
        self.cwnd = self.cwnd.min(self.ssthresh);
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn decision(&self) -> SendDecision {
        SendDecision::window(self.cwnd, self.ssthresh)
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        // RFC 3168, section 6.1.2: an ACK with ECE does not raise the window.
        if view.phase == Phase::Recovery || ack.acked == 0 || ack.ece {
            return Reaction::None;
        }
        let smss = u64::from(view.smss);
        let mut acked = u64::from(ack.acked);
        if !view.may_raise(self.cwnd, self.ssthresh) {
            return Reaction::None;
        }
        if self.cwnd < self.ssthresh {
            // RFC 3465, section 2.3: at most 2 SMSS per ACK, 1 SMSS after a timeout. An ACK that covers many
            // segments at once counts as one for every two of them.
            let per_ack = if view.phase == Phase::Loss { smss } else { 2 * smss };
            let limit = per_ack * u64::from(ack.segments.div_ceil(2)).max(1);
            let room = self.ssthresh.saturating_sub(self.cwnd).bytes();
            let growth = acked.min(limit).min(room.max(1));
            self.cwnd = self.cwnd.saturating_add(Window::from_bytes(growth));
            acked -= growth;
            if self.cwnd < self.ssthresh || !view.cwnd_limited {
                return Reaction::None;
            }
        }
        self.acked += acked;
        let window = self.cwnd.bytes().max(1);
        if self.acked >= window {
            self.acked -= window;
            self.cwnd = self.cwnd.saturating_add(Window::from_bytes(smss));
        }
        Reaction::None
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            CongestionEvent::Loss { prior_pipe } => self.reduce(view, prior_pipe),
            CongestionEvent::Ecn => self.reduce(view, view.pipe),
            CongestionEvent::Timeout { flight_size, first, window, ssthresh } => {
                match ssthresh {
                    SsthreshRule::Keep => {}
                    SsthreshRule::AtMost(most) => self.ssthresh = most,
                    SsthreshRule::ByCc if first => self.lower_ssthresh(view, flight_size),
                    SsthreshRule::ByCc => {}
                }
                self.cwnd = self.cwnd.min(window);
                self.acked = 0;
            }
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        self.cwnd = self.cwnd.min(restart.window);
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.before = (self.cwnd, self.ssthresh);
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let (window, ssthresh) = match *undo {
            Undo::All => self.before,
            Undo::To { window, ssthresh } => (window, ssthresh),
        };
        self.cwnd = self.cwnd.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.report("cwnd", self.cwnd.bytes() as f64);
        report.report("ssthresh", self.ssthresh.bytes() as f64);
    }
}
