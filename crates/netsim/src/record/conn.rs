//! One connection over time.

use super::series::{self, Metric, Next, Thinning};
use crate::topology::NodeId;
use ackline_observe::labels;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::{Conn, ConnId, Duration, Instant};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A connection, as seen from one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnRecord {
    /// Index of the host among all nodes.
    pub node: usize,
    /// Number of the application on its host, from 0.
    pub app: u32,
    /// Index of the connection on its host; reused after the connection is gone.
    pub conn: usize,
    /// Local address and port.
    pub local: String,
    /// The peer's.
    pub remote: String,
    /// Name of the congestion control.
    pub cc: String,
    /// Name of the ACK policy.
    pub ack_policy: String,
    /// Name of the RTO response.
    pub rto_response: String,
    /// The connection at the sampling instants.
    pub samples: Vec<ConnSample>,
    /// Metrics of its policies, one value per sample.
    pub metrics: Vec<Metric>,
}

/// A connection at one instant. Bytes and segments are totals since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnSample {
    /// When, ns.
    pub at_ns: u64,
    /// State of RFC 9293.
    pub state: Cow<'static, str>,
    /// Phase of loss handling: `open`, `disorder`, `recovery`, `loss`.
    pub ca_state: Cow<'static, str>,
    /// Why nothing is sent.
    pub blocked: Cow<'static, str>,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `None` before the first congestion event.
    pub ssthresh: Option<u64>,
    /// Bytes in the network (RFC 6675).
    pub pipe: u32,
    /// The peer's window, bytes.
    pub snd_wnd: u32,
    /// The window advertised, bytes.
    pub rcv_wnd: u32,
    /// Smoothed RTT, ns.
    pub srtt_ns: Option<u64>,
    /// Smallest RTT, ns.
    pub min_rtt_ns: Option<u64>,
    /// Retransmission timeout, ns.
    pub rto_ns: u64,
    /// Pacing rate, bits per second; `None` if not paced.
    pub pacing_bps: Option<u64>,
    /// Last delivery-rate sample, bits per second.
    pub delivery_bps: Option<u64>,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Pure ACKs sent.
    pub acks_out: u64,
}

impl ConnSample {
    /// What a connection shows of itself at an instant.
    #[must_use]
    pub fn of(at: Instant, info: &Info) -> Self {
        Self {
            at_ns: at.as_nanos(),
            state: info.state.name().into(),
            ca_state: labels::phase(info.ca_state).into(),
            blocked: labels::blocked(info.blocked).into(),
            cwnd: info.snd_cwnd,
            ssthresh: info.snd_ssthresh,
            pipe: info.pipe,
            snd_wnd: info.snd_wnd,
            rcv_wnd: info.rcv_wnd,
            srtt_ns: info.rtt.map(Duration::as_nanos),
            min_rtt_ns: info.min_rtt.map(Duration::as_nanos),
            rto_ns: info.rto.as_nanos(),
            pacing_bps: info.pacing_rate.map(|rate| rate.bits_per_second()),
            delivery_bps: info.delivery_rate.map(|rate| rate.bits_per_second()),
            bytes_sent: info.bytes_sent,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            bytes_retrans: info.bytes_retrans,
            retransmits: info.total_retrans,
            timeouts: info.timeouts,
            acks_out: info.acks_out,
        }
    }
}

/// Collects the samples of one connection.
#[derive(Debug)]
pub(super) struct ConnRecorder {
    record: ConnRecord,
    thinning: Thinning,
}

impl ConnRecorder {
    pub(super) fn new(node: NodeId, app: u32, id: ConnId, max_points: usize) -> Self {
        let record = ConnRecord {
            node: node.index(),
            app,
            conn: id.index(),
            local: String::new(),
            remote: String::new(),
            cc: String::new(),
            ack_policy: String::new(),
            rto_response: String::new(),
            samples: vec![],
            metrics: vec![],
        };
        Self { record, thinning: Thinning::new(max_points) }
    }

    pub(super) const fn record(&self) -> &ConnRecord {
        &self.record
    }

    pub(super) fn sample(&mut self, now: Instant, conn: &Conn<'_>) {
        let record = &mut self.record;
        let next = self.thinning.next(record.samples.len());
        if matches!(next, Next::HalveAndKeep | Next::HalveAndSkip) {
            series::halve(&mut record.samples);
            record.metrics.iter_mut().for_each(|metric| series::halve(&mut metric.values));
        }
        if matches!(next, Next::Skip | Next::HalveAndSkip) {
            return;
        }
        let info = conn.info();
        if record.cc != info.cc || record.local.is_empty() {
            record.local = info.local.to_string();
            record.remote = info.remote.to_string();
            record.cc = info.cc.to_owned();
        }
        if record.ack_policy != info.ack_policy {
            record.ack_policy = info.ack_policy.to_owned();
        }
        if record.rto_response != info.rto_response {
            record.rto_response = info.rto_response.to_owned();
        }
        record.samples.push(ConnSample::of(now, &info));
        let place = record.samples.len() - 1;
        let metrics = &mut record.metrics;
        conn.metrics(&mut |kind, metric| {
            series::report(metrics, place, kind.keyword(), metric.name, metric.value);
        });
        for metric in &mut record.metrics {
            metric.values.resize(place + 1, None);
        }
    }
}
