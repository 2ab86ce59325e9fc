//! A test as iperf3's JSON document: its keys, units and types, so that what reads iperf3's output
//! reads this.
//!
//! What iperf3 does not have stands under the key `ackline`. A key that iperf3 writes twice is here
//! once.

use super::record::{
    Connected, Contact, Cpu, Direction, Extremes, Interval, Length, Own, Record, ServerOutput, Setup,
    StreamInterval, StreamPolicies, StreamTotal, Sum, Total,
};
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};

/// The document.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub(super) start: StartDoc<'a>,
    pub(super) intervals: Vec<IntervalDoc>,
    pub(super) end: EndDoc<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_output_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_output_json: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ackline: Option<OwnDoc<'a>>,
}

impl<'a> From<&'a Record> for Document<'a> {
    fn from(record: &'a Record) -> Self {
        let (text, json) = match &record.server_output {
            None => (None, None),
            Some(ServerOutput::Text(text)) => (Some(text.as_str()), None),
            Some(ServerOutput::Json(json)) => (None, Some(json)),
        };
        Self {
            start: StartDoc {
                connected: record.streams.iter().map(ConnectedDoc::from).collect(),
                version: &record.software.version,
                system_info: &record.software.system,
                setup: record.setup.as_ref().map(SetupDoc::from),
            },
            intervals: record.intervals.iter().map(|interval| IntervalDoc::new(interval, record)).collect(),
            end: EndDoc { known: KnownEnd::of(record) },
            title: record.title.as_deref(),
            extra_data: record.extra_data.as_deref(),
            server_output_text: text,
            server_output_json: json,
            error: record.error.as_deref(),
            ackline: record
                .own
                .as_ref()
                .map(|own| OwnDoc { own, streams: record.end.as_ref().map_or(&[], |end| &end.policies) }),
        }
    }
}

#[derive(Serialize)]
pub(super) struct OwnDoc<'a> {
    #[serde(flatten)]
    own: &'a Own,
    streams: &'a [StreamPolicies],
}

#[derive(Serialize)]
pub(super) struct StartDoc<'a> {
    connected: Vec<ConnectedDoc>,
    version: &'a str,
    system_info: &'a str,
    #[serde(flatten)]
    setup: Option<SetupDoc<'a>>,
}

#[derive(Serialize)]
struct ConnectedDoc {
    socket: u32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

impl From<&Connected> for ConnectedDoc {
    fn from(stream: &Connected) -> Self {
        Self {
            socket: stream.id,
            local_host: stream.local.ip().to_string(),
            local_port: stream.local.port(),
            remote_host: stream.remote.ip().to_string(),
            remote_port: stream.remote.port(),
        }
    }
}

#[derive(Serialize)]
struct SetupDoc<'a> {
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<Host>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<Host>,
    cookie: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u32>,
    target_bitrate: u64,
    sock_bufsize: u64,
    sndbuf_actual: u64,
    rcvbuf_actual: u64,
    test_start: TestStart,
}

#[derive(Serialize)]
struct Timestamp {
    time: String,
    timesecs: u64,
}

#[derive(Serialize)]
struct Host {
    host: String,
    port: u16,
}

#[derive(Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u64,
    omit: u32,
    duration: u32,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
}

impl<'a> From<&'a Setup> for SetupDoc<'a> {
    fn from(setup: &'a Setup) -> Self {
        let Setup { contact, time, cookie, control_mss, buffers, parameters } = setup;
        let (to, from) = match contact {
            Contact::ConnectingTo { host, port } => (Some(Host { host: host.clone(), port: *port }), None),
            Contact::AcceptedFrom(peer) => {
                (None, Some(Host { host: peer.ip().to_string(), port: peer.port() }))
            }
        };
        let (duration, bytes, blocks) = match parameters.length {
            Length::Seconds(seconds) => (seconds, 0, 0),
            Length::Bytes(bytes) => (0, bytes, 0),
            Length::Blocks(blocks) => (0, 0, blocks),
        };
        Self {
            timestamp: Timestamp {
                time: httpdate::fmt_http_date(*time),
                timesecs: time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            },
            connecting_to: to,
            accepted_connection: from,
            cookie,
            tcp_mss: parameters.mss,
            tcp_mss_default: parameters.mss.is_none().then_some(*control_mss),
            target_bitrate: parameters.target_bitrate,
            sock_bufsize: buffers.requested,
            sndbuf_actual: buffers.send,
            rcvbuf_actual: buffers.receive,
            test_start: TestStart {
                protocol: "TCP",
                num_streams: parameters.streams,
                blksize: parameters.block_size,
                omit: parameters.omit,
                duration,
                bytes,
                blocks,
                reverse: (parameters.direction == Direction::Reverse).into(),
                tos: parameters.tos,
                target_bitrate: parameters.target_bitrate,
            },
        }
    }
}

#[derive(Serialize)]
pub(super) struct IntervalDoc {
    streams: Vec<MeasuredDoc>,
    sum: SumDoc,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<SumDoc>,
}

impl IntervalDoc {
    pub(super) fn new(interval: &Interval, record: &Record) -> Self {
        let sums = record.sides().into_iter().map(|sends| {
            let mut sum = SumDoc::new(interval.sum(sends), sends);
            sum.omitted = Some(interval.omitted);
            sum
        });
        let (sum, reverse) = first_two(sums);
        Self {
            streams: interval
                .streams
                .iter()
                .map(|stream| MeasuredDoc::new(stream, interval.omitted))
                .collect(),
            sum: sum.unwrap_or_default(),
            sum_bidir_reverse: reverse,
        }
    }
}

/// Times in seconds, round-trip times in microseconds.
#[derive(Serialize)]
struct MeasuredDoc {
    socket: u32,
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(flatten)]
    sender: Option<SenderDoc>,
    omitted: bool,
    #[serde(rename = "sender")]
    sends: bool,
}

#[derive(Serialize)]
struct SenderDoc {
    retransmits: u64,
    snd_cwnd: u64,
    snd_wnd: u64,
    rtt: u64,
    rttvar: u64,
    pmtu: u32,
}

impl MeasuredDoc {
    fn new(stream: &StreamInterval, omitted: bool) -> Self {
        let time = stream.end.saturating_sub(stream.start);
        Self {
            socket: stream.id,
            start: stream.start.as_secs_f64(),
            end: stream.end.as_secs_f64(),
            seconds: time.as_secs_f64(),
            bytes: stream.bytes,
            bits_per_second: bits_per_second(stream.bytes, time),
            sender: stream.sender.map(|state| SenderDoc {
                retransmits: state.retransmits,
                snd_cwnd: state.snd_cwnd,
                snd_wnd: state.snd_wnd,
                rtt: micros(state.rtt),
                rttvar: micros(state.rttvar),
                pmtu: state.pmtu,
            }),
            omitted,
            sends: stream.sender.is_some(),
        }
    }
}

#[derive(Default, Serialize)]
struct SumDoc {
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<bool>,
    sender: bool,
}

impl SumDoc {
    fn new(sum: Sum, sends: bool) -> Self {
        let time = sum.end.saturating_sub(sum.start);
        Self {
            start: sum.start.as_secs_f64(),
            end: sum.end.as_secs_f64(),
            seconds: time.as_secs_f64(),
            bytes: sum.bytes,
            bits_per_second: bits_per_second(sum.bytes, time),
            retransmits: sum.retransmits,
            omitted: None,
            sender: sends,
        }
    }
}

/// Empty if the test was cut short.
#[derive(Serialize)]
pub(super) struct EndDoc<'a> {
    #[serde(flatten)]
    known: Option<KnownEnd<'a>>,
}

#[derive(Serialize)]
struct KnownEnd<'a> {
    streams: Vec<BothEnds>,
    sum_sent: SumDoc,
    sum_received: SumDoc,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent_bidir_reverse: Option<SumDoc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received_bidir_reverse: Option<SumDoc>,
    cpu_utilization_percent: CpuDoc,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_tcp_congestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_tcp_congestion: Option<&'a str>,
}

impl<'a> KnownEnd<'a> {
    fn of(record: &'a Record) -> Option<Self> {
        let end = record.end.as_ref()?;
        let sums = |which: fn(&StreamTotal) -> Total| {
            let sides = record.sides().into_iter().map(move |sends| {
                let side = end.streams.iter().filter(|stream| record.sends(stream.id) == sends);
                SumDoc::new(Sum::of(side.map(which)).unwrap_or_default(), sends)
            });
            first_two(sides)
        };
        let (sent, sent_reverse) = sums(sent_or_nothing);
        let (received, received_reverse) = sums(received_or_nothing);
        Some(Self {
            streams: end.streams.iter().map(|stream| BothEnds::new(stream, record)).collect(),
            sum_sent: sent.unwrap_or_default(),
            sum_received: received.unwrap_or_default(),
            sum_sent_bidir_reverse: sent_reverse,
            sum_received_bidir_reverse: received_reverse,
            cpu_utilization_percent: CpuDoc::new(end.local_cpu, end.remote_cpu.unwrap_or_default()),
            sender_tcp_congestion: end.sender_congestion.as_deref(),
            receiver_tcp_congestion: end.receiver_congestion.as_deref(),
        })
    }
}

/// What a sender has told; if it has not, nothing, over the time that the receiver took.
fn sent_or_nothing(stream: &StreamTotal) -> Total {
    stream.sent.unwrap_or_else(|| silence(stream.received))
}

/// The same of a receiver.
fn received_or_nothing(stream: &StreamTotal) -> Total {
    stream.received.unwrap_or_else(|| silence(stream.sent))
}

fn silence(other: Option<Total>) -> Total {
    Total { bytes: 0, time: other.map_or(Duration::ZERO, |other| other.time), retransmits: None }
}

#[derive(Serialize)]
struct BothEnds {
    sender: TotalDoc,
    receiver: TotalDoc,
}

#[derive(Serialize)]
struct TotalDoc {
    socket: u32,
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(flatten)]
    of_sender: Option<OfSender>,
    /// Whether this end sends, also in what is told of the other end.
    sender: bool,
}

/// Round-trip times in microseconds.
#[derive(Serialize)]
struct OfSender {
    retransmits: u64,
    max_snd_cwnd: u64,
    max_snd_wnd: u64,
    max_rtt: u64,
    min_rtt: u64,
    mean_rtt: u64,
}

impl BothEnds {
    fn new(stream: &StreamTotal, record: &Record) -> Self {
        let doc = |total: Total, of_sender| TotalDoc {
            socket: stream.id,
            start: 0.0,
            end: total.time.as_secs_f64(),
            seconds: total.time.as_secs_f64(),
            bytes: total.bytes,
            bits_per_second: bits_per_second(total.bytes, total.time),
            of_sender,
            sender: record.sends(stream.id),
        };
        let sent = sent_or_nothing(stream);
        let of_sender =
            sent.retransmits.map(|retransmits| OfSender::new(retransmits, record.extremes(stream.id)));
        Self { sender: doc(sent, of_sender), receiver: doc(received_or_nothing(stream), None) }
    }
}

impl OfSender {
    fn new(retransmits: u64, extremes: Extremes) -> Self {
        Self {
            retransmits,
            max_snd_cwnd: extremes.max_snd_cwnd,
            max_snd_wnd: extremes.max_snd_wnd,
            max_rtt: micros(extremes.max_rtt),
            min_rtt: micros(extremes.min_rtt),
            mean_rtt: micros(extremes.mean_rtt()),
        }
    }
}

#[derive(Serialize)]
struct CpuDoc {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    remote_total: f64,
    remote_user: f64,
    remote_system: f64,
}

impl CpuDoc {
    fn new(host: Cpu, remote: Cpu) -> Self {
        Self {
            host_total: host.total,
            host_user: host.user,
            host_system: host.system,
            remote_total: remote.total,
            remote_user: remote.user,
            remote_system: remote.system,
        }
    }
}

fn first_two<T>(mut items: impl Iterator<Item = T>) -> (Option<T>, Option<T>) {
    (items.next(), items.next())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// 0 if no time passed.
pub(super) fn bits_per_second(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}
