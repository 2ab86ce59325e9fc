//! `{{name}}`: one ACK for every few full-sized segments, and none later than a fixed delay.

use ackline::core::Duration;
use ackline::core::policy::ack::{AckPlan, AckPolicy, DataArrival, DataClass, RecvView, SoftObligations};
use ackline::core::policy::spec::{Entry, ParamInfo};
use ackline::core::policy::{NewAckPolicy, Params, SpecError};
use std::sync::Arc;

pub const ENTRY: Entry<NewAckPolicy> = Entry {
    summary: "an ACK for every few segments, and none later than a delay",
    source: "this crate",
    params: PARAMS,
    ..Entry::new("{{name}}", |params| {
        let policy = EveryFew::default().with(params)?;
        Ok(Arc::new(move |_| Box::new(policy.clone())))
    })
};

const PARAMS: &[ParamInfo] = &[
    ParamInfo { name: "segments", default: "4", range: "1..64", summary: "full-sized segments per ACK" },
    ParamInfo { name: "delay", default: "40ms", range: "1ms..400ms", summary: "longest time that data waits for its ACK" },
];

/// The state of one connection.
#[derive(Clone, Debug)]
struct EveryFew {
    segments: u32,
    delay: Duration,
}

impl Default for EveryFew {
    fn default() -> Self {
        Self { segments: 4, delay: Duration::from_millis(40) }
    }
}

impl EveryFew {
    fn with(&self, params: &Params) -> Result<Self, SpecError> {
        let mut new = self.clone();
        for param in params.iter() {
            match param.key() {
                "segments" => new.segments = param.integer(1..=64)? as u32,
                "delay" => new.delay = param.duration(Duration::from_millis(1)..=Duration::from_millis(400))?,
                _ => return Err(param.unknown("{{name}}", PARAMS)),
            }
        }
        Ok(new)
    }
}

impl AckPolicy for EveryFew {
    fn name(&self) -> &'static str {
        "{{name}}"
    }

    /// RFC 9293, section 3.8.6.3, asks for an ACK for every second segment (SHOULD). This policy
    /// takes that over; the core counts what it makes of it, and keeps all other obligations.
    fn waives(&self) -> SoftObligations {
        SoftObligations::NONE.and_every_second()
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        let enough = self.segments * view.rmss.max(1);
        if data.class != DataClass::New || data.fin || view.unacked() >= enough {
            return AckPlan::NOW;
        }
        AckPlan::Withhold { until: view.oldest_unacked.unwrap_or(view.now) + self.delay }
    }

    fn on_timeout(&mut self, _: &RecvView) -> AckPlan {
        AckPlan::NOW
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
        let registry = Registry::default().with_ack(ENTRY);
        for spec in ["{{name}}", "{{name}}:segments=1", "{{name}}:segments=64,delay=400ms"] {
            let make = registry.ack(spec).unwrap();
            for seed in 0..50 {
                conformance::ack_policy(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_ack(ENTRY);
        for wrong in ["segments=0", "delay=1", "gamma=1"] {
            assert!(registry.ack(&format!("{{name}}:{wrong}")).is_err(), "{wrong}");
        }
    }
}
