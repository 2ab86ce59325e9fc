//! How evenly packets left and how late they and the timers were, as reports show it.

use ackline::core::Duration;
use ackline::runtime::stats::{Distribution, Stats};
use serde::Serialize;

/// What the driver measured of itself, in JSON; times in microseconds but where a name says otherwise.
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
    /// How long before a departure it woke in the end; zero where it does not spin.
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
    /// Lines for people, of what was measured.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { departure_gaps: _, data_gaps, departure_lateness, timer_lateness, .. } = self;
        let mut lines = vec![];
        let mut tell = |what, spread: &Spread| {
            if spread.count > 0 {
                lines.push(format!("{what} {}", spread.text()));
            }
        };
        tell("data left every", data_gaps);
        tell("held-back departures were late by", departure_lateness);
        tell("other timers were late by", timer_lateness);
        if self.awake_s > 0.0 {
            let Self { awake_s, wakes_early_by_us, .. } = self;
            lines.push(format!(
                "departures were waited for awake for {awake_s:.2} s, in the end from {wakes_early_by_us:.0} µs before each"
            ));
        }
        lines
    }
}

impl Spread {
    fn text(&self) -> String {
        let time = |micros: f64| {
            if micros < 1000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1e3) }
        };
        format!(
            "{} (median; p90 {}, p99 {}, p99.9 {}, most {})",
            time(self.p50_us),
            time(self.p90_us),
            time(self.p99_us),
            time(self.p99_9_us),
            time(self.max_us),
        )
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
