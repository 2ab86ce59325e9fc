//! Swami and Le: a transfer over a path that stands still, to a receiver of the kernel, and the
//! kernel's own sender.

use super::{LiveStudy, part};
use crate::live::{Experiment, Measure, Point};
use crate::scenario;
use crate::study::Paper;
use ackline_lab::results::{FlowResult, RunResult};

pub(super) const LIVE: LiveStudy = LiveStudy {
    paper: Paper {
        name: "dclor --live",
        stem: "dclor-live",
        title: "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts (draft-swami-tsvwg-tcp-dclor-00)",
        authors: "Y. Swami, K. Le",
        year: Some(2002),
    },
    parts: &[
        part!(S1, "the path stands still for 1 s: each response, and the kernel's sender"),
        part!(S2, "the path stands still for 2 s: the same"),
        part!(S4, "the path stands still for 4 s: the same"),
        part!(S8, "the path stands still for 8 s: the same"),
    ],
    page: include_str!("dclor.md"),
    pins: include_str!("dclor.toml"),
};

const S1: Experiment = Experiment {
    name: "1s",
    title: "2 MB over 5 Mbit/s that stand still for 1 s",
    scenario: scenario!("live/dclor"),
    set: &["change.0.for=1s", "duration=6s"],
    points: &[
        Point { name: "linux", paper: &[], quick: false },
        Point { name: "frto", paper: &[], quick: false },
        Point { name: "eifel", paper: &[], quick: false },
        Point { name: "go-back-n", paper: &[], quick: false },
        Point { name: "dclor", paper: &[], quick: false },
        Point { name: "kernel", paper: &[], quick: false },
    ],
    measures: MEASURES,
    runs: 2,
    quick: &[],
};

const S2: Experiment = Experiment {
    name: "2s",
    title: "2 MB over 5 Mbit/s that stand still for 2 s",
    set: &[],
    points: &[
        Point { name: "linux", paper: &[], quick: false },
        Point { name: "frto", paper: &[], quick: false },
        Point { name: "eifel", paper: &[], quick: false },
        Point { name: "go-back-n", paper: &[], quick: true },
        Point { name: "dclor", paper: &[], quick: true },
        Point { name: "kernel", paper: &[], quick: false },
    ],
    ..S1
};

const S4: Experiment = Experiment {
    name: "4s",
    title: "2 MB over 5 Mbit/s that stand still for 4 s",
    set: &["change.0.for=4s", "duration=9s"],
    runs: 1,
    ..S1
};

const S8: Experiment = Experiment {
    name: "8s",
    title: "2 MB over 5 Mbit/s that stand still for 8 s",
    set: &["change.0.for=8s", "duration=13s"],
    ..S4
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
