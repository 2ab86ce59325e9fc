//! A scheduler that is an active queue management: what it marks and drops.

use crate::net::{A, B, Link, Net, Plan, host_config, socket};
use ackline_tcp_core::config::Ecn as EcnKind;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped, Scope, SegmentClass,
};
use ackline_tcp_core::wire::{Ecn, HeaderBuf, RxChecksum, TxChecksumMode, gso, parse};
use ackline_tcp_core::{ConnConfig, Duration, Instant};
use std::num::NonZeroU16;

const LONG: Duration = Duration::from_secs(3_600);

/// First in, first out; marks all that may be marked, or drops each n-th packet of data.
#[derive(Debug, Default)]
struct Managing {
    inner: Fifo,
    marks: bool,
    drops_each: Option<u64>,
    data: u64,
    seen: Vec<(SegmentClass, Ecn)>,
}

impl EgressScheduler for Managing {
    fn name(&self) -> &'static str {
        "managing"
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.seen.push((packet.class, packet.ecn));
        self.inner.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let popped = self.inner.pop(now, link);
        let Popped::Packet(mut packet) = popped else { return popped };
        if self.marks {
            packet.ecn = Ecn::Ce;
        }
        self.data += u64::from(packet.class.is_data());
        let drops = |each: u64| packet.class.is_data() && self.data.is_multiple_of(each);
        if self.drops_each.is_some_and(drops) { Popped::Drop(packet) } else { Popped::Packet(packet) }
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.inner.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.inner.backlog(scope)
    }
}

fn net(max_super_packet: u32, mode: TxChecksumMode, make: impl Fn() -> Managing) -> Net {
    let configs = [A, B].map(|host| {
        let mut config = host_config(host);
        (config.max_super_packet, config.tx_checksum) = (max_super_packet, mode);
        config
    });
    Net::with(1, Link::default(), configs, || Box::new(make()))
}

fn with_ecn(kind: EcnKind) -> ConnConfig {
    let mut config = ConnConfig::default();
    config.ecn = kind;
    config
}

/// Single packets with their checksum, and super-packets whose device cuts them: RFC 3168, section
/// 5, has CE in each, and the IPv4 header's checksum is right with it.
#[test]
fn a_mark_is_written_into_the_header_of_any_packet() {
    for (largest, mode) in
        [(0, TxChecksumMode::Complete), (65_535, TxChecksumMode::Complete), (65_535, TxChecksumMode::Partial)]
    {
        let mut net = net(largest, mode, || Managing { marks: true, ..Managing::default() });
        net.listen(B, 80, with_ecn(EcnKind::Classic));
        let id = net.connect(A, socket(B, 80), with_ecn(EcnKind::Classic), Plan::send(0));
        // The test is the application.
        net.hosts[A].streams.remove(&id);
        net.run_until(LONG, |net| net.hosts[A].events.len() == 1);
        let now = net.now;
        net.endpoint(A).conn(id).unwrap().write(now, &[7; 10_000]).unwrap();
        let wires = net.intercept(A);
        assert_eq!(wires.len() > 1, largest == 0, "{} packets", wires.len());
        for wire in &wires {
            let whole = parse(&wire.rx()).unwrap();
            assert_eq!(whole.ip.ecn, Ecn::Ce);
            let received = wire.rx().with_segment_size(wire.segment_size.or(NonZeroU16::new(1_460)));
            let mut segments = gso::split_received(&received, TxChecksumMode::Complete).unwrap();
            let mut header = HeaderBuf::new();
            while let Some((_, payload)) = segments.next_into(&mut header) {
                let packet = [&[header.as_slice()], &payload.slices()[..]].concat().concat();
                let cut = ackline_tcp_core::RxPacket::new(&packet).with_checksum(RxChecksum::Verify);
                assert_eq!(parse(&cut).unwrap().ip.ecn, Ecn::Ce);
            }
        }
        assert_eq!(net.endpoint(A).counters().egress_marked, wires.len() as u64);
    }
}

#[test]
fn what_is_not_ecn_capable_stays_unmarked() {
    let mut net = net(0, TxChecksumMode::Complete, || Managing { marks: true, ..Managing::default() });
    net.listen(B, 80, with_ecn(EcnKind::Classic));
    let id = net.connect(A, socket(B, 80), with_ecn(EcnKind::Off), Plan::send(0));
    net.hosts[A].streams.remove(&id);
    net.run_until(LONG, |net| net.hosts[A].events.len() == 1);
    let now = net.now;
    net.endpoint(A).conn(id).unwrap().write(now, &[7; 10_000]).unwrap();
    for wire in net.intercept(A) {
        assert_eq!(parse(&wire.rx()).unwrap().ip.ecn, Ecn::NotEct);
    }
    assert_eq!(net.endpoint(A).counters().egress_marked, 0);
}

#[test]
fn a_scheduler_sees_the_codepoint_of_data_before_it_is_built() {
    for (kind, expected) in [(EcnKind::Off, Ecn::NotEct), (EcnKind::Classic, Ecn::Ect0)] {
        let mut net = net(0, TxChecksumMode::Complete, || Managing { marks: true, ..Managing::default() });
        net.hosts[B].serve = Plan::send(0);
        net.listen(B, 80, with_ecn(kind));
        net.connect(A, socket(B, 80), with_ecn(kind), Plan::send(100_000));
        assert!(
            net.run_until(LONG, |net| net.hosts[B].streams.values().any(|stream| stream.read == 100_000))
        );
        let debug = format!("{:?}", net.endpoint(A).scheduler());
        let data = debug.matches("(Data, ").count();
        assert_eq!((data > 10, debug.matches(&format!("(Data, {expected:?})")).count()), (true, data));
        // The peer has told of the marks.
        let reduced = net.endpoint(A).counters().egress_marked > 0;
        assert_eq!(reduced, expected == Ecn::Ect0);
    }
}

/// TCP repairs what was dropped, as after any loss, without a timeout.
#[test]
fn dropped_data_is_repaired_by_its_acks() {
    let make = || Managing { drops_each: Some(40), ..Managing::default() };
    let mut net = net(0, TxChecksumMode::Complete, make);
    net.listen(B, 80, ConnConfig::default());
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1 << 20));
    assert!(net.run_until(LONG, |net| net.hosts[B].streams.values().any(|stream| stream.read == 1 << 20)));
    let counters = net.endpoint(A).counters();
    assert!(counters.egress_lost > 10, "{}", counters.egress_lost);
    assert!(counters.tcp_retrans_segs >= counters.egress_lost);
    assert_eq!(counters.egress_overruled, 0);
}

/// What the retransmission timer sends is not lost, so each timeout makes progress.
#[test]
fn a_scheduler_that_drops_all_data_stops_no_host() {
    let mut net =
        net(0, TxChecksumMode::Complete, || Managing { drops_each: Some(1), ..Managing::default() });
    net.listen(B, 80, ConnConfig::default());
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(20_000));
    assert!(net.run_until(LONG, |net| net.hosts[B].streams.values().any(|stream| stream.read == 20_000)));
    let counters = net.endpoint(A).counters();
    assert!(counters.egress_lost > 10 && counters.egress_overruled > 10, "{counters:?}");
}
