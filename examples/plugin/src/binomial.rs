//! Binomial congestion control: per round trip the window w grows by alpha / w^k segments, and at a
//! loss it shrinks by beta w^l (D. Bansal and H. Balakrishnan, *Binomial Congestion Control
//! Algorithms*, INFOCOM 2001, section II).
//!
//! ```text
//!   k = 0, l = 1        AIMD, as Reno                k + l = 1: shares a link fairly with Reno
//!   k = l = 1/2         SQRT, the default            smaller l: smaller steps, for audio and video
//! ```

use ackline::core::policy::spec::{Entry, ParamInfo};
use ackline::core::policy::window::{self, DecreaseCx, GrowthCx, WindowGrowth, Windows};
use ackline::core::policy::{Metrics, NewCongestionControl, Params, SpecError};

pub const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "grows by 1 / w^k per round trip, shrinks by w^l / 2 at a loss",
    source: "Bansal and Balakrishnan 2001",
    params: &[
        ParamInfo { name: "k", default: "0.5", range: "0..1", summary: "exponent of the increase" },
        ParamInfo { name: "l", default: "0.5", range: "0..1", summary: "exponent of the decrease" },
    ],
    ..Entry::new("binomial", |params| window::make(Binomial { k: 0.5, l: 0.5 }, params))
};

#[derive(Clone, Debug)]
struct Binomial {
    k: f64,
    l: f64,
}

impl Binomial {
    /// What a round trip adds, in segments.
    fn per_round(&self, w: &Windows) -> f64 {
        1.0 / w.segments().powf(self.k)
    }
}

impl WindowGrowth for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

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

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        for param in params.iter() {
            match param.key() {
                "k" => self.k = param.number(0.0..=1.0)?,
                "l" => self.l = param.number(0.0..=1.0)?,
                _ => return Err(param.unknown(self.name(), ENTRY.params)),
            }
        }
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
        let registry = Registry::default().with_cc(ENTRY);
        for spec in ["binomial", "binomial:k=0,l=1", "binomial:k=1,l=0"] {
            let make = registry.cc(spec).unwrap();
            for seed in 0..50 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}
