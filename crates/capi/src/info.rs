//! The snapshot of a connection.

use crate::boundary::prefix;
use crate::stack::{ackline_stack, with};
use crate::state::number_of;
use crate::types::ackline_socket;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::{Duration, Rate};
use std::ffi::c_char;

/// A snapshot of a connection: fields of Linux's `tcp_info`, in bytes, segments and nanoseconds.
/// Later versions may add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_tcp_info {
    /// `ACKLINE_ESTABLISHED` and so on.
    pub state: i32,
    /// Largest payload of a segment that is sent.
    pub snd_mss: u32,
    /// Largest payload received in a segment.
    pub rcv_mss: u32,
    /// Largest IP packet that the sender uses.
    pub pmtu: u32,
    /// Retransmission timeout, without back-off.
    pub rto: u64,
    /// Smoothed round-trip time; 0: not measured yet.
    pub rtt: u64,
    /// Its variation; 0: not measured yet.
    pub rttvar: u64,
    /// Smallest round-trip time of the last five minutes; 0: not measured yet.
    pub min_rtt: u64,
    /// Congestion window.
    pub snd_cwnd: u64,
    /// Slow-start threshold; `UINT64_MAX`: none yet.
    pub snd_ssthresh: u64,
    /// The peer's receive window.
    pub snd_wnd: u64,
    /// The window last advertised.
    pub rcv_wnd: u64,
    /// Bytes sent and not acknowledged.
    pub unacked: u64,
    /// Bytes written and not sent.
    pub notsent_bytes: u64,
    /// Bytes received in order and not read.
    pub unread_bytes: u64,
    /// Pacing rate in bytes per second; `UINT64_MAX`: not paced.
    pub pacing_rate: u64,
    /// Last sample of the delivery rate in bytes per second; 0: none.
    pub delivery_rate: u64,
    /// Time with something unsent or unacknowledged.
    pub busy_time: u64,
    /// Of this, time in which the peer's window was full.
    pub rwnd_limited: u64,
    /// Of this, time in which the send buffer was full and all sent.
    pub sndbuf_limited: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u64,
    /// Segments received.
    pub segs_in: u64,
    /// Segments retransmitted.
    pub total_retrans: u64,
    /// Retransmission timeouts.
    pub total_rto: u64,
    /// Bytes of memory that the connection holds.
    pub memory: u64,
    /// Name of the congestion control, with a zero at its end.
    pub cc: [c_char; 32],
    /// Name of the ACK policy.
    pub ack: [c_char; 32],
    /// Name of the response to a retransmission timeout.
    pub rto_response: [c_char; 32],
}

impl From<&Info> for ackline_tcp_info {
    fn from(info: &Info) -> Self {
        let nanos = |time: Option<Duration>| time.map_or(0, Duration::as_nanos);
        Self {
            state: number_of(info.state),
            snd_mss: info.snd_mss,
            rcv_mss: info.rcv_mss,
            pmtu: info.pmtu,
            rto: info.rto.as_nanos(),
            rtt: nanos(info.rtt),
            rttvar: nanos(info.rttvar),
            min_rtt: nanos(info.min_rtt),
            snd_cwnd: info.snd_cwnd,
            snd_ssthresh: info.snd_ssthresh.unwrap_or(u64::MAX),
            snd_wnd: info.snd_wnd.into(),
            rcv_wnd: info.rcv_wnd.into(),
            unacked: info.unacked.into(),
            notsent_bytes: info.notsent_bytes.into(),
            unread_bytes: info.unread_bytes.into(),
            pacing_rate: info.pacing_rate.map_or(u64::MAX, Rate::bytes_per_second),
            delivery_rate: info.delivery_rate.map_or(0, Rate::bytes_per_second),
            busy_time: info.busy_time.as_nanos(),
            rwnd_limited: info.rwnd_limited.as_nanos(),
            sndbuf_limited: info.sndbuf_limited.as_nanos(),
            bytes_sent: info.bytes_sent,
            bytes_retrans: info.bytes_retrans,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            segs_out: info.segs_out,
            segs_in: info.segs_in,
            total_retrans: info.total_retrans,
            total_rto: info.timeouts,
            memory: info.memory,
            cc: name(info.cc),
            ack: name(info.ack_policy),
            rto_response: name(info.rto_response),
        }
    }
}

/// A name as C has it, cut if it is too long.
fn name(text: &str) -> [c_char; 32] {
    let mut name = [0; 32];
    for (to, from) in name.iter_mut().take(31).zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    name
}

/// A snapshot of a connection, as of the latest instant that the stack was given. `size` is
/// `sizeof(ackline_tcp_info)`: with it, a program that was compiled for a smaller struct gets the
/// fields that it has. Returns 0, or `ACKLINE_EBADF`, `ACKLINE_EOPNOTSUPP`.
///
/// # Safety
/// `info` is null or has room for `size` bytes, if that is a size that a struct can have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_tcp_get_info(
    stack: Option<&ackline_stack>,
    socket: ackline_socket,
    info: *mut ackline_tcp_info,
    size: usize,
) -> i32 {
    with(stack, |host| {
        let snapshot = ackline_tcp_info::from(&host.info(socket)?);
        // SAFETY: the caller's promise.
        unsafe { prefix(&snapshot, info, size) }?;
        Ok(0)
    })
}
