//! Receivers that want more than their share: S. Savage, N. Cardwell, D. Wetherall and T. Anderson, "TCP Congestion Control with a
//! Misbehaving Receiver" (CCR 29(5), 1999), against every congestion control.
//!
//! One endpoint sends without end to a receiver made by hand, at the end of a path without a limit of rate.

use ackline::Registry;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, TcpSegment, Transport, TxChecksumMode, emit_tcp, parse,
};
use ackline::core::{
    ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Instant, RxPacket, SeqNum, Target, TxBudget,
};
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
    /// Says again so many times, after the honest ACK, that it has nothing newer (section 3.2, "DupACK spoofing").
    Repeats(u32),
    /// Acknowledges what has left, whether it came or not, so that losses do not show (section 3.3, "optimistic ACKing").
    Optimist,
    /// Acknowledges more than has left.
    Prophet,
}

/// The sender, and what is on its way.
struct Path {
    now: Instant,
    sender: Endpoint,
    conn: ConnId,
    receiver: Receiver,
    /// From a segment to its ACK.
    rtt: Duration,
    here: SocketAddr,
    there: SocketAddr,
    /// ACK numbers on their way to the sender, in order of arrival.
    acks: BTreeMap<(Instant, u64), SeqNum>,
    said: u64,
    /// The next number that the receiver expects.
    rcv_nxt: SeqNum,
    /// Segments out of order.
    held: BTreeMap<u32, u32>,
    irs: SeqNum,
    /// Octets that the sender has sent for the first time.
    sent: u64,
    /// The segment that begins behind so many octets is lost, once.
    loses: Option<u64>,
    lost: bool,
}

impl Path {
    fn new(cc: &str, receiver: Receiver, rtt: Duration, loses: Option<u64>) -> Self {
        let (here, there): (SocketAddr, SocketAddr) =
            ("10.0.0.1:0".parse().expect("an address"), "10.0.0.2:80".parse().expect("an address"));
        let mut host = EndpointConfig::default();
        host.addresses = vec![here.ip()];
        let registry = Registry::default();
        let scheduler = registry.sched("fifo").expect("a scheduler");
        let mut sender = Endpoint::new(host, scheduler(), [7; 32]);
        let mut config = ConnConfig::default();
        config.policies = registry.named(cc, "delayed", "conventional").expect("policies");
        // Duplicate ACKs count, and nothing else tells which segments have arrived.
        (config.sack, config.timestamps) = (false, false);
        config.send_buffer = 4 << 20;
        let now = Instant::from_secs(1);
        let conn = sender.connect(now, Target::new(there), Arc::new(config)).expect("a port");
        let mut path = Self {
            now,
            sender,
            conn,
            receiver,
            rtt,
            here,
            there,
            acks: BTreeMap::new(),
            said: 0,
            rcv_nxt: SeqNum(0),
            held: BTreeMap::new(),
            irs: SeqNum(0),
            sent: 0,
            loses,
            lost: false,
        };
        path.transmit();
        path
    }

    /// Runs for `time`, and returns the octets sent so far, each counted once.
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
                let number = entry.remove();
                self.arrive(TcpFlags::ACK, number);
            }
            self.sender.handle_timeout(self.now);
            self.transmit();
        }
        self.now = end;
        self.sent
    }

    fn arrive(&mut self, flags: TcpFlags, number: SeqNum) {
        let mut header = TcpHeader::new(self.there, self.here);
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
            if let Some(mut conn) = self.sender.conn(self.conn) {
                while conn.write(self.now, &[0x5a; 1 << 16]).is_ok_and(|taken| taken > 0) {}
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
                self.here.set_port(segment.src_port);
                self.receive(&segment);
            }
        }
    }

    fn receive(&mut self, segment: &TcpSegment<'_>) {
        if segment.flags.contains(TcpFlags::SYN) {
            self.irs = segment.seq;
            self.rcv_nxt = segment.seq + 1;
            self.arrive(TcpFlags::SYN.union(TcpFlags::ACK), self.rcv_nxt);
            return;
        }
        let len = segment.payload.len() as u32;
        if len == 0 {
            return;
        }
        let place = u64::from(segment.seq.distance_from(self.irs + 1));
        self.sent = self.sent.max(place + u64::from(len));
        if !self.lost && self.loses.is_some_and(|loses| place >= loses) {
            self.lost = true;
            if self.receiver == Receiver::Optimist {
                self.say(self.irs + 1 + self.sent as u32);
            }
            return;
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
            Receiver::Divides(pieces) if advance >= pieces => {
                for piece in 1..=pieces {
                    self.say(before + (u64::from(advance) * u64::from(piece) / u64::from(pieces)) as u32);
                }
            }
            Receiver::Repeats(times) => {
                for _ in 0..=times {
                    self.say(self.rcv_nxt);
                }
            }
            // Whatever has left is said to have arrived; nothing beyond it can be.
            Receiver::Optimist => self.say(self.irs + 1 + self.sent as u32),
            Receiver::Prophet => {
                self.say(self.irs + 1 + self.sent as u32 + 1_000_000);
                self.say(self.rcv_nxt);
            }
            Receiver::Honest | Receiver::Divides(_) => self.say(self.rcv_nxt),
        }
    }

    fn say(&mut self, number: SeqNum) {
        self.said += 1;
        self.acks.insert((self.now + self.rtt, self.said), number);
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

/// Windows grow with what is acknowledged (RFC 3465; RFC 5681, section 3.1), not with the number of ACKs.
#[test]
fn divided_acks_gain_nothing() {
    for cc in controls() {
        for (loses, count) in CASES {
            let (fair, acks) = runs(cc, Receiver::Honest, loses, count);
            let (greedy, more) = runs(cc, Receiver::Divides(50), loses, count);
            assert!(more > 40 * acks, "{more} ACKs, {acks} otherwise");
            gains_nothing(cc, fair, greedy, "with divided ACKs");
        }
    }
}

/// A duplicate ACK stands for a segment that has left the network, and there are no more of those than were sent (RFC 5681, section 3.2,
/// step 4; RFC 6937, section 2: at most what was outstanding).
#[test]
fn repeated_acks_gain_nothing() {
    for cc in controls() {
        for (loses, count) in CASES {
            let (fair, _) = runs(cc, Receiver::Honest, loses, count);
            for times in [1, 2, 3, 10, 100] {
                let (greedy, _) = runs(cc, Receiver::Repeats(times), loses, count);
                gains_nothing(cc, fair, greedy, "with repeated ACKs");
            }
        }
    }
}

/// Whoever acknowledges what has not come seems to be closer than it is: it gets what a closer receiver gets, without what it has missed, and
/// nothing for numbers that were never sent.
#[test]
fn an_early_ack_gains_what_a_closer_receiver_has() {
    for cc in controls() {
        let closer = RTT.div(4);
        let fair = Path::new(cc, Receiver::Honest, closer, None).run(closer.saturating_mul(6));
        let mut path = Path::new(cc, Receiver::Optimist, closer, Some(100_000));
        let greedy = path.run(closer.saturating_mul(6));
        gains_nothing(cc, fair, greedy, "by an optimist");
        let place = path.rcv_nxt.distance_from(path.irs + 1);
        assert_eq!(u64::from(place), 100_740.min(greedy), "the hole is never filled");
    }
    // ACKs of what was never sent.
    for cc in controls() {
        let (fair, _) = runs(cc, Receiver::Honest, None, 6);
        let (greedy, _) = runs(cc, Receiver::Prophet, None, 6);
        gains_nothing(cc, fair, greedy, "by a prophet");
    }
}
