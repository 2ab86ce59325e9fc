//! All runs of a scenario, in parallel, into a folder.

pub(crate) mod merge;
pub(crate) mod points;

use crate::error::RunError;
use crate::figures::run_plots;
use crate::folder::{Extras, Folder, json, key, stem};
use crate::layout::Layout;
use crate::report;
use crate::results::RunResult;
use crate::run::{CaptureFile, Outcome, RunOutputs, perform};
use crate::scenario::Scenario;
use crate::stage::{Stages, Virtual};
use crate::summary::Summary;
use crate::tables;
use crate::unfinished::Unfinished;
use ackline_plot::PlotOptions;
use indicatif::{ProgressBar, ProgressStyle};
use points::PointRange;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Worker threads; 0: one per core. Results do not depend on it.
    pub threads: usize,
    /// Folder for results, made if it is not there. Runs that it holds already are not run again.
    /// `None`: nothing is written.
    pub out: Option<PathBuf>,
    /// Show progress on standard error, if that is a terminal.
    pub progress: bool,
    /// Write time series of every run, even if the scenario does not ask for them.
    pub series: bool,
    /// Run these points only. `None`: all.
    pub points: Option<PointRange>,
    /// Draw plots and the report.
    pub plots: bool,
    /// Draw the plots over time of these points' first runs. `None`: of all points if there are at
    /// most [`MAX_POINTS_DRAWN`], else of none.
    pub plot_runs: Option<PointRange>,
    /// How plots become files.
    pub plot: PlotOptions,
    /// Which axis is what in the plots of a sweep.
    pub layout: Layout,
    /// Show all metrics in plots and on a terminal, and not only the main ones.
    pub all_metrics: bool,
    /// Capture what passes the measured links, in both directions.
    pub pcap: bool,
    /// Bytes that a capture keeps of each packet; `None`: all.
    pub snap_length: Option<NonZeroU32>,
    /// Give every packet octets, and let every connection keep its data: slower, with the same
    /// results ([`Sim::set_wire`](ackline_netsim::Sim::set_wire)).
    pub wire: bool,
}

/// What all runs gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// One result per run, by point and repetition.
    pub results: Vec<RunResult>,
    /// Numbers by point.
    pub summary: Summary,
    /// Runs that had been finished before.
    pub resumed: usize,
}

impl Report {
    /// Of results in the order of points and repetitions.
    pub(crate) fn of(results: Vec<RunResult>, resumed: usize) -> Self {
        Self { summary: Summary::of(&results), results, resumed }
    }
}

/// Runs every point of the scenario, or those of [`RunOptions::points`], with every seed. The
/// results are in order whatever the threads did.
///
/// # Errors
/// If the scenario lacks a point, a file cannot be written, or threads cannot be started. Runs that
/// are finished stay finished.
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Report, RunError> {
    run_on(&Virtual, scenario, options)
}

/// The same on another stage; one run after the other, if the stage is not for several at once.
///
/// # Errors
/// Also those of the stage.
pub fn run_on(stages: &dyn Stages, scenario: &Scenario, options: &RunOptions) -> Result<Report, RunError> {
    let points = match options.points {
        Some(points) => points.of(scenario.points()).map_err(RunError::Points)?,
        None => 0..scenario.points(),
    };
    let layout = options.layout.find(scenario.swept()).map_err(RunError::Axes)?;
    let batch = Batch::new(stages, scenario, options)?;
    let threads = if stages.is_parallel() { options.threads } else { 1 };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| RunError::Threads { threads, message: error.to_string() })?;
    let repetitions = scenario.repetitions() as usize;
    let runs = points.start * repetitions..points.end * repetitions;
    let bar = if options.progress { ProgressBar::new(runs.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} elapsed, {eta} left")
    {
        bar.set_style(style);
    }
    bar.tick();
    let done: Result<Vec<(RunResult, bool)>, RunError> = pool.install(|| {
        runs.into_par_iter()
            .map(|index| {
                let done = batch.one(index / repetitions, (index % repetitions) as u32);
                bar.inc(1);
                done
            })
            .collect()
    });
    bar.finish_and_clear();
    let done = done?;
    let resumed = done.iter().filter(|(_, resumed)| *resumed).count();
    let mut report = Report::of(done.into_iter().map(|(result, _)| result).collect(), resumed);
    report.summary.layout = layout;
    report.summary.all_metrics = options.all_metrics;
    batch.conclude(&report)?;
    Ok(report)
}

/// Points of a sweep whose runs are drawn without asking.
pub const MAX_POINTS_DRAWN: usize = 6;

/// The summary as a page in Markdown: title, where it comes from, what the scenario says about
/// itself, and tables.
#[must_use]
pub fn table_of(scenario: &Scenario, summary: &Summary) -> String {
    let comment: Vec<&str> =
        scenario.text().lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let given: String = scenario.given().iter().map(|given| format!(" `{given}`")).collect();
    let with = if given.is_empty() { String::new() } else { format!(", with{given}") };
    format!(
        "# {}\n\n{}\n\nScenario: `{}`{with}; seed {}.\n\n{}",
        scenario.title(),
        comment.join("\n"),
        scenario.name(),
        scenario.seed(0),
        summary.to_markdown()
    )
}

/// What is run, and where its results go.
pub(crate) struct Batch<'a> {
    stages: &'a dyn Stages,
    scenario: &'a Scenario,
    folder: Option<Folder>,
    extras: Extras,
    /// Points whose first run is drawn.
    drawn: BTreeSet<usize>,
    plot: PlotOptions,
    wire: bool,
}

impl<'a> Batch<'a> {
    fn new(stages: &'a dyn Stages, scenario: &'a Scenario, options: &RunOptions) -> Result<Self, RunError> {
        let count = scenario.points();
        let drawn = match options.plot_runs {
            _ if !options.plots => 0..0,
            Some(points) => points.of(count).map_err(RunError::Points)?,
            None if count <= MAX_POINTS_DRAWN => 0..count,
            None => 0..0,
        };
        let extras = Extras {
            series: options.series || scenario.wants_series(),
            plots: options.plots,
            pcap: options.pcap,
            snap_length: options.snap_length.filter(|_| options.pcap),
        };
        match &options.out {
            Some(out) => {
                let batch =
                    Self::in_folder(stages.name(), scenario, Folder::create(out)?, extras, drawn.collect())?;
                Ok(Self { stages, plot: options.plot, wire: options.wire, ..batch })
            }
            None => Ok(Self {
                stages,
                scenario,
                folder: None,
                extras,
                drawn: BTreeSet::new(),
                plot: options.plot,
                wire: options.wire,
            }),
        }
    }

    /// Begins a folder.
    pub(crate) fn in_folder(
        stage: &str,
        scenario: &'a Scenario,
        folder: Folder,
        extras: Extras,
        drawn: BTreeSet<usize>,
    ) -> Result<Self, RunError> {
        for (name, _) in extras.folders().iter().filter(|(_, wanted)| *wanted) {
            folder.make(name)?;
        }
        folder.begin(scenario, stage)?;
        Ok(Self {
            stages: &Virtual,
            scenario,
            folder: Some(folder),
            extras,
            drawn,
            plot: PlotOptions::default(),
            wire: false,
        })
    }

    /// The files of a run. The plots of one repetition stand for all.
    pub(crate) fn extras_of(&self, point: usize, repetition: u32) -> Extras {
        let plots = self.extras.plots && repetition == 0 && self.drawn.contains(&point);
        Extras { plots, ..self.extras }
    }

    /// One run, or its result if it was finished before.
    fn one(&self, point: usize, repetition: u32) -> Result<(RunResult, bool), RunError> {
        let Some(folder) = &self.folder else {
            let wanted = RunOutputs { wire: self.wire, ..RunOutputs::default() };
            let (outcome, _) = perform(self.stages, self.scenario, point, repetition, wanted)?;
            return Ok((outcome.result, false));
        };
        let extras = self.extras_of(point, repetition);
        let stem = stem(point, repetition);
        let key = key(self.stages.name(), self.scenario, point, repetition);
        let finished = folder.run(&key, point, repetition);
        let drawable = || !extras.plots || folder.plots(&stem).is_some();
        if let Some(finished) = finished.filter(|finished| finished.extras.covers(extras) && drawable()) {
            return Ok((finished.result, true));
        }
        let outcome = self.simulate(folder, &stem, point, repetition, extras)?;
        if extras.series {
            folder
                .write(&format!("series/{stem}.flows.csv"), tables::connections_csv(&outcome).as_bytes())?;
            folder
                .write(&format!("series/{stem}.queues.csv"), tables::queue_series_csv(&outcome).as_bytes())?;
            folder.write(&format!("series/{stem}.goodput.csv"), tables::goodput_csv(&outcome).as_bytes())?;
        }
        if extras.plots {
            folder.keep_plots(&stem, &run_plots(&outcome))?;
        }
        folder.finish(&stem, &key, extras, &outcome.result)?;
        Ok((outcome.result, false))
    }

    fn simulate(
        &self,
        folder: &Folder,
        stem: &str,
        point: usize,
        repetition: u32,
        extras: Extras,
    ) -> Result<Outcome, RunError> {
        let wanted = RunOutputs { sequence: extras.plots, wire: self.wire, ..RunOutputs::default() };
        if !extras.pcap {
            return Ok(perform(self.stages, self.scenario, point, repetition, wanted)?.0);
        }
        let path = folder.root().join(format!("pcap/{stem}.pcapng"));
        let refused = |error| RunError::file("write", &path, error);
        let unfinished = Unfinished::create(&path).map_err(refused)?;
        let file: Box<dyn Write + Send> = Box::new(unfinished.file().try_clone().map_err(refused)?);
        let capture = CaptureFile { file, snap_length: extras.snap_length };
        let (outcome, captured) = perform(
            self.stages,
            self.scenario,
            point,
            repetition,
            RunOutputs { capture: Some(capture), ..wanted },
        )?;
        captured.and_then(|()| unfinished.finish(&path)).map_err(refused)?;
        Ok(outcome)
    }

    /// All runs are done: what is made of them together.
    pub(crate) fn conclude(&self, report: &Report) -> Result<(), RunError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let lines: Vec<String> = report.results.iter().map(json).collect();
        let jsonl = lines.join("\n") + "\n";
        let summary = &report.summary;
        let all = Summary { all_metrics: true, ..summary.clone() };
        for (name, content) in [
            ("runs.jsonl", jsonl),
            ("flows.csv", tables::flows_csv(&report.results)),
            ("queues.csv", tables::queues_csv(&report.results)),
            ("summary.csv", summary.to_csv()),
            ("summary.md", table_of(self.scenario, summary)),
            ("summary.txt", all.to_text()),
        ] {
            folder.write(name, content.as_bytes())?;
        }
        if self.extras.plots {
            let ran = |point: &usize| report.results.iter().any(|result| result.point == *point);
            let drawn: Vec<usize> = self.drawn.iter().copied().filter(ran).collect();
            report::write(folder, self.scenario, &report.summary, &drawn, &self.plot)?;
        }
        Ok(())
    }
}
