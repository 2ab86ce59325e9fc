//! Additive increase by a(w), multiplicative decrease by b(w): the window that HSTCP, Scalable TCP and ACWAP share.
//!
//! ```text
//!   w < ssthresh:     w += 1 per segment acknowledged, limited above max_ssthresh     slow start (H9)
//!   otherwise:        w += a(w) / w per segment acknowledged                          congestion avoidance (H6)
//!   loss or ECN:      ssthresh = max(2, floor(w (1 - b(w)))), w = w (1 - b(w))        once per window (H7)
//!   timeout:          ssthresh = flight / 2, w as the RTO response proposes           (H8)
//! ```
//!
//! What a control grows and gives up is its [`Growth`]; [`Aimd`] does the rest. A control that wraps another one
//! (ACWAP) is a [`Growth`] that holds a [`Growth`].
//!
//! The window is kept in bytes with 32 fraction bits, for a(w) / w is a thousandth of a segment where windows are
//! large. Factors are `f64`, of which only operations that IEEE 754 rounds exactly are used, and the `libm` crate:
//! every machine computes the same.

mod cwnd;
mod slow_start;

pub(crate) use cwnd::Cwnd;
pub use slow_start::limited_step;

use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Pacing, Phase, Reaction, Restart,
    RestartCause, Revise, SendDecision, SentSegment, SsthreshRule, Undo,
};
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::{Metrics, Params, SpecError};
use ackline_tcp_core::{Duration, Instant, Window};
use alloc::boxed::Box;
use core::fmt::Debug;

/// How a control grows in congestion avoidance and what it gives up.
///
/// Called by [`Aimd`]: [`on_ack`](Self::on_ack) for every ACK, then [`increase`](Self::increase) where it finds the
/// flow in congestion avoidance; [`decrease`](Self::decrease), then [`on_congestion`](Self::on_congestion) at a loss
/// or mark, the latter alone at a timeout.
pub(crate) trait Growth: Clone + Debug + Send {
    /// The name under which the control is chosen.
    fn name(&self) -> &'static str;

    /// a(w): segments by which the window grows while one window of data is acknowledged.
    fn increase(&mut self, at: &Avoidance) -> f64;

    /// b(w): the part of a window of `segments` that a loss costs, 0 to 1.
    fn decrease(&self, segments: f64) -> f64;

    /// An ACK arrived; `seen` is what it shows, before congestion avoidance grows.
    fn on_ack(&mut self, seen: &Seen) {
        let _ = seen;
    }

    /// Congestion: the window was `before` bytes and is `after`.
    fn on_congestion(&mut self, seen: &Reduced) {
        let _ = seen;
    }

    /// Up to `now` the window did not limit the flow.
    fn on_unused(&mut self, now: Instant) {
        let _ = now;
    }

    /// The window became `cwnd` by a restart, an undo or another segment size.
    fn on_jump(&mut self, cwnd: Cwnd) {
        let _ = cwnd;
    }

    /// The last congestion was none; `before` is the state from before it.
    fn undo(&mut self, before: &Self);

    /// The least distance of departures, and what a new one does to a pending departure.
    fn pacing(&self) -> (Pacing, Revise) {
        (Pacing::Unpaced, Revise::NextDeparture)
    }

    /// Reports its variables.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Takes one parameter of its own; `None` where it does not know the key.
    fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError>;

    /// The parameters that the control takes, those of [`AimdParams`] among them.
    fn table(&self) -> &'static [ParamInfo];
}

/// An ACK of new data in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avoidance {
    pub(crate) now: Instant,
    /// Bytes.
    pub(crate) cwnd: f64,
    /// Bytes.
    pub(crate) smss: f64,
    /// Bytes.
    pub(crate) acked: f64,
    /// Smoothed round-trip time of RFC 6298; zero before a sample.
    pub(crate) rtt: Duration,
}

impl Avoidance {
    /// The window in segments.
    pub(crate) fn segments(&self) -> f64 {
        self.cwnd / self.smss
    }
}

/// Where a flow is when an ACK arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the first congestion.
    FirstSlowStart,
    /// After a timeout or a restart.
    SlowStart,
    /// The ACK acknowledges new data.
    Avoidance,
    /// Lost data is being repaired, or nothing new is acknowledged.
    Other,
}

/// What an ACK shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) now: Instant,
    pub(crate) stage: Stage,
    pub(crate) cwnd: Cwnd,
    /// Bytes.
    pub(crate) smss: u32,
    /// Round-trip time of the newest covered segment that was never retransmitted.
    pub(crate) rtt: Option<Duration>,
    /// The longest round trip that a pace should follow.
    pub(crate) longest_paced_rtt: Duration,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    /// A timeout, not a loss that ACKs proved or a mark.
    pub(crate) timeout: bool,
    pub(crate) before: Cwnd,
    pub(crate) after: Cwnd,
}

/// What can be set of the window itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AimdParams {
    /// Segments above which slow start is limited (RFC 3742); `None`: it never is.
    pub(crate) max_ssthresh: Option<u32>,
    /// At a timeout `ssthresh` is w (1 - b(w)) (Linux), not half the flight (RFC 5681, equation 4).
    pub(crate) rto_by_b: bool,
}

impl Default for AimdParams {
    fn default() -> Self {
        Self { max_ssthresh: Some(100), rto_by_b: false }
    }
}

/// `max_ssthresh` as tables show it.
pub(crate) const MAX_SSTHRESH: ParamInfo = ParamInfo {
    name: "max_ssthresh",
    default: "100",
    range: "off|2..1000000",
    summary: "segments above which slow start is limited to half of it per round trip (RFC 3742)",
};

/// `rto` as tables show it.
pub(crate) const RTO: ParamInfo = ParamInfo {
    name: "rto",
    default: "half",
    range: "half|b",
    summary: "ssthresh after a timeout: half the flight, or what b(w) leaves",
};

impl AimdParams {
    /// Takes one parameter; `None` where the key is not one of these.
    pub(crate) fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError> {
        match param.key() {
            "max_ssthresh" if param.text() == "off" => self.max_ssthresh = None,
            "max_ssthresh" => {
                let segments = param.integer(2..=1_000_000)?;
                self.max_ssthresh = u32::try_from(segments).ok();
            }
            "rto" => self.rto_by_b = param.choice(&["half", "b"])? == 1,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}

/// The window of a control that grows as `G` says.
#[derive(Clone, Debug)]
pub(crate) struct Aimd<G> {
    params: AimdParams,
    growth: G,
    cwnd: Cwnd,
    ssthresh: Window,
    /// Losses, marks and first timeouts; and the window at the last one.
    reductions: u32,
    reduced_from: Cwnd,
    /// The state before the last congestion episode; `None` before the first.
    saved: Option<Box<Saved<G>>>,
}

#[derive(Clone, Debug)]
struct Saved<G> {
    growth: G,
    cwnd: Cwnd,
    ssthresh: Window,
}

impl<G: Growth> Aimd<G> {
    /// A flow that starts from `init`.
    pub(crate) fn new(init: &CcInit, params: AimdParams, growth: G) -> Self {
        Self {
            params,
            growth,
            cwnd: Cwnd::from_window(init.initial_window),
            ssthresh: init.ssthresh,
            reductions: 0,
            reduced_from: Cwnd::from_window(Window::ZERO),
            saved: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd.window() < self.ssthresh
    }

    fn stage(&self, view: &FlowView, acked: u32) -> Stage {
        match () {
            () if view.phase == Phase::Recovery => Stage::Other,
            () if !self.in_slow_start() && acked > 0 => Stage::Avoidance,
            () if !self.in_slow_start() => Stage::Other,
            () if self.ssthresh == Window::MAX => Stage::FirstSlowStart,
            () => Stage::SlowStart,
        }
    }

    /// H9. Slow start on `acked` bytes; returns those that are left for congestion avoidance.
    fn slow_start(&mut self, view: &FlowView, ack: &AckSample) -> u32 {
        if !view.may_raise(self.cwnd.window(), self.ssthresh) {
            return 0;
        }
        // RFC 3465, section 2.3: at most 2 SMSS per ACK, 1 SMSS after a timeout. An ACK that covers many
        // segments counts as one for every two of them.
        let per_ack = if view.phase == Phase::Loss { view.smss } else { view.smss.saturating_mul(2) };
        let used = ack.acked.min(per_ack.saturating_mul(ack.segments.div_ceil(2).max(1)));
        let segments = self.cwnd.bytes() / f64::from(view.smss);
        let share = self.params.max_ssthresh.map_or(1.0, |max| limited_step(segments, max));
        let room = Cwnd::from_window(self.ssthresh).saturating_sub(self.cwnd);
        let step = Cwnd::from_bytes(f64::from(used) * share);
        self.cwnd = self.cwnd.saturating_add(step.min(room));
        if step > room {
            // As many bytes as `room` did not take.
            (step.saturating_sub(room).bytes() / share) as u32
        } else {
            0
        }
    }

    /// H6, on `acked` bytes: w += a(w) / w for each segment.
    fn congestion_avoidance(&mut self, view: &FlowView, acked: u32) {
        if !view.may_raise(self.cwnd.window(), self.ssthresh) {
            self.growth.on_unused(view.now);
            return;
        }
        let cwnd = self.cwnd.bytes();
        let at = Avoidance {
            now: view.now,
            cwnd,
            smss: f64::from(view.smss),
            acked: f64::from(acked).min(cwnd),
            rtt: view.srtt.unwrap_or(Duration::ZERO),
        };
        let a = self.growth.increase(&at);
        self.cwnd = self.cwnd.saturating_add(Cwnd::from_bytes(a * at.smss * (at.acked / cwnd)));
    }

    /// What the flow used of its window: all of it where the window limits the flow, else its flight.
    fn used(&self, view: &FlowView, flight: u32) -> Cwnd {
        if view.cwnd_limited {
            self.cwnd
        } else {
            self.cwnd.min(Cwnd::from_window(Window::from_bytes(u64::from(flight))))
        }
    }

    /// H7 up to the window itself: sets `ssthresh`, and returns w (1 - b(w)).
    fn lower_ssthresh(&mut self, view: &FlowView, used: Cwnd) -> Cwnd {
        let segments = used.bytes() / f64::from(view.smss);
        let left = segments * (1.0 - self.growth.decrease(segments));
        let smss = u64::from(view.smss);
        self.ssthresh = Window::from_bytes((left as u64).max(2).saturating_mul(smss));
        Cwnd::from_bytes(left * f64::from(view.smss)).max(Cwnd::from_window(Window::from_bytes(2 * smss)))
    }

    fn count_reduction(&mut self) {
        self.reductions = self.reductions.saturating_add(1);
        self.reduced_from = self.cwnd;
    }

    fn reduce(&mut self, view: &FlowView, flight: u32) {
        self.count_reduction();
        let before = self.cwnd;
        let left = self.lower_ssthresh(view, self.used(view, flight));
        self.cwnd = before.min(left);
        self.growth.on_congestion(&Reduced { timeout: false, before, after: self.cwnd });
    }
}

impl<G: Growth> CongestionControl for Aimd<G> {
    fn name(&self) -> &'static str {
        self.growth.name()
    }

    fn decision(&self) -> SendDecision {
        let mut decision = SendDecision::window(self.cwnd.window(), self.ssthresh);
        (decision.pacing, decision.revise) = self.growth.pacing();
        decision
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        // Nothing else is outstanding: the time since the last ACK was idle.
        if !sent.retransmission && view.flight_size <= sent.len {
            self.growth.on_unused(view.now);
        }
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        // RFC 3168, section 6.1.2: an ACK with ECE does not raise the window.
        let grows = view.phase != Phase::Recovery && ack.acked > 0 && !ack.ece;
        let mut acked = ack.acked;
        if grows && self.in_slow_start() {
            acked = self.slow_start(view, ack);
        }
        let stage = self.stage(view, acked);
        let seen = Seen {
            now: view.now,
            stage,
            cwnd: self.cwnd,
            smss: view.smss,
            rtt: ack.rtt,
            longest_paced_rtt: view.longest_paced_rtt(),
        };
        self.growth.on_ack(&seen);
        if grows && stage == Stage::Avoidance {
            self.congestion_avoidance(view, acked);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            // H7: a mark costs what a loss costs.
            CongestionEvent::Loss { .. } | CongestionEvent::Ecn => self.reduce(view, view.flight_size),
            CongestionEvent::Timeout { flight_size, first, window, ssthresh } => {
                let before = self.cwnd;
                if first {
                    self.count_reduction();
                }
                match ssthresh {
                    SsthreshRule::Keep => {}
                    SsthreshRule::AtMost(most) => self.ssthresh = most,
                    SsthreshRule::ByCc if first => {
                        let used = self.used(view, flight_size);
                        if self.params.rto_by_b {
                            self.lower_ssthresh(view, used);
                        } else {
                            // H8: RFC 5681, equation 4.
                            let least = Window::from_bytes(2 * u64::from(view.smss));
                            self.ssthresh = used.window().mul_ratio(1, 2).max(least);
                        }
                    }
                    SsthreshRule::ByCc => {}
                }
                self.cwnd = self.cwnd.min(Cwnd::from_window(window));
                if first {
                    self.growth.on_congestion(&Reduced { timeout: true, before, after: self.cwnd });
                } else {
                    self.growth.on_jump(self.cwnd);
                }
            }
            // A local drop says nothing about the path.
            _ => {}
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        if restart.window >= self.cwnd.window() {
            return;
        }
        if restart.cause != RestartCause::CleanTimeout && self.ssthresh != Window::MAX {
            // RFC 2861, section 3.1: most of what the flow had proved it could use is regained in slow start.
            self.ssthresh = self.ssthresh.max(self.cwnd.window().mul_ratio(3, 4));
        }
        self.cwnd = Cwnd::from_window(restart.window);
        self.growth.on_jump(self.cwnd);
    }

    fn on_smss_change(&mut self, _view: &FlowView, _old: u32) {
        self.growth.on_jump(self.cwnd);
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        let state = Saved { growth: self.growth.clone(), cwnd: self.cwnd, ssthresh: self.ssthresh };
        match self.saved.as_deref_mut() {
            Some(saved) => *saved = state,
            None => self.saved = Some(Box::new(state)),
        }
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let (mut window, mut ssthresh) = (self.cwnd, self.ssthresh);
        if let Some(saved) = self.saved.as_deref() {
            self.growth.undo(&saved.growth);
            (window, ssthresh) = (saved.cwnd, saved.ssthresh);
        }
        if let Undo::To { window: to, ssthresh: threshold } = *undo {
            (window, ssthresh) = (Cwnd::from_window(to), threshold);
        }
        self.cwnd = self.cwnd.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
        self.growth.on_jump(self.cwnd);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.report("cwnd", self.cwnd.bytes());
        report.report("ssthresh", self.ssthresh.bytes() as f64);
        report.report("reductions", f64::from(self.reductions));
        report.report("reduced_from", self.reduced_from.bytes());
        self.growth.metrics(report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let (mut own, mut growth) = (self.params, self.growth.clone());
        for param in params.iter() {
            if own.set(&param)?.is_none() && growth.set(&param)?.is_none() {
                return Err(param.unknown(growth.name(), growth.table()));
            }
        }
        (self.params, self.growth) = (own, growth);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
