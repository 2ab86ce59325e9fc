//! What a departure commits.

use super::Sender;
use super::flight::Flight;
use super::measure::chrono::Spending;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::cc::{Clock, Phase, SentSegment};
use crate::policy::rto::RtoPhase;
use crate::scoreboard::Stamp;
use crate::seq::SeqNum;
use crate::time::Instant;

impl Sender {
    /// The packet left.
    pub(crate) fn sent(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Plan) {
        let Some((snd, flight)) = self.in_flight() else { return };
        if out.reason == SendReason::WindowProbe {
            flight.on_window_probe_sent(snd, ctx, config, out);
        } else {
            flight.sent(snd, ctx, config, out);
        }
    }
}

impl Flight {
    fn sent(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Plan) {
        let now = ctx.now;
        let new = out.end().gt(snd.nxt);
        let start = out.seq.max(snd.una);
        let idle = self.board.is_empty();
        let was_reserved = self.reserved.remove(out.end(), new).is_some();
        if out.reason.is_rto() {
            self.rto.send = None;
        }
        if was_reserved && self.reserved.is_empty() && self.chrono.is_in(Spending::Scheduler) {
            // The cause when the last packet was queued; the connection is asked again if that has
            // changed.
            self.chrono.turn(now, self.spending(snd, config, snd.blocked));
        }
        if let Some(prr) = &mut self.recovery.prr {
            prr.on_sent(out.end().distance_from(start));
        }
        let prior_pipe = self.board.pipe();
        // A retransmission that waited in the scheduler is in it already.
        let added = if was_reserved && !new { 0 } else { out.end().distance_from(start) };
        let stamp = self.delivery.on_sent(&snd.delivery, now, idle, prior_pipe + added, snd.losses().lost);
        if new {
            self.commit_new(snd, out, stamp);
            if !was_reserved {
                self.note_release(snd, out);
            }
        } else {
            if !was_reserved {
                self.recovery.on_retransmission(start, out.end(), &self.board);
            }
            self.commit_retransmission(snd, ctx, out, start, stamp);
        }
        if out.len > 0 {
            snd.stats.bytes_sent += u64::from(out.len);
            snd.stats.data_segs_out += u64::from(out.segments());
        }
        if idle {
            snd.rtt.on_idle(now.since(snd.last_sent));
            self.progress_at = now;
        }
        snd.last_sent = now;
        self.wait.stop();
        if out.len > 0 {
            let begins = snd.flight_size() <= out.len;
            if (begins || snd.cc.wants_each_departure()) && self.rto_phase(snd) != RtoPhase::Probe {
                let view = self.flow_view(snd, now);
                let mut sent = SentSegment::new(out.seq, out.len, !new);
                sent.prior_pipe = prior_pipe;
                self.tell(snd, |cc| cc.on_sent(&view, &sent));
            }
            if new {
                let full = self.is_window_full(snd, config);
                self.window_use.on_sent(snd.una, snd.nxt, full);
            }
            self.pacer.on_departure(now, out.len, &self.decision, snd.rtt.srtt_pace(), ctx.host.granularity);
        }
        // RFC 6298, 5.1: start it if it is not running. The head's retransmission, an expiry's
        // segment and every departure of a departure clock start it anew.
        let probe = out.reason == SendReason::TailLossProbe;
        let anew = (!new && start == snd.una) || out.reason.is_rto() || probe;
        if self.rto_at == Instant::FAR_FUTURE || anew || self.decision.clock != Clock::Ack {
            self.restart_rto(snd, now, config);
        }
        if probe {
            self.on_tail_loss_probe(snd, ctx, start, new);
        } else if new {
            self.schedule_probe(snd, ctx, config);
        }
    }

    /// New data left.
    fn commit_new(&mut self, snd: &mut Stream, out: &Plan, stamp: Stamp) {
        let limited = snd.delivery.is_app_limited();
        let probe = out.reason == SendReason::PathMtuProbe;
        let segment_size = if probe { out.len } else { snd.smss() };
        self.board.push(snd.nxt, out.end(), stamp, segment_size, limited);
        if probe {
            self.on_mtu_probe_sent(snd, out.seq, out.len);
        }
        snd.nxt = out.end();
        if let Some(ecn) = snd.ecn.as_deref_mut()
            && out.len > 0
        {
            ecn.cwr_due = false;
        }
    }

    /// Data left again, from `start` on.
    fn commit_retransmission(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        out: &Plan,
        start: SeqNum,
        stamp: Stamp,
    ) {
        let limited = snd.delivery.is_app_limited();
        self.board.on_retransmitted(start, out.end(), stamp, snd.smss(), limited);
        self.recovery.on_retransmitted(out.end().distance_from(start), ctx.now);
        let segments = out.segments();
        let losses = snd.losses_mut();
        losses.bytes_retrans += u64::from(out.len);
        losses.total_retrans = losses.total_retrans.saturating_add(segments);
        match self.recovery.phase {
            Phase::Recovery => ctx.observe.counters.tcp_fast_retrans += u64::from(segments),
            Phase::Loss if !out.reason.is_rto() => {
                ctx.observe.counters.tcp_slow_start_retrans += u64::from(segments);
            }
            Phase::Loss | Phase::Open | Phase::Disorder => {}
        }
    }

    fn on_window_probe_sent(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Plan) {
        ctx.observe.counters.tcp_win_probe += 1;
        self.reserved.remove(out.end(), false);
        self.wait.on_probe_sent();
        self.wait_for_window(snd, ctx.now, config);
    }
}
