//! F. Su, X. Pan, J. Wang, Z. Wan, "An algorithm for reducing loss rate of high-speed TCP" (2006): the data set.
//!
//! The paper gives no packet size, buffer or round trip of its single flow; what is here was inferred from its numbers: 1000 bytes
//! of data in a packet, and 1000 packets of buffer if flows share the link. Beside the paper's numbers stand those of an
//! independent packet-level model of the same inferences.

mod reading;
mod runs;
mod shared;
mod single;
mod sweep;

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::study::{Knob, Paper, Part, Request, Study};

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acwap;

const PAPER: Paper = Paper {
    name: "acwap",
    stem: "hstcp-acwap",
    title: "An algorithm for reducing loss rate of high-speed TCP",
    authors: "F. Su, X. Pan, J. Wang, Z. Wan",
    year: Some(2006),
};

/// One flow.
const SINGLE: &str = "single";
/// HSTCP's shares.
const TABLE_1: &str = "1";
/// ACWAP's shares.
const TABLE_2: &str = "2";
/// The sweep of beta.
const BETA: &str = "beta";
/// ACWAP's halves.
const ABLATION: &str = "ablation";

const PARTS: &[Part] = &[
    Part {
        name: SINGLE,
        what: "one flow at 500 Mbit/s: window, losses and their distance (Figures 2, 3, 6)",
    },
    Part { name: TABLE_1, what: "HSTCP flows of 60, 120, 180 ms and Reno at 1 Gbit/s" },
    Part { name: TABLE_2, what: "ACWAP flows of 60, 120, 180 ms at 1 Gbit/s" },
    Part { name: BETA, what: "HSTCP beside ACWAP over beta (Figures 7 to 9)" },
    Part { name: ABLATION, what: "ACWAP's clamp and pacing, each alone" },
];

impl Study for Acwap {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick, Knob::Seeds]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        runs::plan(request)
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        if request.wants(SINGLE) {
            found.extend(single::evaluate(outputs)?);
        }
        found.extend(shared::evaluate(request, outputs)?);
        if request.wants(BETA) {
            found.extend(sweep::evaluate(request, outputs)?);
        }
        found.notes.push(runs::extent(request));
        Ok(found)
    }
}
