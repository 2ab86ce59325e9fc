//! A snapshot of a connection, with the fields of Linux's `tcp_info`, in bytes, segments and nanoseconds.

use crate::policy::cc::Phase;
use crate::time::Duration;
use crate::units::Rate;
use core::net::SocketAddr;

/// A snapshot of a connection. Field names are those of Linux's `tcp_info` without the prefix.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Info {
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
    /// Explicit congestion notification in use.
    pub ecn: crate::ecn::Ecn,
    /// Window scale that the peer announced and this side announced, where scaling is in use.
    pub wscale: Option<(u8, u8)>,
    /// Sender maximum segment size in payload bytes.
    pub snd_mss: u32,
    /// Largest payload seen from the peer in one segment.
    pub rcv_mss: u32,
    /// Retransmission timeout in force, without back-off.
    pub rto: Duration,
    /// Doublings of the timeout in force (RFC 6298, 5.5); a valid RTT sample ends them.
    pub backoff: u32,
    /// Smoothed RTT (RFC 6298).
    pub rtt: Option<Duration>,
    /// RTT variation (RFC 6298).
    pub rttvar: Option<Duration>,
    /// Smallest RTT sample of the last five minutes.
    pub min_rtt: Option<Duration>,
    /// Congestion window in bytes, rounded down.
    pub snd_cwnd: u64,
    /// Slow-start threshold in bytes; `None` before the first congestion event.
    pub snd_ssthresh: Option<u64>,
    /// The peer's receive window in bytes.
    pub snd_wnd: u32,
    /// The window last advertised, in bytes.
    pub rcv_wnd: u32,
    /// Bytes sent and not acknowledged.
    pub unacked: u32,
    /// Bytes of them that SACK reports as received.
    pub sacked: u32,
    /// Bytes of them held to be lost.
    pub lost: u32,
    /// Bytes of them retransmitted and outstanding.
    pub retrans: u32,
    /// Bytes in the network (RFC 6675).
    pub pipe: u32,
    /// Bytes written and never sent.
    pub notsent_bytes: u32,
    /// Bytes received in order and not read.
    pub unread_bytes: u32,
    /// Bytes received out of order.
    pub ooo_bytes: u32,
    /// Pacing rate; `None` where nothing is paced.
    pub pacing_rate: Option<Rate>,
    /// Last delivery-rate sample.
    pub delivery_rate: Option<Rate>,
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
    /// Wire segments with data sent.
    pub data_segs_out: u64,
    /// Wire segments with data received.
    pub data_segs_in: u64,
    /// Wire segments retransmitted.
    pub total_retrans: u64,
    /// Pure ACKs sent.
    pub acks_out: u64,
    /// ACKs that an RFC says should be sent at once, and that were not because the ACK policy waives them.
    pub acks_waived: u64,
    /// Wire segments with data received that were marked with congestion experienced, where ECN is in use.
    pub ce_received: u64,
    /// Segments received with ECE, where ECN is in use.
    pub ece_received: u64,
    /// Wire segments delivered whose ACK said ECE.
    pub delivered_ce: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Why nothing is being sent.
    pub blocked: Blocked,
}

impl Info {
    /// A connection in `state` that has done nothing yet.
    pub(crate) const fn empty(state: crate::State, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            state,
            local,
            remote,
            cc: "",
            ack_policy: "",
            rto_response: "",
            ca_state: Phase::Open,
            timestamps: false,
            sack: false,
            ecn: crate::ecn::Ecn::Off,
            wscale: None,
            snd_mss: 0,
            rcv_mss: 0,
            rto: Duration::ZERO,
            backoff: 0,
            rtt: None,
            rttvar: None,
            min_rtt: None,
            snd_cwnd: 0,
            snd_ssthresh: None,
            snd_wnd: 0,
            rcv_wnd: 0,
            unacked: 0,
            sacked: 0,
            lost: 0,
            retrans: 0,
            pipe: 0,
            notsent_bytes: 0,
            unread_bytes: 0,
            ooo_bytes: 0,
            pacing_rate: None,
            delivery_rate: None,
            bytes_sent: 0,
            bytes_retrans: 0,
            bytes_acked: 0,
            bytes_received: 0,
            segs_out: 0,
            segs_in: 0,
            data_segs_out: 0,
            data_segs_in: 0,
            total_retrans: 0,
            acks_out: 0,
            acks_waived: 0,
            ce_received: 0,
            ece_received: 0,
            delivered_ce: 0,
            timeouts: 0,
            blocked: Blocked::State,
        }
    }
}

/// Why a sender does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Blocked {
    /// It does, or could.
    #[default]
    No,
    /// Nothing is written.
    App,
    /// The peer's window is full.
    ReceiveWindow,
    /// The congestion window is full.
    CongestionWindow,
    /// The pacer holds the next departure.
    Pacing,
    /// Nagle's algorithm, the cork or SWS avoidance waits for more.
    Nagle,
    /// The egress scheduler deferred it.
    Scheduler,
    /// The handshake is not finished, or the sending side is closed.
    State,
}
