//! ProbeRTT (section 5.3.4): if no RTT as low as the lowest came for five seconds, the flight falls
//! to half of what the path holds, for 200 ms and a round trip, so that a queue of the flow's own
//! making is gone and the round trip shows.

use super::probe_bw::AckPhase;
use super::{Ack, Bbr, State};
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::cc::FlowView;

/// The state of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; `None` before the flight is small.
    done_at: Option<Instant>,
    /// A round trip has passed since.
    round_done: bool,
    /// Samples of data that left while `delivered` was between these two are those of a flow that
    /// was held back (`MarkConnectionAppLimited`).
    limited: Option<(u64, u64)>,
    /// The flow restarts from idle, until the next sample: it was quiet, and need not be made so.
    idle_restart: bool,
}

impl ProbeRtt {
    /// ProbeRTT limited the flow when `delivered` was `prior_delivered`.
    pub(super) fn limits(&self, prior_delivered: u64) -> bool {
        self.limited.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }
}

impl Bbr {
    /// `BBRCheckProbeRTT`.
    pub(super) fn update_probe_rtt(&mut self, ack: &Ack<'_>) {
        let delivered = ack.view.delivered;
        if self.state != State::ProbeRtt && self.model.min_rtt.is_probe_due() && !self.probe_rtt.idle_restart
        {
            self.state = State::ProbeRtt;
            self.save_cwnd(true);
            self.probe_rtt.done_at = None;
            self.probe_rtt.limited = Some((delivered, delivered));
            self.cycle.ack_phase = AckPhase::Stopping;
            self.rounds.begin(delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.rs.is_some() {
            self.probe_rtt.idle_restart = false;
        }
    }

    /// `BBRHandleProbeRTT`.
    fn handle_probe_rtt(&mut self, ack: &Ack<'_>) {
        let delivered = ack.view.delivered;
        if let Some((_, to)) = &mut self.probe_rtt.limited {
            *to = delivered.saturating_add(ack.pipe());
        }
        if self.probe_rtt.done_at.is_none() && ack.pipe() <= self.probe_rtt_cwnd() {
            self.probe_rtt.done_at = Some(ack.view.now + self.params.probe_rtt_time);
            self.probe_rtt.round_done = false;
            self.rounds.begin(delivered);
        } else if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.rounds.start;
            if self.probe_rtt.round_done {
                self.leave_probe_rtt(ack.view);
            }
        }
    }

    /// `BBRCheckProbeRTTDone`, `BBRExitProbeRTT`.
    fn leave_probe_rtt(&mut self, view: &FlowView) {
        if self.probe_rtt.done_at.is_none_or(|at| view.now <= at) {
            return;
        }
        self.model.min_rtt.on_probed(view.now);
        self.restore_cwnd();
        self.model.reset_shortterm();
        if self.full_pipe.reached {
            self.enter_down(view);
            self.enter_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// Section 5.4, `BBRHandleRestartFromIdle`: the application has written again after the last
    /// byte was acknowledged.
    pub(super) fn restart_from_idle(&mut self, view: &FlowView) {
        self.probe_rtt.idle_restart = true;
        self.aggregation.restart(view.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.leave_probe_rtt(view);
        }
    }
}
