//! The engine: jobs of all studies in parallel, then what each study makes of them, then files.

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::json::to_json_pretty;
use super::page;
use super::reproduction::Reproduction;
use super::study::{Knob, Request, Study};
use crate::error::RunError;
use crate::folder::Folder;
use crate::plot::PlotOptions;
use ackline_tcp_core::policy::spec::nearest;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is asked of all studies.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Parts by name; empty: all.
    pub parts: Vec<String>,
    /// The smaller version, if a study has one.
    pub quick: bool,
    /// Seeds per point.
    pub seeds: Option<u32>,
    /// Factor on durations or volumes.
    pub scale: Option<f64>,
    /// Worker threads; 0: one per core. Results do not depend on it.
    pub threads: usize,
    /// Folder for pages, figures and JSON, made if it is not there. While jobs run, their outputs lie there, too, so that an
    /// interrupted command goes on where it was.
    pub out: Option<PathBuf>,
    /// Keep the outputs of jobs also when all is done.
    pub keep_jobs: bool,
    /// Show progress on standard error, if that is a terminal.
    pub progress: bool,
}

/// A study that was repeated.
pub struct StudyResult {
    /// The study.
    pub study: &'static dyn Study,
    /// What was asked of it.
    pub request: Request,
    /// What it found.
    pub reproduction: Reproduction,
    /// Jobs whose outputs were there before.
    pub resumed: usize,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

/// Repeats studies. Options that a study does not understand are an error if it is the only one, and ignored if there are
/// several.
///
/// # Errors
/// If something is asked for that a study does not have, a job cannot be run, or a file cannot be written. Checks that fail are
/// no error.
pub fn reproduce(
    studies: &[&'static dyn Study],
    options: &Options,
) -> Result<Vec<StudyResult>, ReproduceError> {
    let several = studies.len() > 1;
    let mut plans = vec![];
    for study in studies {
        let request = request(*study, options, several)?;
        let mut seen = BTreeSet::new();
        let mut jobs = study.plan(&request)?;
        jobs.retain(|job| seen.insert(job.id().to_owned()));
        plans.push(Plan { study: *study, request, jobs, folder: None });
    }
    for plan in &mut plans {
        plan.folder = options.out.as_deref().map(|out| Store::create(out, plan.study)).transpose()?;
    }
    let mut outputs = run(&plans, options)?;
    let mut all = vec![];
    for (place, plan) in plans.into_iter().enumerate() {
        let (values, resumed) = outputs.remove(&place).unwrap_or_default();
        all.push(plan.conclude(values, resumed, options)?);
    }
    Ok(all)
}

/// A study with what it is to do.
struct Plan {
    study: &'static dyn Study,
    request: Request,
    jobs: Vec<Job>,
    folder: Option<Store>,
}

/// The request to one study.
fn request(study: &dyn Study, options: &Options, several: bool) -> Result<Request, ReproduceError> {
    let name = study.paper().name;
    let names = || study.parts().iter().map(|part| part.name);
    if let Some(wrong) = options.parts.iter().find(|part| !names().any(|name| name == part.as_str())) {
        let near = nearest(wrong, names()).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(ReproduceError::Request(format!("{name} has no table {wrong:?}{near} (it has {all})")));
    }
    let parts = names()
        .filter(|name| options.parts.is_empty() || options.parts.iter().any(|part| part.as_str() == *name))
        .collect();
    let given = [
        (Knob::Quick, options.quick),
        (Knob::Seeds, options.seeds.is_some()),
        (Knob::Scale, options.scale.is_some()),
    ];
    let has = |knob: Knob| study.knobs().contains(&knob);
    if let Some((knob, _)) = given.into_iter().find(|(knob, given)| *given && !has(*knob) && !several) {
        let all: Vec<&str> = study.knobs().iter().map(|knob| knob.option()).collect();
        let instead = if all.is_empty() {
            let parts = names().collect::<Vec<_>>().join(", ");
            format!("it exists in one size only; --table picks parts of it ({parts})")
        } else {
            format!("it has {}", all.join(", "))
        };
        return Err(ReproduceError::Request(format!("{name} has no {}; {instead}", knob.option())));
    }
    Ok(Request {
        parts,
        quick: options.quick && has(Knob::Quick),
        seeds: options.seeds.filter(|_| has(Knob::Seeds)),
        scale: options.scale.filter(|_| has(Knob::Scale)),
    })
}

/// The outputs of a study's jobs, and how many of them had been there before.
type JobOutputs = (BTreeMap<String, Value>, usize);

/// Runs the jobs of all plans side by side.
fn run(plans: &[Plan], options: &Options) -> Result<BTreeMap<usize, JobOutputs>, ReproduceError> {
    let jobs: Vec<(usize, &Job)> = plans
        .iter()
        .enumerate()
        .flat_map(|(place, plan)| plan.jobs.iter().map(move |job| (place, job)))
        .collect();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| RunError::Threads { threads: options.threads, message: error.to_string() })?;
    let bar = if options.progress { ProgressBar::new(jobs.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {elapsed} elapsed, {eta} left {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.tick();
    let done: Result<Vec<(usize, String, Value, bool)>, ReproduceError> = pool.install(|| {
        jobs.par_iter()
            .with_max_len(1)
            .map(|(place, job)| {
                let plan = &plans[*place];
                let (value, resumed) = one(plan, job)?;
                bar.set_message(format!("{} {}", plan.study.paper().name, job.id()));
                bar.inc(1);
                Ok((*place, job.id().to_owned(), value, resumed))
            })
            .collect()
    });
    bar.finish_and_clear();
    let mut outputs: BTreeMap<usize, JobOutputs> = BTreeMap::new();
    for (place, id, value, resumed) in done? {
        let (values, before) = outputs.entry(place).or_default();
        values.insert(id, value);
        *before += usize::from(resumed);
    }
    Ok(outputs)
}

/// A job's output, from the folder if it is there.
fn one(plan: &Plan, job: &Job) -> Result<(Value, bool), ReproduceError> {
    if let Some(value) = plan.folder.as_ref().and_then(|folder| folder.finished(job)) {
        return Ok((value, true));
    }
    let value = job.run().map_err(|message| ReproduceError::Job {
        study: plan.study.paper().name.to_owned(),
        job: job.id().to_owned(),
        message,
    })?;
    if let Some(folder) = &plan.folder {
        folder.finish(job, &value)?;
    }
    Ok((value, false))
}

impl Plan {
    /// What the study makes of its jobs' outputs, and the files of it.
    fn conclude(
        self,
        values: BTreeMap<String, Value>,
        resumed: usize,
        options: &Options,
    ) -> Result<StudyResult, ReproduceError> {
        let Self { study, request, jobs: _, folder } = self;
        let name = study.paper().name;
        let fault = |message| ReproduceError::Study { study: name.to_owned(), message };
        let reproduction = study.evaluate(&request, &Outputs::new(name, values))?;
        if let Some(message) = reproduction.fault() {
            return Err(fault(message));
        }
        let mut done = StudyResult { study, request, reproduction, resumed, files: vec![] };
        // Made even if nothing is written: a page with a mistake is found by every run.
        let page = page::to_markdown(&done).map_err(fault)?;
        if let Some(folder) = folder {
            done.files = folder.conclude(&done, &page, options.keep_jobs)?;
        }
        Ok(done)
    }
}

/// The files of one study.
///
/// ```text
///   STEM.md STEM.json     the page, and the document with every check
///   STEM/*.svg            figures
///   STEM.jobs/*.json      outputs of jobs, until all is done
/// ```
struct Store {
    folder: Folder,
    stem: &'static str,
}

impl Store {
    fn create(out: &Path, study: &dyn Study) -> Result<Self, ReproduceError> {
        let store = Self { folder: Folder::at(out), stem: study.paper().stem };
        store.folder.make(&store.jobs())?;
        Ok(store)
    }

    fn jobs(&self) -> String {
        format!("{}.jobs", self.stem)
    }

    fn finished(&self, job: &Job) -> Option<Value> {
        let path = self.folder.root().join(self.jobs()).join(format!("{}.json", job.key()));
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    }

    fn finish(&self, job: &Job, value: &Value) -> Result<(), RunError> {
        let name = format!("{}/{}.json", self.jobs(), job.key());
        let text = value.to_string();
        match self.folder.write(&name, text.as_bytes()) {
            // Another process with the same folder was done and has removed it.
            Err(RunError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.folder.make(&self.jobs())?;
                self.folder.write(&name, text.as_bytes())
            }
            other => other,
        }
    }

    /// Writes what is found. Outputs of jobs go, unless they are to be kept.
    fn conclude(&self, done: &StudyResult, page: &str, keep_jobs: bool) -> Result<Vec<PathBuf>, RunError> {
        let stem = self.stem;
        let mut files = vec![];
        let mut write = |name: String, content: &[u8]| {
            self.folder.write(&name, content)?;
            files.push(self.folder.root().join(name));
            Ok::<(), RunError>(())
        };
        if !done.reproduction.figures.is_empty() {
            self.folder.make(stem)?;
        }
        for figure in &done.reproduction.figures {
            write(format!("{stem}/{}.svg", figure.name()), &figure.to_file(&PlotOptions::default()))?;
        }
        write(format!("{stem}.json"), to_json_pretty(done).as_bytes())?;
        write(format!("{stem}.md"), page.as_bytes())?;
        if !keep_jobs {
            let path = self.folder.root().join(self.jobs());
            match fs::remove_dir_all(&path) {
                // Another process has removed it, or still writes into it and removes it in the end.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {
                }
                other => other.map_err(|error| RunError::file("remove the folder", &path, error))?,
            }
        }
        Ok(files)
    }
}
