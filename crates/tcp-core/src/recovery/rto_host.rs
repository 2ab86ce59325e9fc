//! The retransmission timeout (RFC 6298, section 5), and the host of the response to it.
//!
//! A response proposes, the core disposes. Three rules hold whatever a response wants: each expiry sends at
//! most one segment and backs off; after [`ConnConfig::max_undecided_rtos`] expiries without a decision the
//! conventional response takes over, head first; new data stays inside the peer's window.
//!
//! A response hears of ACKs from the first expiry of a connection on: before that it has nothing to judge.

use crate::config::ConnConfig;
use crate::conn::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{CongestionEvent, Phase, Restart, RestartCause};
use crate::policy::rto::{
    AckFacts, RtoCc, RtoGate, RtoPhase, RtoRtt, RtoSend, RtoStep, RtoTags, RtoTimer, RtoVerdict,
};
use crate::seq::SeqNum;
use crate::snd::Sender;
use crate::snd::scoreboard::Lost;
use crate::time::{Duration, Instant};

/// What the host remembers of timeouts.
#[derive(Debug)]
pub(crate) struct RtoHost {
    /// Consecutive expiries without a cumulative ACK.
    pub(crate) expiries: u32,
    /// Consecutive expiries without a decision.
    undecided: u32,
    /// The conventional response has taken over until the recovery point is acknowledged.
    takeover: bool,
    /// What an expiry (or a step on an ACK) wants sent, and did not leave yet.
    pub(crate) send: Option<RtoSend>,
    /// What may be sent apart from that.
    gate: RtoGate,
}

impl Default for RtoHost {
    fn default() -> Self {
        Self { expiries: 0, undecided: 0, takeover: false, send: None, gate: RtoGate::ByCc }
    }
}

impl Sender {
    /// Where the response to the last timeout stands.
    pub(crate) fn rto_phase(&self) -> RtoPhase {
        let Some(flight) = self.flight.as_deref() else { return RtoPhase::Open };
        if flight.recovery.rto.takeover {
            let repairing = self.snd_una.lt(flight.recovery.recovery_point);
            return if repairing { RtoPhase::Repair } else { RtoPhase::Open };
        }
        match self.rto.as_deref() {
            Some(response) if self.rto_heard => response.phase(),
            _ => RtoPhase::Open,
        }
    }

    /// The retransmission timer fired.
    pub(crate) fn on_rto_expiry(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let Some(flight) = self.flight.as_deref_mut() else {
            self.rto_at = Instant::FAR_FUTURE;
            return;
        };
        if flight.board.is_empty() {
            self.rto_at = Instant::FAR_FUTURE;
            return;
        }
        if flight.recovery.rto.send.is_some() {
            // What the last expiry wanted to send is still held by the device or the scheduler.
            self.rto_at = ctx.now + self.rtt.backed_off_rto(config);
            return;
        }
        ctx.counters.tcp_timeouts += 1;
        self.stats.timeouts += 1;
        if flight.recovery.phase == Phase::Recovery {
            ctx.counters.tcp_loss_failures += 1;
        }
        let in_episode = flight.recovery.in_episode();
        let host = &mut flight.recovery.rto;
        host.expiries = host.expiries.saturating_add(1);
        let limit = config.max_undecided_rtos;
        let takeover = limit != 0 && host.undecided >= limit;
        host.takeover = takeover;
        host.gate = RtoGate::ByCc;
        let view = self.rto_view(ctx.now, self.pipe(), in_episode);
        let step = match self.rto.as_deref_mut() {
            Some(response) if !takeover => {
                self.rto_heard = true;
                response.on_rto(&view)
            }
            _ => RtoStep::conventional(self.smss),
        };
        if let Some(flight) = self.flight.as_deref_mut() {
            let (una, nxt) = (self.snd_una, self.snd_nxt);
            let from = flight.recovery.phase;
            flight.recovery.begin(Phase::Loss, una, nxt);
            if from != Phase::Loss {
                ctx.trace(|| TraceEvent::Phase { from, to: Phase::Loss });
            }
        }
        // Each expiry backs off (RFC 6298, 5.5), whatever the step says about the timer.
        self.rtt.back_off();
        let step = RtoStep { timer: RtoTimer::Restart, ..step };
        self.apply(ctx, config, &step, None);
        // Whoever neither leaves Probe nor repeats the head has not decided.
        let undecided = self.rto_phase() == RtoPhase::Probe || step.send != RtoSend::Head;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let host = &mut flight.recovery.rto;
        host.undecided = if undecided { host.undecided.saturating_add(1) } else { 0 };
        let expiries = host.expiries;
        let rto = self.rtt.backed_off_rto(config);
        ctx.trace(|| TraceEvent::Rto { expiries, rto });
    }

    /// What may be sent apart from what an expiry wants sent. Only a response that waits for evidence may hold
    /// data back.
    pub(crate) fn rto_gate(&self) -> RtoGate {
        match self.flight.as_deref() {
            Some(flight) if self.rto_heard && self.rto_phase() == RtoPhase::Probe => flight.recovery.rto.gate,
            _ => RtoGate::ByCc,
        }
    }

    /// SND.UNA advanced.
    pub(crate) fn on_rto_progress(&mut self) {
        let probing = self.rto_phase() == RtoPhase::Probe;
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.recovery.rto.expiries = 0;
            if !probing {
                flight.recovery.rto.undecided = 0;
            }
        }
    }

    /// Shows an ACK to the response. True where a step consumed it.
    pub(crate) fn rto_response_on_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        prior_pipe: u32,
        facts: &AckFacts,
        rtt: Option<Duration>,
    ) -> bool {
        let in_episode = self.flight.as_deref().is_some_and(|flight| flight.recovery.in_episode());
        let takeover = self.flight.as_deref().is_some_and(|flight| flight.recovery.rto.takeover);
        if takeover {
            return false;
        }
        let probing = self.rto_phase() == RtoPhase::Probe;
        let view = self.rto_view(ctx.now, prior_pipe, in_episode);
        let Some(step) = self.rto.as_deref_mut().and_then(|response| response.on_ack(&view, facts)) else {
            return false;
        };
        self.apply(ctx, config, &step, rtt);
        if probing
            && self.rto_phase() != RtoPhase::Probe
            && let Some(flight) = self.flight.as_deref_mut()
        {
            flight.recovery.rto.undecided = 0;
        }
        true
    }

    /// Does what a step says. `rtt`: what the ACK at hand measured.
    fn apply(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, step: &RtoStep, rtt: Option<Duration>) {
        let RtoStep { send, tags, gate, cc, rtt: sample, timer, cwr, verdict } = *step;
        let flight_size = self.flight_size();
        let first = self.flight.as_deref().is_none_or(|flight| flight.recovery.rto.expiries <= 1);
        if let Some(flight) = self.flight.as_deref_mut() {
            match tags {
                RtoTags::Keep => {}
                RtoTags::ClearSack => flight.board.retag(false, Lost::None),
                RtoTags::AllLost => flight.board.retag(false, Lost::All),
                RtoTags::UnsackedLost => flight.board.retag(true, Lost::All),
                RtoTags::Unmark => flight.board.retag(true, Lost::None),
            }
            if matches!(tags, RtoTags::AllLost | RtoTags::UnsackedLost) {
                flight.recovery.recovery_point = self.snd_nxt;
            }
            flight.recovery.rto.gate = gate;
            if send != RtoSend::Nothing {
                flight.recovery.rto.send = Some(send);
            }
            if verdict == Some(RtoVerdict::Spurious) {
                ctx.counters.tcp_undo += 1;
                ctx.trace(|| TraceEvent::Undo);
                let from = flight.recovery.phase;
                flight.recovery.phase = Phase::Open;
                flight.recovery.recovery_point = self.snd_una - 1;
                ctx.trace(|| TraceEvent::Phase { from, to: Phase::Open });
            }
        }
        if cwr || matches!(cc, RtoCc::Timeout { .. }) {
            self.on_reduction();
        }
        let view = self.flow_view(ctx.now);
        if let Some(policy) = self.cc.as_deref_mut() {
            match cc {
                RtoCc::Untold => {}
                RtoCc::Timeout { window, ssthresh } => {
                    if first {
                        policy.checkpoint(&view);
                    }
                    let event = CongestionEvent::Timeout { flight_size, first, window, ssthresh };
                    policy.on_congestion(&view, &event);
                }
                RtoCc::CleanTimeout { window } => {
                    let restart = Restart::new(RestartCause::CleanTimeout, window, Duration::ZERO);
                    policy.on_restart(&view, &restart);
                }
                RtoCc::Undo(undo) => policy.undo(&view, &undo),
            }
        }
        match (sample, rtt) {
            (RtoRtt::Take, Some(rtt)) => self.rtt.take(rtt, config, ctx.granularity),
            (RtoRtt::Rfc4015 { srtt, rttvar }, Some(rtt)) => {
                self.rtt.adapt_to_spurious_timeout(rtt, srtt, rttvar, config, ctx.granularity);
            }
            _ => {}
        }
        if timer == RtoTimer::Backoff {
            self.rtt.back_off();
        }
        self.restart_rto(ctx.now, config);
    }

    /// The segment that an expiry wants sent: `[start, end)`. None where it is acknowledged meanwhile.
    pub(crate) fn rto_segment(&self) -> Option<(SeqNum, SeqNum)> {
        let flight = self.flight.as_deref()?;
        let smss = self.smss;
        let from = match flight.recovery.rto.send? {
            RtoSend::Nothing => return None,
            RtoSend::Head => self.snd_una,
            RtoSend::Again(seq) => seq.max(self.snd_una),
            RtoSend::NewElseHighest => {
                let end = self.buffer.limit().min(self.wnd_end()).min(self.snd_nxt + smss);
                if end.gt(self.snd_nxt) && flight.reserved.new_bytes() == 0 {
                    return Some((self.snd_nxt, end));
                }
                flight.board.highest()?
            }
        };
        let fitting = |seq| {
            let (start, end) = flight.board.segment_at(seq, smss)?;
            self.fit_window(start, end).map(|end| (start, end))
        };
        // Where the peer has taken the window back from what was asked for, the head can still leave.
        fitting(from).or_else(|| fitting(self.snd_una))
    }
}
