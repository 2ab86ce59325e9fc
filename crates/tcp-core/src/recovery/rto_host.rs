//! The retransmission timeout (RFC 6298, section 5), and the host of the response to it.
//!
//! A response proposes, the core disposes. Three rules hold whatever a response wants: each expiry sends at
//! most one segment and backs off; after [`ConnConfig::max_undecided_rtos`] expiries without a decision the
//! conventional response takes over, head first; new data stays inside the peer's window. An expiry is decided
//! where it repeats the head and leaves the window to congestion control; one that repeats the head of the last
//! expiry, which nothing answered, leaves no more undecided than that did.
//!
//! A response hears of ACKs from the first expiry of a connection on: before that it has nothing to judge.

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::packet::SendReason;
use crate::policy::cc::{CongestionEvent, Phase, Restart, RestartCause};
use crate::policy::rto::{
    AckFacts, NewRtoResponse, RtoCc, RtoGate, RtoPhase, RtoRtt, RtoSend, RtoStep, RtoTags, RtoTimer,
    RtoVerdict,
};
use crate::scoreboard::Lost;
use crate::seq::SeqNum;
use crate::snd::Sender;
use crate::time::{Duration, Instant};
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

/// RTT of the oldest and of the newest segment never retransmitted that an ACK covers.
type Samples = (Option<Duration>, Option<Duration>);

/// What the response left of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Heard {
    /// Nobody else hears of the ACK.
    pub(crate) consumed: bool,
    /// Its RTT has been taken.
    pub(crate) sampled: bool,
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

    /// The window that is in force: congestion control's, or what the response to a timeout has put in its place.
    pub(crate) fn gated(&self, window: Window) -> Window {
        let suspended = self.flight.as_deref().is_some_and(|flight| flight.recovery.rto.suspended);
        match self.rto_gate() {
            RtoGate::Closed if suspended => Window::ZERO,
            RtoGate::NewOnly { window: new, .. } => window.min(new),
            RtoGate::ByCc | RtoGate::Closed => window,
        }
    }

    /// The retransmission timer fired.
    pub(crate) fn on_rto_expiry(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let (before, sack) = (self.rto_phase(), self.has_sack());
        let tail_was_repeated = self.open_probe().is_some_and(|(_, new)| !new);
        let Some(flight) = self.flight.as_deref_mut() else {
            self.rto_at = Instant::FAR_FUTURE;
            return;
        };
        flight.reneging_at = Instant::FAR_FUTURE;
        if flight.board.is_empty() {
            self.rto_at = Instant::FAR_FUTURE;
            return;
        }
        // RFC 2018, section 8: after a timeout nothing that was SACKed is relied upon, if the head shows that the peer
        // has dropped such data.
        if flight.board.head_is_sacked() {
            ctx.counters.tcp_sack_reneging += 1;
            flight.board.forget_sacked();
        }
        if flight.recovery.rto.send.is_some() {
            // What the last expiry wanted to send is still held by the device or the scheduler.
            self.rto_at = ctx.now + self.rtt.backed_off_rto(config);
            return;
        }
        ctx.counters.tcp_timeouts += 1;
        self.stats.timeouts += 1;
        if flight.recovery.phase == Phase::Recovery {
            let counters = &mut *ctx.counters;
            *if sack {
                &mut counters.tcp_sack_recovery_fail
            } else {
                &mut counters.tcp_reno_recovery_fail
            } += 1;
        }
        let in_episode = flight.recovery.in_episode();
        flight.recovery.on_timeout_for(self.snd_una, sack);
        let host = &mut flight.recovery.rto;
        host.expiries = host.expiries.saturating_add(1);
        host.takeover = false;
        host.gate = RtoGate::ByCc;
        if host.expiries == 1 && before != RtoPhase::Probe {
            // RFC 3522, section 3.2, step 1: RetransmitTS is that of what this timeout sends. A probe that is repeated
            // keeps that of its first copy, and so does one that a tail loss probe sent again before.
            flight.recovery.first_retransmission.take_if(|_| !tail_was_repeated);
        }
        let first_copy = flight.recovery.first_retransmission.filter(|_| tail_was_repeated);
        let step = self.step_on_expiry(ctx, config, in_episode);
        if let Some(flight) = self.flight.as_deref_mut() {
            let (una, nxt) = (self.snd_una, self.snd_nxt);
            let from = flight.recovery.phase;
            if config.undo {
                flight.recovery.arm_undo(una, flight.board.tally().again, true);
            }
            flight.recovery.begin(Phase::Loss, una, nxt);
            if first_copy.is_some() {
                flight.recovery.first_retransmission = first_copy;
            }
            if from != Phase::Loss {
                ctx.trace(|| TraceEvent::Phase { from, to: Phase::Loss });
            }
        }
        if step.gate != RtoGate::ByCc {
            self.void_reserved_data();
        }
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.recovery.rto.suspended = step.cc == RtoCc::Untold;
        }
        // Each expiry backs off (RFC 6298, 5.5), whatever the step says about the timer.
        let step = RtoStep { timer: RtoTimer::Backoff, ..step };
        self.apply(ctx, config, &step, (None, None));
        let expiries = self.flight.as_deref().map_or(0, |flight| flight.recovery.rto.expiries);
        let rto = self.rtt.backed_off_rto(config);
        ctx.trace(|| TraceEvent::Rto { expiries, rto });
        self.trace_rto_phase(ctx, before);
    }

    /// What the response makes of an expiry, or the conventional one where it has not decided too often.
    fn step_on_expiry(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, in_episode: bool) -> RtoStep {
        let view = self.rto_view(ctx, config, self.pipe(), in_episode);
        self.rto_heard = true;
        let mut step = match self.rto.as_deref_mut() {
            Some(response) => response.on_rto(&view),
            None => RtoStep::conventional(self.smss),
        };
        let probing = self.rto_phase() == RtoPhase::Probe;
        let Some(flight) = self.flight.as_deref_mut() else { return step };
        let host = &mut flight.recovery.rto;
        let limit = config.max_undecided_rtos;
        let head = step.send == RtoSend::Head;
        if head && !probing && step.gate == RtoGate::ByCc {
            host.undecided = 0;
        } else if head && host.expiries > 1 {
            // Nothing came since the last expiry, so that there was nothing to decide upon.
        } else if limit == 0 || host.undecided < limit {
            host.undecided = host.undecided.saturating_add(1);
        } else {
            host.undecided = 0;
            host.takeover = true;
            step = RtoStep::conventional(self.smss);
            if let Some(response) = self.rto.as_deref_mut() {
                response.on_takeover();
            }
        }
        step
    }

    /// Replaces the response. The new one begins with the next expiry. An episode under way is none of its own, and ends
    /// as one that was left undecided for too long: what is outstanding is repaired in the conventional way, and a window
    /// that congestion control was not told of yet is reduced.
    pub(crate) fn swap_rto_response(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        make: &NewRtoResponse,
    ) {
        if self.rto.is_none() {
            return;
        }
        let before = self.rto_phase();
        self.rto = Some(make());
        self.rto_heard = false;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let host = &mut flight.recovery.rto;
        (host.undecided, host.gate, host.suspended) = (0, RtoGate::ByCc, false);
        host.takeover |= before != RtoPhase::Open;
        if before == RtoPhase::Probe {
            // What the expiry wanted sent was for evidence that nobody waits for any more; the head goes out as lost.
            host.send = None;
            let step =
                RtoStep { send: RtoSend::Nothing, timer: RtoTimer::Keep, ..RtoStep::conventional(self.smss) };
            self.apply(ctx, config, &step, (None, None));
        }
        self.trace_rto_phase(ctx, before);
    }

    /// What waits in the egress scheduler was asked for by a window that is closed: it stays here.
    fn void_reserved_data(&mut self) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        flight.reserved.void_new(None);
        while let Some(entry) = flight.reserved.take_void(|entry| entry.out.reason != SendReason::WindowProbe)
        {
            flight.board.set_reserved(entry.out.seq.max(una), entry.out.end(), false);
        }
    }

    /// What may be sent apart from what an expiry wants sent. Only a response in the middle of an episode may hold
    /// data back.
    pub(crate) fn rto_gate(&self) -> RtoGate {
        match self.flight.as_deref() {
            Some(flight) if self.rto_heard && self.rto_phase() != RtoPhase::Open => flight.recovery.rto.gate,
            _ => RtoGate::ByCc,
        }
    }

    /// SND.UNA advanced.
    pub(crate) fn on_rto_progress(&mut self) {
        let probing = self.rto_phase() == RtoPhase::Probe;
        if let Some(flight) = self.flight.as_deref_mut() {
            let host = &mut flight.recovery.rto;
            host.expiries = 0;
            host.told = false;
            if !probing && host.gate == RtoGate::ByCc {
                host.undecided = 0;
            }
        }
    }

    /// Shows an ACK to the response. `rtt`: what the ACK measured, of the oldest and of the newest segment that it
    /// covers.
    pub(crate) fn rto_response_on_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        prior_pipe: u32,
        facts: &AckFacts,
        rtt: Samples,
    ) -> Heard {
        let in_episode = self.flight.as_deref().is_some_and(|flight| flight.recovery.in_episode());
        let takeover = self.flight.as_deref().is_some_and(|flight| flight.recovery.rto.takeover);
        if takeover {
            return Heard::default();
        }
        let before = self.rto_phase();
        let view = self.rto_view(ctx, config, prior_pipe, in_episode);
        let step = self.rto.as_deref_mut().and_then(|response| response.on_ack(&view, facts));
        let after = self.rto_phase();
        if before == RtoPhase::Probe
            && after != RtoPhase::Probe
            && let Some(flight) = self.flight.as_deref_mut()
        {
            // The evidence came before what was to be sent for it had left.
            flight.recovery.rto.send = None;
            flight.recovery.rto.undecided = 0;
        }
        let Some(step) = step else {
            self.trace_rto_phase(ctx, before);
            return Heard::default();
        };
        self.apply(ctx, config, &step, rtt);
        if step.verdict.is_none() && (before, after) == (RtoPhase::Probe, RtoPhase::Probe) {
            ctx.counters.tcp_stale_acks += 1;
            let ack = facts.ack;
            ctx.trace(|| TraceEvent::StaleAck { ack });
        }
        if step.verdict.is_some() && after == RtoPhase::Open {
            self.end_loss_phase(ctx);
        }
        self.trace_rto_phase(ctx, before);
        Heard { consumed: !step.pass, sampled: step.rtt != RtoRtt::Skip }
    }

    /// The response has left the episode before everything outstanding at its start is acknowledged.
    fn end_loss_phase(&mut self, ctx: &mut Ctx<'_>) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        if flight.recovery.phase != Phase::Loss {
            return;
        }
        flight.recovery.recovery_point = una;
        flight.recovery.end_if_acknowledged(una, &mut flight.board);
        let to = flight.recovery.phase;
        ctx.trace(|| TraceEvent::Phase { from: Phase::Loss, to });
    }

    fn trace_rto_phase(&self, ctx: &mut Ctx<'_>, from: RtoPhase) {
        let to = self.rto_phase();
        if from != to {
            ctx.trace(|| TraceEvent::RtoPhase { from, to });
        }
    }

    /// Does what a step says. `rtt`: what the ACK at hand measured.
    fn apply(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, step: &RtoStep, rtt: Samples) {
        let RtoStep { send, tags, gate, cc, rtt: sample, timer, cwr, pass: _, verdict } = *step;
        let flight_size = self.flight_size();
        // Where there is no new data to probe with, that is settled here: the response counts on it.
        let send = match send {
            RtoSend::NewElseHighest if self.new_probe().is_none() => RtoSend::Again(self.highest_data()),
            send => send,
        };
        let mut first = true;
        if let Some(flight) = self.flight.as_deref_mut() {
            match tags {
                RtoTags::Keep => {}
                RtoTags::ClearSack => flight.board.retag(false, Lost::None),
                RtoTags::AllLost => flight.board.retag(false, Lost::All),
                RtoTags::UnsackedLost => flight.board.retag(true, Lost::All),
                RtoTags::LostBefore(limit) => flight.board.retag(true, Lost::Before(limit)),
                RtoTags::Unmark => flight.board.retag(true, Lost::None),
            }
            if matches!(tags, RtoTags::AllLost | RtoTags::UnsackedLost | RtoTags::LostBefore(_)) {
                flight.recovery.recovery_point = self.snd_nxt;
            }
            let host = &mut flight.recovery.rto;
            host.gate = gate;
            if send != RtoSend::Nothing {
                host.send = Some(send);
            }
            if let RtoCc::Timeout { window, .. } = cc {
                first = !core::mem::replace(&mut host.told, true);
                if Window::from_bytes(u64::from(flight.board.tally().lost)) > window {
                    flight.window_use.limit(self.snd_nxt);
                }
            }
        }
        if let Some(verdict) = verdict {
            ctx.counters.tcp_spurious_rtos += u64::from(verdict == RtoVerdict::Spurious);
            ctx.trace(|| TraceEvent::RtoVerdict { verdict });
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
                RtoCc::Undo(undo) => {
                    policy.undo(&view, &undo);
                    ctx.counters.tcp_loss_undo += 1;
                    ctx.trace(|| TraceEvent::Undo);
                }
            }
        }
        match (sample, rtt) {
            (RtoRtt::Take, (Some(rtt), _)) => self.rtt.take(rtt, config, ctx.granularity),
            (RtoRtt::Rfc4015 { srtt, rttvar }, (_, Some(rtt))) => {
                self.rtt.adapt_to_spurious_timeout(rtt, srtt, rttvar, config, ctx.granularity);
            }
            _ => {}
        }
        match timer {
            RtoTimer::Keep => {}
            RtoTimer::Backoff => {
                self.rtt.back_off();
                self.restart_rto(ctx.now, config);
            }
            RtoTimer::Restart | RtoTimer::Stop => self.restart_rto(ctx.now, config),
        }
    }

    /// One past the last octet of new data that one segment may carry beside the windows of congestion control: an
    /// SMSS, or all that is unsent, with the FIN behind it. `None` where it is none, or does not fit the peer's window
    /// whole.
    pub(crate) fn new_probe(&self) -> Option<SeqNum> {
        let unsent = self.buffer.end().saturating_distance_from(self.snd_nxt);
        let end = self.snd_nxt + unsent.min(self.smss);
        if unsent == 0 || end.gt(self.wnd_end()) {
            return None;
        }
        let with_fin = self.buffer.has_fin() && end == self.buffer.end() && end.lt(self.wnd_end());
        Some(end + u32::from(with_fin))
    }

    /// First sequence number of the highest outstanding segment with data; SND.UNA where there is only a FIN.
    pub(crate) fn highest_data(&self) -> SeqNum {
        let flight = self.flight.as_deref();
        flight.and_then(|flight| flight.board.highest_before(self.buffer.end())).unwrap_or(self.snd_una)
    }

    /// The segment that an expiry wants sent: `[start, end)`. None where it is acknowledged meanwhile.
    pub(crate) fn rto_segment(&self) -> Option<(SeqNum, SeqNum)> {
        let flight = self.flight.as_deref()?;
        let smss = self.smss;
        let from = match flight.recovery.rto.send? {
            RtoSend::Nothing => return None,
            RtoSend::Head => self.snd_una,
            RtoSend::Again(seq) => seq.max(self.snd_una),
            RtoSend::NewElseHighest => match self.new_probe() {
                Some(end) => return Some((self.snd_nxt, end)),
                None => self.highest_data(),
            },
        };
        let fitting = |seq| {
            let (start, end) = flight.board.segment_at(seq, smss)?;
            self.fit_window(start, end).map(|end| (start, end))
        };
        // Where the peer has taken the window back from what was asked for, the head can still leave.
        fitting(from).or_else(|| fitting(self.snd_una))
    }
}
