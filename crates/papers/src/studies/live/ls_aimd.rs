//! Ahmed: flows with less than two segments per round trip, beside those of the kernel.

use super::{LiveStudy, part};
use crate::live::{Experiment, Measure, Point, goodput_kbps};
use crate::scenario;
use crate::study::Paper;
use ackline_lab::results::{QueueResult, RunResult};
use ackline_lab::stats::Spread;

pub(super) const LIVE: LiveStudy = LiveStudy {
    paper: Paper {
        name: "ls-aimd --live",
        stem: "ls-aimd-live",
        title: "Extending TCP for Low Round Trip Delay",
        authors: "A. S. Ahmed",
        year: Some(2019),
    },
    parts: &[
        part!(ALONE, "eight flows of LS-AIMD, or of the kernel with marks"),
        part!(BESIDE, "four flows of LS-AIMD beside four of the kernel"),
    ],
    page: include_str!("ls_aimd.md"),
    pins: include_str!("ls_aimd.toml"),
};

const ALONE: Experiment = Experiment {
    name: "alone",
    title: "Eight flows over 100 Mbit/s and 0.4 ms, marked above a step of 0.5 ms",
    scenario: scenario!("live/ls-aimd-alone"),
    set: &[],
    points: &[
        Point { name: "ls-aimd-reno", paper: &[], quick: true },
        Point { name: "ls-aimd-reno, to ackline", paper: &[], quick: false },
        Point { name: "kernel reno", paper: &[Some(1400.0)], quick: true },
        Point { name: "kernel cubic", paper: &[Some(1400.0)], quick: false },
    ],
    measures: &[WAIT, LONG_WAIT, UTILISATION],
    runs: 3,
    quick: &["duration=2s", "measure.from=1s"],
};

const BESIDE: Experiment = Experiment {
    name: "beside",
    title: "Four flows of LS-AIMD beside four of the kernel, on the same path",
    scenario: scenario!("live/ls-aimd-beside"),
    set: &[],
    points: &[
        Point { name: "kernel reno", paper: &[], quick: true },
        Point { name: "kernel cubic", paper: &[], quick: false },
        Point { name: "kernel reno, to ackline", paper: &[], quick: false },
        Point { name: "kernel cubic, to ackline", paper: &[], quick: false },
    ],
    measures: &[SHARE, WAIT, UTILISATION],
    ..ALONE
};

const WAIT: Measure = Measure {
    name: "wait",
    what: "mean wait in the queue, us",
    of: |result| wait(result, |wait| wait.mean),
    share: 0.1,
    least: 60.0,
    digits: 0,
};

const LONG_WAIT: Measure = Measure {
    name: "wait-p99",
    what: "99th percentile of the wait, us",
    of: |result| wait(result, |wait| wait.p99),
    share: 0.1,
    least: 120.0,
    digits: 0,
};

const UTILISATION: Measure = Measure {
    name: "used",
    what: "utilisation, %",
    of: |result| port(result).map_or(f64::NAN, |port| 100.0 * port.utilisation),
    share: 0.0,
    least: 1.0,
    digits: 1,
};

const SHARE: Measure = Measure {
    name: "share",
    what: "share of LS-AIMD's flows, %",
    of: |result| {
        let (ours, theirs) = (goodput_kbps(result, "ours"), goodput_kbps(result, "theirs"));
        100.0 * ours / (ours + theirs)
    },
    share: 0.1,
    least: 2.0,
    digits: 1,
};

fn port(result: &RunResult) -> Option<&QueueResult> {
    result.queues.first()
}

fn wait(result: &RunResult, of: fn(&Spread) -> f64) -> f64 {
    port(result).and_then(|port| port.delay_s.as_ref()).map_or(f64::NAN, |wait| 1e6 * of(wait))
}
