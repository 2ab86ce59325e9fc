//! The traffic of Table 2 over the draft's path.

use super::super::error::ReproduceError;
use super::super::job::Job;
use super::super::study::Request;
use super::paper::ROWS;
use super::scenario;
use crate::run::Outcome;
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const TEXT: &str = include_str!("../../../scenarios/papers/dclor/table2.toml");

/// What is kept of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Mix {
    /// By the rows of Table 2.
    pub(super) rows: Vec<RowRun>,
    /// Packets that came to the path.
    pub(super) offered: u64,
    /// Those that it dropped.
    pub(super) dropped: u64,
}

/// Downloads of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RowRun {
    /// Download times, s.
    pub(super) times: Vec<f64>,
    /// Spectral efficiency, mean over connections.
    pub(super) efficiency: f64,
    /// Bytes that reached the receivers again.
    pub(super) redundant: u64,
    /// Bytes of the files.
    pub(super) bytes: u64,
    pub(super) data_packets: u64,
    pub(super) retransmits: u64,
    pub(super) timeouts: u64,
    /// Downloads that did not end.
    pub(super) unfinished: u64,
}

/// The share of Table 2's volume that is asked for.
pub(super) fn scale(request: &Request) -> f64 {
    request.scale.unwrap_or(if request.quick { 0.05 } else { 1.0 }).clamp(0.0005, 1.0)
}

/// The traffic with files of so many KB of `kilo` bytes, all rows at once or only one of them.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) scale: f64,
    /// Bytes of a KB.
    pub(super) kilo: u64,
    /// Only this row of Table 2.
    pub(super) only: Option<usize>,
    /// The longest wait between downloads, s.
    pub(super) wait_s: u64,
    /// Anything else that is set.
    pub(super) sets: Vec<String>,
}

impl Shape {
    /// Table 2 as it is understood.
    pub(super) const fn draft(scale: f64) -> Self {
        Self { scale, kilo: 1_024, only: None, wait_s: 1, sets: vec![] }
    }

    /// The scenario of this traffic, with what `response` sets.
    pub(super) fn scenario(&self, response: &[&str]) -> Result<Arc<Scenario>, ReproduceError> {
        let mut sets = vec![];
        for (place, row) in ROWS.iter().enumerate() {
            let app = row.app;
            // The one file of the last row becomes smaller.
            let files = ((row.files as f64 * self.scale).round() as u64).max(1);
            let share = if row.files > 1 { 1.0 } else { self.scale };
            let bytes = (row.size as f64 * self.kilo as f64 * share).round() as u64;
            sets.push(format!("app.{app}.files={files}"));
            sets.push(format!("app.{app}.count={}", row.connections));
            sets.push(format!("app.{app}.size={bytes}"));
            sets.push(format!("app.{app}.wait={{ uniform = [\"0s\", \"{}s\"] }}", self.wait_s));
            if self.only.is_some_and(|only| only != place) {
                // After the end of all time.
                sets.push(format!("app.{app}.start=1000000s"));
            }
        }
        // The smallest files take longest: 2,000 of them, each below four seconds in the mean, and the waits.
        let duration = ((7_800.0 + 1_200.0 * self.wait_s as f64) * self.scale + 1_000.0).round();
        sets.push(format!("duration={duration}s"));
        sets.push(format!("measure.interval={}ms", (duration / 100.0).ceil().max(100.0)));
        sets.push(format!("node.path.buffer={}", 74 * self.kilo));
        sets.extend(response.iter().map(|set| (*set).to_owned()));
        sets.extend(self.sets.iter().cloned());
        Ok(Arc::new(scenario("papers/dclor/table2.toml", TEXT)?.with_set(sets)?))
    }

    /// A job under this name.
    pub(super) fn job(&self, id: String, response: &[&str], seed: u32) -> Result<Job, ReproduceError> {
        Ok(Job::outcome(id, "mix", &self.scenario(response)?, 0, seed, |outcome| read(&outcome)))
    }
}

fn read(outcome: &Outcome) -> Mix {
    let result = &outcome.result;
    let mut mix = Mix {
        offered: result.queues.iter().map(|queue| queue.offered).sum(),
        dropped: result.queues.iter().map(|queue| queue.overflows).sum(),
        rows: vec![],
    };
    for row in &ROWS {
        let mut run = RowRun::default();
        let (mut efficiency, mut known) = (0.0, 0_u64);
        for flow in result.flows.iter().filter(|flow| flow.app == row.app) {
            run.times.extend(&flow.times_s);
            run.unfinished += (flow.app_metrics.get("begun").copied().unwrap_or(0.0) as u64)
                .saturating_sub(flow.times_s.len() as u64);
            for transfer in &flow.transfers {
                run.redundant += transfer.redundant_bytes;
                run.bytes += transfer.bytes;
                run.data_packets += transfer.data_packets;
                run.retransmits += transfer.retransmits;
                run.timeouts += transfer.timeouts;
                if let Some(value) = transfer.spectral_efficiency() {
                    efficiency += value;
                    known += 1;
                }
            }
        }
        run.efficiency = if known > 0 { efficiency / known as f64 } else { 0.0 };
        mix.rows.push(run);
    }
    mix
}
