//! Receivers that want more than their share: S. Savage, N. Cardwell, D. Wetherall and T. Anderson,
//! "TCP Congestion Control with a Misbehaving Receiver" (CCR 29(5), 1999), against every congestion
//! control.
//!
//! One endpoint sends without end to a receiver made by hand, at the end of a path without a limit
//! of rate.

use ackline::Registry;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, TcpSegment, Transport, TxChecksumMode, emit_tcp, parse,
};
use ackline::core::{
    ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Instant, RxPacket, SeqNum, Target, TxBudget,
};
use ackline::registry::{DEFAULT_CC, DEFAULT_SCHED};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

const RTT: Duration = Duration::from_millis(40);
const MSS: u32 = 1_460;
/// What the receiver says its window is: with the scale, 16 MB.
const WINDOW: u16 = u16::MAX;
const SCALE: u8 = 8;

/// What the receiver does with each data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// Acknowledges it.
    Honest,
    /// Acknowledges it by so many ACKs, each for another piece (section 3.1, "ACK division").
    Divides(u32),
    /// Says again so many times, after the honest ACK, that it has nothing newer (section 3.2,
    /// "DupACK spoofing").
    Repeats(u32),
    /// Acknowledges what has left, whether it came or not, so that losses do not show (section 3.3,
    /// "optimistic ACKing").
    Optimist,
    /// Acknowledges more than has left.
    Prophet,
}

/// The other end of a connection.
struct Peer {
    conn: ConnId,
    receiver: Receiver,
    /// From a segment to its ACK.
    rtt: Duration,
    here: SocketAddr,
    there: SocketAddr,
    /// The next number that the receiver expects.
    rcv_nxt: SeqNum,
    /// Segments out of order.
    held: BTreeMap<u32, u32>,
    irs: SeqNum,
    /// Octets that the sender has sent for the first time.
    sent: u64,
    /// The segment that begins behind so many octets is lost, once.
    loses: Option<u64>,
    /// So many octets later, the next one is.
    loses_each: Option<u64>,
}

/// The sender, and what is on its way.
struct Path {
    now: Instant,
    sender: Endpoint,
    config: Arc<ConnConfig>,
    peers: Vec<Peer>,
    /// ACK numbers on their way to the sender, and whose they are, in order of arrival.
    acks: BTreeMap<(Instant, u64), (usize, SeqNum)>,
    said: u64,
}

impl Path {
    fn new(cc: &str, receiver: Receiver, rtt: Duration, loses: Option<u64>) -> Self {
        let mut path = Self::scheduled(cc, "fifo");
        path.connect(receiver, rtt, loses);
        path
    }

    /// Without connections.
    fn scheduled(cc: &str, sched: &str) -> Self {
        let mut host = EndpointConfig::default();
        host.addresses = vec!["10.0.0.1".parse().expect("an address")];
        let registry = Registry::default();
        let scheduler = registry.sched(sched).expect("a scheduler");
        let mut config = ConnConfig::default();
        config.policies = registry.named(cc, "delayed", "conventional").expect("policies");
        // Duplicate ACKs count, and nothing else tells which segments have arrived.
        (config.sack, config.timestamps) = (false, false);
        config.send_buffer = 4 << 20;
        Self {
            now: Instant::from_secs(1),
            sender: Endpoint::new(host, scheduler(), [7; 32]),
            config: Arc::new(config),
            peers: vec![],
            acks: BTreeMap::new(),
            said: 0,
        }
    }

    fn connect(&mut self, receiver: Receiver, rtt: Duration, loses: Option<u64>) -> &mut Peer {
        let (here, there) = ("10.0.0.1:0", format!("10.0.0.2:{}", 80 + self.peers.len()));
        let (here, there): (SocketAddr, SocketAddr) =
            (here.parse().expect("an address"), there.parse().expect("an address"));
        let conn = self.sender.connect(self.now, Target::new(there), self.config.clone()).expect("a port");
        let (rcv_nxt, irs) = (SeqNum(0), SeqNum(0));
        let held = BTreeMap::new();
        let peer =
            Peer { conn, receiver, rtt, here, there, rcv_nxt, held, irs, sent: 0, loses, loses_each: None };
        self.peers.push(peer);
        self.transmit();
        self.peers.last_mut().expect("it was pushed")
    }

    /// Runs for `time`, and returns the octets sent so far on the first connection, each counted
    /// once.
    fn run(&mut self, time: Duration) -> u64 {
        let end = self.now + time;
        loop {
            let ack = self.acks.keys().next().map(|&(at, _)| at);
            let timer = self.sender.poll_timeout().map(|wakeup| wakeup.at);
            let Some(next) = ack.into_iter().chain(timer).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.acks.first_entry()
                && entry.key().0 <= self.now
            {
                let (peer, number) = entry.remove();
                self.arrive(peer, TcpFlags::ACK, number);
            }
            self.sender.handle_timeout(self.now);
            self.transmit();
        }
        self.now = end;
        self.peers[0].sent
    }

    fn arrive(&mut self, peer: usize, flags: TcpFlags, number: SeqNum) {
        let Peer { here, there, .. } = self.peers[peer];
        let mut header = TcpHeader::new(there, here);
        (header.seq, header.ack, header.flags, header.window) = (SeqNum(1), number, flags, WINDOW);
        if flags.contains(TcpFlags::SYN) {
            header.seq = SeqNum(0);
            header.options =
                TcpOptions { mss: Some(MSS as u16), window_scale: Some(SCALE), ..TcpOptions::NONE };
        }
        let mut buf = HeaderBuf::new();
        emit_tcp(&header, [&[], &[]], TxChecksumMode::Complete, &mut buf).expect("a packet");
        self.sender.ingest(self.now, RxPacket::new(buf.as_slice()));
    }

    fn transmit(&mut self) {
        let mut packets: Vec<Vec<u8>> = vec![];
        loop {
            for peer in &self.peers {
                if let Some(mut conn) = self.sender.conn(peer.conn) {
                    while conn.write(self.now, &[0x5a; 1 << 16]).is_ok_and(|taken| taken > 0) {}
                }
            }
            self.sender
                .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                    packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
                    Ok::<(), ()>(())
                })
                .expect("taken");
            if packets.is_empty() {
                return;
            }
            for bytes in std::mem::take(&mut packets) {
                let datagram = parse(&RxPacket::new(&bytes)).expect("a packet");
                let Transport::Tcp(segment) = datagram.transport else { continue };
                let peer = self.peers.iter().position(|peer| peer.there.port() == segment.dst_port);
                self.receive(peer.expect("one of the peers"), &segment);
            }
        }
    }

    fn receive(&mut self, place: usize, segment: &TcpSegment<'_>) {
        let peer = &mut self.peers[place];
        peer.here.set_port(segment.src_port);
        if segment.flags.contains(TcpFlags::SYN) {
            peer.irs = segment.seq;
            peer.rcv_nxt = segment.seq + 1;
            let number = peer.rcv_nxt;
            self.arrive(place, TcpFlags::SYN.union(TcpFlags::ACK), number);
            return;
        }
        for number in peer.answers(segment) {
            self.said += 1;
            self.acks.insert((self.now + self.peers[place].rtt, self.said), (place, number));
        }
    }
}

impl Peer {
    /// The numbers of the ACKs with which it answers.
    fn answers(&mut self, segment: &TcpSegment<'_>) -> Vec<SeqNum> {
        let len = segment.payload.len() as u32;
        if len == 0 {
            return vec![];
        }
        let place = u64::from(segment.seq.distance_from(self.irs + 1));
        self.sent = self.sent.max(place + u64::from(len));
        // Whatever has left is said to have arrived; nothing beyond it can be.
        let optimistic = self.irs + 1 + self.sent as u32;
        if let Some(loses) = self.loses.take_if(|loses| place >= *loses) {
            self.loses = self.loses_each.map(|octets| loses + octets);
            return if self.receiver == Receiver::Optimist { vec![optimistic] } else { vec![] };
        }
        let before = self.rcv_nxt;
        self.held.insert(place as u32, len);
        while let Some(entry) = self.held.first_entry()
            && (self.irs + 1 + *entry.key()).le(self.rcv_nxt)
        {
            let end = self.irs + 1 + *entry.key() + *entry.get();
            entry.remove();
            if end.gt(self.rcv_nxt) {
                self.rcv_nxt = end;
            }
        }
        let advance = self.rcv_nxt.distance_from(before);
        match self.receiver {
            Receiver::Divides(pieces) if advance >= pieces => (1..=pieces)
                .map(|piece| before + (u64::from(advance) * u64::from(piece) / u64::from(pieces)) as u32)
                .collect(),
            Receiver::Repeats(times) => vec![self.rcv_nxt; times as usize + 1],
            Receiver::Optimist => vec![optimistic],
            Receiver::Prophet => vec![optimistic + 1_000_000, self.rcv_nxt],
            Receiver::Honest | Receiver::Divides(_) => vec![self.rcv_nxt],
        }
    }
}

fn controls() -> Vec<&'static str> {
    Registry::default().list(PolicyKind::Cc).iter().map(|policy| policy.name).collect()
}

/// Octets sent in so many round trips, and how many ACKs came meanwhile.
fn runs(cc: &str, receiver: Receiver, loses: Option<u64>, rounds: u64) -> (u64, u64) {
    let mut path = Path::new(cc, receiver, RTT, loses);
    let sent = path.run(RTT.saturating_mul(rounds));
    (sent, path.said)
}

/// In slow start, and after a loss.
const CASES: [(Option<u64>, u64); 2] = [(None, 6), (Some(100_000), 25)];

/// A twentieth is left to timing; the gains in the paper are severalfold.
fn gains_nothing(cc: &str, fair: u64, greedy: u64, how: &str) {
    assert!(greedy * 20 <= fair * 21, "{cc}: {greedy} octets {how}, {fair} otherwise");
}

/// Windows grow with what is acknowledged (RFC 3465; RFC 5681, section 3.1), not with the number of
/// ACKs.
#[test]
fn divided_acks_gain_nothing() {
    for cc in controls() {
        for (loses, count) in CASES {
            let (fair, acks) = runs(cc, Receiver::Honest, loses, count);
            let (greedy, more) = runs(cc, Receiver::Divides(50), loses, count);
            // Per octet: a control that takes many ACKs for a slow path sends less.
            assert!(
                more * fair > 40 * acks * greedy,
                "{cc}: {more} ACKs of {greedy}, {acks} of {fair} otherwise"
            );
            gains_nothing(cc, fair, greedy, "with divided ACKs");
        }
    }
}

/// A duplicate ACK stands for a segment that has left the network, and there are no more of those
/// than were sent (RFC 5681, section 3.2, step 4; RFC 6937, section 2: at most what was
/// outstanding).
#[test]
fn repeated_acks_gain_nothing() {
    for cc in controls() {
        for (loses, count) in CASES {
            let (fair, _) = runs(cc, Receiver::Honest, loses, count);
            for times in [1, 2, 3, 10, 100] {
                let (greedy, _) = runs(cc, Receiver::Repeats(times), loses, count);
                // Westwood's window after a loss is its estimate of the bandwidth, which lags in
                // slow start: losses that are pretended before let it catch up. That is a part of
                // what the loss has cost.
                if cc == "westwood" && loses.is_some() {
                    let (without_loss, _) = runs(cc, Receiver::Honest, None, count);
                    gains_nothing(
                        cc,
                        without_loss / 2,
                        greedy,
                        "with repeated ACKs, half of what comes without a loss",
                    );
                    continue;
                }
                gains_nothing(cc, fair, greedy, "with repeated ACKs");
            }
        }
    }
}

/// Whoever acknowledges what has not come seems to be closer than it is: it gets what a closer
/// receiver gets, without what it has missed, and nothing for numbers that were never sent.
#[test]
fn an_early_ack_gains_what_a_closer_receiver_has() {
    for cc in controls() {
        let closer = RTT.div(4);
        let fair = Path::new(cc, Receiver::Honest, closer, None).run(closer.saturating_mul(6));
        let mut path = Path::new(cc, Receiver::Optimist, closer, Some(100_000));
        let greedy = path.run(closer.saturating_mul(6));
        gains_nothing(cc, fair, greedy, "by an optimist");
        let Peer { rcv_nxt, irs, .. } = path.peers[0];
        let place = rcv_nxt.distance_from(irs + 1);
        assert_eq!(u64::from(place), 100_740.min(greedy), "the hole is never filled");
    }
    // ACKs of what was never sent.
    for cc in controls() {
        let (fair, _) = runs(cc, Receiver::Honest, None, 6);
        let (greedy, _) = runs(cc, Receiver::Prophet, None, 6);
        gains_nothing(cc, fair, greedy, "by a prophet");
    }
}

/// What the first of two connections sends behind a shaper of 10 Mbit/s once slow start is over, as
/// a share of what the shaper lets pass. The second one's receiver is `other`, and both paths lose a
/// segment in each megabyte.
fn share_beside(other: Receiver, cc: &str, sched: &str) -> f64 {
    const SECONDS: u64 = 15;
    let mut path = Path::scheduled(cc, &format!("{sched}:rate=10mbit"));
    for receiver in [Receiver::Honest, other] {
        path.connect(receiver, RTT, Some(1 << 20)).loses_each = Some(1 << 20);
    }
    let before = path.run(Duration::from_secs(5));
    let sent = path.run(Duration::from_secs(SECONDS)) - before;
    sent as f64 * 8.0 / (10e6 * SECONDS as f64)
}

/// The optimist's window has no end, because its losses do not show. In one queue for all it leaves
/// hardly any room.
#[test]
fn beside_an_optimist_others_keep_their_share_of_the_device() {
    for cc in controls() {
        let share = share_beside(Receiver::Optimist, cc, DEFAULT_SCHED);
        // Some leave a part of such a path unused, whoever is beside them.
        let honest = share_beside(Receiver::Honest, cc, DEFAULT_SCHED);
        assert!(share > 0.4_f64.min(0.9 * honest), "{cc}: {share}, {honest} beside an honest receiver");
    }
    let share = share_beside(Receiver::Optimist, DEFAULT_CC, "fifo");
    assert!(share < 0.2, "{share}");
}
