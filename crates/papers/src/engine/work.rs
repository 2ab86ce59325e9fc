//! The work: jobs of all studies side by side, those that take longest first, and then runs by the
//! real clock, one after the other.

use crate::data::cache::{Cache, Lookup};
use crate::error::ReproduceError;
use crate::job::{Job, JobOutput};
use crate::options::Options;
use crate::study::Study;
use ackline_lab::RunError;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A job with the study that it belongs to, by its place.
struct Task<'a> {
    place: usize,
    study: &'static dyn Study,
    job: &'a Job,
    code: String,
}

/// What the jobs of a study gave.
#[derive(Default)]
pub(crate) struct Outcome {
    /// By the jobs' ids.
    pub(crate) outputs: BTreeMap<String, JobOutput>,
    /// Those that came from the cache.
    pub(crate) cached: usize,
    /// Entries of the cache that could not be read.
    pub(crate) unreadable: usize,
    /// Why one of its jobs has no output. The other jobs are run, so that they are in the cache.
    pub(crate) error: Option<ReproduceError>,
}

/// What all jobs gave, and how long they took together.
pub(crate) struct RunResults {
    /// In the order of the studies.
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) wall_s: f64,
    pub(crate) threads: usize,
}

/// The threads on which jobs run.
pub(crate) fn pool(options: &Options) -> Result<ThreadPool, RunError> {
    let threads = options.threads;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| RunError::Threads { threads, message: error.to_string() })
}

/// Finds or runs the jobs of each study.
pub(crate) fn run(
    plans: &[(&'static dyn Study, &[Job])],
    options: &Options,
) -> Result<RunResults, ReproduceError> {
    let cache = options.cache.as_deref().map(Cache::open).transpose()?;
    let mut outcomes: Vec<Outcome> = plans.iter().map(|_| Outcome::default()).collect();
    let pool = pool(options)?;
    let all: Vec<(usize, &'static dyn Study, &Job)> = plans
        .iter()
        .enumerate()
        .flat_map(|(place, (study, jobs))| jobs.iter().map(move |job| (place, *study, job)))
        .collect();
    let find = |(place, study, job): (usize, &'static dyn Study, _)| {
        let task = Task { place, study, job, code: job.code(study.reading()) };
        // What the real clock gave at another time is not what it gives now.
        let cache = cache.as_ref().filter(|_| !job.is_live());
        let found = cache.map_or(Lookup::Nothing, |cache| cache.find(job, &task.code));
        (task, found)
    };
    let found: Vec<(Task<'_>, Lookup)> = pool.install(|| all.into_par_iter().map(find).collect());
    let mut tasks = vec![];
    for (task, found) in found {
        let outcome = &mut outcomes[task.place];
        match found {
            Lookup::Done(done) => {
                outcome.cached += 1;
                outcome.outputs.insert(task.job.id().to_owned(), done);
                continue;
            }
            Lookup::Unreadable => outcome.unreadable += 1,
            Lookup::Nothing => {}
        }
        tasks.push(task);
    }
    let bar = if options.progress { ProgressBar::new(tasks.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {elapsed} elapsed, {eta} left {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.tick();
    let (live, mut tasks): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| task.job.is_live());
    longest_first(&mut tasks, cache.as_ref());
    let queue = |tasks| Queue { tasks, next: AtomicUsize::new(0), cache: cache.as_ref(), bar: &bar, options };
    let done = Mutex::new(vec![]);
    let simulated = queue(&tasks);
    pool.broadcast(|_| simulated.work(&done));
    // By themselves, so that the machine keeps their times.
    queue(&live).work(&done);
    let wall_s = bar.elapsed().as_secs_f64();
    bar.finish_and_clear();
    for (place, id, result) in done.into_inner().unwrap_or_default() {
        let outcome = &mut outcomes[place];
        match result {
            Ok(output) => {
                outcome.outputs.insert(id, output);
            }
            Err(error) => outcome.error = outcome.error.take().or(Some(error)),
        }
    }
    Ok(RunResults { outcomes, wall_s, threads: pool.current_num_threads() })
}

/// Jobs that were never run come first, in their order: nobody can tell how long they take.
fn longest_first(tasks: &mut [Task<'_>], cache: Option<&Cache>) {
    let Some(cache) = cache else { return };
    tasks.sort_by_cached_key(|task| {
        let microseconds = cache.estimate(task.job).map(|seconds| (seconds * 1e6) as u64);
        std::cmp::Reverse(microseconds.unwrap_or(u64::MAX))
    });
}

/// Tasks from which each thread takes the next one.
struct Queue<'a> {
    tasks: &'a [Task<'a>],
    next: AtomicUsize,
    cache: Option<&'a Cache>,
    bar: &'a ProgressBar,
    options: &'a Options,
}

/// What a job gave, with the place of its study and its id.
type JobResult = (usize, String, Result<JobOutput, ReproduceError>);

impl Queue<'_> {
    /// Runs tasks until none is left.
    fn work(&self, done: &Mutex<Vec<JobResult>>) {
        while let Some(task) = self.tasks.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let result = self.one(task);
            if let Ok(mut done) = done.lock() {
                done.push((task.place, task.job.id().to_owned(), result));
            }
            self.bar.set_message(format!("{} {}", task.study.paper().name, task.job.id()));
            self.bar.inc(1);
        }
    }

    fn one(&self, task: &Task<'_>) -> Result<JobOutput, ReproduceError> {
        let study = task.study.paper().name;
        let fault =
            |message| ReproduceError::Job { study: study.to_owned(), job: task.job.id().to_owned(), message };
        let done = task.job.run(self.options.live.as_deref()).map_err(fault)?;
        if let Some(cache) = self.cache.filter(|_| !task.job.is_live()) {
            cache.keep(study, task.job, &task.code, &done)?;
        }
        Ok(done)
    }
}
