//! Chang, Chan and Yeung: pairs of buffers that lock, with the kernel at either end.

use super::{LiveStudy, part};
use crate::live::{Experiment, Measure, Point, goodput_kbps};
use crate::scenario;
use crate::study::Paper;
use ackline_lab::results::RunResult;

pub(super) const LIVE: LiveStudy = LiveStudy {
    paper: Paper {
        name: "a3 --live",
        stem: "a3-csa3-live",
        title: "Deadlock-Free TCP Over High-Speed Internet",
        authors: "R. K. C. Chang, H. Y. Chan, A. W. Yeung",
        year: None,
    },
    parts: &[
        part!(PAPER, "the kernel sends on the paper's path, to the paper's receivers"),
        part!(SENDS, "the kernel sends from 2 KB of buffer, to the ACK policies of today"),
        part!(RECEIVES, "the kernel receives from small buffers with Nagle's algorithm"),
    ],
    page: include_str!("a3.md"),
    pins: include_str!("a3.toml"),
};

const PAPER: Experiment = Experiment {
    name: "paper",
    title: "The kernel sends from 4 KB of buffer: 2 Mbit/s, 170 ms",
    scenario: scenario!("live/a3-paper"),
    set: &[],
    points: &[
        Point { name: "4/16 delayed", paper: &[Some(6.0)], quick: false },
        Point { name: "4/16 a3", paper: &[Some(20.0)], quick: false },
        Point { name: "4/16 csa3", paper: &[], quick: false },
        Point { name: "4/8 delayed", paper: &[Some(20.0)], quick: false },
        Point { name: "4/8 a3", paper: &[Some(20.0)], quick: false },
    ],
    measures: MEASURES,
    runs: 2,
    quick: &[],
};

const SENDS: Experiment = Experiment {
    name: "sends",
    title: "The kernel sends from 2 KB of buffer: 100 Mbit/s, 20 ms",
    scenario: scenario!("live/a3-kernel-sends"),
    set: &[],
    points: &[
        Point { name: "delayed", paper: &[], quick: true },
        Point { name: "linux-like", paper: &[], quick: false },
        Point { name: "a3", paper: &[], quick: true },
        Point { name: "csa3", paper: &[], quick: false },
    ],
    runs: 3,
    ..PAPER
};

const RECEIVES: Experiment = Experiment {
    name: "receives",
    title: "The kernel receives from small buffers: 100 Mbit/s, 20 ms, segments of 8,948 bytes",
    scenario: scenario!("live/a3-kernel-receives"),
    set: &[],
    points: &[
        Point { name: "2k", paper: &[], quick: false },
        Point { name: "4k", paper: &[], quick: true },
        Point { name: "8k", paper: &[], quick: false },
        Point { name: "16k", paper: &[], quick: false },
        Point { name: "16k minshall", paper: &[], quick: false },
    ],
    runs: 3,
    ..PAPER
};

const MEASURES: &[Measure] = &[
    Measure {
        name: "rate",
        what: "throughput, KB/s",
        of: |result| goodput_kbps(result, "stream") * 1e3 / 8.0 / 1024.0,
        share: 0.05,
        least: 1.0,
        digits: 0,
    },
    Measure { name: "acks", what: "ACKs in a second", of: acks, share: 0.05, least: 1.0, digits: 0 },
];

fn acks(result: &RunResult) -> f64 {
    let (from, until) = result.window_s;
    let back = result.queues.iter().find(|queue| queue.link == "path.back");
    back.map_or(f64::NAN, |queue| queue.classes.ack.packets as f64 / (until - from))
}
