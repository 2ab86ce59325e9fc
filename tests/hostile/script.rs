//! One connection of an endpoint, its application and its device, and a hostile [`Peer`], for a
//! random number of steps. In each one of them does something: a lie of the peer or an honest
//! segment, an ICMP message of anybody, a call of the API, a jump in time, a refusal of the device.
//!
//! Then all are honest. The peer has what it has acknowledged, nothing that it has only SACKed, and
//! everything must arrive in both directions, or the application must have been told of an error
//! that something has justified. It may never be told that all was delivered while something was
//! not.
//!
//! A lie costs the liar: if it has acknowledged what it does not have, or ended its stream early,
//! that is lost.
//!
//! In a quarter of the scripts nobody becomes honest: the application leaves in the middle,
//! whatever waits for the device. In all of them nothing is left of the connection after two quiet
//! hours.

use super::peer::{MAX_SEEN, Peer, Say, octet_at};
use super::rng::Rng;
use ackline::Registry;
use ackline::core::config::{Ecn, KeepAlive, LossDetection, Nagle};
use ackline::core::error::ConnError;
use ackline::core::policy::Policies;
use ackline::core::policy::sched::Scope;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, RxChecksum, TcpFlags, TcpOptions, Timestamps, Transport,
    Unreachable, emit_icmp, parse,
};
use ackline::core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket,
    SeqNum, State, Target, TxBudget,
};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Most steps of a script.
pub(super) const STEPS: usize = 160;
/// In this time something must arrive once all are honest: some largest RTOs.
const LIMIT: Duration = Duration::from_secs(3_600);
/// After this time without a peer and an application, nothing is left.
const QUIET: Duration = Duration::from_secs(2 * 3_600);
/// How long an honest peer takes to answer.
const DELAY: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Everything arrived, in both directions.
    Delivered,
    /// The application was told of an error, or of no connection.
    Failed,
    /// The application left in the middle.
    Left,
}

struct World {
    rng: Rng,
    now: Instant,
    endpoint: Endpoint,
    conn: Option<ConnId>,
    config: Arc<ConnConfig>,
    peer: Peer,
    /// The application: octets written and read, its FIN, and what it was told.
    written: u64,
    read: u64,
    shut: bool,
    flushed: bool,
    closed: Option<Option<ConnError>>,
    /// Packets that the device takes before it is full.
    room: Option<usize>,
    /// The latest packets of each side, for ICMP to quote and the peer to repeat.
    sent: VecDeque<Vec<u8>>,
    heard: VecDeque<Vec<u8>>,
    /// An ICMP error other than Packet Too Big has arrived.
    blamed: bool,
    /// What the peer answers honestly.
    answers: usize,
    /// Packets that arrived, and timeouts.
    inputs: usize,
    /// Packets without data that left.
    controls: usize,
    /// The application was told that the connection is open.
    open: bool,
    largest_packet: usize,
    /// Connections that a SYN of the peer has made after the first was over.
    others: Vec<ConnId>,
}

/// Runs the script of `seed`, of which at most `steps` are hostile.
pub(super) fn run(seed: u64, steps: usize) -> Outcome {
    let mut world = World::new(seed);
    let all = world.rng.within(5..STEPS as u64) as usize;
    world.drain();
    for _ in 0..all.min(steps) {
        world.step();
        world.drain();
    }
    let outcome = if world.rng.one_in(4) { world.leave() } else { world.finish() };
    world.fall_quiet();
    outcome
}

fn host_and_peer(rng: &mut Rng) -> [IpAddr; 2] {
    if rng.one_in(4) {
        ["fd00::1".parse().expect("an address"), "fd00::2".parse().expect("an address")]
    } else {
        [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
    }
}

fn conn_config(rng: &mut Rng) -> ConnConfig {
    let mut config = ConnConfig::default();
    config.policies = chosen_policies(rng);
    config.sack = !rng.one_in(5);
    config.timestamps = !rng.one_in(3);
    config.window_scale = !rng.one_in(4);
    config.dsack = !rng.one_in(4);
    config.tlp = !rng.one_in(4);
    config.prr = !rng.one_in(4);
    config.undo = !rng.one_in(4);
    config.limited_transmit = !rng.one_in(4);
    config.restart_after_idle = !rng.one_in(4);
    if rng.one_in(4) {
        config.loss = LossDetection::DupAck;
    }
    config.nagle = rng.pick(&[Nagle::Off, Nagle::Minshall, Nagle::Rfc896]);
    config.send_buffer = rng.pick(&[3_000, 60_000, 200_000]);
    config.recv_buffer = rng.pick(&[3_000, 60_000, 200_000]);
    if rng.one_in(3) {
        config.initial_recv_window = None;
    }
    config.max_out_of_order_ranges = rng.pick(&[2, 512]);
    config.user_timeout = rng.pick(&[None, None, Some(Duration::from_secs(900))]);
    if rng.one_in(4) {
        config.keep_alive = Some(KeepAlive { idle: Duration::from_secs(60), ..KeepAlive::default() });
    }
    config.max_undecided_rtos = rng.pick(&[0, 3, 3]);
    config.ecn = rng.pick(&[Ecn::Off, Ecn::Classic, Ecn::Dctcp, Ecn::Accurate]);
    config.window_phases = rng.one_in(4);
    config
}

/// Policies from the tables of all names.
fn chosen_policies(rng: &mut Rng) -> Policies {
    let mut name = |tables: Vec<&'static str>| tables[rng.below(tables.len() as u64) as usize];
    let cc = name(Registry::default().list(PolicyKind::Cc).into_iter().map(|entry| entry.name).collect());
    let ack = name(Registry::default().list(PolicyKind::Ack).into_iter().map(|entry| entry.name).collect());
    let rto = name(Registry::default().list(PolicyKind::Rto).into_iter().map(|entry| entry.name).collect());
    Registry::default().named(cc, ack, rto).expect("names of the tables")
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let [here, there] = host_and_peer(&mut rng);
        let mut host = EndpointConfig::default();
        host.addresses = vec![here];
        host.mtu = match here {
            IpAddr::V4(_) => rng.pick(&[68, 296, 576, 1_500, 9_000]),
            IpAddr::V6(_) => rng.pick(&[1_280, 1_500, 9_000]),
        };
        host.max_super_packet = rng.pick(&[0, 0, 65_535]);
        let largest_packet = host.mtu.max(host.max_super_packet) as usize;
        let config = Arc::new(conn_config(&mut rng));
        let spec = rng.pick(&["fifo", "fifo", "fifo:rate=10mbit,burst=3ms", "ack-priority", "drr"]);
        let scheduler = Registry::default().sched(spec).expect("a name of the tables")();
        let mut key = [0; 32];
        key.iter_mut().for_each(|octet| *octet = rng.next() as u8);
        let mut endpoint = Endpoint::new(host, scheduler, key);
        let now = Instant::from_secs(1);
        let passive = rng.one_in(2);
        let (ours, theirs) = (SocketAddr::new(here, 80), SocketAddr::new(there, 4_000));
        let mut conn = None;
        if passive {
            let accept = AcceptConfig::new(config.clone());
            endpoint.listen(now, ListenOn::Port(80), accept).expect("a free port");
        } else {
            let mut to = Target::new(theirs);
            to.local_port = Some(80);
            conn = Some(endpoint.connect(now, to, config.clone()).expect("a free port"));
        }
        let mut syn = TcpOptions { mss: Some(rng.pick(&[1, 100, 536, 1_460, 8_960])), ..TcpOptions::NONE };
        syn.sack_permitted = !rng.one_in(5);
        syn.window_scale = (!rng.one_in(4)).then(|| rng.below(15) as u8);
        syn.timestamps = (!rng.one_in(3)).then_some(Timestamps { val: 1, ecr: 0 });
        let iss = SeqNum(rng.pick(&[0, u32::MAX - 5_000, 1 << 31]) + rng.size(10) as u32);
        let peer = Peer {
            here: theirs,
            there: ours,
            iss,
            syn,
            syn_ecn: rng.pick(&[
                TcpFlags::NONE,
                TcpFlags::ECE,
                TcpFlags::ECE.union(TcpFlags::CWR),
                TcpFlags::CWR,
                TcpFlags::ACE,
            ]),
            total: rng.size(17),
            lied_about_fin: false,
            sent_fin: false,
            sent: 0,
            irs: None,
            their_syn: TcpOptions::NONE,
            seen_nxt: SeqNum(0),
            seen: VecDeque::with_capacity(MAX_SEEN + 1),
            shown_ack: iss,
            shown_window: 0,
            shown_ts: None,
            claimed: SeqNum(0),
            rcv_nxt: SeqNum(0),
            held: vec![],
            keeps_out_of_order: false,
        };
        let mut world = Self {
            rng,
            now,
            endpoint,
            conn,
            config,
            peer,
            written: 0,
            read: 0,
            shut: false,
            flushed: false,
            closed: None,
            room: None,
            sent: VecDeque::new(),
            heard: VecDeque::new(),
            blamed: false,
            answers: 0,
            inputs: 0,
            controls: 0,
            open: false,
            largest_packet,
            others: vec![],
        };
        if passive {
            let syn = world.peer.syn(now);
            world.say(&syn);
        }
        world
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..45 => {
                if self.connected() {
                    let una = self.una();
                    let state = self.conn.and_then(|id| self.endpoint.state(id));
                    let synchronized = state.is_some_and(State::is_synchronized);
                    let say = self.peer.lie(&mut self.rng, self.now, una, synchronized);
                    self.say(&say);
                } else {
                    self.shake_hands();
                }
            }
            45..52 => {
                let place = self.peer.acknowledged().min(self.peer.total);
                let mut say = self.peer.honest(self.now, place, 500);
                say.ack = self.peer.claimed.max(self.una());
                if self.connected() {
                    self.say(&say);
                }
            }
            52..55 => {
                if let Some(packet) = self.pick_of(false) {
                    self.hear(&packet);
                }
            }
            55..60 => self.send_icmp(),
            60..70 => self.write(),
            70..77 => {
                let most = self.rng.size(16) as usize;
                self.read(most);
            }
            77 => {
                if self.rng.one_in(6) {
                    self.shut_down();
                }
            }
            78..80 => self.set_option(),
            80..84 => self.room = if self.rng.one_in(2) { Some(self.rng.below(4) as usize) } else { None },
            84..92 => self.next_timeout(),
            92..97 => {
                let micros = self.rng.size(22);
                self.pass(Duration::from_micros(micros));
            }
            97 => {
                let nanos = self.rng.size(10);
                self.pass(Duration::from_nanos(nanos));
            }
            98 => {
                let seconds = self.rng.size(10);
                self.pass(Duration::from_secs(seconds));
            }
            _ => {
                let seconds = self.rng.size(22);
                if self.rng.one_in(4) {
                    self.pass(Duration::from_secs(seconds));
                }
            }
        }
    }

    fn connected(&self) -> bool {
        self.peer.irs.is_some() && self.peer.shown_ack.gt(self.peer.iss)
    }

    fn shake_hands(&mut self) {
        let mut say = self.peer.syn(self.now);
        if self.peer.irs.is_some() && self.rng.one_in(4) {
            // Acknowledges something else, or meets the endpoint's SYN as a SYN of its own.
            if self.rng.one_in(2) {
                say.ack = SeqNum(self.rng.next() as u32);
            } else {
                say.flags = TcpFlags::SYN;
            }
        }
        self.say(&say);
    }

    /// What the endpoint holds for the first octet that the peer has not acknowledged.
    fn una(&mut self) -> SeqNum {
        let Some(irs) = self.peer.irs else { return SeqNum(0) };
        let (acked, flushed) = match self.conn.and_then(|id| self.endpoint.conn(id)) {
            Some(conn) => (conn.info().bytes_acked, conn.is_flushed()),
            None => (0, false),
        };
        irs + 1 + acked as u32 + u32::from(flushed)
    }

    fn say(&mut self, say: &Say) {
        let packet = self.peer.emit(say);
        if packet.is_empty() {
            return;
        }
        self.hear(&packet);
        if say.flags.contains(TcpFlags::RST) {
            // Repeated later, it could be where one that ends the connection must be.
            return;
        }
        self.heard.push_back(packet);
        if self.heard.len() > 32 {
            self.heard.pop_front();
        }
    }

    fn pick_of(&mut self, ours: bool) -> Option<Vec<u8>> {
        let packets = if ours { &self.sent } else { &self.heard };
        let i = self.rng.below(packets.len() as u64) as usize;
        packets.get(i).cloned()
    }

    fn send_icmp(&mut self) {
        let Some(mut quote) = self.pick_of(true) else { return };
        let ip = if quote[0] >> 4 == 4 { 20 } else { 40 };
        if self.rng.one_in(4) {
            // Another place in the stream.
            let una = self.una();
            let flight = self.peer.seen_nxt.saturating_distance_from(una);
            let seq = una + self.rng.below(u64::from(flight) + 1) as u32;
            quote[ip + 4..ip + 8].copy_from_slice(&seq.0.to_be_bytes());
        }
        let code = self.rng.below(16) as u8;
        let kind = match self.rng.below(6) {
            0 => IcmpErrorKind::TimeExceeded { code: code % 2 },
            1 => IcmpErrorKind::ParameterProblem { code: 0, pointer: 0 },
            2 => IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Other, code },
            _ => IcmpErrorKind::PacketTooBig { mtu: self.rng.size(16) as u32 },
        };
        // Code 4 says that the packet was too big.
        self.blamed |= !matches!(kind, IcmpErrorKind::PacketTooBig { .. });
        quote.truncate(ip + 8 + self.rng.below(60) as usize);
        let mut buf = HeaderBuf::new();
        let (src, dst) = (self.peer.here.ip(), self.peer.there.ip());
        let header = IcmpHeader { src, dst, ttl: 64, message: IcmpEmit::Error(kind) };
        if emit_icmp(&header, [&quote, &[]], &mut buf).is_ok() {
            let packet = [buf.as_slice(), &quote].concat();
            self.hear(&packet);
        }
    }

    fn hear(&mut self, packet: &[u8]) {
        self.inputs += 1;
        self.endpoint.ingest(self.now, RxPacket::new(packet));
    }

    fn expire(&mut self) {
        self.inputs += 1;
        self.endpoint.handle_timeout(self.now);
    }

    fn write(&mut self) {
        let size = self.rng.size(17);
        let data: Vec<u8> = (0..size).map(|i| octet_at(true, self.written + i)).collect();
        if let Some(mut conn) = self.conn.and_then(|id| self.endpoint.conn(id))
            && let Ok(written) = conn.write(self.now, &data)
        {
            self.written += written as u64;
        }
    }

    fn read(&mut self, most: usize) -> usize {
        let mut data = vec![0; most];
        let Some(mut conn) = self.conn.and_then(|id| self.endpoint.conn(id)) else { return 0 };
        let count = conn.read(self.now, &mut data).unwrap_or(0);
        for (i, octet) in data[..count].iter().enumerate() {
            let place = self.read + i as u64;
            assert_eq!(*octet, octet_at(false, place), "octet {place} is not what the peer sent");
        }
        self.read += count as u64;
        count
    }

    fn shut_down(&mut self) {
        if let Some(mut conn) = self.conn.and_then(|id| self.endpoint.conn(id)) {
            conn.shutdown(self.now);
            self.shut = true;
        }
    }

    fn set_option(&mut self) {
        let (now, on, kind) = (self.now, self.rng.one_in(2), self.rng.below(9));
        let bytes = if on { 3_000 } else { 300_000 };
        let policies = chosen_policies(&mut self.rng);
        if let Some(mut conn) = self.conn.and_then(|id| self.endpoint.conn(id)) {
            match kind {
                0 => conn.set_nodelay(now, on),
                1 => conn.set_cork(now, on),
                2 => conn.set_congestion_control(now, &*policies.cc),
                3 => conn.set_ack_policy(now, &*policies.ack),
                4 => conn.set_rto_response(now, &*policies.rto),
                5 => conn.set_send_buffer(now, bytes),
                6 => conn.set_recv_buffer(now, bytes),
                7 => conn.set_quick_acks(now, on),
                _ => conn.set_keep_alive(now, on.then(KeepAlive::default)),
            }
            // What is checked is the most that was allowed at any time.
            let allowed = Arc::make_mut(&mut self.config);
            match kind {
                5 => allowed.send_buffer = allowed.send_buffer.max(bytes),
                6 => allowed.recv_buffer = allowed.recv_buffer.max(bytes),
                8 if on => allowed.keep_alive = Some(KeepAlive::default()),
                _ => {}
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn next_timeout(&mut self) {
        if let Some(wakeup) = self.endpoint.poll_timeout() {
            self.now = self.now.max(wakeup.at);
            self.expire();
        }
    }

    /// What a driver does after its inputs.
    fn drain(&mut self) {
        self.transmit();
        self.poll_events();
        self.transmit();
        self.check();
        if self.room.is_some() {
            // A full device is tried again when it has room.
            return;
        }
        // A deadline that is due is served; then the next one lies in the future, or the driver
        // would spin.
        for _ in 0..1_000 {
            if self.endpoint.poll_timeout().is_none_or(|wakeup| wakeup.at > self.now) {
                return;
            }
            self.expire();
            self.transmit();
            self.poll_events();
        }
        panic!("{:?} is due for ever at {:?}", self.endpoint.poll_timeout(), self.now);
    }

    fn transmit(&mut self) {
        let (mut packets, mut controls, mut calls) = (vec![], 0, 0);
        loop {
            let room = &mut self.room;
            let report = self.endpoint.transmit(self.now, TxBudget::packets(64), |packet| {
                if let Some(room) = room {
                    if *room == 0 {
                        return Err(());
                    }
                    *room -= 1;
                }
                controls += usize::from(packet.payload == [&[], &[]] as [&[u8]; 2]);
                let octets = [packet.header, packet.payload[0], packet.payload[1]].concat();
                packets.push((octets, packet.segment_size));
                Ok(())
            });
            calls += 1;
            assert!(calls < 1_000, "it sends for ever at {:?}", self.now);
            if !report.is_ok_and(|report| report.more) {
                break;
            }
        }
        // One input may release a window of data, but only few packets without, at once or behind a
        // shaper.
        self.controls += controls;
        let (most, controls) = (8 + 2 * self.inputs, self.controls);
        assert!(controls <= most, "{controls} packets without data for {} inputs", self.inputs);
        for (octets, size) in packets {
            assert!(octets.len() <= self.largest_packet, "{} octets", octets.len());
            let rx = RxPacket::new(&octets).with_segment_size(size).with_checksum(RxChecksum::Trusted);
            if let Ok(datagram) = parse(&rx)
                && let Transport::Tcp(segment) = datagram.transport
            {
                self.answers += usize::from(self.peer.see(&segment));
            }
            self.sent.push_back(octets);
            if self.sent.len() > 32 {
                self.sent.pop_front();
            }
        }
    }

    fn poll_events(&mut self) {
        let mut events = 0;
        while let Some(event) = self.endpoint.poll_event() {
            events += 1;
            assert!(events < 100, "there is always news: {event:?}");
            match event {
                Event::Accepted { conn, .. } if self.conn.is_none() => {
                    (self.conn, self.open) = (Some(conn), true);
                    assert!(self.endpoint.conn(conn).is_some());
                }
                Event::Accepted { conn, .. } => self.others.push(conn),
                Event::Connected(_) => self.open = true,
                Event::Flushed(conn) if Some(conn) == self.conn => {
                    assert!(!self.flushed, "flushed twice");
                    self.flushed = true;
                    self.check_flushed();
                }
                Event::Closed { conn, error } if Some(conn) == self.conn => {
                    assert_eq!(self.closed, None, "closed twice");
                    self.closed = Some(error);
                    self.check_closed(error);
                }
                _ => {}
            }
        }
    }

    /// The application was told that everything was delivered.
    fn check_flushed(&self) {
        let irs = self.peer.irs.expect("connected");
        let claimed = u64::from(self.peer.claimed.distance_from(irs + 1));
        assert!(self.shut && claimed == self.written + 1, "flushed: {claimed} of {} + FIN", self.written);
    }

    fn check_closed(&mut self, error: Option<ConnError>) {
        let config = &self.config;
        match error {
            None if self.peer.irs.is_none() || !self.connected() => {
                assert!(self.shut && self.written == 0, "closed in order before it began");
            }
            None => {
                assert!(
                    self.shut
                        && self
                            .endpoint
                            .conn(self.conn.expect("known"))
                            .is_some_and(|conn| conn.is_flushed())
                );
                assert!(self.peer.sent_fin, "closed in order before the peer has");
            }
            // SYN retransmissions have an end, too.
            Some(ConnError::TimedOut) => {
                let bounded = config.user_timeout.is_some() || config.keep_alive.is_some();
                assert!(bounded || !self.open, "no limit was set");
            }
            Some(ConnError::Refused | ConnError::Unreachable) => assert!(self.blamed, "nobody said so"),
            Some(error) => panic!("{error:?} comes from nowhere"),
        }
    }

    /// What holds after every step.
    fn check(&mut self) {
        let (send, receive) = (self.config.send_buffer as usize, self.config.recv_buffer as usize);
        let Some(conn) = self.conn.and_then(|id| self.endpoint.conn(id)) else { return };
        let [first, second] = conn.peek();
        let info = conn.info();
        assert!(first.len() + second.len() + info.ooo_bytes as usize <= receive);
        assert!(u64::from(info.unacked) + u64::from(info.notsent_bytes) <= send as u64 + 1, "{info:?}");
        assert!(info.sacked + info.lost <= info.unacked, "{info:?}");
    }

    /// All are honest from here on.
    fn finish(&mut self) -> Outcome {
        self.room = None;
        self.peer.held.clear();
        self.peer.keeps_out_of_order = self.rng.one_in(2);
        if self.peer.irs.is_some() {
            self.peer.rcv_nxt = self.una();
        }
        // A peer that discards data past a hole, and so sends no SACK for it, may get only one
        // segment per timeout, while Karn's rule lets the timeout grow to its maximum.
        let mut progress = (self.read, self.una());
        let mut end = self.now + LIMIT;
        let mut repeat_at = self.now;
        let (mut rounds, mut told_fin) = (0_u32, false);
        while !self.is_done() {
            rounds += 1;
            let reached = (self.read, self.una());
            if std::mem::replace(&mut progress, reached) != reached {
                (end, rounds) = (self.now + LIMIT, 0);
            }
            assert!(self.now < end && rounds < 200_000, "stuck after {rounds} rounds: {}", self.report());
            self.attend(&mut told_fin);
            self.drain();
            while self.read(4_096) > 0 {}
            self.drain();
            if self.is_done() {
                break;
            }
            let answers = std::mem::take(&mut self.answers);
            if answers > 0 {
                self.pass(DELAY);
                self.answer(answers);
                continue;
            }
            if self.now >= repeat_at {
                repeat_at = self.now + Duration::from_millis(200);
                self.repeat();
                continue;
            }
            let timeout = self.endpoint.poll_timeout().map_or(repeat_at, |wakeup| wakeup.at);
            self.now = self.now.max(timeout.min(repeat_at));
            if timeout <= self.now {
                self.expire();
            }
        }
        // The application hears of what ended it, and reads what is left.
        self.drain();
        while self.read(4_096) > 0 {}
        if let Some(error) = self.closed.flatten() {
            let known = self.endpoint.conn(self.conn.expect("known")).map(|conn| conn.error());
            assert_eq!(known, Some(Some(error)));
            return Outcome::Failed;
        }
        if !self.flushed {
            // It ended before it began.
            return Outcome::Failed;
        }
        if !self.peer.lied_about_fin {
            assert_eq!(self.read, self.peer.total);
        }
        Outcome::Delivered
    }

    /// The application leaves, and the peer goes on as before.
    fn leave(&mut self) -> Outcome {
        if let Some(id) = self.conn {
            if self.rng.one_in(2) {
                self.endpoint.abort(self.now, id);
            }
            self.endpoint.release(self.now, id);
        }
        for _ in 0..self.rng.below(6) {
            let una = self.una();
            let say = self.peer.lie(&mut self.rng, self.now, una, true);
            self.say(&say);
            self.drain();
        }
        Outcome::Left
    }

    /// Nobody says anything any more, and the device has room.
    fn fall_quiet(&mut self) {
        self.room = None;
        let end = self.now + QUIET;
        loop {
            for id in self.conn.into_iter().chain(self.others.drain(..)) {
                self.endpoint.release(self.now, id);
            }
            self.drain();
            match self.endpoint.poll_timeout() {
                Some(wakeup) if wakeup.at <= end => self.now = self.now.max(wakeup.at),
                _ if self.others.is_empty() => break,
                _ => {}
            }
            self.expire();
        }
        let endpoint = &mut self.endpoint;
        let left = [
            endpoint.connections(),
            endpoint.half_open(),
            endpoint.orphans(),
            endpoint.time_wait_records(),
            endpoint.scheduler().backlog(Scope::All).packets,
        ];
        assert_eq!(left, [0; 5], "left after two quiet hours: {}", self.report());
    }

    /// The application has nothing left to say.
    fn attend(&mut self, told_fin: &mut bool) {
        let now = self.now;
        if let Some(mut conn) = self.conn.and_then(|id| self.endpoint.conn(id))
            && !*told_fin
        {
            conn.set_cork(now, false);
            // A connection that is opening waits for the handshake.
            if conn.state() != State::SynSent && conn.state() != State::SynReceived {
                conn.shutdown(now);
                (self.shut, *told_fin) = (true, true);
            }
        }
    }

    fn is_done(&mut self) -> bool {
        if self.closed.is_some() {
            return true;
        }
        let Some(id) = self.conn else { return self.endpoint.connections() == 0 };
        let Some(conn) = self.endpoint.conn(id) else { return true };
        let whole = conn.at_end() && self.read >= self.peer.total;
        conn.is_flushed() && (whole || self.peer.lied_about_fin)
    }

    /// The peer acknowledges what came, and sends the next of its stream.
    fn answer(&mut self, answers: usize) {
        if !self.connected() {
            if self.peer.irs.is_some() {
                let say = self.peer.syn(self.now);
                self.say(&say);
            }
            return;
        }
        for _ in 0..answers.min(3) {
            let place = self.peer.acknowledged().min(self.peer.total);
            let say = self.peer.honest(self.now, place, 0);
            self.say(&say);
        }
        self.send_stream();
    }

    fn send_stream(&mut self) {
        let window = u64::from(self.peer.shown_window);
        let (from, total) = (self.peer.acknowledged(), self.peer.total);
        let mut at = from;
        while at < total && at - from < window.min(4_000) {
            let mut say = self.peer.honest(self.now, at, (window - (at - from)).min(500));
            at += say.data.1;
            if at == total {
                say.flags = say.flags.union(TcpFlags::FIN);
            }
            self.say(&say);
        }
        if from == total {
            let mut say = self.peer.honest(self.now, total, 0);
            say.flags = say.flags.union(TcpFlags::FIN);
            self.say(&say);
        }
    }

    /// Nothing was heard for a while: the peer sends again, or asks.
    fn repeat(&mut self) {
        if !self.connected() {
            let say = self.peer.syn(self.now);
            self.say(&say);
            return;
        }
        let place = self.peer.acknowledged().min(self.peer.total);
        let mut say = self.peer.honest(self.now, place, 0);
        // Provokes an ACK (RFC 9293, section 3.8.4).
        say.seq = say.seq - 1;
        self.say(&say);
        self.send_stream();
    }

    fn report(&mut self) -> String {
        let (now, read, written, closed) = (self.now, self.read, self.written, self.closed);
        let deadline = self.endpoint.poll_timeout();
        let info =
            self.conn.and_then(|id| self.endpoint.conn(id)).map(|conn| (conn.info(), conn.is_flushed()));
        format!(
            "at {now:?}, read {read} of {}, written {written}, closed {closed:?}, next {deadline:?}, config {:?}, {info:?}, peer {:?}, counters {:?}",
            self.peer.total,
            self.config,
            self.peer,
            self.endpoint.counters().iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(),
        )
    }
}
