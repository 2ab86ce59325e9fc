//! Telling congestion control of events, and its decision.
//!
//! The decision is fetched in one place, after each event that congestion control was told of, and
//! cached until the next one. Changing parameters on a running connection makes it stale; then it
//! is fetched again before the next event.
//!
//! The cache relies only on the trait's promise that `decision` is pure.

use super::flight::Flight;
use super::pacer::Gap;
use super::stream::Stream;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::CongestionControl;
use crate::policy::cc::{LostRecord, Phase, SendDecision};
use crate::scoreboard::Record;
use crate::time::Instant;

/// What congestion control sees of the flight when a record is marked lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossCx {
    now: Instant,
    /// Before the marking.
    pipe: u32,
    phase: Phase,
}

impl Stream {
    /// Fetches congestion control's decision.
    pub(super) fn ask_for_decision(&self) -> SendDecision {
        self.cc.decision()
    }

    /// Counts a record that is marked lost, and tells congestion control of it. The path's MTU, and
    /// not congestion, may be the reason that a probe of it was lost (RFC 8899, section 3).
    pub(super) fn tell_of_loss(&mut self, cx: &LossCx, record: &Record) {
        if self.path_mtu.as_deref().is_some_and(|path| path.is_probed_by(record.start)) {
            return;
        }
        let mut lost = LostRecord::new(record.start, record.len(), record.stamp.in_flight);
        lost.lost_since_sent = self.losses_mut().on_lost(&record.stamp, record.len());
        lost.app_limited = record.app_limited();
        let mut view = self.flow_view(cx.now);
        (view.pipe, view.phase) = (cx.pipe, cx.phase);
        self.cc.on_lost(&view, &lost);
    }
}

impl Flight {
    /// For losses that are marked from now on.
    pub(super) fn loss_cx(&self, now: Instant) -> LossCx {
        LossCx { now, pipe: self.pipe(), phase: self.recovery.phase }
    }

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

    /// The congestion control was replaced, or may change without the sender's notice.
    pub(super) fn forget_decision(&mut self) {
        self.decision_is_stale = true;
    }

    /// Before an event: refreshes a stale decision.
    #[inline]
    pub(super) fn refresh_decision(&mut self, snd: &Stream) {
        if self.decision_is_stale {
            self.decision = snd.ask_for_decision();
            self.decision_is_stale = false;
        }
    }

    /// Traces the state after an ACK or a reduction.
    pub(super) fn trace_congestion(&self, snd: &Stream, ctx: &mut Ctx<'_>) {
        ctx.trace(|| TraceEvent::Congestion {
            cwnd: self.decision.window.bytes(),
            ssthresh: self.decision.ssthresh.bytes(),
            pipe: self.pipe(),
            snd_wnd: snd.window.wnd(),
            srtt: snd.rtt.srtt(),
            min_rtt: snd.rtt.min_rtt(),
            pacing_rate: Gap::of(&self.decision, snd.rtt.srtt_pace()).map(Gap::rate),
        });
    }
}
