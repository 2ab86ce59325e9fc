//! When a tail loss probe is due, what it carries, and what its answer does (RFC 8985, section 7).
//! What a probe is, and how its answer is read, is in [`tlp`](crate::recovery::tlp).

use super::flight::Flight;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::packet::{SegmentClass, SendReason};
use crate::plan::Plan;
use crate::policy::cc::{Clock, Phase};
use crate::policy::rto::RtoPhase;
use crate::recovery::Probe;
use crate::recovery::tlp::{MAX_ACK_DELAY, probe_timeout};
use crate::scoreboard::AckCx;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

impl Flight {
    /// Section 7.2: (re)starts the probe timer if a probe may be needed, and stops it otherwise.
    /// Called after new data has left and after an ACK that reported something.
    pub(super) fn schedule_probe(&mut self, snd: &mut Stream, ctx: &Ctx<'_>, config: &ConnConfig) {
        let permitted = config.tlp && self.may_probe(snd);
        let at = if permitted {
            // Section 7.2 has the probe wait no longer than the retransmission timer would. A timer
            // that does not leave the peer the time to acknowledge a single segment is the
            // exception: it waits for the probe, because one of the timers runs at a time (section
            // 8).
            let delay = snd.ack_delay(config);
            let at = ctx.now + probe_timeout(snd.rtt.srtt(), delay) + ctx.host.probe_margin;
            let at = at.min(self.rto_at.max(self.ack_due(snd, delay)));
            self.rto_at = self.rto_at.max(at);
            at
        } else {
            Instant::FAR_FUTURE
        };
        self.recovery.tlp.schedule(at);
    }

    fn may_probe(&self, snd: &Stream) -> bool {
        snd.sack
            && self.recovery.phase == Phase::Open
            && self.rto.send.is_none()
            && self.recovery.tlp.may_probe()
            && !self.board.is_empty()
            && self.board.tally().sacked == 0
            && self.rto_phase(snd) == RtoPhase::Open
    }

    /// When the ACK of a single segment that is outstanding may come at the latest, if the peer may
    /// hold it for `delay`; [`Instant::ZERO`] if more is outstanding, or no RTT sample tells.
    fn ack_due(&self, snd: &Stream, delay: Duration) -> Instant {
        match (self.board.oldest_departure(), snd.rtt.srtt()) {
            (Some(left), Some(srtt)) if !delay.is_zero() => left + srtt.saturating_add(delay),
            _ => Instant::ZERO,
        }
    }

    /// The probe timer fired. The retransmission timer starts anew (section 7.3).
    pub(super) fn on_probe_timeout(&mut self, snd: &mut Stream, ctx: &Ctx<'_>, config: &ConnConfig) {
        let due = self.may_probe(snd) && !self.is_departure_pending(snd);
        self.recovery.tlp.on_timeout(due);
        if due {
            self.restart_rto(snd, ctx.now, config);
        }
    }

    /// The pacer or a departure clock holds data back: its own departure comes, and probes.
    fn is_departure_pending(&self, snd: &Stream) -> bool {
        let paced = self.pace_at != Instant::FAR_FUTURE;
        paced || (self.decision.clock != Clock::Ack && !snd.has_nothing_unsent())
    }

    /// TLP_send_probe: the probe that is due.
    pub(super) fn next_probe(&mut self, snd: &Stream) -> Option<Plan> {
        if !self.recovery.tlp.due {
            return None;
        }
        let plan = self.probe_plan(snd);
        if plan.is_none() {
            self.recovery.tlp.due = false;
        }
        plan.filter(|_| !self.reserved.holds(is_probe))
    }

    fn probe_plan(&self, snd: &Stream) -> Option<Plan> {
        if self.reserved.new_bytes() > 0 && !self.reserved.holds(is_probe) {
            // New data waits for the device already.
            return None;
        }
        if let Some(end) = snd.new_probe() {
            let mut plan = snd.retransmission(snd.nxt, end, SendReason::TailLossProbe);
            plan.class = SegmentClass::Data;
            return Some(plan);
        }
        let (start, end) = self.board.segment_at(self.board.highest_before(snd.nxt)?, snd.smss())?;
        let end = snd.fit_window(start, end)?;
        Some(snd.retransmission(start, end, SendReason::TailLossProbe))
    }

    /// The probe `[start, ..)` left.
    pub(super) fn on_tail_loss_probe(&mut self, snd: &Stream, ctx: &mut Ctx<'_>, start: SeqNum, new: bool) {
        ctx.observe.counters.tcp_loss_probes += 1;
        self.recovery.on_probe_sent(Probe { start, end: snd.nxt, new }, ctx.now);
        ctx.trace(|| TraceEvent::TailLossProbe { start, new });
    }

    /// What an ACK makes of an open probe.
    pub(super) fn judge_probe(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, ack: &AckCx) {
        if self.recovery.tlp.on_ack(ack, snd.una) {
            // The probe's copy was the only one to arrive: congestion control hears of the loss.
            self.recovery.undo = None;
            ctx.observe.counters.tcp_loss_probe_recovery += 1;
            self.report_repaired_loss(snd, ctx, ack.prior_pipe);
        }
    }
}

impl Stream {
    /// How long the peer may hold the ACK of what is outstanding.
    fn ack_delay(&self, config: &ConnConfig) -> Duration {
        if self.flight_size() <= self.smss() { MAX_ACK_DELAY.min(config.min_rto) } else { Duration::ZERO }
    }
}

fn is_probe(reason: SendReason) -> bool {
    reason == SendReason::TailLossProbe
}
