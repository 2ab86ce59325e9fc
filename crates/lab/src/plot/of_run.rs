//! Plots of one run: what changed over time, how delays are spread, and the sequence numbers.

use super::{Chart, Kind, Line, Style, thinned};
use crate::run::Outcome;
use ackline_netsim::record::{ConnRecord, ConnSample, Metric, TraceRow};
use std::collections::BTreeSet;

/// Flows that are drawn.
const MAX_FLOWS: usize = 8;

/// The place of a plot of a run among the others, by its name.
pub(crate) fn order(name: &str) -> usize {
    let names = ["goodput", "cwnd", "srtt", "queue", "utilisation", "delay-cdf", "times-cdf", "sequence"];
    names.iter().position(|known| *known == name).unwrap_or(names.len())
}

/// The plots of a run, those without content left out.
#[must_use]
pub fn run_charts(outcome: &Outcome) -> Vec<Chart> {
    let flows = Flows::of(outcome);
    let mut charts = vec![
        goodput(outcome),
        flows.chart("cwnd", "Congestion window over time", "KiB", &|conn| {
            over_time(conn, |sample| Some(sample.cwnd as f64 / 1_024.0))
        }),
        flows.chart("srtt", "Smoothed round-trip time over time", "ms", &|conn| {
            over_time(conn, |sample| sample.srtt_ns.map(|nanos| nanos as f64 / 1e6))
        }),
        queue_length(outcome),
        utilisation(outcome),
        delay_cdf(outcome),
        times_cdf(outcome),
    ];
    charts.extend(flows.policy_charts());
    charts.extend(sequence(outcome));
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// The connections that are drawn, with the names of their flows.
struct Flows<'a>(Vec<(&'a str, &'a ConnRecord)>);

impl<'a> Flows<'a> {
    /// Of each application in turn, so that each is there.
    fn of(outcome: &'a Outcome) -> Self {
        let mut apps: Vec<(&str, Vec<(&str, &ConnRecord)>)> = vec![];
        for (conn, flow) in outcome.record.connections.iter().zip(&outcome.flow_of) {
            let Some(flow) = flow.and_then(|flow| outcome.result.flows.get(flow)) else { continue };
            match apps.iter_mut().find(|(app, _)| *app == flow.app) {
                Some((_, conns)) => conns.push((&flow.name, conn)),
                None => apps.push((&flow.app, vec![(&flow.name, conn)])),
            }
        }
        let most = apps.iter().map(|(_, conns)| conns.len()).max().unwrap_or(0);
        let turns =
            (0..most).flat_map(|turn| apps.iter().filter_map(move |(_, conns)| conns.get(turn).copied()));
        Self(turns.take(MAX_FLOWS).collect())
    }

    fn chart(
        &self,
        name: &str,
        title: &str,
        unit: &str,
        of: &dyn Fn(&ConnRecord) -> Vec<(f64, f64)>,
    ) -> Chart {
        let lines = self.0.iter().map(|(flow, conn)| Line {
            label: (*flow).to_owned(),
            points: thinned(&of(conn)),
            ..Line::default()
        });
        Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            x_label: "time [s]".to_owned(),
            y_label: unit.to_owned(),
            from_zero: true,
            lines: lines.collect(),
            ..Chart::default()
        }
    }

    /// What the policies report about themselves, where it changes: first congestion control, then the others.
    fn policy_charts(&self) -> Vec<Chart> {
        let metrics = self.0.iter().flat_map(|(_, conn)| &conn.metrics);
        let changes = |metric: &&Metric| {
            let mut values = metric.values.iter().flatten();
            values.next().is_some_and(|first| values.any(|value| value != first))
        };
        let names: BTreeSet<(bool, &str, &str)> = metrics
            // The window has its own plot.
            .filter(|metric| metric.name != "cwnd")
            .filter(changes)
            .map(|metric| (metric.owner != "cc", metric.owner.as_str(), metric.name.as_str()))
            .collect();
        let chart = |(_, owner, name): &(bool, &str, &str)| {
            let title = format!("{name}, as the {} reports it", owner_name(owner));
            self.chart(&format!("{owner}-{name}"), &title, name, &|conn| {
                let metric =
                    conn.metrics.iter().find(|metric| metric.owner == *owner && metric.name == *name);
                let values = metric.map(|metric| metric.values.as_slice()).unwrap_or_default();
                let points = conn.samples.iter().zip(values);
                points.filter_map(|(sample, value)| Some((seconds(sample.at_ns), (*value)?))).collect()
            })
        };
        names.iter().take(5).map(chart).collect()
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

/// Of flows, each over spans of a hundredth of the run.
fn goodput(outcome: &Outcome) -> Chart {
    let series = &outcome.goodput;
    let intervals = series.bytes.first().map_or(0, Vec::len).div_ceil(100);
    let lines = outcome.result.flows.iter().take(MAX_FLOWS).enumerate().map(|(place, flow)| Line {
        label: flow.name.clone(),
        points: series.rates(place, intervals).into_iter().map(|(at, rate)| (at, rate / 1e6)).collect(),
        ..Line::default()
    });
    Chart {
        name: "goodput".to_owned(),
        title: "Goodput over time".to_owned(),
        x_label: "time [s]".to_owned(),
        y_label: "Mbit/s".to_owned(),
        from_zero: true,
        lines: lines.collect(),
        ..Chart::default()
    }
}

fn queue_length(outcome: &Outcome) -> Chart {
    let lines = outcome.record.queues.iter().zip(&outcome.link_names).map(|(queue, name)| Line {
        label: name.clone(),
        points: thinned(
            &queue
                .samples
                .iter()
                .map(|sample| (seconds(sample.at_ns), sample.packets as f64))
                .collect::<Vec<_>>(),
        ),
        ..Line::default()
    });
    Chart {
        name: "queue".to_owned(),
        title: "Packets in the queue over time".to_owned(),
        x_label: "time [s]".to_owned(),
        y_label: "packets".to_owned(),
        from_zero: true,
        lines: lines.take(MAX_FLOWS).collect(),
        ..Chart::default()
    }
}

fn utilisation(outcome: &Outcome) -> Chart {
    let lines = outcome.record.queues.iter().zip(&outcome.link_names).map(|(queue, name)| {
        let every = (queue.samples.len() / 100).max(1);
        let samples: Vec<_> = queue.samples.iter().step_by(every).collect();
        let share = |pair: &[&ackline_netsim::record::QueueSample]| {
            let busy = seconds(pair[1].total.busy_ns - pair[0].total.busy_ns);
            (seconds(pair[1].at_ns), 100.0 * busy / seconds(pair[1].at_ns - pair[0].at_ns))
        };
        Line { label: name.clone(), points: samples.windows(2).map(share).collect(), ..Line::default() }
    });
    Chart {
        name: "utilisation".to_owned(),
        title: "Use of the link over time".to_owned(),
        x_label: "time [s]".to_owned(),
        y_label: "% of the time".to_owned(),
        from_zero: true,
        lines: lines.take(MAX_FLOWS).collect(),
        ..Chart::default()
    }
}

fn cdf(name: &str, title: &str, x_label: &str, lines: Vec<Line>) -> Chart {
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "share not above".to_owned(),
        from_zero: true,
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
        let points: Vec<_> = steps.collect();
        Line { label: name.clone(), points: thinned(&points), style: Style::Steps, ..Line::default() }
    });
    let packets: u64 = outcome.record.queues.iter().map(|queue| queue.delay.count).sum();
    let title = format!("Waiting times of {packets} packets within the window");
    cdf("delay-cdf", &title, "time in the queue [ms]", lines.take(MAX_FLOWS).collect())
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
            if times.len() < 5 {
                return None;
            }
            count += times.len();
            let share = |place: usize| (place + 1) as f64 / times.len() as f64;
            let points: Vec<_> =
                times.iter().enumerate().map(|(place, time)| (*time, share(place))).collect();
            Some(Line {
                label: app.to_owned(),
                points: thinned(&points),
                style: Style::Steps,
                ..Line::default()
            })
        })
        .collect();
    let title = format!("Completion times of {count} transfers that ended within the window");
    cdf("times-cdf", &title, "time [s]", lines)
}

/// Sequence numbers over time of the first flow in the trace: what arrived, what was dropped, what was sent again, and the
/// acknowledgments where their link is measured too.
fn sequence(outcome: &Outcome) -> Option<Chart> {
    let trace = outcome.record.trace.as_ref()?;
    let is_data = |row: &&TraceRow| row.tcp.is_some_and(|tcp| tcp.payload > 0);
    let (from, until) = outcome.result.window_s;
    let rows: Vec<&TraceRow> =
        trace.rows.iter().filter(|row| (from..=until).contains(&seconds(row.at_ns))).collect();
    let first = rows.iter().copied().find(is_data)?;
    let (link, head) = (first.link, first.tcp?);
    let forth = rows.iter().copied().filter(|row| row.link == link).filter(is_data);
    let mut lines = [
        ("data", Style::Dots),
        ("sent again", Style::Crosses),
        ("dropped", Style::Crosses),
        ("acknowledged", Style::Steps),
    ]
    .map(|(label, style)| Line { label: label.to_owned(), style, ..Line::default() });
    // Differences from the first number are small: they are signed.
    let since = |seq: u32| f64::from(seq.wrapping_sub(head.seq).cast_signed()) / 1_024.0;
    for row in forth {
        let Some(tcp) = row.tcp.filter(|tcp| (tcp.src_port, tcp.dst_port) == (head.src_port, head.dst_port))
        else {
            continue;
        };
        let kind = if row.dropped { 2 } else { usize::from(row.class == "retransmit") };
        lines[kind].points.push((seconds(row.at_ns), since(tcp.seq)));
    }
    for row in rows.iter().filter(|row| row.link != link && !row.dropped) {
        if let Some(tcp) =
            row.tcp.filter(|tcp| (tcp.src_port, tcp.dst_port) == (head.dst_port, head.src_port))
        {
            lines[3].points.push((seconds(row.at_ns), since(tcp.ack)));
        }
    }
    lines[0].points = thinned(&lines[0].points);
    lines[3].points = thinned(&lines[3].points);
    Some(Chart {
        name: "sequence".to_owned(),
        title: format!("Sequence numbers on {}", outcome.name_of(link)),
        x_label: "time [s]".to_owned(),
        y_label: "KiB from the first byte in the window".to_owned(),
        x: Kind::Linear,
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        ..Chart::default()
    })
}
