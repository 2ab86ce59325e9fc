//! What congestion control is told, and its decision.
//!
//! The decision is asked for in one place, after each event that congestion control heard of, and is kept until the next
//! one. Whoever sets parameters on a running connection makes it stale; it is asked for anew before the next event.

use super::flight::Flight;
use super::stream::Stream;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::CongestionControl;
use crate::policy::cc::SendDecision;

impl Stream {
    /// What congestion control lets the connection do.
    pub(super) fn ask_for_decision(&self) -> SendDecision {
        self.cc.decision()
    }
}

impl Flight {
    /// Tells congestion control of an event.
    #[inline]
    pub(super) fn tell<R>(
        &mut self,
        snd: &mut Stream,
        event: impl FnOnce(&mut dyn CongestionControl) -> R,
    ) -> R {
        let answer = event(&mut *snd.cc);
        self.decision = snd.ask_for_decision();
        answer
    }

    /// The congestion control is another one, or may be told something behind the sender's back.
    pub(super) fn forget_decision(&mut self) {
        self.decision_is_stale = true;
    }

    /// Before an event: the decision is that of the congestion control as it is.
    #[inline]
    pub(super) fn refresh_decision(&mut self, snd: &Stream) {
        if self.decision_is_stale {
            self.decision = snd.ask_for_decision();
            self.decision_is_stale = false;
        }
    }

    /// The state after an ACK or a reduction, for whoever listens.
    pub(super) fn trace_congestion(&self, snd: &Stream, ctx: &mut Ctx<'_>) {
        ctx.trace(|| TraceEvent::Congestion {
            cwnd: self.decision.window.bytes(),
            ssthresh: self.decision.ssthresh.bytes(),
            pipe: self.pipe(),
            srtt: snd.rtt.srtt(),
        });
    }
}
