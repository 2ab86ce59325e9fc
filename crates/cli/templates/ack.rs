//! `{{name}}`: one ACK for every few full-sized segments, and none later than a fixed delay.

use ackline::core::Duration;
use ackline::core::policy::ack::{AckPlan, AckPolicy, DataArrival, DataClass, RecvView, SoftObligations};
use ackline::core::policy::spec::{Entry, Key, Keyed};
use ackline::core::policy::{NewAckPolicy, Params, SpecError};

pub const ENTRY: Entry<NewAckPolicy> =
    Entry::ack::<EveryFew>("{{name}}", "an ACK for every few segments, and none later than a delay");

/// The longest time that data waits for its ACK.
const DELAY: Duration = Duration::from_millis(40);

/// The state of one connection.
#[derive(Clone, Debug)]
pub struct EveryFew {
    segments: u32,
}

impl Default for EveryFew {
    fn default() -> Self {
        Self { segments: 4 }
    }
}

impl Keyed for EveryFew {
    const KEYS: &'static [Key<Self>] =
        &[Key::integer("segments", 1..=64, "full-sized segments per ACK", |it| &mut it.segments)];
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
        AckPlan::Withhold { until: view.oldest_unacked.unwrap_or(view.now) + DELAY }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set(self.name(), params)
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
        for spec in ["{{name}}", "{{name}}:segments=1", "{{name}}:segments=64"] {
            let make = registry.ack(spec).unwrap();
            for seed in 0..50 {
                conformance::ack_policy(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_ack(ENTRY);
        for wrong in ["segments=0", "segments=few", "gamma=1"] {
            assert!(registry.ack(&format!("{{name}}:{wrong}")).is_err(), "{wrong}");
        }
    }
}
