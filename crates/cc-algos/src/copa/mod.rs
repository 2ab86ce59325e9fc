//! Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
//! NSDI 2018): the window moves towards the rate that weighs throughput against queueing delay.
//!
//! ```text
//!   d_q      = RTTstanding - RTTmin           RTTstanding: smallest RTT of srtt / 2; RTTmin: of 10 s
//!   lambda   = cwnd / RTTstanding             segments per second
//!   lambda_t = 1 / (delta d_q)                the rate that it aims at
//!   per segment acknowledged:
//!     lambda <= lambda_t:  cwnd += v / (delta cwnd)        otherwise:  cwnd -= v / (delta cwnd)
//!   v = 1, and doubles per window of data once the direction has stayed the same for three
//!   slow start: doubles per round trip until lambda > lambda_t
//!   pace = 2 cwnd / RTTstanding
//!   delta = 0.5; smaller while somebody else fills the queue
//! ```
//!
//! | file | concept | section |
//! |---|---|---|
//! | `mod.rs` | target rate, steps towards it, slow start, pace | 2, 2.1 |
//! | `delays.rs` | RTTstanding, RTTmin, RTTmax | 2, 2.2 |
//! | `velocity.rs` | how fast it moves | 2.1 |
//! | `mode.rs` | default and competitive mode | 2.2 |
//!
//! A loss is no signal in default mode, and halves 1/delta in competitive mode. What the paper does
//! not have: a step never adds more than what was acknowledged, nor takes more than half of it,
//! however large v is; a window that the flow does not use does not grow; a mark (ECN) halves the
//! window (RFC 3168, section 6.1.2), because a queue that marks stays too short to be seen; slow
//! start follows idleness and timeouts, up to `ssthresh`.
//!
//! # Where it fails
//!
//! - A queue of less than about 2/delta segments shows no delay: in default mode losses then do not
//!   stop it. So does a policer, which has no queue at all.
//! - RTTmin is too large for a flow that begins while others keep a queue, until that is empty.
//! - A short segment has a shorter round trip than a full one on a slow link; for ten seconds the
//!   difference looks like a queue.
//! - Jitter of more than a tenth of the RTT's variation looks like a flow that fills the queue.
//! - Two flows may keep each other from emptying the queue; both then compete with somebody who is not
//!   there, and fill it ([`competitive`](CopaParams::competitive)).

mod delays;
mod mode;
mod params;
#[cfg(test)]
mod tests;
mod velocity;

pub use params::CopaParams;

use crate::round_trip::RoundTrip;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Pacing, Reaction, Recovery, Restart,
    RestartCause, Revise, SendDecision, SentSegment, SsthreshRule, Undo,
};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Rate, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use delays::{Delays, Rtts};
use mode::Mode;
use velocity::Velocity;

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "moves towards 1/(delta d_q), the rate that weighs throughput against queueing delay",
    source: "Arun and Balakrishnan 2018",
    keys: ParamRow::of::<CopaParams>,
    ..Entry::new("copa", |params| {
        let params = CopaParams::from_params("copa", params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(Copa::new(init, params))))
    })
};

/// Windows per round trip at which it paces (section 2.1). With one, what the pacer is late would be
/// lost; with two, the window stays the limit.
const PACE: f64 = 2.0;
/// The smallest window in segments that steps lead to.
const LEAST: f64 = 2.0;
/// The largest window in bytes: four times the largest of TCP (RFC 7323, section 2.3).
const MOST: f64 = 4_294_967_296.0;
/// What [`Pacing::WindowOverRtt`] calls a gain of two.
const TWICE: u16 = 512;

/// The state of one connection.
#[derive(Clone, Debug)]
pub struct Copa {
    params: CopaParams,
    flow: Flow,
    delays: Delays,
    round: RoundTrip,
    smss: f64,
    /// As of the last event; `None` before an RTT sample.
    pace: Option<Rate>,
    /// As it was when the last episode of congestion began.
    saved: Flow,
}

/// What an undo restores.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Congestion window in bytes.
    cwnd: f64,
    /// Never above the window, except in slow start.
    ssthresh: Window,
    velocity: Velocity,
    mode: Mode,
}

impl Copa {
    /// A flow that starts from `init`, or continues another control's.
    #[must_use]
    pub fn new(init: &CcInit, params: CopaParams) -> Self {
        let cwnd = init.initial_window.as_f64().min(MOST);
        let flow =
            Flow { cwnd, ssthresh: init.ssthresh, velocity: Velocity::new(cwnd), mode: Mode::new(init.now) };
        let mut copa = Self {
            params,
            flow,
            delays: Delays::new(init),
            round: RoundTrip::default(),
            smss: f64::from(init.smss),
            pace: None,
            saved: flow,
        };
        copa.set_pace(&FlowView::new(init.now, init.smss));
        copa
    }

    fn window(&self) -> Window {
        Window::from_f64(self.flow.cwnd)
    }

    fn in_slow_start(&self) -> bool {
        self.window() < self.flow.ssthresh
    }

    /// Sets the window, and is out of slow start.
    fn set_window(&mut self, bytes: f64) {
        self.flow.cwnd = bytes.min(MOST);
        self.flow.ssthresh = self.flow.ssthresh.min(self.window());
    }

    /// Section 2.1, steps 2 and 3: lambda > lambda_t, multiplied out, so that no queue is no
    /// division by zero.
    fn is_above_target(&self, rtts: &Rtts) -> bool {
        let queued = self.flow.cwnd / self.smss * rtts.queueing().as_nanos() as f64;
        queued > self.flow.mode.inverse_delta(&self.params) * rtts.standing.as_nanos() as f64
    }

    /// Section 2.1, step 3: v / (delta cwnd) segments for each one acknowledged.
    fn step(&self, acked: f64) -> f64 {
        let per_byte = self.flow.velocity.get() * self.flow.mode.inverse_delta(&self.params) * self.smss;
        acked * per_byte / self.flow.cwnd.max(1.0)
    }

    fn move_window(&mut self, view: &FlowView, ack: &AckSample) {
        let acked = f64::from(ack.newly_delivered);
        let above = self.delays.rtts.is_some_and(|rtts| self.is_above_target(&rtts));
        let before = self.flow.cwnd;
        if above {
            if self.in_slow_start() {
                self.flow.velocity = Velocity::new(before);
            }
            let least = (LEAST * self.smss).min(before);
            self.set_window((before - self.step(acked).min(acked / 2.0)).max(least));
            return;
        }
        // RFC 3168, section 6.1.2: an ACK that tells of marks does not raise the window.
        if ack.ece || !view.may_raise(self.window(), self.flow.ssthresh) {
            return;
        }
        let step = if self.in_slow_start() { acked } else { self.step(acked).min(acked) };
        self.flow.cwnd = (before + step).min(MOST);
    }

    /// Section 2.1: two windows per RTTstanding. Slower than a segment per second it never is: a
    /// path that stalled gives samples that would make the flow wait as long for the next one.
    fn set_pace(&mut self, view: &FlowView) {
        self.pace = self.delays.rtts.map(|rtts| {
            let seconds = rtts.standing.min(view.longest_paced_rtt()).as_nanos().max(1) as f64 / 1e9;
            let rate = (PACE * self.flow.cwnd / seconds).max(self.smss);
            Rate::from_bytes_per_second(rate as u64)
        });
    }

    /// After a timeout a window below two segments becomes two, if `window` permits that.
    fn raise_to_two(&mut self, window: Window) {
        let two = LEAST * self.smss;
        if window.as_f64() >= two {
            self.flow.cwnd = self.flow.cwnd.max(two);
        }
    }

    /// Slow start from at most `window`.
    fn start_again(&mut self, view: &FlowView, window: Window) {
        self.flow.cwnd = self.flow.cwnd.min(window.as_f64());
        self.flow.velocity = Velocity::new(self.flow.cwnd);
        self.flow.mode.forget(view.now);
        self.set_pace(view);
    }
}

impl CongestionControl for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn decision(&self) -> SendDecision {
        let pacing = self.pace.map_or(Pacing::WindowOverRtt { gain: TWICE }, Pacing::AtRate);
        let mut decision = SendDecision::window(self.window(), self.flow.ssthresh).paced(pacing);
        decision.revise = Revise::Banked;
        // Packet conservation would make a signal of every loss.
        decision.recovery = Recovery::Own;
        decision
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        if !sent.retransmission && view.flight_size <= sent.len {
            self.flow.mode.forget(view.now);
        }
    }

    fn wants_each_departure(&self) -> bool {
        false
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            let srtt = view.srtt.unwrap_or(rtt);
            self.delays.take(view.now, rtt, srtt, self.params.min_rtt_window);
        }
        if self.in_slow_start() {
            self.flow.mode.forget(view.now);
        }
        if let Some(rtts) = self.delays.rtts {
            let srtt = view.srtt.unwrap_or(rtts.standing);
            self.flow.mode.on_ack(view.now, &rtts, srtt, &self.params);
        }
        if ack.newly_delivered > 0 {
            self.move_window(view, ack);
        }
        if self.round.ends(view) {
            self.flow.velocity.on_window(self.flow.cwnd);
            self.flow.mode.on_window();
        }
        self.set_pace(view);
        Reaction::None
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        self.flow.mode.on_loss(&self.params);
        match *event {
            CongestionEvent::Ecn => {
                self.set_window((self.flow.cwnd / 2.0).max((LEAST * self.smss).min(self.flow.cwnd)));
                self.flow.velocity = Velocity::new(self.flow.cwnd);
                self.set_pace(view);
            }
            CongestionEvent::Timeout { window, ssthresh, first, .. } => {
                match ssthresh {
                    SsthreshRule::To(value) => self.flow.ssthresh = value,
                    // RFC 5681, equation 4; what the path holds ends slow start before it.
                    SsthreshRule::ByCc if first => {
                        let half = (self.flow.cwnd / 2.0).max(LEAST * self.smss);
                        self.flow.ssthresh = Window::from_f64(half);
                    }
                    SsthreshRule::ByCc | SsthreshRule::Keep => {}
                }
                self.raise_to_two(window);
                self.start_again(view, window);
            }
            // Section 2.2: only delta follows a loss.
            _ => {}
        }
    }

    fn on_restart(&mut self, view: &FlowView, restart: &Restart) {
        if restart.cause == RestartCause::CleanTimeout {
            self.raise_to_two(restart.window);
        } else if self.window() <= restart.window {
            return;
        } else if self.flow.ssthresh != Window::MAX {
            // RFC 2861, section 3.1.
            self.flow.ssthresh = self.flow.ssthresh.max(self.window().mul_ratio(3, 4));
        }
        self.start_again(view, restart.window);
    }

    fn on_smss_change(&mut self, view: &FlowView, _old: u32) {
        self.smss = f64::from(view.smss);
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.saved = self.flow;
    }

    fn undo(&mut self, view: &FlowView, undo: &Undo) {
        let now = self.flow;
        match *undo {
            Undo::All => {
                self.flow = self.saved;
                self.flow.mode.forget(view.now);
                self.flow.cwnd = self.flow.cwnd.max(now.cwnd);
                self.flow.ssthresh = self.flow.ssthresh.max(now.ssthresh);
            }
            Undo::To { window, ssthresh } => {
                self.flow.cwnd = now.cwnd.max(window.as_f64()).min(MOST);
                self.flow.ssthresh = now.ssthresh.max(ssthresh);
            }
        }
        self.flow.velocity = Velocity::new(self.flow.cwnd);
        self.set_pace(view);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.bytes("cwnd", self.flow.cwnd);
        report.window("ssthresh", self.flow.ssthresh);
        report.number(
            "mode",
            match (self.in_slow_start(), self.flow.mode.is_competitive()) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) => 2,
            },
        );
        report.number("delta", 1.0 / self.flow.mode.inverse_delta(&self.params));
        report.number("velocity", self.flow.velocity.get());
        if let Some(rtts) = self.delays.rtts {
            report.micros("min_rtt_us", rtts.min);
            report.micros("standing_rtt_us", rtts.standing);
            report.micros("queue_us", rtts.queueing());
        }
        if let Some(pace) = self.pace {
            report.rate("pace_bit", pace);
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.params.set("copa", params)
    }
}
