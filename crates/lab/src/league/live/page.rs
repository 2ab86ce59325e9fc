//! The page of a live evaluation.

use super::super::cell::Cell;
use super::super::figures::short;
use super::agreement::Agreement;
use super::columns::{columns, headline, story};
use super::evaluation::{Finding, LiveEvaluation, who};
use super::sender::Sender;
use crate::error::RunError;
use crate::folder;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes `league/live.md` and its data, `league/live.json`. Returns the names of the files.
///
/// # Errors
/// If a file cannot be written.
pub fn write_live_page(evaluation: &LiveEvaluation, out: &Path) -> Result<Vec<PathBuf>, RunError> {
    let folder = out.join("league");
    fs::create_dir_all(&folder).map_err(|error| RunError::file("make the folder", &folder, error))?;
    let contents = [("live.md", evaluation.page()), ("live.json", evaluation.to_json() + "\n")];
    let mut files = vec![];
    for (name, content) in contents {
        let path = folder.join(name);
        folder::write(&path, content.as_bytes()).map_err(|error| RunError::file("write", &path, error))?;
        files.push(path);
    }
    Ok(files)
}

impl LiveEvaluation {
    fn command(&self) -> &'static str {
        if self.is_quick() { "ackline evaluate --live --quick" } else { "ackline evaluate --live" }
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# The league in real time, beside Linux's own controls\n\n\
             {} senders in {} cells of [the league](../league.md) by the real clock: ackline's stack with its controls, and the TCP\n\
             of Linux {} with its own (`linux:`). Everybody else in a cell, receivers and the flows beside, is Linux. Each number\n\
             stands beside that of the same cell simulated, with the same seed: live / simulated.\n\n",
            self.senders.len(),
            self.cells().count(),
            self.machine.kernel,
        );
        page += &self.overview();
        page += &self.reading();
        page += &self.differences();
        page += &self.known_section();
        page += "## Cells\n\nQueueing delays are those of the bottleneck: q50 the median, q95 the 95th percentile. Losses are those of congestion.\n\n";
        for cell in self.cells() {
            page += &self.cell_section(cell);
        }
        page += &self.void_section();
        page + &self.ending()
    }

    /// One number of each cell.
    fn overview(&self) -> String {
        let mut text = String::from("| cell | number |");
        for sender in &self.senders {
            let _ = write!(text, " `{}` |", sender.name);
        }
        let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(self.senders.len()));
        for cell in self.cells() {
            let column = headline(cell);
            let _ = write!(text, "| [{}](#{}) | {} |", cell.id, cell.id.to_lowercase(), column.title);
            for sender in &self.senders {
                let numbers = column.text(self.both(sender, cell, column.measure));
                let text_of = match self.finding(sender, cell) {
                    Finding::Void => "void".to_owned(),
                    Finding::Differs(_) => format!("{numbers} !"),
                    Finding::Agrees | Finding::Alone => numbers,
                };
                let _ = write!(text, " {text_of} |");
            }
            text.push('\n');
        }
        text + "\n! is a cell that differs from its simulation by the rule below, in this number or in another.\n\n"
    }

    /// How to read it, and what it does not show.
    fn reading(&self) -> String {
        let findings = self.findings();
        let count = |is: fn(&Finding) -> bool| findings.iter().filter(|(.., finding)| is(finding)).count();
        let agree = count(|finding| *finding == Finding::Agrees);
        let compared = agree + count(|finding| matches!(finding, Finding::Differs(_)));
        let (runs, void) = self.counts();
        let mut text = String::from("## What it shows, and what not\n\n");
        if self.is_quick() {
            text += "**This is the quick form: runs of 15 or 20 s, mostly one of each.** The first seconds, in which a flow looks for its rate, weigh\n\
                     more than in a minute. `ackline evaluate --live` has more cells, of a minute and with three seeds.\n\n";
        }
        let _ = write!(
            text,
            "- In {agree} of {compared} places of the table live and simulated agree. The rule: the fill within 10 %, the own share within 0.1\n\
             \x20 of the link, the median queueing delay within 2 ms and 15 %, each as a mean over the seeds.\n\
             - {void} of {runs} runs are void. A run is void if one packet of a hundred reached its host more than 0.5 ms late, or if the machine\n\
             \x20 did not keep up in another way: its cell is shown as void, and not compared.{}\n\
             - For `linux:` the simulation is ackline's control of the same name on ackline's stack. A difference there is one of stacks or of\n\
             \x20 controls; for the others, one of clocks, or between receivers of Linux and of ackline.\n",
            self.lateness()
        );
        if self.senders.iter().any(|sender| sender.name == "linux:bbr") {
            text += "- Linux's `bbr` is version 1, and ackline's is version 3 (draft-ietf-ccwg-bbr). `linux:bbr` beside its simulation is version 1 beside\n\
                     \x20 version 3, and differs where the versions do: in losses, queues and what it takes from others.\n";
        }
        text += "- There are no verdicts on controls here. Reno and CUBIC in the same cell say what is usual.\n\
                 - The network is that of the simulator by the real clock, up to 50 Mbit/s, and hosts are network namespaces of one machine without\n\
                 \x20 segmentation offload. Nothing here is a measurement of the Internet, of fast paths, or of what a control costs.\n\n";
        text
    }

    /// How late packets were in the runs that count.
    fn lateness(&self) -> String {
        let valid = self.live.values().filter(|run| !run.is_void());
        let worst = valid.map(|run| run.late_p99_us).max_by(f64::total_cmp);
        worst.map_or_else(String::new, |late| {
            format!(" In the worst run that counts, one of a hundred was {late:.0} us late.")
        })
    }

    fn differences(&self) -> String {
        let mut rows = String::new();
        for cell in self.cells() {
            for sender in &self.senders {
                for Agreement { live, twin, least, most, agrees, measure } in self.agreements(sender, cell) {
                    if agrees {
                        continue;
                    }
                    let unit = if measure == "q50" { " [ms]" } else { "" };
                    let [live, twin, least, most] = [live, twin, least, most].map(short);
                    let _ = writeln!(
                        rows,
                        "| [{}](#{}) | `{}` | {measure}{unit} | {live} | {twin} | {least} to {most} |",
                        cell.id,
                        cell.id.to_lowercase(),
                        sender.name
                    );
                }
            }
        }
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "## Where live and simulated differ\n\n| cell | sender | number | live | simulated | agrees |\n|---|---|---|---|---|---|\n{rows}\n"
        )
    }

    fn known_section(&self) -> String {
        let known = self.known();
        if known.is_empty() {
            return String::new();
        }
        let held = known.iter().filter(|row| row.holds()).count();
        let mut text = format!(
            "## What is known\n\nWhat others found, against the live runs. {held} of {} hold.\n\n\
             | sender | cell | number | expected | live | | source |\n|---|---|---|---|---|---|---|\n",
            known.len()
        );
        for row in known {
            let [low, high, live] = [row.low, row.high, row.measured].map(short);
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {low} to {high} | {live} | {} | {} |",
                row.control,
                row.cell,
                row.what,
                if row.holds() { "+" } else { "x" },
                row.source
            );
        }
        text + "\n"
    }

    fn cell_section(&self, cell: &Cell) -> String {
        let columns = columns(cell);
        let mut text = format!("### {}\n\n{}\n\n| sender |", cell.id, story(cell));
        for column in &columns {
            let _ = write!(text, " {} |", column.title);
        }
        let _ = writeln!(text, " rule |\n|---|{}---|", "---|".repeat(columns.len()));
        for sender in &self.senders {
            let _ = write!(text, "| `{}` |", sender.name);
            for column in &columns {
                let _ = write!(text, " {} |", column.text(self.both(sender, cell, column.measure)));
            }
            let _ = writeln!(text, " {} |", self.word(sender, cell));
        }
        text + "\n"
    }

    /// What the rule says of a cell, in a few words.
    pub(super) fn word(&self, sender: &Sender, cell: &Cell) -> String {
        match self.finding(sender, cell) {
            Finding::Void => "void".to_owned(),
            Finding::Alone => "no twin".to_owned(),
            Finding::Agrees => "agrees".to_owned(),
            Finding::Differs(what) => format!("differs: {}", what.join(", ")),
        }
    }

    fn void_section(&self) -> String {
        let mut text = String::new();
        for (cell, sender, seed, why) in self.broken() {
            let _ = writeln!(text, "- {} in {cell}, seed {seed}: {why}", who(sender));
        }
        for (cell, sender, seed, run) in self.void() {
            let _ = writeln!(text, "- {} in {cell}, seed {seed}: void, {}", who(sender), run.void.join("; "));
        }
        if text.is_empty() { text } else { format!("## Runs that do not count\n\n{text}\n") }
    }

    fn ending(&self) -> String {
        let machine = &self.machine;
        let priority = machine.priority.as_ref();
        let priority = priority
            .map_or_else(String::new, |priority| format!(", its thread with the priority {priority}"));
        format!(
            "## Repeat it\n\n\
             `{command} --out DIR` makes this page on your machine, and goes on where it was if it is interrupted; void runs are run\n\
             again. It needs TUN devices, root or user namespaces, and a machine with nothing else to do.\n\
             `{command} bbr linux:bbr --cell S-20-40-4` runs two senders in one cell, and\n\
             `{command} bbr --scenario S-20-40-4` prints its scenario for `ackline emulate`. A control of your own takes part by its name.\n\n\
             Linux {kernel}; segmentation offload {offload}; the emulator waits by {pacing}{priority}. Matrix {matrix} `{hash}`; ackline\n\
             {version}, sources `{engine}`. [All numbers as JSON](live.json).\n",
            command = self.command(),
            kernel = machine.kernel,
            offload = machine.offload,
            pacing = machine.pacing,
            matrix = self.matrix.name,
            hash = self.matrix.hash(),
            version = env!("CARGO_PKG_VERSION"),
            engine = self.engine,
        )
    }
}
