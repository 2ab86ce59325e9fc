//! A reproduction on a terminal.

use crate::judgement::{Counts, Verdict};
use crate::pin::Pin;
use crate::reproduction::Comparisons;
use crate::reproduction::check::Check;
use crate::request::Knob;
use crate::result::StudyResult;
use crate::study::Study;
use ackline_lab::short;
use ackline_lab::wrap;
use std::fmt::Write as _;
use std::ops::Add;

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

/// Findings, tables, misses, and the count of all checks.
#[must_use]
pub fn to_text(done: &StudyResult) -> String {
    let (paper, found) = (done.study.paper(), &done.reproduction);
    let mut text = wrap(&paper.citation(), 2) + "\n";
    if !found.findings.is_empty() {
        let _ = write!(text, "\n{}", findings(done));
    }
    for table in &found.tables {
        let _ = write!(text, "\n{}", table.to_text());
    }
    for note in &found.notes {
        let _ = write!(text, "\n{}\n", wrap(note, 0));
    }
    let misses: Vec<String> = found.checks.iter().filter_map(|check| miss(done, check)).collect();
    if !misses.is_empty() || !done.judgement.faults.is_empty() {
        text.push('\n');
    }
    for line in misses.iter().chain(&done.judgement.faults) {
        let _ = writeln!(text, "{}", wrap(line, 2));
    }
    let _ = writeln!(text, "\n{}: {}{}", paper.name, count(done.counts()), cached(done));
    text
}

/// In how many comparisons live and simulated runs agree, of all studies together and of each;
/// empty if none was compared.
#[must_use]
pub fn agreement(all: &[StudyResult]) -> String {
    let total = total(all);
    if total.all == 0 {
        return String::new();
    }
    let Comparisons { all: number, agree } = total;
    let (share, wanted) = (total.share(), Comparisons::WANTED);
    let mut text = format!(
        "live and simulated agree in {agree} of {number} comparisons, a share of {share:.3} (wanted: {wanted} or more)\n"
    );
    let width = all.iter().map(|done| done.study.paper().name.len()).max().unwrap_or(0);
    for done in all {
        let Comparisons { all: number, agree } = done.reproduction.comparisons;
        let _ = writeln!(text, "  {:width$}  {agree} of {number}", done.study.paper().name);
    }
    text
}

/// The comparisons of all studies.
#[must_use]
pub fn total(all: &[StudyResult]) -> Comparisons {
    all.iter().map(|done| done.reproduction.comparisons).fold(Comparisons::default(), Comparisons::add)
}

/// What of the work was done before.
fn cached(done: &StudyResult) -> String {
    let mut text = String::new();
    if done.origin.cached > 0 {
        let _ = write!(text, "; {} jobs from the cache", done.origin.cached);
    }
    if let Some(sampled) = &done.sampled {
        let same = sampled.jobs - sampled.differing.len();
        let _ = write!(
            text,
            "; data of another engine, of which {same} of {} sampled jobs give the same ({:.0} s)",
            sampled.jobs, sampled.cpu_s
        );
    }
    if done.unreadable > 0 {
        let _ = write!(text, "; {} files of the cache could not be read", done.unreadable);
    }
    text
}

/// What became of each published table or figure.
fn findings(done: &StudyResult) -> String {
    let mut text = String::new();
    for finding in &done.reproduction.findings {
        let verdict = finding.verdict(&done.reproduction, &done.judgement);
        for line in [
            format!("{}: {verdict}", finding.of),
            format!("    paper: {}", finding.paper),
            format!("    here:  {}", finding.ours),
        ] {
            let _ = writeln!(text, "{}", wrap(&line, 11));
        }
    }
    text
}

/// `214 of 220 checks passed, 3 of them within a widened bound, 5 missed (pinned), 1 failed`.
pub(crate) fn count(counts: Counts) -> String {
    let mut text = format!("{} of {} checks passed", counts.passed, counts.checks);
    for (number, words) in [
        (counts.widened, "of them within a widened bound"),
        (counts.stale, "of them in spite of a pin"),
        (counts.pinned, "missed (pinned)"),
        (counts.failed, "failed"),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {words}");
        }
    }
    text
}

/// A line about a check that missed, or passes in spite of a pin.
fn miss(done: &StudyResult, check: &Check) -> Option<String> {
    let pin = done.judgement.pin(&check.id);
    let expected = pin.map_or(String::new(), expected);
    let (word, more) = match done.judgement.verdict(check) {
        Verdict::Passed | Verdict::Widened => return None,
        Verdict::Pinned => ("pinned", format!(". {}", pin.map_or("", |pin| pin.reason.trim()))),
        Verdict::Failed => ("FAILED", String::new()),
        Verdict::Left => ("FAILED", format!("; its pin expects {expected}")),
        Verdict::Stale => {
            let measured = measured(check);
            return Some(format!("PASSES NOW {}: {}: {measured}; remove its pin", check.id, check.what));
        }
    };
    let mut text = format!("{word} {}: {}: {}, not {}", check.id, check.what, measured(check), bounds(check));
    if let Some(paper) = check.paper {
        let _ = write!(text, " (paper: {})", short(paper));
    }
    Some(text + &more)
}

/// What was measured.
pub(crate) fn measured(check: &Check) -> String {
    check.measured.map_or("nothing".to_owned(), short)
}

/// Where a pin expects its miss.
pub(crate) fn expected(pin: &Pin) -> String {
    format!("{} to {}", short(pin.low), short(pin.high))
}

/// The numbers that pass.
pub(crate) fn bounds(check: &Check) -> String {
    match (check.low, check.high) {
        (Some(low), Some(high)) if low == high => short(low),
        (Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
        (Some(low), None) => format!("{} or more", short(low)),
        (None, Some(high)) => format!("{} or less", short(high)),
        (None, None) => "any number".to_owned(),
    }
}
