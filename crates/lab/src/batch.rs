//! All runs of a scenario, in parallel, into a folder.

use crate::error::RunError;
use crate::folder::{Extras, Folder, json, key, stem};
use crate::plot::{self, PlotOptions};
use crate::points::PointRange;
use crate::report::{self, Plots};
use crate::results::RunResult;
use crate::run::{CaptureFile, Outcome, simulate};
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::tables;
use crate::unfinished::Unfinished;
use indicatif::{ProgressBar, ProgressStyle};
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
    /// Folder for results, made where it is not there. Runs that it holds already are not run again. `None`: nothing is
    /// written.
    pub out: Option<PathBuf>,
    /// Show progress on standard error, where that is a terminal.
    pub progress: bool,
    /// Write time series of every run, also where the scenario does not ask for them.
    pub series: bool,
    /// Run these points only. `None`: all.
    pub points: Option<PointRange>,
    /// Draw plots and the report.
    pub plots: bool,
    /// Draw the plots over time of these points' first runs. `None`: of all points if there are at most
    /// [`MAX_POINTS_DRAWN`], else of none.
    pub plot_runs: Option<PointRange>,
    /// Capture what passes the measured links, in both directions.
    pub pcap: bool,
    /// Bytes that a capture keeps of each packet; `None`: all.
    pub snap_length: Option<NonZeroU32>,
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

/// Runs every point of the scenario, or those of [`RunOptions::points`], with every seed. The results are in order whatever the threads did.
///
/// # Errors
/// If the scenario lacks a point, a file cannot be written, or threads cannot be started. Runs that are finished stay finished.
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Report, RunError> {
    let points = match options.points {
        Some(points) => points.of(scenario.points()).map_err(RunError::Points)?,
        None => 0..scenario.points(),
    };
    let batch = Batch::new(scenario, options)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| RunError::Threads { threads: options.threads, message: error.to_string() })?;
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
    let report = Report::of(done.into_iter().map(|(result, _)| result).collect(), resumed);
    batch.conclude(&report)?;
    Ok(report)
}

/// Points of a sweep whose runs are drawn without asking.
pub const MAX_POINTS_DRAWN: usize = 6;

/// The summary as a page in Markdown: title, where it comes from, what the scenario says about itself, and tables.
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
    scenario: &'a Scenario,
    folder: Option<Folder>,
    extras: Extras,
    /// Points whose first run is drawn.
    drawn: BTreeSet<usize>,
}

impl<'a> Batch<'a> {
    fn new(scenario: &'a Scenario, options: &RunOptions) -> Result<Self, RunError> {
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
            Some(out) => Self::in_folder(scenario, Folder::create(out)?, extras, drawn.collect()),
            None => Ok(Self { scenario, folder: None, extras, drawn: BTreeSet::new() }),
        }
    }

    /// Begins a folder.
    pub(crate) fn in_folder(
        scenario: &'a Scenario,
        folder: Folder,
        extras: Extras,
        drawn: BTreeSet<usize>,
    ) -> Result<Self, RunError> {
        for (name, _) in extras.folders().iter().filter(|(_, wanted)| *wanted) {
            folder.make(name)?;
        }
        folder.begin(scenario)?;
        Ok(Self { scenario, folder: Some(folder), extras, drawn })
    }

    /// The files of a run. The plots of one repetition stand for all.
    pub(crate) fn extras_of(&self, point: usize, repetition: u32) -> Extras {
        let plots = self.extras.plots && repetition == 0 && self.drawn.contains(&point);
        Extras { plots, ..self.extras }
    }

    /// One run, or its result where it was finished before.
    fn one(&self, point: usize, repetition: u32) -> Result<(RunResult, bool), RunError> {
        let Some(folder) = &self.folder else {
            let (outcome, _) = simulate(self.scenario, point, repetition, None)?;
            return Ok((outcome.result, false));
        };
        let extras = self.extras_of(point, repetition);
        let finished = folder.run(self.scenario, point, repetition);
        if let Some(finished) = finished.filter(|finished| finished.extras.covers(extras)) {
            return Ok((finished.result, true));
        }
        let stem = stem(point, repetition);
        let key = key(&self.scenario.identity(point, repetition));
        let outcome = self.simulate(folder, &stem, point, repetition)?;
        if extras.series {
            folder
                .write(&format!("series/{stem}.flows.csv"), tables::connections_csv(&outcome).as_bytes())?;
            folder
                .write(&format!("series/{stem}.queues.csv"), tables::queue_series_csv(&outcome).as_bytes())?;
            folder.write(&format!("series/{stem}.goodput.csv"), tables::goodput_csv(&outcome).as_bytes())?;
        }
        if extras.plots {
            for chart in plot::run_charts(&outcome) {
                folder.write(
                    &format!("plots/{stem}.{}.svg", chart.name),
                    &chart.to_file(&PlotOptions::default()),
                )?;
            }
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
    ) -> Result<Outcome, RunError> {
        if !self.extras.pcap {
            return Ok(simulate(self.scenario, point, repetition, None)?.0);
        }
        let path = folder.root().join(format!("pcap/{stem}.pcapng"));
        let refused = |error| RunError::file("write", &path, error);
        let unfinished = Unfinished::create(&path).map_err(refused)?;
        let file: Box<dyn Write + Send> = Box::new(unfinished.file().try_clone().map_err(refused)?);
        let capture = CaptureFile { file, snap_length: self.extras.snap_length };
        let (outcome, captured) = simulate(self.scenario, point, repetition, Some(capture))?;
        captured.and_then(|()| unfinished.finish(&path)).map_err(refused)?;
        Ok(outcome)
    }

    /// All runs are done: what is made of them together.
    pub(crate) fn conclude(&self, report: &Report) -> Result<(), RunError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let lines: Vec<String> = report.results.iter().map(json).collect();
        let jsonl = lines.join("\n") + "\n";
        let summary = &report.summary;
        for (name, content) in [
            ("runs.jsonl", jsonl),
            ("flows.csv", tables::flows_csv(&report.results)),
            ("queues.csv", tables::queues_csv(&report.results)),
            ("summary.csv", summary.to_csv()),
            ("summary.md", table_of(self.scenario, summary)),
            ("summary.txt", summary.to_text()),
        ] {
            folder.write(name, content.as_bytes())?;
        }
        if self.extras.plots {
            self.report(folder, report)?;
        }
        Ok(())
    }

    fn report(&self, folder: &Folder, report: &Report) -> Result<(), RunError> {
        let mut groups = vec![];
        let mut sweep = Plots {
            heading: "Over the sweep".to_owned(),
            note: "Means over the runs of each point; bands are 95 % confidence intervals.".to_owned(),
            open: true,
            svgs: vec![],
        };
        for chart in plot::sweep_charts(&report.summary) {
            folder.write(&format!("plots/{}.svg", chart.name), &chart.to_file(&PlotOptions::default()))?;
            sweep.svgs.push(chart.to_svg());
        }
        groups.push(sweep);
        let run = |point: &usize| report.results.iter().any(|result| result.point == *point);
        for (place, point) in self.drawn.iter().filter(|point| run(point)).enumerate() {
            let params = self.scenario.params(*point);
            let values: Vec<String> =
                params.iter().map(|param| format!("{} = {}", param.path, param.value)).collect();
            let heading = if values.is_empty() { "Over time".to_owned() } else { values.join(", ") };
            let note = format!("The run with seed {}.", self.scenario.seed(0));
            groups.push(Plots { heading, note, open: place == 0, svgs: folder.plots(&stem(*point, 0))? });
        }
        folder.write("report.html", report::html(self.scenario, &report.summary, &groups).as_bytes())
    }
}
