//! Binomial congestion control: per round trip the window w grows by alpha / w^k segments, and at a
//! loss it shrinks by beta w^l (D. Bansal and H. Balakrishnan, *Binomial Congestion Control
//! Algorithms*, INFOCOM 2001, section II).
//!
//! ```text
//!   k = 0, l = 1        AIMD, as Reno                k + l = 1: shares a link fairly with Reno
//!   k = l = 1/2         SQRT, the default            smaller l: smaller steps, for audio and video
//! ```

use ackline::core::policy::spec::{Entry, Key};
use ackline::core::policy::window::{DecreaseCx, GrowthCx, WindowGrowth, Windows};
use ackline::core::policy::{Metrics, NewCongestionControl};

pub const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "Bansal and Balakrishnan 2001",
    ..Entry::growth::<Binomial>("grows by 1 / w^k per round trip, shrinks by w^l / 2 at a loss")
};

#[derive(Clone, Debug)]
struct Binomial {
    k: f64,
    l: f64,
}

impl Default for Binomial {
    fn default() -> Self {
        Self { k: 0.5, l: 0.5 }
    }
}

impl Binomial {
    /// What a round trip adds, in segments.
    fn per_round(&self, w: &Windows) -> f64 {
        1.0 / w.segments().powf(self.k)
    }
}

impl WindowGrowth for Binomial {
    const NAME: &'static str = "binomial";
    const KEYS: &'static [Key<Self>] = &[
        Key::number("k", 0.0..=1.0, "exponent of the increase", |it| &mut it.k),
        Key::number("l", 0.0..=1.0, "exponent of the decrease", |it| &mut it.l),
    ];

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let per_round = f64::from(w.smss()) * self.per_round(w);
        w.grow(per_round * f64::from(cx.acked) / w.bytes());
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        let segment = f64::from(w.smss());
        let base = cx.base(w) / segment;
        w.reduce_to(segment * (base - 0.5 * base.powf(self.l)));
    }

    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        report.number("segments_per_round", self.per_round(w));
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
        for spec in ["binomial", "binomial:k=0,l=1", "binomial:k=1,l=0"] {
            let make = registry.cc(spec).unwrap();
            for seed in 0..50 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}
