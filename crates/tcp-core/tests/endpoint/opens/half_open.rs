//! Passive opens before they are connections: what their segments call for, who makes room for
//! whom, and what a flood of SYNs costs.

use crate::net::{A, B, Link, Net, Plan, host_config, socket};
use ackline_tcp_core::config::SynCookies;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{
    FastOpenCookie, HeaderBuf, OptionLayout, TcpFlags, TcpHeader, TcpOptions, Timestamps, Transport,
    TxChecksumMode, emit_tcp, parse,
};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, DropReason, Duration, Endpoint, EndpointConfig, Event, Ingested, Instant,
    ListenOn, ListenerId, RxPacket, SeqNum, State, Target, TxBudget, WakeReason,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub(crate) const SYN: TcpFlags = TcpFlags::SYN;
pub(crate) const ACK: TcpFlags = TcpFlags::ACK;
pub(crate) const FIN: TcpFlags = TcpFlags::FIN;
pub(crate) const RST: TcpFlags = TcpFlags::RST;
/// The peers' first sequence number.
pub(crate) const IRS: SeqNum = SeqNum(9_000);
const MS: Duration = Duration::from_millis(1);

/// A segment of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) flags: TcpFlags,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) options: TcpOptions,
    pub(crate) cookie: Option<FastOpenCookie>,
    pub(crate) data: &'a [u8],
}

/// What the endpoint sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) to: SocketAddr,
    pub(crate) flags: TcpFlags,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) options: TcpOptions,
    pub(crate) cookie: Option<FastOpenCookie>,
    pub(crate) window: u16,
    pub(crate) data: Vec<u8>,
}

/// An endpoint that listens on port 80, and peers made by hand.
pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    pub(crate) listener: ListenerId,
}

pub(crate) fn peer(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 7], number))
}

/// Another IPv4 address for each number.
pub(crate) fn spoofed(number: u32) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(0x0b00_0000 + number).into(), 4_000)
}

pub(crate) fn syn(from: SocketAddr) -> Segment<'static> {
    let timestamps = Some(Timestamps { val: 5_000, ecr: 0 });
    let options = TcpOptions {
        mss: Some(1_400),
        window_scale: Some(3),
        sack_permitted: true,
        timestamps,
        ..TcpOptions::NONE
    };
    Segment { from, flags: SYN, seq: IRS, ack: SeqNum(0), options, cookie: None, data: &[] }
}

/// What follows a SYN-ACK.
pub(crate) fn reply<'a>(to: &Sent, flags: TcpFlags, data: &'a [u8]) -> Segment<'a> {
    let timestamps = to.options.timestamps.map(|ts| Timestamps { val: 5_010, ecr: ts.val });
    let options = TcpOptions { timestamps, ..TcpOptions::NONE };
    Segment { from: to.to, flags, seq: IRS + 1, ack: to.seq + 1, options, cookie: None, data }
}

pub(crate) fn bytes(to: SocketAddr, segment: &Segment<'_>) -> Vec<u8> {
    let mut header = TcpHeader::new(segment.from, to);
    (header.seq, header.ack, header.flags) = (segment.seq, segment.ack, segment.flags);
    (header.window, header.options) = (60_000, segment.options);
    header.layout = segment.cookie.map_or(OptionLayout::Standard, OptionLayout::FastOpen);
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [segment.data, &[]], TxChecksumMode::Complete, &mut buf).unwrap();
    [buf.as_slice(), segment.data].concat()
}

impl Bench {
    fn new() -> Self {
        Self::with(host_config(A), AcceptConfig::default())
    }

    pub(crate) fn with(host: EndpointConfig, accept: AcceptConfig) -> Self {
        let mut endpoint = Endpoint::new(host, Box::new(Fifo::default()), [7; 32]);
        let now = Instant::from_secs(1);
        let listener = endpoint.listen(now, ListenOn::Port(80), accept).unwrap();
        Self { endpoint, now, listener }
    }

    pub(crate) fn ingest(&mut self, segment: &Segment<'_>) -> Ingested {
        let to = match segment.from {
            SocketAddr::V4(_) => socket(A, 80),
            SocketAddr::V6(_) => "[fd00::1]:80".parse().unwrap(),
        };
        self.endpoint.ingest(self.now, RxPacket::new(&bytes(to, segment)))
    }

    pub(crate) fn drain(&mut self) -> Vec<Sent> {
        let mut all = vec![];
        self.endpoint
            .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                let bytes = [packet.header, packet.payload[0], packet.payload[1]].concat();
                let datagram = parse(&RxPacket::new(&bytes)).map(|it| {
                    let Transport::Tcp(tcp) = it.transport else { panic!("not TCP") };
                    Sent {
                        to: SocketAddr::new(it.ip.dst, tcp.dst_port),
                        flags: tcp.flags,
                        seq: tcp.seq,
                        ack: tcp.ack,
                        options: tcp.options,
                        cookie: tcp.fast_open(),
                        window: tcp.window,
                        data: tcp.payload.iter().collect(),
                    }
                });
                all.push(datagram.unwrap());
                Ok::<(), ()>(())
            })
            .unwrap();
        all
    }

    pub(crate) fn arrive(&mut self, segment: &Segment<'_>) -> (Ingested, Vec<Sent>) {
        let ingested = self.ingest(segment);
        (ingested, self.drain())
    }

    /// The SYN-ACK that answers the SYN of `from`.
    pub(crate) fn open(&mut self, from: SocketAddr) -> Sent {
        let (ingested, mut sent) = self.arrive(&syn(from));
        assert_eq!((ingested, sent.len()), (Ingested::HalfOpen, 1));
        assert_eq!((sent[0].flags, sent[0].ack, sent[0].to), (SYN | ACK, IRS + 1, from));
        sent.remove(0)
    }

    /// Waits for the next timer.
    fn wait(&mut self) -> Vec<Sent> {
        let wakeup = self.endpoint.poll_timeout().expect("a timer");
        assert_eq!((wakeup.reason, wakeup.conn), (WakeReason::Rto, None));
        self.now = wakeup.at;
        self.endpoint.handle_timeout(self.now);
        self.drain()
    }

    /// Half-open connections, and others.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.endpoint.half_open(), self.endpoint.connections())
    }
}

#[test]
fn the_ack_of_the_syn_ack_makes_a_connection() {
    let mut bench = Bench::new();
    let syn_ack = bench.open(peer(1));
    assert_eq!(bench.held(), (1, 0));
    assert_eq!(bench.endpoint.poll_event(), None, "the application hears of nothing half-open");
    let options = &syn_ack.options;
    assert_eq!((options.mss, options.sack_permitted), (Some(1_460), true));
    assert_eq!((options.window_scale.is_some(), options.timestamps.unwrap().ecr), (true, 5_000));
    assert_eq!(syn_ack.window, 65_535);
    bench.now += Duration::from_millis(30);
    let (ingested, _) = bench.arrive(&reply(&syn_ack, ACK, &[]));
    let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
    assert_eq!(bench.held(), (0, 1));
    assert_eq!(bench.endpoint.poll_event(), Some(Event::Accepted { listener: bench.listener, conn }));
    let info = bench.endpoint.conn(conn).unwrap().info();
    assert_eq!((info.state, info.snd_mss, info.sack), (State::Established, 1_400 - 12, true));
    assert_eq!(info.wscale.map(|(peer, _)| peer), Some(3));
    assert_eq!(info.rtt, Some(Duration::from_millis(30)), "from the SYN-ACK to its ACK");
    assert_eq!((info.segs_in, info.segs_out), (2, 1));
    assert_eq!(bench.endpoint.counters().tcp_passive_opens, 1);
    // The handshake's timer is gone.
    assert!(bench.endpoint.poll_timeout().is_none_or(|wakeup| wakeup.conn == Some(conn)));
}

/// `Endpoint::memory` counts what has been settled, and asking for events settles.
#[test]
fn what_touches_no_connection_is_settled_before_the_next_event() {
    let mut bench = Bench::new();
    assert_eq!(bench.endpoint.poll_event(), None);
    let empty = bench.endpoint.memory();
    assert_eq!(bench.ingest(&syn(peer(1))), Ingested::HalfOpen);
    assert_eq!(bench.endpoint.poll_event(), None);
    let half_open = bench.endpoint.memory();
    assert!(half_open > empty, "an entry and its SYN-ACK: {half_open}");
    let stray = Segment { flags: ACK, from: peer(2), ..syn(peer(2)) };
    assert_eq!(bench.ingest(&stray), Ingested::Handled, "an RST waits");
    assert_eq!(bench.endpoint.poll_event(), None);
    assert!(bench.endpoint.memory() > half_open);
    let (now, listener) = (bench.now, bench.listener);
    bench.endpoint.unlisten(now, listener);
    assert_eq!(bench.endpoint.poll_event(), None);
    assert_eq!(bench.held(), (0, 0));
}

#[test]
fn data_and_fin_may_come_with_the_last_ack() {
    let mut bench = Bench::new();
    let syn_ack = bench.open(peer(1));
    let (ingested, sent) = bench.arrive(&reply(&syn_ack, FIN | ACK, b"all there is"));
    let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
    assert_eq!((sent.len(), sent[0].ack), (1, IRS + 1 + 12 + 1));
    let now = bench.now;
    let mut handle = bench.endpoint.conn(conn).unwrap();
    let mut data = [0; 20];
    assert_eq!((handle.read(now, &mut data), handle.at_end()), (Ok(12), true));
    assert_eq!(handle.state(), State::CloseWait);
}

/// RFC 9293, section 3.10.7.4, with RFC 5961 and RFC 7323; as for a connection in SYN-RECEIVED.
#[test]
fn segments_that_complete_nothing_spoil_nothing() {
    let mut config = ConnConfig::default();
    config.require_timestamps = true;
    let mut bench = Bench::with(host_config(A), AcceptConfig::new(Arc::new(config)));
    let syn_ack = bench.open(peer(1));
    let ack = reply(&syn_ack, ACK, &[]);
    let stamped = |val| TcpOptions { timestamps: Some(Timestamps { val, ecr: 0 }), ..TcpOptions::NONE };
    let dropped = Ingested::Dropped;
    let table = [
        ("another ACK", Segment { ack: ack.ack + 1, ..ack }, Ingested::Handled, Some(RST)),
        (
            "an older timestamp",
            Segment { options: stamped(4_999), ..ack },
            dropped(DropReason::OldTimestamp),
            Some(ACK),
        ),
        (
            "no timestamp",
            Segment { options: TcpOptions::NONE, ..ack },
            dropped(DropReason::NoTimestamp),
            None,
        ),
        ("no ACK", Segment { flags: TcpFlags::NONE, ..ack }, dropped(DropReason::NoAck), None),
        ("below the window", Segment { seq: IRS - 100, ..ack }, dropped(DropReason::OutOfWindow), None),
        (
            "RST in the window",
            Segment { flags: RST, seq: IRS + 7, ..ack },
            dropped(DropReason::RstNotExpected),
            None,
        ),
        ("RST outside", Segment { flags: RST, seq: IRS, ..ack }, dropped(DropReason::RstOutOfWindow), None),
        ("the SYN again", syn(peer(1)), Ingested::Handled, Some(SYN | ACK)),
    ];
    for (what, segment, expected, answer) in table {
        let (ingested, sent) = bench.arrive(&segment);
        assert_eq!(ingested, expected, "{what}");
        assert_eq!(sent.first().map(|sent| sent.flags), answer, "{what}");
        assert!(sent.len() <= 1 && bench.held() == (1, 0), "{what}");
        if answer == Some(ACK) {
            let challenge = (sent[0].seq, sent[0].ack, sent[0].window);
            assert_eq!(
                challenge,
                (syn_ack.seq + 1, IRS + 1, 65_535 >> syn_ack.options.window_scale.unwrap())
            );
        }
    }
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_challenge_ack, counters.tcp_ack_skipped_syn_recv), (1, 2), "one per timeout");
    assert!(matches!(bench.ingest(&ack), Ingested::Accepted(_)));
}

#[test]
fn an_rst_or_a_new_syn_ends_a_half_open_connection() {
    let mut bench = Bench::new();
    for (number, flags, seq) in [(1, RST, IRS + 1), (2, SYN, IRS + 9)] {
        let syn_ack = bench.open(peer(number));
        let (ingested, sent) = bench.arrive(&Segment { seq, ..reply(&syn_ack, flags, &[]) });
        assert_eq!((ingested, sent.len(), bench.held()), (Ingested::Handled, 0, (0, 0)));
    }
    let counters = bench.endpoint.counters();
    assert_eq!((counters.embryonic_rsts, counters.tcp_attempt_fails, counters.tcp_passive_opens), (2, 2, 0));
    // What the peer thought to be a handshake is over.
    let late = Segment { seq: IRS + 1, ..syn(peer(1)) };
    assert_eq!(bench.arrive(&Segment { flags: ACK, ..late }).1[0].flags, RST);
}

#[test]
fn the_syn_ack_is_retransmitted_with_back_off_and_given_up() {
    let mut bench = Bench::new();
    let start = bench.now;
    let first = bench.open(peer(1));
    // Copies of the SYN are no evidence that the SYN-ACK is lost, and whoever sends them may not be
    // the peer.
    let answers: usize = (0..10).map(|_| bench.arrive(&syn(peer(1))).1.len()).sum();
    assert_eq!(answers, 1, "one per timeout");
    let mut departures = vec![];
    while bench.endpoint.half_open() > 0 {
        for sent in bench.wait() {
            assert_eq!((sent.flags, sent.seq, sent.ack), (SYN | ACK, first.seq, IRS + 1));
            departures.push(bench.now.since(start).as_millis());
        }
    }
    assert_eq!(departures, [1_000, 3_000, 7_000, 15_000, 31_000], "syn_ack_retries: 5");
    assert_eq!(bench.now.since(start).as_millis(), 63_000);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_syn_retrans, counters.tcp_attempt_fails, counters.tcp_timeouts), (6, 1, 6));
    assert_eq!(counters.tcp_ack_skipped_syn_recv, 9);
    assert_eq!(bench.endpoint.poll_timeout(), None);
    assert_eq!(bench.endpoint.poll_event(), None);
}

/// Linux, `TCP_DEFER_ACCEPT`: three seconds are two timeouts.
#[test]
fn a_listener_that_waits_for_data_keeps_a_record_until_some_comes() {
    let mut bench = Bench::new();
    let mut conn = ConnConfig::default();
    conn.defer_accept = Some(Duration::from_secs(3));
    bench.endpoint.accept_config(bench.listener).unwrap().conn = Arc::new(conn);
    let start = bench.now;
    let [first, second] = [1, 2].map(|number| bench.open(peer(number)));
    for syn_ack in [&first, &second] {
        let (ingested, sent) = bench.arrive(&reply(syn_ack, ACK, &[]));
        assert_eq!((ingested, sent.len()), (Ingested::Dropped(DropReason::AcceptDeferred), 0));
    }
    assert_eq!((bench.endpoint.half_open(), bench.endpoint.connections()), (2, 0));
    // When the time is over, the SYN-ACK is repeated once.
    let mut departures = vec![];
    while bench.now.since(start) < Duration::from_secs(3) {
        departures.extend(bench.wait().into_iter().map(|_| bench.now.since(start).as_millis()));
    }
    assert_eq!(departures, [3_000, 3_000]);
    // Data completes the handshake at any time, and from then on a bare ACK does, too.
    for (syn_ack, data) in [(&first, &b"GET"[..]), (&second, &b""[..])] {
        let (ingested, _) = bench.arrive(&reply(syn_ack, ACK, data));
        assert!(matches!(ingested, Ingested::Accepted(_)));
    }
    assert_eq!(bench.endpoint.counters().tcp_defer_accept_drop, 2);
}

/// Many timers of different ages and lengths: each expires at its own time.
#[test]
fn timers_of_many_do_not_disturb_each_other() {
    let mut bench = Bench::new();
    for number in 0..50 {
        bench.open(peer(number));
        bench.now += Duration::from_millis(90);
    }
    let mut departures = vec![vec![]; 50];
    while bench.endpoint.half_open() > 0 {
        for sent in bench.wait() {
            departures[usize::from(sent.to.port())].push(bench.now);
        }
    }
    for (number, at) in departures.iter().enumerate() {
        let began = Instant::from_secs(1) + Duration::from_millis(90 * number as u64);
        let after: Vec<_> = at.iter().map(|at| at.since(began).as_millis()).collect();
        assert_eq!(after, [1_000, 3_000, 7_000, 15_000, 31_000], "{number}");
    }
}

#[test]
fn a_full_device_starts_no_timer_and_loses_nothing() {
    let mut bench = Bench::new();
    assert_eq!(bench.ingest(&syn(peer(1))), Ingested::HalfOpen);
    // For a minute and more.
    for _ in 0..70 {
        bench.now += Duration::from_secs(1);
        bench.endpoint.handle_timeout(bench.now);
        assert!(bench.endpoint.transmit(bench.now, TxBudget::UNLIMITED, |_| Err("full")).is_err());
    }
    assert_eq!((bench.held(), bench.endpoint.counters().tcp_timeouts), ((1, 0), 0));
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags), (1, SYN | ACK));
    let began = bench.now;
    assert_eq!(bench.wait().len(), 1);
    assert_eq!(bench.now.since(began), Duration::from_secs(1));
    assert!(matches!(bench.ingest(&reply(&sent[0], ACK, &[])), Ingested::Accepted(_)));
}

#[test]
fn a_path_that_is_back_is_tried_at_once() {
    let mut bench = Bench::new();
    bench.open(peer(1));
    for _ in 0..4 {
        bench.wait();
    }
    bench.open(peer(2));
    bench.endpoint.path_restored(bench.now);
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].to), (1, peer(1)), "only what has backed off");
}

#[test]
fn a_listener_that_goes_resets_what_is_half_open() {
    let mut bench = Bench::new();
    let other = bench.endpoint.listen(bench.now, ListenOn::Port(81), AcceptConfig::default()).unwrap();
    let syn_ack = bench.open(peer(1));
    bench.endpoint.unlisten(bench.now, other);
    assert_eq!(bench.held(), (1, 0), "another listener's");
    bench.endpoint.unlisten(bench.now, bench.listener);
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].to), (1, RST | ACK, peer(1)));
    assert_eq!((sent[0].seq, sent[0].ack, bench.held()), (syn_ack.seq + 1, IRS + 1, (0, 0)));
}

#[test]
fn a_half_open_four_tuple_cannot_be_opened_actively() {
    let mut bench = Bench::new();
    bench.open(peer(4_000));
    let mut target = Target::from(peer(4_000));
    target.local_port = Some(80);
    let refused = bench.endpoint.connect(bench.now, target, Arc::default());
    assert_eq!(refused, Err(ackline_tcp_core::error::ConnectError::InUse));
}

/// The listener's settings when the SYN came are those that the SYN-ACK promised.
#[test]
fn settings_changed_during_a_handshake_do_not_change_it() {
    let mut bench = Bench::new();
    let syn_ack = bench.open(peer(1));
    let mut without = ConnConfig::default();
    (without.sack, without.timestamps, without.window_scale) = (false, false, false);
    bench.endpoint.accept_config(bench.listener).unwrap().conn = Arc::new(without);
    let again = bench.wait();
    assert_eq!(again[0].options.window_scale, syn_ack.options.window_scale);
    let Ingested::Accepted(conn) = bench.ingest(&reply(&syn_ack, ACK, &[])) else { panic!("not accepted") };
    let info = bench.endpoint.conn(conn).unwrap().info();
    assert!(info.sack && info.timestamps && info.wscale.is_some());
    assert_eq!(info.rtt, None, "whose ACK it is cannot be told (Karn)");
}

/// RFC 5681, section 3.1: only a loss reduces the initial window.
#[test]
fn a_syn_ack_that_was_not_lost_does_not_reduce_the_initial_window() {
    let cwnd = |bench: &mut Bench, ack: &Segment<'_>| {
        let Ingested::Accepted(conn) = bench.ingest(ack) else { panic!("not accepted") };
        let info = bench.endpoint.conn(conn).unwrap().info();
        (info.snd_cwnd / u64::from(info.snd_mss), info.rto)
    };
    // The peer's SYN came twice, and was answered twice.
    let mut bench = Bench::new();
    let syn_ack = bench.open(peer(1));
    bench.now += Duration::from_millis(500);
    let mut again = syn(peer(1));
    again.options.timestamps = Some(Timestamps { val: 5_500, ecr: 0 });
    let second = bench.arrive(&again).1.remove(0);
    assert_eq!(second.options.timestamps.unwrap().ecr, 5_500, "RFC 7323, section 4.3");
    let mut ack = reply(&syn_ack, ACK, &[]);
    ack.options.timestamps.as_mut().unwrap().val = 5_510;
    assert_eq!(cwnd(&mut bench, &ack), (10, Duration::from_secs(1)));
    // The timer sent it again, up to three times; the ACK echoes the first or a later one.
    for timeouts in 1..=3 {
        for first in [true, false] {
            let mut bench = Bench::new();
            let syn_ack = bench.open(peer(1));
            let again: Vec<_> = (0..timeouts).map(|_| bench.wait().remove(0)).collect();
            bench.now += Duration::from_millis(300);
            let echoed = if first { &syn_ack } else { &again[0] };
            let expected = (if first { 10 } else { 1 }, Duration::from_secs(3));
            assert_eq!(cwnd(&mut bench, &reply(echoed, ACK, &[])), expected, "{timeouts} {first}");
        }
    }
}

pub(crate) fn small_cache(entries: u32, share: u32) -> EndpointConfig {
    let mut host = host_config(A);
    (host.max_half_open, host.half_open_per_source) = (entries, share);
    host.syn_cookies = SynCookies::Off;
    host
}

#[test]
fn the_oldest_makes_room_even_if_it_was_retransmitted() {
    let mut bench = Bench::with(small_cache(3, 2), AcceptConfig::default());
    let first = bench.open(spoofed(1));
    bench.wait();
    let second = bench.open(spoofed(2));
    let third = bench.open(spoofed(3));
    bench.open(spoofed(4));
    assert_eq!((bench.held(), bench.endpoint.counters().half_open_evicted), ((3, 0), 1));
    let (_, sent) = bench.arrive(&reply(&first, ACK, &[]));
    assert_eq!((sent[0].flags, sent[0].seq), (RST, first.seq + 1), "as of no connection");
    for kept in [second, third] {
        assert!(matches!(bench.ingest(&reply(&kept, ACK, &[])), Ingested::Accepted(_)));
    }
}

#[test]
fn a_source_with_its_share_pushes_nobody_out() {
    let v6 = |host: u16| SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, host), 4_000));
    for hog in [(|number| peer(number)) as fn(u16) -> SocketAddr, v6] {
        let mut bench = Bench::with(small_cache(8, 4), AcceptConfig::default());
        let honest = bench.open(spoofed(1));
        // While there is room, everyone may have it.
        for number in 0..7 {
            bench.open(hog(number));
        }
        for number in 7..100 {
            let (ingested, sent) = bench.arrive(&syn(hog(number)));
            assert_eq!((ingested, sent.len()), (Ingested::Dropped(DropReason::HalfOpenFull), 0));
        }
        let counters = bench.endpoint.counters();
        assert_eq!(
            (counters.tcp_req_q_full_drop, counters.listen_drops, counters.half_open_evicted),
            (93, 93, 0)
        );
        assert!(matches!(bench.ingest(&reply(&honest, ACK, &[])), Ingested::Accepted(_)));
        // Others take the place of the oldest, which are the hog's.
        for number in 2..6 {
            bench.open(spoofed(number));
        }
        // There was a free place; three of its eight are gone, and it is still at its share.
        assert_eq!(bench.arrive(&syn(hog(200))).0, Ingested::Dropped(DropReason::HalfOpenFull));
        bench.open(spoofed(6));
        bench.open(hog(200));
    }
}

/// An honest client's attempts, one after the other, during a flood of `per_ms` SYNs per
/// millisecond to B.
pub(crate) fn attempts_during_a_flood(
    host: EndpointConfig,
    per_ms: u32,
    attempts: usize,
    from: impl Fn(u32) -> SocketAddr,
) -> (usize, Net) {
    let mut net = Net::with(1, Link::default(), [host_config(A), host], || Box::new(Fifo::default()));
    net.listen(B, 80, ConnConfig::default());
    let most = net.endpoint(B).config().max_half_open as usize;
    let (mut sent, mut connected) = (0, 0);
    for _ in 0..attempts {
        let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(100));
        let limit = net.now + Duration::from_secs(1);
        while net.now < limit {
            for _ in 0..per_ms {
                let flood = syn(from(sent));
                sent += 1;
                net.inject(B, &bytes(socket(B, 80), &flood));
            }
            assert!(net.endpoint(B).half_open() <= most);
            let end = net.now + MS;
            net.run(MS);
            net.now = end;
            if net.endpoint(A).state(client).is_some_and(State::is_synchronized)
                && net.hosts[B].streams.values().any(|stream| stream.read == 100)
            {
                connected += 1;
                break;
            }
        }
        let now = net.now;
        net.endpoint(A).abort(now, client);
        net.endpoint(A).release(now, client);
        net.hosts[A].streams.clear();
        net.run(Duration::from_millis(20));
        net.hosts[B].streams.clear();
    }
    (connected, net)
}

/// 100,000 SYNs a second from as many addresses. Entries live for 41 ms.
#[test]
fn a_flood_of_spoofed_syns_does_not_keep_an_honest_client_out() {
    let mut host = host_config(B);
    (host.max_half_open, host.syn_cookies) = (4_096, SynCookies::Off);
    let (connected, mut net) = attempts_during_a_flood(host, 100, 100, spoofed);
    assert!(connected >= 99, "{connected} of 100");
    let endpoint = net.endpoint(B);
    assert!(endpoint.connections() <= 1 && endpoint.half_open() <= 4_096);
    assert!(endpoint.counters().half_open_evicted > 100_000, "{}", endpoint.counters().half_open_evicted);
}

/// The same from one address, with another port each time.
#[test]
fn a_flood_from_one_source_does_not_keep_an_honest_client_out() {
    let mut host = host_config(B);
    (host.max_half_open, host.syn_cookies) = (4_096, SynCookies::Off);
    let from = |number: u32| SocketAddr::from(([192, 0, 2, 7], number as u16));
    let (connected, mut net) = attempts_during_a_flood(host, 100, 100, from);
    assert!(connected >= 99, "{connected} of 100");
    let counters = net.endpoint(B).counters();
    assert!(counters.half_open_evicted <= 101, "each client made room: {}", counters.half_open_evicted);
}
