//! R. K. C. Chang, H. Y. Chan and A. W. Yeung, "Deadlock-Free TCP Over High-Speed Internet": the data set.

mod conditions;
mod equations;

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

/// The conditions of the deadlock, and the regions that follow from them.
const CONDITIONS: &str = "15.3";

const PARTS: &[Part] = &[Part {
    name: CONDITIONS,
    what: "when buffers lock (equations 1 and 2), and the regions of Table 15.3",
}];

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

    fn plan(&self, _: &Request) -> Result<Vec<Job>, ReproduceError> {
        Ok(vec![])
    }

    fn evaluate(&self, request: &Request, _: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        if request.wants(CONDITIONS) {
            found.extend(conditions::evaluate());
        }
        Ok(found)
    }
}
