//! Pacing rate, quantum and window (section 5.6): functions of the model and the state.

use super::math::{mul_div, percent};
use super::{Ack, Bbr, BbrParams, State, UNSET};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{Duration, Window};

/// The largest quantum.
const MAX_QUANTUM: u64 = 64 << 10;
/// The smallest, in segments.
const MIN_QUANTUM: u64 = 2;
/// Quanta that the flight holds at least: one leaves, one is under way, one is acknowledged
/// (section 5.6.4.2).
const BUDGET: u64 = 3;
/// The smallest window in segments (`BBRMinPipeCwnd`): with it, delayed ACKs still come.
const MIN_PIPE_CWND: u64 = 4;
/// Room in segments for the probe itself in Up.
const UP_ROOM: u64 = 2;
/// The round trip that is assumed without a sample.
const ASSUMED_RTT: Duration = Duration::from_millis(1);

/// What the flow may do.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// Whole bytes, unless a timeout's response proposed a part of one.
    pub(super) cwnd: Window,
    /// Bytes per second.
    pub(super) pacing_rate: u64,
    /// Bytes that leave in one run.
    pub(super) quantum: u64,
    /// The largest flight that the model takes for useful, as of the last ACK.
    max_inflight: u64,
    pub(super) initial_window: u64,
    pub(super) smss: u64,
    /// No RTT sample has set the initial rate.
    assumes_rtt: bool,
}

impl Control {
    /// Section 5.6.2, `BBRInitPacingRate`.
    pub(super) fn new(init: &CcInit, params: &BbrParams) -> Self {
        let initial_window = init.initial_window.bytes();
        let mut control = Self {
            cwnd: init.initial_window,
            pacing_rate: 0,
            quantum: 0,
            max_inflight: UNSET,
            initial_window,
            smss: u64::from(init.smss),
            assumes_rtt: init.srtt.is_none(),
        };
        control.pacing_rate = control.initial_rate(init.srtt.unwrap_or(ASSUMED_RTT), params);
        control.quantum = control.quantum_of(control.pacing_rate);
        control
    }

    /// The initial window in a round trip, times the gain of Startup.
    fn initial_rate(&self, rtt: Duration, params: &BbrParams) -> u64 {
        let bytes = self.initial_window.saturating_mul(u64::from(params.startup_gain));
        mul_div(bytes, 1_000_000_000, rtt.as_nanos().saturating_mul(100)).max(self.least_rate())
    }

    /// Section 5.6.3, `BBRSetSendQuantum`: a millisecond's worth.
    fn quantum_of(&self, rate: u64) -> u64 {
        (rate / 1_000).min(MAX_QUANTUM).max(MIN_QUANTUM * self.smss)
    }

    /// One segment per second. A path that stalled for minutes gives samples that would make the
    /// flow wait as long for the next one.
    const fn least_rate(&self) -> u64 {
        self.smss
    }
}

impl Bbr {
    /// `BBRUpdateControlParameters`.
    pub(super) fn update_control(&mut self, ack: &Ack<'_>) {
        if self.control.assumes_rtt
            && let Some(rtt) = ack.seen.rtt
        {
            self.control.assumes_rtt = false;
            self.control.pacing_rate = self.control.initial_rate(rtt, &self.params);
        }
        self.set_pacing_rate(self.pacing_gain());
        self.control.quantum = self.control.quantum_of(self.control.pacing_rate);
        self.set_cwnd(ack);
    }

    /// Section 5.6.2, `BBRSetPacingRateWithGain`: `gain` percent of the bandwidth, less the margin
    /// that keeps a queue from standing. In Startup the rate only rises.
    pub(super) fn set_pacing_rate(&mut self, gain: u32) {
        let factor = u64::from(gain) * u64::from(100 - self.params.margin);
        let rate = mul_div(self.model.bw, factor, 10_000).max(self.control.least_rate());
        if self.full_pipe.reached || rate > self.control.pacing_rate {
            self.control.pacing_rate = rate;
        }
    }

    /// Section 5.6.4.2, `BBRQuantizationBudget`.
    fn quantize(&self, inflight: u64) -> u64 {
        let least = inflight.max(BUDGET * self.control.quantum).max(self.min_pipe_cwnd());
        let room = if self.state == State::Up { UP_ROOM * self.control.smss } else { 0 };
        least.saturating_add(room)
    }

    /// `BBRInflight` with a gain of one.
    pub(super) fn inflight(&self, bw: u64) -> u64 {
        self.quantize(self.bdp(bw))
    }

    /// `BBRInflightWithHeadroom`: the long-term bound, less what others may start with.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        match self.model.inflight_longterm {
            UNSET => UNSET,
            longterm => {
                let headroom = percent(longterm, self.params.headroom).max(self.control.smss);
                longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
            }
        }
    }

    pub(super) const fn min_pipe_cwnd(&self) -> u64 {
        MIN_PIPE_CWND * self.control.smss
    }

    /// `BBRProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        percent(self.bdp(self.model.bw), self.params.probe_rtt_gain).max(self.min_pipe_cwnd())
    }

    /// Section 5.6.4.6, `BBRSetCwnd`. The window grows by what is acknowledged, in recovery as
    /// otherwise.
    fn set_cwnd(&mut self, ack: &Ack<'_>) {
        let gained = percent(self.bdp(self.model.bw), self.cwnd_gain());
        let max_inflight = self.quantize(gained.saturating_add(self.aggregation.extra_acked()));
        self.control.max_inflight = max_inflight;
        let newly_acked = ack.newly_acked();
        if newly_acked > 0 {
            let mut cwnd = self.cwnd();
            if self.full_pipe.reached {
                cwnd = cwnd.saturating_add(newly_acked).min(max_inflight);
            } else if cwnd < max_inflight || ack.view.delivered < self.control.initial_window {
                cwnd = cwnd.saturating_add(newly_acked);
            }
            self.control.cwnd = Window::from_bytes(cwnd.max(self.min_pipe_cwnd()));
        }
        self.bound_cwnd_for_probe_rtt();
        self.bound_cwnd_for_model();
    }

    /// A window from before an episode, within what the model permits at present.
    pub(super) fn bound_restored_cwnd(&mut self) {
        let most = if self.full_pipe.reached { self.control.max_inflight } else { UNSET };
        let cwnd = self.cwnd().min(most).max(self.min_pipe_cwnd());
        self.control.cwnd = Window::from_bytes(cwnd);
        self.bound_cwnd_for_probe_rtt();
        self.bound_cwnd_for_model();
    }

    /// Section 5.6.4.5, `BBRBoundCwndForProbeRTT`.
    fn bound_cwnd_for_probe_rtt(&mut self) {
        if self.state == State::ProbeRtt {
            self.control.cwnd = self.control.cwnd.min(Window::from_bytes(self.probe_rtt_cwnd()));
        }
    }

    /// Section 5.6.4.7, `BBRBoundCwndForModel`.
    pub(super) fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => UNSET,
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let cap = cap.min(self.model.inflight_shortterm).max(self.min_pipe_cwnd());
        self.control.cwnd = self.control.cwnd.min(Window::from_bytes(cap));
    }
}
