//! What is taken from a run: for each flow its throughput, its congestion events and its losses.

use ackline_lab::Outcome;
use ackline_netsim::record::{ConnRecord, ConnSample};
use serde::{Deserialize, Serialize};

/// Payload bytes of a packet, and all its bytes.
pub(super) const PAYLOAD: f64 = 1000.0;
pub(super) const PACKET: f64 = 1040.0;

/// Most points of a plotted series.
const POINTS: usize = 1500;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) flows: Vec<Flow>,
    /// The bottleneck's share of busy time, 0 to 1.
    pub(super) utilisation: f64,
    /// Milliseconds that a packet waits in the queue, on the mean.
    pub(super) delay: f64,
    /// Packets marked at the bottleneck.
    pub(super) marks: u64,
    /// Seconds and packets in the queue, if series are kept.
    pub(super) queue: Vec<(f64, f64)>,
}

/// A flow, within the window of measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) name: String,
    /// Bits per second, headers included.
    pub(super) rate: f64,
    /// The same in the halves of the window, acknowledged.
    pub(super) halves: (f64, f64),
    /// Retransmission timeouts, over the whole run.
    pub(super) timeouts: u64,
    /// Packets with data that it sent.
    pub(super) sent: u64,
    /// Windows in segments at its reductions.
    pub(super) reductions: Vec<f64>,
    /// Packets dropped at the bottleneck.
    pub(super) drops: u64,
    /// Distances in packets between the losses of one event.
    pub(super) spacing: Vec<f64>,
    /// Losses of each event that began within the window, if events are more than a second apart.
    pub(super) bursts: Vec<f64>,
    /// Seconds and segments, over the whole run, if series are kept.
    pub(super) window: Vec<(f64, f64)>,
    /// Seconds and milliseconds, if series are kept.
    pub(super) rtt: Vec<(f64, f64)>,
}

impl Flow {
    /// Congestion events.
    pub(super) fn events(&self) -> f64 {
        self.reductions.len() as f64
    }

    /// Losses of an event, on the mean.
    pub(super) fn drops_per_event(&self) -> f64 {
        if self.reductions.is_empty() { 0.0 } else { self.drops as f64 / self.events() }
    }

    /// Share of packets lost.
    pub(super) fn loss_rate(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.drops as f64 / self.sent as f64 }
    }
}

/// What is kept of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Numbers alone.
    Numbers,
    /// Windows, round trips and the queue over time, too.
    Series,
}

/// Reads a run.
pub(super) fn read(outcome: Outcome, keep: Detail) -> Reading {
    let Outcome { result, record, flow_of, .. } = outcome;
    let (from, until) = result.window_s;
    let inside = |at_ns: u64| (from..=until).contains(&(at_ns as f64 / 1e9));
    let flows = result.flows.iter().enumerate().map(|(place, flow)| {
        let conn =
            flow_of.iter().position(|of| *of == Some(place)).and_then(|conn| record.connections.get(conn));
        let trace = record.trace.as_ref();
        let all: Vec<(u64, u32)> = trace
            .into_iter()
            .flat_map(|trace| &trace.rows)
            .filter(|row| row.dropped && conn.is_some_and(|conn| row.conn == Some(conn.conn)))
            .filter_map(|row| Some((row.at_ns, row.tcp?.seq)))
            .collect();
        let lost: Vec<(u64, u32)> = all.iter().copied().filter(|(at, _)| inside(*at)).collect();
        let samples = conn.map_or(&[][..], |conn| &conn.samples);
        let series = |value: &dyn Fn(&ConnSample) -> Option<f64>| {
            if keep == Detail::Numbers {
                return vec![];
            }
            let points =
                samples.iter().filter_map(|sample| Some((sample.at_ns as f64 / 1e9, value(sample)?)));
            thinned(points.collect())
        };
        Flow {
            name: flow.name.clone(),
            rate: flow.goodput_bps * PACKET / PAYLOAD,
            halves: (acked(samples, from, from.midpoint(until)), acked(samples, from.midpoint(until), until)),
            timeouts: samples.last().map_or(0, |sample| sample.timeouts),
            sent: flow.data_packets,
            reductions: conn.map_or(vec![], |conn| reductions(conn, inside)),
            drops: lost.len() as u64,
            spacing: spacing(&lost),
            bursts: bursts(&all, inside),
            window: series(&|sample| Some(sample.cwnd as f64 / PAYLOAD)),
            rtt: series(&|sample| sample.srtt_ns.map(|nanos| nanos as f64 / 1e6)),
        }
    });
    let flows = flows.collect();
    let queue = record.queues.first().filter(|_| keep == Detail::Series).map_or(vec![], |queue| {
        thinned(queue.samples.iter().map(|at| (at.at_ns as f64 / 1e9, at.packets as f64)).collect())
    });
    let bottleneck = result.queues.first();
    Reading {
        flows,
        utilisation: bottleneck.map_or(0.0, |queue| queue.utilisation),
        delay: bottleneck.and_then(|queue| queue.delay_s.as_ref()).map_or(0.0, |delay| 1e3 * delay.mean),
        marks: bottleneck.map_or(0, |queue| queue.marked),
        queue,
    }
}

/// Bits per second, headers included, that were acknowledged between two instants in seconds.
fn acked(samples: &[ConnSample], from: f64, until: f64) -> f64 {
    let at = |second: f64| samples.iter().rfind(|sample| sample.at_ns as f64 / 1e9 <= second);
    match (at(from), at(until)) {
        (Some(first), Some(last)) if last.at_ns > first.at_ns => {
            let bits = 8.0 * (last.bytes_acked - first.bytes_acked) as f64 * PACKET / PAYLOAD;
            bits / ((last.at_ns - first.at_ns) as f64 / 1e9)
        }
        _ => 0.0,
    }
}

/// The window in segments before each reduction: as the congestion control itself reports it, or,
/// if it does not, in the last sample before `ssthresh` changed.
fn reductions(conn: &ConnRecord, inside: impl Fn(u64) -> bool) -> Vec<f64> {
    let values = |name: &str| {
        conn.metrics
            .iter()
            .find(|metric| metric.owner == "cc" && metric.name == name)
            .map(|metric| &metric.values)
    };
    let (counts, windows) = (values("reductions"), values("reduced_from"));
    let mut found = vec![];
    for (place, pair) in conn.samples.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        if !inside(after.at_ns) {
            continue;
        }
        match (counts, windows) {
            (Some(counts), Some(windows)) => {
                let at = |values: &Vec<Option<f64>>, place: usize| values.get(place).copied().flatten();
                let more = at(counts, place + 1).unwrap_or(0.0) - at(counts, place).unwrap_or(0.0);
                let window = at(windows, place + 1).unwrap_or(0.0) / PAYLOAD;
                found.extend(std::iter::repeat_n(window, more as usize));
            }
            _ if before.ssthresh != after.ssthresh => found.push(before.cwnd as f64 / PAYLOAD),
            _ => {}
        }
    }
    found
}

/// Losses within one second of each other are of one event, and lie a number of packets apart.
fn spacing(lost: &[(u64, u32)]) -> Vec<f64> {
    let apart = lost.windows(2).filter_map(|pair| {
        let [(first, a), (second, b)] = pair else { return None };
        let bytes = b.wrapping_sub(*a);
        (second - first < 1_000_000_000 && bytes < 1 << 31).then(|| f64::from(bytes) / PAYLOAD)
    });
    apart.collect()
}

/// The sizes of groups of losses that are less than a second apart, and begin within the window.
fn bursts(lost: &[(u64, u32)], inside: impl Fn(u64) -> bool) -> Vec<f64> {
    let groups = lost.chunk_by(|(first, _), (second, _)| second - first < 1_000_000_000);
    let begun = groups.filter(|group| group.first().is_some_and(|(at, _)| inside(*at)));
    begun.map(|group| group.len() as f64).collect()
}

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS).max(1);
    points.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_one_event_have_distances_and_events_have_none() {
        let second = 1_000_000_000;
        let lost = [(0, u32::MAX - 999), (100, 322_000), (200, 645_000), (2 * second, 9_000_000)];
        assert_eq!(spacing(&lost), [323.0, 323.0]);
        assert_eq!(bursts(&lost, |_| true), [3.0, 1.0]);
        assert_eq!(bursts(&lost, |at| at > 50), [1.0], "the first one began before");
    }

    #[test]
    fn long_series_become_short() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|n| (f64::from(n), 0.0)).collect();
        let thin = thinned(points);
        assert!((1000..=POINTS).contains(&thin.len()), "{}", thin.len());
        assert_eq!(thin.first(), Some(&(0.0, 0.0)));
    }
}
