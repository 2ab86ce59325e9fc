//! The page of a study in Markdown: prose of the study, in which results have their places.
//!
//! A line of its own may hold one of these:
//!
//! | placeholder | becomes |
//! |---|---|
//! | `{{table ID}}` | the table |
//! | `{{figure NAME}}` | the figure, as an image from the study's folder |
//! | `{{checks PREFIX}}` | a table of the checks whose ids begin so, folded; without PREFIX all that stand nowhere else |
//! | `{{notes}}` | the notes of this run |
//! | `{{part NAME}}` ... `{{end}}` | what stands between, if the part was asked for |
//!
//! Within a line, `{{measured ID}}` becomes what the check measured, and `{{count}}` how many checks passed. What the page
//! has no place for is appended. A placeholder that names nothing is an error.

use super::check::Check;
use super::engine::StudyResult;
use super::terminal::{bounds, count};
use crate::plot::Figure;
use crate::summary::short;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What of the results already has a place.
#[derive(Default)]
struct Placed {
    tables: BTreeSet<String>,
    figures: BTreeSet<String>,
    checks: BTreeSet<String>,
    notes: bool,
}

/// The page of a study with its results.
///
/// # Errors
/// What is wrong with the study's page.
pub fn to_markdown(done: &StudyResult) -> Result<String, String> {
    let mut placed = Placed::default();
    let mut text = heading(done);
    let mut wanted = true;
    let mut open = None;
    for (number, line) in done.study.page().lines().enumerate() {
        let fault = |message: String| format!("line {} of the page: {message}", number + 1);
        let word = line.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
        let (name, argument) = word.map_or(("", ""), |word| word.split_once(' ').unwrap_or((word, "")));
        match name {
            "part" => {
                if open.is_some() {
                    return Err(fault("a part within a part".to_owned()));
                }
                if !done.study.parts().iter().any(|part| part.name == argument) {
                    return Err(fault(format!("the study has no part {argument:?}")));
                }
                wanted = done.request.wants(argument);
                open = Some(argument);
            }
            "end" => {
                if open.take().is_none() {
                    return Err(fault("nothing is open here".to_owned()));
                }
                wanted = true;
            }
            _ if !wanted => {}
            "table" | "figure" | "checks" | "notes" => {
                text += &block(done, name, argument, &mut placed).map_err(fault)?;
            }
            _ => {
                text += &inline(done, line).map_err(fault)?;
                text.push('\n');
            }
        }
    }
    if let Some(part) = open {
        return Err(format!("the page does not end its part {part:?}"));
    }
    text += &rest(done, &placed);
    Ok(text)
}

fn heading(done: &StudyResult) -> String {
    let paper = done.study.paper();
    let mut command = format!("ackline reproduce {}", paper.name);
    let parts = &done.request.parts;
    if parts.len() < done.study.parts().len() {
        let _ = write!(command, " --table {}", parts.join(","));
    }
    if done.request.quick {
        command += " --quick";
    }
    if let Some(seeds) = done.request.seeds {
        let _ = write!(command, " --seeds {seeds}");
    }
    if let Some(scale) = done.request.scale {
        let _ = write!(command, " --scale {scale}");
    }
    format!("<!-- Made by `{command} --out DIR`; the prose is the study's page. Do not edit. -->\n\n")
}

/// A placeholder on a line of its own.
fn block(done: &StudyResult, name: &str, argument: &str, placed: &mut Placed) -> Result<String, String> {
    let found = &done.reproduction;
    match name {
        "table" => {
            let table = found.tables.iter().find(|table| table.id == argument);
            let table = table.ok_or_else(|| format!("there is no table {argument:?}"))?;
            placed.tables.insert(argument.to_owned());
            Ok(table.to_markdown())
        }
        "figure" => {
            let figure = found.figures.iter().find(|figure| figure.name() == argument);
            let figure = figure.ok_or_else(|| format!("there is no figure {argument:?}"))?;
            placed.figures.insert(argument.to_owned());
            Ok(image(done, figure))
        }
        "checks" => {
            let checks: Vec<&Check> = found
                .checks
                .iter()
                .filter(|check| check.id.starts_with(argument) && !placed.checks.contains(&check.id))
                .collect();
            if checks.is_empty() {
                return Err(format!("no check begins with {argument:?} that stands nowhere else"));
            }
            placed.checks.extend(checks.iter().map(|check| check.id.clone()));
            Ok(folded(&checks))
        }
        _ => {
            placed.notes = true;
            Ok(found.notes.join("\n\n") + "\n")
        }
    }
}

/// A line with the values that it names.
fn inline(done: &StudyResult, line: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut left = line;
    while let Some((before, after)) = left.split_once("{{") {
        let (word, after) = after.split_once("}}").ok_or("{{ without }}")?;
        text += before;
        let word = word.trim();
        text += &match word.split_once(' ') {
            Some(("measured", id)) => {
                let check = done.reproduction.checks.iter().find(|check| check.id == id);
                let check = check.ok_or_else(|| format!("there is no check {id:?}"))?;
                check.measured.map_or("-".to_owned(), short)
            }
            None if word == "count" => count(done),
            _ => return Err(format!("there is no placeholder {word:?}")),
        };
        left = after;
    }
    Ok(text + left)
}

fn image(done: &StudyResult, figure: &Figure) -> String {
    format!("![{}]({}/{}.svg)\n", figure.title(), done.study.paper().stem, figure.name())
}

/// A table of checks behind its count; open if one of them was missed.
fn folded(checks: &[&Check]) -> String {
    let missed = checks.iter().filter(|check| !check.ok).count();
    let open = if missed > 0 { " open" } else { "" };
    let mut text = format!(
        "<details{open}><summary>{} of {} checks passed</summary>\n\n\
         | check | what | paper | measured | passes | |\n|---|---|--:|--:|--:|---|\n",
        checks.len() - missed,
        checks.len()
    );
    for check in checks {
        let number = |number: Option<f64>| number.map_or(String::new(), short);
        let verdict = match (check.ok, check.optional) {
            (true, _) => "ok",
            (false, true) => "missed (optional)",
            (false, false) => "**FAILED**",
        };
        let reason =
            check.reason.as_ref().filter(|_| !check.ok).map_or(String::new(), |reason| format!(": {reason}"));
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {verdict}{reason} |",
            check.id,
            check.what.replace('|', "\\|"),
            number(check.paper),
            number(check.measured),
            bounds(check)
        );
    }
    text + "\n</details>\n"
}

/// What has no place on the page.
fn rest(done: &StudyResult, placed: &Placed) -> String {
    let found = &done.reproduction;
    let mut text = String::new();
    for table in found.tables.iter().filter(|table| !placed.tables.contains(&table.id)) {
        let _ = write!(text, "\n{}", table.to_markdown());
    }
    for figure in found.figures.iter().filter(|figure| !placed.figures.contains(figure.name())) {
        let _ = write!(text, "\n{}", image(done, figure));
    }
    let checks: Vec<&Check> =
        found.checks.iter().filter(|check| !placed.checks.contains(&check.id)).collect();
    if !checks.is_empty() {
        let _ = write!(text, "\n{}", folded(&checks));
    }
    if !placed.notes && !found.notes.is_empty() {
        let _ = write!(text, "\n{}\n", found.notes.join("\n\n"));
    }
    text
}
