//! R. K. C. Chang, H. Y. Chan and A. W. Yeung, "Deadlock-Free TCP Over High-Speed Internet": the data set.
//!
//! The scenarios are in `scenarios/papers/a3/`; each cell of a table is one run of one of them. Nothing in them is random.

mod conditions;
mod congestion;
mod equations;
mod loopback;
mod numbers;
mod regions;
mod runs;
mod sensitivity;
mod throughput;

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::study::{Paper, Part, Request, Study};

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct A3;

const PAPER: Paper = Paper {
    name: "a3",
    stem: "a3-csa3",
    title: "Deadlock-Free TCP Over High-Speed Internet",
    authors: "R. K. C. Chang, H. Y. Chan, A. W. Yeung",
    year: None,
};

const LOOPBACK: &str = "15.1";
const THROUGHPUT: &str = "15.2";
const EQUATIONS: &str = "equations";
const REGIONS: &str = "15.3";
const CONGESTION: &str = "figures";
const SENSITIVITY: &str = "sensitivity";

const PARTS: &[Part] = &[
    Part { name: LOOPBACK, what: "throughput over the loopback of SunOS, 64 pairs of buffers" },
    Part { name: THROUGHPUT, what: "throughput under delayed ACKs, A3, and A3 with fewer samplings" },
    Part { name: EQUATIONS, what: "when buffers lock: equations 1 and 2; nothing is simulated" },
    Part { name: REGIONS, what: "what becomes of A3 under congestion, by buffers" },
    Part { name: CONGESTION, what: "figures 15.4 to 15.9: A3 and CSA3 under congestion" },
    Part { name: SENSITIVITY, what: "Table 15.2 with other delays, rates, timers and copy rules" },
];

impl Study for A3 {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = vec![];
        if request.wants(LOOPBACK) {
            jobs.extend(loopback::plan()?);
        }
        if request.wants(THROUGHPUT) {
            jobs.extend(throughput::plan()?);
        }
        if request.wants(REGIONS) {
            jobs.extend(regions::plan()?);
        }
        if request.wants(CONGESTION) {
            jobs.extend(congestion::plan()?);
        }
        if request.wants(SENSITIVITY) {
            jobs.extend(sensitivity::plan()?);
        }
        Ok(jobs)
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        if request.wants(LOOPBACK) {
            found.extend(loopback::evaluate(outputs)?);
        }
        if request.wants(THROUGHPUT) {
            found.extend(throughput::evaluate(outputs)?);
        }
        if request.wants(EQUATIONS) {
            found.extend(conditions::evaluate());
        }
        if request.wants(REGIONS) {
            found.extend(regions::evaluate(outputs)?);
        }
        if request.wants(CONGESTION) {
            found.extend(congestion::evaluate(outputs)?);
        }
        if request.wants(SENSITIVITY) {
            found.extend(sensitivity::evaluate(outputs)?);
        }
        Ok(found)
    }
}
