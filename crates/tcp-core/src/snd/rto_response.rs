//! An expired retransmission timer (RFC 6298, section 5), and what the response to it wants done.
//!
//! ```text
//!   expiry ──► RtoResponse::on_rto ──► RtoHost::dispose ──► begin Phase::Loss ──► apply(step)
//!   ACK    ──► RtoResponse::on_ack ──────────────────────────────────────────────► apply(step)
//! ```
//!
//! The rules that hold whatever a response wants are in [`rto_host`](crate::recovery::rto_host).

use super::flight::Flight;
use super::losses::Losses;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::packet::SendReason;
use crate::policy::cc::{CongestionEvent, Phase, Restart, RestartCause};
use crate::policy::rto::{
    NewRtoResponse, RtoCc, RtoGate, RtoPhase, RtoRtt, RtoSend, RtoStep, RtoTimer, RtoVerdict,
};
use crate::recovery::rto_host::retag;
use crate::scoreboard::AckCx;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;

/// What the response to a timeout has used of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckUse {
    /// Nobody else hears of the ACK.
    pub(super) consumed: bool,
    /// Its RTT has been taken.
    pub(super) sampled: bool,
}

/// RTT of the oldest and of the newest segment never retransmitted that an ACK covers.
type Samples = (Option<Duration>, Option<Duration>);

impl Flight {
    /// Where the response to the last timeout stands.
    pub(super) fn rto_phase(&self, snd: &Stream) -> RtoPhase {
        let repairing = snd.una.lt(self.recovery.recovery_point);
        self.rto.phase(repairing, snd.asked_response())
    }

    /// The window in force, if congestion control's is `window`.
    pub(super) fn gated(&self, snd: &Stream, window: Window) -> Window {
        self.rto.gated(self.rto_phase(snd), window)
    }

    /// The retransmission timer fired.
    pub(super) fn on_rto_expiry(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        self.reneging_at = Instant::FAR_FUTURE;
        if self.board.is_empty() {
            self.rto_at = Instant::FAR_FUTURE;
            return;
        }
        let before = self.rto_phase(snd);
        let tail_was_repeated = self.recovery.tlp.open.is_some_and(|probe| !probe.new);
        // RFC 2018, section 8: after a timeout nothing that was SACKed is relied upon, if the head
        // shows that the peer has dropped such data.
        if self.board.head_is_sacked() {
            ctx.observe.counters.tcp_sack_reneging += 1;
            self.board.forget_sacked();
        }
        if self.rto.send.is_some() {
            // What the last expiry wanted to send is still held by the device or the scheduler.
            self.rto_at = ctx.now + snd.rtt.backed_off_rto(config);
            return;
        }
        ctx.observe.counters.tcp_timeouts += 1;
        let begins = self.recovery.phase != Phase::Loss;
        let losses = snd.losses_mut();
        losses.timeouts = losses.timeouts.saturating_add(1);
        losses.rto_recoveries = losses.rto_recoveries.saturating_add(u32::from(begins));
        losses.begin_rto_recovery(ctx.now);
        if self.recovery.phase == Phase::Recovery {
            let counters = &mut ctx.observe.counters;
            *if snd.sack {
                &mut counters.tcp_sack_recovery_fail
            } else {
                &mut counters.tcp_reno_recovery_fail
            } += 1;
        }
        let in_episode = self.recovery.in_episode();
        self.recovery.on_timeout_for(snd.una, snd.sack);
        self.rto.on_expiry();
        self.suspect_black_hole(snd, config);
        if self.rto.expiries == 1 && before != RtoPhase::Probe {
            // RFC 3522, section 3.2, step 1: RetransmitTS is that of what this timeout sends. A
            // probe that is repeated keeps that of its first copy, and so does one that a tail loss
            // probe sent again before.
            self.recovery.first_retransmission.take_if(|_| !tail_was_repeated);
        }
        let first_copy = self.recovery.first_retransmission.filter(|_| tail_was_repeated);
        let view = self.rto_view(snd, ctx, config, self.pipe(), in_episode);
        let smss = snd.smss();
        let response = snd.losses_mut().ask_response(config);
        let step = response.on_rto(&view);
        let step = self.rto.dispose(step, response, config.max_undecided_rtos, smss);
        self.enter_loss(snd, ctx, config, first_copy);
        if step.gate != RtoGate::ByCc {
            self.void_reserved_data(snd);
        }
        // Each expiry backs off (RFC 6298, 5.5), whatever the step says about the timer.
        let step = RtoStep { timer: RtoTimer::Backoff, ..step };
        self.apply(snd, ctx, config, &step, (None, None));
        let expiries = self.rto.expiries;
        let rto = snd.rtt.backed_off_rto(config);
        ctx.trace(|| TraceEvent::Rto { expiries, rto });
        self.trace_rto_phase(snd, ctx, before);
    }

    /// The episode of a timeout begins. `first_copy`: when the segment left before that the timeout
    /// repeats.
    fn enter_loss(
        &mut self,
        snd: &Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        first_copy: Option<Instant>,
    ) {
        let from = self.recovery.phase;
        if config.undo {
            self.recovery.arm_undo(snd.una, self.board.tally().again, true);
        }
        self.recovery.begin(Phase::Loss, snd.una, snd.nxt);
        if first_copy.is_some() {
            self.recovery.first_retransmission = first_copy;
        }
        if from != Phase::Loss {
            ctx.trace(|| TraceEvent::Phase { from, to: Phase::Loss });
        }
    }

    /// Replaces the response. An episode under way is none of the new one's own, and ends as one
    /// that was left undecided for too long: what is outstanding is repaired in the conventional
    /// way, and a window that congestion control was not told of yet is reduced.
    pub(super) fn swap_rto_response(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        make: &NewRtoResponse,
    ) {
        let before = self.rto_phase(snd);
        snd.losses_mut().swap_response(make);
        self.rto.on_swap(before);
        if before == RtoPhase::Probe {
            // The head goes out as lost.
            let step = RtoStep {
                send: RtoSend::Nothing,
                timer: RtoTimer::Keep,
                ..RtoStep::conventional(snd.smss())
            };
            self.apply(snd, ctx, config, &step, (None, None));
        }
        self.trace_rto_phase(snd, ctx, before);
    }

    /// What waits in the egress scheduler was asked for by a window that is closed: it stays here.
    fn void_reserved_data(&mut self, snd: &Stream) {
        self.reserved.void_new(None);
        while let Some(entry) = self.reserved.take_void(|entry| entry.out.reason != SendReason::WindowProbe) {
            self.board.set_reserved(entry.out.seq.max(snd.una), entry.out.end(), false);
        }
    }

    /// Shows an ACK to the response.
    pub(super) fn show_to_response(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        ack: &AckCx,
    ) -> AckUse {
        if self.rto.has_taken_over() {
            return AckUse::default();
        }
        let before = self.rto_phase(snd);
        let view = self.rto_view(snd, ctx, config, ack.prior_pipe, self.recovery.in_episode());
        let response = snd.losses.as_deref_mut().and_then(Losses::asked_response_mut);
        let step = response.and_then(|response| response.on_ack(&view, &ack.facts));
        let after = self.rto_phase(snd);
        if before == RtoPhase::Probe && after != RtoPhase::Probe {
            self.rto.on_evidence();
        }
        let Some(step) = step else {
            self.trace_rto_phase(snd, ctx, before);
            return AckUse::default();
        };
        self.apply(snd, ctx, config, &step, (ack.rtt_oldest, ack.rtt_newest));
        if step.verdict.is_none() && (before, after) == (RtoPhase::Probe, RtoPhase::Probe) {
            ctx.observe.counters.tcp_stale_acks += 1;
            ctx.trace(|| TraceEvent::StaleAck { ack: ack.facts.ack });
        }
        if step.verdict.is_some() && after == RtoPhase::Open {
            self.leave_loss(snd, ctx);
        }
        self.trace_rto_phase(snd, ctx, before);
        AckUse { consumed: !step.pass, sampled: step.rtt != RtoRtt::Skip }
    }

    /// The response has left the episode before everything outstanding at its start is
    /// acknowledged.
    fn leave_loss(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>) {
        if self.recovery.phase != Phase::Loss {
            return;
        }
        self.recovery.recovery_point = snd.una;
        self.recovery.end_if_acknowledged(snd.una, &mut self.board);
        snd.end_rto_recovery(ctx.now);
        let to = self.recovery.phase;
        ctx.trace(|| TraceEvent::Phase { from: Phase::Loss, to });
    }

    fn trace_rto_phase(&self, snd: &Stream, ctx: &mut Ctx<'_>, from: RtoPhase) {
        let to = self.rto_phase(snd);
        if from != to {
            ctx.trace(|| TraceEvent::RtoPhase { from, to });
        }
    }

    /// Does what a step says. `rtt`: what the ACK at hand measured.
    fn apply(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        step: &RtoStep,
        rtt: Samples,
    ) {
        let RtoStep { send, tags, gate, cc, rtt: sample, timer, cwr, pass: _, verdict } = *step;
        // If there is no new data to probe with, that is settled here: the response counts on it.
        let send = match send {
            RtoSend::NewElseHighest if snd.new_probe().is_none() => RtoSend::Again(self.highest_data(snd)),
            send => send,
        };
        let loss = self.loss_cx(ctx.now);
        if retag(&mut self.board, tags, &mut |record| snd.tell_of_loss(&loss, record)) {
            self.decision = snd.ask_for_decision();
            self.recovery.recovery_point = snd.nxt;
        }
        let first = self.rto.take_step(send, gate, &cc);
        if let RtoCc::Timeout { window, .. } = cc
            && Window::from_bytes(u64::from(self.board.tally().lost)) > window
        {
            self.window_use.limit(snd.nxt);
        }
        if let Some(verdict) = verdict {
            ctx.observe.counters.tcp_spurious_rtos += u64::from(verdict == RtoVerdict::Spurious);
            ctx.trace(|| TraceEvent::RtoVerdict { verdict });
        }
        if cwr || matches!(cc, RtoCc::Timeout { .. }) {
            snd.on_reduction();
        }
        self.tell_of_step(snd, ctx, &cc, first);
        match (sample, rtt) {
            (RtoRtt::Take, (Some(rtt), _)) => snd.rtt.take(rtt, config, ctx.host.granularity),
            (RtoRtt::Rfc4015 { srtt, rttvar }, (_, Some(rtt))) => {
                snd.rtt.adapt_to_spurious_timeout(rtt, srtt, rttvar, config, ctx.host.granularity);
            }
            _ => {}
        }
        match timer {
            RtoTimer::Keep => {}
            RtoTimer::Backoff => {
                snd.rtt.back_off();
                self.restart_rto(snd, ctx.now, config);
            }
            RtoTimer::Restart | RtoTimer::Stop => self.restart_rto(snd, ctx.now, config),
        }
    }

    /// What a step wants congestion control to hear. `first`: the first timeout since SND.UNA
    /// advanced.
    fn tell_of_step(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, step: &RtoCc, first: bool) {
        let view = self.flow_view(snd, ctx.now);
        match *step {
            RtoCc::Untold => {}
            RtoCc::Timeout { window, ssthresh } => {
                let flight_size = snd.flight_size();
                let event = CongestionEvent::Timeout { flight_size, first, window, ssthresh };
                self.tell(snd, |cc| {
                    if first {
                        cc.checkpoint(&view);
                    }
                    cc.on_congestion(&view, &event);
                });
            }
            RtoCc::CleanTimeout { window } => {
                let restart = Restart::new(RestartCause::CleanTimeout, window, Duration::ZERO);
                self.tell(snd, |cc| cc.on_restart(&view, &restart));
            }
            RtoCc::Undo(undo) => {
                self.tell(snd, |cc| cc.undo(&view, &undo));
                ctx.observe.counters.tcp_loss_undo += 1;
                ctx.trace(|| TraceEvent::Undo);
            }
        }
    }

    /// First sequence number of the highest outstanding segment with data; SND.UNA if there is only
    /// a FIN.
    pub(super) fn highest_data(&self, snd: &Stream) -> SeqNum {
        self.board.highest_before(snd.buffer.end()).unwrap_or(snd.una)
    }

    /// The segment that an expiry wants sent: `[start, end)`. None if it is acknowledged meanwhile.
    pub(super) fn rto_segment(&self, snd: &Stream, send: RtoSend) -> Option<(SeqNum, SeqNum)> {
        let from = match send {
            RtoSend::Nothing => return None,
            RtoSend::Head => snd.una,
            RtoSend::Again(seq) => seq.max(snd.una),
            RtoSend::NewElseHighest => match snd.new_probe() {
                Some(end) => return Some((snd.nxt, end)),
                None => self.highest_data(snd),
            },
        };
        let most = snd.repair_smss();
        let fitting = |seq| {
            // Pieces leave together, as far as they fit: the window of one segment lets out no
            // second one then.
            let (start, end) = self.board.segment_at(seq, most)?;
            snd.fit_window(start, end).map(|end| (start, end))
        };
        // If the peer has taken the window back from what was asked for, the head can still leave.
        fitting(from).or_else(|| fitting(snd.una))
    }
}
