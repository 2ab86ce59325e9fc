//! BBR version 3 (draft-ietf-ccwg-bbr, after -06): a model of the path instead of a window that
//! losses shrink.
//!
//! The model is what the path delivers (`max_bw`), its round trip without a queue (`min_rtt`), and
//! how much it holds safely in the long and in the short term. Pacing rate, run length and window
//! are functions of it. A loss is not a signal by itself: more than
//! [`loss_thresh`](BbrParams::loss_thresh) of a round trip's data is.
//!
//! ```text
//!   Startup ──full──► Drain ──empty──► Down ──safe──► Cruise ──2 to 3 s──► Refill ──round──► Up
//!      ▲                                ▲ ◄──────────────── full, or loss too high ──────────┘
//!      └──────── not full ── ProbeRtt ◄─┴── no lower RTT for 5 s, from any state
//! ```
//!
//! | file | concept | section |
//! |---|---|---|
//! | `state.rs` | states and their gains | 5.1.1, 5.6.1 |
//! | `model.rs`, `max_bw.rs`, `min_rtt.rs`, `aggregation.rs` | the model and its filters | 5.5 |
//! | `full_pipe.rs`, `startup.rs`, `drain.rs` | finding the bandwidth | 5.3.1, 5.3.2 |
//! | `probe_bw.rs`, `probe_rtt.rs` | the cycles that renew the model | 5.3.3, 5.3.4 |
//! | `loss.rs`, `episode.rs` | bounds from losses, marks and timeouts, and undo | 5.5.10, 5.5.11 |
//! | `control.rs` | pacing rate, quantum, window | 5.6 |
//!
//! All arithmetic is on integers (bytes, nanoseconds, bytes per second), with products in 128 bits
//! and quotients rounded down, so every machine computes the same.
//!
//! # Where it fails
//!
//! - More loss than the threshold is congestion to it, whatever its cause: goodput falls to half at
//!   2 % of random loss, and to a hundredth at 5 %. With fewer than 50 segments in flight, *one*
//!   lost segment is more than 2 %. [`loss_thresh`](BbrParams::loss_thresh) raises the limit for
//!   paths that lose for other reasons.
//! - A queue that others never let drain is taken for the path's round trip: `min_rtt`, and with it
//!   the flight, grow. Between flows of different round trips the longer one wins.
//! - Acknowledgments that arrive compressed, and the first bucket of a policer, show more bandwidth
//!   than there is; the excess lasts for two cycles.
//! - A flow that never uses its rate never renews it.

mod aggregation;
mod control;
mod drain;
mod draws;
mod episode;
mod full_pipe;
mod loss;
mod math;
mod max_bw;
mod min_rtt;
mod model;
mod params;
mod probe_bw;
mod probe_rtt;
mod startup;
mod state;
#[cfg(test)]
mod tests;

pub use params::BbrParams;
pub use state::State;

use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, LostRecord, Pacing, Phase, RateSample,
    Reaction, Recovery, Restart, Revise, SendDecision, SentSegment, Undo, Validation,
};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Rate, Window};
use aggregation::Aggregation;
use alloc::boxed::Box;
use alloc::sync::Arc;
use control::Control;
use draws::Draws;
use episode::Episode;
use full_pipe::FullPipe;
use loss::LossRound;
use math::mul_div;
use model::{Model, Rounds, UNSET};
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["bbr3"],
    summary: "paces by a model of the path: bandwidth, round trip, and the flight that it takes without loss",
    source: "draft-ietf-ccwg-bbr",
    keys: ParamRow::of::<BbrParams>,
    ..Entry::new("bbr", |params| {
        let params = BbrParams::from_params("bbr", params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(Bbr::new(init, params))))
    })
};

/// The state of one connection.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: BbrParams,
    state: State,
    model: Model,
    rounds: Rounds,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    /// The round in which Drain began.
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    loss_round: LossRound,
    episode: Episode,
    control: Control,
    draws: Draws,
}

/// One ACK.
#[derive(Clone, Copy, Debug)]
struct Ack<'a> {
    view: &'a FlowView,
    seen: &'a AckSample,
    /// The delivery-rate sample; without it there is no round, no end of a loss round, and nothing
    /// to adapt the long-term bound to.
    rs: Option<Sample>,
}

impl Ack<'_> {
    /// Bytes newly acknowledged or SACKed (`RS.newly_acked`).
    fn newly_acked(&self) -> u64 {
        u64::from(self.seen.newly_delivered)
    }

    fn pipe(&self) -> u64 {
        u64::from(self.view.pipe)
    }
}

/// A delivery-rate sample (section 4.1.2).
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Bytes per second.
    rate: u64,
    delivered: u64,
    prior_delivered: u64,
    tx_in_flight: u64,
    lost: u64,
    app_limited: bool,
}

impl Sample {
    fn new(rate: &RateSample, probe_rtt: &ProbeRtt) -> Self {
        Self {
            rate: mul_div(rate.delivered, 1_000_000_000, rate.interval.as_nanos()),
            delivered: rate.delivered,
            prior_delivered: rate.prior_delivered,
            tx_in_flight: u64::from(rate.tx_in_flight),
            lost: u64::from(rate.lost),
            app_limited: rate.app_limited || probe_rtt.limits(rate.prior_delivered),
        }
    }
}

impl Bbr {
    /// A flow that starts from `init`, or continues another control's (section 5.2.1).
    #[must_use]
    pub fn new(init: &CcInit, params: BbrParams) -> Self {
        Self::with_draws(init, params, Draws::new(init.seed))
    }

    fn with_draws(init: &CcInit, params: BbrParams, draws: Draws) -> Self {
        Self {
            state: State::Startup,
            model: Model::new(init),
            rounds: Rounds::new(init.delivered),
            aggregation: Aggregation::new(init.now),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(init.now),
            probe_rtt: ProbeRtt::default(),
            loss_round: LossRound::new(init.delivered),
            episode: Episode::default(),
            control: Control::new(init, &params),
            draws,
            params,
        }
    }

    /// The state of the machine.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    fn cwnd(&self) -> u64 {
        self.control.cwnd.bytes()
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn decision(&self) -> SendDecision {
        let pacing = Pacing::AtRate(Rate::from_bytes_per_second(self.control.pacing_rate));
        let mut decision = SendDecision::window(self.control.cwnd, Window::MAX).paced(pacing);
        decision.revise = Revise::Banked;
        // Packet conservation would turn every lost packet into a cut (section 5.6.4.4).
        decision.recovery = Recovery::Own;
        decision.validation = Validation::ByPace;
        decision.quantum = u32::try_from(self.control.quantum).unwrap_or(u32::MAX);
        decision
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        if sent.prior_pipe == 0 && view.app_limited {
            self.restart_from_idle(view);
        }
    }

    /// Section 5.2.3: `BBRUpdateModelAndState` and `BBRUpdateControlParameters`. What comes before
    /// `Model::bound_bw` sees the bandwidth of the previous ACK.
    fn on_ack(&mut self, view: &FlowView, seen: &AckSample) -> Reaction {
        let rs = seen.rate.map(|rate| Sample::new(&rate, &self.probe_rtt));
        let ack = Ack { view, seen, rs };
        self.episode.on_phase(view.phase);
        self.loss_round.on_ack(&ack);
        if self.rounds.on_ack(&ack) {
            self.cycle.rounds_since_probe_up += 1;
        }
        self.model.max_bw.on_ack(&ack);
        self.end_loss_round(&ack);
        self.aggregation.on_ack(&ack, self.model.bw, self.cwnd(), &self.rounds, &self.full_pipe);
        self.full_pipe.on_ack(&ack, self.rounds.start);
        self.leave_startup(&ack);
        self.leave_drain(&ack);
        self.update_cycle(&ack);
        self.update_min_rtt(&ack);
        self.update_probe_rtt(&ack);
        self.loss_round.restart(&ack);
        self.model.bound_bw();
        self.update_control(&ack);
        Reaction::None
    }

    fn on_lost(&mut self, view: &FlowView, lost: &LostRecord) {
        self.note_loss(view, lost);
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            // Fast recovery changes nothing at its entry. Outside of it, the loss is one that a
            // tail loss probe has repaired, and that no record shows.
            CongestionEvent::Loss { .. } if matches!(view.phase, Phase::Open | Phase::Disorder) => {
                self.on_repaired_loss(view);
            }
            CongestionEvent::Loss { .. } => {}
            CongestionEvent::Ecn => self.on_mark(view),
            CongestionEvent::Timeout { window, .. } => self.on_rto(view, window),
            // The enum may grow; an unknown signal is no reason to send more or less.
            _ => {}
        }
    }

    fn on_recovery_exit(&mut self, _view: &FlowView) {
        self.end_episode();
    }

    /// The core restarts no paced window after idleness; what is left is a timeout that lost
    /// nothing.
    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        self.control.cwnd = self.control.cwnd.min(restart.window);
        self.episode.close();
    }

    fn on_smss_change(&mut self, view: &FlowView, _old: u32) {
        self.control.smss = u64::from(view.smss);
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.save_state();
    }

    fn undo(&mut self, view: &FlowView, undo: &Undo) {
        let floor = match *undo {
            Undo::All => Window::ZERO,
            Undo::To { window, .. } => window,
        };
        self.take_back(view, floor.bytes());
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.window("cwnd", self.control.cwnd);
        report.number("mode", self.state.number());
        report.rate("bw_bit", Rate::from_bytes_per_second(self.model.bw));
        report.rate("max_bw_bit", Rate::from_bytes_per_second(self.model.max_bw.get()));
        report.number("pacing_gain", f64::from(self.pacing_gain()) / 100.0);
        if let Some(min_rtt) = self.model.min_rtt.get() {
            report.micros("min_rtt_us", min_rtt);
            report.report("bdp", self.bdp(self.model.bw) as f64, ackline_tcp_core::policy::Unit::Bytes);
        }
        report.window("inflight_longterm", window_of(self.model.inflight_longterm));
        report.window("inflight_shortterm", window_of(self.model.inflight_shortterm));
        if self.model.bw_shortterm != UNSET {
            report.rate("bw_shortterm_bit", Rate::from_bytes_per_second(self.model.bw_shortterm));
        }
        report.window("extra_acked", window_of(self.aggregation.extra_acked()));
        report.window("quantum", window_of(self.control.quantum));
        report.count("rounds", self.rounds.count);
        report.flag("full_bw_reached", self.full_pipe.reached);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.params.set("bbr", params)
    }
}

/// A bound of the model as a window; none if it is unset.
const fn window_of(bytes: u64) -> Window {
    Window::from_bytes(bytes)
}
