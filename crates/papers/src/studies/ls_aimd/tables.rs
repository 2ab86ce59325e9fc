//! Tables: the thesis' beside ours, what else was measured, and the scale factor that finds itself.

use super::checks::{Results, mean_bounds, saturated};
use super::compared::COMPARED;
use super::experiment::{AQMS, Aqm, Case, EXPERIMENTS, Experiment, Sender};
use super::measurement::Measurement;
use super::readings::{DESIGN, PROTOTYPE, READINGS};
use super::thesis::{STATISTICS, model, thesis};
use crate::{Cell, Table};
use ackline_lab::stats::Estimate;

/// Experiments that stand side by side.
const GROUPS: [(&str, std::ops::Range<usize>); 3] = [("1-3B", 0..4), ("4A-4D", 4..8), ("4E-4H", 8..12)];

/// What it is, digits behind the point, value.
type Column = (&'static str, usize, fn(&Measurement) -> f64);

const REST: [Column; 4] = [
    ("utilisation", 4, |run| run.utilisation),
    ("share of packets marked", 3, |run| run.marked),
    ("SRTT, us", 0, |run| run.srtt_us),
    ("variation of goodputs", 3, |run| run.spread),
];

const SCALE: [Column; 5] = [
    ("mean delay, us", 0, |run| run.exact.mean),
    ("its deviation, us", 0, |run| run.exact.sd),
    ("utilisation", 4, |run| run.utilisation),
    ("share of packets marked", 2, |run| run.marked),
    ("variation of goodputs", 2, |run| run.spread),
];

const PRINTED: [Sender; 3] = [Sender::Aimd, Sender::Slow, Sender::Full];

/// A table of Tables 9.1 to 9.3, in three pieces.
pub(super) fn delays(results: &impl Results, aqm: Aqm, whole: bool) -> Vec<Table> {
    GROUPS
        .into_iter()
        .map(|(name, range)| {
            let group = &EXPERIMENTS[range];
            let title = format!(
                "Table {} ({}), experiments {name}: queueing delay in us, ours (thesis)",
                aqm.table(),
                aqm.name()
            );
            let mut table = with_columns(Table::new(format!("{}/{name}", aqm.table()), title), group);
            for sender in PRINTED {
                if !group.iter().any(|of| sender.runs(of)) {
                    continue;
                }
                for statistic in STATISTICS {
                    let cells = group.iter().map(|of| {
                        let case = Case { of: *of, aqm, sender, reading: PROTOTYPE };
                        delay_cell(results, &case, statistic, whole)
                    });
                    table.row(format!("{} {statistic}", sender.name(aqm)), cells.collect::<Vec<_>>());
                }
                if sender == Sender::Aimd && aqm == Aqm::Step {
                    let case = |of: &Experiment| Case { of: *of, aqm, sender, reading: PROTOTYPE };
                    let cells = group.iter().map(|of| model_cell(&case(of)));
                    table.row("  independent model: mean, sd", cells.collect::<Vec<_>>());
                }
            }
            table
        })
        .collect()
}

fn delay_cell(results: &impl Results, case: &Case, statistic: &str, whole: bool) -> Cell {
    let values = results.values(case, |run| run.grid.get(statistic));
    if values.is_empty() {
        return Cell::from("-");
    }
    let cell = Cell::estimate(&values, 0);
    let cell = thesis(case, statistic).map_or(cell.clone(), |paper| cell.paper(paper));
    match mean_bounds(case, whole) {
        // The closed form bounds the exact mean, not the one on the grid.
        Some(bounds) if statistic == "mean" && !saturated(case) => cell.within(bounds),
        _ => cell,
    }
}

fn model_cell(case: &Case) -> Cell {
    model(case).map_or(Cell::from("-"), |(mean, sd)| Cell::from(format!("{mean:.0}, {sd:.0}")))
}

fn with_columns(table: Table, group: &[Experiment]) -> Table {
    let names = std::iter::once(String::new()).chain(group.iter().map(|of| of.name.to_owned()));
    table.columns(names)
}

/// What else was measured behind one AQM.
pub(super) fn rest(results: &impl Results, aqm: Aqm) -> Table {
    let title = format!("With the {}: what else was measured", aqm.name());
    let mut table = Table::new(format!("{}/rest", aqm.table()), title).columns([
        "",
        "W_s at target",
        "",
        "AIMD",
        "LS-AIMD C=2^-7",
        "LS-AIMD C=1",
    ]);
    for of in EXPERIMENTS {
        let window = Cell::number(of.window_segments(of.target_us()), 2);
        for (what, digits, get) in REST {
            let cells = PRINTED.map(|sender| {
                let case = Case { of, aqm, sender, reading: PROTOTYPE };
                estimate(&results.values(&case, get), digits)
            });
            table.row(of.name, [window.clone(), Cell::from(what)].into_iter().chain(cells));
        }
    }
    table
        .note("W_s: segments per flow and round trip if the queue is where the AQM begins to mark (Eq. 2.3).")
}

fn estimate(values: &[f64], digits: usize) -> Cell {
    if values.is_empty() { Cell::from("-") } else { Cell::estimate(values, digits) }
}

/// A mean and half the width of its 95 % interval.
fn plus_minus(values: &[f64], digits: usize) -> String {
    match Estimate::of(values) {
        Some(Estimate { mean, ci: Some((low, high)), .. }) => {
            format!("{mean:.digits$} ± {:.digits$}", (high - low) / 2.0)
        }
        Some(Estimate { mean, .. }) => format!("{mean:.digits$}"),
        None => "-".to_owned(),
    }
}

/// The three scale factors under ackline's default reading, experiments 4A to 4H.
pub(super) fn scale(results: &impl Results) -> Table {
    let title = "The scale factor C of LS-AIMD DCTCP, 16 flows at 600 Mbit/s";
    let mut table = Table::new("auto", title).columns(["", "", "", "C=1", "C=2^-7", "C=auto"]);
    for aqm in [Aqm::Step, Aqm::Instantaneous] {
        for of in EXPERIMENTS.into_iter().filter(Experiment::varies) {
            for (what, digits, get) in SCALE {
                let cells = [Sender::Full, Sender::Slow, Sender::Auto].map(|sender| {
                    let case = Case { of, aqm, sender, reading: DESIGN };
                    estimate(&results.values(&case, get), digits)
                });
                table.row(aqm.name(), [Cell::from(of.name), Cell::from(what)].into_iter().chain(cells));
            }
        }
    }
    table
}

/// The readings of the thesis beside it: mean, deviation and 95th percentile of the queueing delay.
pub(super) fn readings(results: &impl Results) -> Vec<Table> {
    AQMS.into_iter()
        .flat_map(|aqm| COMPARED.map(|(sender, names)| of_readings(results, aqm, sender, names)))
        .collect()
}

fn of_readings(results: &impl Results, aqm: Aqm, sender: Sender, names: &[&str]) -> Table {
    let experiments: Vec<_> = EXPERIMENTS.into_iter().filter(|of| names.contains(&of.name)).collect();
    let title = format!(
        "{}, {}: queueing delay in us, mean, deviation, 95th percentile, under each reading",
        sender.name(aqm),
        aqm.name()
    );
    let mut table =
        with_columns(Table::new(format!("readings/{}/{}", aqm.name(), sender.key()), title), &experiments);
    let all = |statistics: &[&str], get: &dyn Fn(&Experiment, &str) -> Option<String>, of: &Experiment| {
        let numbers: Option<Vec<_>> = statistics.iter().map(|statistic| get(of, statistic)).collect();
        Cell::from(numbers.map_or("-".to_owned(), |numbers| numbers.join(", ")))
    };
    let shown = ["mean", "sd", "p95"];
    let printed = |of: &Experiment, statistic: &str| {
        let case = Case { of: *of, aqm, sender, reading: PROTOTYPE };
        thesis(&case, statistic).map(|value| format!("{value:.0}"))
    };
    table.row("the thesis", experiments.iter().map(|of| all(&shown, &printed, of)));
    table.row(
        "an independent model, ackline's reading: mean, deviation",
        experiments.iter().map(|of| model_cell(&Case { of: *of, aqm, sender, reading: DESIGN })),
    );
    for reading in READINGS {
        let measured = |of: &Experiment, statistic: &str| {
            let values =
                results.values(&Case { of: *of, aqm, sender, reading }, |run| run.grid.get(statistic));
            (!values.is_empty()).then(|| plus_minus(&values, 0))
        };
        let cells: Vec<_> = experiments.iter().map(|of| all(&shown, &measured, of)).collect();
        if cells.iter().any(|cell| cell != &Cell::from("-")) {
            table.row(reading.what, cells);
        }
    }
    table
}
