//! Delayed acknowledgments (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2): at least one ACK for
//! every second full-sized segment, and none later than a fixed delay.

use crate::policy::ack::{AckCause, AckPlan, AckPolicy, DataArrival, DataClass, RecvView, SoftObligations};
use crate::policy::spec::{Key, Keyed};
use crate::policy::{Metrics, Params, SpecError};
use crate::time::Duration;

/// Segments per ACK that RFC 9293 (section 3.8.6.3) permits without a deviation.
const STANDARD_SEGMENTS: u32 = 2;
/// RFC 9293, section 3.8.6.3: the delay MUST be less than 0.5 s.
const MAX_DELAY: Duration = Duration::from_millis(499);

/// The delayed ACK of RFC 5681, with configurable delay and number of segments.
///
/// With more than two segments per ACK it waives the every-second-segment rule (a SHOULD), and the
/// core counts the waived ACKs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    delay: Duration,
    segments: u32,
}

impl DelayedAck {
    /// An ACK for every `segments` full-sized segments (at least 1), and at most `delay` after the
    /// first unacknowledged byte.
    #[must_use]
    pub const fn new(delay: Duration, segments: u32) -> Self {
        Self { delay, segments: if segments == 0 { 1 } else { segments } }
    }
}

impl Keyed for DelayedAck {
    const KEYS: &'static [Key<Self>] = &[
        Key::time(
            "delay",
            Duration::ZERO..=MAX_DELAY,
            "longest time that the first unacknowledged byte waits",
            |it| &mut it.delay,
        ),
        Key::integer("segments", 1..=1_000, "full-sized segments that one ACK is for", |it| &mut it.segments),
    ];
}

impl Default for DelayedAck {
    /// 40 ms and every second segment.
    fn default() -> Self {
        Self::new(Duration::from_millis(40), STANDARD_SEGMENTS)
    }
}

impl AckPolicy for DelayedAck {
    fn name(&self) -> &'static str {
        "delayed"
    }

    fn waives(&self) -> SoftObligations {
        SoftObligations::NONE.and_every_second()
    }

    fn lets_acks_wait(&self) -> bool {
        true
    }

    /// What decides is what waits at the end of a run. If the core's rule for every second segment
    /// is waived, it counts the segments for which that was so.
    fn takes_runs(&self) -> bool {
        self.segments <= STANDARD_SEGMENTS
    }

    fn delay(&self) -> Option<Duration> {
        Some(self.delay)
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let full = self.segments.saturating_mul(view.rmss.max(1));
        if data.class != DataClass::New || data.fin || view.unacked() >= full {
            return AckPlan::NOW;
        }
        let due = view.oldest_unacked.unwrap_or(view.now) + self.delay;
        if due <= view.now {
            AckPlan::NOW
        } else if self.segments > STANDARD_SEGMENTS {
            AckPlan::Withhold { until: due }
        } else {
            AckPlan::By(due)
        }
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        AckPlan::NOW
    }

    fn rule(&self, view: &RecvView, cause: AckCause) -> &'static str {
        let full = view.unacked() >= self.segments.saturating_mul(view.rmss.max(1));
        // More data came before the timer was served.
        let waited = view.oldest_unacked.is_some_and(|since| since + self.delay <= view.now);
        match cause {
            AckCause::Timer => "delay",
            _ if full && self.segments == STANDARD_SEGMENTS => "second segment",
            _ if full => "enough segments",
            _ if waited => "delay",
            _ => "",
        }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.millis("delay_ms", self.delay);
        report.number("segments", self.segments);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set("delayed", params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::SeqNum;
    use crate::time::Instant;
    use alloc::string::ToString;

    const MSS: u32 = 1000;

    /// `bytes` arrive in order at `now`, the oldest unacknowledged one having arrived at `oldest`.
    fn arrival(policy: &mut DelayedAck, oldest: u64, now: u64, unacked: u32) -> AckPlan {
        let mut view = RecvView::new(Instant::from_millis(now), SeqNum(5000), 65_535, MSS);
        view.highest_ack = view.rcv_nxt - unacked;
        view.oldest_unacked = Some(Instant::from_millis(oldest));
        policy.on_data(&view, &DataArrival::new(view.rcv_nxt - MSS, view.rcv_nxt, DataClass::New))
    }

    #[test]
    fn second_full_segment_is_acknowledged_at_once() {
        let mut policy = DelayedAck::default();
        assert_eq!(arrival(&mut policy, 100, 100, MSS), AckPlan::By(Instant::from_millis(140)));
        assert_eq!(arrival(&mut policy, 100, 110, 2 * MSS), AckPlan::NOW);
    }

    #[test]
    fn the_delay_counts_from_the_first_byte_that_waits() {
        let mut policy = DelayedAck::new(Duration::from_millis(200), 2);
        assert_eq!(arrival(&mut policy, 100, 150, MSS + 1), AckPlan::By(Instant::from_millis(300)));
        assert_eq!(arrival(&mut policy, 100, 300, MSS + 2), AckPlan::NOW);
    }

    #[test]
    fn more_than_two_segments_per_ack_are_withheld_from_the_core() {
        let params = "segments=8,delay=100ms".parse().unwrap();
        let mut policy = DelayedAck::from_params("delayed", &params).unwrap();
        let until = Instant::from_millis(200);
        assert!(policy.waives().every_second);
        assert_eq!(arrival(&mut policy, 100, 101, 7 * MSS), AckPlan::Withhold { until });
        assert_eq!(arrival(&mut policy, 100, 102, 8 * MSS), AckPlan::NOW);
    }

    #[test]
    fn each_rule_has_its_words() {
        let (standard, eight) = (DelayedAck::default(), DelayedAck::new(Duration::from_millis(40), 8));
        for (policy, cause, waited, unacked, expected) in [
            (&standard, AckCause::Plan, 1, 2 * MSS, "second segment"),
            (&eight, AckCause::Plan, 1, 8 * MSS, "enough segments"),
            (&standard, AckCause::Timer, 40, 100, "delay"),
            (&standard, AckCause::Plan, 41, 200, "delay"),
            // The core's rules: out of order, and nothing new.
            (&standard, AckCause::Plan, 1, 100, ""),
            (&standard, AckCause::Plan, 0, 0, ""),
        ] {
            let mut view = RecvView::new(Instant::from_millis(100), SeqNum(50_000), 65_535, MSS);
            view.highest_ack = view.rcv_nxt - unacked;
            view.oldest_unacked = (unacked > 0).then(|| Instant::from_millis(100 - waited));
            assert_eq!(policy.rule(&view, cause), expected, "{policy:?} {cause:?} {waited} {unacked}");
        }
    }

    #[test]
    fn a_refused_configure_changes_nothing() {
        let mut policy = DelayedAck::default();
        let before = policy.clone();
        let error = policy.configure(&"segments=4,delay=2s".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("delay=2s"), "{error}");
        assert_eq!(policy, before);
        policy.configure(&"segments=4".parse().unwrap()).unwrap();
        assert_eq!(policy, DelayedAck::new(Duration::from_millis(40), 4));
    }
}
