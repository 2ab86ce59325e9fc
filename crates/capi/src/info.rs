//! The snapshot of a connection.

use crate::boundary::prefix;
use crate::stack::{ackline_stack, with};
use crate::state::number_of;
use crate::types::ackline_socket;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::{Duration, Rate};
use std::ffi::c_char;

/// Snapshot of a connection, with fields of Linux's `tcp_info`. Sizes are in bytes, times in
/// nanoseconds, rates in bytes per second. Later versions may append fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_tcp_info {
    /// State, such as `ACKLINE_ESTABLISHED`.
    pub state: i32,
    /// Largest payload of a segment sent.
    pub snd_mss: u32,
    /// Largest payload of a segment received.
    pub rcv_mss: u32,
    /// Path MTU that the sender uses.
    pub pmtu: u32,
    /// Retransmission timeout, without back-off.
    pub rto: u64,
    /// Smoothed round-trip time; 0 before the first sample.
    pub rtt: u64,
    /// Round-trip time variation; 0 before the first sample.
    pub rttvar: u64,
    /// Minimum round-trip time of the last five minutes; 0 before the first sample.
    pub min_rtt: u64,
    /// Congestion window.
    pub snd_cwnd: u64,
    /// Slow-start threshold; `UINT64_MAX` if not set.
    pub snd_ssthresh: u64,
    /// The peer's receive window.
    pub snd_wnd: u64,
    /// Receive window last advertised to the peer.
    pub rcv_wnd: u64,
    /// Bytes sent and not acknowledged yet.
    pub unacked: u64,
    /// Bytes written and not sent yet.
    pub notsent_bytes: u64,
    /// Bytes received in order and not read yet.
    pub unread_bytes: u64,
    /// Pacing rate; `UINT64_MAX` if not paced.
    pub pacing_rate: u64,
    /// Latest sample of the delivery rate; 0 before the first.
    pub delivery_rate: u64,
    /// Time during which data was unsent or unacknowledged.
    pub busy_time: u64,
    /// Part of `busy_time` during which the peer's receive window was full.
    pub rwnd_limited: u64,
    /// Part of `busy_time` during which the send buffer was full and all of it sent.
    pub sndbuf_limited: u64,
    /// Payload bytes sent, including retransmissions.
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
    /// Memory held by the connection.
    pub memory: u64,
    /// Name of the congestion control, NUL-terminated.
    pub cc: [c_char; 32],
    /// Name of the ACK policy, NUL-terminated.
    pub ack: [c_char; 32],
    /// Name of the RTO response, NUL-terminated.
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

/// A name as a C string, truncated to 31 bytes.
fn name(text: &str) -> [c_char; 32] {
    let mut name = [0; 32];
    for (to, from) in name.iter_mut().take(31).zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    name
}

/// Takes a snapshot of a connection, as of the latest time passed to the stack. `size` is
/// `sizeof(ackline_tcp_info)`: a program compiled against an older, smaller struct gets the fields
/// it has, and fields that the stack does not have are set to 0. Returns 0, `ACKLINE_EBADF`,
/// `ACKLINE_ENOTCONN`, `ACKLINE_EOPNOTSUPP`, `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
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
