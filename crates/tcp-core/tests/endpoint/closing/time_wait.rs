//! TIME-WAIT of connections that the application has released: what their records answer, who may
//! take their places, and what closes in great numbers cost.

use crate::egress::keeps_numbers;
use crate::net::{A, B, Link, Net, Plan, address, host_config, socket};
use ackline_tcp_core::error::ConnectError;
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, Timestamps, Transport, TxChecksumMode, emit_tcp, parse,
};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, DropReason, Duration, Endpoint, EndpointConfig, Event, Ingested,
    Instant, ListenOn, RxPacket, SeqNum, State, Target, TxBudget, WakeReason,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::sync::Arc;

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;
const RST: TcpFlags = TcpFlags::RST;
/// The peer's first sequence number.
const IRS: SeqNum = SeqNum(9_000);
/// What the peer sends before it closes.
const DATA: &[u8] = b"before the end";
/// The timestamp of the peer's SYN; each later segment shows one more.
const STAMP: u32 = 5_000;

/// What a connection is like.
#[derive(Clone, Copy, Debug)]
struct Kind {
    v6: bool,
    /// With timestamps.
    stamps: bool,
    /// The endpoint opened it.
    client: bool,
    /// The application keeps its handle.
    held: bool,
}

const RELEASED: Kind = Kind { v6: false, stamps: true, client: false, held: false };

/// An endpoint, and a peer made by hand.
struct Bench {
    endpoint: Endpoint,
    now: Instant,
    local: SocketAddr,
    remote: SocketAddr,
    /// The connection in TIME-WAIT.
    conn: ConnId,
    /// SND.NXT of the endpoint.
    snd_nxt: SeqNum,
    /// RCV.NXT of the endpoint.
    rcv_nxt: SeqNum,
    /// The latest timestamp of the peer, if there are any.
    stamp: Option<u32>,
}

/// What the endpoint sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    window: u16,
    options: TcpOptions,
    ttl: u8,
    dscp: u8,
    len: usize,
}

/// What the peer sends.
#[derive(Clone, Copy, Debug)]
struct Segment<'a> {
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    stamp: Option<u32>,
    data: &'a [u8],
}

fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::new(config, Box::new(Fifo::default()), [7; 32])
}

fn conn_config(kind: Kind) -> Arc<ConnConfig> {
    let mut config = ConnConfig::default();
    config.timestamps = kind.stamps;
    config.require_timestamps = kind.client;
    (config.ttl, config.dscp) = (Some(33), 10);
    Arc::new(config)
}

impl Bench {
    fn new(kind: Kind) -> Self {
        Self::with(kind, host_config(A))
    }

    /// The endpoint has closed first, and is in TIME-WAIT.
    fn with(kind: Kind, host: EndpointConfig) -> Self {
        let at = |last: u8, port| match kind.v6 {
            true => SocketAddr::new(format!("fd00::{last}").parse().unwrap(), port),
            false => SocketAddr::from(([10, 0, 0, last], port)),
        };
        let (local, remote) = (at(1, 80), at(2, 4_000));
        let mut bench = Self {
            endpoint: endpoint(host),
            now: Instant::from_secs(1),
            local,
            remote,
            conn: ConnId::for_test(0, 0),
            snd_nxt: SeqNum(0),
            rcv_nxt: IRS,
            stamp: None,
        };
        bench.listen(kind);
        bench.open(kind);
        bench.close(kind.held);
        bench
    }

    fn listen(&mut self, kind: Kind) {
        let accept = AcceptConfig::new(conn_config(kind));
        self.endpoint.listen(self.now, ListenOn::Port(80), accept).unwrap();
    }

    /// Opens a connection.
    fn open(&mut self, kind: Kind) {
        self.stamp = kind.stamps.then_some(STAMP);
        if kind.client {
            let mut target = Target::from(self.remote);
            target.local_port = Some(80);
            self.conn = self.endpoint.connect(self.now, target, conn_config(kind)).unwrap();
            self.snd_nxt = self.transmit()[0].seq + 1;
            self.send(SYN | ACK, self.rcv_nxt, self.snd_nxt, &[]);
            self.rcv_nxt += 1;
        } else {
            let syn_ack = self.send(SYN, self.rcv_nxt, SeqNum(0), &[]);
            self.rcv_nxt += 1;
            self.snd_nxt = syn_ack[0].seq + 1;
            self.send(ACK, self.rcv_nxt, self.snd_nxt, &[]);
            while let Some(event) = self.endpoint.poll_event() {
                if let Event::Accepted { conn, .. } = event {
                    self.conn = conn;
                }
            }
        }
        self.send(ACK, self.rcv_nxt, self.snd_nxt, DATA);
        self.rcv_nxt += DATA.len() as u32;
        let mut buffer = [0; 100];
        let mut conn = self.endpoint.conn(self.conn).unwrap();
        assert_eq!(conn.read(self.now, &mut buffer), Ok(DATA.len()));
        self.transmit();
    }

    /// Closes it, from the endpoint's side.
    fn close(&mut self, held: bool) {
        let now = self.now;
        match held {
            true => self.endpoint.conn(self.conn).unwrap().shutdown(now),
            false => self.endpoint.release(now, self.conn),
        }
        assert!(self.transmit()[0].flags.contains(FIN));
        self.snd_nxt += 1;
        self.send(ACK, self.rcv_nxt, self.snd_nxt, &[]);
        let last = self.send(FIN | ACK, self.rcv_nxt, self.snd_nxt, &[]);
        self.rcv_nxt += 1;
        assert_eq!((last[0].flags, last[0].ack), (ACK, self.rcv_nxt));
    }

    fn send(&mut self, flags: TcpFlags, seq: SeqNum, ack: SeqNum, data: &[u8]) -> Vec<Sent> {
        self.stamp = self.stamp.map(|stamp| stamp + 1);
        self.arrive(&Segment { flags, seq, ack, stamp: self.stamp, data }).1
    }

    /// A segment arrives; what leaves in answer.
    fn arrive(&mut self, segment: &Segment<'_>) -> (Ingested, Vec<Sent>) {
        let mut header = TcpHeader::new(self.remote, self.local);
        (header.seq, header.ack, header.flags) = (segment.seq, segment.ack, segment.flags);
        header.window = 60_000;
        header.options.timestamps = segment.stamp.map(|val| Timestamps { val, ecr: 0 });
        if segment.flags.contains(SYN) {
            header.options.sack_permitted = true;
            header.options.window_scale = Some(7);
        }
        if segment.flags == SYN | ACK {
            // A SYN-ACK must echo our timestamp: the clock counts milliseconds from a secret
            // offset.
            header.options.timestamps = segment.stamp.map(|val| Timestamps { val, ecr: self.echo() });
        }
        let mut buf = HeaderBuf::new();
        emit_tcp(&header, [segment.data, &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        let bytes = [buf.as_slice(), segment.data].concat();
        let ingested = self.endpoint.ingest(self.now, RxPacket::new(&bytes));
        (ingested, self.transmit())
    }

    /// The timestamp of the last SYN.
    fn echo(&self) -> u32 {
        LAST_STAMP.with(std::cell::Cell::get)
    }

    fn transmit(&mut self) -> Vec<Sent> {
        let mut sent = vec![];
        self.endpoint
            .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                let bytes = [packet.header, packet.payload[0], packet.payload[1]].concat();
                let rx = RxPacket::new(&bytes);
                let datagram = parse(&rx).expect("a valid packet");
                let Transport::Tcp(segment) = datagram.transport else { panic!("TCP") };
                if let Some(stamp) = segment.options.timestamps {
                    LAST_STAMP.with(|last| last.set(stamp.val));
                }
                sent.push(Sent {
                    flags: segment.flags,
                    seq: segment.seq,
                    ack: segment.ack,
                    window: segment.window,
                    options: segment.options,
                    ttl: datagram.ip.ttl,
                    dscp: datagram.ip.dscp,
                    len: segment.payload.len(),
                });
                Ok::<(), ()>(())
            })
            .unwrap();
        sent
    }

    fn at(&mut self, now: Instant) -> &mut Self {
        self.now = now;
        self.endpoint.handle_timeout(now);
        self
    }

    fn records(&self) -> usize {
        self.endpoint.time_wait_records()
    }

    /// A segment with these offsets from what the endpoint expects, and the timestamp after the
    /// last one.
    fn segment<'a>(&self, flags: TcpFlags, seq: i64, ack: i64, data: &'a [u8]) -> Segment<'a> {
        let shift = |base: SeqNum, by: i64| SeqNum((i64::from(base.0) + by) as u32);
        let stamp = self.stamp.map(|stamp| stamp + 1);
        Segment { flags, seq: shift(self.rcv_nxt, seq), ack: shift(self.snd_nxt, ack), stamp, data }
    }
}

std::thread_local! {
    /// The timestamp of the last segment that an endpoint sent.
    static LAST_STAMP: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

fn kinds() -> impl Iterator<Item = Kind> {
    (0..8).map(|bits| Kind { v6: bits & 1 != 0, stamps: bits & 2 != 0, client: bits & 4 != 0, held: false })
}

/// What a peer can see of a record, and when it ends, is what it sees of a connection whose
/// application holds it.
#[test]
fn a_record_answers_as_its_connection_would() {
    let (mut answers, mut reopened, mut expired) = (0, 0, 0);
    for seed in 0..100 {
        for kind in kinds() {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut record = Bench::new(kind);
            let mut conn = Bench::new(Kind { held: true, ..kind });
            assert_eq!((record.records(), record.endpoint.connections()), (1, 0));
            assert_eq!((conn.records(), conn.endpoint.connections()), (0, 1));
            for _ in 0..40 {
                let mut pick = |of: &[i64]| of[rng.next_u32() as usize % of.len()];
                let flags = [ACK, FIN | ACK, FIN, RST, RST | ACK, TcpFlags::NONE, SYN | ACK, SYN];
                let flags = flags[pick(&[0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7]) as usize];
                let seq = pick(&[-100_000, -16, -15, -14, -2, -1, 0, 0, 1, 60_000, 65_535, 1_000_000]);
                let ack = pick(&[-100_000, -2, -1, 0, 0, 0, 1, 100_000]);
                let data = &DATA[..pick(&[0, 0, 0, 1, 13]) as usize];
                let mut segment = record.segment(flags, seq, ack, data);
                let stamp = pick(&[-1_000, -1, 0, 0, 1]);
                segment.stamp = segment.stamp.map(|val| (i64::from(val) + stamp) as u32);
                segment.stamp = segment.stamp.filter(|_| pick(&[0, 1, 1, 1, 1, 1]) == 1);
                let now = record.now + Duration::from_millis(pick(&[0, 0, 1, 100, 499, 501, 9_000]) as u64);
                record.at(now);
                conn.at(now);
                let (was, sent) = record.arrive(&segment);
                let expected = conn.arrive(&segment);
                assert_eq!(sent, expected.1, "{seed} {kind:?} {segment:?}");
                answers += sent.len();
                if was == Ingested::HalfOpen || record.records() == 0 {
                    assert_eq!(record.records(), 0);
                    let over = |bench: &mut Bench| bench.endpoint.state(bench.conn) == Some(State::Closed);
                    assert!(over(&mut conn), "{seed} {kind:?} {segment:?}");
                    reopened += usize::from(was == Ingested::HalfOpen);
                    expired += usize::from(was != Ingested::HalfOpen);
                    break;
                }
                let end = |bench: &Bench| bench.endpoint.poll_timeout().map(|it| (it.at, it.reason));
                assert_eq!(end(&record), end(&conn), "{seed} {kind:?} {segment:?}");
                assert_eq!(end(&record).unwrap().1, WakeReason::TimeWait);
            }
            let counted = |bench: &Bench| {
                let all = bench.endpoint.counters();
                [
                    all.tcp_out_segs,
                    all.tcp_challenge_ack,
                    all.tcp_ack_skipped_challenge,
                    all.tcp_ack_skipped_time_wait,
                    all.tcp_syn_challenge,
                    all.tcp_dsack_old_sent,
                    all.tcp_paws_estab,
                    all.tcp_no_timestamp,
                    all.tcp_no_ack,
                    all.tcp_ack_unacceptable,
                    all.tcp_out_of_window,
                    all.tcp_tw_rst_ignored,
                    all.tcp_tw_reopened,
                ]
            };
            assert_eq!(counted(&record), counted(&conn), "{seed} {kind:?}");
        }
    }
    println!("{answers} answers, {reopened} reopened, {expired} expired");
    assert!(answers > 1_000 && reopened > 50 && expired > 50);
}

/// RFC 9293, section 3.10.7.4, eighth; RFC 1122, section 4.2.2.13.
#[test]
fn the_peers_fin_is_acknowledged_again_and_begins_the_wait_anew() {
    for kind in kinds() {
        let mut bench = Bench::new(kind);
        let began = bench.now;
        let fin = |bench: &Bench| bench.segment(FIN | ACK, -1, 0, &[]);
        bench.at(began + Duration::from_secs(59));
        let segment = fin(&bench);
        let answer = bench.arrive(&segment).1;
        let [answer] = answer.as_slice() else { panic!("{answer:?}") };
        assert_eq!(
            (answer.flags, answer.seq, answer.ack, answer.len),
            (ACK, bench.snd_nxt, bench.rcv_nxt, 0)
        );
        assert_eq!((answer.ttl, answer.dscp), (33, 10), "as the connection's own");
        assert_eq!(answer.options.timestamps.is_some(), kind.stamps);
        bench.at(began + Duration::from_secs(118));
        assert_eq!(bench.records(), 1);
        let wakeup = bench.endpoint.poll_timeout().unwrap();
        assert_eq!(wakeup.at, began + Duration::from_secs(119));
        assert_eq!((wakeup.reason, wakeup.conn), (WakeReason::TimeWait, None));
        bench.at(began + Duration::from_secs(119));
        assert_eq!((bench.records(), bench.endpoint.poll_timeout()), (0, None));
        let segment = fin(&bench);
        assert!(bench.arrive(&segment).1[0].flags.contains(RST), "nobody knows it any more");
    }
}

#[test]
fn a_reset_does_not_end_the_wait() {
    let mut bench = Bench::new(RELEASED);
    for seq in [-1, 0, 1, 1_000_000] {
        let rst = bench.segment(RST, seq, 0, &[]);
        assert_eq!(bench.arrive(&rst), (Ingested::Dropped(DropReason::RstInTimeWait), vec![]), "RFC 1337");
    }
    assert_eq!((bench.records(), bench.endpoint.counters().tcp_tw_rst_ignored), (1, 4));
}

#[test]
fn two_hosts_in_time_wait_fall_silent() {
    let mut bench = Bench::new(RELEASED);
    let mut answers = 0;
    for _ in 0..1_000 {
        let confused = bench.segment(ACK, -100, 0, &[]);
        answers += bench.arrive(&confused).1.len();
        let now = bench.now + Duration::from_millis(1);
        bench.at(now);
    }
    assert_eq!(answers, 2, "one in 500 ms");
    assert_eq!(bench.endpoint.counters().tcp_ack_skipped_time_wait, 998);
    let expected = bench.segment(ACK, 0, 0, &[]);
    let now = bench.now + Duration::from_secs(1);
    assert_eq!(bench.at(now).arrive(&expected).1, []);
}

/// The last data was acknowledged, but the ACK was lost.
#[test]
fn data_that_comes_again_is_reported_as_a_duplicate() {
    let mut bench = Bench::new(RELEASED);
    let again = bench.segment(ACK, -14, 0, &DATA[1..]);
    let answer = bench.arrive(&again).1;
    assert_eq!(answer[0].options.sack.as_slice(), [(bench.rcv_nxt - 14, bench.rcv_nxt - 1)]);
    let never = bench.segment(ACK, -30, 0, DATA);
    assert!(bench.arrive(&never).1[0].options.sack.is_empty(), "from before the stream");
}

#[test]
fn an_old_timestamp_is_answered_and_does_not_count() {
    let mut bench = Bench::new(RELEASED);
    let mut old = bench.segment(FIN | ACK, -1, 0, &[]);
    old.stamp = Some(STAMP - 1);
    let (ingested, sent) = bench.arrive(&old);
    assert_eq!((ingested, sent.len()), (Ingested::Dropped(DropReason::OldTimestamp), 1), "PAWS");
    let stamp = bench.stamp;
    assert_eq!(sent[0].options.timestamps.map(|ts| ts.ecr), stamp);
    assert_eq!(bench.endpoint.counters().tcp_paws_estab, 1);
}

#[test]
fn a_newer_syn_opens_a_connection_beyond_the_old_numbers() {
    // Offset of the sequence number, and of the timestamp from the last one.
    for (stamps, seq, stamp, newer) in [
        (true, -1_000_000, 1, true),
        (true, 1, 0, true),
        (true, 0, 0, false),
        (true, 1_000, -1, false),
        (false, 1, 0, true),
        (false, 0, 0, false),
        (false, -1, 0, false),
    ] {
        let mut bench = Bench::new(Kind { stamps, ..RELEASED });
        let mut syn = bench.segment(SYN, seq, 0, &[]);
        syn.stamp = bench.stamp.map(|last| (i64::from(last) + stamp) as u32);
        let (ingested, sent) = bench.arrive(&syn);
        if newer {
            assert_eq!(ingested, Ingested::HalfOpen, "{stamps} {seq} {stamp}");
            assert_eq!((sent[0].flags, sent[0].ack), (SYN | ACK, syn.seq + 1));
            assert!(sent[0].seq.gt(bench.snd_nxt), "{:?} after {:?}", sent[0].seq, bench.snd_nxt);
            assert_eq!((bench.records(), bench.endpoint.counters().tcp_tw_reopened), (0, 1));
        } else {
            assert_eq!(ingested, Ingested::Dropped(DropReason::UnexpectedSyn));
            assert_eq!((sent[0].flags, sent[0].ack), (ACK, bench.rcv_nxt), "a challenge ACK");
            assert_eq!((bench.records(), bench.endpoint.counters().tcp_tw_reopened), (1, 0));
        }
    }
}

#[test]
fn a_newer_syn_that_finds_no_room_ends_no_wait() {
    let mut host = host_config(A);
    host.max_connections = 1;
    let mut bench = Bench::with(RELEASED, host);
    let other = bench.endpoint.connect(bench.now, Target::from(socket(B, 81)), Arc::default()).unwrap();
    bench.transmit();
    let syn = bench.segment(SYN, 1_000, 0, &[]);
    assert_eq!(bench.arrive(&syn).0, Ingested::Dropped(DropReason::EndpointFull));
    assert_eq!(bench.records(), 1);
    bench.endpoint.abort(bench.now, other);
    bench.endpoint.release(bench.now, other);
    assert_eq!(bench.arrive(&syn).0, Ingested::HalfOpen, "it comes again");
}

/// As long as the application holds it, it is a connection.
#[test]
fn a_handle_tells_of_time_wait_until_it_is_released() {
    let mut bench = Bench::new(Kind { held: true, ..RELEASED });
    let began = bench.now;
    let events: Vec<_> = std::iter::from_fn(|| bench.endpoint.poll_event()).collect();
    assert!(events.contains(&Event::Closed { conn: bench.conn, error: None }), "{events:?}");
    let conn = bench.endpoint.conn(bench.conn).unwrap();
    assert_eq!((conn.state(), conn.at_end(), conn.is_flushed()), (State::TimeWait, true, true));
    assert_eq!(conn.info().bytes_received, DATA.len() as u64);
    assert_eq!((bench.records(), bench.endpoint.connections()), (0, 1));

    // Released, it waits for what is left.
    bench.at(began + Duration::from_secs(20));
    bench.endpoint.release(bench.now, bench.conn);
    bench.transmit();
    assert!(bench.endpoint.conn(bench.conn).is_none());
    assert_eq!(bench.endpoint.state(bench.conn), None);
    assert_eq!((bench.records(), bench.endpoint.connections()), (1, 0));
    assert_eq!(bench.endpoint.poll_timeout().unwrap().at, began + Duration::from_secs(60));
    assert_eq!(bench.endpoint.poll_event(), None);

    // Kept to the end, it is closed, and leaves no record.
    let mut bench = Bench::new(Kind { held: true, ..RELEASED });
    bench.at(began + Duration::from_secs(60));
    assert_eq!(bench.endpoint.conn(bench.conn).unwrap().state(), State::Closed);
    bench.endpoint.release(bench.now, bench.conn);
    assert_eq!((bench.records(), bench.endpoint.connections()), (0, 0));
}

#[test]
fn what_was_not_read_is_lost_by_a_release_in_time_wait_without_a_reset() {
    let mut bench = Bench::new(Kind { held: true, ..RELEASED });
    bench.endpoint.abort(bench.now, bench.conn);
    assert_eq!(bench.transmit(), [], "RFC 9293, section 3.10.5: nothing is sent from TIME-WAIT");
    assert_eq!((bench.records(), bench.endpoint.state(bench.conn)), (0, Some(State::Closed)));
}

/// RFC 6191, as with Linux's `tcp_tw_reuse`: after a second, and only if both have timestamps.
#[test]
fn a_connect_uses_a_four_tuple_again_if_timestamps_permit() {
    for kind in kinds() {
        for (reuse, new_stamps, millis, permitted) in [
            (true, true, 1_000, true),
            (true, true, 999, false),
            (true, false, 30_000, false),
            (false, true, 30_000, false),
            (false, true, 60_000, true),
        ] {
            let mut host = host_config(A);
            host.time_wait_reuse = reuse;
            host.ephemeral_ports = 80..=80;
            let mut bench = Bench::with(kind, host);
            let ended = millis == 60_000;
            let now = bench.now + Duration::from_millis(millis);
            bench.at(now);
            let permitted = permitted && (kind.stamps || ended);
            let config = conn_config(Kind { stamps: new_stamps, ..kind });
            for named in [true, false] {
                let mut target = Target::from(bench.remote);
                target.local_port = named.then_some(80);
                let connected = bench.endpoint.connect(now, target, config.clone());
                let taken = if named { ConnectError::InUse } else { ConnectError::NoFreePort };
                assert_eq!(connected.is_ok(), permitted, "{kind:?} {reuse} {new_stamps} {millis}");
                let Ok(conn) = connected else {
                    assert_eq!(connected, Err(taken));
                    assert_eq!(bench.records(), 1);
                    continue;
                };
                let syn = bench.transmit().remove(0);
                assert_eq!(syn.flags, SYN);
                assert!(syn.seq.gt(bench.snd_nxt), "beyond the old one");
                assert_eq!(
                    (bench.records(), bench.endpoint.counters().tcp_tw_recycled),
                    (0, u64::from(!ended))
                );
                bench.endpoint.abort(now, conn);
                bench.endpoint.release(now, conn);
                break;
            }
        }
    }
}

/// A client that closes first has one port, and its peer has forgotten the connection.
#[test]
fn a_client_with_one_port_connects_again_and_again() {
    let mut narrow = host_config(A);
    narrow.ephemeral_ports = 5_000..=5_000;
    let mut net = Net::with(3, Link::default(), [narrow, host_config(B)], || Box::new(Fifo::default()));
    net.hosts[B].serve = Plan::send(100_000);
    net.listen(B, 80, ConnConfig::default());
    for turn in 0..20 {
        let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(50_000));
        let closed = |net: &Net| net.hosts[A].streams[&id].closed.is_some();
        assert!(net.run_until(Duration::from_secs(5), closed), "turn {turn}");
        let stream = net.hosts[A].streams[&id];
        assert_eq!((stream.read, stream.closed), (100_000, Some(None)), "turn {turn}");
        net.run(Duration::from_millis(1_100));
    }
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.tcp_tw, counters.tcp_tw_recycled), (20, 19));
}

/// Many more closes than the table has room for, while another connection transfers data.
#[test]
fn closes_far_above_the_cap_cost_bounded_memory_and_nobody_else() {
    const CAP: usize = 50;
    const CLOSES: usize = 400;
    let mut server = host_config(B);
    (server.max_time_wait, server.max_connections) = (CAP as u32, 8);
    let mut net = Net::with(5, Link::default(), [host_config(A), server], || Box::new(Fifo::default()));
    net.hosts[B].serve = Plan::send(0);
    net.listen(B, 80, ConnConfig::default());
    net.listen(B, 81, ConnConfig::default());
    // The neighbour reads what B sends until the end of the test: a window per round trip.
    net.hosts[B].serve = Plan::send(u64::MAX);
    let mut small = ConnConfig::default();
    (small.recv_buffer, small.initial_recv_window) = (8_000, None);
    let neighbour = net.connect(A, socket(B, 81), small, Plan { send: 0, read_size: 8_000 });
    net.run_until(Duration::from_secs(1), |net| net.hosts[A].streams[&neighbour].read > 0);
    net.hosts[B].serve = Plan::send(0);
    let mut largest = 0;
    for close in 0..CLOSES {
        // B closes as soon as it has accepted, and A follows.
        let now = net.now;
        let id = net.endpoint(A).connect(now, Target::from(socket(B, 80)), Arc::default()).unwrap();
        let before = net.hosts[A].streams[&neighbour].read;
        let left = |net: &Net| net.hosts[A].endpoint.state(id) == Some(State::CloseWait);
        assert!(net.run_until(Duration::from_millis(100), left), "connection {close} is accepted");
        let now = net.now;
        net.endpoint(A).release(now, id);
        net.run(Duration::from_millis(15));
        assert_eq!(net.endpoint(A).state(id), None, "connection {close} ends");
        assert!(net.hosts[A].streams[&neighbour].read > before, "the neighbour goes on");
        largest = largest.max(net.endpoint(B).time_wait_records());
        assert!(net.endpoint(B).connections() <= 3, "{}", net.endpoint(B).connections());
    }
    let counters = net.endpoint(B).counters().clone();
    assert_eq!((largest, counters.connections_refused), (CAP, 0));
    assert_eq!((counters.tcp_tw as usize, counters.tcp_time_wait_overflow as usize), (CLOSES, CLOSES - CAP));
    assert!(net.hosts[A].streams[&neighbour].closed.is_none());
}

#[test]
fn the_oldest_makes_room() {
    let mut host = host_config(A);
    host.max_time_wait = 3;
    let mut bench = Bench::with(RELEASED, host);
    for port in 4_001..4_006 {
        let now = bench.now + Duration::from_secs(1);
        bench.at(now);
        bench.remote.set_port(port);
        bench.rcv_nxt = IRS;
        bench.open(RELEASED);
        bench.close(false);
    }
    assert_eq!((bench.records(), bench.endpoint.counters().tcp_time_wait_overflow), (3, 3));
    for port in 4_000..4_006 {
        bench.remote.set_port(port);
        let rst = bench.segment(RST, 0, 0, &[]);
        let known = bench.arrive(&rst).0 == Ingested::Dropped(DropReason::RstInTimeWait);
        assert_eq!(known, port >= 4_003, "{port}");
    }
}

#[test]
fn without_room_for_any_nothing_waits() {
    let mut host = host_config(A);
    host.max_time_wait = 0;
    let bench = Bench::with(RELEASED, host);
    assert_eq!((bench.records(), bench.endpoint.connections()), (0, 0));
    assert_eq!(bench.endpoint.counters().tcp_time_wait_overflow, 1);
    assert_eq!(bench.endpoint.poll_timeout(), None);
}

/// Short waits are not kept waiting by long ones.
#[test]
fn each_waits_for_its_own_time() {
    let mut bench = Bench::new(RELEASED);
    let began = bench.now;
    for (port, seconds) in [(90, 120), (91, 2), (92, 600), (93, 1), (94, 30)] {
        let mut config = ConnConfig::default();
        config.time_wait = Duration::from_secs(seconds);
        bench.endpoint.listen(bench.now, ListenOn::Port(port), AcceptConfig::new(Arc::new(config))).unwrap();
        bench.local.set_port(port);
        bench.rcv_nxt = IRS;
        bench.open(RELEASED);
        bench.close(false);
    }
    let mut ends = vec![];
    while let Some(wakeup) = bench.endpoint.poll_timeout() {
        let before = bench.records();
        bench.at(wakeup.at);
        ends.extend(vec![wakeup.at.since(began).as_millis() / 1_000; before - bench.records()]);
    }
    // There are four lanes: the 1 s takes the next longer, and the 30 s as well.
    assert_eq!(ends, [2, 2, 60, 60, 120, 600]);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_tw, counters.tcp_tw_killed), (4, 2), "those of up to 4 s are counted apart");
}

/// However the ACK of the peer's FIN is delayed, lost or refused by the device, no connection stays
/// whole.
#[test]
fn every_released_connection_becomes_a_record() {
    let fifo: fn() -> Box<dyn EgressScheduler> = || Box::new(Fifo::default());
    for (seed, serialise, scheduler) in [
        (1, None, fifo),
        (2, None, fifo),
        (3, Some(Duration::from_micros(100)), fifo),
        (4, None, keeps_numbers),
        (5, None, keeps_numbers),
    ] {
        let link = Link { loss: 100, duplicates: 50, late: 100, refused: 200, serialise, ..Link::default() };
        let mut net = Net::with(seed, link, [host_config(A), host_config(B)], scheduler);
        net.hosts[B].serve = Plan::send(2_000);
        net.listen(B, 80, ConnConfig::default());
        for _ in 0..20 {
            net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1_000));
        }
        let quiet = |net: &Net| net.hosts.iter().all(|host| host.endpoint.connections() == 0);
        assert!(net.run_until(Duration::from_secs(50), quiet), "seed {seed} {serialise:?}");
        let waits = |host: usize| net.hosts[host].endpoint.time_wait_records();
        assert!(waits(A) + waits(B) > 0);
        net.run(Duration::from_secs(200));
        assert!(net.hosts.iter().all(|host| host.endpoint.time_wait_records() == 0));
    }
}

/// With 4,990 of 5,000 ports taken, a connect asks for a bounded number, and finds the free ones.
#[test]
fn connects_probe_few_ports_near_a_full_range() {
    const PORTS: u64 = 5_000;
    let mut host = host_config(A);
    host.ephemeral_ports = 10_000..=14_999;
    host.max_port_probes = 256;
    let mut endpoint = endpoint(host);
    let now = Instant::from_secs(1);
    let connect = |endpoint: &mut Endpoint| {
        let before = endpoint.counters().port_probes;
        let connected = endpoint.connect(now, Target::from(socket(B, 80)), Arc::default());
        let probes = endpoint.counters().port_probes - before;
        assert!(probes <= 256, "{probes}");
        (connected, probes)
    };
    let mut probes = 0;
    let ids: Vec<_> = (0..PORTS)
        .map(|_| {
            let (id, cost) = connect(&mut endpoint);
            probes += cost;
            id.unwrap()
        })
        .collect();
    assert_eq!(probes, PORTS, "each port is tried once before any is tried again");
    for _ in 0..10 {
        assert_eq!(connect(&mut endpoint), (Err(ConnectError::NoFreePort), 256));
    }
    assert_eq!(endpoint.counters().ports_exhausted, 10);
    for id in &ids[..10] {
        endpoint.abort(now, *id);
        endpoint.release(now, *id);
    }
    let (mut found, mut tries) = (0, 0);
    while found < 10 {
        tries += 1;
        assert!(tries < 40, "{found} of 10 free ports");
        found += usize::from(connect(&mut endpoint).0.is_ok());
    }
    assert_eq!(address(A), endpoint.config().addresses[0]);
}
