//! The conventional response to a retransmission timeout (RFC 6298 section 5, RFC 5681 section 3.1,
//! RFC 6675 section 5.1): everything not SACKed is lost, the window falls to one segment, and lost
//! data is retransmitted in slow start.

use crate::policy::rto::{FirstStep, RtoStep, RtoView};

/// The conventional response, as the step of an [`Episode`](crate::policy::rto::Episode).
#[derive(Clone, Copy, Debug, Default)]
pub struct Conventional;

impl FirstStep for Conventional {
    const NAME: &'static str = "conventional";

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        RtoStep::conventional(view.flow.smss)
    }
}
