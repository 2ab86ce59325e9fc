//! `ackline evaluate --live`: the league by the real clock.

use super::{Folders, ended, folders, options, some, the_cell};
use crate::args::emulate::EmulatePacing;
use crate::args::evaluate::EvaluateArgs;
use crate::failure::Failure;
use crate::network::program;
use crate::output::{print, say};
use ackline::Registry;
use ackline_emulate::Offload;
use ackline_emulate::stage::RealTime;
use ackline_lab::RunError;
use ackline_lab::league::{
    Evaluation, LeagueResult, LiveEvaluation, LiveOptions, LiveResult, Machine, Matrix, Sender,
    evaluate_live, live_matrix, unavailable, write_live_page, write_pages,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Cells of M1 that have no place in real time, and why.
const NOT_LIVE: [(&str, &str); 3] = [
    ("more than 50 Mbit/s (S-100, S-1000, L-fn, H-long, F-100)", "on few cores packets would be late"),
    (
        "many hosts (E-8, E-32, H-many, H-few, U-4, U-16, W, F)",
        "each is a namespace, and they share few cores",
    ),
    ("all others", "simulated alone, so that a control takes half an hour"),
];

pub(super) fn run(args: &EvaluateArgs, registry: &Registry) -> Result<(), Failure> {
    let matrix = some(live_matrix(args.quick), args)?;
    if args.list {
        return print(&list(&matrix, &machine(args)?));
    }
    if let Some(id) = &args.scenario {
        let name = args.names.first().map_or("cubic", String::as_str);
        let sender = Sender::named(name, &machine(args)?, registry).map_err(Failure::usage)?;
        return print(&sender.text(&the_cell(&matrix, id)?));
    }
    let work = folders(args)?;
    let evaluation = match &args.from {
        Some(file) => LiveEvaluation::of_result(matrix.clone(), &LiveResult::read(file, &matrix)?),
        None => by_the_clock(args, &work, matrix, &machine(args)?, registry)?,
    };
    let mut files = vec![];
    if let Some(pages) = &work.pages {
        files = write_live_page(&evaluation, pages)?;
        if args.refresh {
            files.extend(linked(pages)?);
        }
    }
    // What is void is run again by the same command.
    let (_, void) = evaluation.counts();
    if void == 0 {
        work.forget(args)?;
    }
    if args.output.json {
        print(&(evaluation.to_json() + "\n"))?;
    } else if !args.output.quiet {
        let names: String = files.iter().map(|file| file.display().to_string() + "\n").collect();
        print(&format!("{}\n{names}", evaluation.to_text()))?;
    }
    ended(&evaluation.failures())
}

fn by_the_clock(
    args: &EvaluateArgs,
    work: &Folders,
    mut matrix: Matrix,
    machine: &Machine,
    registry: &Registry,
) -> Result<LiveEvaluation, Failure> {
    let senders = Sender::all(&args.names, machine, registry).map_err(Failure::usage)?;
    let quiet = args.output.quiet;
    let tell: fn(&str) = if quiet { |_| {} } else { say };
    matrix.cells.retain(|cell| {
        let why = unavailable(cell, machine);
        if let Some(why) = &why {
            tell(&format!("left out: {why}"));
        }
        why.is_none()
    });
    if matrix.cells.is_empty() {
        return Err(Failure::usage("--cell: this kernel has no peer for these cells (--live --list)"));
    }
    // While the process has one thread.
    program::prepare()?;
    RealTime::probe().map_err(RunError::from)?;
    let stages = RealTime { pacing: args.pacing.into(), offload: Offload::Off, priority: args.priority };
    let options = LiveOptions { runs: &options(args, work), stages: &stages, machine, tell };
    Ok(evaluate_live(matrix, senders, registry, &options)?)
}

/// Writes the pages of the league in virtual time anew, which have a link to the page in real time.
fn linked(pages: &Path) -> Result<Vec<PathBuf>, Failure> {
    let data = pages.join("league/league.json");
    let read = |matrix: Matrix| {
        Some(Evaluation::of_result(matrix.clone(), &LeagueResult::read(&data, &matrix).ok()?))
    };
    let Some(evaluation) = read(Matrix::whole()).or_else(|| read(Matrix::quick())) else {
        say(&format!("note: {} is of another matrix; its pages stay as they are", data.display()));
        return Ok(vec![]);
    };
    let summary = pages.join("SUMMARY.md");
    if !fs::read_to_string(&summary).unwrap_or_default().contains("(league/live.md)") {
        say(&format!("note: {} has no link to league/live.md", summary.display()));
    }
    Ok(write_pages(&evaluation, pages)?)
}

/// The kernel, and how the emulator works.
fn machine(args: &EvaluateArgs) -> Result<Machine, Failure> {
    let read = |path: &str| {
        let text = fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        Ok::<_, Failure>(text.trim().to_owned())
    };
    let controls = read("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    let pacing = match args.pacing {
        EmulatePacing::Timer => "timer",
        EmulatePacing::Spin => "spin",
    };
    Ok(Machine {
        kernel: read("/proc/sys/kernel/osrelease")?,
        controls: controls.split_whitespace().map(str::to_owned).collect(),
        offload: "off".to_owned(),
        pacing: pacing.to_owned(),
        priority: args.priority.map(|priority| priority.to_string()),
    })
}

fn list(matrix: &Matrix, machine: &Machine) -> String {
    let mut text = format!("{} {}\n", matrix.name, matrix.hash());
    for cell in &matrix.cells {
        let why = unavailable(cell, machine).map_or(String::new(), |why| format!(" (left out: {why})"));
        text += &format!("{:14} {:3} seeds{why}\n", cell.id, cell.seeds);
    }
    let controls: Vec<String> = machine.controls.iter().map(|control| format!("linux:{control}")).collect();
    text += &format!(
        "\nThe kernel's controls, Linux {}: {}\n\nNot in real time:\n",
        machine.kernel,
        controls.join(" ")
    );
    for (cells, why) in NOT_LIVE {
        text += &format!("  {cells}: {why}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_the_league_are_linked_to_the_one_in_real_time_once_it_is_there() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let folder = tempfile::tempdir().expect("a folder");
        let pages = folder.path();
        fs::create_dir(pages.join("league")).expect("ours");
        fs::copy(docs.join("league/league.json"), pages.join("league/league.json")).expect("data");
        let page = || {
            assert!(linked(pages).expect("pages").len() > 10);
            fs::read_to_string(pages.join("league.md")).expect("a page")
        };
        assert!(!page().contains("](league/live.md)"));
        fs::write(pages.join("league/live.md"), "").expect("ours");
        assert!(page().contains("[the league in real time](league/live.md)"));

        fs::write(pages.join("league/league.json"), "{}").expect("ours");
        assert!(linked(pages).expect("a note").is_empty());
    }
}
