//! Kalampoukas, Varma and Ramakrishnan: an upload and a download of one stack, the kernel at the
//! far end.

use super::{LiveStudy, part};
use crate::live::{Experiment, Measure, Point, goodput_kbps};
use crate::scenario;
use crate::study::Paper;

pub(super) const LIVE: LiveStudy = LiveStudy {
    paper: Paper {
        name: "kalampoukas --live",
        stem: "kalampoukas-live",
        title: "Improving TCP Throughput over Two-Way Asymmetric Links: Analysis and Solutions",
        authors: "L. Kalampoukas, A. Varma, K. K. Ramakrishnan",
        year: Some(1997),
    },
    parts: &[
        part!(HALF, "500 kbit/s up and 10 Mbit/s down: one queue, ACKs first, allocations"),
        part!(TENTH, "100 kbit/s up and 10 Mbit/s down: the same"),
    ],
    page: include_str!("kalampoukas.md"),
    pins: include_str!("kalampoukas.toml"),
};

const HALF: Experiment = Experiment {
    name: "500k",
    title: "An upload and a download: 500 kbit/s up, 10 Mbit/s down",
    scenario: scenario!("live/kalampoukas-500k"),
    set: &[],
    points: &[
        Point { name: "fifo", paper: &[Some(482.7), Some(482.7)], quick: false },
        Point { name: "ack-priority", paper: &[Some(148.0), Some(9653.0)], quick: true },
        Point { name: "f=1/2", paper: &[Some(241.3), Some(6962.0)], quick: true },
        Point { name: "f=2/3", paper: &[Some(321.8), Some(4641.0)], quick: false },
        Point { name: "f=4/5", paper: &[Some(386.1), Some(2785.0)], quick: false },
    ],
    measures: MEASURES,
    runs: 3,
    quick: &["duration=6s", "measure.from=3s"],
};

const TENTH: Experiment = Experiment {
    name: "100k",
    title: "An upload and a download: 100 kbit/s up, 10 Mbit/s down",
    scenario: scenario!("live/kalampoukas-100k"),
    set: &[],
    points: &[
        Point { name: "fifo", paper: &[Some(96.5), Some(96.5)], quick: false },
        Point { name: "ack-priority", paper: &[Some(0.0), Some(2785.0)], quick: false },
        Point { name: "f=1/2", paper: &[Some(48.3), Some(1392.0)], quick: true },
    ],
    measures: MEASURES,
    runs: 1,
    quick: &["duration=6s", "measure.from=3s"],
};

const MEASURES: &[Measure] = &[
    Measure {
        name: "up",
        what: "upload, kbit/s",
        of: |result| goodput_kbps(result, "up"),
        share: 0.05,
        least: 5.0,
        digits: 0,
    },
    Measure {
        name: "down",
        what: "download, kbit/s",
        of: |result| goodput_kbps(result, "down"),
        share: 0.05,
        least: 50.0,
        digits: 0,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::kalampoukas::formulas::{Efficiency, Line};

    /// The paper's numbers are those of its closed forms.
    #[test]
    fn numbers_are_those_of_the_formulas() {
        for (experiment, slow) in [(&HALF, 500e3), (&TENTH, 100e3)] {
            let (packet, payload, window) = (1_500.0, 1_448.0, 65_536.0);
            let line = Line {
                slow,
                fast: 10e6,
                data_i: packet,
                data_j: packet,
                ack: 52.0,
                // Windows hold data without headers.
                window_i: window * packet / payload,
                window_j: window * packet / payload,
            };
            for point in experiment.points {
                let Efficiency { slow, fast } = match point.name {
                    "fifo" => line.fifo(0.02),
                    "ack-priority" => line.priority(),
                    "f=1/2" => line.allocation(0.5),
                    "f=2/3" => line.allocation(2.0 / 3.0),
                    "f=4/5" => line.allocation(0.8),
                    name => unreachable!("{name}"),
                };
                for (printed, efficiency, rate) in
                    [(point.paper[0], slow, line.slow), (point.paper[1], fast, line.fast)]
                {
                    let number = efficiency * rate / 1e3 * payload / packet;
                    let printed = printed.unwrap();
                    assert!((printed - number).abs() <= 0.01 * number, "{}: {printed}, {number}", point.name);
                }
            }
        }
    }
}
