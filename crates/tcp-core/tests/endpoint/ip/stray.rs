//! Packets without a connection: pings, segments to closed ports, ICMP errors, packets to others.

use crate::net::{A, B, Link, Net, Plan, Wire, address, host_config, socket};
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, IcmpMessage, TcpFlags, TcpHeader, Transport,
    TxChecksumMode, Unreachable, emit_icmp, emit_tcp, parse,
};
use ackline_tcp_core::{ConnConfig, DropReason, Duration, Event, Ingested, SeqNum, State};
use std::net::{IpAddr, SocketAddr};

pub(crate) fn ping(src: IpAddr, dst: IpAddr, len: usize) -> Vec<u8> {
    let message = IcmpEmit::EchoRequest { ident: 7, seq: 3 };
    icmp(src, dst, message, &vec![0xa5; len])
}

fn icmp(src: IpAddr, dst: IpAddr, message: IcmpEmit, data: &[u8]) -> Vec<u8> {
    let mut header = HeaderBuf::new();
    emit_icmp(&IcmpHeader { src, dst, ttl: 64, message }, [data, &[]], &mut header).unwrap();
    [header.as_slice(), data].concat()
}

pub(crate) fn segment(
    from: SocketAddr,
    to: SocketAddr,
    flags: TcpFlags,
    seq: u32,
    ack: u32,
    data: &[u8],
) -> Vec<u8> {
    let mut header = TcpHeader::new(from, to);
    (header.seq, header.ack, header.flags, header.window) = (SeqNum(seq), SeqNum(ack), flags, 1_000);
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [data, &[]], TxChecksumMode::Complete, &mut buf).unwrap();
    [buf.as_slice(), data].concat()
}

/// Flags, sequence and acknowledgment number.
pub(crate) fn numbers(wire: &Wire) -> (TcpFlags, u32, u32) {
    match parse(&wire.rx()).unwrap().transport {
        Transport::Tcp(segment) => (segment.flags, segment.seq.0, segment.ack.0),
        other => panic!("not TCP: {other:?}"),
    }
}

#[test]
fn a_ping_comes_back_with_its_data() {
    let mut net = Net::new(1, Link::default());
    for (src, dst) in [("10.0.0.9", "10.0.0.1"), ("fd00::9", "fd00::1")] {
        let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
        assert_eq!(net.inject(A, &ping(src, dst, 1_400)), Ingested::Handled);
        let replies = net.intercept(A);
        assert_eq!(replies.len(), 1);
        let datagram = parse(&replies[0].rx()).unwrap();
        assert_eq!((datagram.ip.src, datagram.ip.dst), (dst, src));
        let Transport::Icmp(IcmpMessage::EchoReply(echo)) = datagram.transport else {
            panic!("{datagram:?}")
        };
        assert_eq!((echo.ident, echo.seq, echo.data.len()), (7, 3, 1_400));
        assert!(echo.data.iter().all(|byte| byte == 0xa5));
    }
    assert_eq!(net.endpoint(A).counters().icmp_out_echo_reps, 2);
}

#[test]
fn pings_are_limited_in_number_size_and_rate() {
    let mut config = host_config(A);
    (config.ping_backlog, config.pings_per_second) = (4, 10);
    let mut net = Net::with(1, Link::default(), [config, host_config(B)], || Box::new(Fifo::default()));
    let dropped = Ingested::Dropped(DropReason::EchoRefused);
    assert_eq!(net.inject(A, &ping(address(B), address(A), 1_473)), dropped, "larger than the MTU");
    for _ in 0..2 {
        for _ in 0..4 {
            assert_eq!(net.inject(A, &ping(address(B), address(A), 10)), Ingested::Handled);
        }
        assert_eq!(net.inject(A, &ping(address(B), address(A), 10)), dropped, "four wait already");
        assert_eq!(net.intercept(A).len(), 4);
    }
    for expected in [Ingested::Handled, Ingested::Handled, dropped] {
        assert_eq!(net.inject(A, &ping(address(B), address(A), 10)), expected, "ten in a second");
    }
    net.now += Duration::from_secs(1);
    assert_eq!(net.inject(A, &ping(address(B), address(A), 10)), Ingested::Handled);
    assert_eq!(net.endpoint(A).counters().icmp_echo_drops, 4);
}

#[test]
fn a_closed_port_answers_as_section_3_10_7_1_says() {
    let mut net = Net::new(1, Link::default());
    let (from, to) = (socket(B, 999), socket(A, 80));
    let mut answer = |flags, data: &[u8]| {
        net.inject(A, &segment(from, to, flags, 100, 500, data));
        net.intercept(A).iter().map(numbers).collect::<Vec<_>>()
    };
    let (ack, rst) = (TcpFlags::ACK, TcpFlags::RST);
    assert_eq!(answer(TcpFlags::SYN, &[]), [(rst | ack, 0, 101)]);
    assert_eq!(answer(TcpFlags::SYN, b"data"), [(rst | ack, 0, 105)]);
    assert_eq!(answer(TcpFlags::FIN, b"data"), [(rst | ack, 0, 105)]);
    assert_eq!(answer(ack, b"data"), [(rst, 500, 0)]);
    assert_eq!(answer(TcpFlags::SYN | ack, &[]), [(rst, 500, 0)]);
    assert_eq!(answer(rst, &[]), []);
    assert_eq!(answer(rst | ack, &[]), []);
    assert_eq!(net.endpoint(A).counters().tcp_out_rsts, 5);
}

#[test]
fn resets_are_rate_limited_and_can_be_switched_off() {
    let mut config = host_config(A);
    config.resets_per_second = 5;
    let mut silent = host_config(B);
    silent.reset_unknown = false;
    let mut net = Net::with(1, Link::default(), [config, silent], || Box::new(Fifo::default()));
    for port in 1..=8 {
        net.inject(A, &segment(socket(B, port), socket(A, 80), TcpFlags::SYN, 1, 0, &[]));
    }
    let sent = net.intercept(A).len();
    assert!((3..=5).contains(&sent), "{sent}");
    assert_eq!(net.endpoint(A).counters().tcp_rst_limited, 8 - sent as u64);
    let dropped = net.inject(B, &segment(socket(A, 1), socket(B, 80), TcpFlags::SYN, 1, 0, &[]));
    assert_eq!(dropped, Ingested::Dropped(DropReason::NoConnection));
    assert_eq!(net.intercept(B).len(), 0);
}

/// How many RSTs a host sends must not tell a stranger how many others got (CVE-2016-5696).
#[test]
fn the_limit_of_resets_cannot_be_known() {
    let mut config = host_config(A);
    config.resets_per_second = 100;
    let mut net = Net::with(1, Link::default(), [config, host_config(B)], || Box::new(Fifo::default()));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut sent = 0;
        for port in 1..=150 {
            net.inject(A, &segment(socket(B, port), socket(A, 80), TcpFlags::SYN, 1, 0, &[]));
            sent += net.intercept(A).len();
        }
        assert!((50..=100).contains(&sent), "{sent}");
        seen.insert(sent);
        net.now += Duration::from_secs(1);
    }
    assert!(seen.len() > 20, "{seen:?}");
}

#[test]
fn a_listener_is_silent_about_what_is_no_syn() {
    let mut net = Net::new(1, Link::default());
    net.listen(A, 80, ConnConfig::default());
    let mut answer = |flags| {
        net.inject(A, &segment(socket(B, 999), socket(A, 80), flags, 100, 500, &[]));
        net.intercept(A).iter().map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(answer(TcpFlags::RST), []);
    assert_eq!(answer(TcpFlags::ACK), [(TcpFlags::RST, 500, 0)]);
    assert_eq!(answer(TcpFlags::SYN | TcpFlags::ACK), [(TcpFlags::RST, 500, 0)]);
    assert_eq!(answer(TcpFlags::NONE), []);
    assert_eq!(answer(TcpFlags::FIN), []);
    assert_eq!(net.endpoint(A).connections(), 0);
}

#[test]
fn packets_to_others_are_dropped_unless_every_address_is_ours() {
    let other: SocketAddr = "192.0.2.77:80".parse().unwrap();
    let syn = segment(socket(B, 999), other, TcpFlags::SYN, 1, 0, &[]);
    let mut net = Net::new(1, Link::default());
    assert_eq!(net.inject(A, &syn), Ingested::Dropped(DropReason::NotLocal));
    assert_eq!(net.inject(A, &ping(address(B), other.ip(), 10)), Ingested::Dropped(DropReason::NotLocal));

    let mut config = host_config(A);
    config.any_address = true;
    let mut net = Net::with(1, Link::default(), [config, host_config(B)], || Box::new(Fifo::default()));
    assert_eq!(net.inject(A, &syn), Ingested::Handled, "a closed port");
    net.endpoint(A).listen(Default::default(), ackline_tcp_core::ListenOn::Any, Default::default()).unwrap();
    assert_eq!(net.inject(A, &syn), Ingested::HalfOpen);
    let broadcast = segment(socket(B, 999), "255.255.255.255:80".parse().unwrap(), TcpFlags::SYN, 1, 0, &[]);
    assert_eq!(net.inject(A, &broadcast), Ingested::Dropped(DropReason::NotLocal));
    let multicast = segment("224.0.0.1:9".parse().unwrap(), socket(A, 80), TcpFlags::SYN, 1, 0, &[]);
    assert_eq!(net.inject(A, &multicast), Ingested::Dropped(DropReason::NotLocal));
}

#[test]
fn broken_packets_are_dropped_and_counted() {
    let mut net = Net::new(1, Link::default());
    let good = segment(socket(B, 999), socket(A, 80), TcpFlags::SYN, 1, 0, &[]);
    let mut broken = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        net.inject(A, &bytes)
    };
    assert_eq!(broken(|bytes| bytes[39] ^= 1), Ingested::Dropped(DropReason::TcpChecksum));
    assert_eq!(broken(|bytes| bytes[8] ^= 1), Ingested::Dropped(DropReason::IpChecksum));
    assert_eq!(broken(|bytes| bytes.truncate(30)), Ingested::Dropped(DropReason::IpTruncated));
    assert_eq!(broken(Vec::clear), Ingested::Dropped(DropReason::IpTruncated));
    let fragment = |bytes: &mut Vec<u8>| {
        // More fragments, and DF off; the checksum follows by RFC 1624.
        (bytes[6], bytes[7]) = (0x20, 0);
        let sum = u16::from_be_bytes([bytes[10], bytes[11]]) + 0x2000;
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    };
    assert_eq!(broken(fragment), Ingested::Dropped(DropReason::Fragment));
    assert_eq!(net.endpoint(A).counters().ip_fragments_dropped, 1);
}

#[test]
fn an_icmp_error_counts_only_where_it_quotes_what_is_outstanding() {
    let mut net = Net::new(1, Link::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    let syn = net.intercept(A).remove(0);
    let unreachable = |quoted: &[u8]| {
        let kind = IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Port, code: 3 };
        icmp(address(B), address(A), IcmpEmit::Error(kind), quoted)
    };
    let mut forged = syn.bytes.clone();
    forged[27] ^= 1;
    net.inject(A, &unreachable(&forged[..28]));
    assert_eq!(net.endpoint(A).conn(id).unwrap().state(), State::SynSent, "another sequence number");
    let mut forged = syn.bytes.clone();
    forged[21] ^= 1;
    assert_eq!(net.inject(A, &unreachable(&forged[..28])), Ingested::Dropped(DropReason::IcmpUnrelated));
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.out_of_window_icmps, counters.icmp_in_errors), (1, 1));

    assert_eq!(net.inject(A, &unreachable(&syn.bytes[..28])), Ingested::Conn(id));
    net.intercept(A);
    let error = Some(ConnError::Refused);
    assert_eq!(net.endpoint(A).poll_event(), Some(Event::Closed { conn: id, error }));
}
