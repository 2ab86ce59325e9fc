//! `{{name}}`: adds one segment per round trip, and gives up a share of the window when data is
//! lost.

use ackline::core::policy::NewCongestionControl;
use ackline::core::policy::spec::{Entry, Key};
use ackline::core::policy::window::{DecreaseCx, GrowthCx, WindowGrowth, Windows};

pub const ENTRY: Entry<NewCongestionControl> =
    Entry::growth::<Growth>("adds one segment per round trip, gives up a share of the window on loss");

/// The state of one connection. A clone of it is what the undo of a needless reduction restores.
#[derive(Clone, Debug)]
pub struct Growth {
    beta: f64,
}

impl Default for Growth {
    fn default() -> Self {
        Self { beta: 0.5 }
    }
}

impl WindowGrowth for Growth {
    const NAME: &'static str = "{{name}}";
    const KEYS: &'static [Key<Self>] =
        &[Key::number("beta", 0.1..=0.9, "share of the window that is kept", |growth| &mut growth.beta)];

    /// Congestion avoidance: `cx.acked` bytes were acknowledged. RFC 5681, equation 3.
    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        w.grow(f64::from(w.smss()) * f64::from(cx.acked) / w.bytes());
    }

    /// Loss, ECN or a timeout, once per window of data.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.base(w) * self.beta);
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let registry = Registry::default().with_cc(ENTRY);
        for spec in ["{{name}}", "{{name}}:beta=0.8"] {
            let make = registry.cc(spec).unwrap();
            for seed in 0..50 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_cc(ENTRY);
        for wrong in ["beta=1", "beta=half", "gamma=1"] {
            assert!(registry.cc(&format!("{{name}}:{wrong}")).is_err(), "{wrong}");
        }
    }
}
