//! The page of a study in Markdown: prose of the study, in which results have their places.
//!
//! A line of its own may hold one of these:
//!
//! | placeholder | becomes |
//! |---|---|
//! | `{{findings}}` | what became of each published table or figure: the page begins with it |
//! | `{{table ID}}` | the table |
//! | `{{figure NAME}}` | the figure, as an image from the study's folder |
//! | `{{checks PREFIX}}` | a table of the checks whose ids begin so, folded; without PREFIX all that stand nowhere else |
//! | `{{misses}}` | the pinned misses with their bounds and reasons, and what else is not as it should be |
//! | `{{notes}}` | the notes of this run |
//! | `{{fold TITLE}}` ... `{{end}}` | what stands between, behind its title |
//! | `{{part NAME}}` ... `{{end}}` | what stands between, if the part was asked for |
//!
//! Within a line, `{{measured ID}}` becomes what the check measured, and `{{count}}` how many
//! checks passed. What the page has no place for is appended, findings first. A placeholder that
//! names nothing is an error, unless not everything was run: then a table, a figure or checks are
//! left out, and a number is a dash.

use super::data::Origin;
use super::judgement::Verdict;
use super::output::terminal::{bounds, count, expected, measured};
use super::pin::{Extent, Pin};
use super::reproduction::check::Check;
use super::result::StudyResult;
use ackline_lab::short;
use ackline_plot::Figure;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What of the results already has a place.
#[derive(Default)]
struct PlacedParts {
    findings: bool,
    tables: BTreeSet<String>,
    figures: BTreeSet<String>,
    checks: BTreeSet<String>,
    misses: bool,
    notes: bool,
}

/// What an `{{end}}` ends.
enum Block<'a> {
    Part { name: &'a str, wanted: bool },
    Fold,
}

/// The page of a study with its results.
///
/// # Errors
/// What is wrong with the study's page.
pub fn to_markdown(done: &StudyResult) -> Result<String, String> {
    let mut page = Page { done, placed: PlacedParts::default(), folds: 0 };
    let mut text = heading(done);
    let mut open: Vec<Block<'_>> = vec![];
    for (number, line) in done.study.page().lines().enumerate() {
        let fault = |message: String| format!("line {} of the page: {message}", number + 1);
        let word = line.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
        let (name, argument) = word.map_or(("", ""), |word| word.split_once(' ').unwrap_or((word, "")));
        let wanted = open.iter().all(|open| matches!(open, Block::Fold | Block::Part { wanted: true, .. }));
        match name {
            "part" => {
                if open.iter().any(|open| matches!(open, Block::Part { .. })) {
                    return Err(fault("a part within a part".to_owned()));
                }
                if !done.study.parts().iter().any(|part| part.name == argument) {
                    return Err(fault(format!("the study has no part {argument:?}")));
                }
                open.push(Block::Part { name: argument, wanted: done.request.wants(argument) });
            }
            "fold" => {
                if argument.is_empty() {
                    return Err(fault("a fold without a title".to_owned()));
                }
                open.push(Block::Fold);
                if wanted {
                    page.folds += 1;
                    let title = page.inline(argument).map_err(fault)?;
                    let _ = writeln!(text, "<details><summary>{title}</summary>\n");
                }
            }
            "end" => match open.pop() {
                None => return Err(fault("nothing is open here".to_owned())),
                Some(Block::Fold) if wanted => {
                    page.folds -= 1;
                    text += "\n</details>\n";
                }
                Some(_) => {}
            },
            _ if !wanted => {}
            "findings" | "table" | "figure" | "checks" | "misses" | "notes" => {
                text += &page.block(name, argument).map_err(fault)?;
            }
            _ => {
                text += &page.inline(line).map_err(fault)?;
                text.push('\n');
            }
        }
    }
    match open.pop() {
        Some(Block::Part { name, .. }) => return Err(format!("the page does not end its part {name:?}")),
        Some(Block::Fold) => return Err("the page does not end a fold".to_owned()),
        None => {}
    }
    text += &page.rest();
    text += &foot(done);
    Ok(text)
}

fn heading(done: &StudyResult) -> String {
    format!(
        "<!-- Made by `{} --out DIR`; the prose is the study's page. Do not edit. -->\n\n",
        done.origin.command
    )
}

/// How the page was made, and how to make it again.
fn foot(done: &StudyResult) -> String {
    let (origin, paper) = (&done.origin, done.study.paper());
    let Origin { command, version, commit, engine, cpu_s, threads, .. } = origin;
    let commit = commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
    let on = if *threads == 1 { "one core".to_owned() } else { format!("{threads} cores") };
    format!(
        "\n---\n\nRun by `{command} --out DIR` with ackline {version}{commit}, engine {engine}: {} of CPU time, on {on}. \
         `ackline reproduce {} --from DIR/data --out DIR` makes this page from [the data](data/{}.json.gz) of that run, without \
         running anything.\n",
        hours(*cpu_s),
        paper.name,
        paper.stem
    )
}

/// `3 h 12 min`, `4 min`, `12 s`.
fn hours(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0 | 1 => format!("{seconds:.0} s"),
        2..120 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A page that is being made.
struct Page<'a> {
    done: &'a StudyResult,
    placed: PlacedParts,
    /// Folds that are open.
    folds: usize,
}

impl Page<'_> {
    /// True if everything was run at its full size, so that nothing that the page names may be
    /// missing.
    fn is_whole(&self) -> bool {
        self.done.is_complete() && Extent::of(&self.done.request) == Some(Extent::Whole)
    }

    /// What stands for something that is not there: an error of the page, if everything was run.
    fn absent(&self, instead: &str, message: String) -> Result<String, String> {
        if self.is_whole() { Err(message) } else { Ok(instead.to_owned()) }
    }

    /// A placeholder on a line of its own.
    fn block(&mut self, name: &str, argument: &str) -> Result<String, String> {
        let found = &self.done.reproduction;
        match name {
            "findings" => {
                self.placed.findings = true;
                Ok(self.findings())
            }
            "table" => {
                let Some(table) = found.tables.iter().find(|table| table.id == argument) else {
                    return self.absent("", format!("there is no table {argument:?}"));
                };
                self.placed.tables.insert(argument.to_owned());
                Ok(self.table(table))
            }
            "figure" => {
                let Some(figure) = found.figures.iter().find(|figure| figure.name() == argument) else {
                    return self.absent("", format!("there is no figure {argument:?}"));
                };
                self.placed.figures.insert(argument.to_owned());
                Ok(self.image(figure))
            }
            "checks" => {
                let checks: Vec<&Check> = found
                    .checks
                    .iter()
                    .filter(|check| check.id.starts_with(argument) && !self.placed.checks.contains(&check.id))
                    .collect();
                if checks.is_empty() {
                    let message = format!("no check begins with {argument:?} that stands nowhere else");
                    return self.absent("", message);
                }
                self.placed.checks.extend(checks.iter().map(|check| check.id.clone()));
                Ok(self.checks(&checks))
            }
            "misses" => {
                self.placed.misses = true;
                Ok(self.misses())
            }
            _ => {
                self.placed.notes = true;
                Ok(found.notes.join("\n\n") + "\n")
            }
        }
    }

    /// A line with the values that it names.
    fn inline(&self, line: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut left = line;
        while let Some((before, after)) = left.split_once("{{") {
            let (word, after) = after.split_once("}}").ok_or("{{ without }}")?;
            text += before;
            let word = word.trim();
            text += &match word.split_once(' ') {
                Some(("measured", id)) => {
                    match self.done.reproduction.checks.iter().find(|check| check.id == id) {
                        Some(check) => check.measured.map_or("-".to_owned(), short),
                        None => self.absent("-", format!("there is no check {id:?}"))?,
                    }
                }
                None if word == "count" => count(self.done.counts()),
                _ => return Err(format!("there is no placeholder {word:?}")),
            };
            left = after;
        }
        Ok(text + left)
    }

    fn findings(&self) -> String {
        let found = &self.done.reproduction;
        if found.findings.is_empty() {
            return String::new();
        }
        let mut text = "| published | the paper | ours | verdict |\n|---|---|---|---|\n".to_owned();
        for finding in &found.findings {
            let verdict = finding.verdict(found, &self.done.judgement);
            let cells = [&finding.of, &finding.paper, &finding.ours, &verdict].map(|words| cell(words));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    /// A table, which can be linked to if a pin names it.
    fn table(&self, table: &super::reproduction::table::Table) -> String {
        let anchor = if self.is_evidence(&table.id) {
            format!("<a id=\"{}\"></a>\n\n", slug(&table.id))
        } else {
            String::new()
        };
        anchor + &table.to_markdown()
    }

    fn image(&self, figure: &Figure) -> String {
        let anchor = if self.is_evidence(figure.name()) {
            format!("<a id=\"{}\"></a>\n\n", slug(figure.name()))
        } else {
            String::new()
        };
        let (stem, ending) = (self.done.study.paper().stem, self.done.plot.format.ending());
        format!("{anchor}![{}]({stem}/{}.{ending})\n", figure.title(), figure.name())
    }

    /// True if a pin names it.
    fn is_evidence(&self, id: &str) -> bool {
        self.done.judgement.pins().any(|pin| pin.evidence == id)
    }

    /// A table of checks behind its count, unless a fold is open already; open if one of them
    /// fails.
    fn checks(&self, checks: &[&Check]) -> String {
        let judgement = &self.done.judgement;
        let ids: BTreeSet<&str> = checks.iter().map(|check| check.id.as_str()).collect();
        let counts = judgement.count(&self.done.reproduction, |id| ids.contains(id));
        let fails = checks.iter().any(|check| judgement.verdict(check).fails());
        let mut text = match (self.folds, fails) {
            (0, true) => format!("<details open><summary>{}</summary>\n\n", count(counts)),
            (0, false) => format!("<details><summary>{}</summary>\n\n", count(counts)),
            _ => format!("{}:\n\n", count(counts)),
        };
        text += "| check | what | paper | measured | passes | |\n|---|---|--:|--:|--:|---|\n";
        for check in checks {
            let number = |number: Option<f64>| number.map_or(String::new(), short);
            let verdict = match judgement.verdict(check) {
                Verdict::Passed => "ok".to_owned(),
                Verdict::Widened => {
                    format!("ok, widened: {}", check.widened.as_deref().unwrap_or_default())
                }
                Verdict::Pinned => format!("[pinned](#{})", miss_slug(&check.id)),
                Verdict::Failed | Verdict::Left => "**FAILED**".to_owned(),
                Verdict::Stale => "**passes now: remove its pin**".to_owned(),
            };
            let anchor = if self.is_evidence(&check.id) {
                format!("<a id=\"{}\"></a>", slug(&check.id))
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "| {anchor}`{}` | {} | {} | {} | {} | {} |",
                check.id,
                cell(&check.what),
                number(check.paper),
                number(check.measured),
                bounds(check),
                cell(&verdict)
            );
        }
        text + if self.folds == 0 { "\n</details>\n" } else { "" }
    }

    /// Checks that are not as they should be, what is wrong with pins, and misses with their pins.
    fn misses(&self) -> String {
        let judgement = &self.done.judgement;
        let (mut failed, mut pinned) = (String::new(), String::new());
        for check in &self.done.reproduction.checks {
            let words = match (judgement.verdict(check), judgement.pin(&check.id)) {
                (Verdict::Passed | Verdict::Widened, _) => continue,
                (Verdict::Pinned, pin) => {
                    pinned += &pin.map_or(String::new(), |pin| self.pinned(check, pin));
                    continue;
                }
                (Verdict::Left, Some(pin)) => format!("its pin expects {}", expected(pin)),
                (Verdict::Stale, _) => "it passes now: remove its pin".to_owned(),
                (Verdict::Failed | Verdict::Left, _) => String::new(),
            };
            let (id, what) = (&check.id, cell(&check.what));
            let _ =
                writeln!(failed, "| `{id}`: {what} | {} | {} | {words} |", measured(check), bounds(check));
        }
        let headed = |head: &str, rows: String| (!rows.is_empty()).then(|| format!("{head}{rows}"));
        let tables = [
            headed("| **failed** | measured | passes | |\n|---|--:|--:|---|\n", failed),
            headed(
                "| missed | measured | passes | expected | reason | shown by |\n|---|--:|--:|--:|---|---|\n",
                pinned,
            ),
        ];
        let faults = judgement.faults.iter().map(|fault| format!("**{fault}**\n"));
        tables.into_iter().flatten().chain(faults).collect::<Vec<_>>().join("\n")
    }

    /// The row of a pinned miss.
    fn pinned(&self, check: &Check, pin: &Pin) -> String {
        format!(
            "| <a id=\"{}\"></a>`{}`: {} | {} | {} | {} | {} | {} |\n",
            miss_slug(&check.id),
            check.id,
            cell(&check.what),
            measured(check),
            bounds(check),
            expected(pin),
            cell(&pin.reason),
            self.evidence(pin)
        )
    }

    /// Where the reason of a pin is shown: on the page, or by a job, whose numbers are in the data.
    fn evidence(&self, pin: &Pin) -> String {
        let (found, paper) = (&self.done.reproduction, self.done.study.paper());
        let id = &pin.evidence;
        let on_page = found.checks.iter().any(|check| check.id == *id)
            || found.tables.iter().any(|table| table.id == *id)
            || found.figures.iter().any(|figure| figure.name() == id);
        if on_page {
            return format!("[`{id}`](#{})", slug(id));
        }
        let part = self.done.judgement.part_of(id).map_or(String::new(), |part| format!(" --table {part}"));
        format!(
            "`{id}` in [the data](data/{}.json.gz), run by `ackline reproduce {}{part}`",
            paper.stem, paper.name
        )
    }

    /// What has no place on the page.
    fn rest(&self) -> String {
        let (found, placed) = (&self.done.reproduction, &self.placed);
        let mut text = String::new();
        if !placed.findings && !found.findings.is_empty() {
            let _ = write!(text, "\n{}", self.findings());
        }
        for table in found.tables.iter().filter(|table| !placed.tables.contains(&table.id)) {
            let _ = write!(text, "\n{}", self.table(table));
        }
        for figure in found.figures.iter().filter(|figure| !placed.figures.contains(figure.name())) {
            let _ = write!(text, "\n{}", self.image(figure));
        }
        let checks: Vec<&Check> =
            found.checks.iter().filter(|check| !placed.checks.contains(&check.id)).collect();
        if !checks.is_empty() {
            let _ = write!(text, "\n{}", self.checks(&checks));
        }
        let misses = self.misses();
        if !placed.misses && !misses.is_empty() {
            let _ = write!(text, "\n## Misses\n\n{misses}");
        }
        if !placed.notes && !found.notes.is_empty() {
            let _ = write!(text, "\n{}\n", found.notes.join("\n\n"));
        }
        text
    }
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

/// The anchor of something with this id.
fn slug(id: &str) -> String {
    let plain =
        id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' });
    format!("at-{}", plain.collect::<String>())
}

/// The anchor of a miss.
fn miss_slug(check: &str) -> String {
    slug(check).replacen("at-", "miss-", 1)
}
