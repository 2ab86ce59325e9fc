//! A reproduction as a JSON document.

use super::check::Check;
use super::engine::StudyResult;
use super::table::Table;
use crate::plot::Figure;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    command: &'static str,
    study: &'a str,
    paper: Paper<'a>,
    version: &'static str,
    parts: &'a [&'static str],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quick: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
    ok: bool,
    passed: usize,
    failed: usize,
    unexplained: usize,
    missed_optional: usize,
    checks: &'a [Check],
    tables: &'a [Table],
    figures: Vec<&'a str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Paper<'a> {
    title: &'a str,
    authors: &'a str,
    year: Option<u16>,
}

/// The document on one line. It holds nothing that differs between two runs of the same command.
#[must_use]
pub fn to_json(done: &StudyResult) -> String {
    crate::folder::json(&document(done))
}

/// The same over many lines, with an end of line.
pub(super) fn to_json_pretty(done: &StudyResult) -> String {
    // Plain data with text keys, which always serialises.
    serde_json::to_string_pretty(&document(done)).unwrap_or_default() + "\n"
}

fn document(done: &StudyResult) -> Document<'_> {
    let (paper, found, request) = (done.study.paper(), &done.reproduction, &done.request);
    Document {
        command: "reproduce",
        study: paper.name,
        paper: Paper { title: paper.title, authors: paper.authors, year: paper.year },
        version: env!("CARGO_PKG_VERSION"),
        parts: &request.parts,
        quick: request.quick,
        seeds: request.seeds,
        scale: request.scale,
        ok: found.failed() == 0,
        passed: found.passed(),
        failed: found.failed(),
        unexplained: found.unexplained(),
        missed_optional: found.missed(),
        checks: &found.checks,
        tables: &found.tables,
        figures: found.figures.iter().map(Figure::name).collect(),
        notes: &found.notes,
    }
}
