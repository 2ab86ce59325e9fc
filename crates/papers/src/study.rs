//! What a study is: a paper, its parts, and how they are repeated.

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;

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

/// What can be asked of a study beyond its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// `--quick`: a smaller version that takes seconds or minutes, with every main claim of the
    /// paper in it.
    Quick,
    /// `--seeds N`: so many runs with different seeds if the paper gives means.
    Seeds,
    /// `--scale X`: the paper's durations or volumes times X.
    Scale,
}

impl Knob {
    /// The option on the command line.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Quick => "--quick",
            Self::Seeds => "--seeds",
            Self::Scale => "--scale",
        }
    }
}

/// What was asked of a study, checked against what it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Chosen parts, in the study's order; never empty if the engine made it.
    pub parts: Vec<&'static str>,
    /// The smaller version.
    pub quick: bool,
    /// Seeds per point, if the study's own number is not wanted.
    pub seeds: Option<u32>,
    /// Factor on durations or volumes, if the study's own are not wanted.
    pub scale: Option<f64>,
}

impl Request {
    /// True if the part is wanted.
    #[must_use]
    pub fn wants(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }
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
