//! Section 3: a download through a cable modem beside an upload whose window is 4 KB. The paper
//! measured it on a real line, with losses of which nothing is known; only the shape is checked.

use super::formulas::Line;
use super::job;
use super::reading::Run;
use crate::error::ReproduceError;
use crate::job::Outputs;
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};

/// The line of the scenario.
const LINE: Line = Line {
    slow: 50e3,
    fast: 10e6,
    data_i: 512.0,
    data_j: 512.0,
    ack: 9.0,
    window_i: 4_096.0,
    window_j: 4_096.0,
};
/// Both propagation delays, s.
const DELAY: f64 = 0.08;

/// Windows of the download in bytes, and what the paper measured, in the order of the scenario.
const WINDOWS: [(f64, &str); 3] = [
    (4_096.0, "about 50 kbit/s"),
    (8_192.0, "twice as much"),
    (16_384.0, "more than 8 times as much, with losses"),
];

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("cable", "Section 3: the download over a cable modem [kbit/s]")
        .note("(2.2): one queue, ACKs that take no time; the upload's window is 4 KB")
        .columns(["download's window", "paper", "(2.2)", "ackline", "of the first", "upload"]);
    let mut first = f64::NAN;
    for (point, (window, paper)) in WINDOWS.into_iter().enumerate() {
        let line = Line { window_j: window, ..LINE };
        let run = Run::new(outputs.get(&job("cable", point))?, line.slow, line.fast);
        let measured = run.download_bps();
        if point == 0 {
            first = measured;
        }
        table.row(
            format!("{} KB", window / 1_024.0),
            [
                Cell::from(paper),
                Cell::number(line.fifo(DELAY).fast * line.fast / 1e3, 1),
                Cell::number(measured / 1e3, 1),
                Cell::number(measured / first, 2),
                Cell::number(run.efficiency().slow * line.slow / 1e3, 1),
            ],
        );
        if point == 1 {
            let ours = format!("{:.2} times", measured / first);
            found.findings.push(Finding::new(
                "Section 3: a window of 8 KB instead of 4 KB over a cable modem",
                "twice the download",
                ours,
                "cable/",
            ));
            found.checks.push(
                Check::near(
                    "cable/doubling",
                    "download with 8 KB, as a multiple of that with 4 KB",
                    measured / first,
                    2.0,
                    0.05,
                )
                .paper(2.0),
            );
        }
        found.checks.push(run.lossless(&format!("cable/{}k", window / 1_024.0)));
    }
    let alone = Run::new(outputs.get(&job("cable", WINDOWS.len()))?, LINE.slow, LINE.fast);
    table.row(
        "16 KB, no upload",
        [
            Cell::from("1,200"),
            Cell::from(""),
            Cell::number(alone.download_bps() / 1e3, 1),
            Cell::number(alone.download_bps() / first, 2),
            Cell::from(""),
        ],
    );
    found.tables.push(table);
    Ok(found)
}
