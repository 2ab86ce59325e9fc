//! The tables of the page.

use crate::design::{Axis, Cell, Sender, cells};
use crate::machine;
use crate::results::{Metric, Results, Summary};
use crate::section::Section;
use crate::text::{Table, median, number, with_range};
use crate::{Outcome, reasons};
use std::fmt::Write as _;

/// Each sender of ackline's with the kernel's of the same algorithm.
const PAIRS: [(Sender, Sender); 2] =
    [(Sender::Cubic, Sender::KernelCubic), (Sender::Reno, Sender::KernelReno)];
/// Ranges of fewer runs tell nothing about a difference.
const RUNS: usize = 3;
/// Part of the kernel's goodput that ackline's CUBIC is to reach; also how large a difference is
/// looked at.
const REACHED: f64 = 0.95;
/// Part of what the kernel's BBR reaches that ackline's is to reach.
const REACHED_BY_BBR: f64 = 0.9;

pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let mut sections = vec![
        Section { name: "setting", title: "Setting", text: setting(results) },
        Section { name: "target", title: "CUBIC beside CUBIC", text: cubic(results) },
        Section { name: "bbr", title: "BBR beside BBR", text: bbr(results) },
    ];
    sections.extend(Axis::ALL.map(|axis| Section {
        name: axis.name(),
        title: axis.title(),
        text: of_axis(results, axis),
    }));
    sections.push(Section { name: "differences", title: "Differences", text: differences(results) });
    sections
}

fn setting(results: &Results) -> String {
    let setting = &results.setting;
    let place =
        machine::place(setting.processors, &setting.processor, &setting.kernel, setting.commit.as_deref());
    let length = if (setting.longer - 1.0).abs() < f64::EPSILON {
        String::new()
    } else {
        format!(" of {} times the usual length", setting.longer)
    };
    let late = results.runs.iter().filter_map(|run| run.sample.late_us).fold(0.0, f64::max);
    let invalid = results.runs.iter().filter(|run| !run.sample.invalid.is_empty()).count();
    let valid = match invalid {
        0 => "all valid".to_owned(),
        _ => format!("{invalid} of them INVALID, which do not count if others of their cell are valid"),
    };
    format!(
        "{} runs{length}, {valid}; packets reached their host at most {late:.0} us late at p99 of a run. {place}.\n",
        results.runs.len()
    )
}

/// Cells that there are results for.
fn measured(results: &Results, axis: Axis) -> Vec<Cell> {
    let all = cells().into_iter().filter(|cell| cell.axis == axis);
    all.filter(|cell| results.runs.iter().any(|run| run.cell == cell.to_string())).collect()
}

/// ackline's CUBIC beside the kernel's in every cell.
fn cubic(results: &Results) -> String {
    let header = ["cell", "unit", "kernel cubic", "cubic", "of the kernel's", "at least 0.95", "simulated"];
    let mut table = Table::new(&header);
    for (cell, metric) in main_metrics(results) {
        let name = cell.to_string();
        if let Some([kernel, own, part, reached]) =
            beside(results, &name, (Sender::Cubic, Sender::KernelCubic), metric, REACHED)
        {
            let simulated = median(results.summary(&name, Sender::Simulated, metric));
            table.row([cell.title(), unit(metric).to_owned(), kernel, own, part, reached, simulated]);
        }
    }
    table.render()
}

/// ackline's BBR beside the kernel's, in the cells in which that does better than ackline's CUBIC.
fn bbr(results: &Results) -> String {
    let header = ["cell", "unit", "cubic", "kernel bbr", "bbr", "of the kernel's", "at least 0.9"];
    let mut table = Table::new(&header);
    for (cell, metric) in main_metrics(results) {
        let name = cell.to_string();
        let of = |sender| results.summary(&name, sender, metric);
        let (Some(kernel), Some(cubic)) = (of(Sender::KernelBbr), of(Sender::Cubic)) else { continue };
        if share(cubic, kernel, metric) >= 1.0 {
            continue;
        }
        if let Some([kernel, own, part, reached]) =
            beside(results, &name, (Sender::Bbr, Sender::KernelBbr), metric, REACHED_BY_BBR)
        {
            let cubic = shown(results, &name, Sender::Cubic, metric);
            table.row([cell.title(), unit(metric).to_owned(), cubic, kernel, own, part, reached]);
        }
    }
    table.render()
}

/// Every cell that there are results for, with what says most about it.
fn main_metrics(results: &Results) -> impl Iterator<Item = (Cell, Metric)> {
    let of = |axis: Axis| if axis.is_of_transfers() { Metric::Time } else { Metric::Goodput };
    Axis::ALL
        .into_iter()
        .flat_map(move |axis| measured(results, axis).into_iter().map(move |cell| (cell, of(axis))))
}

const fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Time => "s",
        _ => "Mbit/s",
    }
}

/// What part of the other's speed one has: of goodputs, or of times the other way round.
fn share(one: Summary, other: Summary, metric: Metric) -> f64 {
    match metric {
        Metric::Time => other.median / one.median,
        _ => one.median / other.median,
    }
}

/// Of a sender of ackline's and the kernel's of the same algorithm: the kernel's result, the own one,
/// what part of it that is, and whether it is as large as wanted.
fn beside(
    results: &Results,
    cell: &str,
    (own, kernel): (Sender, Sender),
    metric: Metric,
    wanted: f64,
) -> Option<[String; 4]> {
    let of = |sender| results.summary(cell, sender, metric);
    let part = share(of(own)?, of(kernel)?, metric);
    let reached = match [kernel, own].map(|sender| results.is_valid(cell, sender)) {
        [true, true] if part >= wanted => "yes",
        [true, true] => "**no**",
        _ => "not known",
    };
    let [kernel, own] = [kernel, own].map(|sender| shown(results, cell, sender, metric));
    Some([kernel, own, format!("{part:.3}"), reached.to_owned()])
}

/// Median, and range if there were several runs; marked if none is valid.
fn shown(results: &Results, cell: &str, sender: Sender, metric: Metric) -> String {
    let summary = results.summary(cell, sender, metric);
    let text = if summary.is_some_and(|summary| summary.min < summary.max) {
        with_range(summary)
    } else {
        median(summary)
    };
    if results.is_valid(cell, sender) { text } else { format!("{text} INVALID") }
}

fn of_axis(results: &Results, axis: Axis) -> String {
    let cells = measured(results, axis);
    let mut text = String::new();
    if cells.is_empty() {
        return text;
    }
    for metric in metrics(axis) {
        let mut header = vec![metric.name()];
        header.extend(Sender::LIVE.map(Sender::name));
        let mut table = Table::new(&header);
        for cell in &cells {
            let name = cell.to_string();
            let mut row = vec![cell.name.to_owned()];
            row.extend(Sender::LIVE.map(|sender| shown(results, &name, sender, *metric)));
            table.row(row);
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", table.render());
    }
    let mut commands = String::new();
    for cell in &cells {
        let set: Vec<String> = cell.changes().iter().map(|set| format!("--set '{set}'")).collect();
        let set = if set.is_empty() { "(as the file has it)".to_owned() } else { set.join(" ") };
        let _ = writeln!(commands, "{set}");
    }
    let _ = write!(
        text,
        "<details>\n<summary>The paths</summary>\n\nWhat `ackline emulate benches/beside_linux/path.toml` is given:\n\n\
         ```text\n{commands}```\n\n</details>\n"
    );
    text
}

/// What is measured of the cells of an axis.
const fn metrics(axis: Axis) -> &'static [Metric] {
    if axis.is_of_transfers() { &Metric::TRANSFERS } else { &Metric::BULK }
}

/// True if no value of one is among those of the other.
fn is_apart(one: Summary, other: Summary) -> bool {
    one.min > other.max || other.min > one.max
}

/// A difference beyond the spread of both.
fn differ(own: Summary, kernel: Summary, metric: Metric) -> bool {
    let size = (own.median - kernel.median).abs();
    let share = size / own.median.abs().max(kernel.median.abs()).max(f64::MIN_POSITIVE);
    is_apart(own, kernel) && share > 1.0 - REACHED && size > metric.least()
}

fn differences(results: &Results) -> String {
    let mut table = Table::new(&["cell", "what", "kernel", "ackline", "why"]);
    let mut reasons: Vec<&str> = vec![];
    let mut compared = false;
    for axis in Axis::ALL {
        for cell in measured(results, axis) {
            let name = cell.to_string();
            for (metric, (own, kernel)) in
                metrics(axis).iter().flat_map(|metric| PAIRS.map(|pair| (*metric, pair)))
            {
                let of = |sender| results.summary(&name, sender, metric);
                let (Some(ours), Some(theirs)) = (of(own), of(kernel)) else { continue };
                let runs = [own, kernel].map(|sender| results.valid(&name, sender));
                compared |= runs.iter().all(|runs| *runs >= RUNS);
                if runs.iter().any(|runs| *runs < RUNS) || !differ(ours, theirs, metric) {
                    continue;
                }
                let why = match reasons::of(&name, own, metric) {
                    Some(reason) => {
                        let known = reasons.iter().position(|known| *known == reason);
                        (known.unwrap_or_else(|| {
                            reasons.push(reason);
                            reasons.len() - 1
                        }) + 1)
                            .to_string()
                    }
                    None => "**open**".to_owned(),
                };
                let (theirs, ours) = (number(theirs.median), number(ours.median));
                let cell = format!("{}, {}", cell.title(), own.name());
                table.row([cell, metric.name().to_owned(), theirs, ours, why]);
            }
        }
    }
    let list: String =
        reasons.iter().enumerate().map(|(place, reason)| format!("{}. {reason}\n", place + 1)).collect();
    if !compared {
        return "No cell has three valid runs of both: too few to tell.\n".to_owned();
    }
    if list.is_empty() { table.render() } else { format!("{}\n{list}", table.render()) }
}

/// Fails if a result cannot be right on any machine that keeps up.
pub(crate) fn sense(results: &Results) -> Outcome<()> {
    for run in &results.runs {
        let (cell, sender) = (&run.cell, run.sender.name());
        if run.sample.goodput <= 0.0 {
            return Err(format!("{cell}, {sender}: nothing arrived").into());
        }
    }
    for cell in cells() {
        let name = cell.to_string();
        let of = |sender| {
            let goodput = results.summary(&name, sender, Metric::Goodput);
            goodput.filter(|_| results.is_valid(&name, sender)).map(|summary| summary.median)
        };
        if let (Some(own), Some(kernel)) = (of(Sender::Cubic), of(Sender::KernelCubic))
            && own < 0.5 * kernel
        {
            return Err(format!("{name}: cubic reaches {own:.1} Mbit/s, the kernel's {kernel:.1}").into());
        }
    }
    Ok(())
}
