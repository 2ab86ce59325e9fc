//! `{{name}}`: everything that is not SACKed counts as lost, and the window becomes a few segments.

use ackline::core::Window;
use ackline::core::policy::NewRtoResponse;
use ackline::core::policy::cc::SsthreshRule;
use ackline::core::policy::rto::{FirstStep, RtoCc, RtoStep, RtoView};
use ackline::core::policy::spec::{Entry, Key};

pub const ENTRY: Entry<NewRtoResponse> =
    Entry::rto_step::<Few>("what is not SACKed is lost; slow start from a few segments");

#[derive(Clone, Debug)]
pub struct Few {
    segments: u32,
}

impl Default for Few {
    fn default() -> Self {
        Self { segments: 1 }
    }
}

impl FirstStep for Few {
    const NAME: &'static str = "{{name}}";
    const KEYS: &'static [Key<Self>] =
        &[Key::integer("segments", 1..=10, "window after a timeout, in segments", |few| &mut few.segments)];

    /// The timer fired. The core sends one segment and backs off, whatever the step says (RFC 6298,
    /// 5.4 to 5.6), and repairs until everything that was outstanding is acknowledged.
    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        let window = Window::from_bytes(u64::from(view.flow.smss * self.segments));
        let mut step = RtoStep::conventional(view.flow.smss);
        step.cc = RtoCc::Timeout { window, ssthresh: SsthreshRule::ByCc };
        step
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
