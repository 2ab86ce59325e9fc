//! `ackline emulate FILE`: a scenario in real time.

use crate::args::emulate::EmulateArgs;
use crate::commands::plot::overlaid;
use crate::commands::sim::report::{self, Files};
use crate::commands::sim::{read, warn_of_wrong_reads};
use crate::failure::Failure;
use crate::network::program;
use crate::output::{json, print, say};
use ackline::Registry;
use ackline_emulate::stage::RealTime;
use ackline_lab::stage::{Stages, Virtual};
use ackline_lab::unfinished::Unfinished;
use ackline_lab::{Comparison, Report, RunOptions, RunResult, Scenario, run_on};
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;

pub(super) fn run(args: &EmulateArgs, file: &Path, registry: &Registry) -> Result<(), Failure> {
    let own = &args.scenario;
    let scenario = read(file, &own.set, args.seed, registry)?;
    args.json.as_deref().map(writable).transpose()?;
    // While the process has one thread.
    program::prepare()?;
    let options = RunOptions {
        out: own.out.clone(),
        progress: !args.quiet,
        points: own.points,
        plots: own.out.is_some(),
        plot: args.figures.options(),
        ..RunOptions::default()
    };
    let real_time = RealTime::from(args);
    if own.both {
        return both(args, &scenario, &real_time, &options);
    }
    let done = run_on(&real_time, &scenario, &options)?;
    warn_of_wrong_reads(&done);
    if let Some(file) = &args.json {
        write(file, &json(&done.results))?;
    }
    if !args.quiet {
        let files = Files { plots: options.plots, plot_runs: false, pcap: false };
        let text = report::text(&scenario, &done, own.out.as_deref(), files);
        print(&text)?;
    }
    warn_of_late_runs(&done);
    Ok(())
}

/// `--json` of both.
#[derive(Serialize)]
struct Both<'a> {
    simulated: &'a [RunResult],
    real_time: &'a [RunResult],
    comparison: &'a Comparison,
}

/// The same points simulated and in real time, and where they differ.
fn both(
    args: &EmulateArgs,
    scenario: &Scenario,
    real_time: &RealTime,
    options: &RunOptions,
) -> Result<(), Failure> {
    let folder = |name: &str| options.out.as_ref().map(|out| out.join(name));
    // Plots over time lie over each other, too.
    let run = |stages: &dyn Stages, name: &str| {
        let own = RunOptions { out: folder(name), series: options.out.is_some(), ..options.clone() };
        run_on(stages, scenario, &own)
    };
    let (simulated, live) = (run(&Virtual, "simulated")?, run(real_time, "real-time")?);
    warn_of_wrong_reads(&live);
    let comparison = Comparison::of(&simulated.summary, &live.summary);
    let text = format!("{}\n\n{}", scenario.title(), comparison.to_text());
    let told =
        json(&Both { simulated: &simulated.results, real_time: &live.results, comparison: &comparison });
    if let Some(file) = &args.json {
        write(file, &told)?;
    }
    if let Some(out) = &options.out {
        let folders: Vec<_> = ["simulated", "real-time"].into_iter().filter_map(folder).collect();
        overlaid(&folders, &out.join("plots"), &options.plot)?;
        write(&out.join("comparison.txt"), &text)?;
        write(&out.join("comparison.json"), &json(&comparison))?;
    }
    if !args.quiet {
        print(&text)?;
    }
    warn_of_late_runs(&live);
    Ok(())
}

/// A file that is there as a whole or not at all; a pipe or a device as it is.
fn write(file: &Path, content: &str) -> Result<(), Failure> {
    let written = match fs::metadata(file) {
        Ok(found) if !found.is_file() => fs::write(file, content),
        _ => ackline_lab::write(file, content.as_bytes()),
    };
    written.map_err(|error| Failure::file("write", file.display(), &error))
}

/// Fails if the results of `--json` could not be written at the end.
fn writable(file: &Path) -> Result<(), Failure> {
    let tried = match fs::metadata(file) {
        // Who reads a pipe would take the end of the trial for the end of all.
        Ok(found) if !found.is_file() && !found.is_dir() => return Ok(()),
        Ok(found) if found.is_dir() => File::create(file).map(drop),
        _ => Unfinished::create(file).map(drop),
    };
    tried.map_err(|error| Failure::file("write", format_args!("--json {}", file.display()), &error))
}

/// Tells of runs whose times the machine did not keep.
fn warn_of_late_runs(done: &Report) {
    for reason in &done.summary.invalid {
        say(&format!("INVALID: {reason}"));
    }
}
