//! One measurement's numbers, from times and packets.

use crate::case::{BURST_PART, Case, PAYLOAD};
use crate::log::{Departure, bursts};
use crate::results::{Metric, Sample};
use ackline_runtime::stats::Distribution;
use ackline_tcp_core::Duration;

/// How late a stack says that its departures were.
pub(crate) fn set_lateness(sample: &mut Sample, lateness: &Distribution) {
    if lateness.count() == 0 {
        return;
    }
    let quantiles = [(Metric::P50, 0.5), (Metric::P90, 0.9), (Metric::P99, 0.99), (Metric::P999, 0.999)];
    for (metric, quantile) in quantiles {
        sample.set(metric, micros(lateness.quantile(quantile)));
    }
    sample.set(Metric::Longest, micros(lateness.max()));
}

/// The same of a loop's own times.
pub(crate) fn set_latenesses(sample: &mut Sample, mut late: Vec<Duration>) {
    late.sort_unstable();
    let quantiles = [
        (Metric::P50, 0.5),
        (Metric::P90, 0.9),
        (Metric::P99, 0.99),
        (Metric::P999, 0.999),
        (Metric::Longest, 1.0),
    ];
    for (metric, quantile) in quantiles {
        if let Some(&late) = at_quantile(&late, quantile) {
            sample.set(metric, micros(late));
        }
    }
}

/// Rate, bursts and gaps of what passed.
pub(crate) fn set_flow(sample: &mut Sample, case: &Case, passed: &[Departure]) {
    let (Some(first), Some(last)) = (passed.first(), passed.last()) else { return };
    // The last one's gap is behind it.
    let sent: u64 = passed.iter().map(|packet| packet.segments).sum::<u64>() - last.segments;
    let asked = case.rate().bytes_per_second() as f64 * last.at.since(first.at).as_secs_f64();
    if asked > 0.0 {
        sample.set(Metric::Rate, (sent * PAYLOAD) as f64 / asked);
    }
    let mut bursts = bursts(passed, case.gap.div(BURST_PART));
    bursts.sort_unstable();
    for (metric, quantile) in [(Metric::BurstP50, 0.5), (Metric::BurstP99, 0.99), (Metric::BurstMost, 1.0)] {
        if let Some(&burst) = at_quantile(&bursts, quantile) {
            sample.set(metric, burst as f64);
        }
    }
    let mut gaps: Vec<_> = passed.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    gaps.sort_unstable();
    for (metric, quantile) in [(Metric::GapP50, 0.5), (Metric::GapP99, 0.99)] {
        if let Some(&gap) = at_quantile(&gaps, quantile) {
            sample.set(metric, micros(gap));
        }
    }
}

/// The least of `sorted` that a share of `quantile` does not exceed.
fn at_quantile<T>(sorted: &[T], quantile: f64) -> Option<&T> {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted.get(rank.max(1) - 1)
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
