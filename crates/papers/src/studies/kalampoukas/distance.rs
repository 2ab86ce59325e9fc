//! Backpressure over a distance.

use super::formulas::Line;
use super::job;
use super::reading::{Run, both};
use super::rows::{DISTANCE_TOLERANCE, DISTANCES};
use crate::error::ReproduceError;
use crate::job::Outputs;
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("distance", "Backpressure, b = 1, over a distance: F_i / F_j")
        .note(format!(
            "one way: propagation in each direction; printed: (5.14) and (5.15), which are not checked against; tolerance \
             against the event model: {DISTANCE_TOLERANCE}"
        ))
        .columns(["data, ACK", "one way [ms]", "printed", "event model", "ackline"]);
    for (point, ([up, down, ack], delay, model)) in DISTANCES.iter().enumerate() {
        let line = Line::of_paper(*up, *down, *ack);
        let run = Run::new(outputs.get(&job("distance", point))?, line.slow, line.fast);
        let measured = run.efficiency();
        let printed = line.backpressure_delayed_printed(2.0 * f64::from(*delay) / 1e3);
        table.row(
            format!("{up}/{down}, {ack}"),
            [
                Cell::number(f64::from(*delay), 0),
                Cell::from(both(printed)),
                Cell::from(both(*model)),
                Cell::from(both(measured)),
            ],
        );
        let id = format!("distance/{up}/{delay}ms");
        let sides = [("up", measured.slow, model.slow), ("down", measured.fast, model.fast)];
        for (side, measured, model) in sides {
            let bounds = (model - DISTANCE_TOLERANCE, model + DISTANCE_TOLERANCE);
            let what = format!("efficiency of the {side}load, {delay} ms one way");
            found.checks.push(Check::within(format!("{id}/{side}"), what, measured, bounds).expected(model));
        }
        found.checks.push(run.lossless(&id));
    }
    found.tables.push(table);
    Ok(found)
}
