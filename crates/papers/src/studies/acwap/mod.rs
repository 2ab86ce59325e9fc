//! F. Su, X. Pan, J. Wang, Z. Wan, "An algorithm for reducing loss rate of high-speed TCP" (2006):
//! the data set.
//!
//! The paper gives no packet size, buffer or round trip of its single flow; what is here was
//! inferred from its numbers: 1000 bytes of data in a packet, and 1000 packets of buffer if flows
//! share the link. Beside the paper's numbers stand those of an independent packet-level model of
//! the same inferences.

mod further;
mod reading;
mod runs;
mod series;
mod shared;
mod single;
mod sweep;

use crate::request::Knob;
use crate::study::{Paper, Part, Study};

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

const PARTS: &[Part] = &[
    Part {
        name: "single",
        what: "one flow: window, losses and their distance (Figures 2, 3, 6), and no timeouts",
        plan: runs::single,
        evaluate: single::evaluate,
    },
    Part {
        name: "1",
        what: "HSTCP flows of 60, 120, 180 ms and Reno at 1 Gbit/s",
        plan: runs::table_1,
        evaluate: shared::table_1,
    },
    Part {
        name: "2",
        what: "ACWAP flows of 60, 120, 180 ms at 1 Gbit/s",
        plan: runs::table_2,
        evaluate: shared::table_2,
    },
    Part {
        name: "beta",
        what: "HSTCP beside ACWAP over beta (Figures 7 to 9)",
        plan: runs::beta,
        evaluate: sweep::evaluate,
    },
    Part {
        name: "ablation",
        what: "ACWAP's clamp and pacing, each alone",
        plan: runs::ablation,
        evaluate: shared::ablation,
    },
    Part {
        name: "further",
        what: "noise, AQMs, marks, other controls, delayed ACKs, buffers, ten flows, coarse timers, HyStart++",
        plan: further::plan,
        evaluate: further::evaluate,
    },
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

    fn reading(&self) -> &[&str] {
        &["acwap/reading.rs"]
    }

    fn pins(&self) -> &str {
        include_str!("pins.toml")
    }
}
