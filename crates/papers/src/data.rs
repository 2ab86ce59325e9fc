//! The data of a run: the output of every job, from which pages, figures and checks can be made
//! again.

pub(crate) mod archive;
pub(crate) mod cache;

use super::error::ReproduceError;
use super::job::{Beginning, Job, JobOutput};
use super::request::Request;
use super::sources;
use super::study::Study;
use ackline_lab::RunError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// Where outputs come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The command that gave them.
    pub command: String,
    /// The version of ackline.
    pub version: String,
    /// The commit of its sources, with a `+` if they differed from it; `None` if it was not built
    /// in a repository.
    pub commit: Option<String>,
    /// The hash of the sources that decide what a run gives.
    pub engine: String,
    /// The hash of these and of the study's code that plans and reads runs.
    #[serde(default)]
    pub code: String,
    /// Processor time of all jobs, s: of those from the cache, what they took when they were run.
    pub cpu_s: f64,
    /// Time from the first job's start to the last one's end, of all papers of the command, s.
    pub wall_s: f64,
    /// Jobs whose outputs were in the cache.
    pub cached: usize,
    /// Jobs that ran at a time.
    pub threads: usize,
}

impl Origin {
    /// True if the sources of this program are those that gave the outputs.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.engine == sources::ENGINE
    }
}

/// Jobs by id, with the beginnings of those that take long.
pub(super) type Sample = BTreeMap<String, Option<Beginning>>;

/// A file of data.
#[derive(Serialize, Deserialize)]
pub(super) struct Data {
    pub(super) origin: Origin,
    parts: Vec<String>,
    pub(super) quick: bool,
    pub(super) seeds: Option<u32>,
    pub(super) scale: Option<f64>,
    /// What is run again if the sources are other ones.
    #[serde(default)]
    pub(super) sample: Sample,
    /// By id.
    pub(super) jobs: BTreeMap<String, StoredJob>,
}

/// The output of a job, and of which one.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredJob {
    pub(super) identity: String,
    #[serde(flatten)]
    pub(super) done: JobOutput,
}

impl Data {
    pub(super) fn new(
        origin: Origin,
        request: &Request,
        sample: Sample,
        jobs: BTreeMap<String, StoredJob>,
    ) -> Self {
        Self {
            origin,
            parts: request.parts.iter().map(|part| (*part).to_owned()).collect(),
            quick: request.quick,
            seeds: request.seeds,
            scale: request.scale,
            sample,
            jobs,
        }
    }

    /// Its file in a folder of data.
    pub(super) fn path(folder: &Path, study: &dyn Study) -> PathBuf {
        folder.join(format!("{}.json.gz", study.paper().stem))
    }

    pub(super) fn load(folder: &Path, study: &dyn Study) -> Result<Self, RunError> {
        let path = Self::path(folder, study);
        archive::load(&path).map_err(|error| RunError::file("read", &path, error))
    }

    pub(super) fn save(&self, folder: &Path, study: &dyn Study) -> Result<(), RunError> {
        archive::save(&Self::path(folder, study), self)
    }

    /// What was asked of the study when the data were made, without parts that are not among
    /// `wanted`; empty: all of them.
    ///
    /// # Errors
    /// If a wanted part is not in the data.
    pub(super) fn request(
        &self,
        study: &dyn Study,
        wanted: &[&'static str],
    ) -> Result<Request, ReproduceError> {
        let has = |part: &str| self.parts.iter().any(|own| own == part);
        if let Some(missing) = wanted.iter().find(|part| !has(part)) {
            return Err(ReproduceError::Data(format!(
                "the data of {} have no outputs of {missing:?} (they have {}); make them again with {}",
                study.paper().name,
                self.parts.join(", "),
                again(study)
            )));
        }
        let parts = study.parts().iter().map(|part| part.name);
        Ok(Request {
            parts: parts.filter(|part| has(part) && (wanted.is_empty() || wanted.contains(part))).collect(),
            quick: self.quick,
            seeds: self.seeds,
            scale: self.scale,
        })
    }
}

/// The hash of all sources on which the outputs of a study's jobs depend.
pub(super) fn code(study: &dyn Study, jobs: &[Job]) -> String {
    let codes: BTreeSet<String> = jobs.iter().map(|job| job.code(study.reading())).collect();
    let all: Vec<&str> = codes.iter().map(String::as_str).collect();
    format!("{:032x}", XxHash3_128::oneshot(all.join("\n").as_bytes()))
}

/// The command that makes the data of a study.
pub(super) fn again(study: &dyn Study) -> String {
    format!("ackline reproduce {} --out DIR", study.paper().name)
}
