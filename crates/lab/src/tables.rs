//! Results and time series as CSV.

use crate::results::RunResult;
use crate::run::Outcome;
use crate::stats::Spread;
use crate::summary::field;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn prefix(result: &RunResult) -> String {
    let mut text = format!("{},{},{}", result.point, result.repetition, result.seed);
    for param in &result.params {
        let _ = write!(text, ",{}", field(&param.value));
    }
    text
}

fn header(results: &[RunResult], columns: &str) -> String {
    let mut text = String::from("point,repetition,seed");
    for param in results.first().map(|result| result.params.as_slice()).unwrap_or_default() {
        let _ = write!(text, ",{}", field(&param.path));
    }
    format!("{text},{columns}\n")
}

fn spread(spread: Option<&Spread>) -> String {
    match spread {
        Some(Spread { count, mean, sd, min, p50, p95, p99, max }) => {
            format!("{count},{mean},{sd},{min},{p50},{p95},{p99},{max}")
        }
        None => "0,,,,,,,".to_owned(),
    }
}

fn spread_columns(name: &str, unit: &str) -> String {
    let columns = ["mean", "sd", "min", "p50", "p95", "p99", "max"];
    let columns = columns.map(|column| format!("{name}_{column}_{unit}"));
    format!("{name}_count,{}", columns.join(","))
}

/// One line per flow and run.
#[must_use]
pub fn flows_csv(results: &[RunResult]) -> String {
    let columns = format!(
        "flow,app,sender,receiver,cc,ack,rto,sched,start_s,goodput_bps,share,received_bytes,data_packets,retransmits,completed,{},{},{}",
        spread_columns("time", "s"),
        spread_columns("srtt", "s"),
        spread_columns("cwnd", "bytes")
    );
    let mut text = header(results, &columns);
    for result in results {
        for flow in &result.flows {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                prefix(result),
                flow.name,
                flow.app,
                flow.sender,
                flow.receiver,
                flow.cc,
                flow.ack,
                flow.rto,
                flow.sched,
                flow.start_s,
                flow.goodput_bps,
                flow.share,
                flow.received_bytes,
                flow.data_packets,
                flow.retransmits,
                flow.times_s.len(),
                spread(Spread::of(flow.times_s.clone()).as_ref()),
                spread(flow.srtt_s.as_ref()),
                spread(flow.cwnd_bytes.as_ref()),
            );
        }
    }
    text
}

/// One line per measured queue and run.
#[must_use]
pub fn queues_csv(results: &[RunResult]) -> String {
    let columns = format!(
        "link,queue,rate_bps,utilisation,throughput_bps,offered,delivered,overflows,aqm_drops,impaired,marked,{}",
        spread_columns("delay", "s")
    );
    let mut text = header(results, &columns);
    for result in results {
        for queue in &result.queues {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                prefix(result),
                queue.link,
                queue.queue,
                queue.rate_bps.map(|rate| rate.to_string()).unwrap_or_default(),
                queue.utilisation,
                queue.throughput_bps,
                queue.offered,
                queue.delivered,
                queue.overflows,
                queue.aqm_drops,
                queue.impaired,
                queue.marked,
                spread(queue.delay_s.as_ref()),
            );
        }
    }
    text
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The senders' connections of a run over time, one line per sample.
#[must_use]
pub fn connections_csv(outcome: &Outcome) -> String {
    let mut names = BTreeSet::new();
    for conn in &outcome.record.connections {
        names.extend(conn.metrics.iter().map(|metric| format!("{}.{}", metric.owner, metric.name)));
    }
    let mut text = String::from(
        "flow,connection,at_s,state,phase,blocked,cwnd_bytes,ssthresh_bytes,pipe_bytes,snd_wnd_bytes,srtt_s,min_rtt_s,rto_s,pacing_bps,delivery_bps,bytes_sent,bytes_acked,bytes_retrans,retransmits,timeouts",
    );
    for name in &names {
        let _ = write!(text, ",{name}");
    }
    text.push('\n');
    for (number, (conn, flow)) in outcome.record.connections.iter().zip(&outcome.flow_of).enumerate() {
        let Some(flow) = flow.and_then(|flow| outcome.result.flows.get(flow)) else { continue };
        let columns: Vec<_> = names
            .iter()
            .map(|name| {
                conn.metrics.iter().find(|metric| format!("{}.{}", metric.owner, metric.name) == *name)
            })
            .collect();
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        for (place, sample) in conn.samples.iter().enumerate() {
            let _ = write!(
                text,
                "{},{number},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                flow.name,
                seconds(sample.at_ns),
                sample.state,
                sample.ca_state,
                sample.blocked,
                sample.cwnd,
                optional(sample.ssthresh),
                sample.pipe,
                sample.snd_wnd,
                optional(sample.srtt_ns.map(seconds)),
                optional(sample.min_rtt_ns.map(seconds)),
                seconds(sample.rto_ns),
                optional(sample.pacing_bps),
                optional(sample.delivery_bps),
                sample.bytes_sent,
                sample.bytes_acked,
                sample.bytes_retrans,
                sample.retransmits,
                sample.timeouts,
            );
            for metric in &columns {
                let value = metric.and_then(|metric| metric.values.get(place).copied().flatten());
                let _ = write!(text, ",{}", optional(value));
            }
            text.push('\n');
        }
    }
    text
}

/// The goodput of a run's flows over time, one line per flow and interval: bytes that arrived in
/// it, each counted once.
#[must_use]
pub fn goodput_csv(outcome: &Outcome) -> String {
    let series = &outcome.goodput;
    let mut text = String::from("flow,until_s,arrived_bytes,goodput_bps\n");
    for (place, (bytes, flow)) in series.bytes.iter().zip(&outcome.result.flows).enumerate() {
        for (bytes, (until, rate)) in bytes.iter().zip(series.rates(place, 1)) {
            let _ = writeln!(text, "{},{until},{bytes},{rate}", flow.name);
        }
    }
    text
}

/// The measured queues of a run over time, one line per sample. Counters are totals since the
/// beginning.
#[must_use]
pub fn queue_series_csv(outcome: &Outcome) -> String {
    let mut text = String::from(
        "link,at_s,packets,bytes,offered,delivered,delivered_bytes,overflows,aqm_drops,impaired,marked,busy_s\n",
    );
    for (queue, name) in outcome.record.queues.iter().zip(&outcome.link_names) {
        for sample in &queue.samples {
            let total = &sample.total;
            let _ = writeln!(
                text,
                "{name},{},{},{},{},{},{},{},{},{},{},{}",
                sample.at_ns as f64 / 1e9,
                sample.packets,
                sample.bytes,
                total.offered,
                total.delivered,
                total.delivered_bytes,
                total.overflows,
                total.aqm_drops,
                total.impaired,
                total.marked,
                total.busy_ns as f64 / 1e9,
            );
        }
    }
    text
}
