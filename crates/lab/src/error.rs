//! What can be wrong with a scenario, and where.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Something in a scenario is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Name of the scenario: its file.
    pub name: String,
    /// Its location.
    pub place: Location,
    /// The key, as a path from the top: `link.bottleneck.rate`. Empty if the text is no TOML.
    pub key: String,
    /// What is wrong, what is allowed, and what may have been meant.
    pub message: String,
}

/// A location in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In its text. Both are counted from 1; columns are characters.
    Text {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In a value that stands beside the text: `--set` or a value of a sweep, as it was given.
    Given(String),
    /// Nowhere in particular.
    Nowhere,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.place {
            Location::Text { line, column } => write!(f, ":{line}:{column}")?,
            Location::Given(text) => write!(f, ": {text}")?,
            Location::Nowhere => {}
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// Why a batch of runs ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario, at one of its points.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A file or folder.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file of a run folder does not hold what it should.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The scenario does not have the points that are asked for.
    #[error("{0}")]
    Points(String),
    /// The plots cannot have the axes that are asked for.
    #[error("{0}")]
    Axes(String),
    /// Folders cannot be joined.
    #[error("{0}")]
    Merge(String),
    /// The run cannot take place.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The hosts send more packets than the run has room for.
    #[error("{packets} packets were sent, more than the run has room for")]
    Flood {
        /// How many.
        packets: u64,
    },
    /// The pool of threads could not be made.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        message: String,
    },
}

impl RunError {
    /// A file that cannot be read or written, as in "cannot `what` PATH".
    #[must_use]
    pub fn file(what: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { what, path: path.to_owned(), source }
    }
}

/// Why a stage cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StageError {
    /// The machine does not do what every run needs.
    #[error("{0}")]
    Machine(String),
    /// It lacks what a key of the scenario asks for.
    #[error("{0}")]
    Setting(String),
}
