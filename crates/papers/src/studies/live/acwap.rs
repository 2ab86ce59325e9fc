//! Su, Pan, Wang and Wan: a flow of HSTCP or ACWAP beside one of the kernel.

use super::{LiveStudy, part};
use crate::live::{Experiment, Measure, Point, goodput_kbps};
use crate::scenario;
use crate::study::Paper;

pub(super) const LIVE: LiveStudy = LiveStudy {
    paper: Paper {
        name: "acwap --live",
        stem: "hstcp-acwap-live",
        title: "An algorithm for reducing loss rate of high-speed TCP",
        authors: "F. Su, X. Pan, J. Wang, Z. Wan",
        year: Some(2006),
    },
    parts: &[
        part!(SHORT, "200 Mbit/s and 60 ms, beside the kernel's cubic and reno"),
        part!(FAST, "500 Mbit/s and 60 ms, beside the kernel's cubic and reno"),
        part!(LONG, "200 Mbit/s and 180 ms, beside the kernel's cubic and reno"),
    ],
    page: include_str!("acwap.md"),
    pins: include_str!("acwap.toml"),
};

const SHORT: Experiment = Experiment {
    name: "60ms",
    title: "HSTCP or ACWAP beside a flow of the kernel: 200 Mbit/s, 60 ms",
    scenario: scenario!("live/acwap"),
    set: &[],
    points: &[
        Point { name: "hstcp, kernel cubic", paper: &[], quick: false },
        Point { name: "acwap, kernel cubic", paper: &[], quick: true },
        Point { name: "hstcp, kernel reno", paper: &[], quick: false },
        Point { name: "acwap, kernel reno", paper: &[], quick: false },
    ],
    measures: MEASURES,
    runs: 4,
    quick: &["duration=3s", "measure.from=2s"],
};

const FAST: Experiment = Experiment {
    name: "500mbit",
    title: "HSTCP or ACWAP beside a flow of the kernel: 500 Mbit/s, 60 ms",
    set: &["link.bottleneck.rate=500mbit", "link.bottleneck.queue.limit=1250k"],
    points: LARGE,
    ..SHORT
};

const LONG: Experiment = Experiment {
    name: "180ms",
    title: "HSTCP or ACWAP beside a flow of the kernel: 200 Mbit/s, 180 ms",
    set: &[
        "link.bottleneck.delay=90ms",
        "link.acks.delay=90ms",
        "link.bottleneck.queue.limit=1500k",
        "duration=14s",
        "measure.from=7s",
    ],
    points: LARGE,
    runs: 3,
    ..SHORT
};

/// Those of all experiments; only the first one has a smaller version.
const LARGE: &[Point] = &[
    Point { name: "hstcp, kernel cubic", paper: &[], quick: false },
    Point { name: "acwap, kernel cubic", paper: &[], quick: false },
    Point { name: "hstcp, kernel reno", paper: &[], quick: false },
    Point { name: "acwap, kernel reno", paper: &[], quick: false },
];

const MEASURES: &[Measure] = &[
    Measure {
        name: "ours",
        what: "HSTCP or ACWAP, Mbit/s",
        of: |result| goodput_kbps(result, "ours") / 1e3,
        share: 0.1,
        least: 10.0,
        digits: 1,
    },
    Measure {
        name: "theirs",
        what: "the kernel, Mbit/s",
        of: |result| goodput_kbps(result, "theirs") / 1e3,
        share: 0.1,
        least: 10.0,
        digits: 1,
    },
    Measure {
        name: "lost",
        what: "packets dropped by the queue",
        of: |result| result.queues.first().map_or(f64::NAN, |queue| queue.overflows as f64),
        share: 0.2,
        least: 20.0,
        digits: 0,
    },
];
