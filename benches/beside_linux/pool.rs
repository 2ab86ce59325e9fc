//! Runs several at once, each in a process of its own.

use crate::design::{Cell, Sender};
use crate::results::{Run, Sample};
use crate::{NAME, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::sync::mpsc;

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    #[serde(with = "by_name")]
    pub(crate) cell: Cell,
    pub(crate) sender: Sender,
    /// The seeds of a round are the same for all senders.
    pub(crate) round: u32,
    pub(crate) longer: f64,
}

impl Job {
    fn gave(&self, sample: Sample) -> Run {
        Run { cell: self.cell.to_string(), sender: self.sender, round: self.round, sample }
    }
}

/// A cell is its name.
mod by_name {
    use crate::design::Cell;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(cell: &Cell, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(cell)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Cell, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// What may take place at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) runs: usize,
    /// Mbit/s.
    pub(crate) load: f64,
}

impl Limits {
    /// For the runs that were late, the number-th time.
    fn again(self, number: u32) -> Self {
        match number {
            0 => self,
            1 => Self { runs: (self.runs / 4).max(1), load: self.load / 4.0 },
            _ => Self { runs: 1, ..self },
        }
    }
}

/// Makes all runs. Those that are not valid are made again up to `repeats` times, and the last
/// result counts.
pub(crate) fn run(jobs: Vec<Job>, limits: Limits, repeats: u32) -> Outcome<Vec<Run>> {
    let mut runs: Vec<Option<Run>> = jobs.iter().map(|_| None).collect();
    // A simulation takes all the processor that there is: not beside runs in real time.
    let is_simulated = |place: &usize| jobs[*place].sender == Sender::Simulated;
    let (simulated, mut open): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(is_simulated);
    pass(&jobs, &simulated, Limits { runs: 2, ..limits }, |place, sample| {
        runs[place] = Some(jobs[place].gave(sample));
    })?;
    for repeat in 0..=repeats {
        let bar = ProgressBar::new(open.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  ({elapsed})")?);
        pass(&jobs, &open, limits.again(repeat), |place, sample| {
            let Job { cell, sender, .. } = &jobs[place];
            bar.set_message(format!("{cell}, {}", sender.name()));
            bar.inc(1);
            runs[place] = Some(jobs[place].gave(sample));
        })?;
        bar.finish_and_clear();
        open.retain(|place| runs[*place].as_ref().is_some_and(|run| !run.sample.invalid.is_empty()));
        if open.is_empty() {
            break;
        }
        eprintln!("{NAME}: {} runs were not valid", open.len());
    }
    Ok(runs.into_iter().flatten().collect())
}

/// Makes these runs once.
fn pass(jobs: &[Job], open: &[usize], limits: Limits, mut done: impl FnMut(usize, Sample)) -> Outcome<()> {
    let mut waiting = open.to_vec();
    let (mut running, mut load) = (0, 0.0);
    let (told, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        while !waiting.is_empty() || running > 0 {
            let fits = |place: &usize| running == 0 || load + cost(&jobs[*place]) <= limits.load;
            let next = waiting.iter().position(fits).filter(|_| running < limits.runs);
            if let Some(next) = next {
                let place = waiting.remove(next);
                running += 1;
                load += cost(&jobs[place]);
                let told = told.clone();
                scope.spawn(move || {
                    // Nobody listens any more if another run has failed.
                    let _ = told.send((place, measure(&jobs[place])));
                });
                continue;
            }
            let (place, sample) = ended.recv()?;
            running -= 1;
            load -= cost(&jobs[place]);
            let Job { cell, sender, round, .. } = &jobs[place];
            done(
                place,
                sample.map_err(|error| format!("{cell}, {}, round {round}: {error}", sender.name()))?,
            );
        }
        Ok(())
    })
}

fn cost(job: &Job) -> f64 {
    job.cell.load(job.sender)
}

fn measure(job: &Job) -> Outcome<Sample> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--one", &serde_json::to_string(job)?]).output()?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches(NAME).trim_start_matches(": ");
    Err(if said.is_empty() { output.status.to_string() } else { said.to_owned() }.into())
}
