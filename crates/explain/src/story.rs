//! What is told of connections. Text, JSON and pages print this and nothing else.
//!
//! Times are nanoseconds. Those with `at` in their name count from the connection's first packet.

use crate::picture::Picture;
use crate::segment::Skipped;
use serde::Serialize;
use std::net::SocketAddr;

/// What a capture tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Story {
    /// Packets read.
    pub packets: u64,
    /// Those of TCP.
    pub tcp_packets: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Packets left out.
    pub skipped: Skipped,
    /// Packets that the capture says it has missed.
    pub missed: u64,
    /// The file ends in the middle of a packet.
    pub cut_short: bool,
    /// Connections seen, those left out included.
    pub connections_seen: u64,
    /// Stories that were dropped because there were too many: those that had lost and waited least.
    pub left_out: u64,
    /// Connections whose story ends early, because too many were open at once: those silent for the longest time.
    pub evicted: u64,
    /// What was read of traces.
    pub traces: Traces,
    /// The stories, in the order of the first packets.
    pub connections: Vec<Connection>,
}

/// What was read of traces, and what is missing in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traces {
    /// Events.
    pub events: u64,
    /// Events that the trace says it has missed.
    pub missed: u64,
    /// Events that are not known.
    pub unknown: u64,
    /// Records that cannot be read.
    pub damaged: u64,
    /// Events of connections whose begin is not in the trace; these have no story.
    pub unopened: u64,
    /// Why a trace ends before its stack did, as it says itself.
    pub cut_short: Option<String>,
}

/// What a story was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Packets.
    Capture,
    /// What a stack said of itself (`--trace`).
    Trace,
}

/// The story of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// What its story was read from.
    pub source: Source,
    /// Who opened it; without a SYN, who sent the first packet.
    pub client: SocketAddr,
    /// Who accepted it.
    pub server: SocketAddr,
    /// When it began: nanoseconds since 1970, since the start of a simulation, or since the begin of a trace.
    pub start_ns: u64,
    /// From its first packet to its last.
    pub duration_ns: u64,
    /// Where it was captured.
    pub vantage: Vantage,
    /// How it was opened.
    pub handshake: Handshake,
    /// The data of the client, and that of the server.
    pub directions: [Direction; 2],
    /// How it ended.
    pub end: End,
    /// The error that the application was told, if a trace states one.
    pub error: Option<String>,
    /// Some packets say by a comment why they were sent.
    pub stated: bool,
    /// The story ends early: too many connections were open at once.
    pub evicted: bool,
    /// What is strange.
    pub anomalies: Vec<Anomaly>,
}

impl Connection {
    /// How much there is to tell: time without progress, ns, and then what was lost and waited for.
    #[must_use]
    pub fn badness(&self) -> (u64, u64, u64) {
        let stalled = |direction: &Direction| {
            let bad = |share: &&Share| {
                matches!(share.cause, Cause::Timer | Cause::ZeroWindow | Cause::Silence | Cause::Recovery)
            };
            direction.time.iter().filter(bad).fold(0, |sum: u64, share| sum.saturating_add(share.time_ns))
        };
        let sum = |of: fn(&Direction) -> u64| self.directions.iter().map(of).sum();
        (
            self.directions.iter().map(stalled).max().unwrap_or(0),
            sum(|direction| direction.losses.retransmissions),
            sum(|direction| direction.bytes),
        )
    }
}

/// Where a connection was captured, which decides what can be inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vantage {
    /// Which end it is.
    pub place: Place,
    /// The capture says so itself, by the directions of packets.
    pub stated: bool,
    /// The smallest round trip from the capture to the client.
    pub to_client_ns: Option<u64>,
    /// The smallest round trip from the capture to the server.
    pub to_server_ns: Option<u64>,
}

/// A place on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// No handshake and no timestamps tell.
    #[default]
    Unknown,
    /// At the client, or near to it.
    Client,
    /// Away from both.
    Middle,
    /// At the server, or near to it.
    Server,
    /// The path is so short that both are near.
    Both,
}

/// How a connection was opened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Handshake {
    /// The SYN was captured.
    pub syn: Option<Offer>,
    /// The SYN-ACK was captured.
    pub syn_ack: Option<Offer>,
    /// From the first SYN to the end of the handshake.
    pub took_ns: Option<u64>,
    /// SYNs sent again.
    pub syn_retransmissions: u32,
    /// SYN-ACKs sent again.
    pub syn_ack_retransmissions: u32,
    /// Octets of data on the SYN (RFC 7413).
    pub data_on_syn: u32,
    /// Of these, what the SYN-ACK acknowledged.
    pub data_on_syn_accepted: u32,
}

/// What a SYN or SYN-ACK offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Largest segment that its sender takes.
    pub mss: Option<u16>,
    /// Window scale, RFC 7323.
    pub window_scale: Option<u8>,
    /// SACK, RFC 2018.
    pub sack: bool,
    /// Timestamps, RFC 7323.
    pub timestamps: bool,
    /// ECN, RFC 3168.
    pub ecn: bool,
    /// Fast open, RFC 7413: octets of the cookie, zero for a request.
    pub fast_open: Option<u8>,
    /// The window of the packet.
    pub window: u16,
}

/// The data that one end sent.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// Who sent it.
    pub from: SocketAddr,
    /// Octets of the stream that passed, or were acknowledged, each counted once.
    pub bytes: u64,
    /// Packets with data; what offload has joined counts once.
    pub packets: u64,
    /// Largest packet's data.
    pub largest: u32,
    /// The segment size: what the data's packets are multiples of.
    pub mss: u32,
    /// When the first data passed.
    pub first_at_ns: u64,
    /// When the last data passed or was acknowledged.
    pub last_at_ns: u64,
    /// Octets in flight at most.
    pub max_flight: u64,
    /// How slow start went.
    pub slow_start: Option<SlowStart>,
    /// What the time went for, by cause, the largest first.
    pub time: Vec<Share>,
    /// The same along time. Short intervals are part of their neighbours if there are too many.
    pub intervals: Vec<Interval>,
    /// No interval is shorter, because there were too many.
    pub interval_grain_ns: u64,
    /// The longest waits, in the order of time.
    pub stalls: Vec<Interval>,
    /// What was sent again.
    pub losses: Losses,
    /// The episodes, in the order of time.
    pub episodes: Vec<Episode>,
    /// Episodes beyond those listed, which cost less.
    pub episodes_left_out: u64,
    /// Round trips from the capture to the receiver and back.
    pub rtt: Option<Rtt>,
    /// Round trips from the capture to the sender and back, queues of the sender and of the path before the capture included; `None` if
    /// the capture is at the sender, or timestamps are missing.
    pub rtt_before: Option<Rtt>,
    /// What the other end acknowledged.
    pub acks: Acks,
    /// The window of the other end; `None` for a peer's data in a trace.
    pub window: Option<Window>,
    /// What the sender's stack states, in a trace.
    pub congestion: Option<Congestion>,
    /// What became of a peer's data, in a trace.
    pub received: Option<Received>,
    /// Congestion marks.
    pub marks: Marks,
    /// Octets that were acknowledged, but did not pass the capture.
    pub uncaptured: u64,
    /// Octets that passed and were never acknowledged.
    pub unacknowledged: u64,
    /// So many packets were in flight that some are kept as one.
    pub merged: bool,
    /// What can be drawn of it, if [`Limits::drawn`](crate::Limits::drawn) asks for it.
    #[serde(skip)]
    pub picture: Option<Picture>,
}

/// Why a sender did not send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The application had written nothing more, or the other end's answer was awaited.
    Application,
    /// The receiver's window was full.
    ReceiverWindow,
    /// The receiver's window was zero.
    ZeroWindow,
    /// The congestion window was full: each packet follows an ACK.
    CongestionWindow,
    /// The same, and no ACK came for two round trips or more: the path stood still, or the receiver did.
    Silence,
    /// The sender spaced its packets.
    Pacing,
    /// The path before the capture spaced the packets, or pacing did: from here they look alike.
    Path,
    /// Losses were repaired.
    Recovery,
    /// Nothing came back until a timer fired.
    Timer,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Application,
        Self::ReceiverWindow,
        Self::ZeroWindow,
        Self::CongestionWindow,
        Self::Silence,
        Self::Pacing,
        Self::Path,
        Self::Recovery,
        Self::Timer,
    ];

    /// A few words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiverWindow => "receiver's window",
            Self::ZeroWindow => "zero window",
            Self::CongestionWindow => "congestion window",
            Self::Silence => "no ACKs",
            Self::Pacing => "pacing",
            Self::Path => "path or pacing",
            Self::Recovery => "recovery",
            Self::Timer => "waiting for a timer",
        }
    }
}

/// A share of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// What for.
    pub cause: Cause,
    /// How long.
    pub time_ns: u64,
    /// Of the whole.
    pub share: f64,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its begin.
    pub at_ns: u64,
    /// Its length.
    pub time_ns: u64,
    /// What for.
    pub cause: Cause,
}

/// How slow start went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStart {
    /// When it ended; if it did not, when the last data was acknowledged.
    pub end_at_ns: u64,
    /// Octets in flight at most until then.
    pub flight: u64,
    /// Round trips until then.
    pub rounds: u32,
    /// Why.
    pub end: SlowStartEnd,
}

/// Why slow start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartEnd {
    /// A loss.
    Loss,
    /// An ECN echo.
    Mark,
    /// The receiver's window was full.
    ReceiverWindow,
    /// Growth became slow without a loss: the sender's own decision, such as HyStart's.
    Plateau,
    /// It did not: the data ended before.
    Data,
    /// It did not: the application never filled the window.
    Application,
}

/// What was sent again, and what came out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Packets sent again.
    pub retransmissions: u64,
    /// The same in segments: what offload has joined is divided again.
    pub segments: u64,
    /// Octets sent again.
    pub bytes: u64,
    /// By duplicate ACKs, SACK or RACK.
    pub fast: u64,
    /// After a timeout.
    pub timeout: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Nothing tells what for.
    pub unclear: u64,
    /// Those that were needless: what they repeat had arrived.
    pub spurious: u64,
    /// Of these, because a DSACK said so.
    pub spurious_by_dsack: u64,
    /// Because the ACK echoes the timestamp of the original (RFC 3522).
    pub spurious_by_timestamp: u64,
    /// Because the ACK came too soon for it.
    pub spurious_by_time: u64,
    /// Because the stack states that it undid what the loss had caused.
    pub spurious_by_stack: u64,
    /// Those whose original did not pass the capture: lost before it.
    pub before: u64,
    /// Those that were stated by the sender's comments.
    pub stated: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Packets that came late and were not sent again: before the capture.
    pub reordered_before: u64,
    /// The same, behind the capture, as SACK shows it.
    pub reordered_after: u64,
    /// DSACKs of what was sent once as far as the capture shows: the network doubled it.
    pub duplicated: u64,
    /// Packets that the capture says were dropped.
    pub dropped: u64,
}

/// Retransmissions until everything that was sent before them is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Episode {
    /// When the first packet was sent again.
    pub at_ns: u64,
    /// Until everything sent before was acknowledged.
    pub time_ns: u64,
    /// How the loss was found, first.
    pub found: Found,
    /// The sender's comments say so.
    pub stated: bool,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Octets sent again.
    pub bytes: u64,
    /// Of the packets, those that were needless.
    pub spurious: u64,
    /// Those whose original did not pass the capture.
    pub before: u64,
    /// Timeouts among them.
    pub timeouts: u64,
    /// The longest time in which the cumulative ACK did not advance.
    pub without_progress_ns: u64,
    /// Octets in flight when it began.
    pub flight_before: u64,
    /// Octets in flight at most in the round trip after it.
    pub flight_after: u64,
}

/// How a sender found a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// By duplicate ACKs or SACK.
    Fast,
    /// By a tail loss probe.
    Probe,
    /// By the retransmission timer.
    Timeout,
    /// Nothing tells.
    Unclear,
}

/// Round trips, from the capture to the receiver and back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rtt {
    /// How many were measured.
    pub samples: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median, to 2 %.
    pub median_ns: u64,
    /// 95 of 100 are shorter, to 2 %.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Correlation with the octets in flight, from -1 to 1.
    pub with_flight: f64,
    /// What the flight's own queue adds at its largest, ns, if they grow together.
    pub own_queue_ns: Option<u64>,
}

/// ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Acks {
    /// Those without data that acknowledged something new.
    pub advancing: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Segments per ACK that acknowledged something new.
    pub segments_per_ack: f64,
    /// ACKs that came in clumps: in less than a tenth of the time in which what they acknowledge was sent.
    pub compressed: u64,
}

/// A receiver's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The smallest after the handshake.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Times that it became zero.
    pub zero: u64,
    /// Window probes of the sender.
    pub probes: u64,
    /// The scale is unknown, because the handshake was not captured; windows are as in the headers.
    pub unscaled: bool,
}

/// What a stack states of the data that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Congestion {
    /// The congestion window, octets: the smallest, the largest, the last. Zero: none was stated.
    pub cwnd_min: u64,
    /// The largest.
    pub cwnd_max: u64,
    /// The last.
    pub cwnd_last: u64,
    /// The last slow-start threshold.
    pub ssthresh: Option<u64>,
    /// The last pacing rate, bit/s.
    pub pacing_rate: Option<u64>,
    /// Octets that were declared lost, each time anew.
    pub lost_bytes: u64,
    /// Retransmissions that were declared lost.
    pub lost_again: u64,
    /// Losses found by ACKs, and by RACK's reordering timer.
    pub losses_by_ack: u64,
    /// Those of the timer.
    pub losses_by_timer: u64,
    /// Timeouts that the response to timeouts has classified: something was lost.
    pub timeouts_lossy: u64,
    /// Nothing was.
    pub timeouts_spurious: u64,
    /// Reductions that were undone.
    pub undone: u64,
    /// Reductions because of congestion marks.
    pub reduced_by_ecn: u64,
    /// Time in the phases of loss handling.
    pub disorder_ns: u64,
    /// Fast recovery.
    pub recovery_ns: u64,
    /// After a timeout.
    pub loss_ns: u64,
}

/// What became of a peer's data, as the receiving stack states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Received {
    /// Packets whose data had all been acknowledged.
    pub again: u64,
    /// Packets that came behind a gap.
    pub behind_gap: u64,
    /// Packets of which something was not accepted.
    pub dropped: u64,
}

/// Congestion marks (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// Packets that can be marked: ECT(0) or ECT(1).
    pub capable: u64,
    /// Packets that passed with a mark.
    pub marked: u64,
    /// ACKs with an echo.
    pub echoes: u64,
    /// Packets that say that the window was reduced.
    pub reductions: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct End {
    /// When each end's first FIN passed: the client's, the server's.
    pub fin_at_ns: [Option<u64>; 2],
    /// Whose FIN was acknowledged.
    pub fin_acked: [bool; 2],
    /// Who sent the first RST, and when.
    pub reset: Option<Reset>,
    /// Keep-alives.
    pub keep_alives: u64,
}

/// A reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// The client sent it, and not the server.
    pub by_client: bool,
    /// When.
    pub at_ns: u64,
}

/// Something strange about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// The SYN offered a window scale and the SYN-ACK did not: no window above 64 KiB.
    NoWindowScale,
    /// The SYN offered SACK, and the SYN-ACK did not.
    NoSack,
    /// The SYN offered timestamps, and the SYN-ACK did not.
    NoTimestamps,
    /// The SYN offered ECN, and the SYN-ACK refused.
    NoEcn,
    /// Timestamps were agreed on, and segments came without.
    TimestampsStripped,
    /// Nobody answered the SYN.
    NoAnswer,
    /// The SYN was refused by a RST.
    Refused,
    /// The SYN-ACK was not acknowledged.
    HalfOpen,
    /// The capture ends without FIN or RST.
    NoEnd,
    /// Packets passed several interfaces of the capture; those of the first are taken.
    SeveralInterfaces,
}
