//! Figures: delay, marking and utilisation over base RTTs, and a tenth of a second from within.

use super::checks::Results;
use super::experiment::{Aqm, Case, EXPERIMENTS, Sender};
use super::measurement::Measurement;
use super::readings::{DESIGN, Reading};
use crate::Figure;
use ackline_lab::Outcome;
use ackline_lab::stats::Estimate;
use ackline_plot::{Chart, Line, Panels, Style};
use serde::{Deserialize, Serialize};

/// Label and value of what is drawn.
type PlottedQuantity = (&'static str, fn(&Measurement) -> f64);

const DRAWN: [PlottedQuantity; 3] = [
    ("mean queueing delay [us]", |run| run.exact.mean),
    ("share of packets marked", |run| run.marked),
    ("utilisation", |run| run.utilisation),
];

/// Base RTTs of 250 to 1,000 us: a panel for each quantity and segment size, a line for each
/// sender.
pub(super) fn over_base(results: &impl Results, aqm: Aqm, senders: &[Sender], reading: Reading) -> Figure {
    let mut charts = vec![];
    for (label, get) in DRAWN {
        for jumbo in [false, true] {
            let lines = senders.iter().map(|sender| {
                let runs = EXPERIMENTS.into_iter().filter(|of| of.varies() && of.jumbo() == jumbo);
                let estimates: Vec<_> = runs
                    .filter_map(|of| {
                        let values = results.values(&Case { of, aqm, sender: *sender, reading }, get);
                        Some((f64::from(of.base_us), Estimate::of(&values)?))
                    })
                    .collect();
                let band = |(x, estimate): &(f64, Estimate)| estimate.ci.map(|(low, high)| (*x, low, high));
                Line {
                    label: sender.name(aqm),
                    points: estimates.iter().map(|(x, estimate)| (*x, estimate.mean)).collect(),
                    band: estimates.iter().filter_map(band).collect(),
                    style: Style::Marked,
                    ..Line::default()
                }
            });
            charts.push(Chart {
                title: format!("MTU {}", if jumbo { "9,000" } else { "1,500" }),
                x_label: "base RTT [us]".to_owned(),
                y_label: label.to_owned(),
                from_zero: true,
                lines: lines.collect(),
                ..Chart::default()
            });
        }
    }
    let prefix = if reading == DESIGN { "scale" } else { "base" };
    Panels {
        name: format!("{prefix}-{}", aqm.name()),
        title: format!("16 flows at 600 Mbit/s, {}", aqm.name()),
        charts,
        columns: 2,
        same_x: true,
        same_y: false,
    }
    .into()
}

/// A tenth of a second of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Excerpt {
    /// The first flow's window and threshold, in segments: (ms, W, S).
    windows: Vec<(f64, f64, f64)>,
    /// Bytes that wait: (ms, us at the link's rate).
    queue: Vec<(f64, f64)>,
    /// Share of marked data as the first flow sees it: (ms, alpha).
    alpha: Vec<(f64, f64)>,
    /// The smoothed RTT of its departure clock: (ms, us).
    srtt_pace: Vec<(f64, f64)>,
}

impl Excerpt {
    /// The last 100 ms of the run.
    pub(super) fn of(outcome: &Outcome, smss: f64, rate_mbit: f64) -> Self {
        let until_ns = (outcome.result.window_s.1 * 1e9) as u64;
        let from_ns = until_ns.saturating_sub(100_000_000);
        let ms = |at_ns: u64| at_ns.saturating_sub(from_ns) as f64 / 1e6;
        let mut inside = Self::default();
        if let Some(conn) = outcome.record.connections.first() {
            let series = |name: &str| {
                let metric = conn.metrics.iter().find(|metric| metric.name == name);
                let values = metric.map(|metric| metric.values.as_slice()).unwrap_or_default();
                let both = conn.samples.iter().zip(values).filter(|(sample, _)| sample.at_ns >= from_ns);
                both.filter_map(|(sample, value)| Some((ms(sample.at_ns), (*value)?))).collect::<Vec<_>>()
            };
            inside.windows = series("cwnd")
                .into_iter()
                .zip(series("ssthresh"))
                .map(|((at, w), (_, s))| (at, w / smss, s / smss))
                .collect();
            inside.alpha = series("alpha");
            inside.srtt_pace = series("srtt_pace_us");
        }
        if let Some(queue) = outcome.record.queues.first() {
            let samples = queue.samples.iter().filter(|sample| sample.at_ns >= from_ns);
            inside.queue =
                samples.map(|sample| (ms(sample.at_ns), sample.bytes as f64 * 8.0 / rate_mbit)).collect();
        }
        inside
    }

    /// Two runs beside each other: queue and smoothed RTT, window and threshold.
    pub(super) fn figure(name: &str, title: String, runs: &[(&str, Self)]) -> Figure {
        let line = |label: &str, points: Vec<(f64, f64)>| Line {
            label: label.to_owned(),
            points,
            style: Style::Steps,
            ..Line::default()
        };
        let chart = |title: &str, y_label: &str, lines: Vec<Line>| Chart {
            title: title.to_owned(),
            x_label: "time [ms]".to_owned(),
            y_label: y_label.to_owned(),
            from_zero: true,
            lines,
            ..Chart::default()
        };
        let delays = runs.iter().map(|(title, run)| {
            let lines =
                vec![line("queue", run.queue.clone()), line("clock's smoothed RTT", run.srtt_pace.clone())];
            chart(title, "delay [us]", lines)
        });
        let windows = runs.iter().map(|(_, run)| {
            let w = run.windows.iter().map(|point| (point.0, point.1)).collect();
            let s = run.windows.iter().map(|point| (point.0, point.2)).collect();
            chart("", "first flow [segments]", vec![line("W", w), line("S", s)])
        });
        let alphas = runs.iter().map(|(_, run)| chart("", "alpha", vec![line("alpha", run.alpha.clone())]));
        Panels {
            name: name.to_owned(),
            title,
            charts: delays.chain(windows).chain(alphas).collect(),
            columns: runs.len(),
            same_x: true,
            same_y: false,
        }
        .into()
    }
}
