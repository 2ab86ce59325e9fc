//! Accepting in three steps: what is told to both sides of a held SYN, what it costs, and what
//! strangers cannot do.

use crate::net::{A, host_config, socket};
use crate::opens::half_open::{
    ACK, Bench, FIN, IRS, RST, SYN, Segment, Sent, bytes, peer, reply, spoofed, syn,
};
use ackline_tcp_core::config::{FastOpen, SynCookies};
use ackline_tcp_core::endpoint::{IncomingSyn, Refusal, SynEvent, SynId};
use ackline_tcp_core::error::{AcceptError, ConnError, ConnectError};
use ackline_tcp_core::wire::{
    FastOpenCookie, IcmpErrorKind, IcmpMessage, TcpFlags, TcpOption, Timestamps, Transport, Unreachable,
    parse,
};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, DropReason, Duration, EndpointConfig, Event, Ingested, ListenOn,
    RxPacket, State, Target, TxBudget, WakeReason,
};
use std::net::SocketAddr;
use std::sync::Arc;

const SECOND: Duration = Duration::from_secs(1);
/// What a held SYN takes, at most, with its share of the tables.
const COST: u64 = 320;

/// A listener on port 80 that holds SYNs, and has no backlog: nobody waits to be accepted.
fn bench(change: impl FnOnce(&mut EndpointConfig, &mut AcceptConfig)) -> Bench {
    let (mut host, mut accept) = (host_config(A), AcceptConfig::default());
    (accept.hold_syns, accept.backlog) = (true, 0);
    change(&mut host, &mut accept);
    Bench::with(host, accept)
}

/// What the application is told.
fn told(bench: &mut Bench) -> Vec<SynEvent> {
    assert_eq!(bench.endpoint.poll_event(), None, "no connection is reported as accepted by a listener");
    std::iter::from_fn(|| bench.endpoint.syns().poll_event()).collect()
}

/// The client's SYN arrives, and the application takes it.
fn take(bench: &mut Bench, from: SocketAddr) -> (SynId, IncomingSyn) {
    let (ingested, sent) = bench.arrive(&syn(from));
    assert_eq!((ingested, sent.len()), (Ingested::HeldSyn, 0), "{from}");
    let next = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert!(bench.endpoint.syns().next(bench.listener).is_none());
    next
}

/// The SYN-ACK of an accepted SYN.
fn accept(bench: &mut Bench, id: SynId) -> Sent {
    assert_eq!(bench.endpoint.syns().accept(bench.now, id), Ok(()));
    let mut sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].ack), (1, SYN | ACK, IRS + 1));
    sent.remove(0)
}

/// The client acknowledges the SYN-ACK.
fn complete(bench: &mut Bench, syn: SynId, syn_ack: &Sent) -> ConnId {
    let (ingested, _) = bench.arrive(&reply(syn_ack, ACK, &[]));
    let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
    let told = told(bench).into_iter().find(|event| !matches!(event, SynEvent::Arrived(_)));
    assert_eq!(told, Some(SynEvent::Connected { syn, conn }));
    conn
}

/// Time passes; what left meanwhile.
fn pass(bench: &mut Bench, time: Duration) -> Vec<Sent> {
    let end = bench.now + time;
    let mut sent = vec![];
    while let Some(wakeup) = bench.endpoint.poll_timeout().filter(|wakeup| wakeup.at <= end) {
        bench.now = wakeup.at;
        bench.endpoint.handle_timeout(bench.now);
        sent.extend(bench.drain());
    }
    bench.now = end;
    sent
}

/// Everything that leaves, whatever it is.
fn packets(bench: &mut Bench) -> Vec<Vec<u8>> {
    let mut packets = vec![];
    let sent = bench.endpoint.transmit(bench.now, TxBudget::UNLIMITED, |packet| {
        packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
        Ok::<_, std::convert::Infallible>(())
    });
    sent.unwrap();
    packets
}

#[test]
fn nothing_is_answered_before_the_application_has_decided() {
    let mut bench = bench(|_, _| {});
    let mut packet = bytes(socket(A, 80), &syn(peer(1)));
    // DSCP 10, TTL 57.
    packet[1] = 10 << 2;
    packet[8] = 57;
    let sum =
        packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>();
    let sum = sum - u32::from(u16::from_be_bytes([packet[10], packet[11]]));
    let sum = (sum >> 16) + (sum & 0xffff);
    packet[10..12].copy_from_slice(&(!((sum >> 16) + sum) as u16).to_be_bytes());
    assert_eq!(bench.endpoint.ingest(bench.now, RxPacket::new(&packet)), Ingested::HeldSyn);
    assert_eq!((bench.drain().len(), bench.held(), bench.endpoint.held_syns()), (0, (0, 0), 1));
    assert_eq!(told(&mut bench), [SynEvent::Arrived(bench.listener)]);
    let (id, syn) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert_eq!((syn.local, syn.remote), (socket(A, 80), peer(1)));
    assert_eq!((syn.dscp, syn.ttl, syn.flow_label, syn.ecn_setup), (10, 57, 0, false));
    assert_eq!((syn.seq, syn.window, syn.options.mss), (IRS, 60_000, Some(1_400)));
    assert_eq!((syn.options.window_scale, syn.options.sack_permitted), (Some(3), true));
    assert!(syn.option_iter().any(|option| option == TcpOption::MaximumSegmentSize(1_400)));
    assert!(bench.endpoint.syns().next(bench.listener).is_none());

    bench.now += SECOND;
    let syn_ack = accept(&mut bench, id);
    assert_eq!((bench.endpoint.held_syns(), bench.held()), (0, (1, 0)), "an entry of the SYN cache");
    assert_eq!(bench.endpoint.syns().accept(bench.now, id), Err(AcceptError::Gone), "once");
    bench.now += Duration::from_millis(30);
    let conn = complete(&mut bench, id, &syn_ack);
    let info = bench.endpoint.conn(conn).unwrap().info();
    assert_eq!((info.state, info.snd_mss), (State::Established, 1_400 - 12));
    assert_eq!(info.rtt, Some(Duration::from_millis(30)), "the time in hand is no round trip");
    let counters = bench.endpoint.counters();
    assert_eq!((counters.held_syns, counters.curr_held_syns, counters.tcp_passive_opens), (1, 0, 1));
}

#[test]
fn ipv6_brings_its_flow_label() {
    let mut bench = bench(|_, _| {});
    let from = "[fd00::7]:4000".parse().unwrap();
    let mut packet = bytes("[fd00::1]:80".parse().unwrap(), &syn(from));
    packet[..4].copy_from_slice(&(6 << 28 | 46 << 22 | 0xa_bcde_u32).to_be_bytes());
    packet[7] = 3;
    assert_eq!(bench.endpoint.ingest(bench.now, RxPacket::new(&packet)), Ingested::HeldSyn);
    let (id, syn) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert_eq!((syn.remote, syn.dscp, syn.ttl, syn.flow_label), (from, 46, 3, 0xa_bcde));
    let syn_ack = accept(&mut bench, id);
    complete(&mut bench, id, &syn_ack);
}

#[test]
fn repeated_syns_are_absorbed_and_the_answer_echoes_the_last() {
    let mut bench = bench(|_, _| {});
    let ecn = TcpFlags::ECE | TcpFlags::CWR;
    assert_eq!(bench.arrive(&Segment { flags: SYN | ecn, ..syn(peer(1)) }).0, Ingested::HeldSyn);
    let (id, first) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert!(first.ecn_setup);
    told(&mut bench);
    // As Linux repeats it: after 1, 3, 7, 15, 31 s. The answer comes when no more will.
    for after in [1_000, 2_000, 4_000, 8_000, 16_000] {
        assert_eq!(pass(&mut bench, Duration::from_millis(after)).len(), 0);
        let mut again = syn(peer(1));
        again.options.timestamps = Some(Timestamps { val: 5_000 + bench.now.as_millis() as u32, ecr: 0 });
        let (ingested, sent) = bench.arrive(&again);
        assert_eq!((ingested, sent.len(), told(&mut bench)), (Ingested::Handled, 0, vec![]));
    }
    assert_eq!((bench.endpoint.held_syns(), bench.endpoint.counters().held_syn_repeats), (1, 5));
    pass(&mut bench, Duration::from_secs(20));
    let syn_ack = accept(&mut bench, id);
    assert_eq!(syn_ack.options.timestamps.unwrap().ecr, 5_000 + 32_000);
    let mut ack = reply(&syn_ack, ACK, b"hello");
    ack.options.timestamps.as_mut().unwrap().val = 60_000;
    let Ingested::Accepted(conn) = bench.ingest(&ack) else { panic!("not accepted") };
    assert_eq!(bench.endpoint.syns().poll_event(), Some(SynEvent::Connected { syn: id, conn }));
    let mut data = [0; 9];
    let now = bench.now;
    assert_eq!(bench.endpoint.conn(conn).unwrap().read(now, &mut data), Ok(5));
}

#[test]
fn a_refusal_is_told_as_the_application_chose() {
    let mut bench = bench(|_, _| {});
    bench.endpoint.poll_event();
    let empty = bench.endpoint.memory();
    let (id, _) = take(&mut bench, peer(1));
    bench.endpoint.syns().refuse(bench.now, id, Refusal::Rst);
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].to), (1, RST | ACK, peer(1)));
    assert_eq!((sent[0].seq.0, sent[0].ack), (0, IRS + 1));

    let (id, _) = take(&mut bench, peer(2));
    bench.endpoint.syns().refuse(bench.now, id, Refusal::Drop);
    assert_eq!(bench.drain().len(), 0);
    told(&mut bench);
    assert_eq!(bench.endpoint.poll_event(), None);
    assert_eq!((bench.endpoint.held_syns(), bench.held(), bench.endpoint.poll_timeout()), (0, (0, 0), None));
    assert!(bench.endpoint.memory() <= empty + 4_096, "what small tables keep");
    // The client's next SYN is another request.
    let (again, _) = take(&mut bench, peer(2));
    assert_ne!(again, id);
    bench.endpoint.syns().refuse(bench.now, id, Refusal::Rst);
    assert_eq!((bench.drain().len(), bench.endpoint.held_syns()), (0, 1), "an old handle");
    assert_eq!(bench.endpoint.counters().held_syns_refused, 2);
}

#[test]
fn unreachable_is_an_icmp_error_that_quotes_the_syn() {
    let v6: SocketAddr = "[fd00::7]:4000".parse().unwrap();
    let table = [
        ("10.0.0.1:80", peer(9), Unreachable::Port, 3),
        ("203.0.113.5:80", peer(9), Unreachable::Prohibited, 13),
        ("[fd00::1]:80", v6, Unreachable::Port, 4),
        ("[2001:db8::5]:80", v6, Unreachable::Prohibited, 1),
    ];
    for (to, from, reason, code) in table {
        let mut bench = bench(|host, _| host.any_address = true);
        let to: SocketAddr = to.parse().unwrap();
        bench.endpoint.ingest(bench.now, RxPacket::new(&bytes(to, &syn(from))));
        let (id, _) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
        bench.endpoint.syns().refuse(bench.now, id, Refusal::Unreachable);
        let sent = packets(&mut bench);
        assert_eq!(sent.len(), 1, "{to}");
        let rx = RxPacket::new(&sent[0]);
        let datagram = parse(&rx).unwrap();
        assert_eq!((datagram.ip.src, datagram.ip.dst), (to.ip(), from.ip()));
        let Transport::Icmp(IcmpMessage::Error(error)) = datagram.transport else { panic!("no error") };
        assert_eq!(error.kind, IcmpErrorKind::DestinationUnreachable { reason, code }, "{to}");
        let quoted = error.quoted;
        assert_eq!((quoted.src, quoted.src_port), (from.ip(), from.port()));
        assert_eq!((quoted.dst, quoted.dst_port, quoted.seq), (to.ip(), to.port(), IRS));
        assert_eq!((bench.endpoint.held_syns(), bench.endpoint.counters().icmp_out_dest_unreachs), (0, 1));
    }
}

#[test]
fn a_client_that_goes_or_begins_anew_is_told() {
    let mut bench = bench(|_, _| {});
    let (gone, _) = take(&mut bench, peer(1));
    let (anew, _) = take(&mut bench, peer(2));
    told(&mut bench);
    // Not the number behind the SYN's.
    for seq in [IRS, IRS + 2, IRS + 70_000] {
        let ingested = bench.ingest(&Segment { flags: RST, seq, ..syn(peer(1)) });
        assert_eq!(ingested, Ingested::Dropped(DropReason::RstNotExpected));
    }
    assert_eq!((told(&mut bench), bench.endpoint.held_syns()), (vec![], 2));
    assert_eq!(bench.arrive(&Segment { flags: RST, seq: IRS + 1, ..syn(peer(1)) }).0, Ingested::Handled);
    assert_eq!(told(&mut bench), [SynEvent::Ended { syn: gone, error: ConnError::Reset }]);
    assert_eq!(bench.endpoint.syns().accept(bench.now, gone), Err(AcceptError::Gone));

    let (ingested, sent) = bench.arrive(&Segment { seq: IRS + 500_000, ..syn(peer(2)) });
    assert_eq!((ingested, sent.len()), (Ingested::HeldSyn, 0));
    let ended = SynEvent::Ended { syn: anew, error: ConnError::Reset };
    assert_eq!(told(&mut bench), [ended, SynEvent::Arrived(bench.listener)]);
    let (id, syn) = bench.endpoint.syns().next(bench.listener).expect("the new one");
    assert_eq!(syn.seq, IRS + 500_000);
    bench.endpoint.syns().accept(bench.now, id).unwrap();
    assert_eq!(bench.drain()[0].ack, IRS + 500_001);
    assert_eq!(bench.endpoint.counters().held_syns_cancelled, 2);
}

/// As in LISTEN: RFC 9293, section 3.10.7.2.
#[test]
fn other_segments_change_nothing() {
    let mut bench = bench(|_, _| {});
    let (id, _) = take(&mut bench, peer(1));
    for (flags, answer) in [(ACK, Some(RST)), (FIN | ACK, Some(RST)), (FIN, None), (TcpFlags::NONE, None)] {
        let (_, sent) = bench.arrive(&Segment { flags, seq: IRS + 1, ..syn(peer(1)) });
        assert_eq!(sent.first().map(|sent| sent.flags), answer, "{flags:?}");
    }
    let mut target = Target::from(peer(1));
    target.local_port = Some(80);
    assert_eq!(bench.endpoint.connect(bench.now, target, Arc::default()), Err(ConnectError::InUse));
    let syn_ack = accept(&mut bench, id);
    told(&mut bench);
    complete(&mut bench, id, &syn_ack);
}

#[test]
fn an_application_that_does_not_answer_is_answered_for_in_time() {
    let mut bench = bench(|host, _| host.held_syn_timeout = Duration::from_secs(5));
    let (taken, _) = take(&mut bench, peer(1));
    bench.now += SECOND;
    bench.ingest(&syn(peer(2)));
    told(&mut bench);
    let wakeup = bench.endpoint.poll_timeout().expect("an end");
    assert_eq!((wakeup.reason, wakeup.conn), (WakeReason::HeldSyn, None));
    assert_eq!(wakeup.at, bench.now + Duration::from_secs(4));
    // Repetitions do not prolong it.
    bench.ingest(&syn(peer(1)));
    let sent = pass(&mut bench, Duration::from_secs(4));
    assert_eq!((sent.len(), sent[0].flags, sent[0].to), (1, RST | ACK, peer(1)));
    assert_eq!(told(&mut bench), [SynEvent::Ended { syn: taken, error: ConnError::TimedOut }]);
    assert_eq!(pass(&mut bench, SECOND).len(), 1);
    assert_eq!((told(&mut bench), bench.endpoint.poll_timeout()), (vec![], None), "nobody had it");
    assert!(bench.endpoint.syns().next(bench.listener).is_none());
    assert_eq!((bench.endpoint.held_syns(), bench.endpoint.counters().held_syns_expired), (0, 2));
}

#[test]
fn a_handshake_that_fails_is_told() {
    let mut bench = bench(|_, _| {});
    let [silent, reset, dropped, listened] = [1, 2, 3, 4].map(|port| {
        let (id, _) = take(&mut bench, peer(port));
        (id, accept(&mut bench, id))
    });
    told(&mut bench);
    bench.arrive(&Segment { flags: RST, ..reply(&reset.1, RST, &[]) });
    assert_eq!(told(&mut bench), [SynEvent::Ended { syn: reset.0, error: ConnError::Reset }]);
    // The application does not want it any more: it is not told.
    bench.endpoint.syns().refuse(bench.now, dropped.0, Refusal::Drop);
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].seq), (1, RST | ACK, dropped.1.seq + 1));
    assert_eq!((told(&mut bench), bench.held()), (vec![], (2, 0)));
    let (ingested, sent) = bench.arrive(&reply(&dropped.1, ACK, &[]));
    assert_eq!((ingested, sent[0].flags), (Ingested::Handled, RST), "as of no connection");
    let repeated = pass(&mut bench, Duration::from_secs(64));
    assert_eq!(repeated.len(), 2 * 5);
    let mut ends = told(&mut bench);
    ends.sort_by_key(|event| matches!(event, SynEvent::Ended { syn, .. } if *syn == listened.0));
    let ended = |syn| SynEvent::Ended { syn, error: ConnError::TimedOut };
    assert_eq!(ends, [ended(silent.0), ended(listened.0)]);
}

#[test]
fn a_listener_that_goes_refuses_what_it_holds() {
    let mut bench = bench(|_, _| {});
    let (held, _) = take(&mut bench, peer(1));
    let (answered, _) = take(&mut bench, peer(2));
    let syn_ack = accept(&mut bench, answered);
    bench.ingest(&syn(peer(3)));
    told(&mut bench);
    bench.endpoint.unlisten(bench.now, bench.listener);
    let mut sent = bench.drain();
    sent.sort_by_key(|sent| sent.to);
    let resets: Vec<_> = sent.iter().map(|sent| (sent.to, sent.flags, sent.ack)).collect();
    assert_eq!(resets, [1, 2, 3].map(|port| (peer(port), RST | ACK, IRS + 1)));
    assert_eq!(sent[1].seq, syn_ack.seq + 1);
    let ended = |syn| SynEvent::Ended { syn, error: ConnError::Aborted };
    let mut ends = told(&mut bench);
    ends.sort_by_key(|event| *event == ended(held));
    assert_eq!(ends, [ended(answered), ended(held)]);
    assert_eq!((bench.endpoint.held_syns(), bench.held()), (0, (0, 0)));
}

/// Held SYNs are bounded in number and in memory, whoever sends them, and another listener's
/// clients do not notice.
#[test]
fn a_flood_of_syns_is_bounded_and_the_next_listener_is_not_disturbed() {
    const MOST: u32 = 1_000;
    let mut bench = bench(|host, _| host.max_held_syns = MOST);
    let other = bench.endpoint.listen(bench.now, ListenOn::Port(81), AcceptConfig::default()).unwrap();
    bench.endpoint.poll_event();
    let empty = bench.endpoint.memory();
    for number in 0..100_000 {
        bench.ingest(&syn(spoofed(number)));
        if number % 1_000 == 0 {
            bench.now += Duration::from_millis(10);
            assert_eq!(bench.drain().len(), 0, "nobody else's traffic either");
            assert_eq!(bench.endpoint.poll_event(), None);
            let held = bench.endpoint.memory() - empty;
            assert!(held <= COST * u64::from(MOST), "{held}");
        }
    }
    assert_eq!(bench.endpoint.held_syns(), MOST as usize);
    let counters = bench.endpoint.counters();
    assert_eq!(counters.held_syns_full, 99_000);
    assert_eq!((counters.listen_drops, counters.tcp_out_segs, counters.tcp_out_rsts), (99_000, 0, 0));
    // The application is told once.
    assert_eq!(bench.endpoint.syns().poll_event(), Some(SynEvent::Arrived(bench.listener)));
    assert_eq!(bench.endpoint.syns().poll_event(), None);

    let packet = bytes(socket(A, 81), &syn(peer(1)));
    assert_eq!(bench.endpoint.ingest(bench.now, RxPacket::new(&packet)), Ingested::HalfOpen);
    let syn_ack = bench.drain().remove(0);
    let ack = bytes(socket(A, 81), &reply(&syn_ack, ACK, &[]));
    assert!(matches!(bench.endpoint.ingest(bench.now, RxPacket::new(&ack)), Ingested::Accepted(_)));
    bench.endpoint.unlisten(bench.now, other);

    // Those that hold end in time, and give everything back.
    pass(&mut bench, Duration::from_secs(61));
    assert_eq!(bench.endpoint.held_syns(), 0);
    assert!(bench.endpoint.counters().tcp_out_rsts <= 2_000, "within the limit of RSTs");
    while bench.endpoint.poll_event().is_some() {}
    assert!(bench.endpoint.memory() <= empty + 32_768, "{}", bench.endpoint.memory());
}

#[test]
fn one_source_cannot_take_the_places_of_others() {
    let mut bench = bench(|host, _| {
        (host.max_held_syns, host.held_syns_per_source) = (100, 10);
    });
    for number in 1..1_000 {
        bench.ingest(&syn(peer(number)));
    }
    assert_eq!(bench.endpoint.held_syns(), 50, "half of the places");
    // Others are held, and each may have its share.
    let (honest, _) = {
        let (ingested, _) = bench.arrive(&syn(spoofed(1)));
        assert_eq!(ingested, Ingested::HeldSyn);
        loop {
            let (id, syn) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
            if syn.remote == spoofed(1) {
                break (id, syn);
            }
        }
    };
    let syn_ack = accept(&mut bench, honest);
    told(&mut bench);
    complete(&mut bench, honest, &syn_ack);
    let from = |number: u16| SocketAddr::new(spoofed(2).ip(), number);
    let held = (1..100).filter(|number| bench.ingest(&syn(from(*number))) == Ingested::HeldSyn);
    assert_eq!(held.count(), 10);
}

#[test]
fn a_listener_has_a_limit_of_its_own() {
    let mut bench = bench(|_, accept| accept.max_held_syns = 2);
    let (first, _) = take(&mut bench, peer(1));
    take(&mut bench, peer(2));
    assert_eq!(bench.ingest(&syn(peer(3))), Ingested::Dropped(DropReason::HeldSynsFull));
    bench.endpoint.syns().refuse(bench.now, first, Refusal::Drop);
    take(&mut bench, peer(3));
}

/// A stranger who knows addresses and ports sends SYN after SYN with another number each time.
#[test]
fn a_client_that_begins_anew_again_and_again_takes_one_place() {
    let mut bench = bench(|_, _| {});
    for number in 0..10_000 {
        bench.ingest(&Segment { seq: IRS + number, ..syn(peer(1)) });
    }
    assert_eq!((bench.endpoint.poll_event(), bench.endpoint.held_syns()), (None, 1));
    assert!(bench.endpoint.memory() < 16_384, "{}", bench.endpoint.memory());
    assert_eq!(told(&mut bench), [SynEvent::Arrived(bench.listener)]);
    let (_, syn) = bench.endpoint.syns().next(bench.listener).expect("the last one");
    assert_eq!(syn.seq, IRS + 9_999);
    assert!(bench.endpoint.syns().next(bench.listener).is_none());
}

#[test]
fn the_budget_of_memory_covers_held_syns() {
    let mut bench = bench(|host, _| host.max_memory = Some(1 << 17));
    bench.endpoint.listen(bench.now, ListenOn::Port(81), AcceptConfig::default()).unwrap();
    let packet = |segment: &Segment<'_>| bytes(socket(A, 81), segment);
    bench.endpoint.ingest(bench.now, RxPacket::new(&packet(&syn(peer(1)))));
    let syn_ack = bench.drain().remove(0);
    let accepted = bench.endpoint.ingest(bench.now, RxPacket::new(&packet(&reply(&syn_ack, ACK, &[]))));
    assert!(matches!(accepted, Ingested::Accepted(_)));
    while bench.endpoint.poll_event().is_some() {}
    let mut held = vec![];
    for number in 0..2_000 {
        if bench.ingest(&syn(spoofed(number))) == Ingested::HeldSyn {
            held.push(number);
        }
        assert_eq!(bench.endpoint.poll_event(), None);
        assert!(bench.endpoint.memory() <= 1 << 17, "{}", bench.endpoint.memory());
    }
    assert!((100..600).contains(&held.len()), "{}", held.len());
    assert!(bench.endpoint.counters().memory_refusals > 1_000);
    let (oldest, syn) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert_eq!(syn.remote, spoofed(0));
    told(&mut bench);
    // Data of a connection goes first: the oldest SYNs make room.
    let mut seq = IRS + 1;
    for _ in 0..2 {
        let data = Segment { seq, ..reply(&syn_ack, ACK, &[7; 1_000]) };
        bench.endpoint.ingest(bench.now, RxPacket::new(&packet(&data)));
        seq += 1_000;
        bench.drain();
        while bench.endpoint.poll_event().is_some() {}
        // As ever, a packet's worth is granted.
        assert!(bench.endpoint.memory() <= (1 << 17) + 2_048, "{}", bench.endpoint.memory());
    }
    assert!(bench.endpoint.counters().held_syns_evicted > 0);
    let ended = SynEvent::Ended { syn: oldest, error: ConnError::OutOfMemory };
    assert_eq!(bench.endpoint.syns().poll_event(), Some(ended));
}

/// A cookie would save the state that the held SYN takes, and the application's decision would be
/// lost with it.
#[test]
fn an_accepted_syn_is_not_answered_with_a_cookie() {
    for cookies in [SynCookies::WhenFull, SynCookies::Always] {
        let mut bench = bench(|host, _| (host.syn_cookies, host.max_half_open) = (cookies, 2));
        let mut accepted = vec![];
        for number in 1..=3 {
            let (id, _) = take(&mut bench, spoofed(number));
            accepted.push((id, accept(&mut bench, id)));
        }
        assert_eq!((bench.held(), bench.endpoint.counters().syncookies_sent), ((2, 0), 0));
        let ended = SynEvent::Ended { syn: accepted[0].0, error: ConnError::TimedOut };
        assert_eq!(told(&mut bench).last(), Some(&ended), "the oldest made room");
        let (id, syn_ack) = &accepted[2];
        complete(&mut bench, *id, syn_ack);
    }
}

#[test]
fn a_released_syn_is_answered_as_that_of_a_listener_that_holds_none() {
    for (cookies, entries) in [(SynCookies::WhenFull, 1), (SynCookies::Always, 0)] {
        let mut bench = bench(|host, accept| {
            host.syn_cookies = cookies;
            accept.backlog = 1;
        });
        let (id, _) = take(&mut bench, peer(1));
        bench.endpoint.syns().release(bench.now, id);
        let sent = bench.drain();
        assert_eq!((sent.len(), sent[0].flags, sent[0].ack), (1, SYN | ACK, IRS + 1));
        assert_eq!((bench.endpoint.held_syns(), bench.held()), (0, (entries, 0)), "{cookies:?}");
        assert_eq!(bench.endpoint.syns().accept(bench.now, id), Err(AcceptError::Gone));
        bench.endpoint.syns().release(bench.now, id);
        assert_eq!(bench.drain().len(), 0, "once");
        // The client has proved its address, and waits in the backlog.
        let (ingested, _) = bench.arrive(&reply(&sent[0], ACK, &[]));
        let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
        assert_eq!(
            bench.endpoint.poll_event(),
            Some(Event::Accepted { listener: bench.listener, conn }),
            "{cookies:?}"
        );
        let events: Vec<_> = std::iter::from_fn(|| bench.endpoint.syns().poll_event()).collect();
        assert_eq!(events, [SynEvent::Arrived(bench.listener)]);
        // Without room there a released SYN is dropped, and the next one of the client is held
        // anew.
        let (id, _) = take(&mut bench, peer(2));
        bench.endpoint.syns().release(bench.now, id);
        assert_eq!((bench.drain().len(), bench.endpoint.counters().held_syns_released), (0, 2));
        take(&mut bench, peer(2));
    }
}

#[test]
fn a_full_endpoint_cannot_accept_and_the_client_tries_again() {
    let mut bench = bench(|host, _| host.max_connections = 0);
    let (id, _) = take(&mut bench, peer(1));
    assert_eq!(bench.endpoint.syns().accept(bench.now, id), Err(AcceptError::TooManyConnections));
    assert_eq!((bench.drain().len(), bench.endpoint.held_syns()), (0, 0));
    assert_eq!(bench.endpoint.counters().connections_refused, 1);
    take(&mut bench, peer(1));
}

#[test]
fn fast_open_waits_for_the_decision() {
    let mut config = ConnConfig::default();
    config.fast_open = FastOpen::Server;
    let mut bench = bench(|_, accept| accept.conn = Arc::new(config));
    let asking = Segment { cookie: Some(FastOpenCookie::REQUEST), ..syn(peer(1)) };
    let (ingested, sent) = bench.arrive(&asking);
    assert_eq!((ingested, sent.len()), (Ingested::HeldSyn, 0));
    let (id, syn) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    assert!(
        syn.option_iter().any(|option| matches!(option, TcpOption::FastOpen(_))),
        "the application sees it"
    );
    let syn_ack = accept(&mut bench, id);
    assert_eq!(syn_ack.cookie, None, "a cookie would be of no use");
}

#[test]
fn time_wait_lasts_until_the_new_connection_is_accepted() {
    let mut bench = bench(|_, _| {});
    let (id, _) = take(&mut bench, peer(1));
    told(&mut bench);
    let syn_ack = accept(&mut bench, id);
    let conn = complete(&mut bench, id, &syn_ack);
    bench.endpoint.release(bench.now, conn);
    let fin = bench.drain().remove(0);
    let closing = Segment { ack: fin.seq + 1, ..reply(&syn_ack, FIN | ACK, &[]) };
    bench.arrive(&closing);
    while bench.endpoint.poll_event().is_some() {}
    assert_eq!((bench.endpoint.time_wait_records(), bench.endpoint.connections()), (1, 0));

    bench.now += SECOND;
    let mut again = Segment { seq: IRS + 100_000, ..syn(peer(1)) };
    again.options.timestamps = Some(Timestamps { val: 7_000, ecr: 0 });
    let (ingested, sent) = bench.arrive(&again);
    assert_eq!((ingested, sent.len()), (Ingested::HeldSyn, 0));
    let (refused, _) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    bench.endpoint.syns().refuse(bench.now, refused, Refusal::Drop);
    assert_eq!(bench.endpoint.time_wait_records(), 1, "nothing new has begun");

    assert_eq!(bench.arrive(&again).0, Ingested::HeldSyn);
    assert_eq!(bench.arrive(&again).0, Ingested::Handled, "a repetition");
    let (id, _) = bench.endpoint.syns().next(bench.listener).expect("a SYN");
    bench.endpoint.syns().accept(bench.now, id).unwrap();
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].ack), (1, SYN | ACK, IRS + 100_001));
    assert!(sent[0].seq.gt(fin.seq + 1), "above the numbers of the old one");
    assert_eq!((bench.endpoint.time_wait_records(), bench.endpoint.counters().tcp_tw_reopened), (0, 1));
}
