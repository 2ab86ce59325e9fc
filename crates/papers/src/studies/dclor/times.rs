//! Tables 3 to 5: download times of one size, which has the path for itself.

use super::mix::edges;
use super::orders::{Kind, orders};
use super::paper::{COLUMNS, HEADS, PrintedNumbers, ROWS};
use super::responses::{RESPONSES, of_the_draft};
use super::runs::{Reading, Runs, differences, mean};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::stats::Estimate;
use ackline_plot::{Chart, Kind as Axis, Line};

/// A mean time says something from so many downloads on, a variance from the second number on.
const DOWNLOADS: (u64, u64) = (300, 2_000);

pub(super) fn plan(request: &Request, place: usize) -> Result<Vec<Job>, ReproduceError> {
    Reading::Alone.jobs_of_all(request, place)
}

/// The table of row `place`.
pub(super) fn evaluate(
    request: &Request,
    outputs: &Outputs,
    place: usize,
) -> Result<Reproduction, ReproduceError> {
    let all = Reading::Alone.read_all(request, outputs, place)?;
    let [dclor, eifel, standard, frto, ..] = &all[..] else { return Ok(Reproduction::default()) };
    let columns = [dclor, eifel, standard, frto];
    let row = &ROWS[place];
    let Some(printed) = row.printed else { return Ok(Reproduction::default()) };
    let words = "each row of Table 2 alone";
    let mut found = Reproduction::default();
    found.tables.push(printed_table(printed.table, words, place, &columns));
    found.tables.push(all_responses("", words, place, &all));
    if place < 2 {
        found.tables.push(tail(place, &columns));
    }
    found.checks.extend(tolerances(place, &columns));
    let orders = orders(place, &columns);
    found.checks.extend(
        orders.iter().filter(|order| order.kind != Kind::Efficiency).filter_map(super::orders::Order::check),
    );
    if !found.checks.is_empty() {
        found.findings.push(finding(place, &printed, &columns));
    }
    found.checks.push(unfinished("", place, &all));
    found.figures.push(distribution(place, &all).into());
    Ok(found)
}

fn finding(place: usize, printed: &PrintedNumbers, columns: &[&Runs; 4]) -> Finding {
    let written = |means: [f64; 4], variances: [f64; 4]| {
        let one =
            |column: usize| format!("{} {:.2} / {:.1}", HEADS[column], means[column], variances[column]);
        (0..4).map(one).collect::<Vec<String>>().join(", ")
    };
    let ours = written(columns.map(|runs| mean(&runs.means())), columns.map(|runs| mean(&runs.variances())));
    let of = format!("Table {}: {} KB, mean s / variance s^2", printed.table, ROWS[place].size);
    Finding::new(of, written(printed.mean, printed.variance), ours, format!("{}/", printed.table))
}

fn variance_bounds(printed: &PrintedNumbers, column: usize) -> (f64, f64) {
    let (low, high) = printed.variance_factors;
    (low * printed.variance[column], high * printed.variance[column])
}

/// Ours beside the draft's.
pub(super) fn printed_table(id: &str, words: &str, place: usize, columns: &[&Runs; 4]) -> Table {
    let Some(printed) = ROWS[place].printed else { return Table::default() };
    let mut table = Table::new(id, format!("Table {}: download time of {} KB files, {words}", printed.table, ROWS[place].size))
        .note("Mean over seeds with its 95 % interval, and the draft's number in brackets; ! marks what is beyond its tolerance.")
        .columns(std::iter::once("").chain(HEADS));
    let slack = printed.mean_tolerance;
    let mean_cell = |column: usize| {
        let paper = printed.mean[column];
        Cell::estimate(&columns[column].means(), 3)
            .paper(paper)
            .within((paper * (1.0 - slack), paper * (1.0 + slack)))
    };
    let variance_cell = |column: usize| {
        Cell::estimate(&columns[column].variances(), 2)
            .paper(printed.variance[column])
            .within(variance_bounds(&printed, column))
    };
    table.row("mean, s", (0..4).map(mean_cell));
    table.row("variance, s^2", (0..4).map(variance_cell));
    table
}

fn tolerances(place: usize, columns: &[&Runs; 4]) -> Vec<Check> {
    let Some(printed) = ROWS[place].printed else { return vec![] };
    let size = ROWS[place].size;
    let mut checks = vec![];
    for (column, name) in COLUMNS.iter().enumerate() {
        let runs = columns[column];
        if runs.downloads() >= DOWNLOADS.0 {
            let paper = printed.mean[column];
            let what = format!("{name}: mean time of {size} KB, s");
            checks.push(
                Check::near(
                    format!("{}/{name}/mean", printed.table),
                    what,
                    mean(&runs.means()),
                    paper,
                    printed.mean_tolerance,
                )
                .paper(paper),
            );
        }
        if runs.downloads() >= DOWNLOADS.1 {
            let what = format!("{name}: variance of the time of {size} KB, s^2");
            checks.push(
                Check::within(
                    format!("{}/{name}/variance", printed.table),
                    what,
                    mean(&runs.variances()),
                    variance_bounds(&printed, column),
                )
                .paper(printed.variance[column]),
            );
        }
    }
    checks
}

/// All downloads that began must end.
pub(super) fn unfinished(prefix: &str, place: usize, all: &[Runs]) -> Check {
    let row = &ROWS[place];
    let sum: u64 = all.iter().map(Runs::unfinished).sum();
    Check::exactly(
        format!("{prefix}unfinished/{}", row.app),
        format!("downloads of {} KB that did not end, all responses", row.size),
        sum as f64,
        0.0,
    )
}

/// All responses with row `place`, and their differences to DCLOR.
pub(super) fn all_responses(prefix: &str, words: &str, place: usize, all: &[Runs]) -> Table {
    let size = ROWS[place].size;
    let mut table = Table::new(format!("{prefix}all-{size}K"), format!("All responses: files of {size} KB, {words}"))
        .note(
            "Mean over seeds with its 95 % interval. Less DCLOR's: the mean time less that of DCLOR over the same stalls, seed by seed. \
             Timeouts: per download.",
        )
        .columns(["", "mean, s", "less DCLOR's, s", "variance, s^2", "p50, s", "p99, s", "timeouts"]);
    for (response, runs) in RESPONSES.iter().zip(all) {
        let each = |of: fn(&super::mix::Times) -> f64| runs.times().map(of).collect::<Vec<f64>>();
        table.row(
            response.label,
            [
                Cell::estimate(&runs.means(), 3),
                Cell::estimate(&differences(&runs.means(), &all[0].means()), 3),
                // One download has no variance.
                if ROWS[place].files * ROWS[place].connections > 1 {
                    Cell::estimate(&runs.variances(), 2)
                } else {
                    Cell::from("-")
                },
                Cell::estimate(&each(|times| times.p50), 2),
                Cell::estimate(&each(|times| times.p99), 2),
                Cell::estimate(&runs.timeouts(), 3),
            ],
        );
    }
    table
}

/// What a run of an exponential back-off costs: 3, 6, ... 96 s, and the stalls in between.
const BACKED_OFF_S: f64 = 230.0;

/// What the draft's variances would need: downloads that take as long as a run of an exponential
/// back-off.
fn tail(place: usize, columns: &[&Runs; 4]) -> Table {
    let row = &ROWS[place];
    let Some(printed) = row.printed else { return Table::default() };
    let mut table = Table::new(format!("tail-{}K", row.size), format!("The longest downloads of {} KB, and what the draft's variances would need", row.size))
        .note(format!(
            "Longest: of each seed's downloads. Needed: how many of the draft's {} downloads would have to take {BACKED_OFF_S} s, a whole run of the \
             exponential back-off, for its variance; and how much of its mean they would be, beside the difference of the means.",
            row.files * row.connections
        ))
        .columns(["", "longest, s", "variance, s^2", "the draft's", "needed", "they add to the mean, s", "the draft's mean less ours, s"]);
    let downloads = (row.files * row.connections) as f64;
    for (column, runs) in columns.iter().enumerate() {
        let longest: Vec<f64> = runs.times().map(|times| times.longest).collect();
        let (ours, variance) = (mean(&runs.means()), mean(&runs.variances()));
        let needed =
            (printed.variance[column] - variance).max(0.0) * downloads / (BACKED_OFF_S - ours).powi(2);
        table.row(
            HEADS[column],
            [
                Cell::estimate(&longest, 1),
                Cell::estimate(&runs.variances(), 2),
                Cell::number(printed.variance[column], 2),
                Cell::number(needed, 1),
                Cell::number(needed * (BACKED_OFF_S - ours) / downloads, 3),
                Cell::number(printed.mean[column] - ours, 3),
            ],
        );
    }
    table
}

/// How the draft's four distribute the download times: the mean share over seeds, with its
/// interval.
fn distribution(place: usize, all: &[Runs]) -> Chart {
    let row = &ROWS[place];
    let lines = of_the_draft().iter().zip(all).map(|(response, runs)| {
        let shares: Vec<Vec<f64>> = runs.times().map(super::mix::Times::shares_below).collect();
        let longest = shares.iter().map(Vec::len).max().unwrap_or(0);
        let mut line = Line { label: response.label.to_owned(), ..Line::default() };
        for (at, edge) in edges().take(longest).enumerate() {
            let of_seeds: Vec<f64> =
                shares.iter().map(|shares| shares.get(at).copied().unwrap_or(1.0)).collect();
            let Some(estimate) = Estimate::of(&of_seeds) else { continue };
            line.points.push((edge, estimate.mean));
            line.band.extend(estimate.ci.map(|(low, high)| (edge, low, high)));
        }
        line
    });
    Chart {
        name: format!("cdf-{}K", row.size),
        title: format!("Download times of {} KB files", row.size),
        x_label: "download time, s".to_owned(),
        y_label: "share of downloads".to_owned(),
        x: Axis::Log,
        from_zero: true,
        lines: lines.collect(),
        ..Chart::default()
    }
}
