//! `tcp_info` of a connection as assignments of Python, in Linux's units: segments, microseconds.

use ackline_tcp_core::State;
use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::policy::cc::Phase;
use ackline_tcp_core::time::Duration;
use std::fmt::Write as _;

/// What stands for no threshold (Linux: `TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

/// Names that are the same in all snapshots.
pub(crate) const CONSTANTS: &str = "\
TCP_ESTABLISHED, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_TIME_WAIT = 1, 2, 3, 4, 5, 6
TCP_CLOSE, TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_LISTEN, TCP_CLOSING, TCP_NEW_SYN_RECV = 7, 8, 9, 10, 11, 12
TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss = 0, 1, 2, 3, 4
TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK, TCPI_OPT_WSCALE, TCPI_OPT_ECN = 1, 2, 4, 8
TCPI_OPT_ECN_SEEN, TCPI_OPT_SYN_DATA, TCPI_OPT_USEC_TS, TCPI_OPT_TFO_CHILD = 16, 32, 64, 128
TCP_INFINITE_SSTHRESH = 0x7fffffff
";

pub(crate) const fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

const fn ca_state(phase: Phase) -> u64 {
    match phase {
        Phase::Open => 0,
        Phase::Disorder => 1,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

/// Of a connection that there is none of, all that Python is told.
pub(crate) const CLOSED: &str = "tcpi_state = 7\n";

/// The assignments of a snapshot.
pub(crate) fn assignments(info: &Info) -> String {
    let mss = u64::from(info.snd_mss.max(1));
    let segments = |bytes: u32| u64::from(bytes).div_ceil(mss);
    let micros = |time: Duration| time.as_micros();
    let maybe = |time: Option<Duration>| time.map_or(0, Duration::as_micros);
    let ago = |at: ackline_tcp_core::Instant| info.now.since(at).as_millis();
    let (snd_wscale, rcv_wscale) = info.wscale.unwrap_or((0, 0));
    let options = u64::from(info.timestamps)
        | u64::from(info.sack) << 1
        | u64::from(info.wscale.is_some()) << 2
        | u64::from(info.ecn != Ecn::Off) << 3
        | u64::from(info.ce_received + info.ece_received > 0) << 4
        | u64::from(info.syn_data) << 5;
    let fields = [
        ("state", state(info.state)),
        ("ca_state", ca_state(info.ca_state)),
        ("retransmits", info.retransmits.into()),
        ("probes", info.probes.into()),
        ("backoff", info.backoff.into()),
        ("options", options),
        ("snd_wscale", snd_wscale.into()),
        ("rcv_wscale", rcv_wscale.into()),
        ("delivery_rate_app_limited", info.app_limited.into()),
        ("rto", micros(info.rto)),
        ("ato", maybe(info.ato)),
        ("snd_mss", info.snd_mss.into()),
        ("rcv_mss", info.rcv_mss.into()),
        ("unacked", segments(info.unacked)),
        ("sacked", segments(info.sacked)),
        ("lost", segments(info.lost)),
        ("retrans", segments(info.retrans)),
        ("fackets", 0),
        ("last_data_sent", ago(info.last_data_sent)),
        ("last_data_recv", info.last_data_recv.map_or(0, ago)),
        ("last_ack_recv", ago(info.last_ack_recv)),
        ("pmtu", info.pmtu.into()),
        ("rcv_ssthresh", info.rcv_space.into()),
        ("rtt", maybe(info.rtt)),
        ("rttvar", maybe(info.rttvar)),
        ("snd_ssthresh", info.snd_ssthresh.map_or(INFINITE_SSTHRESH, |bytes| bytes / mss)),
        ("snd_cwnd", info.snd_cwnd / mss),
        ("advmss", info.advmss.into()),
        ("reordering", info.reordering.into()),
        ("rcv_rtt", maybe(info.rcv_rtt)),
        ("rcv_space", info.rcv_space.into()),
        ("total_retrans", info.total_retrans),
        ("pacing_rate", info.pacing_rate.map_or(u64::MAX, |rate| rate.bytes_per_second())),
        ("bytes_acked", info.bytes_acked),
        ("bytes_received", info.bytes_received),
        ("segs_out", info.segs_out),
        ("segs_in", info.segs_in),
        ("notsent_bytes", info.notsent_bytes.into()),
        ("min_rtt", maybe(info.min_rtt)),
        ("data_segs_in", info.data_segs_in),
        ("data_segs_out", info.data_segs_out),
        ("delivery_rate", info.delivery_rate.map_or(0, |rate| rate.bytes_per_second())),
        ("busy_time", micros(info.busy_time)),
        ("rwnd_limited", micros(info.rwnd_limited)),
        ("sndbuf_limited", micros(info.sndbuf_limited)),
        ("delivered", info.delivered.div_ceil(mss)),
        ("delivered_ce", info.delivered_ce),
        ("bytes_sent", info.bytes_sent),
        ("bytes_retrans", info.bytes_retrans),
        ("dsack_dups", info.dsack_dups),
        ("reord_seen", info.reord_seen.into()),
        ("rcv_ooopack", info.rcv_ooopack),
        ("snd_wnd", info.snd_wnd.into()),
        ("rcv_wnd", info.rcv_wnd.into()),
        ("total_rto", info.timeouts),
        ("total_rto_recoveries", info.total_rto_recoveries),
        ("total_rto_time", info.total_rto_time.as_millis()),
    ];
    let mut text = String::new();
    for (name, value) in fields {
        let _ = writeln!(text, "tcpi_{name} = {value}");
    }
    text
}
