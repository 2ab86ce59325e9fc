//! Two endpoints, two applications and a network that do what a string of octets tells them to.
//!
//! Every octet is an instruction or a parameter of one, so that any string is a script: a fuzzer can learn to write
//! them, and a property test can draw them at random. While it runs, [`World`] checks what must hold whatever the
//! network does:
//!
//! - nothing panics, and every call returns;
//! - what is emitted is a valid packet, no longer than the device permits;
//! - no timer that has been served is due again at once;
//! - no buffer grows beyond its limit, and no host has more connections than it may;
//! - what is read is what was written, and no application is told the same thing twice.
//!
//! In the end the network becomes perfect, and everything that was written has to arrive. Both hold only until the
//! script forges a packet; from then on it is enough to survive.

use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, RxChecksum, RxPacket, TxChecksum, TxChecksumMode,
    Unreachable, emit_icmp, gso, parse,
};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn,
    ListenerId, State, Target, TxBudget,
};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What became of a script.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Outcome {
    /// Octets that applications read.
    pub(crate) read: u64,
    /// Streams that had data.
    pub(crate) streams: usize,
    /// Packets that were delivered.
    pub(crate) delivered: u64,
    /// Virtual time, to the end.
    pub(crate) time: Duration,
}

/// Runs a script to its end.
pub(crate) fn run(script: &[u8]) -> Outcome {
    let mut world = World::new(&mut Script(script));
    let mut script = Script(script.get(SETTINGS..).unwrap_or_default());
    while let Some(instruction) = script.next() {
        world.step(instruction, &mut script);
    }
    world.finish();
    Outcome {
        read: world.streams.values().map(|stream| stream.read).sum(),
        streams: world.streams.values().filter(|stream| stream.read > 0).count(),
        delivered: world.delivered,
        time: world.now.since(START),
    }
}

/// Octets in front of the instructions.
const SETTINGS: usize = 8;
/// When a script begins.
const START: Instant = Instant::from_secs(1);
/// The port that both hosts listen on.
const PORT: u16 = 80;
/// Packets older than this are lost: the maximum segment lifetime, on which a new connection between the same two sockets
/// relies. Half of TIME-WAIT.
const LIFETIME: Duration = Duration::from_secs(30);
/// Packets under way; more are lost.
const IN_FLIGHT: usize = 256;
/// Connections that a host's application opens.
const OPENED: usize = 12;
/// Connections that a host may have.
const MAX_CONNECTIONS: u32 = 16;

/// The rest of a script.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A parameter; zero after the end.
    fn octet(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    /// One of `count` choices.
    fn choice(&mut self, count: usize) -> usize {
        usize::from(self.octet()) % count.max(1)
    }

    /// 0 to about 65,000, small numbers and large ones alike.
    fn size(&mut self) -> usize {
        let octet = usize::from(self.octet());
        let exponent = octet % 17;
        (1 << exponent) - 1 + octet / 17
    }
}

struct World {
    hosts: [Host; 2],
    now: Instant,
    wire: VecDeque<Flight>,
    delivered: u64,
    /// Nothing was forged yet.
    honest: bool,
    /// Bytes written to each stream by its writer, read by its reader, and whether its end was written.
    streams: BTreeMap<StreamId, Stream>,
}

struct Host {
    endpoint: Endpoint,
    address: IpAddr,
    listener: Option<ListenerId>,
    conns: Vec<ConnId>,
    /// Streams of the connections in `conns`, as long as their endpoint knows them.
    closed: Vec<ConnId>,
    largest_packet: usize,
    /// Of the send and the receive buffer, in octets.
    buffer_limits: (usize, usize),
    conn_config: Arc<ConnConfig>,
}

/// One direction of one connection: the socket that opened it, that which accepted it, and who writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct StreamId {
    writer: SocketAddr,
    reader: SocketAddr,
}

#[derive(Clone, Copy, Default, Debug)]
struct Stream {
    written: u64,
    read: u64,
    /// The writer has shut it down.
    ended: bool,
    /// Reset, timed out or let go by either side: some of it may be lost.
    broken: bool,
}

/// The octet at a place of a stream.
fn octet_at(stream: StreamId, place: u64) -> u8 {
    let salt = u64::from(stream.writer.port()) << 16 | u64::from(stream.reader.port());
    ((place ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A packet under way to a host.
#[derive(Clone)]
struct Flight {
    to: usize,
    sent_at: Instant,
    octets: Vec<u8>,
    /// Length of the headers.
    header_len: usize,
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let v6 = script.octet().is_multiple_of(4);
        let hosts = [0, 1].map(|index| {
            let octets = [script.octet(), script.octet(), script.octet()];
            Host::new(index, v6, octets)
        });
        Self {
            hosts,
            now: START,
            wire: VecDeque::new(),
            delivered: 0,
            honest: true,
            streams: BTreeMap::new(),
        }
    }

    fn step(&mut self, instruction: u8, script: &mut Script<'_>) {
        let host = usize::from(instruction >> 7);
        match instruction & 0x7f {
            0..=3 => self.connect(host),
            4..=19 => self.on_conn(host, script, |world, host, conn, script| {
                world.write(host, conn, script.size());
            }),
            20..=31 => self.on_conn(host, script, |world, host, conn, script| {
                world.read(host, conn, script.size());
            }),
            32 | 33 => self.on_conn(host, script, |world, host, conn, _| world.shut_down(host, conn)),
            34 => self.on_conn(host, script, |world, host, conn, _| world.abort(host, conn)),
            35 | 36 => self.on_conn(host, script, |world, host, conn, _| world.release(host, conn)),
            37 => self.on_conn(host, script, |world, host, conn, script| {
                let on = script.octet().is_multiple_of(2);
                let now = world.now;
                if let Some(mut conn) = world.hosts[host].endpoint.conn(conn) {
                    if script.octet().is_multiple_of(2) {
                        conn.set_nodelay(now, on)
                    } else {
                        conn.set_cork(now, on)
                    }
                }
            }),
            38 => self.toggle_listener(host),
            40..=63 => self.deliver_all(),
            64..=79 => {
                let index = script.choice(self.wire.len());
                if let Some(flight) = self.wire.remove(index) {
                    self.deliver(&flight);
                }
            }
            80..=83 => {
                let index = script.choice(self.wire.len());
                self.wire.remove(index);
            }
            84..=87 => {
                let index = script.choice(self.wire.len());
                if let Some(flight) = self.wire.get(index).cloned() {
                    self.deliver(&flight);
                }
            }
            88..=91 => self.split(script),
            92..=95 => self.pass(Duration::from_micros(script.size() as u64)),
            96..=99 => self.pass(Duration::from_millis(script.size() as u64)),
            100..=111 => self.next_timeout(),
            112..=115 => self.refuse(host, script),
            116..=119 => self.forge(script),
            120 => self.inject_icmp(script),
            121 => self.inject_noise(host, script),
            122 => self.truncate(script),
            _ => {}
        }
        self.drain();
    }

    /// What a driver does after its inputs.
    fn drain(&mut self) {
        for index in 0..2 {
            self.transmit(index, usize::MAX);
            self.poll_events(index);
            // Reading news may have had consequences.
            self.transmit(index, usize::MAX);
            self.check(index);
        }
    }

    /// Lets `host` send until it has nothing more, or has sent `packets` and the device is full.
    fn transmit(&mut self, host: usize, packets: usize) {
        let Host { endpoint, largest_packet, .. } = &mut self.hosts[host];
        let (mut room, mut calls) = (packets, 0);
        loop {
            let (now, wire) = (self.now, &mut self.wire);
            let report = endpoint.transmit(now, TxBudget::packets(64), |packet| {
                if room == 0 {
                    return Err(());
                }
                room -= 1;
                let flight = Flight::new(1 - host, now, &packet);
                assert!(flight.octets.len() <= *largest_packet, "{} octets", flight.octets.len());
                parse(&flight.received()).expect("a valid packet");
                if wire.len() < IN_FLIGHT {
                    wire.push_back(flight);
                }
                Ok(())
            });
            calls += 1;
            assert!(calls < 10_000, "it sends for ever at {now:?}");
            if !report.is_ok_and(|report| report.more) {
                return;
            }
        }
    }

    fn poll_events(&mut self, index: usize) {
        let mut events = 0;
        while let Some(event) = self.hosts[index].endpoint.poll_event() {
            events += 1;
            assert!(events < 10_000, "there is always news: {event:?}");
            let host = &mut self.hosts[index];
            match event {
                Event::Accepted { listener, conn } => {
                    assert!(host.listener == Some(listener) || !host.conns.contains(&conn));
                    host.conns.push(conn);
                }
                Event::Closed { conn, error } => {
                    assert!(!host.closed.contains(&conn), "closed twice: {conn:?}");
                    host.closed.push(conn);
                    if error.is_some() {
                        self.break_streams(index, conn);
                    }
                }
                _ => {}
            }
        }
    }

    /// What holds after every step.
    fn check(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        assert!(host.endpoint.connections() <= MAX_CONNECTIONS as usize);
        for id in host.conns.clone() {
            let Some(conn) = host.endpoint.conn(id) else { continue };
            let [first, second] = conn.peek();
            let info = conn.info();
            let (send, receive) = host.buffer_limits;
            assert!(first.len() + second.len() + info.ooo_bytes as usize <= receive);
            assert!(conn.write_space() <= send);
            assert!(u64::from(info.unacked) + u64::from(info.notsent_bytes) <= send as u64 + 1, "{info:?}");
        }
        // A deadline that is due is served; then the next one lies in the future, or the host would spin.
        for _ in 0..1_000 {
            let host = &mut self.hosts[index];
            let Some(wakeup) = host.endpoint.poll_timeout() else { return };
            if wakeup.at > self.now {
                return;
            }
            host.endpoint.handle_timeout(self.now);
            self.transmit(index, usize::MAX);
            self.poll_events(index);
        }
        panic!("{:?} is due for ever at {:?}", self.hosts[index].endpoint.poll_timeout(), self.now);
    }

    fn connect(&mut self, from: usize) {
        let to = SocketAddr::new(self.hosts[1 - from].address, PORT);
        let host = &mut self.hosts[from];
        if host.conns.len() >= OPENED {
            return;
        }
        let config = host.conn_config.clone();
        if let Ok(conn) = host.endpoint.connect(self.now, Target::new(to), config) {
            host.conns.push(conn);
        }
    }

    /// Does something to a connection that the script chooses.
    fn on_conn(
        &mut self,
        host: usize,
        script: &mut Script<'_>,
        act: impl FnOnce(&mut Self, usize, ConnId, &mut Script<'_>),
    ) {
        let conns = &self.hosts[host].conns;
        let choice = script.choice(conns.len());
        if let Some(&conn) = conns.get(choice) {
            act(self, host, conn, script);
        }
    }

    /// The streams that the connection writes and reads.
    fn streams(&mut self, host: usize, conn: ConnId) -> Option<(StreamId, StreamId)> {
        let (local, remote) = self.hosts[host].endpoint.conn(conn)?.addresses();
        let ours = StreamId { writer: local, reader: remote };
        Some((ours, StreamId { writer: remote, reader: local }))
    }

    fn break_streams(&mut self, host: usize, conn: ConnId) {
        if let Some((ours, theirs)) = self.streams(host, conn) {
            self.streams.entry(ours).or_default().broken = true;
            self.streams.entry(theirs).or_default().broken = true;
        }
    }

    fn write(&mut self, host: usize, conn: ConnId, size: usize) {
        let Some((ours, _)) = self.streams(host, conn) else { return };
        let stream = self.streams.entry(ours).or_default();
        let octets: Vec<_> = (0..size as u64).map(|index| octet_at(ours, stream.written + index)).collect();
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return };
        let space = handle.write_space();
        if let Ok(written) = handle.write(&octets) {
            assert!(written <= octets.len() && written <= space.max(written));
            stream.written += written as u64;
        }
    }

    /// Reads and compares.
    fn read(&mut self, host: usize, conn: ConnId, size: usize) -> usize {
        let Some((_, theirs)) = self.streams(host, conn) else { return 0 };
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return 0 };
        let mut octets = vec![0; size];
        let Ok(count) = handle.read(self.now, &mut octets) else { return 0 };
        let stream = self.streams.entry(theirs).or_default();
        if self.honest {
            for (index, octet) in octets[..count].iter().enumerate() {
                let place = stream.read + index as u64;
                assert_eq!(*octet, octet_at(theirs, place), "octet {place} of {theirs:?}");
            }
            assert!(stream.read + count as u64 <= stream.written, "more than was written");
            if handle.at_end() {
                let all = stream.read + count as u64 == stream.written;
                assert!(stream.broken || (stream.ended && all), "an end before the end: {stream:?}");
            }
        }
        stream.read += count as u64;
        count
    }

    fn shut_down(&mut self, host: usize, conn: ConnId) {
        let Some((ours, _)) = self.streams(host, conn) else { return };
        self.streams.entry(ours).or_default().ended = true;
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return };
        // RFC 9293, section 3.10.4: CLOSE in SYN-SENT ends the connection.
        let never_opened = handle.state() == State::SynSent;
        handle.shutdown(self.now);
        if never_opened {
            self.break_streams(host, conn);
        }
    }

    fn abort(&mut self, host: usize, conn: ConnId) {
        self.break_streams(host, conn);
        if let Some(mut conn) = self.hosts[host].endpoint.conn(conn) {
            conn.abort(self.now);
        }
    }

    /// The application lets go: what it has not read is lost, and what comes later is answered with RST.
    fn release(&mut self, index: usize, conn: ConnId) {
        if let Some((ours, _)) = self.streams(index, conn) {
            self.streams.entry(ours).or_default().ended = true;
        }
        self.break_streams(index, conn);
        let host = &mut self.hosts[index];
        host.endpoint.release(self.now, conn);
        host.conns.retain(|other| *other != conn);
        assert!(host.endpoint.conn(conn).is_none(), "a handle outlives its release");
    }

    fn toggle_listener(&mut self, index: usize) {
        let now = self.now;
        let host = &mut self.hosts[index];
        match host.listener.take() {
            Some(listener) => {
                host.endpoint.unlisten(now, listener);
                // Whom it had not accepted yet, it resets: their peers may have written.
                for stream in self.streams.values_mut() {
                    stream.broken = true;
                }
            }
            None => host.listen(now),
        }
    }

    fn deliver_all(&mut self) {
        for _ in 0..self.wire.len() {
            if let Some(flight) = self.wire.pop_front() {
                self.deliver(&flight);
            }
        }
    }

    fn deliver(&mut self, flight: &Flight) {
        if self.now.since(flight.sent_at) < LIFETIME {
            self.delivered += 1;
            self.hosts[flight.to].endpoint.ingest(self.now, flight.received());
        }
    }

    /// Makes the packets of a super-packet of it, as a device does.
    fn split(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(flight) = self.wire.get(index).cloned() else { return };
        let Some(size) = flight.segment_size else { return };
        self.wire.remove(index);
        let (headers, payload) = flight.octets.split_at(flight.header_len);
        let mut segments = gso::split(headers, payload.into(), size, TxChecksumMode::Complete)
            .expect("a super-packet of an endpoint");
        let mut buf = HeaderBuf::new();
        while let Some((emitted, data)) = segments.next_into(&mut buf) {
            let mut octets = buf.as_slice().to_vec();
            octets.extend(data.iter());
            let header_len = emitted.header_len;
            let checksum = RxChecksum::Verify;
            self.wire.push_back(Flight {
                octets,
                header_len,
                segment_size: None,
                checksum,
                ..flight.clone()
            });
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// On to the earliest deadline of the two.
    fn next_timeout(&mut self) {
        let wakeups = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout());
        if let Some(at) = wakeups.map(|wakeup| wakeup.at).min() {
            self.now = self.now.max(at);
            for host in &mut self.hosts {
                host.endpoint.handle_timeout(self.now);
            }
        }
    }

    /// A device that is full after a few packets.
    fn refuse(&mut self, host: usize, script: &mut Script<'_>) {
        self.on_conn(host, script, |world, host, conn, script| world.write(host, conn, script.size()));
        let room = script.choice(4);
        self.transmit(host, room);
    }

    /// Changes octets of the headers, or of the data, of a packet under way, and delivers it as if its checksum were right.
    fn forge(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(mut flight) = self.wire.get(index).cloned() else { return };
        self.honest = false;
        flight.checksum = RxChecksum::Trusted;
        let ip_len = if flight.octets[0] >> 4 == 4 { 20 } else { 40 };
        for _ in 0..script.choice(4) + 1 {
            let (place, octet) = (script.octet(), script.octet());
            let at = match place {
                // Mostly the TCP header: sequence number, acknowledgment, flags, window, options.
                0..=200 => ip_len + usize::from(place) % (flight.header_len - ip_len).max(1),
                _ => usize::from(place) % flight.octets.len(),
            };
            if let Some(target) = flight.octets.get_mut(at) {
                *target = if script.octet().is_multiple_of(2) { octet } else { target.wrapping_add(octet) };
            }
        }
        flight.mend_ipv4_checksum();
        self.deliver(&flight);
    }

    /// A router, or somebody who says to be one, complains about a packet under way.
    fn inject_icmp(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(flight) = self.wire.get(index) else { return };
        self.honest = false;
        let to = 1 - flight.to;
        let code = script.octet();
        let kind = match script.choice(4) {
            0 => IcmpErrorKind::PacketTooBig { mtu: script.size() as u32 },
            1 => IcmpErrorKind::TimeExceeded { code },
            2 => IcmpErrorKind::ParameterProblem { code, pointer: 0 },
            _ => IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Other, code: code % 16 },
        };
        let quote = flight.octets[..flight.octets.len().min(100)].to_vec();
        let (src, dst) = (self.hosts[flight.to].address, self.hosts[to].address);
        let mut buf = HeaderBuf::new();
        let header = IcmpHeader { src, dst, ttl: 64, message: IcmpEmit::Error(kind) };
        emit_icmp(&header, [&quote, &[]], &mut buf).expect("two addresses of one version");
        let packet = [buf.as_slice(), &quote].concat();
        self.hosts[to].endpoint.ingest(self.now, RxPacket::new(&packet));
    }

    fn inject_noise(&mut self, host: usize, script: &mut Script<'_>) {
        self.honest = false;
        let count = script.choice(120);
        let octets: Vec<_> = (0..count).map(|_| script.octet()).collect();
        let packet = RxPacket::new(&octets).with_checksum(RxChecksum::Trusted);
        self.hosts[host].endpoint.ingest(self.now, packet);
    }

    /// A packet that lost its end is dropped, and harms nobody.
    fn truncate(&mut self, script: &mut Script<'_>) {
        let index = script.choice(self.wire.len());
        let Some(mut flight) = self.wire.get(index).cloned() else { return };
        let lost = script.size() + 1;
        flight.octets.truncate(flight.octets.len().saturating_sub(lost));
        flight.checksum = RxChecksum::Verify;
        self.deliver(&flight);
    }

    /// From here on the network loses nothing and the applications read: everything has to arrive.
    fn finish(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                let now = self.now;
                if let Some(mut conn) = self.hosts[index].endpoint.conn(conn) {
                    conn.set_cork(now, false);
                }
            }
        }
        self.drain();
        let started = self.now;
        // Longer than the largest RTO, and too short for the user timeout to matter.
        while self.now.since(started) < Duration::from_secs(300) {
            for _ in 0..1_000 {
                self.read_all();
                self.drain();
                if self.wire.is_empty() {
                    break;
                }
                self.deliver_all();
                self.pass(Duration::from_micros(50));
                self.drain();
            }
            if self.hosts.iter().all(|host| host.endpoint.poll_timeout().is_none()) {
                break;
            }
            self.next_timeout();
        }
        self.read_all();
        if self.honest {
            self.check_that_all_arrived();
        }
    }

    fn read_all(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                while self.read(index, conn, 4_096) > 0 {}
            }
        }
    }

    fn check_that_all_arrived(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                let Some((ours, theirs)) = self.streams(index, conn) else { continue };
                let Some(handle) = self.hosts[index].endpoint.conn(conn) else { continue };
                if handle.error().is_some() || matches!(handle.state(), State::SynSent | State::SynReceived) {
                    continue;
                }
                for id in [ours, theirs] {
                    let stream = self.streams.get(&id).copied().unwrap_or_default();
                    assert!(
                        stream.broken || stream.read == stream.written,
                        "{id:?} lost its way: {stream:?}, {:?}",
                        self.hosts[index].endpoint.conn(conn).map(|conn| conn.info())
                    );
                }
            }
        }
    }
}

impl Host {
    fn new(index: usize, v6: bool, octets: [u8; 3]) -> Self {
        let number = index as u8 + 1;
        let address: IpAddr = match v6 {
            true => [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number].into(),
            false => [10, 0, 0, number].into(),
        };
        let [link, options, buffers] = octets;
        let mut config = EndpointConfig::default();
        config.addresses = vec![address];
        config.max_connections = MAX_CONNECTIONS;
        config.mtu = [1_500, 9_000, 1_280, 1_492][usize::from(link % 4)];
        config.max_super_packet = if link & 4 == 0 { 0 } else { 65_535 };
        config.tx_checksum = match link >> 3 & 3 {
            0 => TxChecksumMode::Partial,
            1 => TxChecksumMode::Omit,
            _ => TxChecksumMode::Complete,
        };
        let largest_packet = config.mtu.max(config.max_super_packet) as usize;

        let mut conn = ConnConfig::default();
        conn.sack = options & 1 == 0;
        conn.timestamps = options & 2 == 0;
        conn.window_scale = options & 4 == 0;
        conn.dsack = options & 8 == 0;
        conn.limited_transmit = options & 16 == 0;
        conn.restart_after_idle = options & 32 == 0;
        conn.user_timeout = None;
        conn.max_out_of_order_ranges = if options & 64 == 0 { 512 } else { 2 };
        conn.send_buffer = [1 << 20, 60_000, 3_000, 65_536][usize::from(buffers % 4)];
        conn.recv_buffer = [1 << 20, 60_000, 3_000, 200_000][usize::from(buffers >> 2 & 3)];
        conn.initial_recv_window = if buffers & 16 == 0 { Some(65_535.min(conn.recv_buffer)) } else { None };
        let buffer_limits = (conn.send_buffer as usize, conn.recv_buffer as usize);

        let mut host = Self {
            endpoint: Endpoint::new(config, Box::new(Fifo::default()), [number; 32]),
            address,
            listener: None,
            conns: Vec::new(),
            closed: Vec::new(),
            largest_packet,
            buffer_limits,
            conn_config: Arc::new(conn),
        };
        host.listen(START);
        host
    }

    fn listen(&mut self, now: Instant) {
        let mut accept = AcceptConfig::new(self.conn_config.clone());
        accept.backlog = 8;
        self.listener = Some(self.endpoint.listen(now, ListenOn::Port(PORT), accept).expect("a free port"));
    }
}

impl Flight {
    fn new(to: usize, now: Instant, packet: &ackline_tcp_core::TxPacket<'_>) -> Self {
        let [first, second] = packet.payload;
        Self {
            to,
            sent_at: now,
            octets: [packet.header, first, second].concat(),
            header_len: packet.header.len(),
            segment_size: packet.segment_size,
            checksum: match packet.checksum {
                TxChecksum::Complete => RxChecksum::Verify,
                TxChecksum::Partial { .. } => RxChecksum::Partial,
                TxChecksum::Omitted => RxChecksum::Trusted,
            },
        }
    }

    fn received(&self) -> RxPacket<'_> {
        RxPacket::new(&self.octets).with_segment_size(self.segment_size).with_checksum(self.checksum)
    }

    fn mend_ipv4_checksum(&mut self) {
        let Some(header) = self.octets.get_mut(..20).filter(|header| header[0] == 0x45) else { return };
        header[10..12].fill(0);
        let checksum = ackline_tcp_core::wire::checksum::checksum(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
