//! The experiments of the paper's figures, and backpressure with other thresholds.

use super::job;
use super::reading::{Run, both};
use super::rows::{Discipline, ROWS, Row};
use crate::error::ReproduceError;
use crate::job::Outputs;
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};

const FIGURES: &str = "figures";
const THRESHOLDS: &str = "thresholds";
/// Shares of connections of one direction may differ from equal ones by this much of them.
const SHARE_TOLERANCE: f64 = 0.05;
/// By how much the account of the slow direction may be open.
const BALANCE_TOLERANCE: f64 = 0.01;

pub(super) fn figures(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let rows = ROWS.iter().filter(|row| row.scenario != THRESHOLDS);
    let mut found = evaluate(rows, outputs, FIGURES, "Efficiencies: slow direction / fast direction")?;
    found.tables.push(bursts(outputs, &mut found.checks)?);
    found.tables.push(shares(outputs, &mut found.checks)?);
    Ok(found)
}

pub(super) fn thresholds(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let rows = ROWS.iter().filter(|row| row.scenario == THRESHOLDS);
    let mut found = evaluate(rows, outputs, THRESHOLDS, "Backpressure: efficiencies by threshold")?;
    found.figures.clear();
    Ok(found)
}

fn run(row: &Row, outputs: &Outputs) -> Result<Run, ReproduceError> {
    let line = row.line();
    Ok(Run::new(outputs.get(&job(row.scenario, row.point))?, line.slow, line.fast))
}

fn evaluate<'a>(
    rows: impl Iterator<Item = &'a Row>,
    outputs: &Outputs,
    id: &str,
    title: &str,
) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new(id, title)
        .note(
            "data: packets of up / down, then ACKs, in bytes; formulas: as printed, and as put right; tolerance: against \
             the event model; account: F_i + F_j * alpha / beta, 1 where the slow direction is never idle",
        )
        .columns([
            "figure",
            "near host",
            "data, ACK",
            "paper",
            "printed",
            "put right",
            "event model",
            "ackline",
            "tolerance",
            "account",
        ]);
    for row in rows {
        let line = row.line();
        let run = run(row, outputs)?;
        let measured = run.efficiency();
        let [up, down, ack] = row.sizes;
        let [paper_slow, paper_fast] = row.paper;
        let paper =
            if paper_slow.is_empty() { String::new() } else { format!("{paper_slow} / {paper_fast}") };
        table.row(
            row.name,
            [
                Cell::from(row.discipline.label()),
                Cell::from(format!("{up}/{down}, {ack}")),
                Cell::from(paper.as_str()),
                Cell::from(both(row.discipline.printed(&line))),
                Cell::from(both(row.discipline.corrected(&line))),
                row.model.map_or(Cell::from(""), |model| Cell::from(both(model))),
                Cell::from(both(measured)),
                Cell::from(format!("{} / {}", row.tolerance.slow, row.tolerance.fast)),
                Cell::number(line.balance(measured), 3),
            ],
        );
        let slug = row.slug();
        found.checks.extend(checks(&format!("{id}/{slug}"), row, &run));
        if !paper.is_empty() {
            let of = format!("{}: {}", row.title(), row.discipline.label());
            let ours = format!("{}; the event model {}", both(measured), both(row.expected()));
            found.findings.push(Finding::new(of, paper.clone(), ours, format!("{id}/{slug}/")));
        }
        if row.is_figure() {
            let name = slug.replace('.', "-");
            let title = format!("{}: {}", row.title(), row.discipline.label());
            found.figures.push(run.chart(format!("figure-{name}"), title).into());
        }
    }
    found.tables.push(table);
    Ok(found)
}

fn checks(id: &str, row: &Row, run: &Run) -> Vec<Check> {
    let (measured, expected) = (run.efficiency(), row.expected());
    let sides = [
        ("up", "F_i", measured.slow, expected.slow, row.tolerance.slow),
        ("down", "F_j", measured.fast, expected.fast, row.tolerance.fast),
    ];
    let mut checks = vec![];
    for (place, (side, symbol, measured, expected, tolerance)) in sides.into_iter().enumerate() {
        let what = format!("{symbol}, {}", row.discipline.label());
        let mut check = Check::within(
            format!("{id}/{side}"),
            what,
            measured,
            (expected - tolerance, expected + tolerance),
        )
        .expected(expected);
        check.paper = paper_number(row.paper[place]);
        checks.push(check);
        if let Some(band) = row.band {
            checks.push(Check::within(
                format!("{id}/{side}/band"),
                format!("{symbol}, between what the paper computes and what follows from f"),
                measured,
                band[place],
            ));
        }
    }
    checks.push(
        Check::within(
            format!("{id}/account"),
            "F_i + F_j * alpha / beta",
            row.line().balance(measured),
            (1.0 - BALANCE_TOLERANCE, 1.0 + BALANCE_TOLERANCE),
        )
        .expected(1.0),
    );
    checks.push(run.lossless(id));
    checks
}

/// The number with which the paper's words begin.
fn paper_number(words: &str) -> Option<f64> {
    words.split(' ').next()?.parse().ok()
}

/// How many ACKs leave between two data packets, and the time that they take.
fn bursts(outputs: &Outputs, checks: &mut Vec<Check>) -> Result<Table, ReproduceError> {
    let mut table = Table::new("bursts", "ACKs for each data packet on the slow direction")
        .note(
            "formulas: (4.3), (5.4), (6.1), and for one queue n_j / n_i; time: of the ACKs that were sent; waits: of an ACK before \
             it is sent, over the whole run",
        )
        .columns([
            "figure",
            "near host",
            "formulas",
            "ackline",
            "time [ms]",
            "median wait [ms]",
            "longest [ms]",
        ]);
    for row in ROWS.iter().filter(|row| row.scenario != THRESHOLDS) {
        let line = row.line();
        let run = run(row, outputs)?;
        let (measured, waits) = (run.acks_per_data(), run.ack_waits().unwrap_or_default());
        if row.discipline == Discipline::Fifo {
            checks.push(
                Check::near(
                    format!("{FIGURES}/{}/wait", row.slug()),
                    "longest wait of an ACK, s: behind a window of data (tolerance: a data packet)",
                    waits.max,
                    line.packets_i() * line.data_time_slow(),
                    1.0 / line.packets_i(),
                )
                .paper(5.1),
            );
        }
        let number = |value: Option<f64>| value.map_or(Cell::from("no data"), |value| Cell::number(value, 1));
        table.row(
            row.name,
            [
                Cell::from(row.discipline.label()),
                number(row.discipline.acks_per_data(&line)),
                number(measured),
                measured.map_or(Cell::from(""), |acks| Cell::number(acks * line.ack_time() * 1e3, 1)),
                Cell::number(waits.p50 * 1e3, 1),
                Cell::number(waits.max * 1e3, 1),
            ],
        );
    }
    Ok(table)
}

/// What each of several connections of a direction gets.
fn shares(outputs: &Outputs, checks: &mut Vec<Check>) -> Result<Table, ReproduceError> {
    let mut table = Table::new("shares", "Figure 5.5: efficiency of each connection")
        .note("connections in the order in which they began, one second apart")
        .columns(["sizes", "uploads", "downloads"]);
    for row in ROWS.iter().filter(|row| row.scenario == "six-connections") {
        let connections = run(row, outputs)?.connections();
        for (side, shares) in ["up", "down"].into_iter().zip(&connections) {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            for (number, share) in shares.iter().enumerate() {
                checks.push(Check::near(
                    format!("{FIGURES}/{}/{side}-{}/share", row.slug(), number + 1),
                    "efficiency of one of three connections, against an equal share",
                    *share,
                    mean,
                    SHARE_TOLERANCE,
                ));
            }
        }
        let [up, down] = connections.map(|shares| {
            let shares: Vec<String> = shares.iter().map(|share| format!("{share:.3}")).collect();
            Cell::from(shares.join(", "))
        });
        table.row(row.name.trim_start_matches("5.5, "), [up, down]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_words_begin_with_a_number_or_not() {
        assert_eq!(paper_number("0.172 (also 0.18, 0.20)"), Some(0.172));
        assert_eq!(paper_number("> 0.50"), None);
        assert_eq!(paper_number(""), None);
    }

    #[test]
    fn every_row_is_a_balanced_account_in_the_event_model() {
        for row in ROWS {
            let balance = row.line().balance(row.expected());
            assert!((balance - 1.0).abs() < 0.0101, "{}: {balance}", row.name);
        }
    }
}
