//! What is known about one test, in the order in which it becomes known. Plain data: the engine
//! fills it, `text` and `json` show it.
//!
//! Times are since the start of the test, or of what comes after its omitted part.

use crate::report::egress::EgressReport;
use crate::report::policies::ConnPolicies;
use crate::report::timing::Timing;
use crate::settings::PolicyNames;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// One test, as far as it has come.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) software: Software,
    /// Absent if the control connection failed.
    pub(crate) setup: Option<Setup>,
    pub(crate) streams: Vec<Connected>,
    /// Kept for the JSON document only.
    pub(crate) intervals: Vec<Interval>,
    /// By stream.
    extremes: BTreeMap<u32, Extremes>,
    /// Absent if the test was cut short.
    pub(crate) end: Option<End>,
    /// What the client asked to be repeated in both ends' JSON.
    pub(crate) title: Option<String>,
    pub(crate) extra_data: Option<String>,
    /// The server's own output, if the client asked for it.
    pub(crate) server_output: Option<ServerOutput>,
    pub(crate) error: Option<String>,
    pub(crate) own: Option<Own>,
}

/// What runs, and on what.
#[derive(Clone, Debug)]
pub(crate) struct Software {
    /// Such as `ackline 0.1.0`.
    pub(crate) version: String,
    /// The kernel's name for itself, the host's name, release and machine.
    pub(crate) system: String,
}

/// A test that both ends have agreed upon.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) contact: Contact,
    pub(crate) time: SystemTime,
    /// 36 letters and digits, without the NUL behind them.
    pub(crate) cookie: String,
    /// Of the control connection, in bytes.
    pub(crate) control_mss: u32,
    pub(crate) buffers: Buffers,
    pub(crate) parameters: Parameters,
}

/// The other end of the control connection.
#[derive(Clone, Debug)]
pub(crate) enum Contact {
    /// This end is the client.
    ConnectingTo { host: String, port: u16 },
    /// This end is the server.
    AcceptedFrom(SocketAddr),
}

/// Socket buffers, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffers {
    /// What `-w` asks for; 0 if it is not given.
    pub(crate) requested: u64,
    pub(crate) send: u64,
    pub(crate) receive: u64,
}

/// What is tested.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) direction: Direction,
    /// Streams in each direction.
    pub(crate) streams: u32,
    /// Bytes per write or read.
    pub(crate) block_size: u64,
    /// Whole seconds at the beginning that do not count.
    pub(crate) omit: u32,
    pub(crate) length: Length,
    pub(crate) tos: u8,
    /// Bits per second and stream; 0 is unlimited.
    pub(crate) target_bitrate: u64,
    /// What `-M` asks for, in bytes.
    pub(crate) mss: Option<u32>,
}

/// The sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The client.
    Forward,
    /// The server.
    Reverse,
    Bidirectional,
}

/// When a test ends; bytes and blocks are those of all streams together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Whole seconds; 0: until somebody ends it.
    Seconds(u32),
    Bytes(u64),
    Blocks(u64),
}

/// A connection that carries data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connected {
    pub(crate) id: u32,
    /// This end sends.
    pub(crate) sends: bool,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// What every stream did in one interval.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// It belongs to the part that does not count.
    pub(crate) omitted: bool,
    pub(crate) streams: Vec<StreamInterval>,
}

/// What one stream did in one interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamInterval {
    pub(crate) id: u32,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    /// Sent or received by this end's application.
    pub(crate) bytes: u64,
    /// Present exactly if this end sends.
    pub(crate) sender: Option<SenderState>,
}

/// A sending connection at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderState {
    /// Segments sent again in this interval.
    pub(crate) retransmits: u64,
    /// Bytes.
    pub(crate) snd_cwnd: u64,
    /// Bytes that the peer's window allows.
    pub(crate) snd_wnd: u64,
    /// Smoothed.
    pub(crate) rtt: Duration,
    pub(crate) rttvar: Duration,
    /// Bytes.
    pub(crate) pmtu: u32,
}

/// What came out.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// In the order of [`Record::streams`].
    pub(crate) streams: Vec<StreamTotal>,
    pub(crate) local_cpu: Cpu,
    /// Unknown to a server, which reports before it hears from its client.
    pub(crate) remote_cpu: Option<Cpu>,
    pub(crate) sender_congestion: Option<String>,
    pub(crate) receiver_congestion: Option<String>,
    /// Of each stream's connection at this end.
    pub(crate) policies: Vec<StreamPolicies>,
}

/// The policies of one stream, when the test was over.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StreamPolicies {
    pub(crate) socket: u32,
    #[serde(flatten)]
    pub(crate) policies: ConnPolicies,
}

/// What one stream did in the whole test, without what was omitted. `None`: that end has not told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTotal {
    pub(crate) id: u32,
    pub(crate) sent: Option<Total>,
    pub(crate) received: Option<Total>,
}

/// One end's view of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
    /// Of a sender that counts them.
    pub(crate) retransmits: Option<u64>,
}

/// CPU time of a process as percentages of the time that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) total: f64,
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// What a server showed its own user.
#[derive(Clone, Debug)]
pub(crate) enum ServerOutput {
    Text(String),
    Json(serde_json::Value),
}

/// What iperf3 has no words for.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Own {
    /// Such as `TUN ack0`.
    pub(crate) device: String,
    pub(crate) policies: PolicyNames,
    pub(crate) timing: Timing,
    pub(crate) egress: EgressReport,
}

/// What a sender's window and round-trip times were, over the intervals that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extremes {
    pub(crate) max_snd_cwnd: u64,
    pub(crate) max_snd_wnd: u64,
    pub(crate) max_rtt: Duration,
    pub(crate) min_rtt: Duration,
    /// Of `samples` intervals, added up.
    rtts: Duration,
    samples: u32,
}

/// Some streams of one direction added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    pub(crate) bytes: u64,
    pub(crate) retransmits: Option<u64>,
}

impl Record {
    pub(crate) fn new(software: Software) -> Self {
        Self {
            software,
            setup: None,
            streams: vec![],
            intervals: vec![],
            extremes: BTreeMap::new(),
            end: None,
            title: None,
            extra_data: None,
            server_output: None,
            error: None,
            own: None,
        }
    }

    pub(crate) fn is_client(&self) -> bool {
        self.setup.as_ref().is_none_or(|setup| matches!(setup.contact, Contact::ConnectingTo { .. }))
    }

    pub(crate) fn is_bidirectional(&self) -> bool {
        self.setup.as_ref().is_some_and(|setup| setup.parameters.direction == Direction::Bidirectional)
    }

    /// The sides that this end has in the test: `true` is a sender. The client's sending direction
    /// comes first.
    pub(crate) fn sides(&self) -> Vec<bool> {
        let Some(setup) = &self.setup else { return vec![] };
        let client = self.is_client();
        match setup.parameters.direction {
            Direction::Forward => vec![client],
            Direction::Reverse => vec![!client],
            Direction::Bidirectional => vec![client, !client],
        }
    }

    /// Whether this end sends on a stream.
    pub(crate) fn sends(&self, id: u32) -> bool {
        self.streams.iter().any(|stream| stream.id == id && stream.sends)
    }

    /// A sender's state over the intervals that count; zeros if this end does not send on the
    /// stream.
    pub(crate) fn extremes(&self, id: u32) -> Extremes {
        self.extremes.get(&id).copied().unwrap_or_default()
    }

    /// Books an interval for [`Record::extremes`].
    pub(crate) fn watch(&mut self, interval: &Interval) {
        if interval.omitted {
            return;
        }
        for stream in &interval.streams {
            if let Some(state) = &stream.sender {
                self.extremes.entry(stream.id).or_default().watch(state);
            }
        }
    }
}

impl Extremes {
    fn watch(&mut self, state: &SenderState) {
        self.max_snd_cwnd = self.max_snd_cwnd.max(state.snd_cwnd);
        self.max_snd_wnd = self.max_snd_wnd.max(state.snd_wnd);
        // Zero before the first sample.
        if !state.rtt.is_zero() {
            self.min_rtt = if self.samples == 0 { state.rtt } else { self.min_rtt.min(state.rtt) };
            self.max_rtt = self.max_rtt.max(state.rtt);
            self.rtts = self.rtts.saturating_add(state.rtt);
            self.samples = self.samples.saturating_add(1);
        }
    }

    pub(crate) fn mean_rtt(&self) -> Duration {
        self.rtts.checked_div(self.samples).unwrap_or_default()
    }
}

impl Interval {
    /// The streams on which this end sends (or does not), added up.
    pub(crate) fn sum(&self, sends: bool) -> Sum {
        let side = || self.streams.iter().filter(|stream| stream.sender.is_some() == sends);
        Sum {
            start: side().map(|stream| stream.start).min().unwrap_or_default(),
            end: side().map(|stream| stream.end).max().unwrap_or_default(),
            bytes: side().map(|stream| stream.bytes).sum(),
            retransmits: sends
                .then(|| side().filter_map(|stream| stream.sender).map(|state| state.retransmits).sum()),
        }
    }
}

impl Sum {
    /// Totals of streams that begin together.
    pub(crate) fn of(totals: impl Iterator<Item = Total>) -> Option<Self> {
        totals.fold(None, |sum: Option<Self>, total| {
            let retransmits = match (sum, total.retransmits) {
                (None, own) => own,
                (Some(sum), own) => sum.retransmits.zip(own).map(|(a, b)| a.saturating_add(b)),
            };
            let sum = sum.unwrap_or_default();
            Some(Self {
                start: Duration::ZERO,
                end: sum.end.max(total.time),
                bytes: sum.bytes.saturating_add(total.bytes),
                retransmits,
            })
        })
    }
}
