//! What one run gives.

use ackline_lab::Outcome;
use ackline_lab::stats::{Spread, mean};
use ackline_netsim::record::DelayRecord;
use serde::{Deserialize, Serialize};

/// The thesis' tool tells waiting times in units of 2^15 ns, rounded down.
const GRID_NS: u64 = 1 << 15;

/// Queueing delay of the packets of a run, us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Delay {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) sd: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Delay {
    /// As the clock of the simulation has it.
    fn exact(record: &DelayRecord) -> Self {
        let quantile = |q| record.quantile_ns(q).unwrap_or(0) as f64 / 1e3;
        Self {
            min: record.min_ns as f64 / 1e3,
            max: record.max_ns as f64 / 1e3,
            mean: record.mean_ns / 1e3,
            sd: record.sd_ns / 1e3,
            p95: quantile(0.95),
            p99: quantile(0.99),
        }
    }

    /// On the grid of the thesis' tool.
    fn on_grid(record: &DelayRecord) -> Self {
        let count = record.count.max(1) as f64;
        let down = |ns: u64| (ns / GRID_NS * GRID_NS) as f64 / 1e3;
        let moment = |power| {
            let terms = record.histogram.iter().map(|(ns, n)| *n as f64 * f64::powi(down(*ns), power));
            terms.sum::<f64>() / count
        };
        let mean = moment(1);
        let quantile = |q| down(record.quantile_ns(q).unwrap_or(0));
        Self {
            min: down(record.min_ns),
            max: down(record.max_ns),
            mean,
            sd: (moment(2) - mean * mean).max(0.0).sqrt(),
            p95: quantile(0.95),
            p99: quantile(0.99),
        }
    }

    pub(super) fn get(&self, statistic: &str) -> f64 {
        match statistic {
            "min" => self.min,
            "max" => self.max,
            "mean" => self.mean,
            "sd" => self.sd,
            "p95" => self.p95,
            _ => self.p99,
        }
    }
}

/// One run, or the mean of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measurement {
    pub(super) exact: Delay,
    pub(super) grid: Delay,
    /// Share of time in which the link was serialising.
    pub(super) utilisation: f64,
    /// Share of packets marked.
    pub(super) marked: f64,
    /// Mean over flows and time, us.
    pub(super) srtt_us: f64,
    /// The same of the smoothed RTT that feeds the departure clock, us; 0 if there is none.
    pub(super) srtt_pace_us: f64,
    /// Coefficient of variation of the flows' goodputs.
    pub(super) spread: f64,
    /// Segments retransmitted, all flows.
    pub(super) retransmits: f64,
}

impl Measurement {
    pub(super) fn of(outcome: Outcome) -> Self {
        let delay = outcome.record.queues.first().map(|queue| &queue.delay).cloned().unwrap_or_default();
        let queue = outcome.result.queues.first();
        let flows = &outcome.result.flows;
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let srtts: Vec<f64> = flows.iter().filter_map(|flow| Some(flow.srtt_s.as_ref()?.mean)).collect();
        let from_ns = (outcome.result.window_s.0 * 1e9) as u64;
        let pace: Vec<f64> = outcome
            .record
            .connections
            .iter()
            .flat_map(|conn| {
                let metric = conn.metrics.iter().find(|metric| metric.name == "srtt_pace_us");
                let values = metric.map(|metric| metric.values.as_slice()).unwrap_or_default();
                conn.samples.iter().zip(values).filter(move |(sample, _)| sample.at_ns >= from_ns)
            })
            .filter_map(|(_, value)| *value)
            .collect();
        Self {
            exact: Delay::exact(&delay),
            grid: Delay::on_grid(&delay),
            utilisation: queue.map_or(0.0, |queue| queue.utilisation),
            marked: queue.map_or(0.0, |queue| queue.mark_share()),
            srtt_us: mean(&srtts) * 1e6,
            srtt_pace_us: mean(&pace),
            spread: variation(&goodputs),
            retransmits: flows.iter().map(|flow| flow.retransmits as f64).sum(),
        }
    }

    /// The mean over runs.
    pub(super) fn mean(runs: &[Self]) -> Self {
        let of = |get: &dyn Fn(&Self) -> f64| mean(&runs.iter().map(get).collect::<Vec<_>>());
        let delay = |of_run: fn(&Self) -> &Delay| Delay {
            min: of(&|run| of_run(run).min),
            max: of(&|run| of_run(run).max),
            mean: of(&|run| of_run(run).mean),
            sd: of(&|run| of_run(run).sd),
            p95: of(&|run| of_run(run).p95),
            p99: of(&|run| of_run(run).p99),
        };
        Self {
            exact: delay(|run| &run.exact),
            grid: delay(|run| &run.grid),
            utilisation: of(&|run| run.utilisation),
            marked: of(&|run| run.marked),
            srtt_us: of(&|run| run.srtt_us),
            srtt_pace_us: of(&|run| run.srtt_pace_us),
            spread: of(&|run| run.spread),
            retransmits: of(&|run| run.retransmits),
        }
    }
}

/// The coefficient of variation; 0 if there is no mean.
fn variation(values: &[f64]) -> f64 {
    let spread = Spread::of(values.to_vec());
    spread.filter(|spread| spread.mean > 0.0).map_or(0.0, |spread| spread.sd / spread.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_rounds_each_sample_down() {
        let record = DelayRecord {
            count: 4,
            mean_ns: 50_000.0,
            min_ns: 32_767,
            max_ns: 100_000,
            histogram: vec![(32_767, 1), (32_768, 2), (100_000, 1)],
            ..DelayRecord::default()
        };
        let grid = Delay::on_grid(&record);
        assert_eq!((grid.min, grid.max), (0.0, 98.304));
        assert!((grid.mean - (2.0 * 32.768 + 98.304) / 4.0).abs() < 1e-9);
        let squares = (2.0 * 32.768_f64.powi(2) + 98.304_f64.powi(2)) / 4.0;
        assert!((grid.sd - (squares - grid.mean.powi(2)).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn equal_shares_do_not_vary() {
        assert_eq!((variation(&[5.0, 5.0]), variation(&[0.0]), variation(&[])), (0.0, 0.0, 0.0));
        assert!((variation(&[4.0, 6.0]) - 0.2).abs() < 1e-12);
    }
}
