//! The pages: one with the table and the figures, and one for each contestant.

use super::contestant::PACED;
use super::criteria::{Criterion, Outcome, Variant};
use super::evaluation::{Evaluation, Row};
use super::figures::short;
use super::judgement::Verdict;
use crate::error::RunError;
use crate::folder;
use ackline_plot::PlotOptions;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Columns of one table.
const COLUMNS: usize = 7;

/// Writes `league.md`, and beside it the folder `league` with a page for each contestant, figures
/// and data. Returns the names of the files. If the page in real time is in that folder, `league.md`
/// has a link to it.
///
/// # Errors
/// If a file cannot be written.
pub fn write_pages(evaluation: &Evaluation, out: &Path) -> Result<Vec<PathBuf>, RunError> {
    let parts = out.join("league");
    fs::create_dir_all(&parts).map_err(|error| RunError::file("make the folder", &parts, error))?;
    let mut files = vec![];
    let mut write = |path: PathBuf, content: &[u8]| {
        folder::write(&path, content).map_err(|error| RunError::file("write", &path, error))?;
        files.push(path);
        Ok::<_, RunError>(())
    };
    let live = parts.join("live.md").is_file();
    write(out.join("league.md"), evaluation.page(live).as_bytes())?;
    for row in &evaluation.rows {
        let name = format!("{}.md", row.contestant.stem());
        write(parts.join(name), evaluation.page_of(row).as_bytes())?;
    }
    let wide = format!("{}mm", 50 + 16 * evaluation.criteria().len());
    let wide = PlotOptions { size: wide.parse().ok(), ..PlotOptions::default() };
    write(parts.join("verdicts.svg"), &evaluation.heat_map().to_file(&wide))?;
    for chart in evaluation.charts() {
        write(parts.join(format!("{}.svg", chart.name)), &chart.to_file(&PlotOptions::default()))?;
    }
    write(parts.join("league.json"), (evaluation.to_json() + "\n").as_bytes())?;
    Ok(files)
}

impl Evaluation {
    /// The command that makes all of this.
    fn command(&self) -> String {
        let quick = if self.matrix.judges() { "" } else { " --quick" };
        format!("ackline evaluate{quick}")
    }

    /// `live`: there is a page in real time.
    fn page(&self, live: bool) -> String {
        let criteria = self.criteria();
        let alone = self.rows.len() - self.rows.iter().filter(|row| row.contestant.is_baseline()).count();
        let mut page = format!(
            "# The league: congestion controls side by side\n\n\
             {} congestion controls in the same scenarios with the same seeds: {} cells, {} runs in virtual time. Which one to\n\
             use, and does it do harm? A row is a control, a column a criterion, and the number is that of its worst cell.\n\n\
             ![A heat map: a row for each control, a column for each criterion](league/verdicts.svg)\n\n",
            self.rows.len(),
            self.matrix.cells.len(),
            self.finished.len(),
        );
        page += &self.reading();
        page += &self.standing_out();
        page += "## Table\n\n";
        for columns in criteria.chunks(COLUMNS) {
            page += &self.table(columns);
        }
        page += "## Delay against throughput\n\n\
                 ![95th percentile of the queueing delay against goodput, a dot for each control](league/delay-throughput.svg)\n\n\
                 Up and to the left is better. The line joins the controls that no other one beats in both.\n\n\
                 ## Harm to Reno and CUBIC\n\n\
                 ![Harm to a Reno or CUBIC flow against the own share, a dot for each control](league/harm-share.svg)\n\n\
                 Harm is the part of its rate alone that a flow loses (Ware et al., HotNets 2019), here over what it loses beside a\n\
                 standard control: 1 is as much as Reno or CUBIC take. A control that paces is compared with CUBIC with a pacer\n";
        let _ = write!(
            page,
            "(`{PACED}`), because a pacer alone moves shares: it spares its flow losses that bursts have. What the control\n\
             itself loses beside them is the column *own share*.\n\n"
        );
        page += &self.sanity_section();
        page += &self.broken_section();
        page += "## Criteria\n\n| criterion | number | passes / warns beyond | source |\n|---|---|---|---|\n";
        for (_, criterion) in &criteria {
            let _ = writeln!(
                page,
                "| {} | {}{} | {} | {} |",
                criterion.name,
                criterion.what,
                if criterion.unit.is_empty() { String::new() } else { format!(" ({})", criterion.unit) },
                criterion.bars,
                criterion.source
            );
        }
        let _ = write!(
            page,
            "\n*Standard* is the worse of Reno and CUBIC in the same cell with the same seed.\n\n\
             ## Repeat it\n\n\
             `{command} --out DIR` makes this page, and goes on where it was if it is interrupted. `{command} bbr --cell S-20-40-1`\n\
             runs one cell, and `{command} bbr --scenario S-20-40-1` prints its scenario for `ackline sim`. A control of your own\n\
             takes part by its name: [your program](plug-ins.md) is a complete `ackline`, so `mine evaluate mine` runs it beside\n\
             the {baselines} standard ones; `--overlay FILE` puts the rows of another one's `league.json` into the table.\n\n\
             `ackline evaluate --live` runs some of the cells in real time, each beside its simulation, and lets the controls of the\n\
             machine's own kernel take part (`linux:bbr`){beside}.\n\n\
             Matrix {} `{}`; ackline {}, sources `{}`. [All numbers as JSON](league/league.json).\n",
            self.matrix.name,
            self.matrix.hash(),
            env!("CARGO_PKG_VERSION"),
            self.engine,
            beside = if live { ": [the league in real time](league/live.md)" } else { "" },
            command = self.command(),
            baselines = self.rows.len() - alone,
        );
        page
    }

    /// How to read it, and what it does not show.
    fn reading(&self) -> String {
        let mut text = String::from("## What it shows, and what not\n\n");
        if !self.matrix.judges() {
            text += "**This is the quick matrix: short cells with two seeds, and no verdicts.** Two runs give no interval, so a colour, and a\n\
                     sign in brackets, say only on which side of a bar the mean lies. The whole matrix has five seeds in most cells and\n\
                     gives verdicts.\n\n";
        } else {
            text += "A cell passes (+) if its whole 95 % interval over seeds is inside the bar, and fails (x) if its whole 99 % interval is\n\
                     beyond the second one. Between them it warns (!), and an interval across a bar is undecided (~).\n\n";
        }
        text += "- The signs are + inside the bar, ! beyond it, x beyond the second one, ~ undecided, . not asked. Behind a number with\n\
                 \x20 several cells stands how many are inside, between and beyond.\n\
                 - There is no total score. A control is not judged by what it is not designed for: one for data centres (`dctcp`) not by\n\
                 \x20 its harm to Reno, a scavenger (`ledbat`) not by the time of its short downloads.\n\
                 - A bar is mostly what the worse of Reno and CUBIC does in the same cell (RFC 9743 asks for no more), so a pass says *not\n\
                 \x20 worse than today*, not *good*.\n\
                 - A number is that of the worst cell. The page of a control has all of them, with the command for each.\n\
                 - Everything is simulated, with the same stack on both sides. Real networks have other traffic, other clocks and\n\
                 \x20 offload; [beside Linux](beside-linux.md) and the live parts of [papers](papers/README.md) show how far simulation and\n\
                 \x20 real time agree. The controls are ackline's, from papers and RFCs, and not the code of Linux.\n\
                 - What papers in this repository propose is shown unchanged, including where it does worse.\n\n";
        text
    }

    /// Controls inside all bars, and for the others where they exceed the second one.
    fn standing_out(&self) -> String {
        let criteria = self.criteria();
        let named = |row: &Row, verdict: Verdict| -> Vec<&'static str> {
            let those = criteria.iter().filter(|(place, _)| row.outcomes[*place].verdict() == Some(verdict));
            those.map(|(_, criterion)| criterion.name).collect()
        };
        let spec = |row: &Row| format!("`{}`", row.contestant.spec);
        let is_inside = |row: &&Row| {
            let inside = |(place, _): &(usize, _)| {
                matches!(row.outcomes[*place].verdict(), None | Some(Verdict::Pass))
            };
            criteria.iter().all(inside)
        };
        let inside: Vec<String> = self.rows.iter().filter(is_inside).map(spec).collect();
        let mut text = String::from("## What stands out\n\n");
        if !inside.is_empty() {
            let _ = write!(text, "Inside every bar that they are asked: {}.\n\n", inside.join(", "));
        }
        text += "| control | beyond the second bar | beyond the first |\n|---|---|---|\n";
        for row in self.rows.iter().filter(|row| !is_inside(row)) {
            let [far, near] = [Verdict::Fail, Verdict::Warn].map(|verdict| named(row, verdict).join(", "));
            let _ = writeln!(text, "| {} | {far} | {near} |", spec(row));
        }
        text.push('\n');
        text
    }

    fn table(&self, columns: &[(usize, &'static Criterion)]) -> String {
        let mut text = String::from("| control |");
        for (_, criterion) in columns {
            let unit =
                if criterion.unit.is_empty() { String::new() } else { format!(" [{}]", criterion.unit) };
            let _ = write!(text, " {}{unit} |", criterion.name);
        }
        text += "\n|---|";
        text += &"---|".repeat(columns.len());
        text.push('\n');
        for row in &self.rows {
            let own = format!("league/{}.md", row.contestant.stem());
            let name = if row.contestant.is_reported { " (reported)" } else { "" };
            let _ = write!(text, "| [`{}`]({own}){name} |", row.contestant.spec);
            for (place, criterion) in columns {
                let cell = self.summary(&row.outcomes[*place]);
                if row.outcomes[*place].variants.is_empty() {
                    let _ = write!(text, " {cell} |");
                } else {
                    let _ = write!(text, " [{cell}]({own}#{}) |", anchor(criterion.name));
                }
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    /// A criterion of one contestant in a few letters.
    pub(super) fn summary(&self, outcome: &Outcome) -> String {
        let Some(worst) = outcome.worst() else { return ".".to_owned() };
        let number = worst.interval.map_or_else(|| "did not end".to_owned(), |interval| short(interval.mean));
        let sign = self.sign(worst.verdict);
        let count = |verdict| outcome.count(verdict);
        let counts = match outcome.variants.len() {
            1 => String::new(),
            _ if worst.verdict.is_none() => String::new(),
            _ => format!(
                " {}/{}/{}",
                count(Verdict::Pass),
                count(Verdict::Warn) + count(Verdict::Undecided),
                count(Verdict::Fail)
            ),
        };
        format!("{sign}{number}{counts}")
    }

    fn sign(&self, verdict: Option<Verdict>) -> String {
        match verdict {
            Some(verdict) if self.matrix.judges() => format!("{} ", verdict.sign()),
            Some(verdict) => format!("({}) ", verdict.sign()),
            None => String::new(),
        }
    }

    fn sanity_section(&self) -> String {
        if self.sanity.is_empty() {
            return String::new();
        }
        let held = self.sanity.iter().filter(|row| row.holds()).count();
        let mut text = format!(
            "## What is known\n\n\
             Closed forms, and what others measured, of controls that are known well. {held} of {} hold. If Reno or CUBIC missed\n\
             theirs, the simulation would be wrong and the table void.\n\n\
             | control | cell | number | expected | measured | | source |\n|---|---|---|---|---|---|---|\n",
            self.sanity.len()
        );
        for row in &self.sanity {
            let sign = match (row.holds(), row.voids()) {
                (true, _) => "+",
                (false, true) => "**void**",
                (false, false) => "x",
            };
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} to {} | {} | {sign} | {} |",
                row.control,
                row.cell,
                row.what,
                short(row.low),
                short(row.high),
                short(row.measured),
                row.source
            );
        }
        text.push('\n');
        text
    }

    fn broken_section(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            for (cell, seed, why) in &row.broken {
                let _ = writeln!(text, "- `{}` in {cell}, seed {seed}: {why}", row.contestant.spec);
            }
        }
        if text.is_empty() { text } else { format!("## Runs that did not end as they should\n\n{text}\n") }
    }

    /// The page of one contestant.
    fn page_of(&self, row: &Row) -> String {
        let contestant = &row.contestant;
        let spec = &contestant.spec;
        let mut page = format!("# `{spec}` in the league\n\n");
        if !contestant.source.is_empty() {
            let _ = write!(page, "Source: {}. ", contestant.source);
        }
        let _ = write!(
            page,
            "Meant for: {}.{}{}\n\n[The whole table](../league.md) says what criteria, bars and signs mean.\n\n",
            match contestant.scope.as_str() {
                "scavenger" => "traffic that yields to other traffic",
                "controlled" => "networks of one operator",
                _ => "the Internet",
            },
            if contestant.ecn.is_empty() {
                String::new()
            } else {
                format!(" Designed for ECN: {}.", contestant.ecn)
            },
            if contestant.paces { " It paces." } else { "" }
        );
        let mut criteria: Vec<(&Criterion, &Outcome)> = self
            .criteria()
            .into_iter()
            .map(|(place, criterion)| (criterion, &row.outcomes[place]))
            .filter(|(_, outcome)| !outcome.variants.is_empty())
            .collect();
        // Worst first; the sort keeps the order of equals.
        criteria.sort_by_key(|(_, outcome)| std::cmp::Reverse(outcome.verdict()));
        for (criterion, outcome) in criteria {
            page += &self.criterion_of(criterion, outcome, spec);
        }
        page
    }

    fn criterion_of(&self, criterion: &Criterion, outcome: &Outcome, spec: &str) -> String {
        let unit = if criterion.unit.is_empty() { String::new() } else { format!(" [{}]", criterion.unit) };
        let mut text = format!(
            "## {}\n\n{}{}. Bars: {}.\n\n| cell | | mean{unit} | 95 % interval | seeds | command |\n|---|---|---|---|---|---|\n",
            criterion.name,
            criterion.what.get(..1).map(str::to_uppercase).unwrap_or_default(),
            criterion.what.get(1..).unwrap_or_default(),
            criterion.bars
        );
        let mut variants: Vec<&Variant> = outcome.variants.iter().collect();
        variants.sort_by_key(|variant| std::cmp::Reverse(variant.verdict));
        for variant in variants {
            let interval = variant.interval.map_or_else(String::new, |interval| match interval.n {
                1 | 2 => String::new(),
                _ if interval.is_deterministic() => "deterministic".to_owned(),
                _ => format!("{} to {}", short(interval.ci95.0), short(interval.ci95.1)),
            });
            let mean =
                variant.interval.map_or_else(|| "did not end".to_owned(), |interval| short(interval.mean));
            let dots: Vec<String> = variant.values.iter().map(|value| short(*value)).collect();
            let quick = if self.matrix.judges() { "" } else { " --quick" };
            let _ = writeln!(
                text,
                "| {} | {} | {mean} | {interval} | {} | `ackline evaluate {spec}{quick} --cell {}` |",
                variant.cell,
                self.sign(variant.verdict).trim(),
                dots.join(", "),
                variant.cell
            );
        }
        text.push('\n');
        text
    }
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}
