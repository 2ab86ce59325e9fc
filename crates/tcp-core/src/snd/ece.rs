//! The effect of marks: see [`ecn`](super::ecn).

use super::AckSegment;
use super::ecn::accecn::Covered;
use super::flight::Flight;
use super::stream::Stream;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{CongestionEvent, EcnUse};
use crate::scoreboard::AckCx;
use crate::seq::SeqNum;

/// What an ACK says of marks.
pub(super) fn gather_marks(
    snd: &mut Stream,
    ctx: &mut Ctx<'_>,
    seg: &AckSegment,
    prior_una: SeqNum,
    ack: &mut AckCx,
) {
    let (smss, una, nxt) = (snd.smss(), snd.una, snd.nxt);
    let Some(ecn) = snd.ecn.as_deref_mut() else { return };
    ecn.on_advance(una);
    let fields = &seg.accecn;
    let Some(feedback) = &mut ecn.accurate else {
        ack.facts.ece = seg.ece && seg.ack.ge(prior_una);
        if ack.facts.ece {
            (ack.marked, ack.marked_segments) = (ack.delivered, ack.segments);
        }
        return;
    };
    if !feedback.hears(ack.acked() > 0 || ack.facts.newly_sacked > 0, fields) {
        return;
    }
    let covered = Covered { packets: ack.segments, bytes: ack.delivered, smss, una, nxt };
    let marks = feedback.on_ack(&mut ctx.observe.counters, ctx.now, fields, &covered);
    ack.facts.ece = marks.packets > 0;
    (ack.marked, ack.marked_segments) = (marks.bytes, marks.packets);
    if marks.mangled {
        ecn.capable = false;
        ctx.observe.counters.acc_ecn_mangled += 1;
    } else if feedback.retries(ctx.now) {
        ecn.capable = true;
    }
}

impl Stream {
    /// A segment arrived while nothing is outstanding: what accurate ECN tells with it is no news
    /// of data.
    pub(super) fn note_count(&mut self, ctx: &mut Ctx<'_>, seg: &AckSegment) {
        let (smss, una, nxt) = (self.smss(), self.una, self.nxt);
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        let fields = &seg.accecn;
        let Some(feedback) = &mut ecn.accurate else { return };
        if feedback.hears(false, fields) {
            let covered = Covered { packets: 0, bytes: 0, smss, una, nxt };
            let marks = feedback.on_ack(&mut ctx.observe.counters, ctx.now, fields, &covered);
            ctx.observe.counters.tcp_delivered_ce += u64::from(marks.packets);
        }
    }

    /// Congestion control reduced its window because of ECE.
    pub(super) fn on_ecn_reduction(&mut self, ctx: &mut Ctx<'_>) {
        let until = self.nxt;
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ctx.observe.counters.tcp_ecn_reductions += 1;
            ctx.trace(|| TraceEvent::EcnReduced { until });
            ecn.on_reduction(until);
        }
    }

    /// The window was reduced, for whatever reason: RFC 3168, section 6.1.2, requires CWR for each
    /// reduction.
    pub(super) fn on_reduction(&mut self) {
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ecn.on_reduction(self.nxt);
        }
    }
}

impl Flight {
    /// An ACK that is not older than SND.UNA tells of marks.
    pub(super) fn on_ece(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, ack: &AckCx) {
        let Some(ecn) = snd.ecn.as_deref_mut() else { return };
        let delivered = u64::from(ack.marked_segments);
        ecn.ece_received += 1;
        ecn.delivered_ce += delivered;
        ctx.observe.counters.tcp_delivered_ce += delivered;
        // The ACK of `until` itself still answers data from before the segment with CWR.
        let answered = snd.una.le(ecn.until);
        if self.recovery.in_episode() || answered || self.decision.ecn == EcnUse::PerAck {
            return;
        }
        let mut view = self.flow_view(snd, ctx.now);
        view.cwnd_limited = ack.cwnd_limited;
        self.tell(snd, |cc| cc.on_congestion(&view, &CongestionEvent::Ecn));
        snd.on_ecn_reduction(ctx);
    }

    /// The window has already been reduced since the lost data was sent, and congestion control
    /// leaves that account to the core.
    pub(super) fn is_reduced_for_ecn(&self, snd: &Stream) -> bool {
        let reduced = snd.ecn.as_deref().is_some_and(|ecn| snd.una.lt(ecn.until));
        reduced && self.decision.ecn == EcnUse::PerWindow
    }
}
