//! Live parts: each run of a scenario twice, simulated and by the real clock, and the two compared.

use super::error::ReproduceError;
use super::job::{Job, LiveRun, Outputs};
use super::reproduction::check::Check;
use super::reproduction::table::{Cell, Table};
use super::reproduction::{Comparisons, Reproduction};
use super::request::Request;
use super::scenario::ScenarioText;
use ackline_lab::Scenario;
use ackline_lab::results::RunResult;
use ackline_lab::stats::Estimate;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A scenario whose points are run on both stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    /// Its part, its table, and the beginning of its checks.
    pub(crate) name: &'static str,
    /// What its table shows.
    pub(crate) title: &'static str,
    /// What it runs.
    pub(crate) scenario: ScenarioText,
    /// Its settings of the scenario.
    pub(crate) set: &'static [&'static str],
    /// Its points, in the order of the scenario.
    pub(crate) points: &'static [Point],
    /// What is read of each run.
    pub(crate) measures: &'static [Measure],
    /// Runs of each point, with different seeds.
    pub(crate) runs: u32,
    /// Further settings of the smaller version, which runs each point once.
    pub(crate) quick: &'static [&'static str],
}

/// A point of the scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What the paper has for each measure, as far as it has something.
    pub(crate) paper: &'static [Option<f64>],
    /// It belongs to the smaller version.
    pub(crate) quick: bool,
}

/// A number that is read of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// What it is called in checks.
    pub(crate) name: &'static str,
    /// What it is, with the unit.
    pub(crate) what: &'static str,
    /// Reads it; not a number if the run has none.
    pub(crate) of: fn(&RunResult) -> f64,
    /// Live and simulated agree if the live mean lies within the interval of the simulated runs,
    /// widened by this share of their mean, or by `least` if that is more.
    pub(crate) share: f64,
    /// In the measure's unit.
    pub(crate) least: f64,
    /// Digits behind the point.
    pub(crate) digits: usize,
}

impl Experiment {
    /// What of it is run.
    fn extent(&self, request: &Request) -> Result<Extent, ReproduceError> {
        let quick = if request.quick { self.quick } else { &[] };
        let scenario = self.scenario.with_set(self.set.iter().chain(quick))?;
        let points = self.points.iter().enumerate().filter(|(_, point)| point.quick || !request.quick);
        let runs = request.seeds.unwrap_or(if request.quick { 1 } else { self.runs });
        Ok(Extent { scenario, points: points.collect(), runs })
    }

    fn job(&self, stage: &str, point: &Point, run: u32) -> String {
        format!("{}/{}/{stage}/{run}", self.name, point.name)
    }

    /// A job for each run on each stage.
    pub(crate) fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let Extent { scenario, points, runs } = self.extent(request)?;
        let mut jobs = vec![];
        for (place, point) in points {
            for run in 0..runs {
                jobs.push(Job::scenario(self.job("simulated", point, run), &scenario, place, run));
                jobs.push(Job::live(self.job("live", point, run), &scenario, place, run));
            }
        }
        Ok(jobs)
    }

    /// The table, with a check for each number.
    pub(crate) fn evaluate(
        &self,
        request: &Request,
        outputs: &Outputs,
    ) -> Result<Reproduction, ReproduceError> {
        let Extent { points, runs, .. } = self.extent(request)?;
        let mut found = Reproduction::default();
        if points.is_empty() {
            return Ok(found);
        }
        let mut table = Table::new(self.name, self.title)
            .columns(["", "what", "paper", "simulated", "live", "agrees from", "to"])
            .note(self.note(request.quick));
        let (mut again, mut invalid) = (0, 0);
        let mut conditions = BTreeSet::new();
        for (_, point) in points {
            let (mut simulated, mut live): (Vec<RunResult>, Vec<LiveRun>) = (vec![], vec![]);
            for run in 0..runs {
                simulated.push(outputs.get(&self.job("simulated", point, run))?);
                live.push(outputs.get(&self.job("live", point, run))?);
            }
            again += live.iter().map(|run| run.before).sum::<u32>();
            invalid += live.iter().filter(|run| !run.faults().is_empty()).count();
            found.notes.extend(live.iter().enumerate().flat_map(|(place, run)| {
                let name = format!("{} {}, run {place}", self.name, point.name);
                run.faults().iter().map(move |fault| format!("INVALID: {name}: {fault}."))
            }));
            conditions.extend(live.iter().flat_map(LiveRun::conditions).cloned());
            let live: Vec<RunResult> =
                live.into_iter().filter(|run| run.faults().is_empty()).map(|run| run.result).collect();
            for (place, measure) in self.measures.iter().enumerate() {
                let paper = point.paper.get(place).copied().flatten();
                let bounds = measure.bounds(&measure.read(&simulated), request.quick);
                let (cells, check) = self.compare(point, measure, paper, bounds, &simulated, &live);
                table.row(point.name, cells);
                // The smaller version asks whether the numbers make sense, not whether the machine
                // is fast.
                found.checks.extend((!live.is_empty() || !request.quick).then_some(check));
            }
        }
        if !conditions.is_empty() {
            let conditions: Vec<String> = conditions.into_iter().collect();
            found.notes.push(format!("{}: in live runs {}.", self.name, conditions.join("; ")));
        }
        if again > 0 {
            found.notes.push(format!(
                "{}: live runs that were INVALID and run again: {again}; that were so at the last try, too, and count for nothing: {invalid}.",
                self.name
            ));
        }
        if !found.checks.is_empty() {
            let agree = found.checks.iter().filter(|check| check.ok).count();
            found.comparisons = Comparisons { all: found.checks.len(), agree };
            let (id, what) = (
                format!("{}/agree", self.name),
                "share of the comparisons in which live and simulated agree",
            );
            found.checks.push(Check::at_least(id, what, found.comparisons.share(), Comparisons::WANTED));
        }
        found.tables.push(table);
        Ok(found)
    }

    /// One number on both stages: cells, and the check that they agree.
    fn compare(
        &self,
        point: &Point,
        measure: &Measure,
        paper: Option<f64>,
        bounds: (f64, f64),
        simulated: &[RunResult],
        live: &[RunResult],
    ) -> ([Cell; 6], Check) {
        let (simulated, live) = (measure.read(simulated), measure.read(live));
        let mean = Estimate::of(&live).map_or(f64::NAN, |estimate| estimate.mean);
        let id = format!("{}/{}/{}", self.name, point.name, measure.name);
        let mut check = Check::within(id, format!("live: {}", measure.what), mean, bounds);
        check.paper = paper;
        if let Some(estimate) = Estimate::of(&simulated) {
            check = check.expected(estimate.mean);
        }
        let digits = measure.digits;
        let number = |number: f64| Cell::number(number, digits);
        let live = if live.is_empty() {
            Cell::from("INVALID")
        } else {
            Cell::estimate(&live, digits).within(bounds)
        };
        let cells = [
            Cell::from(measure.what),
            paper.map_or(Cell::from(""), number),
            Cell::estimate(&simulated, digits),
            live,
            number(bounds.0),
            number(bounds.1),
        ];
        (cells, check)
    }

    fn note(&self, quick: bool) -> String {
        if quick {
            return "One run each. Live agrees from half to twice what was simulated.".to_owned();
        }
        let slack = self.measures.iter().map(|measure| {
            let Measure { name, share, least, digits, .. } = measure;
            format!("{name} {:.0} % or {least:.digits$}", 100.0 * share)
        });
        format!(
            "Means with their 95 % intervals. Live agrees from and to: the interval of the simulated mean, widened by a share of \
             the mean or a number, whichever is more ({}).",
            slack.collect::<Vec<_>>().join(", ")
        )
    }
}

impl Measure {
    /// The number of each run that has it.
    fn read(&self, runs: &[RunResult]) -> Vec<f64> {
        runs.iter().map(self.of).filter(|number| number.is_finite()).collect()
    }

    /// Between these the live mean agrees with the simulated runs. Nothing agrees with none. A
    /// `quick` run has no interval: it agrees from half to twice the mean.
    fn bounds(&self, simulated: &[f64], quick: bool) -> (f64, f64) {
        let Some(Estimate { mean, ci, .. }) = Estimate::of(simulated) else { return (f64::NAN, f64::NAN) };
        if quick {
            return ((mean / 2.0 - self.least).max(0.0), mean * 2.0 + self.least);
        }
        let slack = (self.share * mean.abs()).max(self.least);
        let (low, high) = ci.unwrap_or((mean, mean));
        ((low - slack).max(0.0), high + slack)
    }
}

/// What of an experiment is run.
struct Extent {
    scenario: Arc<Scenario>,
    points: Vec<(usize, &'static Point)>,
    runs: u32,
}

/// The goodput of the application `app` in kbit/s, of all its flows.
pub(crate) fn goodput_kbps(result: &RunResult, app: &str) -> f64 {
    let flows: Vec<f64> =
        result.flows.iter().filter(|flow| flow.app == app).map(|flow| flow.goodput_bps / 1e3).collect();
    if flows.is_empty() { f64::NAN } else { flows.iter().sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURE: Measure =
        Measure { name: "m", what: "m", of: |_| f64::NAN, share: 0.1, least: 2.0, digits: 0 };

    #[test]
    fn bounds_are_the_interval_and_the_slack() {
        assert_eq!(MEASURE.bounds(&[100.0], false), (90.0, 110.0));
        assert_eq!(MEASURE.bounds(&[10.0, 10.0], false), (8.0, 12.0));
        assert_eq!(MEASURE.bounds(&[1.0], false), (0.0, 3.0));
        assert!(MEASURE.bounds(&[], false).0.is_nan());
        assert_eq!(MEASURE.bounds(&[100.0], true), (48.0, 202.0));
        assert_eq!(MEASURE.bounds(&[1.0], true), (0.0, 4.0));
    }

    #[test]
    fn an_experiment_names_each_point_of_its_scenario_and_can_be_planned() {
        for study in crate::LIVE {
            for quick in [false, true] {
                let parts = study.parts().iter().map(|part| part.name).collect();
                let request = Request { parts, quick, ..Request::default() };
                for part in study.parts() {
                    let jobs = (part.plan)(&request).unwrap();
                    let live = jobs.iter().filter(|job| job.is_live()).count();
                    assert_eq!(2 * live, jobs.len(), "{}", part.name);
                    assert!(quick || live > 0, "{}", part.name);
                }
            }
        }
    }
}
