//! SYN cookies: handshakes without an entry.

use crate::net::{A, B, host_config};
use crate::opens::half_open::{
    ACK, Bench, FIN, IRS, RST, SYN, Segment, attempts_during_a_flood, peer, reply, spoofed, syn,
};
use ackline_tcp_core::config::{Ecn, SynCookies};
use ackline_tcp_core::wire::{TcpFlags, TcpOptions};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, DropReason, Duration, EndpointConfig, Event, Ingested, SeqNum, State,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::Arc;

fn host(mode: SynCookies) -> EndpointConfig {
    let mut host = host_config(A);
    host.syn_cookies = mode;
    host
}

/// With ECN.
fn bench(mode: SynCookies) -> Bench {
    let mut config = ConnConfig::default();
    config.ecn = Ecn::Classic;
    Bench::with(host(mode), AcceptConfig::new(Arc::new(config)))
}

/// Every SYN gets a cookie.
fn always() -> Bench {
    bench(SynCookies::Always)
}

/// What a connection has agreed on, if the handshake takes 300 ms.
fn agreed(mut bench: Bench, syn: &Segment<'_>) -> String {
    bench.now += Duration::from_millis(123_457);
    let sent = bench.arrive(syn).1;
    assert_eq!(
        sent[0].options.sack_permitted,
        syn.options.sack_permitted && sent[0].options.timestamps.is_some()
    );
    bench.now += Duration::from_millis(300);
    let mut ack = reply(&sent[0], ACK, &[]);
    ack.options.timestamps = ack.options.timestamps.filter(|_| syn.options.timestamps.is_some());
    let (Ingested::Accepted(conn), _) = bench.arrive(&ack) else { panic!("not accepted") };
    let info = bench.endpoint.conn(conn).unwrap().info();
    format!(
        "{} mss={} sack={} timestamps={} wscale={:?} ecn={:?}",
        info.state, info.snd_mss, info.sack, info.timestamps, info.wscale, info.ecn
    )
}

/// As much as if there had been an entry, if there are timestamps.
#[test]
fn a_cookie_keeps_what_the_syn_offered() {
    let full = syn(peer(1));
    let offers = [
        full.options,
        TcpOptions { window_scale: None, ..full.options },
        TcpOptions { sack_permitted: false, ..full.options },
        TcpOptions { window_scale: Some(14), mss: Some(536), ..full.options },
        TcpOptions { mss: None, ..full.options },
    ];
    let with_entry = |syn: &Segment<'_>| agreed(bench(SynCookies::Off), syn);
    for options in offers {
        for flags in [SYN, SYN | TcpFlags::ECE | TcpFlags::CWR] {
            let syn = Segment { options, flags, ..full };
            assert_eq!(agreed(always(), &syn), with_entry(&syn), "{options:?}");
        }
    }
    let bare = TcpOptions { timestamps: None, ..full.options };
    let syn = Segment { options: bare, flags: SYN | TcpFlags::ECE | TcpFlags::CWR, ..full };
    let told = agreed(always(), &syn);
    assert_eq!(told, "ESTABLISHED mss=1400 sack=false timestamps=false wscale=None ecn=Off");
}

#[test]
fn a_cookie_leaves_no_state_and_is_not_retransmitted() {
    let mut bench = always();
    let (ingested, sent) = bench.arrive(&syn(peer(1)));
    assert_eq!((ingested, sent.len(), bench.held()), (Ingested::HalfOpen, 1, (0, 0)));
    assert_eq!(bench.endpoint.poll_timeout(), None);
    // Data and FIN may come with the ACK, or instead of one that was lost.
    let (ingested, sent) = bench.arrive(&reply(&sent[0], FIN | ACK, b"all there is"));
    let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
    assert_eq!(sent[0].ack, IRS + 14);
    assert_eq!(bench.endpoint.poll_event(), Some(Event::Accepted { listener: bench.listener, conn }));
    let info = bench.endpoint.conn(conn).unwrap().info();
    assert_eq!((info.state, info.rtt), (State::CloseWait, None), "when the SYN-ACK left is not known");
    let counters = bench.endpoint.counters();
    assert_eq!((counters.syncookies_sent, counters.syncookies_recv, counters.syncookies_failed), (1, 1, 0));
    assert_eq!((counters.tcp_req_q_full_do_cookies, counters.tcp_passive_opens), (0, 1));
}

#[test]
fn entries_stay_where_they_are_and_later_syns_get_cookies() {
    let mut config = host(SynCookies::WhenFull);
    config.max_half_open = 2;
    let mut bench = Bench::with(config, AcceptConfig::default());
    let first = bench.open(spoofed(1));
    let second = bench.open(spoofed(2));
    for number in 3..1_000 {
        let cookie = bench.open(spoofed(number));
        assert_eq!(bench.held(), (2, 0));
        if number == 10 {
            let Ingested::Accepted(conn) = bench.ingest(&reply(&cookie, ACK, &[])) else {
                panic!("a cookie")
            };
            bench.endpoint.abort(bench.now, conn);
            bench.endpoint.release(bench.now, conn);
            bench.drain();
        }
    }
    let counters = bench.endpoint.counters();
    assert_eq!((counters.half_open_evicted, counters.tcp_req_q_full_drop), (0, 0));
    assert_eq!((counters.tcp_req_q_full_do_cookies, counters.syncookies_sent), (997, 997));
    for kept in [first, second] {
        assert!(matches!(bench.ingest(&reply(&kept, ACK, &[])), Ingested::Accepted(_)));
    }
    // There is room again.
    bench.open(spoofed(2_000));
    assert_eq!(bench.held().0, 1);
}

/// 200,000 guesses of 2^32, of which 16 are right: 0.0007 are to be expected.
#[test]
fn forged_acks_open_nothing() {
    let mut bench = always();
    bench.open(peer(1));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..200_000 {
        let (seq, ack) = (SeqNum(rng.next_u32()), SeqNum(rng.next_u32()));
        let forged = Segment { flags: ACK, seq, ack, ..syn(spoofed(rng.next_u32() % 256)) };
        let ingested = bench.ingest(&forged);
        assert!(
            matches!(ingested, Ingested::Handled | Ingested::Dropped(DropReason::RstLimited)),
            "{ingested:?}"
        );
    }
    assert_eq!(bench.held(), (0, 0));
    let counters = bench.endpoint.counters();
    assert_eq!((counters.syncookies_failed, counters.tcp_passive_opens), (200_000, 0));
    assert!(bench.drain().iter().all(|sent| sent.flags == RST || sent.flags == SYN | ACK));
    // What belongs to a cookie of another client, or of another SYN, is forged as well.
    let cookie = bench.open(peer(2));
    let ack = reply(&cookie, ACK, &[]);
    for forged in [
        Segment { from: peer(3), ..ack },
        Segment { seq: IRS + 2, ..ack },
        Segment { ack: ack.ack + 1, ..ack },
    ] {
        bench.now += Duration::from_secs(1);
        assert_eq!(bench.arrive(&forged).1[0].flags, RST);
    }
    assert!(matches!(bench.ingest(&ack), Ingested::Accepted(_)));
}

#[test]
fn cookies_are_checked_only_while_one_can_be_valid() {
    let mut bench = always();
    let guess = Segment { flags: ACK, seq: IRS + 1, ack: SeqNum(7), ..syn(peer(1)) };
    bench.arrive(&guess);
    assert_eq!(bench.endpoint.counters().syncookies_failed, 0, "none was sent");
    let cookie = bench.open(peer(1));
    bench.arrive(&guess);
    assert_eq!(bench.endpoint.counters().syncookies_failed, 1);
    // Two periods later.
    bench.now += Duration::from_secs(128);
    let (ingested, sent) = bench.arrive(&reply(&cookie, ACK, &[]));
    assert_eq!((ingested, sent[0].flags, bench.held()), (Ingested::Handled, RST, (0, 0)));
    assert_eq!(bench.endpoint.counters().syncookies_failed, 1, "not even tried");
}

#[test]
fn a_full_accept_queue_refuses_cookies_too() {
    let mut accept = AcceptConfig::default();
    accept.backlog = 1;
    let mut bench = Bench::with(host(SynCookies::Always), accept);
    let cookies = [bench.open(peer(1)), bench.open(peer(2))];
    let Ingested::Accepted(first) = bench.ingest(&reply(&cookies[0], ACK, &[])) else {
        panic!("room for one")
    };
    let second = reply(&cookies[1], ACK, b"its data");
    assert_eq!(bench.ingest(&second), Ingested::Dropped(DropReason::BacklogFull));
    assert_eq!(bench.arrive(&syn(peer(3))).0, Ingested::Dropped(DropReason::BacklogFull));
    assert!(bench.endpoint.poll_event().is_some() && bench.endpoint.conn(first).is_some());
    assert!(matches!(bench.ingest(&second), Ingested::Accepted(_)), "it comes again");
}

/// 100,000 SYNs a second, and room for 64: without cookies entries would live for less than a
/// millisecond.
#[test]
fn a_flood_does_not_keep_an_honest_client_out_of_a_small_cache() {
    let mut host = host_config(B);
    host.max_half_open = 64;
    let (connected, mut net) = attempts_during_a_flood(host, 100, 100, spoofed);
    assert!(connected >= 99, "{connected} of 100");
    let endpoint = net.endpoint(B);
    assert!(endpoint.connections() <= 1 && endpoint.half_open() == 64);
    let counters = endpoint.counters();
    assert!(counters.syncookies_recv >= 99 && counters.syncookies_sent > 100_000, "{counters:?}");
}
