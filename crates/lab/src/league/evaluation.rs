//! An evaluation: all runs of the contestants, and what the criteria say of them.

use super::contestant::Contestant;
use super::criteria::{CRITERIA, Criterion, Outcome};
use super::matrix::Matrix;
use super::runs::{self, Finished, Options, Stand};
use super::sanity::{self, Sanity};
use crate::error::RunError;
use ackline_registry::Registry;

/// A contestant, and what each criterion says of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Who.
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
    /// How it was asked for.
    pub options: Options,
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
        options: options.clone(),
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
            .extend(missed.map(|row| format!("{} misses what is known of it in {}", row.control, row.cell)));
        failures
    }
}

/// What criteria read from.
pub(super) struct View<'a> {
    pub(super) matrix: &'a Matrix,
    pub(super) contestants: &'a [Contestant],
    pub(super) finished: &'a Finished,
}

impl View<'_> {
    /// A measure of a policy in a cell, one value per seed; `None` if one lacks it. Of cells for
    /// nobody, `spec` is empty.
    pub(super) fn values(&self, spec: &str, cell: &str, measure: &str) -> Option<Vec<f64>> {
        let runs = self
            .finished
            .range((cell.to_owned(), spec.to_owned(), 0)..=(cell.to_owned(), spec.to_owned(), u32::MAX));
        let values: Option<Vec<f64>> = runs
            .map(|(_, stand)| match stand {
                Stand::Done(measures) => measures.get(measure).copied(),
                Stand::Flood | Stand::Panicked(_) => None,
            })
            .collect();
        values.filter(|values| !values.is_empty())
    }

    /// Reno's and CUBIC's values of a cell, seed by seed the worse of both: the smaller if more is
    /// better.
    pub(super) fn standard(&self, cell: &str, measure: &str, more_is_better: bool) -> Option<Vec<f64>> {
        let [reno, cubic] = ["reno", "cubic"].map(|spec| self.values(spec, cell, measure));
        let worse = |(one, other): (f64, f64)| if more_is_better { one.min(other) } else { one.max(other) };
        Some(reno?.into_iter().zip(cubic?).map(worse).collect())
    }

    fn broken(&self, contestant: &Contestant) -> Vec<(String, u32, String)> {
        let ours = self.finished.iter().filter(|((_, spec, _), _)| *spec == contestant.spec);
        ours.filter_map(|((cell, _, seed), stand)| {
            let why = match stand {
                Stand::Flood => "fail: flood".to_owned(),
                Stand::Panicked(message) => format!("panicked: {message}"),
                Stand::Done(measures) if measures.get("goodput") == Some(&0.0) => {
                    "stalled: nothing arrived".to_owned()
                }
                Stand::Done(_) => return None,
            };
            Some((cell.clone(), *seed, why))
        })
        .collect()
    }

    /// True if a run of the contestant in the cell did not end as it should.
    pub(super) fn is_broken(&self, spec: &str, cell: &str) -> bool {
        self.finished
            .range((cell.to_owned(), spec.to_owned(), 0)..=(cell.to_owned(), spec.to_owned(), u32::MAX))
            .any(|(_, stand)| !matches!(stand, Stand::Done(_)))
    }
}
