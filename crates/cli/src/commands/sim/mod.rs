//! `ackline sim` and `ackline merge`: scenarios in virtual time.

pub(crate) mod merge;
pub(crate) mod report;

use crate::args::{OutputArgs, SimArgs};
use crate::failure::{Exit, Failure};
use crate::output::{print, say};
use ackline::Registry;
use ackline::core::policy::spec::nearest;
use ackline_lab::Layout;
use ackline_lab::stage::StageError;
use ackline_lab::{EXAMPLES, Report, RunError, RunOptions, Scenario, example};
use report::Files;
use std::io::{self, Read as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &SimArgs, registry: &Registry) -> Result<(), Failure> {
    let text = match (&args.example, &args.file) {
        (Some(None), _) => list(),
        (Some(Some(name)), _) => text_of(name)?.to_owned(),
        (None, Some(file)) => simulate(args, registry, file)?,
        (None, None) => return Err(Failure::usage("a scenario is missing: FILE.toml, or --example")),
    };
    print(&text)
}

/// Names and titles of the examples.
fn list() -> String {
    let width = EXAMPLES.iter().map(|example| example.name.len()).max().unwrap_or(0);
    EXAMPLES.iter().map(|example| format!("{:width$}  {}\n", example.name, example.title())).collect()
}

fn text_of(name: &str) -> Result<&'static str, Failure> {
    // The name of the file is understood, too.
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    example(stem).map(|example| example.text).ok_or_else(|| {
        let names = || EXAMPLES.iter().map(|example| example.name);
        let near = nearest(stem, names()).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        Failure::usage(format!("--example: there is no example {name:?}{near} (there are {all})"))
    })
}

/// Runs a file, and returns what is to be printed.
fn simulate(args: &SimArgs, registry: &Registry, file: &Path) -> Result<String, Failure> {
    let scenario = read(file, &args.set, args.seed, registry)?;
    let out = args.out.clone().or_else(|| (args.plot || args.pcap).then(|| folder_for(file)));
    let options = RunOptions {
        threads: usize::from(args.threads.unwrap_or(0)),
        out: out.clone(),
        progress: !args.output.quiet,
        series: false,
        points: args.points,
        plots: args.plot,
        plot_runs: args.plot_runs,
        layout: Layout { x: args.x.clone(), series: args.series.clone(), facet: args.facet.clone() },
        all_metrics: args.all_metrics,
        plot: args.figures.options(),
        pcap: args.pcap,
        snap_length: args.snaplen.and_then(NonZeroU32::new),
        wire: args.wire,
    };
    let done = ackline_lab::run(&scenario, &options)?;
    warn_of_wrong_reads(&done);
    let files = Files { plots: args.plot, plot_runs: args.plot_runs.is_some(), pcap: args.pcap };
    Ok(shown(args.output, &scenario, &done, out.as_deref(), files))
}

/// Tells of octets that no checksum protected.
pub(crate) fn warn_of_wrong_reads(done: &Report) {
    let wrong: u64 = done.results.iter().flat_map(|run| &run.flows).map(|flow| flow.wrong_reads).sum();
    if wrong > 0 {
        say(&format!("ackline: {wrong} reads found an octet that was never sent there"));
    }
}

/// What is printed.
fn shown(output: OutputArgs, scenario: &Scenario, done: &Report, out: Option<&Path>, files: Files) -> String {
    if output.json {
        report::json(scenario, done, out)
    } else if output.quiet {
        String::new()
    } else {
        report::text(scenario, done, out, files)
    }
}

/// Reads a scenario, with what is set beside it.
pub(crate) fn read(
    file: &Path,
    set: &[String],
    seed: Option<u64>,
    registry: &Registry,
) -> Result<Scenario, Failure> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| match example(&file.to_string_lossy()) {
        Some(example) if error.kind() == io::ErrorKind::NotFound => Failure::new(
            Exit::File,
            format!(
                "cannot read {0}: no such file; an example has this name: ackline sim --example {0} > {0}.toml",
                example.name
            ),
        ),
        _ => Failure::file("read", file.display(), &error),
    })?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let scenario = Scenario::parse_with(&text, &file.to_string_lossy(), folder, registry.clone())
        .map_err(RunError::from)?;
    let seed = seed.map(|seed| format!("seed={seed}"));
    let given: Vec<&str> = set.iter().chain(&seed).map(String::as_str).collect();
    if given.is_empty() {
        return Ok(scenario);
    }
    Ok(scenario.with_set(given).map_err(RunError::from)?)
}

/// Where results go that have no folder of their own: beside nothing of the user's, in the current
/// one.
fn folder_for(file: &Path) -> PathBuf {
    let stem = file.file_stem().filter(|stem| *stem != "-").unwrap_or("sim".as_ref());
    let mut name = stem.to_owned();
    name.push("-results");
    name.into()
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::File { what, path, source } => Self::file(what, path.display(), &source),
            RunError::Content { .. } | RunError::Merge(_) => Self::new(Exit::File, error.to_string()),
            RunError::Threads { .. } | RunError::Stage(StageError::Machine(_)) => {
                Self::new(Exit::Device, error.to_string())
            }
            _ => Self::usage(error.to_string()),
        }
    }
}
