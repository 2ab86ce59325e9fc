//! Beyond the paper: what a home with a slow way up gains with today's TCP, and how much of it is a
//! matter of how ACKs are made.

use super::job;
use super::reading::Run;
use crate::error::ReproduceError;
use crate::job::Outputs;
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use ackline_lab::stats::jain;

/// Rates of the line, bits per second.
const SLOW: f64 = 1e6;
const FAST: f64 = 20e6;

/// Connections each way, in the order of the scenario.
const COUNTS: [usize; 3] = [1, 3, 50];

/// What the near host does, in the order of `home`; and the share that it guarantees to data.
pub(super) const HOSTS: [(&str, Option<f64>); 9] = [
    ("leaves the queue to the modem", None),
    ("one queue, ACKs keep their numbers", None),
    ("one queue", None),
    ("ACKs first", None),
    ("backpressure, b = 1", None),
    ("connections in turn (drr)", None),
    ("allocation, f = 1/2", Some(0.5)),
    ("allocation, f = 1/2, drr", Some(0.5)),
    ("allocation, f = 4/5, drr", Some(0.8)),
];

/// The same of `home-acks`, with three connections each way.
pub(super) const ACK_HOSTS: [(&str, Option<f64>); 5] = [
    ("leaves the queue to the modem", None),
    ("ACKs first, they keep their numbers", None),
    ("allocation, f = 1/2, they keep their numbers", Some(0.5)),
    ("allocation, f = 1/2, they are thinned", Some(0.5)),
    ("allocation, f = 1/2, newest numbers", Some(0.5)),
];

/// How often the near host acknowledges, in the order of the scenario.
const ACKS: [&str; 3] = ["each segment", "as Linux", "each 8th (GRO)"];

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("home", "A home's line, 20 Mbit/s down and 1 Mbit/s up: goodput down / up [Mbit/s]").note(
        "fairness: Jain's index of downloads / uploads, 50 + 50; round trip: median of the downloads, 3 + 3; all but the first \
         row send at 950 kbit/s",
    );
    table.columns.push("near host".to_owned());
    table.columns.extend(COUNTS.map(|count| format!("{count} + {count}")));
    table.columns.extend(["fairness".to_owned(), "round trip [ms]".to_owned()]);
    for (place, (host, share)) in HOSTS.into_iter().enumerate() {
        let runs = runs("home", place, outputs)?;
        let mut cells = runs.each_ref().map(rates).to_vec();
        let [down, up] = [1, 0].map(|side| jain(&runs[2].connections()[side]).unwrap_or(0.0));
        cells.push(Cell::from(format!("{down:.2} / {up:.2}")));
        cells.push(round_trip(&runs[1]));
        table.row(host, cells);
        for (run, count) in runs.iter().zip(COUNTS) {
            found.checks.extend(share.map(|share| guarantee(&format!("home/{host}/{count}"), run, share)));
        }
    }
    found.tables.push(table);

    let mut table = Table::new(
        "home-acks",
        "The same with 3 + 3 connections, by how often the home acknowledges [Mbit/s]",
    );
    table.columns.push("near host".to_owned());
    table.columns.extend(ACKS.map(str::to_owned));
    for (place, (host, share)) in ACK_HOSTS.into_iter().enumerate() {
        let runs = runs("home-acks", place, outputs)?;
        for (run, acks) in runs.iter().zip(ACKS) {
            found
                .checks
                .extend(share.map(|share| guarantee(&format!("home-acks/{host}/{acks}"), run, share)));
        }
        table.row(host, runs.each_ref().map(rates));
    }
    found.tables.push(table);
    Ok(found)
}

/// The three runs of a host.
fn runs(scenario: &str, place: usize, outputs: &Outputs) -> Result<[Run; 3], ReproduceError> {
    let one = |number: usize| outputs.get(&job(scenario, 3 * place + number));
    Ok([one(0)?, one(1)?, one(2)?].map(|result| Run::new(result, SLOW, FAST)))
}

/// Goodput down / up.
fn rates(run: &Run) -> Cell {
    let of = run.efficiency();
    Cell::from(format!("{:.1} / {:.2}", of.fast * FAST / 1e6, of.slow * SLOW / 1e6))
}

fn round_trip(run: &Run) -> Cell {
    run.download_round_trip().map_or(Cell::from("-"), |time| Cell::number(time * 1e3, 0))
}

/// Data has at least its share of the bytes that leave.
fn guarantee(id: &str, run: &Run, share: f64) -> Check {
    Check::at_least(
        format!("{id}/share"),
        format!("data's share of the bytes that left, guaranteed {share}"),
        run.data_share(),
        share,
    )
}
