//! A fixed sample of a study's jobs: whether data of another engine are still what this program
//! gives, without running everything.
//!
//! Five jobs of each part are drawn by the hashes of what they are, and stand in the data. A short
//! job is run as a whole, and its output compared. Of a long one only the beginning is run: the
//! data have the virtual time at which it ends, and a digest of every packet until then, with its
//! instant.

use super::work;
use crate::data::{Data, Sample};
use crate::error::ReproduceError;
use crate::job::{Job, LONG_S};
use crate::options::Options;
use crate::request::Request;
use crate::result::SampleResult;
use crate::study::{Study, plan};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Jobs of each part, if it has as many.
const PER_PART: usize = 5;

/// The jobs of each part whose hashes are the smallest; jobs that can only be run as a whole, and
/// take long, come last.
fn chosen(
    study: &dyn Study,
    request: &Request,
    done: impl Fn(&str) -> Option<f64>,
) -> Result<Vec<Vec<Job>>, ReproduceError> {
    let parts = study.parts().iter().filter(|part| request.wants(part.name));
    parts
        .map(|part| {
            let mut jobs = plan(study, &Request { parts: vec![part.name], ..request.clone() })?;
            jobs.retain(|job| !job.is_live());
            let is_costly = |job: &Job| !job.can_begin() && done(job.id()).is_none_or(|cpu_s| cpu_s > LONG_S);
            jobs.sort_by_key(|job| (is_costly(job), job.identity().to_owned()));
            jobs.truncate(PER_PART);
            Ok(jobs)
        })
        .collect()
}

/// Draws the sample of a run whose jobs took `cpu_s` of processor time, by id.
///
/// # Errors
/// Those of a job.
pub(crate) fn draw(
    study: &dyn Study,
    request: &Request,
    cpu_s: impl Fn(&str) -> Option<f64> + Sync,
    options: &Options,
) -> Result<Sample, ReproduceError> {
    let jobs: BTreeMap<String, Job> =
        chosen(study, request, &cpu_s)?.into_iter().flatten().map(|job| (job.id().to_owned(), job)).collect();
    let one = |(id, job): (String, Job)| {
        let long = job.can_begin() && cpu_s(&id).is_some_and(|cpu_s| cpu_s > LONG_S);
        let beginning = long.then(|| job.begin(None)).transpose();
        beginning.map(|beginning| (id.clone(), beginning)).map_err(|message| fault(study, &id, message))
    };
    work::pool(options)?.install(|| jobs.into_par_iter().map(one).collect())
}

/// Runs the sample of `data` with this program, and compares. A job of the sample that the data do
/// not name, because they were made before there were samples or before it was drawn, is run as a
/// whole.
///
/// # Errors
/// If a job cannot be run.
pub(crate) fn compare(
    study: &dyn Study,
    request: &Request,
    data: &Data,
    options: &Options,
) -> Result<SampleResult, ReproduceError> {
    let mut names: BTreeSet<String> = data.sample.keys().cloned().collect();
    let cpu_s = |id: &str| data.jobs.get(id).map(|stored| stored.done.cpu_s);
    names.extend(chosen(study, request, cpu_s)?.into_iter().flatten().map(|job| job.id().to_owned()));
    let jobs: Vec<Job> = plan(study, request)?.into_iter().filter(|job| names.contains(job.id())).collect();
    let one = |job: Job| {
        let id = job.id().to_owned();
        let same = match data.sample.get(&id).and_then(Option::as_ref) {
            Some(beginning) => job.begin(Some(beginning.until_ms)).map(|now| (now == *beginning, LONG_S)),
            None => job.run(None).map(|now| {
                (data.jobs.get(&id).is_some_and(|stored| stored.done.output == now.output), now.cpu_s)
            }),
        };
        same.map(|(same, cpu_s)| (id.clone(), same, cpu_s)).map_err(|message| fault(study, &id, message))
    };
    let all: Vec<(String, bool, f64)> = work::pool(options)?
        .install(|| jobs.into_par_iter().map(one).collect::<Result<_, ReproduceError>>())?;
    Ok(SampleResult {
        jobs: all.len(),
        cpu_s: all.iter().map(|(_, _, cpu_s)| cpu_s).sum(),
        unnamed: names.iter().filter(|id| !data.sample.contains_key(*id)).count(),
        differing: all.into_iter().filter(|(_, same, _)| !same).map(|(id, _, _)| id).collect(),
    })
}

fn fault(study: &dyn Study, job: &str, message: String) -> ReproduceError {
    ReproduceError::Job { study: study.paper().name.to_owned(), job: job.to_owned(), message }
}
