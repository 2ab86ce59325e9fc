//! Recovery episodes: start, progress, end and undo, with their effect on the flight and on
//! congestion control. Episodes started by a timeout are in `rto_response.rs`.

use super::flight::Flight;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{CongestionEvent, Phase, Undo};
use crate::recovery::{Progress, Prr, UndoTest};
use crate::scoreboard::AckCx;

impl Flight {
    /// Fast recovery starts; the current ACK reported `delivered` bytes.
    pub(super) fn begin_recovery(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        prior_pipe: u32,
        delivered: u32,
    ) {
        let from = self.recovery.phase;
        let tally = self.board.tally();
        if config.undo {
            self.recovery.arm_undo(snd.una, tally.again, false);
        }
        self.recovery.begin(Phase::Recovery, snd.una, snd.nxt);
        if config.prr {
            // RFC 9937, section 6.1: data SACKed before this ACK no longer has to be recovered.
            let fresh = tally.outstanding.saturating_sub(tally.sacked).saturating_add(delivered);
            self.recovery.prr = Some(Prr::new(fresh, self.pipe()));
        }
        ctx.trace(|| TraceEvent::Phase { from, to: Phase::Recovery });
        if snd.sack {
            ctx.observe.counters.tcp_sack_recovery += 1;
        } else {
            ctx.observe.counters.tcp_reno_recovery += 1;
        }
        // RFC 3168, section 6.1.2: one reduction per window of data, whatever the signals.
        let reduced = self.is_reduced_for_ecn(snd);
        let view = self.flow_view(snd, ctx.now);
        self.tell(snd, |cc| {
            cc.checkpoint(&view);
            if !reduced {
                cc.on_congestion(&view, &CongestionEvent::Loss { prior_pipe });
            }
        });
        if !reduced {
            snd.on_reduction();
        }
    }

    /// RFC 9937: an ACK in recovery reported `delivered` bytes.
    pub(super) fn run_prr(&mut self, snd: &Stream, delivered: u32, safe: bool) {
        let inflight = self.pipe();
        if let Some(prr) = &mut self.recovery.prr {
            let target = self.decision.window.bytes();
            prr.on_ack(&Progress { delivered, safe, inflight, target, smss: snd.smss() });
        }
    }

    /// Ends the episode whose recovery point is acknowledged. If loss beyond it is known, the next
    /// one starts at once.
    pub(super) fn end_episode(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let from = self.recovery.phase;
        if !self.recovery.end_if_acknowledged(snd.una, &mut self.board) {
            return;
        }
        snd.end_rto_recovery(ctx.now);
        let to = self.recovery.phase;
        let lost = self.board.tally().pending > 0;
        ctx.trace(|| TraceEvent::Phase { from, to });
        let view = self.flow_view(snd, ctx.now);
        self.tell(snd, |cc| cc.on_recovery_exit(&view));
        if lost {
            self.begin_recovery(snd, ctx, config, self.pipe(), 0);
        }
    }

    /// A tail loss probe repaired a loss: the reduction for a recovery that ended before it began.
    pub(super) fn report_repaired_loss(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, prior_pipe: u32) {
        if self.is_reduced_for_ecn(snd) {
            return;
        }
        let view = self.flow_view(snd, ctx.now);
        self.tell(snd, |cc| {
            cc.checkpoint(&view);
            cc.on_congestion(&view, &CongestionEvent::Loss { prior_pipe });
            cc.on_recovery_exit(&view);
        });
        snd.on_reduction();
        self.trace_congestion(snd, ctx);
    }

    /// Undoes fast recovery if the ACK proves that it was unnecessary. Called before loss
    /// detection.
    pub(super) fn undo_if_needless(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, ack: &AckCx) {
        let Some(evidence) = self.recovery.undo_evidence(ack, snd.una) else { return };
        match evidence.test {
            UndoTest::Dsack => ctx.observe.counters.tcp_dsack_undo += 1,
            UndoTest::PartialEifel => ctx.observe.counters.tcp_partial_undo += 1,
            UndoTest::Eifel => ctx.observe.counters.tcp_full_undo += 1,
        }
        if evidence.overtaken {
            snd.losses_mut().on_reordering();
            ctx.observe.counters.tcp_ts_reorder += u64::from(self.recovery.on_reordering(snd.sack));
        }
        if let Some((from, to)) = self.recovery.take_back(&mut self.board, snd.una) {
            snd.end_rto_recovery(ctx.now);
            ctx.trace(|| TraceEvent::Phase { from, to });
        }
        ctx.trace(|| TraceEvent::Undo);
        let view = self.flow_view(snd, ctx.now);
        self.tell(snd, |cc| cc.undo(&view, &Undo::All));
    }
}
