//! Wraps any policy and sends an ACK at once when the CE mark of arriving data changes (RFC 8257,
//! section 3.2).
//!
//! The core decides which ACKs carry ECE; this only makes sure that none of them waits. The core
//! wraps the policy of each connection that uses DCTCP feedback.

use crate::policy::ack::{AckCause, AckPlan, AckPolicy, AckSent, DataArrival, RecvView, SoftObligations};
use crate::policy::{Metrics, Params, SpecError};
use crate::time::Duration;
use alloc::boxed::Box;

/// Acknowledges changes of CE at once, and leaves everything else to another policy.
#[derive(Debug)]
pub struct CeEcho {
    inner: Box<dyn AckPolicy>,
    name: &'static str,
    /// The last in-order data carried CE.
    ce: bool,
    /// The last ACK asked for was for a change of CE alone.
    echoes: bool,
}

impl CeEcho {
    /// Wraps `inner`, with its name.
    #[must_use]
    pub fn around(inner: Box<dyn AckPolicy>) -> Self {
        let name = inner.name();
        Self::named(name, inner)
    }

    /// Wraps `inner`, with another name.
    #[must_use]
    pub fn named(name: &'static str, inner: Box<dyn AckPolicy>) -> Self {
        Self { inner, name, ce: false, echoes: false }
    }
}

impl AckPolicy for CeEcho {
    fn name(&self) -> &'static str {
        self.name
    }

    fn waives(&self) -> SoftObligations {
        self.inner.waives()
    }

    /// All segments of a run have the same mark.
    fn takes_runs(&self) -> bool {
        self.inner.takes_runs()
    }

    fn delay(&self) -> Option<Duration> {
        self.inner.delay()
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let plan = self.inner.on_data(view, data);
        let changed = data.ce != self.ce;
        self.ce = data.ce;
        self.echoes = changed && !matches!(plan, AckPlan::Now { .. });
        if self.echoes { AckPlan::NOW } else { plan }
    }

    fn on_ack_sent(&mut self, view: &RecvView, sent: &AckSent) -> AckPlan {
        self.inner.on_ack_sent(view, sent)
    }

    fn on_app_read(&mut self, view: &RecvView) -> AckPlan {
        self.inner.on_app_read(view)
    }

    fn on_timeout(&mut self, view: &RecvView) -> AckPlan {
        self.inner.on_timeout(view)
    }

    fn on_hold_truncated(&mut self, view: &RecvView) {
        self.inner.on_hold_truncated(view);
    }

    fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        if self.echoes && cause == AckCause::Plan { "change of CE" } else { self.inner.rule(view, cause) }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.inner.metrics(report);
        report.flag("ce", self.ce);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.inner.configure(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ack::DataClass;
    use crate::policy::builtin::DelayedAck;
    use crate::seq::SeqNum;
    use crate::time::Instant;

    #[test]
    fn only_a_change_is_acknowledged_at_once() {
        let mut policy = CeEcho::around(Box::new(DelayedAck::default()));
        let mut seq = SeqNum(0);
        let mut at_once = |ce| {
            let mut view = RecvView::new(Instant::from_millis(100), seq + 1000, 65_535, 1000);
            view.highest_ack = seq;
            view.oldest_unacked = Some(view.now);
            let mut data = DataArrival::new(seq, seq + 1000, DataClass::New);
            data.ce = ce;
            seq += 1000;
            policy.on_data(&view, &data) == AckPlan::NOW
        };
        let marks = [false, true, true, false, false, true];
        assert_eq!(marks.map(&mut at_once), [false, true, false, true, false, true]);
        assert_eq!(policy.name(), "delayed");
    }

    #[test]
    fn a_change_has_its_words_and_all_else_those_of_the_other_policy() {
        let mut policy = CeEcho::around(Box::new(DelayedAck::default()));
        let seq = SeqNum(0);
        // A marked segment alone, a second one, then one whose timer fires.
        for (ce, unacked, cause, expected) in [
            (true, 1000, AckCause::Plan, "change of CE"),
            (true, 2000, AckCause::Plan, "second segment"),
            (false, 2000, AckCause::Plan, "second segment"),
            (false, 1000, AckCause::Timer, "delay"),
            (true, 1000, AckCause::Timer, "delay"),
        ] {
            let mut view = RecvView::new(Instant::from_millis(100), seq + unacked, 65_535, 1000);
            view.highest_ack = seq;
            view.oldest_unacked = Some(view.now);
            let mut data = DataArrival::new(view.rcv_nxt - 1000, view.rcv_nxt, DataClass::New);
            data.ce = ce;
            policy.on_data(&view, &data);
            assert_eq!(policy.rule(&view, cause), expected, "{ce} {unacked} {cause:?}");
        }
    }
}
