//! An evaluation: all runs of the contestants, and what the criteria say of them.

use super::contestant::Contestant;
use super::criteria::{CRITERIA, Criterion, Outcome};
use super::matrix::Matrix;
use super::runs::{self, Finished, Options};
use super::sanity::{self, Sanity};
use super::view::View;
use crate::error::RunError;
use ackline_registry::Registry;

/// A contestant, and what each criterion says of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The contestant.
    pub contestant: Contestant,
    /// In the order of the criteria.
    pub(super) outcomes: Vec<Outcome>,
    /// Runs that did not end as they should: cell, seed, why.
    pub broken: Vec<(String, u32, String)>,
}

/// What an evaluation gives.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The cells.
    pub matrix: Matrix,
    /// The hash of the simulator's sources.
    pub engine: String,
    /// The contestants, baselines first.
    pub rows: Vec<Row>,
    /// What known controls must give.
    pub(super) sanity: Vec<Sanity>,
    pub(super) finished: Finished,
    /// Runs that had been finished before.
    pub resumed: usize,
    /// Runs that are wanted and not done.
    pub missing: usize,
}

/// Runs what is not finished, and judges.
///
/// # Errors
/// If a scenario cannot be read, a file cannot be written, or threads cannot be started.
pub fn evaluate(
    matrix: Matrix,
    contestants: Vec<Contestant>,
    registry: &Registry,
    options: &Options,
) -> Result<Evaluation, RunError> {
    let jobs = runs::jobs(&matrix, &contestants, options);
    let wanted = jobs.len();
    let (finished, resumed) = runs::run_all(&jobs, registry, options)?;
    let missing = wanted - finished.len();
    let asked = Evaluation {
        matrix,
        engine: options.engine.clone(),
        rows: vec![],
        sanity: vec![],
        finished,
        resumed,
        missing,
    };
    Ok(asked.judged(&contestants))
}

impl Evaluation {
    /// What the criteria say of these contestants.
    pub(super) fn judged(mut self, contestants: &[Contestant]) -> Self {
        let view = View { matrix: &self.matrix, contestants, finished: &self.finished };
        let row = |contestant: &Contestant| Row {
            contestant: contestant.clone(),
            outcomes: CRITERIA.iter().map(|criterion| criterion.outcome(&view, contestant)).collect(),
            broken: view.broken(contestant),
        };
        let rows = contestants.iter().map(row).collect();
        let sanity = sanity::rows(&view);
        (self.rows, self.sanity) = (rows, sanity);
        self
    }

    /// The criteria that have a cell in this matrix.
    pub(super) fn criteria(&self) -> Vec<(usize, &'static Criterion)> {
        let applies = |place: usize| self.rows.iter().any(|row| !row.outcomes[place].variants.is_empty());
        CRITERIA.iter().enumerate().filter(|(place, _)| applies(*place)).collect()
    }

    /// What fails, a line each: runs that broke, baselines that miss what is known of them, and with
    /// `bars` criteria, in a matrix that gives verdicts.
    #[must_use]
    pub fn failures(&self, bars: bool) -> Vec<String> {
        let mut failures = vec![];
        for row in &self.rows {
            let name = &row.contestant.spec;
            for (cell, seed, why) in &row.broken {
                failures.push(format!("{name} {cell} seed {seed}: {why}"));
            }
            if bars && self.matrix.judges() {
                let failed = CRITERIA.iter().zip(&row.outcomes).filter(|(_, outcome)| outcome.fails());
                failures.extend(failed.map(|(criterion, _)| format!("{name} fails {}", criterion.name)));
            }
        }
        let missed = self.sanity.iter().filter(|row| row.voids());
        failures
            .extend(missed.map(|row| format!("{} is outside its known range in {}", row.control, row.cell)));
        failures
    }
}
