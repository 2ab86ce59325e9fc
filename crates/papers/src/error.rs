//! Why a reproduction could not be made. A check that fails is none of these.

use ackline_lab::RunError;
use ackline_lab::ScenarioError;
use thiserror::Error;

/// Why a reproduction could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// What was asked for is not there; says what is.
    #[error("{0}")]
    Request(String),
    /// Data of an earlier run that do not have what is asked for; says how to make them.
    #[error("{0}")]
    Data(String),
    /// A run, a file or a plot.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A job of a study.
    #[error("{study}, {job}: {message}")]
    Job {
        /// The study.
        study: String,
        /// The job.
        job: String,
        /// Why it failed.
        message: String,
    },
    /// A study that is not in itself consistent: a mistake of its author.
    #[error("{study}: {message}")]
    Study {
        /// The study.
        study: String,
        /// What is wrong.
        message: String,
    },
}

impl From<ScenarioError> for ReproduceError {
    fn from(error: ScenarioError) -> Self {
        Self::Run(error.into())
    }
}
