//! How evenly packets left and how late timers were served, as reports show it.

use ackline::runtime::stats::{Distribution, Stats};
use serde::Serialize;

/// The driver's two distributions, in JSON; times in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timing {
    /// Times between departures of packets with data.
    departure_gaps: Spread,
    /// How long after its deadline each wake-up was served.
    lateness: Spread,
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
    max_us: f64,
}

impl From<&Stats> for Timing {
    fn from(stats: &Stats) -> Self {
        Self { departure_gaps: (&stats.data_gaps).into(), lateness: (&stats.lateness).into() }
    }
}

impl From<&Distribution> for Spread {
    fn from(distribution: &Distribution) -> Self {
        let micros = |time: ackline::core::Duration| time.as_nanos() as f64 / 1e3;
        let at = |quantile| micros(distribution.quantile(quantile));
        Self {
            count: distribution.count(),
            mean_us: micros(distribution.mean()),
            p10_us: at(0.1),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            max_us: micros(distribution.max()),
        }
    }
}

impl Timing {
    /// A line for people; none where nothing was measured.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { departure_gaps: gaps, lateness } = self;
        let mut parts = vec![];
        if gaps.count > 0 {
            parts.push(format!("packets left every {}", gaps.text()));
        }
        if lateness.count > 0 {
            parts.push(format!("timers were late by {}", lateness.text()));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Spread {
    fn text(&self) -> String {
        let micros = |value: f64| {
            if value < 1000.0 { format!("{value:.1} µs") } else { format!("{:.2} ms", value / 1e3) }
        };
        format!("{} (median; p90 {}, p99 {})", micros(self.p50_us), micros(self.p90_us), micros(self.p99_us))
    }
}
