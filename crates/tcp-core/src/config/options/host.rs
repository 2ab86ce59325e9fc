//! The settings of a host.

use super::ConfigKey;
use crate::config::{EndpointConfig, Pricing, SynCookies};
use crate::policy::SpecError;
use crate::policy::spec::key::{LONGEST, Number, NumberField, SHORTEST, Slot, Span, Value};
use crate::policy::spec::{Param, PolicySpec};
use crate::time::Duration;
use crate::wire::TxChecksumMode;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

type Key = ConfigKey<EndpointConfig>;

const MAX_COUNT: u64 = 1 << 30;

/// Every setting of [`EndpointConfig`].
pub static HOST: &[Key] = &[
    Key {
        summary: "the host's addresses",
        ..Key::new(
            "addresses",
            Value::Text {
                range: "ADDR[+ADDR...]",
                get: |h| h.addresses.iter().map(ToString::to_string).collect::<Vec<String>>().join("+"),
                set: |h, param| {
                    let addresses = param.text().split('+').map(|address| address.trim().parse());
                    h.addresses = addresses
                        .collect::<Result<_, _>>()
                        .map_err(|_| param.expected("IP addresses, joined by +"))?;
                    Ok(())
                },
            },
        )
    },
    Key {
        summary: "answer for every destination address, as the end of a tunnel does",
        ..Key::flag("any_address", |h| &mut h.any_address)
    },
    Key {
        summary: "largest IP packet of the device; no IPv6 below 1280",
        source: "RFC 791, RFC 8200 section 5",
        ..Key::whole("mtu", 68..=65_535, |h| Slot::U32(&mut h.mtu))
    },
    Key {
        summary: "largest IP packet that the device segments itself; 0: none",
        source: "gso_max_size",
        ..Key::whole("max_super_packet", 0..=65_535, |h| Slot::U32(&mut h.max_super_packet))
    },
    Key {
        summary: "who computes TCP checksums: the core, the device, or nobody",
        ..Key::new(
            "tx_checksum",
            Value::Choice {
                names: &["complete", "partial", "omit"],
                get: |h| match h.tx_checksum {
                    TxChecksumMode::Complete => 0,
                    TxChecksumMode::Partial => 1,
                    TxChecksumMode::Omit => 2,
                },
                set: |h, at| {
                    h.tx_checksum = match at {
                        0 => TxChecksumMode::Complete,
                        1 => TxChecksumMode::Partial,
                        _ => TxChecksumMode::Omit,
                    };
                },
            },
        )
    },
    Key {
        summary: "hop limit of packets, unless their connection sets one",
        source: "ip_default_ttl",
        ..Key::whole("default_ttl", 1..=255, |h| Slot::U8(&mut h.default_ttl))
    },
    Key {
        summary: "ports for connections that do not name one",
        source: "RFC 6056; ip_local_port_range",
        ..Key::new(
            "ephemeral_ports",
            Value::Text {
                range: "LOW-HIGH",
                get: |h| format!("{}-{}", h.ephemeral_ports.start(), h.ephemeral_ports.end()),
                set: |h, param| {
                    let ends = param.text().split_once('-');
                    let ports = ends.and_then(|(low, high)| {
                        Some(low.trim().parse::<u16>().ok()?..=high.trim().parse::<u16>().ok()?)
                    });
                    match ports {
                        Some(ports) if !ports.is_empty() && *ports.start() > 0 => {
                            h.ephemeral_ports = ports;
                            Ok(())
                        }
                        _ => Err(param.expected("two ports, LOW-HIGH, from 1 to 65535")),
                    }
                },
            },
        )
    },
    Key {
        summary: "ports tried for a connection that does not name one",
        ..Key::whole("max_port_probes", 1..=65_535, |h| Slot::U32(&mut h.max_port_probes))
    },
    Key {
        summary: "limit of connections, in any state",
        ..Key::whole("max_connections", 1..=MAX_COUNT, |h| Slot::U32(&mut h.max_connections))
    },
    Key {
        summary: "limit of half-open connections, beyond which SYNs get cookies, or the oldest makes room",
        source: "RFC 4987 section 3.3; tcp_max_syn_backlog",
        ..Key::whole("max_half_open", 0..=MAX_COUNT, |h| Slot::U32(&mut h.max_half_open))
    },
    Key {
        summary: "half-open connections of one IPv4 address or IPv6 /64 beyond which no others make room for its SYNs",
        ..Key::whole("half_open_per_source", 0..=MAX_COUNT, |h| Slot::U32(&mut h.half_open_per_source))
    },
    Key {
        summary: "limit of SYNs held for the application's answer, beyond which they are dropped",
        ..Key::whole("max_held_syns", 0..=MAX_COUNT, |h| Slot::U32(&mut h.max_held_syns))
    },
    Key {
        summary: "SYNs of one IPv4 address or IPv6 /64 that are held while more than half of the places are taken",
        ..Key::whole("held_syns_per_source", 0..=MAX_COUNT, |h| Slot::U32(&mut h.held_syns_per_source))
    },
    Key {
        summary: "refuse a SYN that has been held for this long",
        ..Key::span("held_syn_timeout", SHORTEST..=LONGEST, |h| Span::Always(&mut h.held_syn_timeout))
    },
    Key {
        summary: "answer SYNs with SYN cookies: never, if there are too many half-open connections, or always",
        source: "RFC 4987 section 3.6; tcp_syncookies",
        ..Key::new(
            "syn_cookies",
            Value::Choice {
                names: &["off", "on", "always"],
                get: |h| match h.syn_cookies {
                    SynCookies::Off => 0,
                    SynCookies::WhenFull => 1,
                    SynCookies::Always => 2,
                },
                set: |h, at| {
                    h.syn_cookies = match at {
                        0 => SynCookies::Off,
                        1 => SynCookies::WhenFull,
                        _ => SynCookies::Always,
                    };
                },
            },
        )
    },
    Key {
        summary: "limit of connections that the application has dropped and that are not finished; the one without progress for longest is reset",
        source: "tcp_max_orphans",
        ..Key::whole("max_orphans", 0..=MAX_COUNT, |h| Slot::U32(&mut h.max_orphans))
    },
    Key {
        summary: "reset a dropped connection after this long without progress, even if the peer answers window probes",
        source: "RFC 9293 section 3.8.6.1, RFC 6429; tcp_orphan_retries",
        ..Key::new(
            "orphan_timeout",
            Value::Time {
                slot: |h| Span::Maybe(&mut h.orphan_timeout),
                range: SHORTEST..=LONGEST,
                none: Some("never"),
            },
        )
    },
    Key {
        summary: "limit of released connections in TIME-WAIT, beyond which the oldest ends",
        source: "tcp_max_tw_buckets",
        ..Key::whole("max_time_wait", 0..=MAX_COUNT, |h| Slot::U32(&mut h.max_time_wait))
    },
    Key {
        summary: "connect from a port in TIME-WAIT after a second, if timestamps permit",
        source: "RFC 6191; tcp_tw_reuse",
        ..Key::flag("time_wait_reuse", |h| &mut h.time_wait_reuse)
    },
    Key {
        summary: "budget of memory for connections, their buffers and records, and tables",
        source: "tcp_mem: high",
        ..Key::new(
            "max_memory",
            Value::Bytes(Number {
                slot: NumberField::Any(|h| Slot::MaybeU64(&mut h.max_memory)),
                range: 1 << 16..=1 << 50,
                none: Some("unlimited"),
            }),
        )
    },
    Key {
        summary: "percentage of max_memory at which pressure ends",
        source: "tcp_mem: low",
        ..Key::whole("memory_low", 1..=100, |h| Slot::U8(&mut h.memory_low))
    },
    Key {
        summary: "percentage of max_memory above which memory is under pressure",
        source: "tcp_mem: pressure",
        ..Key::whole("memory_pressure", 1..=100, |h| Slot::U8(&mut h.memory_pressure))
    },
    Key {
        summary: "destinations whose path MTU is remembered for later connections, 32 bytes each",
        source: "RFC 8201 section 5.2",
        ..Key::whole("max_path_entries", 0..=65_536, |h| Slot::U32(&mut h.max_path_entries))
    },
    Key {
        summary: "limit of connections accepted by a SYN with a fast open cookie whose handshake is not complete",
        source: "RFC 7413 section 5.1; TCP_FASTOPEN",
        ..Key::whole("fast_open_queue", 0..=MAX_COUNT, |h| Slot::U32(&mut h.fast_open_queue))
    },
    Key {
        summary: "how long fast open cookies are made with one key; those of the one before are accepted",
        source: "RFC 7413 section 4.1.2; tcp_fastopen_key",
        ..Key::span("fast_open_key_lifetime", Duration::from_secs(1)..=LONGEST, |h| {
            Span::Always(&mut h.fast_open_key_lifetime)
        })
    },
    Key {
        summary: "servers whose fast open cookie is remembered for later connections, 64 bytes each",
        source: "RFC 7413 section 4.1.3.1",
        ..Key::whole("max_fast_open_entries", 0..=65_536, |h| Slot::U32(&mut h.max_fast_open_entries))
    },
    Key {
        summary: "how long a server to which SYNs with fast open are dropped is connected to without",
        source: "RFC 7413 section 4.1.3; tcp_fastopen_blackhole_timeout_sec",
        ..Key::span("fast_open_blackhole_timeout", Duration::ZERO..=LONGEST, |h| {
            Span::Always(&mut h.fast_open_blackhole_timeout)
        })
    },
    Key {
        summary: "challenge ACKs per second, over all connections",
        source: "RFC 5961 section 10; tcp_challenge_ack_limit",
        ..Key::whole("challenge_acks_per_second", 0..=MAX_COUNT, |h| {
            Slot::U32(&mut h.challenge_acks_per_second)
        })
    },
    Key {
        summary: "RSTs per second for segments of no connection",
        ..Key::whole("resets_per_second", 0..=MAX_COUNT, |h| Slot::U32(&mut h.resets_per_second))
    },
    Key {
        summary: "answer ICMP echo requests",
        source: "icmp_echo_ignore_all",
        ..Key::flag("answer_ping", |h| &mut h.answer_ping)
    },
    Key {
        summary: "echo replies per second",
        ..Key::whole("pings_per_second", 0..=MAX_COUNT, |h| Slot::U32(&mut h.pings_per_second))
    },
    Key {
        summary: "echo replies that may wait for the device",
        ..Key::whole("ping_backlog", 0..=65_536, |h| Slot::Usize(&mut h.ping_backlog))
    },
    Key {
        summary: "bytes of fragments that may wait for the rest of their packets",
        source: "RFC 8200 section 4.5; ipfrag_high_thresh",
        ..Key::bytes("max_fragment_memory", 0..=1 << 30, |h| Slot::U32(&mut h.max_fragment_memory))
    },
    Key {
        summary: "fragments of a packet beyond which it is refused",
        ..Key::whole("max_fragments", 2..=8_191, |h| Slot::U16(&mut h.max_fragments))
    },
    Key {
        summary: "how long fragments wait for the rest of their packet",
        source: "RFC 8200 section 4.5; ipfrag_time",
        ..Key::span("fragment_timeout", SHORTEST..=LONGEST, |h| Span::Always(&mut h.fragment_timeout))
    },
    Key {
        summary: "answer segments to a port without a listener with RST",
        source: "RFC 9293 section 3.10.7.1",
        ..Key::flag("reset_unknown", |h| &mut h.reset_unknown)
    },
    Key {
        summary: "refuse UDP datagrams that nobody takes, and unknown protocols, with ICMP errors",
        source: "RFC 1122 section 3.2.2.1, RFC 4443 section 3.1",
        ..Key::flag("refuse_datagrams", |h| &mut h.refuse_datagrams)
    },
    Key {
        summary: "ICMP errors per second",
        source: "icmp_msgs_per_sec",
        ..Key::whole("icmp_errors_per_second", 0..=MAX_COUNT, |h| Slot::U32(&mut h.icmp_errors_per_second))
    },
    Key {
        summary: "bytes that may wait in a UDP socket or flow for the application",
        source: "rmem_default",
        ..Key::bytes("udp_recv_buffer", 2_048..=1 << 30, |h| Slot::U32(&mut h.udp_recv_buffer))
    },
    Key {
        summary: "bytes of a UDP socket or flow that may wait for the device",
        source: "wmem_default",
        ..Key::bytes("udp_send_buffer", 2_048..=1 << 30, |h| Slot::U32(&mut h.udp_send_buffer))
    },
    Key {
        summary: "bytes of packets other than TCP and UDP that may wait for a program that takes them",
        ..Key::bytes("packet_buffer", 2_048..=1 << 30, |h| Slot::U32(&mut h.packet_buffer))
    },
    Key {
        summary: "limit of UDP flows, beyond which the one without an answer that has been silent for longest makes room",
        source: "nf_conntrack_max",
        ..Key::whole("max_udp_flows", 0..=MAX_COUNT, |h| Slot::U32(&mut h.max_udp_flows))
    },
    Key {
        summary: "a UDP flow ends after this long without a datagram",
        source: "RFC 4787 REQ-5: 2 minutes at least; nf_conntrack_udp_timeout",
        ..Key::span("udp_flow_timeout", SHORTEST..=LONGEST, |h| Span::Always(&mut h.udp_flow_timeout))
    },
    Key {
        summary: "the same for flows to port 53",
        source: "RFC 4787 section 4.3",
        ..Key::span("udp_dns_timeout", SHORTEST..=LONGEST, |h| Span::Always(&mut h.udp_dns_timeout))
    },
    Key {
        summary: "small writes of busy applications coalesce",
        source: "tcp_autocorking",
        ..Key::flag("autocorking", |h| &mut h.autocorking)
    },
    Key {
        summary: "granularity of the driver's clock and timers",
        source: "RFC 6298: G",
        ..Key::span("granularity", Duration::from_nanos(1)..=Duration::from_secs(1), |h| {
            Span::Always(&mut h.granularity)
        })
    },
    Key {
        summary: "departures closer together than this count as simultaneous",
        ..Key::span("departure_tick", Duration::from_nanos(1)..=Duration::from_secs(1), |h| {
            Span::Always(&mut h.departure_tick)
        })
    },
    Key {
        summary: "added to the timeout of tail loss probes",
        source: "RFC 8985 section 7.2",
        ..Key::span("probe_margin", Duration::ZERO..=Duration::from_secs(60), |h| {
            Span::Always(&mut h.probe_margin)
        })
    },
    Key {
        summary: "what a packet costs the link: its IP bytes plus an overhead, or the sizes of a paper",
        ..Key::new(
            "pricing",
            Value::Text {
                range: "wire[:overhead=0..65535]|paper:ack=0..65535",
                get: |h| match h.pricing {
                    Pricing::Wire { overhead } => format!("wire:overhead={overhead}"),
                    Pricing::Paper { ack } => format!("paper:ack={ack}"),
                },
                set: |h, param| {
                    h.pricing = pricing(param)?;
                    Ok(())
                },
            },
        )
    },
    Key {
        summary: "packets without a departure report, beyond which the oldest counts as departed",
        ..Key::whole("max_on_wire", 1..=1 << 20, |h| Slot::Usize(&mut h.max_on_wire))
    },
];

fn pricing(param: Param<'_>) -> Result<Pricing, SpecError> {
    let spec: PolicySpec = param.text().parse()?;
    let size = |key: &str| -> Result<Option<u16>, SpecError> {
        spec.params.get(key).map(|param| Ok(param.integer(0..=65_535)? as u16)).transpose()
    };
    match (spec.name.as_str(), spec.params.iter().count(), size("overhead")?, size("ack")?) {
        ("wire", 0, ..) => Ok(Pricing::Wire { overhead: 0 }),
        ("wire", 1, Some(overhead), None) => Ok(Pricing::Wire { overhead }),
        ("paper", 1, None, Some(ack)) => Ok(Pricing::Paper { ack }),
        _ => Err(param.expected("wire, wire:overhead=BYTES or paper:ack=BYTES")),
    }
}
