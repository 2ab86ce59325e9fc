//! Go-back-N (RFC 5681 section 3.1, RFC 6675 section 5.1, RFC 6298 section 5): a timeout means that
//! everything is lost. The window falls to one segment, and everything not SACKed is retransmitted
//! in slow start.
//!
//! Where it fails: a timeout that was only a delay retransmits a whole window, each copy released
//! by the ACK of an original, twice as fast as the path drains; the copies and what they release
//! overflow the shared queue.

use super::halved;
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::policy::cc::SsthreshRule;
use ackline_tcp_core::policy::rto::{AckFacts, RtoCc, RtoPhase, RtoResponse, RtoStep, RtoTags, RtoView};
use ackline_tcp_core::policy::spec::{Entry, ParamInfo};
use ackline_tcp_core::policy::{Metrics, NewRtoResponse, Params, SpecError};
use alloc::boxed::Box;
use alloc::sync::Arc;

const NAME: &str = "go-back-n";

const TABLE: &[ParamInfo] = &[ParamInfo {
    name: "keep_sack",
    default: "on",
    range: "on|off",
    summary: "do not send again what the peer has SACKed",
}];

pub(crate) const ENTRY: Entry<NewRtoResponse> = Entry {
    aliases: &["gbn"],
    summary: "everything outstanding is lost and goes out again in slow start",
    source: "RFC 5681 section 3.1, RFC 6675 section 5.1, RFC 6298 section 5",
    params: TABLE,
    ..Entry::new(NAME, |params| {
        let response = GoBackN::default().with(params)?;
        Ok(Arc::new(move || Box::new(response.clone())))
    })
};

/// The first step of go-back-N with the given rule for `ssthresh`.
pub(super) fn step(view: &RtoView, keep_sack: bool, ssthresh: SsthreshRule) -> RtoStep {
    let mut step = RtoStep::conventional(view.flow.smss);
    step.tags = if keep_sack { RtoTags::UnsackedLost } else { RtoTags::AllLost };
    if let RtoCc::Timeout { ssthresh: rule, .. } = &mut step.cc {
        *rule = ssthresh;
    }
    step
}

/// RFC 5681, section 3.1: half the flight, and not again if the same segment times out again.
pub(super) fn ssthresh(view: &RtoView) -> SsthreshRule {
    if view.expiries > 1 {
        SsthreshRule::Keep
    } else {
        SsthreshRule::To(halved(u64::from(view.flow.flight_size), view.flow.smss))
    }
}

/// Go-back-N.
#[derive(Clone, Debug)]
pub struct GoBackN {
    /// Do not retransmit what is SACKed.
    keep_sack: bool,
    /// RecoveryPoint: SND.MAX at the last timeout; `None` once all of it is acknowledged.
    recovery_point: Option<SeqNum>,
}

impl Default for GoBackN {
    fn default() -> Self {
        Self { keep_sack: true, recovery_point: None }
    }
}

impl GoBackN {
    fn with(mut self, params: &Params) -> Result<Self, SpecError> {
        for param in params.iter() {
            match param.key() {
                "keep_sack" => self.keep_sack = param.switch()?,
                _ => return Err(param.unknown(NAME, TABLE)),
            }
        }
        Ok(self)
    }
}

impl RtoResponse for GoBackN {
    fn name(&self) -> &'static str {
        NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.recovery_point = Some(view.flow.snd_nxt);
        step(view, self.keep_sack, ssthresh(view))
    }

    fn on_ack(&mut self, _view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        self.recovery_point.take_if(|point| ack.ack.ge(*point));
        None
    }

    fn phase(&self) -> RtoPhase {
        if self.recovery_point.is_some() { RtoPhase::Repair } else { RtoPhase::Open }
    }

    fn on_takeover(&mut self) {
        self.recovery_point = None;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.flag("repairing", self.recovery_point.is_some());
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        *self = self.clone().with(params)?;
        Ok(())
    }
}
