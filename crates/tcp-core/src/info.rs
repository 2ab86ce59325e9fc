//! A snapshot of a connection with the fields of Linux's `tcp_info`, in bytes, segments and
//! nanoseconds.

use crate::policy::cc::Phase;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use core::net::SocketAddr;

/// A snapshot of a connection. Field names are those of Linux's `tcp_info` without the prefix.
///
/// Of `struct tcp_info` there is no field for what this stack does not have: `fackets` and
/// `last_ack_sent` (always 0 in Linux), `rcv_ssthresh` ([`rcv_space`](Self::rcv_space) is the limit
/// of the window), `max_pacing_rate` and `rehash`. Times that go on
/// ([`busy_time`](Self::busy_time), ...) are those at [`now`](Self::now).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Info {
    /// The time of the snapshot: that of the call, or of the latest event of the endpoint.
    pub now: Instant,
    /// State of RFC 9293, section 3.3.2.
    pub state: crate::State,
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address.
    pub remote: SocketAddr,
    /// Name of the congestion control.
    pub cc: &'static str,
    /// Name of the ACK policy.
    pub ack_policy: &'static str,
    /// Name of the RTO response.
    pub rto_response: &'static str,
    /// Phase of loss handling.
    pub ca_state: Phase,
    /// Timestamps are in use.
    pub timestamps: bool,
    /// SACK is in use.
    pub sack: bool,
    /// The SYN carried data that was acknowledged with it (RFC 7413; `TCPI_OPT_SYN_DATA`).
    pub syn_data: bool,
    /// Explicit congestion notification in use.
    pub ecn: crate::ecn::Ecn,
    /// Window scale announced by the peer and by this side, if scaling is in use.
    pub wscale: Option<(u8, u8)>,
    /// Sender maximum segment size in payload bytes.
    pub snd_mss: u32,
    /// Largest payload received in one segment.
    pub rcv_mss: u32,
    /// Largest payload that this side accepts in a segment, less the options on every segment.
    pub advmss: u32,
    /// Largest IP packet that the sender uses, in bytes: a full segment with its headers.
    pub pmtu: u32,
    /// Current retransmission timeout, without back-off.
    pub rto: Duration,
    /// Retransmission timeouts in a row, without anything acknowledged in between.
    pub retransmits: u32,
    /// Probes of the closed window that were not answered with an open one.
    pub probes: u32,
    /// Number of times the current timeout has been doubled (RFC 6298, 5.5); a valid RTT sample
    /// resets it.
    pub backoff: u32,
    /// How long the ACK policy lets an ACK wait at present; `None` if it has no such time.
    pub ato: Option<Duration>,
    /// Smoothed RTT (RFC 6298).
    pub rtt: Option<Duration>,
    /// RTT variation (RFC 6298).
    pub rttvar: Option<Duration>,
    /// Smallest RTT sample of the last five minutes.
    pub min_rtt: Option<Duration>,
    /// Round trip as the receiver measured it with the peer's echoes of its timestamps (RFC 7323),
    /// if it needed to: the window is at its largest without.
    pub rcv_rtt: Option<Duration>,
    /// Number of duplicate ACKs that prove a loss without SACK; more than 3 after reordering.
    pub reordering: u32,
    /// The path was seen to reorder (RFC 8985, section 6.2: `RACK.reordering_seen`).
    pub reordering_seen: bool,
    /// ACKs that showed reordering. Without SACK, and if losses are not detected by time, only
    /// timestamps show it.
    pub reord_seen: u32,
    /// Congestion window in bytes, rounded down.
    pub snd_cwnd: u64,
    /// Slow-start threshold in bytes; `None` before the first congestion event.
    pub snd_ssthresh: Option<u64>,
    /// The peer's receive window in bytes.
    pub snd_wnd: u32,
    /// The window last advertised, in bytes.
    pub rcv_wnd: u32,
    /// The receive window with nothing unread, in bytes, as auto-tuning has set it.
    pub rcv_space: u32,
    /// Bytes sent but not acknowledged.
    pub unacked: u32,
    /// Of these, bytes reported as received by SACK.
    pub sacked: u32,
    /// Of these, bytes considered lost.
    pub lost: u32,
    /// Of these, bytes retransmitted and outstanding.
    pub retrans: u32,
    /// Bytes in the network (RFC 6675).
    pub pipe: u32,
    /// Bytes written but not sent yet.
    pub notsent_bytes: u32,
    /// Bytes that may at present be written and not acknowledged: between
    /// [`min_send_buffer`](crate::ConnConfig::min_send_buffer) and
    /// [`send_buffer`](crate::ConnConfig::send_buffer).
    pub snd_buf: u32,
    /// Bytes received in order but not read yet.
    pub unread_bytes: u32,
    /// Bytes received out of order.
    pub ooo_bytes: u32,
    /// Bytes of memory that the connection holds, buffers included.
    pub memory: u64,
    /// Pacing rate; `None` if not paced.
    pub pacing_rate: Option<Rate>,
    /// Last delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// The last delivery-rate samples are limited by the application, which had too little to send
    /// (`delivery_rate_app_limited`).
    pub app_limited: bool,
    /// Sequence numbers delivered to the peer, acknowledged or SACKed: bytes, and one for the FIN.
    pub delivered: u64,
    /// When data, or the last part of the handshake, was last sent.
    pub last_data_sent: Instant,
    /// When an acceptable segment last arrived, each of which has an ACK.
    pub last_ack_recv: Instant,
    /// When data or a FIN last arrived, in order or not: within 1.1 ms. `None` if no data has.
    pub last_data_recv: Option<Instant>,
    /// Time with something unsent or unacknowledged, the FIN included.
    pub busy_time: Duration,
    /// Of this, time in which the peer's window had no room for a segment, and no data waited in
    /// the egress scheduler.
    pub rwnd_limited: Duration,
    /// Of this, time in which all that was written had left, the congestion window had room, and
    /// the application waited for space in the send buffer.
    pub sndbuf_limited: Duration,
    /// Of this, time in which data waited for the egress scheduler: it was deferred, or stood in
    /// the queue. Linux does not count it.
    pub sched_limited: Duration,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Wire segments sent.
    pub segs_out: u64,
    /// Wire segments received.
    pub segs_in: u64,
    /// Wire segments with data sent, retransmissions included.
    pub data_segs_out: u64,
    /// Wire segments with data received.
    pub data_segs_in: u64,
    /// Wire segments retransmitted.
    pub total_retrans: u64,
    /// Wire segments with data that arrived out of order.
    pub rcv_ooopack: u64,
    /// DSACK blocks received: reports of segments that arrived twice (RFC 2883).
    pub dsack_dups: u64,
    /// Pure ACKs sent.
    pub acks_out: u64,
    /// ACKs that an RFC says should be sent at once, but were not because the ACK policy waives the
    /// rule.
    pub acks_waived: u64,
    /// Wire segments with data received with a CE mark, if ECN is in use.
    pub ce_received: u64,
    /// Segments received with ECE, if ECN is in use; with accurate ECN, ACKs that told of marks.
    pub ece_received: u64,
    /// Wire segments delivered whose ACK carried ECE; with accurate ECN, those that were marked.
    pub delivered_ce: u64,
    /// Payload bytes received with each codepoint, if accurate ECN is in use
    /// (`tcpi_received_e1_bytes` and others).
    pub received_bytes: CodepointBytes,
    /// Payload bytes that the peer says have arrived with each codepoint, if accurate ECN is in use
    /// (`tcpi_delivered_e1_bytes` and others).
    pub delivered_bytes: CodepointBytes,
    /// Retransmission timeouts (`total_rto`).
    pub timeouts: u64,
    /// Recoveries that a timeout began: several timeouts in a row count once.
    pub total_rto_recoveries: u64,
    /// Time in these recoveries, from the first timeout to the end.
    pub total_rto_time: Duration,
    /// Why nothing is being sent.
    pub blocked: Blocked,
}

/// Payload bytes by the codepoint with which they arrived; those without ECT are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CodepointBytes {
    /// With ECT(0).
    pub ect0: u64,
    /// With CE.
    pub ce: u64,
    /// With ECT(1).
    pub ect1: u64,
}

impl CodepointBytes {
    /// No bytes.
    pub const NONE: Self = Self { ect0: 0, ce: 0, ect1: 0 };
}

impl Info {
    /// A new connection in `state`.
    pub(crate) const fn empty(state: crate::State, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            now: Instant::ZERO,
            state,
            local,
            remote,
            cc: "",
            ack_policy: "",
            rto_response: "",
            ca_state: Phase::Open,
            timestamps: false,
            sack: false,
            syn_data: false,
            ecn: crate::ecn::Ecn::Off,
            wscale: None,
            snd_mss: 0,
            rcv_mss: 0,
            advmss: 0,
            pmtu: 0,
            rto: Duration::ZERO,
            retransmits: 0,
            probes: 0,
            backoff: 0,
            ato: None,
            rtt: None,
            rttvar: None,
            min_rtt: None,
            rcv_rtt: None,
            reordering: 0,
            reordering_seen: false,
            reord_seen: 0,
            snd_cwnd: 0,
            snd_ssthresh: None,
            snd_wnd: 0,
            rcv_wnd: 0,
            rcv_space: 0,
            unacked: 0,
            sacked: 0,
            lost: 0,
            retrans: 0,
            pipe: 0,
            notsent_bytes: 0,
            snd_buf: 0,
            unread_bytes: 0,
            ooo_bytes: 0,
            memory: 0,
            pacing_rate: None,
            delivery_rate: None,
            app_limited: false,
            delivered: 0,
            last_data_sent: Instant::ZERO,
            last_ack_recv: Instant::ZERO,
            last_data_recv: None,
            busy_time: Duration::ZERO,
            rwnd_limited: Duration::ZERO,
            sndbuf_limited: Duration::ZERO,
            sched_limited: Duration::ZERO,
            bytes_sent: 0,
            bytes_retrans: 0,
            bytes_acked: 0,
            bytes_received: 0,
            segs_out: 0,
            segs_in: 0,
            data_segs_out: 0,
            data_segs_in: 0,
            total_retrans: 0,
            rcv_ooopack: 0,
            dsack_dups: 0,
            acks_out: 0,
            acks_waived: 0,
            ce_received: 0,
            ece_received: 0,
            delivered_ce: 0,
            received_bytes: CodepointBytes::NONE,
            delivered_bytes: CodepointBytes::NONE,
            timeouts: 0,
            total_rto_recoveries: 0,
            total_rto_time: Duration::ZERO,
            blocked: Blocked::State,
        }
    }
}

/// Why a sender is not sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Blocked {
    /// It is sending, or could.
    #[default]
    No,
    /// There is no unsent data.
    App,
    /// The peer's window is full.
    ReceiveWindow,
    /// The congestion window is full.
    CongestionWindow,
    /// The pacer holds back the next departure.
    Pacing,
    /// Nagle's algorithm, the cork or SWS avoidance waits for more data.
    Nagle,
    /// The egress scheduler deferred its data, or holds data in its queue.
    Scheduler,
    /// The handshake is not finished, or the sending side is closed.
    State,
}
