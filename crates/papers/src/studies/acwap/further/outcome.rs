//! What came out of the runs of a control under a condition.

use super::super::reading::{Flow, Reading};
use super::conditions::{Condition, Control, id, seeds};
use crate::error::ReproduceError;
use crate::{Cell, Outputs, Request};

/// What [`Runs::cells`] shows.
pub(super) const COLUMNS: [&str; 6] = ["utilisation %", "queue, ms", "events", "drops", "marks", "timeouts"];

/// The runs of a control under a condition.
pub(super) struct Runs(Vec<Reading>);

impl Runs {
    pub(super) fn read(
        request: &Request,
        outputs: &Outputs,
        condition: &Condition,
        control: &Control,
    ) -> Result<Self, ReproduceError> {
        let runs = (0..seeds(request)).map(|seed| outputs.get(&id(condition, control, seed)));
        runs.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn of(&self, number: impl Fn(&Reading) -> f64) -> Vec<f64> {
        self.0.iter().map(number).collect()
    }

    /// A number summed over the flows.
    fn sum(&self, number: fn(&Flow) -> f64) -> Vec<f64> {
        self.of(|run| run.flows.iter().map(number).sum())
    }

    /// Percent of the link.
    pub(super) fn utilisation(&self) -> Vec<f64> {
        self.of(|run| 100.0 * run.utilisation)
    }

    pub(super) fn drops(&self) -> Vec<f64> {
        self.sum(|flow| flow.drops as f64)
    }

    /// Over the whole run.
    pub(super) fn timeouts(&self) -> Vec<f64> {
        self.sum(|flow| flow.timeouts as f64)
    }

    pub(super) fn cells(&self) -> [Cell; 6] {
        [
            Cell::estimate(&self.utilisation(), 1),
            Cell::estimate(&self.of(|run| run.delay), 1),
            Cell::estimate(&self.sum(Flow::events), 1),
            Cell::estimate(&self.drops(), 1),
            Cell::estimate(&self.of(|run| run.marks as f64), 0),
            Cell::estimate(&self.timeouts(), 1),
        ]
    }
}
