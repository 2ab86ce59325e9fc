//! What a receiver owes its peer, whatever its ACK policy withholds: checked on the wire, with a
//! peer that does anything that is legal, at any time.

use crate::config;
use ackline::Registry;
use ackline::core::policy::NewAckPolicy;
use ackline::core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, Transport, TxChecksumMode, emit_tcp, parse,
};
use ackline::core::{
    AcceptConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket, SeqNum,
    TxBudget,
};
use proptest::prelude::*;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

const MSS: u32 = 1_000;
const BUFFER: u32 = 40_000;
/// Below this a window is as good as closed (RFC 9293, section 3.8.6.2).
const QUOTA: u32 = MSS;
const PEER_ISS: SeqNum = SeqNum(u32::MAX - 50_000);

/// What the peer, the application and the clock do.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// The next data in order: full segments (more than one: a super-packet), and how much shorter
    /// the last is.
    Data(u32, u32),
    /// A segment past a hole of so many segments.
    Ahead(u32),
    /// So many bytes again.
    Again(u32),
    /// One byte past a window that is closed, or the byte before RCV.NXT.
    Probe,
    Urgent,
    Read(u32),
    Write(u32),
    Pass(u64),
    Fin,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1_u32..4, 0_u32..999).prop_map(|(segments, less)| Op::Data(segments, less)),
        4 => Just(Op::Data(1, 0)),
        2 => (1_u32..4).prop_map(Op::Ahead),
        1 => (1_u32..5_000).prop_map(Op::Again),
        1 => Just(Op::Probe),
        1 => Just(Op::Urgent),
        4 => (1_u32..20_000).prop_map(Op::Read),
        1 => (1_u32..3_000).prop_map(Op::Write),
        6 => (0_u64..60_000).prop_map(Op::Pass),
        2 => (0_u64..900_000).prop_map(Op::Pass),
    ]
}

/// A segment that the host sent.
#[derive(Clone, Copy, Debug)]
struct Segment {
    ack: SeqNum,
    window: u32,
    len: u32,
}

/// The host under test, and what its peer knows.
struct Peer {
    now: Instant,
    host: Endpoint,
    conn: ConnId,
    hold_limit: Duration,
    /// The end of what the host has sent, and of what the peer has acknowledged of it.
    host_nxt: SeqNum,
    host_una: SeqNum,
    /// What the host has received in order, and its readable bytes.
    rcv_nxt: SeqNum,
    unread: u32,
    /// Data that waits past a hole.
    ahead: Vec<(SeqNum, SeqNum)>,
    /// The largest segment that the host has seen.
    largest: u32,
    /// The highest acknowledgment number and the right edge that it showed.
    acked: SeqNum,
    edge: SeqNum,
    /// When the oldest byte in order arrived that it did not acknowledge.
    since: Option<Instant>,
    fin: bool,
    waived: u64,
}

const ADDRESSES: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 4_000), ([10, 0, 0, 2], 80)];

impl Peer {
    fn new(policy: Arc<NewAckPolicy>, hold_limit: Duration) -> Self {
        let mut endpoint = EndpointConfig::default();
        endpoint.addresses.push(ADDRESSES[1].0.into());
        let mut config = config("reno", "delayed", "conventional");
        config.policies.ack = policy;
        config.ack_hold_limit = hold_limit;
        config.recv_buffer = BUFFER;
        config.initial_recv_window = None;
        config.mss = Some(MSS as u16);
        config.timestamps = false;
        let fifo = Registry::default().sched("fifo").unwrap()();
        let mut host = Endpoint::new(endpoint, fifo, [7; 32]);
        let now = Instant::from_secs(1);
        let address = SocketAddr::from(ADDRESSES[1]);
        let accept = AcceptConfig::new(Arc::new(config));
        host.listen(now, ListenOn::Address(address), accept).unwrap();
        let mut peer = Self {
            now,
            host,
            conn: unknown(),
            hold_limit,
            host_nxt: SeqNum(0),
            host_una: SeqNum(0),
            rcv_nxt: PEER_ISS + 1,
            unread: 0,
            ahead: vec![],
            largest: 536,
            acked: PEER_ISS + 1,
            edge: PEER_ISS + 1,
            since: None,
            fin: false,
            waived: 0,
        };
        let mut options = TcpOptions::NONE;
        options.mss = Some(1_460);
        options.sack_permitted = true;
        peer.segment(PEER_ISS, TcpFlags::SYN, options, 0, 1);
        let [answer] = peer.transmit()[..] else { panic!("no SYN-ACK") };
        assert_eq!(answer.ack, PEER_ISS + 1);
        peer.now += Duration::from_millis(50);
        peer.segment(PEER_ISS + 1, TcpFlags::ACK, TcpOptions::NONE, 0, 1);
        while let Some(event) = peer.host.poll_event() {
            if let Event::Accepted { conn, .. } = event {
                peer.conn = conn;
            }
        }
        assert!(peer.host.conn(peer.conn).is_some(), "the connection is accepted");
        peer
    }

    /// A segment, or a super-packet, goes to the host.
    fn segment(&mut self, seq: SeqNum, flags: TcpFlags, options: TcpOptions, len: u32, segments: u32) {
        let mut header = TcpHeader::new(ADDRESSES[0].into(), ADDRESSES[1].into());
        (header.seq, header.flags, header.options) = (seq, flags, options);
        (header.ack, header.window) = (self.host_nxt, 60_000);
        let data = vec![0x5a; len as usize];
        let mut buf = HeaderBuf::new();
        emit_tcp(&header, [&data, &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        let packet = [buf.as_slice(), &data].concat();
        let size = NonZeroU16::new(MSS as u16).filter(|_| segments > 1);
        self.host.ingest(self.now, RxPacket::new(&packet).with_segment_size(size));
    }

    fn data(&mut self, seq: SeqNum, flags: TcpFlags, len: u32, segments: u32) {
        self.segment(seq, TcpFlags::ACK.union(flags), TcpOptions::NONE, len, segments);
    }

    /// Takes what the host sends at this instant.
    fn transmit(&mut self) -> Vec<Segment> {
        let mut sent = vec![];
        let (acked, edge, host_nxt) = (&mut self.acked, &mut self.edge, &mut self.host_nxt);
        let result = self.host.transmit(self.now, TxBudget::UNLIMITED, |packet| {
            let bytes = [packet.header, packet.payload[0], packet.payload[1]].concat();
            let received = RxPacket::new(&bytes).with_segment_size(packet.segment_size);
            let Transport::Tcp(segment) = parse(&received).expect("a packet in order").transport else {
                panic!("no TCP")
            };
            assert!(!segment.flags.contains(TcpFlags::RST), "the host gave up");
            let window = u32::from(segment.window);
            *acked = acked.max(segment.ack);
            *edge = edge.max(segment.ack + window);
            let end = segment.seq + segment.seg_len();
            *host_nxt = if segment.flags.contains(TcpFlags::SYN) { end } else { host_nxt.max(end) };
            sent.push(Segment { ack: segment.ack, window, len: segment.payload.len() as u32 });
            Ok::<_, Infallible>(())
        });
        result.unwrap_or_else(|never| match never {});
        if self.acked.ge(self.rcv_nxt) {
            self.since = None;
        }
        sent
    }

    fn waived(&mut self) -> bool {
        let before = self.waived;
        self.waived = self.host.conn(self.conn).expect("it lives").info().acks_waived;
        self.waived > before
    }

    fn left(&self) -> u32 {
        self.edge.saturating_distance_from(self.rcv_nxt)
    }

    /// `[start, end)` arrives in order: it and what waits behind it is received.
    fn receive(&mut self, end: SeqNum) {
        let before = self.rcv_nxt;
        self.rcv_nxt = self.rcv_nxt.max(end);
        loop {
            let next = self.rcv_nxt;
            let Some(i) = self.ahead.iter().position(|&(from, _)| from.le(next)) else { break };
            self.rcv_nxt = next.max(self.ahead.swap_remove(i).1);
        }
        self.unread += self.rcv_nxt.distance_from(before);
        self.since = self.since.or(Some(self.now));
    }

    /// Does `op` and checks what it obliges the host to.
    fn step(&mut self, op: Op) {
        let (at_once, soft) = match op {
            Op::Data(segments, less) => {
                let wanted = (segments * MSS - less.min(MSS - 1)).min(self.left());
                if wanted == 0 || self.fin {
                    return;
                }
                let fills = !self.ahead.is_empty();
                // Data that reaches into what is held already arrives in single segments.
                let len = if fills { wanted.min(MSS) } else { wanted };
                let (start, segments) = (self.rcv_nxt, len.div_ceil(MSS));
                self.data(start, TcpFlags::NONE, len, segments);
                self.largest = self.largest.max(len.min(MSS));
                self.receive(start + len);
                let second = self.rcv_nxt.distance_from(self.acked) >= 2 * self.largest;
                (self.left() < QUOTA, fills || second)
            }
            Op::Urgent => {
                if self.left() < 10 || self.fin {
                    return;
                }
                let (start, fills) = (self.rcv_nxt, !self.ahead.is_empty());
                self.data(start, TcpFlags::URG.union(TcpFlags::PSH), 10, 1);
                self.receive(start + 10);
                (self.left() < QUOTA, fills)
            }
            Op::Ahead(hole) => {
                let start = self.rcv_nxt + hole * MSS;
                if self.left() < (hole + 1) * MSS || self.fin {
                    return;
                }
                self.data(start, TcpFlags::NONE, MSS, 1);
                self.largest = self.largest.max(MSS);
                self.ahead.push((start, start + MSS));
                (false, true)
            }
            Op::Again(len) => {
                let old = self.rcv_nxt.distance_from(PEER_ISS + 1).min(MSS);
                // One byte before RCV.NXT is a keep-alive probe.
                let len = len.min(old);
                if len < 2 || self.fin {
                    return;
                }
                self.data(self.rcv_nxt - len, TcpFlags::NONE, len, 1);
                (false, true)
            }
            Op::Probe => {
                if self.fin {
                    return;
                }
                let seq = if self.left() == 0 { self.rcv_nxt } else { self.rcv_nxt - 1 };
                self.data(seq, TcpFlags::NONE, 1, 1);
                (true, false)
            }
            Op::Read(len) => {
                let (before, read) = (self.left(), len.min(self.unread));
                self.host.conn(self.conn).expect("it lives").consume(self.now, read as usize);
                self.unread -= read;
                let gain = (BUFFER - self.unread).saturating_sub(before);
                let reopens = read > 0 && before < QUOTA && gain >= QUOTA && !self.fin;
                (reopens, false)
            }
            Op::Write(len) => {
                let data = vec![1; len as usize];
                let taken =
                    self.host.conn(self.conn).expect("it lives").write(self.now, &data).expect("it is open");
                assert!(taken > 0);
                (false, false)
            }
            Op::Pass(micros) => {
                self.pass(Duration::from_micros(micros));
                return;
            }
            Op::Fin => {
                let start = self.rcv_nxt;
                if !self.ahead.is_empty() || self.left() == 0 {
                    return;
                }
                self.data(start, TcpFlags::FIN, 0, 1);
                self.fin = true;
                self.rcv_nxt += 1;
                (true, false)
            }
        };
        self.check(op, at_once, soft);
        // The peer acknowledges what the host sends, so that it does not wait for anything.
        if self.host_nxt != self.host_una {
            self.host_una = self.host_nxt;
            let seq = self.rcv_nxt;
            self.segment(seq, TcpFlags::ACK, TcpOptions::NONE, 0, 1);
        }
    }

    /// `at_once`: an ACK is due that no policy may hold; `soft`: one that it may hold only if that
    /// is counted.
    fn check(&mut self, op: Op, at_once: bool, soft: bool) {
        let before = self.acked;
        let sent = self.transmit();
        while self.host.poll_event().is_some() {}
        let waived = self.waived();
        let answered = sent.iter().any(|sent| sent.ack == self.rcv_nxt);
        assert!(answered || !at_once, "{op:?} was not answered at once: {sent:?}");
        assert!(answered || waived || !soft, "{op:?} was neither answered nor counted as waived: {sent:?}");
        for sent in &sent {
            assert!(
                sent.ack.ge(before) && sent.ack.le(self.rcv_nxt),
                "{op:?}: {sent:?} acknowledges nonsense"
            );
            assert!(sent.len == 0 || sent.ack == self.rcv_nxt, "{op:?}: own data with an old ACK: {sent:?}");
            assert!(sent.window <= BUFFER - self.unread + MSS, "{op:?}: {sent:?} promises too much");
        }
        self.check_hold(op);
    }

    /// No byte waits as long as the hold limit.
    fn check_hold(&self, op: Op) {
        if let Some(since) = self.since {
            let age = self.now.since(since);
            assert!(age < self.hold_limit, "{op:?}: data waits for {age:?}");
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(wakeup) = self.host.poll_timeout().filter(|wakeup| wakeup.at <= end) {
            self.now = self.now.max(wakeup.at);
            self.host.handle_timeout(self.now);
            self.check(Op::Pass(0), false, false);
        }
        self.now = end;
        self.check_hold(Op::Pass(time.as_micros()));
    }
}

/// The handle of no connection: that of another host.
fn unknown() -> ConnId {
    let mut config = EndpointConfig::default();
    config.addresses.push([10, 0, 0, 9].into());
    let fifo = Registry::default().sched("fifo").unwrap()();
    let to = SocketAddr::from(ADDRESSES[0]);
    Endpoint::new(config, fifo, [1; 32]).connect(Instant::ZERO, to.into(), Arc::default()).unwrap()
}

fn run(policy: &Arc<NewAckPolicy>, hold_limit: Duration, ops: &[Op]) {
    let mut peer = Peer::new(policy.clone(), hold_limit);
    for op in ops {
        peer.step(*op);
    }
    peer.step(Op::Read(BUFFER));
    // What is missing comes, and the end.
    while !peer.ahead.is_empty() {
        peer.step(Op::Data(1, 0));
        peer.step(Op::Read(BUFFER));
    }
    peer.step(Op::Fin);
    assert!(peer.fin && peer.acked == peer.rcv_nxt, "the FIN is acknowledged");
}

/// Policies that withhold as much as they can.
const WITHHOLDING: [&str; 8] = [
    "a3:when=always",
    "a3:rtt=333ms,cap=off,delay=500ms,bound=500ms",
    "a3:profile=paper",
    "a3:profile=paper,sampling=paper,rtt=333ms",
    "csa3:when=always,quick=0",
    "csa3:profile=paper,sampling=paper,pause_from=ack",
    "sunos-delayed:profile=paper",
    "delayed:segments=1000,delay=499ms",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_receiver_keeps_its_duties_whatever_its_policy_withholds(
        ops in prop::collection::vec(op(), 1..250),
        hold in prop::sample::select(vec![1_u64, 40, 180, 500]),
    ) {
        let hold_limit = Duration::from_millis(hold);
        for spec in WITHHOLDING {
            run(&Registry::default().ack(spec).unwrap(), hold_limit, &ops);
        }
        for plan in crate::hostile::plans() {
            run(&crate::hostile::stubborn(plan), hold_limit, &ops);
        }
    }
}
