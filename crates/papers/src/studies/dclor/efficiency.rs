//! Table 6: spectral efficiency, with both readings of the window of a sender that probes, and
//! plain redundancy beside it.

use super::orders::{Kind, Order, efficiency_orders};
use super::paper::{HEADS, ROWS};
use super::responses::RESPONSES;
use super::runs::{Reading, Runs, mean};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;

/// Rows of Table 2 that Table 6 has.
const PRINTED: std::ops::Range<usize> = 0..3;

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for place in PRINTED {
        jobs.extend(Reading::Alone.jobs_of_all(request, place)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = table("6", "each row of Table 2 alone");
    let mut paper = vec![];
    let mut ours: [Vec<String>; 2] = Default::default();
    for place in PRINTED {
        let all = Reading::Alone.read_all(request, outputs, place)?;
        let [dclor, eifel, standard, frto, ..] = &all[..] else { continue };
        let columns = [dclor, eifel, standard, frto];
        for kind in [Kind::Efficiency, Kind::EfficiencyBefore] {
            found.checks.extend(efficiency_orders(place, kind, &columns).iter().filter_map(Order::check));
        }
        let row = &ROWS[place];
        table.row(format!("{} KB", row.size), cells(place, &columns));
        found.tables.push(redundancy("", "each row of Table 2 alone", place, &all));
        let ratios = |values: [f64; 4]| {
            let [dclor, others @ ..] = values;
            let others = others.map(|other| format!("{:.1}", other / dclor)).join(" / ");
            format!("{} KB {dclor:.4} x 1 / {others}", row.size)
        };
        paper.extend(row.printed.map(|printed| ratios(printed.efficiency)));
        ours[0].push(ratios(columns.map(|runs| mean(&runs.efficiencies()))));
        ours[1].push(ratios(columns.map(|runs| mean(&runs.efficiencies_before()))));
    }
    found.tables.insert(0, table);
    if !found.checks.is_empty() {
        let readings = [("zero", "6/5K/", "6/1"), ("that before the timeout", "6/before/", "6/before/")];
        for ((window, first, second), ours) in readings.into_iter().zip(ours) {
            let of = format!(
                "Table 6: spectral efficiency of DCLOR x 1 / Eifel / standard / F-RTO; the window of a probing sender is {window}"
            );
            found
                .findings
                .push(Finding::new(of, paper.join("; "), ours.join("; "), first).and_checks(second));
        }
    }
    Ok(found)
}

/// Table 6 without rows.
pub(super) fn table(id: &str, words: &str) -> Table {
    Table::new(id, format!("Table 6: spectral efficiency, redundant bytes over the mean window in bytes, {words}"))
        .note("Lower is better. Mean over seeds with its 95 % interval, and the draft's number in brackets. The window counts as zero while DCLOR or F-RTO probes.")
        .columns(std::iter::once("").chain(HEADS))
}

/// A row of Table 6.
pub(super) fn cells(place: usize, columns: &[&Runs; 4]) -> Vec<Cell> {
    let Some(printed) = ROWS[place].printed else { return vec![] };
    (0..4)
        .map(|column| Cell::estimate(&columns[column].efficiencies(), 4).paper(printed.efficiency[column]))
        .collect()
}

/// What all responses send in vain, in four measures.
pub(super) fn redundancy(prefix: &str, words: &str, place: usize, all: &[Runs]) -> Table {
    let size = ROWS[place].size;
    let mut table = Table::new(
        format!("{prefix}redundancy-{size}K"),
        format!("What is sent in vain: files of {size} KB, {words}"),
    )
    .note(
        "Mean over seeds with its 95 % interval. Redundant: bytes that the receiver had, per byte received. Spectral efficiency: with the \
         window as zero while the response probes, and as it was before the timeout. DCLOR and F-RTO have such a phase; F-RTO's window is one \
         segment in it, so its value lies between the two. Per timeout: redundant segments of 1,460 bytes.",
    )
    .columns(["", "redundant, %", "efficiency, zero", "efficiency, before", "timeouts per download", "redundant per timeout"]);
    for (response, runs) in RESPONSES.iter().zip(all) {
        table.row(
            response.label,
            [
                Cell::estimate(&runs.redundancies(), 3),
                Cell::estimate(&runs.efficiencies(), 4),
                Cell::estimate(&runs.efficiencies_before(), 4),
                Cell::estimate(&runs.timeouts(), 3),
                Cell::estimate(&runs.redundant_per_timeout(), 2),
            ],
        );
    }
    table
}
