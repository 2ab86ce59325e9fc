//! All live runs beside their twins.

use super::super::cell::{Cell, Takes};
use super::super::matrix::Matrix;
use super::super::runs::{self, Finished, Stand};
use super::agreement::{Agreement, RULES};
use super::machine::Machine;
use super::runs::{LiveOptions, LiveRun, LiveRuns, run_live};
use super::sender::Sender;
use crate::error::RunError;
use crate::stats::mean;
use ackline_registry::Registry;

/// What an evaluation in real time gives.
#[derive(Clone, Debug)]
pub struct LiveEvaluation {
    /// The cells that ran.
    pub matrix: Matrix,
    /// The hash of the simulator's sources.
    pub engine: String,
    /// Where they ran.
    pub machine: Machine,
    /// Who sent.
    pub senders: Vec<Sender>,
    pub(super) live: LiveRuns,
    /// By the name of ackline's control.
    pub(super) twins: Finished,
    /// Live runs that had been finished before.
    pub resumed: usize,
}

/// Simulates the cells, then runs them by the real clock.
///
/// # Errors
/// If a scenario cannot be read, a host cannot be made, or a file cannot be written.
pub fn evaluate_live(
    matrix: Matrix,
    senders: Vec<Sender>,
    registry: &Registry,
    options: &LiveOptions<'_>,
) -> Result<LiveEvaluation, RunError> {
    let mut controls = vec![];
    for twin in senders.iter().filter_map(|sender| sender.twin.as_ref()) {
        if !controls.contains(twin) {
            controls.push(twin.clone());
        }
    }
    let jobs = runs::jobs(&matrix, &controls, options.runs);
    let (twins, _) = runs::run_all(&jobs, registry, options.runs)?;
    let (live, resumed) = run_live(&matrix, &senders, registry, options)?;
    let (engine, machine) = (options.runs.engine.clone(), options.machine.clone());
    Ok(LiveEvaluation { matrix, engine, machine, senders, live, twins, resumed })
}

/// A number by the real clock, and simulated; each is there if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Both {
    pub(super) live: Option<f64>,
    pub(super) twin: Option<f64>,
}

/// Reads a number of one run: by the real clock, or simulated.
type Side = fn(&LiveEvaluation, Option<&Sender>, &str, u32, &str) -> Option<f64>;

/// What becomes of a cell of one sender.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    /// All its live runs are void.
    Void,
    /// The control has no twin, or its twin did not end.
    Alone,
    /// It agrees with its twin.
    Agrees,
    /// It differs, in these numbers.
    Differs(Vec<String>),
}

impl LiveEvaluation {
    /// True if its runs are short.
    pub(super) fn is_quick(&self) -> bool {
        self.matrix.name.ends_with("quick")
    }

    /// Live runs of a cell, by seed; of `None` the victims alone.
    pub(super) fn runs_of<'a>(
        &'a self,
        sender: Option<&Sender>,
        cell: &str,
    ) -> impl Iterator<Item = (u32, &'a LiveRun)> + use<'a> {
        let name = sender.map_or("", |sender| &sender.name).to_owned();
        let from = (cell.to_owned(), name.clone(), 0);
        let runs = self.live.range(from..=(cell.to_owned(), name, u32::MAX));
        runs.map(|((_, _, seed), run)| (*seed, run))
    }

    /// The simulated twins of a cell, by seed.
    pub(super) fn twins_of<'a>(
        &'a self,
        sender: Option<&Sender>,
        cell: &str,
    ) -> impl Iterator<Item = (u32, &'a Stand)> + use<'a> {
        // No control has this name.
        let twin = |sender: &Sender| sender.twin.as_ref().map_or("-", |twin| &twin.spec).to_owned();
        let spec = sender.map_or_else(String::new, twin);
        let from = (cell.to_owned(), spec.clone(), 0);
        let twins = self.twins.range(from..=(cell.to_owned(), spec, u32::MAX));
        twins.map(|((_, _, seed), stand)| (*seed, stand))
    }

    fn live_number(&self, sender: Option<&Sender>, cell: &str, seed: u32, measure: &str) -> Option<f64> {
        let (_, run) = self.runs_of(sender, cell).find(|(of, _)| *of == seed)?;
        number(&run.stand, measure).filter(|_| !run.is_void())
    }

    fn twin_number(&self, sender: Option<&Sender>, cell: &str, seed: u32, measure: &str) -> Option<f64> {
        let (_, stand) = self.twins_of(sender, cell).find(|(of, _)| *of == seed)?;
        number(stand, measure)
    }

    /// A measure of a cell: means over the seeds whose live runs are not void; simulated over all
    /// seeds, if all are. `kept` is what a victim keeps of its rate alone.
    pub(super) fn both(&self, sender: &Sender, cell: &Cell, measure: &str) -> Both {
        let runs = || self.runs_of(Some(sender), &cell.id);
        let all_void = runs().all(|(_, run)| run.is_void());
        let seeds: Vec<u32> =
            runs().filter(|(_, run)| all_void || !run.is_void()).map(|(seed, _)| seed).collect();
        let mean_of = |side: Side| {
            let numbers: Vec<f64> =
                seeds.iter().filter_map(|seed| self.number(side, sender, cell, *seed, measure)).collect();
            (!numbers.is_empty()).then(|| mean(&numbers))
        };
        Both { live: mean_of(Self::live_number), twin: mean_of(Self::twin_number) }
    }

    fn number(&self, side: Side, sender: &Sender, cell: &Cell, seed: u32, measure: &str) -> Option<f64> {
        match (measure, cell.facts.reference.as_deref()) {
            ("kept", Some(alone)) => {
                let with = side(self, Some(sender), &cell.id, seed, "victims")?;
                Some(with / side(self, None, alone, seed, "victims")?.max(1.0))
            }
            _ => side(self, Some(sender), &cell.id, seed, measure),
        }
    }

    /// The numbers of a cell that the rule compares.
    pub(super) fn agreements(&self, sender: &Sender, cell: &Cell) -> Vec<Agreement> {
        let compared = RULES.iter().filter_map(|rule| {
            let Both { live, twin } = self.both(sender, cell, rule.0);
            Some(Agreement::of(*rule, live?, twin?))
        });
        compared.collect()
    }

    pub(super) fn finding(&self, sender: &Sender, cell: &Cell) -> Finding {
        if self.runs_of(Some(sender), &cell.id).all(|(_, run)| run.is_void()) {
            return Finding::Void;
        }
        let agreements = self.agreements(sender, cell);
        if agreements.is_empty() {
            return Finding::Alone;
        }
        let differ = agreements.iter().filter(|agreement| !agreement.agrees);
        let differ: Vec<String> = differ.map(|agreement| agreement.word().to_owned()).collect();
        if differ.is_empty() { Finding::Agrees } else { Finding::Differs(differ) }
    }

    /// Cells in which somebody sends under test.
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.matrix.cells.iter().filter(|cell| cell.takes != Takes::Nobody)
    }

    /// All findings, in the order of cells and senders.
    pub(super) fn findings(&self) -> Vec<(&Cell, &Sender, Finding)> {
        let all = self.cells().flat_map(|cell| self.senders.iter().map(move |sender| (cell, sender)));
        all.map(|(cell, sender)| (cell, sender, self.finding(sender, cell))).collect()
    }

    /// Void runs: cell, sender, seed, the run.
    pub(super) fn void(&self) -> Vec<(&str, &str, u32, &LiveRun)> {
        let void = self.live.iter().filter(|(_, run)| run.is_void());
        void.map(|((cell, sender, seed), run)| (cell.as_str(), sender.as_str(), *seed, run)).collect()
    }

    /// Runs that are not void and did not end as they should: cell, sender, seed, why.
    pub(super) fn broken(&self) -> Vec<(&str, &str, u32, String)> {
        let valid = self.live.iter().filter(|(_, run)| !run.is_void());
        valid
            .filter_map(|((cell, sender, seed), run)| {
                Some((cell.as_str(), sender.as_str(), *seed, run.stand.fault()?))
            })
            .collect()
    }

    /// Number of live runs, and how many of them are void.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.live.len(), self.void().len())
    }

    /// What did not end as it should, a line each: runs that stalled, panicked or flooded, and how
    /// many are void.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let broken = self.broken().into_iter();
        let mut failures: Vec<String> = broken
            .map(|(cell, sender, seed, why)| format!("{} {cell} seed {seed}: {why}", who(sender)))
            .collect();
        let (all, void) = self.counts();
        if void > 0 {
            failures.push(format!("{void} of {all} runs are void: the machine did not keep up"));
        }
        failures
    }
}

/// A sender by its name; no name is that of the victims alone.
pub(super) const fn who(sender: &str) -> &str {
    if sender.is_empty() { "the victim alone" } else { sender }
}

fn number(stand: &Stand, measure: &str) -> Option<f64> {
    match stand {
        Stand::Done(measures) => measures.get(measure).copied(),
        Stand::Flood | Stand::Panicked(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::live_matrix;
    use super::*;
    use crate::league::Measures;

    /// A run of Reno in one cell that delivered so much, and whether it is void.
    fn with(goodput: f64, void: &[&str]) -> LiveEvaluation {
        let machine = Machine::default();
        let sender = Sender::named("reno", &machine, &Registry::default()).unwrap();
        let run = LiveRun {
            stand: Stand::Done(Measures::from([("goodput".to_owned(), goodput)])),
            void: void.iter().map(|why| (*why).to_owned()).collect(),
            late_p50_us: 0.0,
            late_p99_us: 0.0,
            late_max_us: 0.0,
            before: 0,
        };
        LiveEvaluation {
            matrix: live_matrix(true).only(&["S-20-40-1".to_owned()]).unwrap(),
            engine: String::new(),
            machine,
            senders: vec![sender],
            live: LiveRuns::from([(("S-20-40-1".to_owned(), "reno".to_owned(), 1), run)]),
            twins: Finished::new(),
            resumed: 0,
        }
    }

    #[test]
    fn a_run_that_delivers_nothing_is_a_failure_unless_it_is_void() {
        let stalled = with(0.0, &[]);
        assert_eq!(stalled.failures(), ["reno S-20-40-1 seed 1: stalled: nothing arrived"]);
        assert!(stalled.to_text().contains("reno in S-20-40-1, seed 1: stalled"), "{}", stalled.to_text());
        assert_eq!(with(0.0, &["late"]).failures(), ["1 of 1 runs are void: the machine did not keep up"]);
        assert!(with(1e6, &[]).failures().is_empty());
    }
}
