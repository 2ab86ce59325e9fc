//! Runs of contestants in cells: dealt to threads, the longest first, and kept by what they depend
//! on.
//!
//! ```text
//!   DIR/runs/CELL-SEED-KEY.json     one file per run: who, where, key, measures
//! ```

use super::cell::{Cell, Takes};
use super::contestant::Contestant;
use super::matrix::Matrix;
use super::measures::{self, FORMULAS, Measures};
use crate::batch::points::PointRange;
use crate::error::RunError;
use crate::folder::{self, Folder, json};
use crate::results::RunResult;
use crate::run::{RunOutputs, perform};
use crate::scenario::Scenario;
use crate::stage::{Stages, Virtual};
use ackline_registry::Registry;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How to evaluate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The hash of the simulator's sources. Runs of other sources are not taken for these.
    pub engine: String,
    /// The hash of the program, for policies that are not ackline's own.
    pub program: String,
    /// Worker threads; 0: one per core. Results do not depend on it.
    pub threads: usize,
    /// Folder where finished runs are kept. `None`: nothing is written.
    pub out: Option<PathBuf>,
    /// Seeds of each cell, in place of its own number.
    pub seeds: Option<u32>,
    /// Run these jobs alone, by number.
    pub points: Option<PointRange>,
    /// Show progress on standard error, if that is a terminal.
    pub progress: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stand {
    /// With measures.
    Done(Measures),
    /// It sent ten times what the cell has room for.
    Flood,
    /// The policy panicked; the message.
    Panicked(String),
}

impl Stand {
    /// Why the run did not end as it should, if it did not.
    pub(super) fn fault(&self) -> Option<String> {
        match self {
            Self::Done(measures) if measures.get("goodput") == Some(&0.0) => {
                Some("stalled: nothing arrived".to_owned())
            }
            Self::Done(_) => None,
            Self::Flood => Some("fail: flood".to_owned()),
            Self::Panicked(message) => Some(format!("panicked: {message}")),
        }
    }
}

/// One run that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    pub(super) cell: &'a Cell,
    pub(super) contestant: &'a Contestant,
    pub(super) seed: u32,
}

/// A file of `runs/`.
#[derive(Serialize, Deserialize)]
struct Kept {
    policy: String,
    cell: String,
    seed: u32,
    key: String,
    /// Hash of the run's whole result.
    result: String,
    stand: Stand,
}

/// Runs by cell, contestant and seed. The victims alone stand under an empty name.
pub(super) type Finished = BTreeMap<(String, String, u32), Stand>;

/// All jobs, in a fixed order: by cell, contestant, seed.
pub(super) fn jobs<'a>(matrix: &'a Matrix, contestants: &'a [Contestant], options: &Options) -> Vec<Job<'a>> {
    let mut jobs = vec![];
    for cell in &matrix.cells {
        let alone = cell.takes == Takes::Nobody;
        // Any contestant will do where none is in the scenario.
        let runners = contestants.iter().filter(|contestant| alone || cell.is_for(contestant));
        for contestant in runners.take(if alone { 1 } else { usize::MAX }) {
            jobs.extend((1..=options.seeds.unwrap_or(cell.seeds)).map(|seed| Job { cell, contestant, seed }));
        }
    }
    jobs
}

impl Job<'_> {
    fn name(&self) -> (String, String, u32) {
        let policy = if self.cell.takes == Takes::Nobody { "" } else { &self.contestant.spec };
        (self.cell.id.clone(), policy.to_owned(), self.seed)
    }

    /// The hash of what the run depends on.
    fn key(&self, options: &Options) -> String {
        let program = if self.contestant.is_built_in { "" } else { &options.program };
        let identity = format!(
            "{}\n{}\n{program}\n{FORMULAS}\n{}\n{}",
            env!("CARGO_PKG_VERSION"),
            options.engine,
            self.cell.text(self.contestant),
            self.seed
        );
        super::hash(identity.as_bytes())
    }

    fn file(&self, key: &str) -> String {
        format!("runs/{}-{}-{key}.json", self.cell.id, self.seed)
    }

    fn run(&self, registry: &Registry) -> Result<(Stand, String), RunError> {
        let scenario = self.cell.scenario(self.contestant, registry)?;
        let (stand, result) = run_on(&Virtual, self.cell, &scenario, self.seed)?;
        Ok((stand, result.map(|result| super::hash(json(&result).as_bytes())).unwrap_or_default()))
    }
}

/// One run of a cell, of which `scenario` is a version. The result is there if the run came to its
/// end.
pub(super) fn run_on(
    stages: &dyn Stages,
    cell: &Cell,
    scenario: &Scenario,
    seed: u32,
) -> Result<(Stand, Option<RunResult>), RunError> {
    let scenario = scenario.with_set([format!("seed={seed}")])?;
    // Data and ACKs, ten times over.
    let most = (cell.packets * 2e7).max(1e5) as u64;
    let wanted = RunOutputs { most_packets: Some(most), ..RunOutputs::default() };
    let run = || perform(stages, &scenario, 0, 0, wanted);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok((outcome, _))) => Ok((Stand::Done(measures::of(cell, &outcome)), Some(outcome.result))),
        Ok(Err(RunError::Flood { .. })) => Ok((Stand::Flood, None)),
        Ok(Err(error)) => Err(error),
        Err(payload) => {
            let message = payload.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Ok((Stand::Panicked(message.to_owned()), None))
        }
    }
}

/// A run of before, if its file is whole and of this key.
fn kept(folder: &Path, file: &str, key: &str) -> Option<Kept> {
    let kept: Kept = serde_json::from_str(&fs::read_to_string(folder.join(file)).ok()?).ok()?;
    (kept.key == key).then_some(kept)
}

/// Does all jobs that are not done. The second value is how many were.
pub(super) fn run_all(
    jobs: &[Job<'_>],
    registry: &Registry,
    options: &Options,
) -> Result<(Finished, usize), RunError> {
    let range = match options.points {
        Some(points) => points.of(jobs.len()).map_err(RunError::Points)?,
        None => 0..jobs.len(),
    };
    let folder = options.out.as_deref().map(Folder::create).transpose()?;
    let mut finished = Finished::new();
    let mut resumed = 0;
    let mut open: Vec<(&Job<'_>, String)> = vec![];
    for (number, job) in jobs.iter().enumerate() {
        let key = job.key(options);
        let file = job.file(&key);
        match options.out.as_deref().and_then(|folder| kept(folder, &file, &key)) {
            Some(kept) => {
                resumed += 1;
                finished.insert(job.name(), kept.stand);
            }
            None if range.contains(&number) => open.push((job, key)),
            None => {}
        }
    }
    open.sort_by(|(one, _), (other, _)| other.cell.packets.total_cmp(&one.cell.packets));
    let total: f64 = open.iter().map(|(job, _)| job.cell.packets).sum();
    let bar = if options.progress { ProgressBar::new((total * 1e3) as u64) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {percent:>3} %, {msg}, {elapsed} elapsed, {eta} left")
    {
        bar.set_style(style);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let pool =
        pool.map_err(|error| RunError::Threads { threads: options.threads, message: error.to_string() })?;
    let next = AtomicUsize::new(0);
    let done = Mutex::new((finished, None::<RunError>));
    let work = || {
        while let Some((job, key)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            bar.set_message(format!("{} in {}", job.contestant.spec, job.cell.id));
            let outcome = job.run(registry).and_then(|(stand, result)| {
                if let Some(folder) = &folder {
                    let (cell, policy, seed) = job.name();
                    let kept = Kept { policy, cell, seed, key: key.clone(), result, stand: stand.clone() };
                    folder.write(&job.file(key), json(&kept).as_bytes())?;
                }
                Ok(stand)
            });
            bar.inc((job.cell.packets * 1e3) as u64);
            // A poisoned lock would mean a panic between here and the end of this block.
            let Ok(mut done) = done.lock() else { return };
            match outcome {
                Ok(stand) => {
                    done.0.insert(job.name(), stand);
                }
                Err(error) => {
                    done.1.get_or_insert(error);
                    return;
                }
            }
            if done.1.is_some() {
                return;
            }
        }
    };
    pool.broadcast(|_| work());
    bar.finish_and_clear();
    let (finished, error) = done.into_inner().unwrap_or_default();
    match error {
        Some(error) => Err(error),
        None => Ok((finished, resumed)),
    }
}

/// Copies the finished runs of several folders into one.
///
/// # Errors
/// If a file cannot be read or written, or two folders have different results under the same name.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<usize, RunError> {
    let into = Folder::create(out)?;
    let mut count = 0;
    for from in folders {
        let path = from.join("runs");
        let entries = fs::read_dir(&path).map_err(|error| RunError::file("read the folder", &path, error))?;
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.ends_with(".json")) else { continue };
            let read = |path: &Path| fs::read(path).map_err(|error| RunError::file("read", path, error));
            let content = read(&entry.path())?;
            let there = into.root().join("runs").join(name);
            if there.exists() && read(&there)? != content {
                return Err(RunError::Merge(format!(
                    "{} and {} differ; the same scenario and seed give the same results: one of them was changed",
                    entry.path().display(),
                    there.display()
                )));
            }
            folder::write(&there, &content).map_err(|error| RunError::file("write", &there, error))?;
            count += 1;
        }
    }
    Ok(count)
}
