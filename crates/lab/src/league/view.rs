//! Measures of all runs, as criteria look them up.

use super::contestant::Contestant;
use super::matrix::Matrix;
use super::runs::{Finished, Stand};

/// What criteria read from.
pub(super) struct View<'a> {
    pub(super) matrix: &'a Matrix,
    pub(super) contestants: &'a [Contestant],
    pub(super) finished: &'a Finished,
}

impl View<'_> {
    /// A measure of a policy in a cell, one value per seed; `None` if one lacks it. Of cells
    /// without the policy, `spec` is empty.
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

    /// Runs of the contestant that did not end as they should: cell, seed, why.
    pub(super) fn broken(&self, contestant: &Contestant) -> Vec<(String, u32, String)> {
        let ours = self.finished.iter().filter(|((_, spec, _), _)| *spec == contestant.spec);
        ours.filter_map(|((cell, _, seed), stand)| {
            let why = stand.fault()?;
            Some((cell.clone(), *seed, why))
        })
        .collect()
    }

    /// True if a run of the contestant in the cell did not end as it should.
    pub(super) fn is_broken(&self, spec: &str, cell: &str) -> bool {
        self.finished
            .range((cell.to_owned(), spec.to_owned(), 0)..=(cell.to_owned(), spec.to_owned(), u32::MAX))
            .any(|(_, stand)| stand.fault().is_some())
    }
}
