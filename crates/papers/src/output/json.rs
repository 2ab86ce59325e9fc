//! A reproduction as a JSON document.

use crate::pin::Pin;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::Table;
use crate::result::StudyResult;
use ackline_plot::Figure;
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
    widened: usize,
    pinned: usize,
    stale: usize,
    faults: &'a [String],
    findings: Vec<JudgedFinding<'a>>,
    checks: Vec<Verdict<'a>>,
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

/// A finding with its verdict.
#[derive(Serialize)]
struct JudgedFinding<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    verdict: String,
}

/// A check with its verdict and its pin.
#[derive(Serialize)]
struct Verdict<'a> {
    #[serde(flatten)]
    check: &'a Check,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'a Pin>,
}

/// The document on one line. It holds nothing that differs between two runs of the same command.
#[must_use]
pub fn to_json(done: &StudyResult) -> String {
    // Plain data with text keys, which always serialises.
    serde_json::to_string(&document(done)).unwrap_or_default()
}

/// The same over many lines, with an end of line.
pub(crate) fn to_json_pretty(done: &StudyResult) -> String {
    // Plain data with text keys, which always serialises.
    serde_json::to_string_pretty(&document(done)).unwrap_or_default() + "\n"
}

fn document(done: &StudyResult) -> Document<'_> {
    let (paper, found, request) = (done.study.paper(), &done.reproduction, &done.request);
    let (judgement, counts) = (&done.judgement, done.counts());
    let checks = found.checks.iter().map(|check| Verdict {
        check,
        verdict: judgement.verdict(check).name(),
        pin: judgement.pin(&check.id),
    });
    let findings = found
        .findings
        .iter()
        .map(|finding| JudgedFinding { finding, verdict: finding.verdict(found, judgement) });
    Document {
        command: "reproduce",
        study: paper.name,
        paper: Paper { title: paper.title, authors: paper.authors, year: paper.year },
        version: env!("CARGO_PKG_VERSION"),
        parts: &request.parts,
        quick: request.quick,
        seeds: request.seeds,
        scale: request.scale,
        ok: done.failures(false).is_empty(),
        passed: counts.passed,
        failed: counts.failed,
        widened: counts.widened,
        pinned: counts.pinned,
        stale: counts.stale,
        faults: &judgement.faults,
        findings: findings.collect(),
        checks: checks.collect(),
        tables: &found.tables,
        figures: found.figures.iter().map(Figure::name).collect(),
        notes: &found.notes,
    }
}
