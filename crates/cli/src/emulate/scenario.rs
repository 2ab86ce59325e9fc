//! `ackline emulate FILE`: a scenario in real time.

use super::program;
use crate::args::emulate::EmulateArgs;
use crate::failure::Failure;
use crate::output::{json, print, say};
use crate::sim::report::{self, Files};
use crate::sim::{read, warn_of_wrong_reads};
use ackline::Registry;
use ackline_emulate::stage::RealTime;
use ackline_lab::{Report, RunOptions, run_on};
use std::path::Path;

pub(super) fn run(args: &EmulateArgs, file: &Path, registry: &Registry) -> Result<(), Failure> {
    let own = &args.scenario;
    let scenario = read(file, &own.set, args.seed, registry)?;
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
    let done = run_on(&RealTime { pacing: args.pacing.into() }, &scenario, &options)?;
    warn_of_wrong_reads(&done);
    if let Some(file) = &args.json {
        std::fs::write(file, json(&done.results))
            .map_err(|error| Failure::file("write", file.display(), &error))?;
    }
    if !args.quiet {
        let files = Files { plots: options.plots, plot_runs: false, pcap: false };
        let text = report::text(&scenario, &done, own.out.as_deref(), files);
        print(&text).map_err(|error| Failure::file("write to", "standard output", &error))?;
    }
    warn_of_late_runs(&done);
    Ok(())
}

/// Tells of runs whose times the machine did not keep.
fn warn_of_late_runs(done: &Report) {
    for run in &done.results {
        for reason in run.validity.iter().flat_map(|validity| &validity.reasons) {
            say(&format!("INVALID: point {}, repetition {}: {reason}", run.point, run.repetition));
        }
    }
}
