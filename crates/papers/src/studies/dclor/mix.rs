//! The traffic of Table 2 over the draft's path.

use super::paper::{ROWS, Row};
use crate::error::ReproduceError;
use crate::job::Job;
use crate::{ScenarioText, scenario};
use ackline_lab::Outcome;
use ackline_lab::Scenario;
use ackline_lab::stats::{self, Spread};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const TEXT: ScenarioText = scenario!("dclor/table2");

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
    /// Downloads that ended.
    pub(super) downloads: u64,
    /// Those that did not.
    pub(super) unfinished: u64,
    /// Their times.
    pub(super) times: Option<Times>,
    /// Spectral efficiency, mean over connections, with a window of zero while the response probes.
    pub(super) efficiency: f64,
    /// The same with the window before the timeout instead.
    pub(super) efficiency_before: f64,
    /// Bytes that reached the receivers again.
    pub(super) redundant: u64,
    /// Bytes of the files.
    pub(super) bytes: u64,
    pub(super) data_packets: u64,
    pub(super) retransmits: u64,
    pub(super) timeouts: u64,
}

/// Download times in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) longest: f64,
    /// How many are below each of [`edges`], and not below the one before, up to the last that is
    /// not zero.
    bins: Vec<u64>,
}

/// Where the bins of times end, s: each 4 % after the one before.
pub(super) fn edges() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0), |edge| Some(edge * 1.04))
}

impl Times {
    fn of(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let spread = Spread::of_sorted(&sorted)?;
        let mut bins = vec![];
        let mut below = 0;
        for edge in edges() {
            let place = sorted.partition_point(|time| *time < edge);
            bins.push((place - below) as u64);
            below = place;
            if below == sorted.len() {
                break;
            }
        }
        Some(Self {
            mean: spread.mean,
            variance: spread.sd * spread.sd,
            p50: spread.p50,
            p99: spread.p99,
            longest: spread.max,
            bins,
        })
    }

    /// The share of the times below each of [`edges`], as long as it is not all of them.
    pub(super) fn shares_below(&self) -> Vec<f64> {
        let all: u64 = self.bins.iter().sum();
        let mut below = 0;
        let share = |bin: &u64| {
            below += bin;
            below as f64 / all as f64
        };
        self.bins.iter().map(share).collect()
    }
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
        // The smallest files take longest: 2,000 of them, each below four seconds in the mean, and
        // the waits.
        let duration = ((7_800.0 + 1_200.0 * self.wait_s as f64) * self.scale + 1_000.0).round();
        sets.push(format!("duration={duration}s"));
        sets.push(format!("measure.interval={}ms", (duration / 100.0).ceil().max(100.0)));
        sets.push(format!("node.path.buffer={}", 74 * self.kilo));
        sets.extend(response.iter().map(|set| (*set).to_owned()));
        sets.extend(self.sets.iter().cloned());
        TEXT.with_set(sets)
    }

    /// A job under this name.
    pub(super) fn job(&self, id: String, response: &[&str], seed: u32) -> Result<Job, ReproduceError> {
        Ok(Job::outcome(id, "mix", &self.scenario(response)?, 0, seed, |outcome| read(&outcome)))
    }
}

fn read(outcome: &Outcome) -> Mix {
    let result = &outcome.result;
    let row = |row: &Row| {
        let mut run = RowRun::default();
        let mut times = vec![];
        let (mut efficiencies, mut efficiencies_before) = (vec![], vec![]);
        for flow in result.flows.iter().filter(|flow| flow.app == row.app) {
            times.extend(&flow.times_s);
            run.unfinished += (flow.app_metrics.get("begun").copied().unwrap_or(0.0) as u64)
                .saturating_sub(flow.times_s.len() as u64);
            for transfer in &flow.transfers {
                run.redundant += transfer.redundant_bytes;
                run.bytes += transfer.bytes;
                run.data_packets += transfer.data_packets;
                run.retransmits += transfer.retransmits;
                run.timeouts += transfer.timeouts;
                efficiencies.extend(transfer.spectral_efficiency());
                efficiencies_before.extend(transfer.spectral_efficiency_before());
            }
        }
        RowRun {
            downloads: times.len() as u64,
            times: Times::of(&times),
            efficiency: stats::mean(&efficiencies),
            efficiency_before: stats::mean(&efficiencies_before),
            ..run
        }
    };
    Mix {
        offered: result.queues.iter().map(|queue| queue.offered).sum(),
        dropped: result.queues.iter().map(|queue| queue.overflows).sum(),
        rows: ROWS.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_all_times_and_give_the_share_below() {
        let times = Times::of(&[0.5, 1.0, 1.05, 20.0]).unwrap();
        assert_eq!((times.longest, times.mean), (20.0, 5.6375));
        let shares = times.shares_below();
        assert_eq!(shares[..3], [0.25, 0.5, 0.75]);
        assert_eq!(shares.last(), Some(&1.0));
        assert!(edges().nth(shares.len() - 1).unwrap() > 20.0);
        assert!(Times::of(&[]).is_none());
    }
}
