//! Y. Swami, K. Le, "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts": the data set.
//!
//! | file | holds |
//! |---|---|
//! | `paper.rs` | what the draft prints |
//! | `responses.rs` | who is compared, and what each one's hosts are |
//! | `mix.rs` | the traffic of Table 2: jobs, and what is kept of a run |
//! | `ideal.rs`, `floor.rs` | what the path alone costs, by a model and by the stack |
//! | `compare.rs` | Tables 3 to 6, distributions, the orders that must come out |
//! | `settings.rs` | DCLOR's own settings over the same traffic |
//! | `assumptions.rs` | the same orders with the draft's gaps filled in other ways |
//! | `further/` | experiments that the draft does not have |

mod assumptions;
mod compare;
mod floor;
mod further;
mod ideal;
mod mix;
mod paper;
mod responses;
mod settings;

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::study::{Knob, Paper, Part, Request, Study};
use crate::scenario::Scenario;

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dclor;

const PAPER: Paper = Paper {
    name: "dclor",
    stem: "dclor",
    title: "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts (draft-swami-tsvwg-tcp-dclor-00)",
    authors: "Y. Swami, K. Le",
    year: Some(2002),
};

const FLOOR: &str = "floor";
const SETTINGS: &str = "settings";
const ASSUMPTIONS: &str = "assumptions";

const PARTS: &[Part] = &[
    Part { name: FLOOR, what: "calibration: downloads that never time out and lose nothing" },
    Part { name: "3", what: "Table 3: download time of 5 KB files" },
    Part { name: "4", what: "Table 4: download time of 10 KB files" },
    Part { name: "5", what: "Table 5: download time of 100 KB files" },
    Part { name: "6", what: "Table 6: spectral efficiency" },
    Part { name: compare::APART, what: "Tables 3 to 6 where each row of Table 2 has the path for itself" },
    Part { name: SETTINGS, what: "DCLOR's own settings over the traffic of Table 2" },
    Part {
        name: ASSUMPTIONS,
        what: "the orders of Tables 3 to 6 where the draft's gaps are filled otherwise",
    },
    Part { name: further::COMPETING, what: "competing flows at a drop-tail router while one stalls" },
    Part {
        name: further::SUBNET,
        what: "a path whose capacity changes by ten, up and down, while it stalls",
    },
    Part { name: further::ALL_LOST, what: "a flight of which everything is lost" },
    Part { name: further::DISORDER, what: "loss and reordering in what a stall held back" },
];

impl Study for Dclor {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick, Knob::Seeds, Knob::Scale]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = vec![];
        if request.wants(FLOOR) {
            jobs.extend(floor::plan(request)?);
        }
        jobs.extend(compare::plan(request)?);
        if request.wants(SETTINGS) {
            jobs.extend(settings::plan(request)?);
        }
        if request.wants(ASSUMPTIONS) {
            jobs.extend(assumptions::plan(request)?);
        }
        jobs.extend(further::plan(request)?);
        Ok(jobs)
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        if request.wants(FLOOR) {
            found.extend(floor::evaluate(outputs)?);
        }
        found.extend(compare::evaluate(request, outputs)?);
        if request.wants(SETTINGS) {
            found.extend(settings::evaluate(request, outputs)?);
        }
        if request.wants(ASSUMPTIONS) {
            found.extend(assumptions::evaluate(request, outputs)?);
        }
        found.extend(further::evaluate(request, outputs)?);
        Ok(found)
    }
}

/// A scenario of the data set.
fn scenario(name: &str, text: &str) -> Result<Scenario, ReproduceError> {
    Ok(Scenario::parse(text, name)?)
}

#[cfg(test)]
mod tests {
    use super::super::engine::{Options, reproduce};
    use super::*;

    /// A thousandth of the traffic tells nothing about responses, but all of it must end, on a page without mistakes.
    #[test]
    fn a_thousandth_of_the_traffic_ends() {
        let options = Options {
            parts: vec!["4".to_owned(), "6".to_owned()],
            seeds: Some(1),
            scale: Some(0.001),
            ..Options::default()
        };
        let done = reproduce(&[&Dclor], &options).unwrap();
        let found = &done[0].reproduction;
        let unfinished = found.checks.iter().find(|check| check.id == "mix/unfinished").unwrap();
        assert!(unfinished.ok, "{unfinished:?}");
        let ids: Vec<&str> = found.tables.iter().map(|table| table.id.as_str()).collect();
        assert_eq!(ids, ["4", "all-10K", "all-1000K", "all-10000K", "6", "probe"]);
        assert_eq!(found.figures.len(), 1);
    }
}
