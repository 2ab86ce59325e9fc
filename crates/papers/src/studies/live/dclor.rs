//! Swami and Le: a transfer over a path that stands still, to a receiver of the kernel, and the kernel's own sender.

use super::{Live, part};
use crate::live::{Experiment, Measure, Point};
use crate::scenario;
use crate::study::Paper;
use ackline_lab::results::{FlowResult, RunResult};

pub(super) const LIVE: Live = Live {
    paper: Paper {
        name: "dclor --live",
        stem: "dclor-live",
        title: "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts (draft-swami-tsvwg-tcp-dclor-00)",
        authors: "Y. Swami, K. Le",
        year: Some(2002),
    },
    parts: &[
        part!(SHORT, "the path stands still for 2 s: each response, and the kernel's sender"),
        part!(LONG, "the path stands still for 8 s: the same"),
    ],
    page: include_str!("dclor.md"),
    pins: include_str!("dclor.toml"),
};

const SHORT: Experiment = Experiment {
    name: "2s",
    title: "2 MB over 5 Mbit/s that stand still for 2 s",
    scenario: scenario!("live/dclor-2s"),
    points: &[
        Point { name: "linux", paper: &[], quick: false },
        Point { name: "frto", paper: &[], quick: false },
        Point { name: "eifel", paper: &[], quick: false },
        Point { name: "go-back-n", paper: &[], quick: true },
        Point { name: "dclor", paper: &[], quick: true },
        Point { name: "kernel", paper: &[], quick: false },
    ],
    measures: MEASURES,
    runs: 2,
    quick: &[],
};

const LONG: Experiment = Experiment {
    name: "8s",
    title: "2 MB over 5 Mbit/s that stand still for 8 s",
    scenario: scenario!("live/dclor-8s"),
    points: &[
        Point { name: "linux", paper: &[], quick: false },
        Point { name: "frto", paper: &[], quick: false },
        Point { name: "eifel", paper: &[], quick: false },
        Point { name: "go-back-n", paper: &[], quick: false },
        Point { name: "dclor", paper: &[], quick: false },
        Point { name: "kernel", paper: &[], quick: false },
    ],
    runs: 1,
    ..SHORT
};

const MEASURES: &[Measure] = &[
    Measure {
        name: "again",
        what: "segments sent again",
        of: |result| bulk(result).map_or(f64::NAN, |flow| flow.retransmits as f64),
        share: 0.05,
        least: 2.0,
        digits: 0,
    },
    Measure {
        name: "time",
        what: "time of the transfer, s",
        of: |result| bulk(result).and_then(|flow| flow.times_s.first()).copied().unwrap_or(f64::NAN),
        share: 0.02,
        least: 0.1,
        digits: 2,
    },
];

fn bulk(result: &RunResult) -> Option<&FlowResult> {
    result.flows.first()
}
