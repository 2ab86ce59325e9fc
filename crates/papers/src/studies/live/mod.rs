//! Live parts of the papers: small scenarios with the kernel's TCP at the far end, simulated and by
//! the real clock.

mod a3;
mod acwap;
mod dclor;
mod kalampoukas;
mod ls_aimd;

use crate::request::Knob;
use crate::study::{Paper, Part, Study};

/// All live parts, in the order in which they are listed.
pub const LIVE: &[&dyn Study] = &[&a3::LIVE, &kalampoukas::LIVE, &dclor::LIVE, &acwap::LIVE, &ls_aimd::LIVE];

/// The live part of a paper.
#[derive(Clone, Copy, Debug)]
struct LiveStudy {
    paper: Paper,
    parts: &'static [Part],
    page: &'static str,
    pins: &'static str,
}

impl Study for LiveStudy {
    fn paper(&self) -> &Paper {
        &self.paper
    }

    fn parts(&self) -> &[Part] {
        self.parts
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick, Knob::Seeds]
    }

    fn page(&self) -> &str {
        self.page
    }

    fn pins(&self) -> &str {
        self.pins
    }
}

/// The part that is this experiment.
macro_rules! part {
    ($experiment:expr, $what:literal) => {
        $crate::study::Part {
            name: $experiment.name,
            what: $what,
            plan: |request| $experiment.plan(request),
            evaluate: |request, outputs| $experiment.evaluate(request, outputs),
        }
    };
}

use part;
