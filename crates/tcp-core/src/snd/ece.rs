//! The effect of ECE: see [`ecn`](super::ecn).

use super::flight::Flight;
use super::stream::Stream;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{CongestionEvent, EcnUse};
use crate::scoreboard::AckCx;

impl Stream {
    /// Congestion control reduced its window because of ECE.
    pub(super) fn on_ecn_reduction(&mut self, ctx: &mut Ctx<'_>) {
        let until = self.nxt;
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ctx.counters.tcp_ecn_reductions += 1;
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
    /// An ACK that is not older than SND.UNA carried ECE.
    pub(super) fn on_ece(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, ack: &AckCx) {
        let Some(ecn) = snd.ecn.as_deref_mut() else { return };
        let delivered = u64::from(ack.segments);
        ecn.ece_received += 1;
        ecn.delivered_ce += delivered;
        ctx.counters.tcp_delivered_ce += delivered;
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
