//! All runs of a scenario, in parallel, into a folder.

use crate::error::RunError;
use crate::folder::{Extras, Folder, json, key, stem};
use crate::plot::{self, PlotOptions};
use crate::report::{self, Plots};
use crate::results::RunResult;
use crate::run::{CaptureFile, Outcome, simulate};
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::tables;
use crate::unfinished::Unfinished;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
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
    /// Draw plots and the report.
    pub plots: bool,
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

/// Runs every point of the scenario with every seed. The results are in order whatever the threads did.
///
/// # Errors
/// Where a file cannot be written, or threads cannot be started. Runs that are finished stay finished.
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Report, RunError> {
    let batch = Batch::new(scenario, options)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| RunError::Threads { threads: options.threads, message: error.to_string() })?;
    let bar = if options.progress { ProgressBar::new(scenario.runs() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} elapsed, {eta} left")
    {
        bar.set_style(style);
    }
    bar.tick();
    let repetitions = scenario.repetitions() as usize;
    let done: Result<Vec<(RunResult, bool)>, RunError> = pool.install(|| {
        (0..scenario.runs())
            .into_par_iter()
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
    let results: Vec<RunResult> = done.into_iter().map(|(result, _)| result).collect();
    let report = Report { summary: Summary::of(&results), results, resumed };
    batch.conclude(&report)?;
    Ok(report)
}

/// Points whose plots over time are in the report.
const MAX_POINTS_DRAWN: usize = 12;

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

struct Batch<'a> {
    scenario: &'a Scenario,
    folder: Option<Folder>,
    extras: Extras,
}

impl<'a> Batch<'a> {
    fn new(scenario: &'a Scenario, options: &RunOptions) -> Result<Self, RunError> {
        let folder = options.out.as_deref().map(Folder::create).transpose()?;
        let extras = Extras {
            series: options.series || scenario.wants_series(),
            plots: options.plots,
            pcap: options.pcap,
            snap_length: options.snap_length.filter(|_| options.pcap),
        };
        if let Some(folder) = &folder {
            let wanted = [("series", extras.series), ("plots", extras.plots), ("pcap", extras.pcap)];
            for (name, _) in wanted.iter().filter(|(_, wanted)| *wanted) {
                folder.make(name)?;
            }
        }
        Ok(Self { scenario, folder, extras })
    }

    /// One run, or its result where it was finished before.
    fn one(&self, point: usize, repetition: u32) -> Result<(RunResult, bool), RunError> {
        let Some(folder) = &self.folder else {
            let (outcome, _) = simulate(self.scenario, point, repetition, None)?;
            return Ok((outcome.result, false));
        };
        let stem = stem(point, repetition);
        let key = key(&self.scenario.identity(point, repetition));
        if let Some(result) = folder.finished(&stem, &key, self.extras) {
            return Ok((result, true));
        }
        let outcome = self.simulate(folder, &stem, point, repetition)?;
        if self.extras.series {
            folder
                .write(&format!("series/{stem}.flows.csv"), tables::connections_csv(&outcome).as_bytes())?;
            folder
                .write(&format!("series/{stem}.queues.csv"), tables::queue_series_csv(&outcome).as_bytes())?;
            folder.write(&format!("series/{stem}.goodput.csv"), tables::goodput_csv(&outcome).as_bytes())?;
        }
        // The plots of one repetition stand for all.
        if self.extras.plots && repetition == 0 {
            for chart in plot::run_charts(&outcome) {
                folder.write(
                    &format!("plots/{stem}.{}.svg", chart.name),
                    &chart.to_file(&PlotOptions::default()),
                )?;
            }
        }
        folder.finish(&stem, &key, self.extras, &outcome.result)?;
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
    fn conclude(&self, report: &Report) -> Result<(), RunError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let lines: Vec<String> = report.results.iter().map(json).collect();
        let jsonl = lines.join("\n") + "\n";
        let summary = &report.summary;
        for (name, content) in [
            ("scenario.toml", self.scenario.to_toml()),
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
        let points = self.scenario.points();
        for point in (0..points).take(MAX_POINTS_DRAWN) {
            let params = self.scenario.params(point);
            let values: Vec<String> =
                params.iter().map(|param| format!("{} = {}", param.path, param.value)).collect();
            let heading = if values.is_empty() { "Over time".to_owned() } else { values.join(", ") };
            let note = format!("The run with seed {}.", self.scenario.seed(0));
            groups.push(Plots { heading, note, open: point == 0, svgs: folder.plots(&stem(point, 0))? });
        }
        if points > MAX_POINTS_DRAWN
            && let Some(last) = groups.last_mut()
        {
            last.note += &format!(
                " The plots of the other {} points are in the folder plots.",
                points - MAX_POINTS_DRAWN
            );
        }
        folder.write("report.html", report::html(self.scenario, &report.summary, &groups).as_bytes())
    }
}
