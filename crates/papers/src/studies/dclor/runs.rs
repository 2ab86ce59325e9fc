//! Runs of the traffic of Table 2: which there are, and what they measured.

use super::mix::{Mix, RowRun, Shape, Times};
use super::paper::ROWS;
use super::responses::{RESPONSES, Response};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::request::Request;
use ackline_lab::stats;

/// Seeds by default.
const SEEDS: u32 = 10;
const QUICK_SEEDS: u32 = 5;

/// How Table 2 is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Each row has the path for itself.
    Alone,
    /// All rows are on the path at once.
    Together,
}

pub(super) fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { QUICK_SEEDS } else { SEEDS }).max(1)
}

impl Reading {
    /// The share of Table 2's volume.
    pub(super) fn scale(self, request: &Request) -> f64 {
        let quick = match self {
            Self::Alone => 0.2,
            Self::Together => 0.05,
        };
        request.scale.unwrap_or(if request.quick { quick } else { 1.0 }).clamp(0.0005, 1.0)
    }

    /// The id of the job with row `place`.
    fn id(self, response: &str, place: usize, seed: u32) -> String {
        match self {
            Self::Alone => format!("alone/{}/{response}/{seed}", ROWS[place].app),
            Self::Together => format!("together/{response}/{seed}"),
        }
    }

    /// The runs of a response for row `place`.
    pub(super) fn jobs(
        self,
        request: &Request,
        response: &Response,
        place: usize,
    ) -> Result<Vec<Job>, ReproduceError> {
        let only = (self == Self::Alone).then_some(place);
        let shape = Shape { only, ..Shape::draft(self.scale(request)) };
        (0..seeds(request))
            .map(|seed| shape.job(self.id(response.id, place, seed), response.sets, seed))
            .collect()
    }

    /// What they measured.
    pub(super) fn read(
        self,
        request: &Request,
        outputs: &Outputs,
        response: &str,
        place: usize,
    ) -> Result<Runs, ReproduceError> {
        Runs::read((0..seeds(request)).map(|seed| self.id(response, place, seed)), place, outputs)
    }

    /// The runs of all responses for row `place`.
    pub(super) fn jobs_of_all(self, request: &Request, place: usize) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = vec![];
        for response in &RESPONSES {
            jobs.extend(self.jobs(request, response, place)?);
        }
        Ok(jobs)
    }

    /// What they measured, in the order of [`RESPONSES`].
    pub(super) fn read_all(
        self,
        request: &Request,
        outputs: &Outputs,
        place: usize,
    ) -> Result<Vec<Runs>, ReproduceError> {
        RESPONSES.iter().map(|response| self.read(request, outputs, response.id, place)).collect()
    }
}

/// Runs of one response with one row of Table 2, by seed.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    rows: Vec<RowRun>,
    /// Packets that the path dropped, as a share of those that came to it, in percent, by seed.
    pub(super) dropped: Vec<f64>,
}

impl Runs {
    /// Row `place` of the jobs `ids`.
    pub(super) fn read(
        ids: impl IntoIterator<Item = String>,
        place: usize,
        outputs: &Outputs,
    ) -> Result<Self, ReproduceError> {
        let mut runs = Self { rows: vec![], dropped: vec![] };
        for id in ids {
            let mut mix: Mix = outputs.get(&id)?;
            runs.rows.push(mix.rows.swap_remove(place));
            runs.dropped.push(100.0 * mix.dropped as f64 / (mix.offered as f64).max(1.0));
        }
        Ok(runs)
    }

    /// One number per run.
    fn each(&self, of: impl Fn(&RowRun) -> f64) -> Vec<f64> {
        self.rows.iter().map(of).collect()
    }

    /// Download times, by seed; without runs in which nothing ended.
    pub(super) fn times(&self) -> impl Iterator<Item = &Times> {
        self.rows.iter().filter_map(|row| row.times.as_ref())
    }

    /// Mean download times, s.
    pub(super) fn means(&self) -> Vec<f64> {
        self.times().map(|times| times.mean).collect()
    }

    /// Variances of the download times, s^2.
    pub(super) fn variances(&self) -> Vec<f64> {
        self.times().map(|times| times.variance).collect()
    }

    /// Spectral efficiencies, with a window of zero while the response probes.
    pub(super) fn efficiencies(&self) -> Vec<f64> {
        self.each(|row| row.efficiency)
    }

    /// Spectral efficiencies, with the window before the timeout while the response probes.
    pub(super) fn efficiencies_before(&self) -> Vec<f64> {
        self.each(|row| row.efficiency_before)
    }

    /// Redundant bytes per byte received, in percent.
    pub(super) fn redundancies(&self) -> Vec<f64> {
        self.each(|row| 100.0 * row.redundant as f64 / ((row.bytes + row.redundant) as f64).max(1.0))
    }

    /// Timeouts per download.
    pub(super) fn timeouts(&self) -> Vec<f64> {
        self.each(|row| row.timeouts as f64 / (row.downloads as f64).max(1.0))
    }

    /// Redundant segments per timeout, of the size of DCLOR's.
    pub(super) fn redundant_per_timeout(&self) -> Vec<f64> {
        self.each(|row| row.redundant as f64 / 1_460.0 / (row.timeouts as f64).max(1.0))
    }

    /// Downloads of all runs.
    pub(super) fn downloads(&self) -> u64 {
        self.rows.iter().map(|row| row.downloads).sum()
    }

    /// Those that did not end.
    pub(super) fn unfinished(&self) -> u64 {
        self.rows.iter().map(|row| row.unfinished).sum()
    }
}

/// The arithmetic mean; of nothing, what no check passes.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { stats::mean(values) }
}

/// Run by run: all runs of a seed meet the same stalls.
pub(super) fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
