//! The kernel's own TCP: its view of a connection (`TCP_INFO`, tcp(7)) and its pacing. For
//! comparison with ackline.

use crate::sys::socket;
use ackline_tcp_core::{Rate, State};
use rustix::fd::AsFd;
use std::io;
use std::time::Duration;

/// A part of the kernel's `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KernelTcpInfo {
    /// The state; `None` if RFC 9293 has no name for the number. A connection in TIME-WAIT no
    /// longer has a socket; its former socket reports closed.
    pub state: Option<State>,
    /// Negotiated options as bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN-capable data
    /// was received.
    pub options: u8,
    /// The peer's window scale in the lower four bits, and the kernel's own in the upper.
    pub wscale: u8,
    /// Sender maximum segment size in payload bytes.
    pub snd_mss: u32,
    /// Largest IP packet of the path, in bytes.
    pub pmtu: u32,
    /// Largest payload that the kernel accepts in a segment, less the options on every segment.
    pub advmss: u32,
    /// Phase of loss handling: `open`, `disorder`, `cwr`, `recovery`, `loss`; empty if the number
    /// has no name.
    pub ca_state: &'static str,
    /// Timeouts in a row, of data and of probes of a closed window.
    pub retransmits: u8,
    /// Probes sent and not answered.
    pub probes: u8,
    /// How often the timeout was doubled.
    pub backoff: u8,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Slow-start threshold in segments; `None` before the first congestion event.
    pub snd_ssthresh: Option<u32>,
    /// The peer's window in bytes; zero if the kernel is older than 5.19.
    pub snd_wnd: u32,
    /// The window advertised, in bytes; zero if the kernel is older than 6.2.
    pub rcv_wnd: u32,
    /// Pacing rate; `None` if it is not limited, or the kernel is older than 3.15.
    pub pacing_rate: Option<Rate>,
    /// Last delivery-rate sample; `None` before the first.
    pub delivery_rate: Option<Rate>,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, those that SACK has reported.
    pub sacked: u32,
    /// Of these, those held to be lost.
    pub lost: u32,
    /// Of these, those sent again.
    pub retrans: u32,
    /// Smoothed RTT.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// Time since data last arrived, in milliseconds' resolution.
    pub last_data_recv: Duration,
    /// Number of duplicate ACKs that prove a loss; 3 without reordering.
    pub reordering: u32,
    /// Smallest RTT; `None` before the first sample, or if the kernel is older than 4.6.
    pub min_rtt: Option<Duration>,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Sequence numbers acknowledged: bytes, and one for a SYN. Zero, as all that follows, if the
    /// kernel is too old to say.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments sent.
    pub segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Segments with data received.
    pub data_segs_in: u32,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// Time with something unsent or unacknowledged.
    pub busy_time: Duration,
    /// Of this, time limited by the peer's window.
    pub rwnd_limited: Duration,
    /// Of this, time limited by the send buffer.
    pub sndbuf_limited: Duration,
    /// Segments delivered, the SYN included.
    pub delivered: u32,
    /// Of these, those whose ACK said that they were marked CE.
    pub delivered_ce: u32,
    /// Bytes written and not sent.
    pub notsent_bytes: u32,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// DSACK blocks received.
    pub dsack_dups: u32,
    /// Events of reordering seen.
    pub reord_seen: u32,
    /// Segments that arrived out of order.
    pub rcv_ooopack: u32,
    /// Retransmission timeouts; zero, as what follows, if the kernel is older than 6.7.
    pub total_rto: u16,
    /// Recoveries that a timeout began.
    pub total_rto_recoveries: u16,
    /// Time in these recoveries.
    pub total_rto_time: Duration,
}

/// `enum tcp_ca_state`.
const PHASES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

impl KernelTcpInfo {
    /// Queries a TCP socket.
    ///
    /// # Errors
    /// If `socket` is not a TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut raw = [0; 256];
        let length = socket::tcp_info(socket, &mut raw)?;
        Ok(Self::parse(raw.get(..length).unwrap_or(&[])))
    }

    /// Offsets are those of `struct tcp_info` in the kernel's `linux/tcp.h`, which only ever grows
    /// at the end.
    fn parse(raw: &[u8]) -> Self {
        fn field<const N: usize>(raw: &[u8], at: usize) -> [u8; N] {
            raw.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
        }
        let short = |at| u16::from_ne_bytes(field(raw, at));
        let word = |at| u32::from_ne_bytes(field(raw, at));
        let long = |at| u64::from_ne_bytes(field(raw, at));
        let rate = |bytes: u64| Rate::from_bytes_per_second(bytes);
        let millis = |at| Duration::from_millis(word(at).into());
        let micros = |at| Duration::from_micros(word(at).into());
        Self {
            state: raw.first().and_then(|number| state(*number)),
            options: raw.get(5).copied().unwrap_or(0),
            wscale: raw.get(6).copied().unwrap_or(0),
            snd_mss: word(16),
            ca_state: raw.get(1).and_then(|number| PHASES.get(usize::from(*number))).copied().unwrap_or(""),
            retransmits: raw.get(2).copied().unwrap_or(0),
            probes: raw.get(3).copied().unwrap_or(0),
            backoff: raw.get(4).copied().unwrap_or(0),
            rto: micros(8),
            // The kernel's infinity.
            snd_ssthresh: Some(word(76)).filter(|segments| !matches!(segments, 0 | 0x7fff_ffff..)),
            snd_wnd: word(228),
            rcv_wnd: word(232),
            pacing_rate: Some(long(104)).filter(|rate| !matches!(*rate, 0 | u64::MAX)).map(rate),
            delivery_rate: Some(long(160)).filter(|rate| *rate > 0).map(rate),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retrans: word(36),
            rtt: micros(68),
            rttvar: micros(72),
            last_data_recv: millis(52),
            reordering: word(88),
            // The kernel sets all bits if it has no sample.
            min_rtt: Some(micros(148)).filter(|_| !matches!(word(148), 0 | u32::MAX)),
            snd_cwnd: word(80),
            total_retrans: word(100),
            pmtu: word(60),
            advmss: word(84),
            bytes_acked: long(120),
            bytes_received: long(128),
            segs_out: word(136),
            segs_in: word(140),
            data_segs_in: word(152),
            data_segs_out: word(156),
            busy_time: Duration::from_micros(long(168)),
            rwnd_limited: Duration::from_micros(long(176)),
            sndbuf_limited: Duration::from_micros(long(184)),
            delivered: word(192),
            delivered_ce: word(196),
            notsent_bytes: word(144),
            bytes_sent: long(200),
            bytes_retrans: long(208),
            dsack_dups: word(216),
            reord_seen: word(220),
            rcv_ooopack: word(224),
            total_rto: short(240),
            total_rto_recoveries: short(242),
            total_rto_time: millis(244),
        }
    }
}

/// States by their numbers in `net/tcp_states.h`.
const fn state(number: u8) -> Option<State> {
    Some(match number {
        1 => State::Established,
        2 => State::SynSent,
        3 => State::SynReceived,
        4 => State::FinWait1,
        5 => State::FinWait2,
        6 => State::TimeWait,
        7 => State::Closed,
        8 => State::CloseWait,
        9 => State::LastAck,
        10 => State::Listen,
        11 => State::Closing,
        _ => return None,
    })
}

/// Makes the kernel's TCP pace `socket` at no more than `rate` of payload (`SO_MAX_PACING_RATE`,
/// socket(7)).
///
/// # Errors
/// If `socket` is not a socket.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: Rate) -> io::Result<()> {
    Ok(socket::set_max_pacing_rate(socket, rate.bytes_per_second())?)
}

/// Sets the MSS that the kernel's TCP announces on `socket`, and the largest one with which it
/// sends, in bytes with options (`TCP_MAXSEG`, tcp(7)); before the connection is opened, or on a
/// listener.
///
/// # Errors
/// If the kernel does not take it (Linux: 88 to 32,767), or `socket` is not a TCP socket.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    Ok(socket::set_max_segment(socket, bytes)?)
}

/// Sets an option whose value is an `int` (setsockopt(2)), by the kernel's numbers.
///
/// # Errors
/// If the kernel does not take it.
pub fn set_option(socket: impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    Ok(socket::set_int(socket, level, option, value)?)
}

/// The value of an option that is an `int` (getsockopt(2)), by the kernel's numbers.
///
/// # Errors
/// If the kernel does not tell.
pub fn option(socket: impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    Ok(socket::get_int(socket, level, option)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_loopback_connection_has_sensible_numbers() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut far, _) = listener.accept().expect("accepted");
        near.write_all(b"ping").expect("sent");
        far.read_exact(&mut [0; 4]).expect("received");
        far.write_all(b"pong").expect("sent");
        near.read_exact(&mut [0; 4]).expect("received");
        let info = KernelTcpInfo::of(&near).expect("a TCP socket");
        assert_eq!((info.state, info.unacked), (Some(State::Established), 0));
        assert!((536..=65_535).contains(&info.snd_mss), "{info:?}");
        assert!((1..=1000).contains(&info.snd_cwnd), "{info:?}");
        assert!(info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(5), "{info:?}");
        assert!(info.min_rtt.is_some_and(|min| min <= info.rtt), "{info:?}");
        assert_eq!(info.total_retrans, 0);
    }

    #[test]
    fn a_connection_has_at_most_the_mss_of_its_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        set_max_segment(&listener, 1_000).expect("a TCP socket");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let info = KernelTcpInfo::of(&near).expect("a TCP socket");
        // Less the options, if it sends any.
        assert!((988..=1_000).contains(&info.snd_mss), "{info:?}");
        assert!(set_max_segment(&listener, 87).is_err(), "too small for it");
    }

    #[test]
    fn another_kind_of_socket_is_refused() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        KernelTcpInfo::of(&socket).expect_err("UDP has no TCP_INFO");
    }

    /// 3 MB at 10 MB a second; the kernel does not pace the first ten segments, of 64 KiB each
    /// here.
    #[test]
    fn the_kernel_paces_as_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut far, _) = listener.accept().expect("accepted");
        set_max_pacing_rate(&near, Rate::from_bytes_per_second(10_000_000)).expect("a socket");
        let start = crate::timer::now();
        let writer = std::thread::spawn(move || near.write_all(&[1; 3_000_000]));
        let mut received = vec![];
        far.read_to_end(&mut received).expect("received");
        writer.join().expect("no panic").expect("sent");
        assert_eq!(received.len(), 3_000_000);
        let took = crate::timer::now().since(start);
        assert!(took > Duration::from_millis(100).into(), "{took:?}");
    }

    #[test]
    fn a_short_answer_leaves_fields_empty() {
        assert_eq!(KernelTcpInfo::parse(&[]), KernelTcpInfo::default());
        let mut raw = [0; 104];
        raw[68..72].copy_from_slice(&250u32.to_ne_bytes());
        raw[100..104].copy_from_slice(&7u32.to_ne_bytes());
        let info = KernelTcpInfo::parse(&raw);
        assert_eq!((info.rtt, info.total_retrans, info.min_rtt), (Duration::from_micros(250), 7, None));
    }
}
