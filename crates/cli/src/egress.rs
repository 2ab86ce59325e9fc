//! What the egress scheduler did, for people and for programs.

use crate::output;
use ackline::core::policy::Metrics;
use ackline::core::queueing::ClassStats;
use ackline::runtime::Stack;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// What left a stack, by kind of packet.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EgressReport {
    scheduler: &'static str,
    classes: Vec<ClassReport>,
    /// The scheduler's own variables.
    metrics: Map<String, Value>,
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
        let mut metrics = Map::new();
        let scheduler = stack.with_scheduler(|scheduler| {
            let mut visit = |name: &'static str, value: f64| {
                metrics.insert(name.to_owned(), Value::from(value));
            };
            scheduler.metrics(&mut Metrics::new(&mut visit));
            scheduler.name()
        });
        let classes = stats.iter().map(|(class, stats)| ClassReport::new(class, stats)).collect();
        Self { scheduler, classes, metrics }
    }

    /// A line for each kind of packet that waited; none where the scheduler had nothing to choose from.
    pub(crate) fn lines(&self) -> Vec<String> {
        let waited = self.classes.iter().filter(|class| class.queued > 0);
        let ms = |ms: f64| output::round_trip(Some(Duration::from_secs_f64(ms / 1e3)));
        waited
            .map(|class| {
                format!(
                    "{}: {} {} packets, {}; waited {} (median), {} (90 %), {} (99 %), at most {}",
                    self.scheduler,
                    class.packets,
                    class.class,
                    output::bytes(class.bytes),
                    ms(class.delay_p50_ms),
                    ms(class.delay_p90_ms),
                    ms(class.delay_p99_ms),
                    ms(class.delay_max_ms),
                )
            })
            .collect()
    }
}
