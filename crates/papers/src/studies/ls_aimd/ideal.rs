//! The ideal path: hosts and wires that add nothing to the base RTT but a packet's own
//! serialisation.

use super::experiment::{Aqm, Case, EXPERIMENTS, Sender};
use super::measurement::Measurement;
use super::readings::DESIGN;
use crate::{Cell, Check, Outputs, ReproduceError, Reproduction, Table};

/// Runs, and the mean queueing delay that an independent model of the same rules has there, us.
const RUNS: [(&str, Aqm, Sender, f64); 6] = [
    ("3A", Aqm::Step, Sender::Aimd, 811.0),
    ("4A", Aqm::Step, Sender::Aimd, 377.0),
    ("4E", Aqm::Step, Sender::Aimd, 3_477.0),
    ("3A", Aqm::Step, Sender::Full, 605.0),
    ("3A", Aqm::Instantaneous, Sender::Full, 791.0),
    ("4A", Aqm::Step, Sender::Full, 282.0),
];

/// The runs, with the model's mean.
pub(super) fn cases() -> impl Iterator<Item = (Case, f64)> {
    RUNS.into_iter().filter_map(|(name, aqm, sender, mean)| {
        let of = EXPERIMENTS.into_iter().find(|of| of.name == name)?;
        Some((Case { of, aqm, sender, reading: DESIGN }, mean))
    })
}

pub(super) fn job_id(case: &Case) -> String {
    format!("ideal/{case}")
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let title = "The ideal path: mean queueing delay in us (deviation)";
    let mut table = Table::new("ideal", title).columns(["", "", "", "closed form", "model", "measured"]);
    let mut checks = vec![];
    for (case, model) in cases() {
        let run: Measurement = outputs.get(&job_id(&case))?;
        let saturated = case.sender == Sender::Aimd;
        let floor = case.of.floor_queue_us(case.of.frame_us());
        let closed = if saturated { Cell::number(floor, 0) } else { Cell::from("-") };
        let measured = Cell::from(format!("{:.0} ({:.0})", run.exact.mean, run.exact.sd));
        let cells = [Cell::from(case.sender.name(case.aqm)), Cell::from(case.aqm.name()), closed];
        table.row(case.of.name, cells.into_iter().chain([Cell::number(model, 0), measured]));
        let what = format!(
            "{}, {}, experiment {}: mean delay, us",
            case.sender.name(case.aqm),
            case.aqm.name(),
            case.of.name
        );
        let tolerance = if saturated { 0.02 } else { 0.12 };
        checks.push(Check::near(job_id(&case), what, run.exact.mean, model, tolerance));
    }
    Ok(Reproduction { tables: vec![table], checks, ..Reproduction::default() })
}
