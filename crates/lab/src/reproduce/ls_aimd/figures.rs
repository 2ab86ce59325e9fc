//! Figures: delay, marking and utilisation over base RTTs, and a tenth of a second from within.

use super::checks::Results;
use super::experiment::{Aqm, Case, EXPERIMENTS, Sender};
use super::measured::Measured;
use crate::plot::{Chart, Line, Style};
use crate::reproduce::Figure;
use crate::run::Outcome;
use serde::{Deserialize, Serialize};

/// Name, label and value of what is drawn.
type Drawn = (&'static str, &'static str, fn(&Measured) -> f64);

const READINGS: [Drawn; 3] = [
    ("delay", "mean queueing delay [us]", |run| run.exact.mean),
    ("marked", "share of packets marked", |run| run.marked),
    ("utilisation", "utilisation", |run| run.utilisation),
];

/// Base RTTs of 250 to 1,000 us, one line for each sender.
pub(super) fn over_base(results: &impl Results, aqm: Aqm) -> Vec<Figure> {
    let mut figures = vec![];
    for (jumbo, size) in [(false, "1500"), (true, "9000")] {
        for (name, label, get) in READINGS {
            let lines = [Sender::Aimd, Sender::Slow, Sender::Full, Sender::Auto].map(|sender| {
                let runs = EXPERIMENTS.iter().filter(|of| of.varies() && of.jumbo() == jumbo);
                let points = runs.filter_map(|of| {
                    Some((f64::from(of.base_us), get(results.get(&Case { of: *of, aqm, sender })?)))
                });
                Line {
                    label: sender.name(aqm),
                    points: points.collect(),
                    style: Style::Marked,
                    ..Line::default()
                }
            });
            figures.push(
                Chart {
                    name: format!("{name}-{}-{size}", aqm.name()),
                    title: format!("16 flows, 600 Mbit/s, MTU {size}, {}: {label}", aqm.name()),
                    x_label: "base RTT [us]".to_owned(),
                    y_label: label.to_owned(),
                    from_zero: name != "utilisation",
                    lines: lines.into(),
                    ..Chart::default()
                }
                .into(),
            );
        }
    }
    figures
}

/// A tenth of a second of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Inside {
    /// The first flow's window and threshold, in segments: (ms, W, S).
    windows: Vec<(f64, f64, f64)>,
    /// Bytes that wait: (ms, us at the link's rate).
    queue: Vec<(f64, f64)>,
    /// Share of marked data as the first flow sees it: (ms, alpha).
    alpha: Vec<(f64, f64)>,
    /// Its smoothed RTT, and that of its departure clock: (ms, us).
    srtt: Vec<(f64, f64)>,
    srtt_pace: Vec<(f64, f64)>,
}

impl Inside {
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
            let samples = conn.samples.iter().filter(|sample| sample.at_ns >= from_ns);
            inside.srtt =
                samples.filter_map(|sample| Some((ms(sample.at_ns), sample.srtt_ns? as f64 / 1e3))).collect();
        }
        if let Some(queue) = outcome.record.queues.first() {
            let samples = queue.samples.iter().filter(|sample| sample.at_ns >= from_ns);
            inside.queue =
                samples.map(|sample| (ms(sample.at_ns), sample.bytes as f64 * 8.0 / rate_mbit)).collect();
        }
        inside
    }

    pub(super) fn figures(&self, case: &Case) -> Vec<Figure> {
        let chart = |what: &str, y_label: &str, lines: Vec<Line>| -> Figure {
            Chart {
                name: format!("inside-{}-{}-{what}", case.of.name, case.aqm.name()),
                title: format!(
                    "Experiment {}, {}, {}: {y_label}",
                    case.of.name,
                    case.aqm.name(),
                    case.sender.name(case.aqm)
                ),
                x_label: "time [ms]".to_owned(),
                y_label: y_label.to_owned(),
                from_zero: true,
                lines,
                ..Chart::default()
            }
            .into()
        };
        let line = |label: &str, points: Vec<(f64, f64)>| Line {
            label: label.to_owned(),
            points,
            style: Style::Steps,
            ..Line::default()
        };
        let w = self.windows.iter().map(|point| (point.0, point.1)).collect();
        let s = self.windows.iter().map(|point| (point.0, point.2)).collect();
        vec![
            chart("window", "first flow's window [segments]", vec![line("W", w), line("S", s)]),
            chart("queue", "queue [us]", vec![line("", self.queue.clone())]),
            chart("alpha", "alpha of the first flow", vec![line("", self.alpha.clone())]),
            chart(
                "srtt",
                "first flow's smoothed RTT [us]",
                vec![line("for the RTO", self.srtt.clone()), line("for the clock", self.srtt_pace.clone())],
            ),
        ]
    }
}
