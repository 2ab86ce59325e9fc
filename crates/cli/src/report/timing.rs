//! How evenly packets left and how late they and the timers were, as reports show it.

use crate::output;
use ackline::core::Duration;
use ackline::runtime::stats::{Distribution, Stats};
use serde::Serialize;

/// What the driver measured of itself, in JSON; times in microseconds unless a name says otherwise.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timing {
    /// Times between departures of packets.
    departure_gaps: Spread,
    /// Times between departures of packets with data.
    data_gaps: Spread,
    /// How long after the permitted instant each departure was that was held back.
    departure_lateness: Spread,
    /// How long after its deadline each other wake-up was served, rounding included.
    timer_lateness: Spread,
    /// For how long the driver waited for departures without sleeping, in seconds.
    awake_s: f64,
    /// How long before a departure it woke in the end; zero if it does not spin.
    wakes_early_by_us: f64,
}

/// A distribution, as far as it fits a line.
#[derive(Clone, Debug, Serialize)]
struct Spread {
    count: u64,
    mean_us: f64,
    p10_us: f64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    p99_9_us: f64,
    max_us: f64,
}

impl From<&Stats> for Timing {
    fn from(stats: &Stats) -> Self {
        Self {
            departure_gaps: (&stats.departure_gaps).into(),
            data_gaps: (&stats.data_gaps).into(),
            departure_lateness: (&stats.departure_lateness).into(),
            timer_lateness: (&stats.timer_lateness).into(),
            awake_s: stats.awake.as_secs_f64(),
            wakes_early_by_us: micros(stats.wakes_early_by),
        }
    }
}

impl From<&Distribution> for Spread {
    fn from(distribution: &Distribution) -> Self {
        let at = |quantile| micros(distribution.quantile(quantile));
        Self {
            count: distribution.count(),
            mean_us: micros(distribution.mean()),
            p10_us: at(0.1),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: micros(distribution.max()),
        }
    }
}

impl Timing {
    /// A table for people, of what was measured.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { departure_gaps: _, data_gaps, departure_lateness, timer_lateness, .. } = self;
        let mut rows = vec![["", "median", "p90", "p99", "p99.9", "max"].map(str::to_owned)];
        for (what, spread) in [
            ("gaps between data packets", data_gaps),
            ("lateness of departures", departure_lateness),
            ("lateness of other timers", timer_lateness),
        ] {
            if spread.count > 0 {
                let Spread { p50_us, p90_us, p99_us, p99_9_us, max_us, .. } = *spread;
                let [p50, p90, p99, p99_9, max] = [p50_us, p90_us, p99_us, p99_9_us, max_us].map(time);
                rows.push([what.to_owned(), p50, p90, p99, p99_9, max]);
            }
        }
        let mut lines = if rows.len() > 1 { output::grid(&rows) } else { vec![] };
        if self.awake_s > 0.0 {
            let Self { awake_s, wakes_early_by_us, .. } = self;
            lines.push(format!(
                "spinning for {awake_s:.2} s, in the end from {wakes_early_by_us:.0} µs before each departure"
            ));
        }
        lines
    }
}

fn time(micros: f64) -> String {
    if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1e3) }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit() {
        let long = 9_999_999.0;
        let spread = Spread {
            count: 1,
            mean_us: long,
            p10_us: long,
            p50_us: long,
            p90_us: long,
            p99_us: long,
            p99_9_us: long,
            max_us: long,
        };
        let nothing = Spread { count: 0, ..spread.clone() };
        let mut timing = Timing {
            departure_gaps: spread.clone(),
            data_gaps: spread.clone(),
            departure_lateness: spread.clone(),
            timer_lateness: spread,
            awake_s: 99_999.9,
            wakes_early_by_us: 99_999.0,
        };
        let lines = timing.lines();
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| line.chars().count() <= ackline_lab::WIDTH), "{lines:?}");
        (timing.data_gaps, timing.departure_lateness) = (nothing.clone(), nothing.clone());
        (timing.timer_lateness, timing.awake_s) = (nothing, 0.0);
        assert!(timing.lines().is_empty());
    }
}
