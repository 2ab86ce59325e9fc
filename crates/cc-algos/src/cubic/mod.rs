//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, flat around the
//! window at which the loss came, so that growth depends little on the RTT.
//!
//! ```text
//!   cwnd < ssthresh:   slow start, in the first one with HyStart++
//!   otherwise:         the larger of W_cubic (curve over time) and W_est (what Reno would have)
//!   loss or ECN:       W_max = cwnd, ssthresh = beta * flight, cwnd = ssthresh
//!   timeout:           the same ssthresh, cwnd as the RTO response proposes, W_max void
//! ```
//!
//! Where it fails: it needs a loss (or CE) per epoch, so deep buffers are filled; with very short RTTs it is
//! Reno ([section 4.3](https://www.rfc-editor.org/rfc/rfc9438#section-4.3)).
//!
//! Where it reads the RFC its own way: a reduction starts from the window where the window limits the flow, and
//! from the flight size elsewhere. (An ACK that covers many segments leaves a small flight behind until the
//! window is filled again, and what limited transmit adds does not count: RFC 5681, section 3.2.) It never
//! raises a window that a restart cut. Growth per ACK is scaled by the bytes that it acknowledges.

mod curve;
mod params;
#[cfg(test)]
mod tests;

pub use params::{BETA_ECN, CubicParams};

use crate::hystart::{self, Growth, HyStart};
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Pacing, Phase, Reaction, Restart,
    RestartCause, Revise, SendDecision, SentSegment, SsthreshRule, Undo,
};
use ackline_tcp_core::policy::spec::Entry;
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Duration, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
pub(crate) use curve::{Epoch, Step};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "the window follows a cubic curve of time around the last loss",
    source: "RFC 9438, RFC 9406, RFC 8511",
    params: CubicParams::TABLE,
    ..Entry::new("cubic", |params| {
        let params = CubicParams::default().with(params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(Cubic::new(init, params))))
    })
};

/// The window of CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    state: State,
    /// The state before the last congestion episode (RFC 9438, section 4.9); `None` before the first.
    saved: Option<Box<State>>,
}

/// What an undo restores.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    cwnd: Window,
    ssthresh: Window,
    /// Window in bytes at which `ssthresh` was last set: `cwnd_prior` of the RFC.
    cwnd_prior: f64,
    /// Window in bytes before the last reduction, less what fast convergence gave up. `None` before one, and
    /// after a timeout.
    w_max: Option<f64>,
    /// The stage of congestion avoidance; `None` outside of one.
    epoch: Option<Epoch>,
    hystart: HyStart,
}

/// Bytes with their fraction.
fn bytes(window: Window) -> f64 {
    window.raw() as f64 / 65_536.0
}

/// The window of so many bytes, rounded down to 2^-16 byte; saturates.
fn window(bytes: f64) -> Window {
    Window::from_raw((bytes * 65_536.0) as u64)
}

impl Cubic {
    /// A flow that starts from `init`.
    #[must_use]
    pub fn new(init: &CcInit, params: CubicParams) -> Self {
        let state = State {
            cwnd: init.initial_window,
            ssthresh: init.ssthresh,
            cwnd_prior: bytes(init.initial_window),
            w_max: None,
            epoch: None,
            hystart: HyStart::default(),
        };
        Self { params, state, saved: None }
    }

    /// The parameters in force.
    #[must_use]
    pub const fn params(&self) -> &CubicParams {
        &self.params
    }

    fn in_slow_start(&self) -> bool {
        self.state.cwnd < self.state.ssthresh
    }

    /// RFC 9406, section 4.3: HyStart++ is for the first slow start only.
    fn uses_hystart(&self) -> bool {
        self.params.hystart && self.state.ssthresh == Window::MAX
    }

    /// Slow start on `acked` bytes; returns those that are left for congestion avoidance.
    fn slow_start(&mut self, view: &FlowView, ack: &AckSample) -> u64 {
        let growth = if self.uses_hystart() {
            self.state.hystart.on_ack(view.snd_una, view.snd_nxt, ack.rtt)
        } else {
            Growth::Full
        };
        let acked = u64::from(ack.acked);
        if growth == Growth::Exit {
            self.state.ssthresh = self.state.cwnd;
            self.state.cwnd_prior = bytes(self.state.cwnd);
            return acked;
        }
        if !view.may_raise(self.state.cwnd, self.state.ssthresh) {
            return 0;
        }
        // At most so many segments per ACK: RFC 9406, section 4.3, in the first slow start; RFC 3465, section
        // 2.3, in later ones, and after a timeout. An ACK that covers many segments counts as one for every
        // two of them, as a receiver without offloads would have sent.
        let segments = match view.phase {
            Phase::Loss => 1,
            _ if !self.uses_hystart() => 2,
            _ if self.params.pacing => u64::from(u32::MAX),
            _ => hystart::L,
        };
        let acks = u64::from(ack.segments.div_ceil(2)).max(1);
        let limit = segments.saturating_mul(acks).saturating_mul(u64::from(view.smss));
        let used = acked.min(limit);
        let room = self.state.ssthresh.saturating_sub(self.state.cwnd);
        let step = match growth {
            Growth::Conservative => Window::from_bytes(used).mul_ratio(1, hystart::CSS_GROWTH_DIVISOR),
            Growth::Full | Growth::Exit => Window::from_bytes(used),
        };
        self.state.cwnd = self.state.cwnd.saturating_add(step.min(room));
        if step > room { (step.saturating_sub(room)).bytes() } else { 0 }
    }

    fn congestion_avoidance(&mut self, view: &FlowView, acked: u64) {
        let smss = f64::from(view.smss);
        let cwnd = bytes(self.state.cwnd);
        let w_max = self.state.w_max;
        let params = self.params;
        let epoch = self.state.epoch.get_or_insert_with(|| Epoch::new(view.now, cwnd, w_max, smss, &params));
        self.state.w_max = Some(epoch.w_max());
        if !view.may_raise(self.state.cwnd, self.state.ssthresh) {
            epoch.skip_to(view.now);
            return;
        }
        let step = Step {
            now: view.now,
            cwnd,
            acked: acked as f64,
            smss,
            rtt: view.srtt.unwrap_or(Duration::ZERO),
            cwnd_prior: self.state.cwnd_prior,
        };
        self.state.cwnd = self.state.cwnd.max(window(epoch.grow(&step, &params)));
    }

    /// RFC 9438, sections 4.6 and 4.7, up to the window itself. `flight` in bytes. Returns what beta leaves,
    /// in bytes.
    fn lower_ssthresh(&mut self, view: &FlowView, flight: u32, beta: f64) -> f64 {
        let cwnd = bytes(self.state.cwnd);
        self.state.w_max = Some(match self.state.w_max {
            Some(w_max) if self.params.fast_convergence && cwnd < w_max => cwnd * (1.0 + beta) / 2.0,
            _ => cwnd,
        });
        self.state.cwnd_prior = cwnd;
        self.state.epoch = None;
        let used = if view.cwnd_limited { cwnd } else { cwnd.min(f64::from(flight)) };
        let reduced = used * beta;
        self.state.ssthresh = window(reduced.max(2.0 * f64::from(view.smss)));
        reduced
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn decision(&self) -> SendDecision {
        let State { cwnd, ssthresh, .. } = self.state;
        let decision = SendDecision::window(cwnd, ssthresh);
        if !self.params.pacing {
            return decision;
        }
        let gain = if cwnd < ssthresh.mul_ratio(1, 2) { 512 } else { 307 };
        // A late timer's departures are made good: else it would set the rate, where gaps are short.
        let mut decision = decision.paced(Pacing::WindowOverRtt { gain });
        decision.revise = Revise::Banked;
        decision
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        // Nothing else is outstanding: the time since the last ACK was idle (RFC 9438, section 5.8).
        if !sent.retransmission
            && view.flight_size <= sent.len
            && let Some(epoch) = &mut self.state.epoch
        {
            epoch.skip_to(view.now);
        }
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        // RFC 3168, section 6.1.2: an ACK with ECE does not raise the window.
        if view.phase == Phase::Recovery || ack.acked == 0 || ack.ece {
            return Reaction::None;
        }
        let mut acked = u64::from(ack.acked);
        if self.in_slow_start() {
            acked = self.slow_start(view, ack);
        }
        if acked > 0 && !self.in_slow_start() {
            self.congestion_avoidance(view, acked);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            CongestionEvent::Loss { .. } => {
                self.lower_ssthresh(view, view.flight_size, self.params.beta);
                self.state.cwnd = self.state.cwnd.min(self.state.ssthresh);
            }
            CongestionEvent::Ecn => {
                // RFC 9438, section 4.6: after ECE the window may fall to one segment, ssthresh to two.
                // RFC 8511, section 3.1: the milder factor is for congestion avoidance.
                let abe = self.params.abe && !self.in_slow_start();
                let beta = if abe { self.params.beta.max(BETA_ECN) } else { self.params.beta };
                let reduced = self.lower_ssthresh(view, view.flight_size, beta);
                self.state.cwnd = self.state.cwnd.min(window(reduced.max(f64::from(view.smss))));
            }
            CongestionEvent::Timeout { flight_size, first, window, ssthresh } => {
                match ssthresh {
                    SsthreshRule::Keep => {}
                    SsthreshRule::AtMost(most) => self.state.ssthresh = most,
                    SsthreshRule::ByCc if first => {
                        self.lower_ssthresh(view, flight_size, self.params.beta);
                    }
                    SsthreshRule::ByCc => {}
                }
                // RFC 9438, section 4.8: the next stage begins at its own plateau.
                self.state.w_max = None;
                self.state.epoch = None;
                self.state.cwnd = self.state.cwnd.min(window);
            }
            // A local drop says nothing about the path.
            _ => {}
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        if restart.window >= self.state.cwnd {
            return;
        }
        if restart.cause != RestartCause::CleanTimeout && self.state.ssthresh != Window::MAX {
            // RFC 2861, section 3.1: most of what the flow had proved it could use is regained in slow start.
            self.state.ssthresh = self.state.ssthresh.max(self.state.cwnd.mul_ratio(3, 4));
        }
        self.state.cwnd = restart.window;
        self.state.epoch = None;
        self.state.hystart = HyStart::default();
    }

    fn on_smss_change(&mut self, _view: &FlowView, _old: u32) {
        // The curve is one of segments over time.
        self.state.epoch = None;
        if let Some(saved) = self.saved.as_deref_mut() {
            saved.epoch = None;
        }
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        match self.saved.as_deref_mut() {
            Some(saved) => *saved = self.state,
            None => self.saved = Some(Box::new(self.state)),
        }
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let State { cwnd, ssthresh, .. } = self.state;
        let saved = self.saved.as_deref().copied().unwrap_or(self.state);
        self.state = saved;
        let least = match *undo {
            Undo::All => (saved.cwnd, saved.ssthresh),
            Undo::To { window, ssthresh } => {
                // The restored curve passes through another window.
                self.state.epoch = None;
                (window, ssthresh)
            }
        };
        self.state.cwnd = cwnd.max(least.0);
        self.state.ssthresh = ssthresh.max(least.1);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.report("cwnd", self.state.cwnd.bytes() as f64);
        report.report("ssthresh", self.state.ssthresh.bytes() as f64);
        report.report("w_max", self.state.w_max.unwrap_or(0.0));
        report.report("w_est", self.state.epoch.map_or(0.0, |epoch| epoch.w_est()));
        report.report("k_ms", self.state.epoch.map_or(0.0, |epoch| epoch.k() * 1e3));
        report
            .report("css", f64::from(u8::from(self.in_slow_start() && self.state.hystart.is_conservative())));
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let params = self.params.with(params)?;
        if params.c != self.params.c {
            self.state.epoch = None;
            if let Some(saved) = self.saved.as_deref_mut() {
                saved.epoch = None;
            }
        }
        self.params = params;
        Ok(())
    }
}
