//! The same points on two stages: where the numbers differ by more than their spread.

use crate::grid::{align, trimmed};
use crate::scenario::Param;
use crate::stats::Estimate;
use crate::summary::Summary;
use ackline_plot::short;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// With one run of a point on a stage: the share of the larger value that counts as spread.
const WITHOUT_REPETITIONS: f64 = 0.05;
/// Repetitions whose intervals are narrower than this share of the larger value have this spread.
const LEAST: f64 = 0.01;
/// What of this is a difference.
const RULE: &str = "A number differs if the means are farther apart than the spread: the halves of the two 95 % confidence intervals that face \
                    each other, together, at least 1 % of the larger mean; 5 % of it if a point has one run.";

/// Numbers of a simulation beside those of real time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// When two numbers differ, in a sentence.
    pub rule: &'static str,
    /// One for each point and number, in order.
    pub rows: Vec<Compared>,
    /// Runs whose times the machine did not keep, and why.
    pub invalid: Vec<String>,
}

/// One number of one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Values of the point.
    pub params: Vec<Param>,
    /// Name and unit of the number.
    pub metric: String,
    /// `None` if the simulation did not give it.
    pub simulated: Option<Estimate>,
    /// `None` if real time did not.
    pub real_time: Option<Estimate>,
    /// The mean in real time less the simulated one.
    pub difference: Option<f64>,
    /// What difference the repetitions explain.
    pub spread: Option<f64>,
    /// Farther apart than that, or given by one of them alone.
    pub differs: bool,
}

impl Comparison {
    /// Of summaries of the same points.
    #[must_use]
    pub fn of(simulated: &Summary, real_time: &Summary) -> Self {
        let mut rows = vec![];
        for (one, other) in simulated.points.iter().zip(&real_time.points) {
            let of_other = |name: &str| {
                let place = real_time.metrics.iter().position(|metric| metric.name == name)?;
                other.estimates[place]
            };
            for (metric, estimate) in simulated.metrics.iter().zip(&one.estimates) {
                rows.push(Compared::of(&one.params, metric.heading(), *estimate, of_other(&metric.name)));
            }
            for (metric, estimate) in real_time.metrics.iter().zip(&other.estimates) {
                if simulated.metrics.iter().all(|known| known.name != metric.name) {
                    rows.push(Compared::of(&one.params, metric.heading(), None, *estimate));
                }
            }
        }
        rows.retain(|row| row.simulated.is_some() || row.real_time.is_some());
        Self { rule: RULE, rows, invalid: real_time.invalid.clone() }
    }

    /// As a table for a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let axes = self.rows.first().map_or(&[][..], |row| &row.params);
        let headings = ["", "simulated", "real time", "difference", "spread", ""].map(str::to_owned);
        table.set_header(axes.iter().map(|param| param.path.clone()).chain(headings).collect::<Vec<_>>());
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), short);
        let mean = |estimate: Option<Estimate>| number(estimate.map(|estimate| estimate.mean));
        for row in &self.rows {
            let params = row.params.iter().map(|param| param.value.clone());
            let cells = [
                row.metric.clone(),
                mean(row.simulated),
                mean(row.real_time),
                number(row.difference),
                number(row.spread),
                if row.differs { "differs" } else { "" }.to_owned(),
            ];
            table.add_row(params.chain(cells).collect::<Vec<_>>());
        }
        align(&mut table);
        let (count, all) = (self.rows.iter().filter(|row| row.differs).count(), self.rows.len());
        let invalid: String = self.invalid.iter().map(|reason| format!("INVALID: {reason}\n")).collect();
        format!("{}\n\n{count} of {all} numbers differ. {RULE}\n{invalid}", trimmed(&table))
    }
}

impl Compared {
    fn of(
        params: &[Param],
        metric: String,
        simulated: Option<Estimate>,
        real_time: Option<Estimate>,
    ) -> Self {
        let both = simulated.zip(real_time);
        let difference = both.map(|(one, other)| other.mean - one.mean);
        let spread = both.map(|(one, other)| spread(&one, &other));
        let within = difference.zip(spread).is_some_and(|(difference, spread)| difference.abs() <= spread);
        Self { params: params.to_vec(), metric, simulated, real_time, difference, spread, differs: !within }
    }
}

fn spread(one: &Estimate, other: &Estimate) -> f64 {
    let larger = one.mean.abs().max(other.mean.abs());
    let (lower, upper) = if one.mean <= other.mean { (one, other) } else { (other, one) };
    match (lower.ci, upper.ci) {
        (Some((_, top)), Some((bottom, _))) => {
            ((top - lower.mean) + (upper.mean - bottom)).max(larger * LEAST)
        }
        _ => larger * WITHOUT_REPETITIONS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(one: &[f64], other: &[f64]) -> Compared {
        Compared::of(&[], "goodput [Mbit/s]".to_owned(), Estimate::of(one), Estimate::of(other))
    }

    /// Of two values the bootstrap's interval spans both.
    #[test]
    fn intervals_that_meet_do_not_differ() {
        let near = compared(&[10.0, 12.0], &[11.0, 14.0]);
        assert_eq!((near.difference, near.spread, near.differs), (Some(1.5), Some(2.5), false));
        let far = compared(&[14.0, 15.0], &[10.0, 12.0]);
        assert_eq!((far.difference, far.spread, far.differs), (Some(-3.5), Some(1.5), true));
    }

    #[test]
    fn without_spread_there_is_a_least_one() {
        assert!(!compared(&[100.0, 100.0], &[100.9, 100.9]).differs);
        assert!(compared(&[100.0, 100.0], &[101.5, 101.5]).differs);
        assert!(!compared(&[100.0], &[105.0]).differs);
        assert!(compared(&[100.0], &[106.0]).differs);
        assert!(!compared(&[0.0], &[0.0]).differs);
    }

    #[test]
    fn a_number_of_one_stage_differs() {
        let row = compared(&[1.0], &[]);
        assert_eq!((row.difference, row.differs), (None, true));
    }
}
