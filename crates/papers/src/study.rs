//! What a study is: a paper, its parts, and how they are repeated.

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::request::{Knob, Request};
use std::collections::BTreeMap;

/// A paper that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// What `ackline reproduce` calls it: `dclor`, or `dclor --live`.
    pub name: &'static str,
    /// The name of its page, its folder of figures and its JSON document, without ending.
    pub stem: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// When it appeared; `None` if it does not say.
    pub year: Option<u16>,
}

impl Paper {
    /// Authors, title and year.
    #[must_use]
    pub fn citation(&self) -> String {
        let year = self.year.map_or(String::new(), |year| format!(" ({year})"));
        format!("{}: {}{year}", self.authors, self.title)
    }
}

/// A table or a group of figures that can be chosen by itself. The engine calls
/// [`plan`](Self::plan) once, runs the jobs in any order and in parallel, and then calls
/// [`evaluate`](Self::evaluate) once with the same request. Both are pure: what they give follows
/// from their arguments.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// What `--table` calls it: the number in the paper if it has one.
    pub name: &'static str,
    /// What it shows, in a line.
    pub what: &'static str,
    /// Its jobs. A job that two parts need has the same id in both, and is run once.
    pub plan: fn(&Request) -> Result<Vec<Job>, ReproduceError>,
    /// Its findings, tables, checks and figures, from the outputs of the jobs of all wanted parts.
    /// What two parts have in common is kept once.
    pub evaluate: fn(&Request, &Outputs) -> Result<Reproduction, ReproduceError>,
}

/// The plan of a part for which nothing is run.
///
/// # Errors
/// None.
pub const fn no_jobs(_: &Request) -> Result<Vec<Job>, ReproduceError> {
    Ok(vec![])
}

/// A paper's experiments, ready to be repeated.
pub trait Study: Sync {
    /// The paper.
    fn paper(&self) -> &Paper;

    /// Its parts, in order; at least one.
    fn parts(&self) -> &[Part];

    /// Options that it understands.
    fn knobs(&self) -> &[Knob] {
        &[]
    }

    /// The page in Markdown, with [placeholders](super::page).
    fn page(&self) -> &str;

    /// Files of the studies whose code makes outputs of jobs, beside those that make the jobs:
    /// `a3/reading.rs`. A change of one of them makes the outputs in the cache worthless, so they
    /// hold no evaluation.
    fn reading(&self) -> &[&str] {
        &[]
    }

    /// Its known misses: a `pins.toml` ([`pin`](super::pin) has its form).
    fn pins(&self) -> &str;
}

/// The jobs of the wanted parts, each once.
pub(super) fn plan(study: &dyn Study, request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs: Vec<Job> = vec![];
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for part in study.parts().iter().filter(|part| request.wants(part.name)) {
        for mut job in (part.plan)(request)? {
            job.part = part.name;
            match keys.get(job.id()) {
                None => {
                    keys.insert(job.id().to_owned(), job.identity().to_owned());
                    jobs.push(job);
                }
                Some(key) if key == job.identity() => {}
                Some(_) => {
                    let message = format!("two different jobs are named {:?}", job.id());
                    return Err(ReproduceError::Study { study: study.paper().name.to_owned(), message });
                }
            }
        }
    }
    Ok(jobs)
}
