//! The conventional response to a retransmission timeout (RFC 6298 section 5, RFC 5681 section 3.1,
//! RFC 6675 section 5.1): everything not SACKed is lost, the window falls to one segment, and lost
//! data is retransmitted in slow start.

use crate::policy::Metrics;
use crate::policy::rto::{AckFacts, RtoPhase, RtoResponse, RtoStep, RtoView};
use crate::seq::SeqNum;

/// The conventional response.
#[derive(Clone, Debug, Default)]
pub struct Conventional {
    /// SND.NXT at the last expiry; repair lasts until it is acknowledged.
    recovery_point: Option<SeqNum>,
}

impl RtoResponse for Conventional {
    fn name(&self) -> &'static str {
        "conventional"
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.recovery_point = Some(view.flow.snd_nxt);
        RtoStep::conventional(view.flow.smss)
    }

    fn on_ack(&mut self, _view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        if self.recovery_point.is_some_and(|point| ack.ack.ge(point)) {
            self.recovery_point = None;
        }
        None
    }

    fn phase(&self) -> RtoPhase {
        if self.recovery_point.is_some() { RtoPhase::Repair } else { RtoPhase::Open }
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.flag("repairing", self.recovery_point.is_some());
    }
}
