//! `{{name}}`: everything that is not SACKed counts as lost, and the window becomes a few segments.

use ackline::core::policy::cc::SsthreshRule;
use ackline::core::policy::rto::{AckFacts, RtoCc, RtoPhase, RtoResponse, RtoStep, RtoView};
use ackline::core::policy::spec::{Entry, ParamInfo};
use ackline::core::policy::{NewRtoResponse, Params, SpecError};
use ackline::core::{SeqNum, Window};
use std::sync::Arc;

pub const ENTRY: Entry<NewRtoResponse> = Entry {
    summary: "what is not SACKed is lost; slow start from a few segments",
    source: "this crate",
    params: PARAMS,
    ..Entry::new("{{name}}", |params| {
        let response = Response::default().with(params)?;
        Ok(Arc::new(move || Box::new(response.clone())))
    })
};

const PARAMS: &[ParamInfo] =
    &[ParamInfo { name: "segments", default: "1", range: "1..10", summary: "window after a timeout, in segments" }];

/// The state of one connection.
#[derive(Clone, Debug)]
struct Response {
    segments: u32,
    /// SND.NXT at the last expiry. The repair lasts until it is acknowledged.
    recovery_point: Option<SeqNum>,
}

impl Default for Response {
    fn default() -> Self {
        Self { segments: 1, recovery_point: None }
    }
}

impl Response {
    fn with(&self, params: &Params) -> Result<Self, SpecError> {
        let mut new = self.clone();
        for param in params.iter() {
            match param.key() {
                "segments" => new.segments = param.integer(1..=10)? as u32,
                _ => return Err(param.unknown("{{name}}", PARAMS)),
            }
        }
        Ok(new)
    }
}

impl RtoResponse for Response {
    fn name(&self) -> &'static str {
        "{{name}}"
    }

    /// The timer fired. The core sends one segment and backs off, whatever the step says (RFC 6298,
    /// 5.4 to 5.6).
    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.recovery_point = Some(view.flow.snd_nxt);
        let window = Window::from_bytes(u64::from(view.flow.smss * self.segments));
        let mut step = RtoStep::conventional(view.flow.smss);
        step.cc = RtoCc::Timeout { window, ssthresh: SsthreshRule::ByCc };
        step
    }

    fn on_ack(&mut self, _: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        self.recovery_point = self.recovery_point.filter(|point| !ack.ack.ge(*point));
        None
    }

    fn phase(&self) -> RtoPhase {
        if self.recovery_point.is_some() { RtoPhase::Repair } else { RtoPhase::Open }
    }

    fn on_takeover(&mut self) {
        self.recovery_point = None;
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        *self = self.with(params)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let registry = Registry::default().with_rto(ENTRY);
        for spec in ["{{name}}", "{{name}}:segments=4"] {
            let make = registry.rto(spec).unwrap();
            for seed in 0..50 {
                conformance::rto_response(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_rto(ENTRY);
        for wrong in ["segments=0", "segments=many", "gamma=1"] {
            assert!(registry.rto(&format!("{{name}}:{wrong}")).is_err(), "{wrong}");
        }
    }
}
