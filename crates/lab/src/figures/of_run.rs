//! Plots of one run: what changed over time, how delays are spread, and the sequence numbers.

use super::time_sequence;
use crate::run::Outcome;
use crate::run::scene::{QueueLimit, SceneLink};
use crate::run_plots::{RunPlots, is_time_sequence};
use ackline_netsim::record::{ConnRecord, ConnSample, Metric, QueueRecord};
use ackline_plot::{Chart, Line, Look, Reference, Span, Style, marked, prefixed, thinned};
use std::collections::BTreeSet;

/// Flows, and queues, that are drawn.
const MAX_FLOWS: usize = 8;

/// Connections of each flow that are drawn.
const MAX_CONNECTIONS: usize = 50;

/// Times that make a distribution.
const MIN_TIMES: usize = 5;

/// Changes of a scenario that are marked.
const MAX_CHANGES: usize = 8;

/// Variables of policies that have a plot.
const MAX_VARIABLES: usize = 5;

/// Values from here on stand for "no limit".
const INFINITE: f64 = 1e15;

/// The plots of a run, those without content left out.
///
/// First those that answer the question of the scenario: completion times, if there are some; else
/// the goodput of all flows; and for a single flow its window and its time-sequence diagram, too.
#[must_use]
pub fn run_plots(outcome: &Outcome) -> RunPlots {
    let run = Run::of(outcome);
    let times = times_cdf(outcome);
    let (goodput, window) = (run.goodput(), run.window());
    let sequence = outcome.sequence.as_ref().map(|sequence| run.over_time(time_sequence::chart(sequence)));
    let single = outcome.result.flows.len() == 1;
    let (leading, mut others) = if !times.is_empty() {
        (vec![times], vec![goodput, window])
    } else if single {
        (vec![goodput, window].into_iter().chain(sequence.clone()).collect(), vec![])
    } else {
        (vec![goodput], vec![window])
    };
    others.extend([run.round_trips(), run.queue_length(), run.utilisation()]);
    others.extend(run.policy_charts());
    others.extend(sequence.filter(|_| leading.iter().all(|chart| !is_time_sequence(chart))));
    others.push(delay_cdf(outcome));
    let leading: Vec<Chart> = leading.into_iter().filter(|chart| !chart.is_empty()).collect();
    others.retain(|chart| !chart.is_empty());
    let mut plots = RunPlots { leading: leading.len(), charts: leading.into_iter().chain(others).collect() };
    if let Some(validity) = outcome.result.validity.as_ref().filter(|validity| !validity.is_valid()) {
        let why = validity.reasons.join("; ");
        plots.charts.iter_mut().for_each(|chart| chart.title = marked(&chart.title, &why));
    }
    plots
}

/// A run, and which of its flows are drawn.
struct Run<'a> {
    outcome: &'a Outcome,
    /// Places of flows: of each application in turn, so that each is there. A flow's place in this
    /// list is its colour.
    drawn: Vec<usize>,
}

impl<'a> Run<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let mut apps: Vec<(&str, Vec<usize>)> = vec![];
        for (place, flow) in outcome.result.flows.iter().enumerate() {
            match apps.iter_mut().find(|(app, _)| *app == flow.app) {
                Some((_, flows)) => flows.push(place),
                None => apps.push((&flow.app, vec![place])),
            }
        }
        let most = apps.iter().map(|(_, flows)| flows.len()).max().unwrap_or(0);
        let turns =
            (0..most).flat_map(|turn| apps.iter().filter_map(move |(_, flows)| flows.get(turn).copied()));
        Self { outcome, drawn: turns.take(MAX_FLOWS).collect() }
    }

    /// A chart with the axis that all charts over time have, and the scenario's changes.
    fn over_time(&self, chart: Chart) -> Chart {
        let scene = &self.outcome.scene;
        let changes = scene.changes.iter().take(MAX_CHANGES);
        let mut references = chart.references;
        references.extend(changes.map(|(at, what)| Reference::upright(*at, what.as_str())));
        Chart {
            x_label: "time (s)".to_owned(),
            x_range: Some((0.0, scene.duration_s)),
            over_time: true,
            references,
            ..chart
        }
    }

    /// A title that says how many flows are left out.
    fn title(&self, what: &str) -> String {
        let flows = self.outcome.result.flows.len();
        if flows > self.drawn.len() {
            format!("{what} ({} of {flows} flows)", self.drawn.len())
        } else {
            what.to_owned()
        }
    }

    fn connections(&self, flow: usize) -> impl Iterator<Item = &'a ConnRecord> {
        let all = self.outcome.record.connections.iter().zip(&self.outcome.flow_of);
        all.filter(move |(_, of)| **of == Some(flow)).map(|(conn, _)| conn).take(MAX_CONNECTIONS)
    }

    /// A line for each connection of each flow.
    fn lines(&self, of: &dyn Fn(&ConnRecord) -> Vec<(f64, f64)>) -> Vec<Line> {
        let flows = self.drawn.iter().enumerate();
        flows
            .flat_map(|(series, flow)| {
                self.connections(*flow).map(move |conn| Line {
                    label: self.outcome.result.flows[*flow].name.clone(),
                    points: thinned(&of(conn)),
                    look: Look::Series(series),
                    ..Line::default()
                })
            })
            .filter(|line| !line.points.is_empty())
            .collect()
    }

    fn chart(&self, name: &str, title: &str, unit: &str, lines: Vec<Line>) -> Chart {
        self.over_time(Chart {
            name: name.to_owned(),
            title: self.title(title),
            y_label: unit.to_owned(),
            from_zero: true,
            lines,
            ..Chart::default()
        })
    }

    /// Bits per second that arrived, over spans of a hundredth of the run, beside the rate of the
    /// slowest link.
    fn goodput(&self) -> Chart {
        let series = &self.outcome.goodput;
        let intervals = series.bytes.first().map_or(0, Vec::len).div_ceil(100);
        let rates: Vec<Vec<(f64, f64)>> =
            self.drawn.iter().map(|flow| series.rates(*flow, intervals)).collect();
        let links = self.outcome.scene.links.iter();
        let slowest = links.filter_map(|link| Some((link.rate_bps?, &link.name))).min();
        let bound = slowest.map_or(0.0, |(rate, _)| rate as f64);
        let most = largest(rates.iter().flatten()).max(bound);
        let (size, unit) = prefixed(most, "bit/s", "kbit/s");
        let lines = self.drawn.iter().zip(&rates).enumerate().map(|(place, (flow, rates))| Line {
            label: self.outcome.result.flows[*flow].name.clone(),
            points: rates.iter().map(|(at, rate)| (*at, rate / size)).collect(),
            look: Look::Series(place),
            ..Line::default()
        });
        let mut chart = self.chart("goodput", "Goodput", &unit, lines.collect());
        if let Some((rate, name)) = slowest {
            chart.references.push(Reference::level(rate as f64 / size, format!("rate of {name}")));
        }
        Chart { spans: self.spans(), ..chart }
    }

    /// Congestion windows, with what moved them: what was sent again, and timeouts.
    fn window(&self) -> Chart {
        let cwnds = self.lines(&|conn| over_time(conn, |sample| Some(sample.cwnd as f64)));
        let (size, unit) = prefixed(largest(cwnds.iter().flat_map(|line| &line.points)), "B", "kB");
        let scaled = |line: Line| Line {
            points: line.points.iter().map(|(at, value)| (*at, value / size)).collect(),
            ..line
        };
        let mut lines: Vec<Line> = cwnds.into_iter().map(scaled).collect();
        if let [flow] = self.drawn[..] {
            let thresholds = self.connections(flow).map(|conn| Line {
                label: "ssthresh".to_owned(),
                // Before the first loss there is none.
                points: thinned(&over_time(conn, |sample| finite(sample.ssthresh? as f64 / size))),
                style: Style::Steps,
                look: Look::Beside(0),
                ..Line::default()
            });
            lines.extend(thresholds.filter(|line| !line.points.is_empty()));
        }
        for (label, style, of) in [
            ("retransmission", Style::Crosses, (|sample| sample.retransmits) as fn(&ConnSample) -> u64),
            ("timeout", Style::Triangles, |sample| sample.timeouts),
        ] {
            let mut any = false;
            for (series, flow) in self.drawn.iter().enumerate() {
                let marks = self.connections(*flow).flat_map(|conn| increases(conn, of, size));
                let points: Vec<(f64, f64)> = marks.collect();
                any |= !points.is_empty();
                lines.push(Line { points, style, look: Look::Series(series), ..Line::default() });
            }
            if any {
                lines.push(Line { label: label.to_owned(), style, look: Look::Ink, ..Line::default() });
            }
        }
        let mut chart = self.chart("cwnd", "Congestion window", &unit, lines);
        chart.spans = self.spans();
        chart
    }

    fn round_trips(&self) -> Chart {
        let lines =
            self.lines(&|conn| over_time(conn, |sample| sample.srtt_ns.map(|nanos| nanos as f64 / 1e6)));
        self.chart("srtt", "Smoothed round-trip time", "ms", lines)
    }

    /// The window of the measurement, unless that is the whole run.
    fn spans(&self) -> Vec<Span> {
        let (from, until) = self.outcome.result.window_s;
        let whole = from <= 0.0 && until >= self.outcome.scene.duration_s;
        if whole { vec![] } else { vec![Span { from, until, label: "measured".to_owned() }] }
    }

    fn queues(&self) -> Vec<(&'a QueueRecord, &'a SceneLink)> {
        self.outcome.record.queues.iter().zip(&self.outcome.scene.links).take(MAX_FLOWS).collect()
    }

    /// Links do not take the colours of flows: a single one is drawn as text, several follow after
    /// the flows.
    fn link_look(&self, place: usize) -> Look {
        if self.outcome.record.queues.len() == 1 { Look::Ink } else { Look::Series(self.drawn.len() + place) }
    }

    /// In packets if the queues count these; else in bytes. Dots are drops.
    fn queue_length(&self) -> Chart {
        let queues = self.queues();
        let in_packets = queues.iter().any(|(_, link)| matches!(link.limit, QueueLimit::Packets(_)));
        let limit = |link: &SceneLink| match (link.limit, in_packets) {
            (QueueLimit::Packets(limit), true) | (QueueLimit::Bytes(limit), false) => Some(limit),
            _ => None,
        };
        let lengths: Vec<Vec<(f64, f64)>> = queues
            .iter()
            .map(|(queue, _)| {
                let length = |sample: &ackline_netsim::record::QueueSample| {
                    if in_packets { sample.packets } else { sample.bytes }
                };
                queue.samples.iter().map(|sample| (seconds(sample.at_ns), length(sample) as f64)).collect()
            })
            .collect();
        let most = queues
            .iter()
            .filter_map(|(_, link)| limit(link))
            .fold(largest(lengths.iter().flatten()), f64::max);
        let (size, unit) = if in_packets { (1.0, "packets".to_owned()) } else { prefixed(most, "B", "kB") };
        let mut lines = vec![];
        let mut drops = vec![];
        let mut references = vec![];
        for (series, ((queue, link), lengths)) in queues.iter().zip(&lengths).enumerate() {
            let points: Vec<(f64, f64)> = lengths.iter().map(|(at, length)| (*at, length / size)).collect();
            let lost = queue.samples.windows(2).zip(points.iter().skip(1)).filter(|(pair, _)| {
                let dropped = |place: usize| pair[place].total.overflows + pair[place].total.aqm_drops;
                dropped(1) > dropped(0)
            });
            drops.push(Line {
                points: lost.map(|(_, point)| *point).collect(),
                style: Style::Points,
                look: self.link_look(series),
                ..Line::default()
            });
            let label = link.name.clone();
            lines.push(Line {
                label,
                points: thinned(&points),
                look: self.link_look(series),
                ..Line::default()
            });
            if let Some(limit) = limit(link) {
                let label = if queues.len() == 1 {
                    "queue limit".to_owned()
                } else {
                    format!("limit of {}", link.name)
                };
                references.push(Reference::level(limit / size, label));
            }
        }
        let any = drops.iter().any(|line| !line.points.is_empty());
        lines.extend(drops);
        if any {
            lines.push(Line {
                label: "dropped".to_owned(),
                style: Style::Points,
                look: Look::Ink,
                ..Line::default()
            });
        }
        let mut chart = self.chart("queue", "Queue", &unit, lines);
        chart.title = "Queue".to_owned();
        chart.references.extend(references);
        chart
    }

    fn utilisation(&self) -> Chart {
        let line = |(series, (queue, link)): (usize, &(&QueueRecord, &SceneLink))| {
            let every = (queue.samples.len() / 100).max(1);
            let samples: Vec<_> = queue.samples.iter().step_by(every).collect();
            let share = |pair: &[&ackline_netsim::record::QueueSample]| {
                let busy = seconds(pair[1].total.busy_ns - pair[0].total.busy_ns);
                (seconds(pair[1].at_ns), 100.0 * busy / seconds(pair[1].at_ns - pair[0].at_ns))
            };
            let points = samples.windows(2).map(share).collect();
            Line { label: link.name.clone(), points, look: self.link_look(series), ..Line::default() }
        };
        let lines = self.queues().iter().enumerate().map(line).collect();
        let chart = self.chart("utilisation", "Use of the link", "% of the time", lines);
        Chart { title: "Use of the link".to_owned(), y_range: Some((0.0, 102.0)), ..chart }
    }

    /// What the policies report about themselves, if it changes: first congestion control, then the
    /// others.
    fn policy_charts(&self) -> Vec<Chart> {
        let connections = || self.drawn.iter().flat_map(|flow| self.connections(*flow));
        let changes = |metric: &&Metric| {
            let mut values = metric.values.iter().flatten().copied().filter_map(finite);
            values.next().is_some_and(|first| values.any(|value| value != first))
        };
        let names: BTreeSet<(bool, &str, &str)> = connections()
            .flat_map(|conn| &conn.metrics)
            // These two are in the plot of the window.
            .filter(|metric| metric.name != "cwnd" && metric.name != "ssthresh")
            .filter(changes)
            .map(|metric| (metric.owner != "cc", metric.owner.as_str(), metric.name.as_str()))
            .collect();
        let chart = |(_, owner, name): &(bool, &str, &str)| {
            let lines = self.lines(&|conn| {
                let metric =
                    conn.metrics.iter().find(|metric| metric.owner == *owner && metric.name == *name);
                let values = metric.map(|metric| metric.values.as_slice()).unwrap_or_default();
                let points = conn.samples.iter().zip(values);
                points
                    .filter_map(|(sample, value)| Some((seconds(sample.at_ns), finite((*value)?)?)))
                    .collect()
            });
            self.chart(
                &format!("{owner}-{name}"),
                &format!("{name} of the {}", owner_name(owner)),
                name,
                lines,
            )
        };
        names.iter().take(MAX_VARIABLES).map(chart).collect()
    }
}

fn owner_name(owner: &str) -> &str {
    match owner {
        "cc" => "congestion control",
        "ack" => "ACK policy",
        "rto" => "RTO response",
        other => other,
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn over_time(conn: &ConnRecord, of: impl Fn(&ConnSample) -> Option<f64>) -> Vec<(f64, f64)> {
    conn.samples.iter().filter_map(|sample| Some((seconds(sample.at_ns), of(sample)?))).collect()
}

/// A value that does not stand for "no limit".
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite() && value.abs() < INFINITE)
}

/// The samples at which a total is larger than at the one before, with the window there.
fn increases(conn: &ConnRecord, of: fn(&ConnSample) -> u64, size: f64) -> Vec<(f64, f64)> {
    let pairs = conn.samples.windows(2).filter(|pair| of(&pair[1]) > of(&pair[0]));
    pairs.map(|pair| (seconds(pair[1].at_ns), pair[1].cwnd as f64 / size)).collect()
}

fn largest<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> f64 {
    points.map(|point| point.1).fold(0.0, f64::max)
}

fn cdf(name: &str, title: String, x_label: &str, lines: Vec<Line>) -> Chart {
    Chart {
        name: name.to_owned(),
        title,
        x_label: x_label.to_owned(),
        y_label: "share not above".to_owned(),
        from_zero: true,
        y_range: Some((0.0, 1.0)),
        x_range: lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.0)
            .reduce(f64::max)
            .map(|most| (0.0, most * 1.03)),
        lines,
        ..Chart::default()
    }
}

fn delay_cdf(outcome: &Outcome) -> Chart {
    let lines = outcome.record.queues.iter().zip(&outcome.link_names).map(|(queue, name)| {
        let mut seen = 0;
        let steps = queue.delay.histogram.iter().map(|(nanos, packets)| {
            seen += packets;
            (*nanos as f64 / 1e6, seen as f64 / queue.delay.count as f64)
        });
        let begin = queue.delay.histogram.first().map(|(nanos, _)| (*nanos as f64 / 1e6, 0.0));
        let points: Vec<_> = begin.into_iter().chain(steps).collect();
        Line { label: name.clone(), points: thinned(&points), style: Style::Steps, ..Line::default() }
    });
    let packets: u64 = outcome.record.queues.iter().map(|queue| queue.delay.count).sum();
    let title = format!("Waiting times of {packets} packets in the measured time");
    cdf("delay-cdf", title, "time in the queue (ms)", lines.take(MAX_FLOWS).collect())
}

fn times_cdf(outcome: &Outcome) -> Chart {
    let mut count = 0;
    let lines: Vec<Line> = outcome
        .result
        .by_app()
        .into_iter()
        .filter_map(|(app, flows)| {
            let mut times: Vec<f64> = flows.iter().flat_map(|flow| flow.times_s.iter().copied()).collect();
            times.sort_by(f64::total_cmp);
            // A curve of a few times says nothing.
            if times.len() < MIN_TIMES {
                return None;
            }
            count += times.len();
            let share = |place: usize| (place + 1) as f64 / times.len() as f64;
            let begin = times.first().map(|time| (*time, 0.0));
            let steps = times.iter().enumerate().map(|(place, time)| (*time, share(place)));
            let points: Vec<_> = begin.into_iter().chain(steps).collect();
            Some(Line {
                label: app.to_owned(),
                points: thinned(&points),
                style: Style::Steps,
                ..Line::default()
            })
        })
        .collect();
    let title = format!("Completion times of {count} transfers that ended in the measured time");
    cdf("times-cdf", title, "completion time (s)", lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_keep_numbers_short() {
        let name = |most| prefixed(most, "B", "kB");
        assert_eq!([500.0, 60e3, 7e6, 9e9].map(|most| name(most).1), ["B", "kB", "MB", "GB"]);
        assert_eq!(prefixed(1e8, "bit/s", "kbit/s"), (1e6, "Mbit/s".to_owned()));
    }

    #[test]
    fn no_limit_is_no_value() {
        assert_eq!(finite(1e6), Some(1e6));
        assert_eq!([u64::MAX as f64, 3e14 * 1e3, f64::INFINITY].map(finite), [None; 3]);
    }
}
