//! Jobs: the independent pieces of a study's work.

use super::error::ReproduceError;
use crate::folder;
use crate::run::{Outcome, run_one};
use crate::scenario::Scenario;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The work of a job: its output, or why there is none.
type Work = Box<dyn Fn() -> Result<Value, String> + Send + Sync>;

/// One piece of work, whose output follows from its identity alone.
pub struct Job {
    id: String,
    identity: String,
    work: Work,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, identity, work: _ } = self;
        f.debug_struct("Job").field("id", id).field("identity", identity).finish_non_exhaustive()
    }
}

impl Job {
    /// A job of any kind. `id` names it within its study; `identity` holds all on which its output depends, beside the
    /// version of the program: parameters, seeds, lengths.
    pub fn new<T: Serialize>(
        id: impl Into<String>,
        identity: impl Into<String>,
        work: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        let work = move || serde_json::to_value(work()?).map_err(|error| error.to_string());
        Self { id: id.into(), identity: identity.into(), work: Box::new(work) }
    }

    /// A run of a point of a scenario. Its output is its [`RunResult`](crate::RunResult).
    pub fn scenario(id: impl Into<String>, scenario: &Arc<Scenario>, point: usize, repetition: u32) -> Self {
        Self::outcome(id, "result", scenario, point, repetition, |outcome| outcome.result)
    }

    /// The same, with what `read` takes from the run and its record. `reading` names what is taken.
    pub fn outcome<T: Serialize>(
        id: impl Into<String>,
        reading: &str,
        scenario: &Arc<Scenario>,
        point: usize,
        repetition: u32,
        read: impl Fn(Outcome) -> T + Send + Sync + 'static,
    ) -> Self {
        let identity = format!("{reading}\n{}", scenario.identity(point, repetition));
        let scenario = scenario.clone();
        let work =
            move || run_one(&scenario, point, repetition).map(&read).map_err(|error| error.to_string());
        Self::new(id, identity, work)
    }

    /// Its name within its study.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What its output depends on, as 128 bits.
    pub(super) fn key(&self) -> String {
        folder::key(&format!("{}\n{}\n{}", env!("CARGO_PKG_VERSION"), self.id, self.identity))
    }

    pub(super) fn run(&self) -> Result<Value, String> {
        (self.work)()
    }
}

/// The outputs of a study's jobs, by id.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    study: String,
    values: BTreeMap<String, Value>,
}

impl Outputs {
    pub(super) fn new(study: &str, values: BTreeMap<String, Value>) -> Self {
        Self { study: study.to_owned(), values }
    }

    /// The output of a job, as the type that its work gave.
    ///
    /// # Errors
    /// If no job had this id, or its output is of another type.
    pub fn get<T: DeserializeOwned>(&self, id: &str) -> Result<T, ReproduceError> {
        let fault = |message| ReproduceError::Study { study: self.study.clone(), message };
        let value = self.values.get(id).ok_or_else(|| fault(format!("there was no job {id:?}")))?;
        T::deserialize(value).map_err(|error| fault(format!("the output of job {id:?}: {error}")))
    }
}
