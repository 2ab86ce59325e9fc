//! Runs by the real clock, one after the other.
//!
//! ```text
//!   DIR/runs/live-CELL-SEED-KEY.json     one file per run: who, where, key, measures, lateness
//! ```

use super::super::cell::{Cell, Takes};
use super::super::matrix::Matrix;
use super::super::runs::{Options, Stand, run_on};
use super::machine::Machine;
use super::sender::Sender;
use crate::error::RunError;
use crate::folder::{Folder, json};
use crate::scenario::Scenario;
use crate::stage::{Stages, Validity};
use ackline_registry::Registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How often a run is tried until it is not void.
const TRIES: u32 = 3;
/// If one packet of a hundred reaches its host later than this, the run is void, us.
const LATEST_US: f64 = 500.0;
/// What a run takes beside the time of its scenario, s.
const AROUND: f64 = 0.2;

/// How to run by the real clock.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions<'a> {
    /// What they have in common with simulated runs. Parts and threads are of the simulated twins.
    pub runs: &'a Options,
    /// Where runs take place.
    pub stages: &'a dyn Stages,
    /// What they depend on beside their scenario.
    pub machine: &'a Machine,
    /// Takes a line about each run.
    pub tell: fn(&str),
}

/// One run by the real clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveRun {
    /// How it ended.
    pub stand: Stand,
    /// Why nothing can be concluded from it. Empty if something can.
    pub void: Vec<String>,
    /// Departures to hosts: half were late by at most this, us.
    pub late_p50_us: f64,
    /// 99 % were.
    pub late_p99_us: f64,
    /// The latest.
    pub late_max_us: f64,
    /// Runs before it that were void.
    pub before: u32,
}

impl LiveRun {
    /// True if the machine did not keep up with it.
    #[must_use]
    pub fn is_void(&self) -> bool {
        !self.void.is_empty()
    }
}

/// A file of `runs/`.
#[derive(Serialize, Deserialize)]
struct Kept {
    sender: String,
    cell: String,
    seed: u32,
    key: String,
    run: LiveRun,
}

/// Runs by cell, sender and seed. The victims alone stand under an empty name.
pub(super) type LiveRuns = BTreeMap<(String, String, u32), LiveRun>;

/// One run that is wanted.
struct LiveJob<'a> {
    cell: &'a Cell,
    /// Who sends under test; `None`: nobody does.
    sender: Option<&'a Sender>,
    seed: u32,
    text: String,
    scenario: Scenario,
}

impl LiveJob<'_> {
    fn name(&self) -> (String, String, u32) {
        let sender = self.sender.map_or("", |sender| &sender.name);
        (self.cell.id.clone(), sender.to_owned(), self.seed)
    }

    fn key(&self, options: &LiveOptions<'_>) -> String {
        let (program, machine) = (&options.runs.program, json(options.machine));
        let identity = format!("{program}\n{machine}\n{}\n{}", self.text, self.seed);
        super::super::hash(identity.as_bytes())
    }

    fn file(&self, key: &str) -> String {
        format!("runs/live-{}-{}-{key}.json", self.cell.id, self.seed)
    }

    /// How long it takes, s.
    fn seconds(&self) -> Result<f64, RunError> {
        Ok(self.scenario.setup(0)?.duration.as_secs_f64() + AROUND)
    }

    /// The first run that is not void, or the last one.
    fn run(&self, options: &LiveOptions<'_>) -> Result<LiveRun, RunError> {
        let mut before = 0;
        loop {
            let (stand, result) = run_on(options.stages, self.cell, &self.scenario, self.seed)?;
            let validity = result.and_then(|result| result.validity).unwrap_or_default();
            let run = live_run(stand, validity, before);
            if !run.is_void() || before + 1 == TRIES {
                return Ok(run);
            }
            before += 1;
            (options.tell)(&format!("void: {}; once more", run.void.join("; ")));
        }
    }
}

fn live_run(stand: Stand, validity: Validity, before: u32) -> LiveRun {
    let Validity { reasons: mut void, late_p50_us, late_p99_us, late_max_us, conditions: _ } = validity;
    if void.is_empty() && late_p99_us > LATEST_US {
        void.push(format!(
            "one packet of a hundred reached its host {late_p99_us:.0} us late or later; at most {LATEST_US:.0} us are right"
        ));
    }
    LiveRun { stand, void, late_p50_us, late_p99_us, late_max_us, before }
}

fn jobs<'a>(
    matrix: &'a Matrix,
    senders: &'a [Sender],
    registry: &Registry,
    options: &Options,
) -> Result<Vec<LiveJob<'a>>, RunError> {
    let mut jobs = vec![];
    for cell in &matrix.cells {
        let nobody = cell.takes == Takes::Nobody;
        // Seeds outside, so that what the machine does beside meets all senders.
        for seed in 1..=options.seeds.unwrap_or(cell.seeds) {
            for sender in senders.iter().take(if nobody { 1 } else { usize::MAX }) {
                let text = sender.text(cell);
                let scenario = cell.parse(&text, registry)?;
                jobs.push(LiveJob { cell, sender: (!nobody).then_some(sender), seed, text, scenario });
            }
        }
    }
    Ok(jobs)
}

/// A run of before, if its file is whole, of this key, and not void.
fn kept(folder: &Path, file: &str, key: &str) -> Option<LiveRun> {
    let kept: Kept = serde_json::from_str(&fs::read_to_string(folder.join(file)).ok()?).ok()?;
    (kept.key == key && !kept.run.is_void()).then_some(kept.run)
}

/// Does all runs that are not done, or were void. The second value is how many were done.
pub(super) fn run_live(
    matrix: &Matrix,
    senders: &[Sender],
    registry: &Registry,
    options: &LiveOptions<'_>,
) -> Result<(LiveRuns, usize), RunError> {
    let out = options.runs.out.as_deref();
    let folder = out.map(Folder::create).transpose()?;
    let mut finished = LiveRuns::new();
    let mut open = vec![];
    for job in jobs(matrix, senders, registry, options.runs)? {
        let key = job.key(options);
        match out.and_then(|folder| kept(folder, &job.file(&key), &key)) {
            Some(run) => drop(finished.insert(job.name(), run)),
            None => open.push((job.seconds()?, job, key)),
        }
    }
    let resumed = finished.len();
    let mut left: f64 = open.iter().map(|(seconds, ..)| seconds).sum();
    for (number, (seconds, job, key)) in open.iter().enumerate() {
        let (cell, sender, seed) = job.name();
        let who = if sender.is_empty() { "the victim alone" } else { &sender };
        let (number, all) = (number + 1, open.len());
        (options.tell)(&format!("{number} of {all}: {who} in {cell}, seed {seed}; {} left", time(left)));
        let run = job.run(options)?;
        left -= seconds;
        if run.is_void() {
            (options.tell)(&format!("void: {}", run.void.join("; ")));
        }
        if let Some(folder) = &folder {
            let kept = Kept { sender, cell, seed, key: key.clone(), run: run.clone() };
            folder.write(&job.file(key), json(&kept).as_bytes())?;
        }
        finished.insert(job.name(), run);
    }
    Ok((finished, resumed))
}

/// A time for readers.
fn time(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_void_if_one_packet_of_a_hundred_is_half_a_millisecond_late() {
        let run = |late_p99_us, reasons: &[&str]| {
            let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            live_run(Stand::Flood, Validity { reasons, late_p99_us, ..Validity::default() }, 0)
        };
        assert!(!run(500.0, &[]).is_void());
        assert!(run(501.0, &[]).void[0].contains("501 us late"));
        assert_eq!(run(2_000.0, &["the machine was busy"]).void, ["the machine was busy"]);
    }
}
