//! ProbeBW (section 5.3.3): a cycle of four states that looks for more bandwidth every two to three
//! seconds, or as often as Reno would, and leaves room for others in between.
//!
//! ```text
//!   Down ──► Cruise ──► Refill ──► Up ──► Down
//!   0.9      1          1          1.25     × bandwidth
//! ```

use super::math::mul_div;
use super::{Ack, Bbr, State, UNSET};
use ackline_tcp_core::policy::cc::FlowView;
use ackline_tcp_core::{Duration, Instant};

/// The largest exponent of the slope in Up.
const MOST_UP_ROUNDS: u32 = 30;

/// Where the ACKs of a probe are (`BBR.ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// No probe has been sent, or all of its ACKs have come.
    Init,
    /// Data of Refill is acknowledged.
    Refilling,
    /// Up has begun; the ACKs are of data sent before.
    Starting,
    /// The ACKs are of data sent in Up.
    Feedback,
    /// Up is over; its ACKs still come.
    Stopping,
}

/// The state of the cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// When Down began.
    stamp: Instant,
    /// How long after that Refill comes.
    wait: Duration,
    /// Rounds since the last probe.
    pub(super) rounds_since_probe_up: u64,
    pub(super) ack_phase: AckPhase,
    /// What is lost now was sent in the probe, or just before it.
    pub(super) is_sample: bool,
    /// Rounds of Up in which the long-term bound could be raised.
    up_rounds: u32,
    /// Bytes acknowledged in Up that have not raised it yet.
    up_acked: u64,
    /// Bytes acknowledged that raise it by a segment.
    per_increase: u64,
    /// The last probe was ended by losses.
    pub(super) was_too_high: bool,
    /// The last probe was ended before it could cause losses.
    was_precautionary: bool,
}

impl Cycle {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            stamp: now,
            wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            ack_phase: AckPhase::Init,
            is_sample: false,
            up_rounds: 0,
            up_acked: 0,
            per_increase: UNSET,
            was_too_high: false,
            was_precautionary: false,
        }
    }
}

impl Bbr {
    /// Section 5.3.3.9, `BBRStartProbeBW_DOWN`.
    pub(super) fn enter_down(&mut self, view: &FlowView) {
        self.loss_round.reset();
        self.cycle.per_increase = UNSET;
        // `BBRPickProbeWait`.
        self.cycle.rounds_since_probe_up = self.draws.rounds();
        self.cycle.wait = self.params.probe_wait.saturating_add(self.draws.below(self.params.probe_jitter));
        self.cycle.stamp = view.now;
        self.cycle.ack_phase = AckPhase::Stopping;
        self.rounds.begin(view.delivered);
        self.state = State::Down;
    }

    pub(super) const fn enter_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// `BBRStartProbeBW_REFILL`.
    pub(super) const fn enter_refill(&mut self, view: &FlowView) {
        self.model.reset_shortterm();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.was_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.begin(view.delivered);
        self.state = State::Refill;
    }

    /// `BBRStartProbeBW_UP`.
    fn enter_up(&mut self, ack: &Ack<'_>) {
        self.cycle.is_sample = true;
        self.cycle.ack_phase = AckPhase::Starting;
        self.rounds.begin(ack.view.delivered);
        self.full_pipe.reset(ack.rs.map_or(0, |rs| rs.rate));
        self.state = State::Up;
        self.raise_slope();
    }

    /// `BBRUpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &Ack<'_>) {
        if !self.full_pipe.reached || self.adapt_longterm(ack) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.view) => self.enter_refill(ack.view),
            State::Down if self.is_time_to_cruise(ack) => self.enter_cruise(),
            State::Refill if self.rounds.start => self.enter_up(ack),
            State::Up => self.judge_probe(ack),
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill | State::ProbeRtt => {
            }
        }
    }

    /// Section 5.3.3.8: the wait is over, or Reno would have regained in so many rounds what a loss
    /// takes from it.
    fn is_time_to_probe(&self, view: &FlowView) -> bool {
        let reno_rounds = (self.target_inflight() / self.control.smss).min(self.params.probe_rounds);
        view.now > self.cycle.stamp + self.cycle.wait || self.cycle.rounds_since_probe_up >= reno_rounds
    }

    /// Section 5.3.3.1: the queue is gone, and there is headroom.
    fn is_time_to_cruise(&self, ack: &Ack<'_>) -> bool {
        ack.pipe() <= self.inflight_with_headroom() && ack.pipe() <= self.inflight(self.model.max_bw.get())
    }

    /// Sections 5.3.3.6 and 5.3.3.7: whether Up ends. The pipe is that before the ACK, with what
    /// may leave at once: after it, there is always room below the bound.
    fn judge_probe(&mut self, ack: &Ack<'_>) {
        let longterm = self.model.inflight_longterm;
        let pipe = u64::from(ack.seen.prior_pipe).saturating_add(self.control.quantum);
        if self.cycle.was_too_high && pipe >= longterm {
            self.cycle.was_precautionary = true;
            self.cycle.was_too_high = false;
            self.enter_down(ack.view);
        } else if ack.view.cwnd_limited && self.cwnd() >= longterm {
            // The bound, and not the path, keeps the rate from growing.
            self.full_pipe.reset(ack.rs.map_or(0, |rs| rs.rate));
        } else if self.full_pipe.now {
            self.cycle.was_too_high = false;
            self.enter_down(ack.view);
        }
    }

    /// Section 5.5.10.1, `BBRAdaptLongTermModel`. True if the next probe begins at once.
    fn adapt_longterm(&mut self, ack: &Ack<'_>) -> bool {
        let Some(rs) = &ack.rs else { return false };
        if self.rounds.start {
            match self.cycle.ack_phase {
                AckPhase::Starting => self.cycle.ack_phase = AckPhase::Feedback,
                AckPhase::Stopping => {
                    self.cycle.is_sample = false;
                    self.cycle.ack_phase = AckPhase::Init;
                    if self.state.is_probe_bw() {
                        if !rs.app_limited {
                            self.model.max_bw.advance();
                        }
                        // The bound held without losses, so it may be too low.
                        if self.cycle.was_precautionary && !self.cycle.was_too_high {
                            self.enter_refill(ack.view);
                            return true;
                        }
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::Feedback => {}
            }
        }
        if self.model.inflight_longterm == UNSET || self.is_too_high(rs.lost, rs.tx_in_flight) {
            return false;
        }
        self.model.inflight_longterm = self.model.inflight_longterm.max(rs.tx_in_flight);
        if self.state == State::Up {
            self.probe_longterm_upward(ack);
        }
        false
    }

    /// `BBRProbeInflightLongtermUpward`: by 1, 2, 4, ... segments per round trip.
    fn probe_longterm_upward(&mut self, ack: &Ack<'_>) {
        if !ack.view.cwnd_limited || self.cwnd() < self.model.inflight_longterm {
            return;
        }
        self.cycle.up_acked = self.cycle.up_acked.saturating_add(ack.newly_acked());
        let segments = self.cycle.up_acked / self.cycle.per_increase.max(1);
        self.cycle.up_acked -= segments * self.cycle.per_increase;
        let raised = self.model.inflight_longterm.saturating_add(mul_div(segments, self.control.smss, 1));
        self.model.inflight_longterm = raised.min(UNSET - 1);
        if self.rounds.start {
            self.raise_slope();
        }
    }

    /// `BBRRaiseInflightLongtermSlope`.
    fn raise_slope(&mut self) {
        let per_increase = self.cwnd() >> self.cycle.up_rounds;
        self.cycle.per_increase = per_increase.max(self.control.smss);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_UP_ROUNDS);
    }
}
