//! Tables: the thesis' beside ours, what else was measured, and the scale factor that finds itself.

use super::checks::{Results, mean_bounds, saturated};
use super::experiment::{Aqm, Case, EXPERIMENTS, Experiment, Sender};
use super::thesis::{STATISTICS, model, thesis};
use crate::reproduce::{Cell, Table};

/// Experiments that stand side by side.
const GROUPS: [(&str, std::ops::Range<usize>); 3] = [("1-3B", 0..4), ("4A-4D", 4..8), ("4E-4H", 8..12)];

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
                        let case = Case { of: *of, aqm, sender };
                        delay_cell(results, &case, statistic, whole)
                    });
                    table.row(format!("{} {statistic}", sender.name(aqm)), cells.collect::<Vec<_>>());
                }
                if sender == Sender::Full {
                    let cells = group.iter().map(|of| model_cell(&Case { of: *of, aqm, sender }));
                    table.row("  independent model: mean, sd", cells.collect::<Vec<_>>());
                }
            }
            table
        })
        .collect()
}

fn delay_cell(results: &impl Results, case: &Case, statistic: &str, whole: bool) -> Cell {
    let Some(run) = results.get(case) else { return Cell::from("-") };
    let Some(paper) = thesis(case, statistic) else { return Cell::number(run.grid.get(statistic), 0) };
    let cell = Cell::beside(run.grid.get(statistic), paper, 0);
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
    let title = format!(
        "With the {}: utilisation, share of packets marked, mean SRTT in us, variation of the flows' goodputs",
        aqm.name()
    );
    let mut table = Table::new(format!("{}/rest", aqm.table()), title).columns([
        "",
        "W_s at target",
        "AIMD",
        "LS-AIMD C=2^-7",
        "LS-AIMD C=1",
    ]);
    for of in EXPERIMENTS {
        let cells = PRINTED.map(|sender| {
            let run = results.get(&Case { of, aqm, sender });
            run.map_or(Cell::from("-"), |run| {
                let (used, marked, srtt) = (run.utilisation, run.marked, run.srtt_us);
                Cell::from(format!("{used:.4}, {marked:.3}, {srtt:.0}, {:.3}", run.spread))
            })
        });
        let window = Cell::number(of.window_segments(of.target_us()), 2);
        table.row(of.name, std::iter::once(window).chain(cells));
    }
    table.note("W_s: segments per flow and round trip where the queue is at the AQM's begin (Eq. 2.3).")
}

/// The three scale factors, experiments 4A to 4H.
pub(super) fn scale(results: &impl Results) -> Table {
    let title = "The scale factor C of LS-AIMD DCTCP: mean queueing delay in us (deviation), utilisation, share marked, \
                 variation of the flows' goodputs";
    let mut table = Table::new("auto", title).columns(["", "", "C=1", "C=2^-7", "C=auto"]);
    for aqm in [Aqm::Step, Aqm::Instantaneous] {
        for of in EXPERIMENTS.into_iter().filter(Experiment::varies) {
            let cells = [Sender::Full, Sender::Slow, Sender::Auto].map(|sender| {
                let run = results.get(&Case { of, aqm, sender });
                run.map_or(Cell::from("-"), |run| {
                    let (mean, sd) = (run.exact.mean, run.exact.sd);
                    Cell::from(format!(
                        "{mean:.0} ({sd:.0}), {:.4}, {:.2}, {:.2}",
                        run.utilisation, run.marked, run.spread
                    ))
                })
            });
            table.row(aqm.name(), std::iter::once(Cell::from(of.name)).chain(cells));
        }
    }
    table
}
