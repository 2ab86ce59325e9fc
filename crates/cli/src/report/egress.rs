//! What the egress scheduler did, for people and for programs.

use crate::output::{self, numbers};
use crate::report::policies;
use ackline::core::queueing::ClassStats;
use ackline::runtime::Stack;
use ackline::runtime::info::MetricList;
use serde::Serialize;
use std::time::Duration;

/// What left a stack, by kind of packet.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EgressReport {
    scheduler: &'static str,
    classes: Vec<ClassReport>,
    /// The scheduler's own variables.
    metrics: MetricList,
}

#[derive(Clone, Debug, Serialize)]
struct ClassReport {
    class: &'static str,
    packets: u64,
    bytes: u64,
    queued: u64,
    delay_p50_ms: f64,
    delay_p90_ms: f64,
    delay_p99_ms: f64,
    delay_max_ms: f64,
}

impl ClassReport {
    fn new(class: &'static str, stats: &ClassStats) -> Self {
        let ms = |delay: ackline::core::Duration| delay.as_nanos() as f64 / 1e6;
        Self {
            class,
            packets: stats.packets,
            bytes: stats.bytes,
            queued: stats.queued,
            delay_p50_ms: ms(stats.delay_p50),
            delay_p90_ms: ms(stats.delay_p90),
            delay_p99_ms: ms(stats.delay_p99),
            delay_max_ms: ms(stats.delay_max),
        }
    }
}

impl EgressReport {
    /// What `stack` has sent so far.
    pub(crate) fn of(stack: &Stack) -> Self {
        let stats = stack.stats().egress;
        let scheduler = stack.scheduler();
        let classes = stats.iter().map(|(class, stats)| ClassReport::new(class, stats)).collect();
        Self { scheduler: scheduler.name, classes, metrics: scheduler.metrics }
    }

    /// The scheduler with its variables.
    pub(crate) fn scheduler_lines(&self) -> Vec<String> {
        policies::lines(self.scheduler, &self.metrics)
    }

    /// A table of how long each kind of packet waited; nothing if the scheduler had nothing to
    /// choose from.
    pub(crate) fn lines(&self) -> Vec<String> {
        let heading = format!("waited in {}", self.scheduler);
        let mut rows =
            vec![[&*heading, "packets", "bytes", "median", "p90", "p99", "max"].map(str::to_owned)];
        let ms = |ms: f64| numbers::round_trip(Some(Duration::from_secs_f64(ms / 1e3)));
        rows.extend(self.classes.iter().filter(|class| class.queued > 0).map(|class| {
            [
                format!("  {}", class.class),
                class.packets.to_string(),
                numbers::bytes(class.bytes),
                ms(class.delay_p50_ms),
                ms(class.delay_p90_ms),
                ms(class.delay_p99_ms),
                ms(class.delay_max_ms),
            ]
        }));
        if rows.len() > 1 { output::grid(&rows) } else { vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit() {
        let class = |class| ClassReport {
            class,
            packets: 9_999_999_999,
            bytes: (1 << 50) - 1,
            queued: 1,
            delay_p50_ms: 99_999.99,
            delay_p90_ms: 99_999.99,
            delay_p99_ms: 99_999.99,
            delay_max_ms: 99_999.99,
        };
        let mut report = EgressReport {
            scheduler: "ack-priority",
            classes: ["ack", "data", "retransmit", "control"].map(class).to_vec(),
            metrics: MetricList::default(),
        };
        let lines = report.lines();
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| line.chars().count() <= ackline_lab::WIDTH), "{lines:?}");
        report.classes.iter_mut().for_each(|class| class.queued = 0);
        assert!(report.lines().is_empty());
    }
}
