//! The settings of a connection.

use super::ConfigKey;
use crate::config::{
    ConnConfig, DecreaseFrom, Ecn, FastOpen, KeepAlive, LossDetection, PathMtuProbing, RtoFloor,
};
use crate::policy::SpecError;
use crate::policy::spec::key::{LONGEST, Number, NumberField, SHORTEST, Slot, Span, Value, written};
use crate::policy::spec::{Keyed, Param, PolicySpec};
use crate::time::Duration;
use alloc::format;
use alloc::string::ToString;

type Key = ConfigKey<ConnConfig>;

/// The largest window (RFC 7323, section 2.3).
const MAX_BUFFER: u64 = 1 << 30;

/// Every setting of [`ConnConfig`] but its policies.
pub static CONN: &[Key] = &[
    Key {
        summary: "maximum segment size, not counting TCP options; auto: from the MTU",
        source: "RFC 6691; TCP_MAXSEG",
        ..Key::new(
            "mss",
            Value::Integer(Number {
                slot: NumberField::Any(|c| Slot::MaybeU16(&mut c.mss)),
                range: 1..=65_495,
                none: Some("auto"),
            }),
        )
    },
    Key {
        summary: "limit of the send buffer, which grows on demand",
        source: "SO_SNDBUF",
        ..Key::bytes("send_buffer", 1..=MAX_BUFFER, |c| Slot::U32(&mut c.send_buffer))
    },
    Key {
        summary: "what of it may be filled even if twice the congestion window is less; full: all",
        source: "tcp_wmem",
        ..Key::new(
            "min_send_buffer",
            Value::Bytes(Number {
                slot: NumberField::Any(|c| Slot::MaybeU32(&mut c.min_send_buffer)),
                range: 1..=MAX_BUFFER,
                none: Some("full"),
            }),
        )
    },
    Key {
        summary: "limit of bytes written and not sent",
        source: "TCP_NOTSENT_LOWAT",
        ..Key::new(
            "notsent_lowat",
            Value::Bytes(Number {
                slot: NumberField::Any(|c| Slot::MaybeU32(&mut c.notsent_lowat)),
                range: 1..=MAX_BUFFER,
                none: Some("unlimited"),
            }),
        )
    },
    Key {
        summary: "limit of the receive buffer, which grows on demand",
        source: "RFC 7323 section 2.3; SO_RCVBUF",
        ..Key::bytes("recv_buffer", 1..=MAX_BUFFER, |c| Slot::U32(&mut c.recv_buffer))
    },
    Key {
        summary: "receive window at the start; full: all of recv_buffer at once, without tuning",
        source: "tcp_rmem",
        ..Key::new(
            "initial_recv_window",
            Value::Bytes(Number {
                slot: NumberField::Any(|c| Slot::MaybeU32(&mut c.initial_recv_window)),
                range: 1..=MAX_BUFFER,
                none: Some("full"),
            }),
        )
    },
    Key {
        summary: "how many ranges of out-of-order data the receiver keeps",
        ..Key::whole("max_out_of_order_ranges", 0..=65_535, |c| Slot::U16(&mut c.max_out_of_order_ranges))
    },
    Key {
        summary: "Nagle's algorithm: when a small segment waits for an ACK",
        source: "RFC 896, RFC 9293 section 3.7.4; TCP_NODELAY",
        ..Key::new(
            "nagle",
            Value::Text {
                range: "off|rfc896|minshall|sunos[:test=unsent|segment,half=gt|ge|off]",
                get: |c| c.nagle.to_string(),
                set: |c, param| {
                    c.nagle = param.text().parse()?;
                    Ok(())
                },
            },
        )
    },
    Key {
        summary: "selective acknowledgments",
        source: "RFC 2018; tcp_sack",
        ..Key::flag("sack", |c| &mut c.sack)
    },
    Key {
        summary: "report duplicate data by SACK",
        source: "RFC 2883; tcp_dsack",
        ..Key::flag("dsack", |c| &mut c.dsack)
    },
    Key {
        summary: "timestamps",
        source: "RFC 7323; tcp_timestamps",
        ..Key::flag("timestamps", |c| &mut c.timestamps)
    },
    Key {
        summary: "drop segments without the timestamp that was agreed on",
        source: "RFC 7323 section 3.2; Linux takes them",
        ..Key::flag("require_timestamps", |c| &mut c.require_timestamps)
    },
    Key {
        summary: "window scaling",
        source: "RFC 7323; tcp_window_scaling",
        ..Key::flag("window_scale", |c| &mut c.window_scale)
    },
    Key {
        summary: "send new data on the first two duplicate ACKs",
        source: "RFC 3042",
        ..Key::flag("limited_transmit", |c| &mut c.limited_transmit)
    },
    Key {
        summary: "how losses are detected with SACK: by time, or by three duplicate ACKs",
        source: "RFC 8985, RFC 6675",
        ..Key::new(
            "loss",
            Value::Choice {
                names: &["rack", "dupack"],
                get: |c| match c.loss {
                    LossDetection::Rack => 0,
                    LossDetection::DupAck => 1,
                },
                set: |c, at| c.loss = if at == 0 { LossDetection::Rack } else { LossDetection::DupAck },
            },
        )
    },
    Key {
        summary: "tail loss probes, with SACK",
        source: "RFC 8985 section 7",
        ..Key::flag("tlp", |c| &mut c.tlp)
    },
    Key {
        summary: "proportional rate reduction in fast recovery",
        source: "RFC 9937",
        ..Key::flag("prr", |c| &mut c.prr)
    },
    Key {
        summary: "undo a window reduction that proves spurious",
        source: "RFC 3522, RFC 2883",
        ..Key::flag("undo", |c| &mut c.undo)
    },
    Key {
        aliases: &["iw"],
        summary: "initial window in segments",
        source: "RFC 6928",
        ..Key::whole("initial_window", 1..=65_535, |c| Slot::U32(&mut c.initial_window))
    },
    Key {
        summary: "what a loss, mark or timeout reduces if the application limits the flow: the congestion window, or what is in flight",
        source: "RFC 9438 section 4.6, Linux; RFC 5681 equation 4",
        ..Key::new(
            "decrease_from",
            Value::Choice {
                names: &["window", "flight"],
                get: |c| match c.decrease_from {
                    DecreaseFrom::Window => 0,
                    DecreaseFrom::Flight => 1,
                },
                set: |c, at| {
                    c.decrease_from = if at == 0 { DecreaseFrom::Window } else { DecreaseFrom::Flight };
                },
            },
        )
    },
    Key {
        summary: "upper bound of the congestion window",
        ..Key::new(
            "cwnd_cap",
            Value::Bytes(Number {
                slot: NumberField::Any(|c| Slot::MaybeU64(&mut c.cwnd_cap)),
                range: 1..=MAX_BUFFER,
                none: Some("none"),
            }),
        )
    },
    Key {
        summary: "RTO before the first RTT sample",
        source: "RFC 6298 (2.1)",
        ..Key::span("initial_rto", SHORTEST..=LONGEST, |c| Span::Always(&mut c.initial_rto))
    },
    Key {
        summary: "floor of the RTO, as rto_floor applies it",
        source: "RFC 6298 (2.4); TCP_RTO_MIN_US",
        ..Key::span("min_rto", SHORTEST..=LONGEST, |c| Span::Always(&mut c.min_rto))
    },
    Key {
        summary: "what min_rto bounds: the variance term (SRTT + max(min_rto, 4 RTTVAR)), or the sum",
        source: "Linux; RFC 6298 (2.4)",
        ..Key::new(
            "rto_floor",
            Value::Choice {
                names: &["variance", "sum"],
                get: |c| match c.rto_floor {
                    RtoFloor::Variance => 0,
                    RtoFloor::Sum => 1,
                },
                set: |c, at| c.rto_floor = if at == 0 { RtoFloor::Variance } else { RtoFloor::Sum },
            },
        )
    },
    Key {
        summary: "upper bound of the RTO, back-off included",
        source: "RFC 6298 (2.5); tcp_rto_max_ms",
        ..Key::span("max_rto", SHORTEST..=LONGEST, |c| Span::Always(&mut c.max_rto))
    },
    Key {
        summary: "timeouts in a row after which the conventional RTO response replaces an undecided one; 0: never",
        ..Key::whole("max_undecided_rtos", 0..=1_000, |c| Slot::U32(&mut c.max_undecided_rtos))
    },
    Key {
        summary: "data in the SYN: of connects, to listeners, or both",
        source: "RFC 7413; tcp_fastopen",
        ..Key::new(
            "fast_open",
            Value::Choice {
                names: &["off", "client", "server", "both"],
                get: |c| match c.fast_open {
                    FastOpen::Off => 0,
                    FastOpen::Client => 1,
                    FastOpen::Server => 2,
                    FastOpen::Both => 3,
                },
                set: |c, at| {
                    c.fast_open = match at {
                        0 => FastOpen::Off,
                        1 => FastOpen::Client,
                        2 => FastOpen::Server,
                        _ => FastOpen::Both,
                    };
                },
            },
        )
    },
    Key {
        summary: "fast open needs a cookie; off: only where nobody can forge addresses",
        source: "RFC 7413 section 5.2; TCP_FASTOPEN_NO_COOKIE",
        ..Key::flag("fast_open_cookies", |c| &mut c.fast_open_cookies)
    },
    Key {
        summary: "retransmissions of a SYN before giving up",
        source: "tcp_syn_retries",
        ..Key::whole("syn_retries", 0..=255, |c| Slot::U8(&mut c.syn_retries))
    },
    Key {
        summary: "retransmissions of a SYN-ACK before giving up",
        source: "tcp_synack_retries",
        ..Key::whole("syn_ack_retries", 0..=255, |c| Slot::U8(&mut c.syn_ack_retries))
    },
    Key {
        summary: "a passive open becomes a connection with its first data, or after this long",
        source: "TCP_DEFER_ACCEPT",
        ..Key::new(
            "defer_accept",
            Value::Time {
                slot: |c| Span::Maybe(&mut c.defer_accept),
                range: SHORTEST..=LONGEST,
                none: Some("off"),
            },
        )
    },
    Key {
        summary: "abort the connection after this long without progress on unacknowledged data",
        source: "RFC 9293 section 3.8.3; TCP_USER_TIMEOUT",
        ..Key::new(
            "user_timeout",
            Value::Time {
                slot: |c| Span::Maybe(&mut c.user_timeout),
                range: SHORTEST..=LONGEST,
                none: Some("never"),
            },
        )
    },
    Key {
        summary: "idle time before keep-alive probes, the interval between them, by how much they are spread, and how many may go unanswered",
        source: "RFC 9293 section 3.8.4; TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT",
        ..Key::new(
            "keep_alive",
            Value::Text {
                range: "off|TIME[:interval=TIME,spread=TIME,count=0..255]",
                get: |c| match c.keep_alive {
                    None => "off".into(),
                    Some(KeepAlive { idle, interval, spread, count }) => {
                        let spread = (!spread.is_zero()).then(|| format!(",spread={}", written(spread)));
                        let spread = spread.unwrap_or_default();
                        format!("{}:interval={}{spread},count={count}", written(idle), written(interval))
                    }
                },
                set: |c, param| {
                    c.keep_alive = if param.text() == "off" { None } else { Some(keep_alive(param.text())?) };
                    Ok(())
                },
            },
        )
    },
    Key {
        summary: "duration of TIME-WAIT",
        source: "RFC 9293 section 3.6.1: 4 minutes; Linux: 60s",
        ..Key::span("time_wait", Duration::ZERO..=LONGEST, |c| Span::Always(&mut c.time_wait))
    },
    Key {
        summary: "duration of FIN-WAIT-2 once the application has dropped the connection",
        source: "tcp_fin_timeout",
        ..Key::span("fin_wait_2", Duration::ZERO..=LONGEST, |c| Span::Always(&mut c.fin_wait_2))
    },
    Key {
        summary: "longest time that an ACK is held back, whatever the ACK policy asks for",
        source: "RFC 9293 section 3.8.6.3: below 500ms; 500ms repeats published measurements",
        ..Key::span("ack_hold_limit", SHORTEST..=Duration::from_millis(500), |c| {
            Span::Always(&mut c.ack_hold_limit)
        })
    },
    Key {
        summary: "restart from the initial window after one RTO of idleness",
        source: "RFC 5681 section 4.1; tcp_slow_start_after_idle",
        ..Key::flag("restart_after_idle", |c| &mut c.restart_after_idle)
    },
    Key {
        summary: "instead of that restart, keep an unused window for up to five minutes, in validated and non-validated phases; window controls only",
        source: "RFC 7661 sections 4.3 and 4.4",
        ..Key::flag("window_phases", |c| &mut c.window_phases)
    },
    Key {
        summary: "send only full segments; a partial one waits 200 ms at most",
        source: "TCP_CORK",
        ..Key::flag("cork", |c| &mut c.cork)
    },
    Key {
        summary: "smallest MSS of a peer; a smaller one is raised to it",
        source: "CVE-2019-11479; tcp_min_snd_mss",
        ..Key::whole("min_snd_mss", 48..=65_495, |c| Slot::U16(&mut c.min_snd_mss))
    },
    Key {
        summary: "find packets that vanish because of their size, without ICMP; always: begin with base_mss and search upwards",
        source: "RFC 4821; tcp_mtu_probing",
        ..Key::new(
            "path_mtu_probing",
            Value::Choice {
                names: &["off", "black-hole", "always"],
                get: |c| match c.path_mtu_probing {
                    PathMtuProbing::Off => 0,
                    PathMtuProbing::BlackHole => 1,
                    PathMtuProbing::Always => 2,
                },
                set: |c, at| {
                    c.path_mtu_probing = match at {
                        0 => PathMtuProbing::Off,
                        1 => PathMtuProbing::BlackHole,
                        _ => PathMtuProbing::Always,
                    };
                },
            },
        )
    },
    Key {
        summary: "segment size in place of one that vanishes, in payload bytes",
        source: "RFC 4821 section 7.2; tcp_base_mss",
        ..Key::whole("base_mss", 48..=65_495, |c| Slot::U16(&mut c.base_mss))
    },
    Key {
        summary: "segment size down to which it is halved if that vanishes, too",
        source: "RFC 4821 section 7.7; tcp_mtu_probe_floor",
        ..Key::whole("mtu_probe_floor", 48..=65_495, |c| Slot::U16(&mut c.mtu_probe_floor))
    },
    Key {
        summary: "how long a segment size stays lowered, after an ICMP message or a black hole",
        source: "RFC 1191 section 6.3: at least 5 minutes; route mtu_expires",
        ..Key::span("path_mtu_expiry", Duration::from_secs(300)..=LONGEST, |c| {
            Span::Always(&mut c.path_mtu_expiry)
        })
    },
    Key {
        summary: "DSCP of outgoing packets",
        source: "RFC 2474; IP_TOS",
        ..Key::whole("dscp", 0..=63, |c| Slot::U8(&mut c.dscp))
    },
    Key {
        summary: "hop limit of outgoing packets; default: the host's default_ttl",
        source: "IP_TTL",
        ..Key::new(
            "ttl",
            Value::Integer(Number {
                slot: NumberField::Any(|c| Slot::MaybeU8(&mut c.ttl)),
                range: 1..=255,
                none: Some("default"),
            }),
        )
    },
    Key {
        summary: "explicit congestion notification; if not given, what cc is designed for, otherwise off",
        source: "RFC 3168, RFC 8257, RFC 9768; tcp_ecn",
        ..Key::new(
            "ecn",
            Value::Choice {
                names: &["off", "classic", "dctcp", "accurate"],
                get: |c| match c.ecn {
                    Ecn::Off => 0,
                    Ecn::Classic => 1,
                    Ecn::Dctcp => 2,
                    Ecn::Accurate => 3,
                },
                set: |c, at| {
                    c.ecn = match at {
                        0 => Ecn::Off,
                        1 => Ecn::Classic,
                        2 => Ecn::Dctcp,
                        _ => Ecn::Accurate,
                    };
                },
            },
        )
    },
    Key {
        summary: "accurate ECN's option: 0 never, 1 sparingly, 2 on every ACK that has news for it, 3 the same even if options seem to be why segments are lost",
        source: "RFC 9768, section 3.2.3; tcp_ecn_option",
        ..Key::whole("accecn_option", 0..=3, |c| Slot::U8(&mut c.accecn_option))
    },
    Key {
        summary: "with accurate ECN, data leaves with ECT(1) whatever cc asks for",
        source: "RFC 9331 section 4.1",
        ..Key::flag("l4s", |c| &mut c.l4s)
    },
    Key {
        summary: "with ECN, control packets and retransmissions are ECN-capable, too: SYNs and pure ACKs with accurate ECN alone (ECN++)",
        source: "draft-ietf-tcpm-generalized-ecn",
        ..Key::flag("ecn_control", |c| &mut c.ecn_control)
    },
];

/// The parameters of `keep_alive`.
impl Keyed for KeepAlive {
    const KEYS: &'static [ConfigKey<Self>] = &[
        ConfigKey::time("interval", SHORTEST..=LONGEST, "time between probes", |it| &mut it.interval),
        ConfigKey::time("spread", Duration::ZERO..=LONGEST, "by how much a probe may be later", |it| {
            &mut it.spread
        }),
        ConfigKey {
            summary: "unanswered probes before the end; 0: no end",
            ..ConfigKey::whole("count", 0..=255, |it| Slot::U8(&mut it.count))
        },
    ];
}

/// Reads `2m`, or `2m:interval=10s,count=3`.
fn keep_alive(text: &str) -> Result<KeepAlive, SpecError> {
    let spec: PolicySpec = text.parse()?;
    let idle = Param::new("keep_alive", &spec.name);
    let idle = idle
        .duration(SHORTEST..=LONGEST)
        .map_err(|_| idle.expected("off, or a time such as 2m, or 2m:interval=10s,count=3"))?;
    let mut probes = KeepAlive { idle, ..KeepAlive::default() };
    probes.set("keep_alive", &spec.params)?;
    Ok(probes)
}
