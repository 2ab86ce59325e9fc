//! A reproduction on a terminal.

use super::check::Check;
use super::engine::StudyResult;
use super::study::{Knob, Study};
use crate::summary::short;
use crate::wrap;
use std::fmt::Write as _;

/// The studies with their parts and options.
#[must_use]
pub fn listing(studies: &[&dyn Study]) -> String {
    let mut text = String::new();
    for study in studies {
        let paper = study.paper();
        let _ = writeln!(text, "{}  {}", paper.name, paper.citation());
        let width = study.parts().iter().map(|part| part.name.len()).max().unwrap_or(0);
        for part in study.parts() {
            let _ = writeln!(text, "    --table {:width$}  {}", part.name, part.what);
        }
        let knobs: Vec<&str> = study.knobs().iter().map(|knob| Knob::option(*knob)).collect();
        if !knobs.is_empty() {
            let _ = writeln!(text, "    understands {}", knobs.join(", "));
        }
    }
    wrap(&text, 8)
}

/// Tables, checks that failed, and the count of all.
#[must_use]
pub fn to_text(done: &StudyResult) -> String {
    let (paper, found) = (done.study.paper(), &done.reproduction);
    let mut text = wrap(&paper.citation(), 2) + "\n";
    for table in &found.tables {
        let _ = write!(text, "\n{}", table.to_text());
    }
    for note in &found.notes {
        let _ = write!(text, "\n{}\n", wrap(note, 0));
    }
    let misses: Vec<&Check> = found.checks.iter().filter(|check| !check.ok).collect();
    if !misses.is_empty() {
        text.push('\n');
    }
    for check in misses {
        let word = if check.optional { "missed (optional)" } else { "FAILED" };
        let line = format!("{word} {}: {}", check.id, sentence(check));
        let _ = writeln!(text, "{}", wrap(&line, 2));
    }
    let _ = writeln!(text, "\n{}: {}", paper.name, count(done));
    text
}

/// `214 checks passed, 3 failed`.
pub(super) fn count(done: &StudyResult) -> String {
    let found = &done.reproduction;
    let mut text = format!("{} of {} checks passed", found.passed(), found.checks.len());
    if found.failed() > 0 {
        let _ = write!(text, ", {} failed", found.failed());
        match found.unexplained() {
            0 => text += " for a known reason",
            some if some < found.failed() => {
                let _ = write!(text, " ({} for a known reason)", found.failed() - some);
            }
            _ => {}
        }
    }
    if found.missed() > 0 {
        let _ = write!(text, ", {} optional missed", found.missed());
    }
    text
}

/// What is checked, what came out, and what would have passed.
fn sentence(check: &Check) -> String {
    let measured = check.measured.map_or("nothing".to_owned(), short);
    let mut text = format!("{}: {measured}, not {}", check.what, bounds(check));
    if let Some(paper) = check.paper {
        let _ = write!(text, " (paper: {})", short(paper));
    }
    if let Some(reason) = &check.reason {
        let _ = write!(text, ". {reason}");
    }
    text
}

/// The numbers that pass.
pub(super) fn bounds(check: &Check) -> String {
    match (check.low, check.high) {
        (Some(low), Some(high)) if low == high => short(low),
        (Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
        (Some(low), None) => format!("{} or more", short(low)),
        (None, Some(high)) => format!("{} or less", short(high)),
        (None, None) => "any number".to_owned(),
    }
}
