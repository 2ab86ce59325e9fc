//! Delayed acknowledgments (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2): at least one ACK for every second
//! full-sized segment, and none later than a fixed delay.

use crate::policy::ack::{AckPlan, AckPolicy, DataArrival, DataClass, RecvView};
use crate::time::Duration;

/// The delayed ACK of RFC 5681.
#[derive(Clone, Debug)]
pub struct DelayedAck {
    delay: Duration,
    segments: u32,
}

impl DelayedAck {
    /// An ACK for every `segments` full-sized segments (at least 1), and at the latest `delay` after the
    /// first byte that waits.
    #[must_use]
    pub const fn new(delay: Duration, segments: u32) -> Self {
        Self { delay, segments: if segments == 0 { 1 } else { segments } }
    }
}

impl Default for DelayedAck {
    /// 40 ms and every second segment.
    fn default() -> Self {
        Self::new(Duration::from_millis(40), 2)
    }
}

impl AckPolicy for DelayedAck {
    fn name(&self) -> &'static str {
        "delayed"
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let full = self.segments.saturating_mul(view.rmss.max(1));
        if data.class != DataClass::New || data.fin || view.unacked() >= full {
            return AckPlan::NOW;
        }
        AckPlan::By(view.oldest_unacked.unwrap_or(view.now) + self.delay)
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        AckPlan::NOW
    }
}
