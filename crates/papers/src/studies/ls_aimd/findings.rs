//! What became of the thesis' tables, in a line each.

use super::checks::Results;
use super::experiment::{Aqm, Case, EXPERIMENTS, Sender};
use super::readings::{PROTOTYPE, Reading};
use super::thesis::thesis;
use crate::Finding;

/// Experiments of a line: eight flows at 200 Mbit/s, sixteen at 600 with segments of 1,448 and
/// 8,948 bytes.
const SHOWN: [&str; 4] = ["3A", "4A", "4D", "4E"];

/// The table of an AQM: mean delays of each sender.
pub(super) fn of_table(results: &impl Results, aqm: Aqm) -> Finding {
    let line = |get: &dyn Fn(&Case) -> Option<f64>| {
        let senders = [Sender::Aimd, Sender::Full, Sender::Slow].map(|sender| {
            let means = SHOWN.map(|name| mean_of(aqm, sender, name, PROTOTYPE, get));
            format!("{}: {}", sender.short(), means.join(", "))
        });
        senders.join("; ")
    };
    let table = aqm.table();
    Finding::new(
        format!("Table {table}, {}: mean queueing delay in us in {}", aqm.what(), SHOWN.join(", ")),
        line(&|case| thesis(case, "mean")),
        line(&|case| Some(results.get(case)?.grid.mean)),
        format!("{table}/"),
    )
}

/// Section 8.3.2: how widely the queue swings with jumbo frames.
pub(super) fn of_swings(results: &impl Results) -> Finding {
    let names = ["4E", "4F", "4G", "4H"];
    let line = |reading, get: &dyn Fn(&Case) -> Option<f64>| {
        names.map(|name| mean_of(Aqm::Step, Sender::Full, name, reading, get)).join(", ")
    };
    let ours = |reading| line(reading, &|case| Some(results.get(case)?.grid.sd));
    Finding::new(
        "Section 8.3.2: jumbo frames with C=1 make the queue swing; its deviation in us with a step, 4E to 4H",
        line(PROTOTYPE, &|case| thesis(case, "sd")),
        format!(
            "{} as the thesis' text has the clock; {} with ackline's",
            ours(PROTOTYPE),
            ours(super::readings::DESIGN)
        ),
        "readings/",
    )
}

fn mean_of(
    aqm: Aqm,
    sender: Sender,
    name: &str,
    reading: Reading,
    get: &dyn Fn(&Case) -> Option<f64>,
) -> String {
    let of = EXPERIMENTS.into_iter().find(|of| of.name == name);
    let value = of.and_then(|of| get(&Case { of, aqm, sender, reading }));
    value.map_or("-".to_owned(), |value| format!("{value:.0}"))
}
