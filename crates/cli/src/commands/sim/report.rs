//! What `ackline sim` prints.

use crate::output::json_line;
use ackline_lab::{MAX_POINTS_DRAWN, Report, RunResult, Scenario, Summary};
use serde::Serialize;
use std::path::Path;

/// What the folder holds beside the numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) plots: bool,
    /// It was said which runs are drawn.
    pub(crate) plot_runs: bool,
    pub(crate) pcap: bool,
}

/// The summary table, between what was run and where it lies.
pub(crate) fn text(scenario: &Scenario, done: &Report, out: Option<&Path>, has: Files) -> String {
    let (first, last) = (scenario.seed(0), scenario.seed(scenario.repetitions() - 1));
    let seeds = if first == last { format!("seed {first}") } else { format!("seeds {first} to {last}") };
    let (points, all) = (done.summary.points.len(), scenario.points());
    let part = if points == all { String::new() } else { format!("{points} of ") };
    let mut text = format!(
        "{}\n{} with {seeds} at {part}{}\n\n{}",
        scenario.title(),
        count(done.results.len(), "run"),
        count(all, "point"),
        done.summary.to_text()
    );
    let (shown, metrics) = (done.summary.shown_metrics().len(), done.summary.metrics.len());
    if points > 1 && shown < metrics {
        text += &format!("\n{shown} of {metrics} metrics; --all-metrics prints all.\n");
    }
    if let Some(out) = out {
        let mut files = String::from("runs.jsonl, flows.csv, queues.csv, summary.csv, summary.md");
        for (wanted, name) in [(has.plots, "plots/, report.html"), (has.pcap, "pcap/")] {
            if wanted {
                files = format!("{files}, {name}");
            }
        }
        text += &format!("\nIn {}: {files}\n", out.display());
        if has.plots && !has.plot_runs && all > MAX_POINTS_DRAWN {
            text += &format!(
                "Single runs are drawn by themselves for up to {MAX_POINTS_DRAWN} points; --plot-runs 0..{all} draws all.\n"
            );
        }
        if done.resumed > 0 {
            text += &format!("{} had been finished before.\n", count(done.resumed, "run"));
        }
    }
    text
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[derive(Serialize)]
struct RunLine<'a> {
    command: &'static str,
    event: &'static str,
    #[serde(flatten)]
    result: &'a RunResult,
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    command: &'static str,
    event: &'static str,
    ok: bool,
    version: &'static str,
    scenario: &'a str,
    title: &'a str,
    set: &'a [String],
    seed: u64,
    repetitions: u32,
    runs: usize,
    resumed: usize,
    out: Option<String>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// A line for each run, and one for all of them.
pub(crate) fn json(scenario: &Scenario, done: &Report, out: Option<&Path>) -> String {
    let runs = done.results.iter();
    let mut text: String =
        runs.map(|result| json_line(&RunLine { command: "sim", event: "run", result })).collect();
    text += &json_line(&SummaryLine {
        command: "sim",
        event: "summary",
        ok: true,
        version: env!("CARGO_PKG_VERSION"),
        scenario: scenario.name(),
        title: scenario.title(),
        set: scenario.given(),
        seed: scenario.seed(0),
        repetitions: scenario.repetitions(),
        runs: done.results.len(),
        resumed: done.resumed,
        out: out.map(|out| out.display().to_string()),
        summary: &done.summary,
    });
    text
}
