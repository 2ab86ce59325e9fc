//! What a run gives: plain data, one JSON object per run.
//!
//! The *window* is the time in which things are measured: `measure.from` to `measure.until`.

use crate::scenario::Param;
use crate::stage::Validity;
use crate::stats::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run: one point of a sweep with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the scenario.
    pub scenario: String,
    /// The point, from 0.
    pub point: usize,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The seed: `seed = ...` and `repeat = 1` repeat this run.
    pub seed: u64,
    /// The values of the point.
    pub params: Vec<Param>,
    /// Begin and end of the window, s.
    pub window_s: (f64, f64),
    /// Time between two samples, s.
    pub interval_s: f64,
    /// Length of the bins of [`FlowResult::received_bins`], s; `None` if the scenario asks for
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin_s: Option<f64>,
    /// Each flow, in the order of the scenario.
    pub flows: Vec<FlowResult>,
    /// Each measured queue.
    pub queues: Vec<QueueResult>,
    /// Each host.
    pub hosts: Vec<HostResult>,
    /// Jain's index over the goodputs of [greedy flows](FlowResult::greedy); `None` if there are
    /// fewer than two.
    pub jain: Option<f64>,
    /// Packets that hosts sent.
    pub packets: u64,
    /// Packets that no route led to.
    pub unroutable: u64,
    /// Whether the machine kept the times of the run. `None` if its time was virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
}

/// One flow: an application that opens connections to another one, and sends or asks for data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// The application of the scenario that it belongs to.
    pub app: String,
    /// Node that sends the data.
    pub sender: String,
    /// Node that receives it.
    pub receiver: String,
    /// Name of the sender's congestion control.
    pub cc: String,
    /// Name of the receiver's ACK policy: the one that acknowledges the data.
    pub ack: String,
    /// Name of the sender's response to a timeout.
    pub rto: String,
    /// Name of the scheduler of the sender's host.
    pub sched: String,
    /// When it starts, s.
    pub start_s: f64,
    /// It sends as fast as TCP lets it, and did so until the window ended.
    pub greedy: bool,
    /// Bytes that the receiving application read in order within the window, as bits per second of
    /// the whole window.
    pub goodput_bps: f64,
    /// Its share of the goodput of all flows.
    pub share: f64,
    /// Bytes that the receiving application read in the whole run.
    pub received_bytes: u64,
    /// The bytes that it read in each whole bin of the run, from the beginning on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received_bins: Vec<u64>,
    /// Packets with data that the sender sent within the window, retransmissions included.
    pub data_packets: u64,
    /// Retransmissions among them.
    pub retransmits: u64,
    /// Smoothed RTT at the sampling instants of the window in which a connection was there, s.
    pub srtt_s: Option<Spread>,
    /// Congestion window at these instants, bytes.
    pub cwnd_bytes: Option<Spread>,
    /// Congestion window at the last of them, bytes, if the scenario asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_end_bytes: Option<u64>,
    /// Times that ended within the window, s: from a transfer's start to the acknowledgment of its
    /// last byte, from a download's start to its last byte, from a request to the end of its
    /// response.
    pub times_s: Vec<f64>,
    /// Each connection by itself, also those of the time before the window, if the scenario asks
    /// for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferResult>,
    /// Reads that found an octet which was never sent there: always zero, unless checksums are
    /// omitted.
    pub wrong_reads: u64,
    /// What the two applications report about themselves.
    pub app_metrics: BTreeMap<String, f64>,
    /// What its policies show of themselves at the end of the window. `None` if no connection was
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<PolicyMetrics>,
}

/// Variables of the policies of one connection, by name; [`Unit`](ackline_tcp_core::policy::Unit)
/// says what names tell of units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyMetrics {
    /// Of the sender's congestion control.
    pub cc: BTreeMap<String, f64>,
    /// Of the receiver's ACK policy.
    pub ack: BTreeMap<String, f64>,
    /// Of the sender's response to a timeout.
    pub rto: BTreeMap<String, f64>,
}

/// One connection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    /// When its SYN was sent first, s.
    pub begun_s: f64,
    /// Bytes of the stream that reached the receiving host, each counted once.
    pub bytes: u64,
    /// Bytes that reached it again, within the window.
    pub redundant_bytes: u64,
    /// Packets with data that the sender sent within the window, retransmissions included.
    pub data_packets: u64,
    /// Retransmissions among them.
    pub retransmits: u64,
    /// Retransmission timeouts of the sender with data outstanding.
    pub timeouts: u64,
    /// The sender's congestion window in segments, mean over the sampling instants at which it had
    /// data outstanding or to send; it counts as zero while the response to a timeout probes.
    /// `None` if it had none at any of them.
    pub cwnd_segments: Option<f64>,
    /// The same mean, in which the window while the response probes counts as it was before the
    /// timeout.
    pub cwnd_before_segments: Option<f64>,
    /// The sender's segment size in bytes.
    pub mss: u32,
}

impl TransferResult {
    /// Redundant bytes over the mean window in bytes; lower is better. `None` if the window is not
    /// known, or was zero.
    #[must_use]
    pub fn spectral_efficiency(&self) -> Option<f64> {
        self.redundant_over(self.cwnd_segments?)
    }

    /// The same over the mean in which a probing sender's window counts as it was before the
    /// timeout.
    #[must_use]
    pub fn spectral_efficiency_before(&self) -> Option<f64> {
        self.redundant_over(self.cwnd_before_segments?)
    }

    fn redundant_over(&self, segments: f64) -> Option<f64> {
        let window = segments * f64::from(self.mss);
        (window > 0.0).then(|| self.redundant_bytes as f64 / window)
    }
}

/// One queue and the link behind it, within the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueResult {
    /// Name of the link.
    pub link: String,
    /// Name of the queue.
    pub queue: String,
    /// Bits per second at the end; `None` if the link takes no time.
    pub rate_bps: Option<u64>,
    /// Waiting times of packets, from arrival to the first bit on the link, s. Every packet counts;
    /// percentiles are right to a thousandth.
    pub delay_s: Option<Spread>,
    /// Of a queue with one for L4S traffic: the same in that, and in the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l4s_delay_s: Option<Spread>,
    /// In the other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic_delay_s: Option<Spread>,
    /// The share of time in which the link was serialising.
    pub utilisation: f64,
    /// Bits per second, headers included, that arrived at the other end.
    pub throughput_bps: f64,
    /// Packets that came to the queue.
    pub offered: u64,
    /// Packets that arrived at the other end.
    pub delivered: u64,
    /// Packets dropped because the buffer was full.
    pub overflows: u64,
    /// Packets dropped by the AQM.
    pub aqm_drops: u64,
    /// Packets lost by impairments.
    pub impaired: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// What left by kind of packet; bytes as the link serialises them.
    #[serde(default)]
    pub classes: Classes,
}

/// Packets that left a link within the window, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// With bytes of the stream, sent for the first time or again.
    pub data: Amount,
    /// Acknowledgments without.
    pub ack: Amount,
    /// SYN, FIN, RST, probes, and what is not TCP.
    pub control: Amount,
}

/// How much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A host's scheduler, from the beginning of the run to the end of the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Name of the node.
    pub host: String,
    /// Name of the scheduler.
    pub scheduler: String,
    /// How long packets waited in it, by kind: `ack`, `data`, `retransmit`, `control`; empty if it
    /// had nothing to queue.
    pub waits: BTreeMap<String, Waits>,
    /// What the scheduler reports about itself.
    pub metrics: BTreeMap<String, f64>,
}

/// Waiting times of packets of one kind, s; percentiles are at most 3.2 % too high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Packets that were queued, whether they had to wait or not.
    pub queued: u64,
    /// Half waited for no longer.
    pub p50: f64,
    /// 90 % did.
    pub p90: f64,
    /// 99 % did.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl QueueResult {
    /// The share of packets that came to the queue and were dropped, there or on the link.
    #[must_use]
    pub fn loss(&self) -> f64 {
        share(self.overflows + self.aqm_drops + self.impaired, self.offered)
    }

    /// The share of packets that were marked.
    #[must_use]
    pub fn mark_share(&self) -> f64 {
        share(self.marked, self.offered)
    }
}

impl FlowResult {
    /// The share of data packets that were retransmissions.
    #[must_use]
    pub fn retransmit_share(&self) -> f64 {
        share(self.retransmits, self.data_packets)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A number of one run, for summaries and plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What it is of, and which: `bulk goodput`.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its meaning in words, with window and population.
    pub what: &'static str,
    /// The number.
    pub value: f64,
    /// It answers what most readers ask first.
    pub main: bool,
}

impl RunResult {
    /// The numbers of the run, in a fixed order.
    #[must_use]
    pub fn readings(&self) -> Vec<Reading> {
        let mut readings = vec![];
        let mut add = |main: bool, name: String, unit, what, value: f64| {
            readings.push(Reading { name, unit, what, value, main });
        };
        for (app, flows) in self.by_app() {
            let sum = |of: &dyn Fn(&FlowResult) -> f64| flows.iter().map(|flow| of(flow)).sum::<f64>();
            let count = flows.len() as f64;
            let total = sum(&|flow| flow.goodput_bps);
            let has_times = flows.iter().any(|flow| !flow.times_s.is_empty());
            add(
                !has_times,
                format!("{app} goodput"),
                "Mbit/s",
                "application bytes read in order per second of the window, mean over flows",
                total / count / 1e6,
            );
            if flows.len() > 1 {
                add(false, format!("{app} total goodput"), "Mbit/s", "the same, sum over flows", total / 1e6);
            }
            let mut times: Vec<f64> = flows.iter().flat_map(|flow| flow.times_s.iter().copied()).collect();
            times.sort_by(f64::total_cmp);
            if let Some(spread) = Spread::of_sorted(&times) {
                add(
                    false,
                    format!("{app} completed"),
                    "",
                    "transfers, downloads or requests that ended within the window, all flows",
                    times.len() as f64,
                );
                add(true, format!("{app} time p50"), "s", "median of their times", spread.p50);
                add(true, format!("{app} time p95"), "s", "95th percentile of their times", spread.p95);
            }
            let data = sum(&|flow| flow.data_packets as f64);
            if data > 0.0 {
                let again = sum(&|flow| flow.retransmits as f64);
                add(
                    false,
                    format!("{app} retransmits"),
                    "%",
                    "of the data packets sent in the window, all flows",
                    100.0 * again / data,
                );
            }
            let rtts: Vec<&Spread> = flows.iter().filter_map(|flow| flow.srtt_s.as_ref()).collect();
            let samples: u64 = rtts.iter().map(|rtt| rtt.count).sum();
            if samples > 0 {
                let mean = rtts.iter().map(|rtt| rtt.mean * rtt.count as f64).sum::<f64>() / samples as f64;
                add(
                    false,
                    format!("{app} srtt"),
                    "ms",
                    "mean of the smoothed RTT at the sampling instants of the window, all flows",
                    mean * 1e3,
                );
            }
            let windows: Vec<f64> =
                flows.iter().filter_map(|flow| flow.cwnd_end_bytes).map(|bytes| bytes as f64).collect();
            if !windows.is_empty() {
                add(
                    true,
                    format!("{app} cwnd"),
                    "B",
                    "congestion window at the last sampling instant of the window, mean over flows",
                    windows.iter().sum::<f64>() / windows.len() as f64,
                );
            }
        }
        for queue in &self.queues {
            let link = &queue.link;
            add(
                true,
                format!("{link} utilisation"),
                "%",
                "share of the window in which the link was serialising",
                100.0 * queue.utilisation,
            );
            if let Some(delay) = &queue.delay_s {
                add(
                    true,
                    format!("{link} delay"),
                    "ms",
                    "mean waiting time of the packets that left the queue in the window",
                    delay.mean * 1e3,
                );
                add(
                    false,
                    format!("{link} delay p95"),
                    "ms",
                    "95th percentile of these times",
                    delay.p95 * 1e3,
                );
                add(
                    false,
                    format!("{link} delay p99"),
                    "ms",
                    "99th percentile of these times",
                    delay.p99 * 1e3,
                );
            }
            for (queue, delay) in [("L4S", &queue.l4s_delay_s), ("classic", &queue.classic_delay_s)] {
                let Some(delay) = delay else { continue };
                add(
                    true,
                    format!("{link} {queue} delay"),
                    "ms",
                    "mean waiting time in this one of the two queues",
                    delay.mean * 1e3,
                );
                add(
                    true,
                    format!("{link} {queue} delay p99"),
                    "ms",
                    "99th percentile of these times",
                    delay.p99 * 1e3,
                );
            }
            add(
                true,
                format!("{link} loss"),
                "%",
                "packets dropped in the window, of those that came to the queue",
                100.0 * queue.loss(),
            );
            if queue.queue != "drop-tail" {
                add(
                    true,
                    format!("{link} marked"),
                    "%",
                    "packets marked CE in the window, of those that came to the queue",
                    100.0 * queue.mark_share(),
                );
            }
        }
        if let Some(jain) = self.jain {
            add(
                true,
                "fairness".to_owned(),
                "",
                "Jain's index over the goodputs of greedy flows that had not ended with the window",
                jain,
            );
        }
        readings
    }

    /// Flows by application, in the order of the scenario.
    #[must_use]
    pub fn by_app(&self) -> Vec<(&str, Vec<&FlowResult>)> {
        let mut apps: Vec<(&str, Vec<&FlowResult>)> = vec![];
        for flow in &self.flows {
            match apps.iter_mut().find(|(app, _)| *app == flow.app) {
                Some((_, flows)) => flows.push(flow),
                None => apps.push((&flow.app, vec![flow])),
            }
        }
        apps
    }
}
