//! Two endpoints back to back in memory, in virtual time, over a link that can delay, lose,
//! duplicate, reorder and stall.

use ackline_tcp_core::error::StreamError;
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{RxChecksum, TxChecksum, TxChecksumMode};
use ackline_tcp_core::{
    AcceptConfig, Conn, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn,
    RxPacket, Target, TxBudget, TxId, TxPacket,
};
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::{Arc, OnceLock};

/// What the link does to packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Time from one end to the other.
    pub(crate) delay: Duration,
    /// Packets lost, of a thousand.
    pub(crate) loss: u32,
    /// Packets that come twice, of a thousand.
    pub(crate) duplicates: u32,
    /// Packets that come up to three delays late, of a thousand.
    pub(crate) late: u32,
    /// Packets refused by the device when they are offered, of a thousand.
    pub(crate) refused: u32,
    /// The driver takes one packet at a time, and reports its departure after this long.
    pub(crate) serialise: Option<Duration>,
    /// Longer IP packets vanish.
    pub(crate) mtu: usize,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(5),
            loss: 0,
            duplicates: 0,
            late: 0,
            refused: 0,
            serialise: None,
            mtu: usize::MAX,
        }
    }
}

/// A packet on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segment_size: Option<NonZeroU16>,
    pub(crate) checksum: RxChecksum,
}

impl Wire {
    pub(crate) fn of(packet: &TxPacket<'_>) -> Self {
        let checksum = match packet.checksum {
            TxChecksum::Complete => RxChecksum::Verify,
            TxChecksum::Partial { .. } => RxChecksum::Partial,
            TxChecksum::Omitted => RxChecksum::Trusted,
        };
        let bytes = [packet.header, packet.payload[0], packet.payload[1]].concat();
        Self { bytes, segment_size: packet.segment_size, checksum }
    }

    /// IP bytes of the longest packet on the wire.
    pub(crate) fn longest(&self) -> usize {
        let Some(segment) = self.segment_size else { return self.bytes.len() };
        let ip = if self.bytes[0] >> 4 == 4 { usize::from(self.bytes[0] & 15) * 4 } else { 40 };
        ip + usize::from(self.bytes[ip + 12] >> 4) * 4 + usize::from(segment.get())
    }

    pub(crate) fn rx(&self) -> RxPacket<'_> {
        RxPacket::new(&self.bytes).with_segment_size(self.segment_size).with_checksum(self.checksum)
    }
}

/// One side of the link.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) streams: BTreeMap<ConnId, Stream>,
    /// Everything that the endpoint told.
    pub(crate) events: Vec<Event>,
    /// What accepted connections do.
    pub(crate) serve: Plan,
    /// The application copies, shares chunks and works in place by turns, in an order that follows
    /// from this number. `None`: it copies.
    pub(crate) mix: Option<u64>,
    /// When it takes events.
    pub(crate) polls: Polls,
    /// Packets taken by the device that have not left.
    sending: VecDeque<(Instant, TxId, Wire)>,
}

/// When a host takes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polls {
    /// After it has sent.
    After,
    /// Before it sends, and after.
    Before,
    /// The same, by [`Endpoint::poll_event_before_transmit`].
    InTwoSteps,
}

/// What an application does with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Bytes to write, and then to close.
    pub(crate) send: u64,
    /// Bytes per call of `read`; 0: nothing is read.
    pub(crate) read_size: usize,
}

impl Plan {
    pub(crate) const fn send(bytes: u64) -> Self {
        Self { send: bytes, read_size: PERIOD as usize }
    }
}

/// An application's side of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) plan: Plan,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) ended: bool,
    pub(crate) closed: Option<Option<ackline_tcp_core::error::ConnError>>,
}

/// Length of what every stream repeats: a prime, so that no piece of a stream can stand for
/// another.
const PERIOD: u64 = 65_521;

/// What every stream repeats, twice.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut period = vec![0; PERIOD as usize];
        ChaCha8Rng::seed_from_u64(0).fill_bytes(&mut period);
        period.repeat(2)
    })
}

/// The bytes of every stream from `position` on, as a chunk of up to `len` bytes of shared memory.
pub(crate) fn chunk_from(position: u64, len: usize) -> Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    let long = PATTERN.get_or_init(|| pattern().repeat(8).into());
    let at = (position % PERIOD) as usize;
    long.slice(at..long.len().min(at + len))
}

/// The bytes of every stream from `position` on, at least [`PERIOD`] of them.
pub(crate) fn bytes_from(position: u64) -> &'static [u8] {
    &pattern()[(position % PERIOD) as usize..]
}

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;

pub(crate) fn address(host: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, 1 + host as u8])
}

pub(crate) fn socket(host: usize, port: u16) -> SocketAddr {
    SocketAddr::new(address(host), port)
}

pub(crate) fn host_config(host: usize) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.addresses = vec![address(host), format!("fd00::{}", host + 1).parse().unwrap()];
    config
}

/// Both hosts, the link, and the time.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) hosts: [Host; 2],
    pub(crate) link: Link,
    rng: ChaCha8Rng,
    /// By arrival and order of departure.
    in_flight: BTreeMap<(Instant, u64), (usize, Wire)>,
    departures: u64,
    /// Hash of everything that left, in order.
    pub(crate) digest: u64,
    /// Packets that left each host.
    pub(crate) left: [u64; 2],
    /// Bytes of the longest one.
    pub(crate) longest: [usize; 2],
}

impl Net {
    pub(crate) fn new(seed: u64, link: Link) -> Self {
        Self::with(seed, link, [host_config(A), host_config(B)], || Box::new(Fifo::default()))
    }

    /// With 64 KiB super-packets and checksums left to the device.
    pub(crate) fn offloaded(seed: u64, link: Link) -> Self {
        let configs = [A, B].map(|host| {
            let mut config = host_config(host);
            config.max_super_packet = 65_535;
            config.tx_checksum = TxChecksumMode::Partial;
            config
        });
        Self::with(seed, link, configs, || Box::new(Fifo::default()))
    }

    pub(crate) fn with(
        seed: u64,
        link: Link,
        configs: [EndpointConfig; 2],
        scheduler: impl Fn() -> Box<dyn EgressScheduler>,
    ) -> Self {
        println!("seed {seed}, {link:?}");
        let mut number = seed as u8;
        let hosts = configs.map(|config| {
            number = number.wrapping_add(1);
            Host {
                endpoint: Endpoint::new(config, scheduler(), [number; 32]),
                streams: BTreeMap::new(),
                events: vec![],
                serve: Plan::send(0),
                mix: None,
                polls: Polls::After,
                sending: VecDeque::new(),
            }
        });
        Self {
            now: Instant::from_secs(1),
            hosts,
            link,
            rng: ChaCha8Rng::seed_from_u64(seed),
            in_flight: BTreeMap::new(),
            departures: 0,
            digest: 0,
            left: [0; 2],
            longest: [0; 2],
        }
    }

    pub(crate) fn endpoint(&mut self, host: usize) -> &mut Endpoint {
        &mut self.hosts[host].endpoint
    }

    /// The application of `host` writes; TCP may take less than all of it.
    pub(crate) fn write(&mut self, host: usize, id: ConnId, data: &[u8]) {
        let mut conn = self.hosts[host].endpoint.conn(id).expect("the connection is there");
        conn.write(self.now, data).expect("the connection is open");
    }

    pub(crate) fn listen(&mut self, host: usize, port: u16, config: ConnConfig) {
        let accept = AcceptConfig::new(Arc::new(config));
        self.hosts[host].endpoint.listen(self.now, ListenOn::Port(port), accept).expect("a free port");
    }

    pub(crate) fn connect(&mut self, from: usize, to: SocketAddr, config: ConnConfig, plan: Plan) -> ConnId {
        let host = &mut self.hosts[from];
        let id = host.endpoint.connect(self.now, Target::from(to), Arc::new(config)).expect("can connect");
        host.streams.insert(id, Stream { plan, ..Stream::default() });
        id
    }

    fn chance(&mut self, of_a_thousand: u32) -> bool {
        of_a_thousand > 0 && self.rng.next_u32() % 1000 < of_a_thousand
    }

    /// Runs until `done`, or until nothing happens any more, or for `limit` of virtual time.
    pub(crate) fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + limit;
        let mut idle_rounds = 0;
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            let Some(next) = self.next_instant() else { return false };
            if next > end {
                self.now = end;
                return false;
            }
            idle_rounds = if next > self.now { 0 } else { idle_rounds + 1 };
            assert!(idle_rounds < 10_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            self.deliver();
            for host in &mut self.hosts {
                if host.endpoint.poll_timeout().is_some_and(|wakeup| wakeup.at <= self.now) {
                    host.endpoint.handle_timeout(self.now);
                }
            }
        }
    }

    pub(crate) fn run(&mut self, limit: Duration) {
        self.run_until(limit, |_| false);
    }

    fn next_instant(&self) -> Option<Instant> {
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let timeouts = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout().map(|it| it.at));
        let departures = self.hosts.iter().filter_map(|host| host.sending.front().map(|it| it.0));
        arrival.into_iter().chain(timeouts).chain(departures).min()
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, wire) = entry.remove();
            self.hosts[to].endpoint.ingest(self.now, wire.rx());
        }
        for from in [A, B] {
            while let Some((at, ..)) = self.hosts[from].sending.front()
                && *at <= self.now
                && let Some((_, id, wire)) = self.hosts[from].sending.pop_front()
            {
                self.launch(from, wire);
                self.hosts[from].endpoint.departed(self.now, id);
            }
        }
    }

    /// Transmits and lets the applications work until neither has anything left to do.
    pub(crate) fn settle(&mut self) {
        for from in [A, B] {
            if self.hosts[from].polls != Polls::After {
                self.hosts[from].work(self.now);
            }
            loop {
                self.transmit(from);
                if !self.hosts[from].work(self.now) {
                    break;
                }
            }
        }
    }

    fn transmit(&mut self, from: usize) {
        loop {
            let mut taken = vec![];
            let refused = self.chance(self.link.refused).then(|| self.rng.next_u32() as usize % 3);
            let budget = match self.link.serialise {
                Some(_) if !self.hosts[from].sending.is_empty() => return,
                Some(_) => TxBudget::with_departures(1),
                None => TxBudget::packets(8),
            };
            let host = &mut self.hosts[from];
            let result = host.endpoint.transmit(self.now, budget, |packet| {
                if refused == Some(taken.len()) {
                    return Err("full");
                }
                taken.push((packet.id, Wire::of(&packet)));
                Ok(())
            });
            let config = host.endpoint.config();
            let (mtu, segments) = (config.mtu as usize, config.max_super_packet > 0);
            for (id, wire) in taken {
                assert!(segments || wire.segment_size.is_none(), "a super-packet, and the device takes none");
                assert!(wire.longest() <= mtu, "{} bytes, and the device carries {mtu}", wire.longest());
                match self.link.serialise {
                    Some(time) => self.hosts[from].sending.push_back((self.now + time, id, wire)),
                    None => self.launch(from, wire),
                }
            }
            match result {
                Ok(report) if !report.more => return,
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// A packet is on the link.
    fn launch(&mut self, from: usize, wire: Wire) {
        let mut hasher = std::hash::DefaultHasher::new();
        // Without the identification and its checksum, which mean nothing if DF is set (RFC 6864).
        (self.digest, &wire.bytes[..4], &wire.bytes[12..]).hash(&mut hasher);
        self.digest = hasher.finish();
        self.left[from] += 1;
        self.longest[from] = self.longest[from].max(wire.bytes.len());
        let copies = match () {
            () if wire.longest() > self.link.mtu || self.chance(self.link.loss) => 0,
            () if self.chance(self.link.duplicates) => 2,
            () => 1,
        };
        for _ in 0..copies {
            let mut delay = self.link.delay;
            if self.chance(self.link.late) {
                delay = delay.saturating_mul(1 + u64::from(self.rng.next_u32() % 3));
            }
            self.departures += 1;
            self.in_flight.insert((self.now + delay, self.departures), (1 - from, wire.clone()));
        }
    }

    /// Delivers `bytes` to `to` as a packet from outside.
    pub(crate) fn inject(&mut self, to: usize, bytes: &[u8]) -> ackline_tcp_core::Ingested {
        self.hosts[to].endpoint.ingest(self.now, RxPacket::new(bytes))
    }

    /// What `from` transmits now, delivered nowhere.
    pub(crate) fn intercept(&mut self, from: usize) -> Vec<Wire> {
        let mut taken = vec![];
        self.hosts[from]
            .endpoint
            .transmit(self.now, TxBudget::UNLIMITED, |packet| {
                taken.push(Wire::of(&packet));
                Ok::<(), ()>(())
            })
            .expect("the device takes everything");
        taken
    }

    /// The only stream of a host.
    pub(crate) fn stream(&self, host: usize) -> Stream {
        assert_eq!(self.hosts[host].streams.len(), 1);
        *self.hosts[host].streams.values().next().unwrap()
    }
}

impl Host {
    /// Takes events and does what they ask for; true if something may have to be transmitted.
    fn work(&mut self, now: Instant) -> bool {
        let mut worked = false;
        while let Some(event) = match self.polls {
            Polls::After | Polls::Before => self.endpoint.poll_event(),
            Polls::InTwoSteps => self.endpoint.poll_event_before_transmit(),
        } {
            worked = true;
            self.events.push(event);
            if let Event::Accepted { conn, .. } = event {
                self.streams.insert(conn, Stream { plan: self.serve, ..Stream::default() });
            }
            if let Event::Closed { conn, error } = event
                && let Some(stream) = self.streams.get_mut(&conn)
            {
                assert_eq!(stream.closed, None, "closed once");
                stream.closed = Some(error);
            }
            self.attend(now, event.conn());
            if let Event::Closed { conn, .. } = event {
                self.endpoint.release(now, conn);
            }
        }
        worked
    }

    /// Writes and reads what can be written and read.
    pub(crate) fn attend(&mut self, now: Instant, id: ConnId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(mut conn) = self.endpoint.conn(id) else { return };
        let mut buffer = vec![0; stream.plan.read_size];
        loop {
            let read = read_some(now, &mut conn, stream, self.mix, &mut buffer);
            if read == 0 {
                break;
            }
            stream.read += read as u64;
        }
        stream.ended |= conn.at_end();
        while stream.written < stream.plan.send {
            match write_some(now, &mut conn, stream, self.mix) {
                Ok(0) | Err(_) => return,
                Ok(written) => stream.written += written as u64,
            }
        }
        if conn.state().is_synchronized() {
            conn.shutdown(now);
        }
    }
}

/// The turn of one of `ways`, and a length below `most`, at this point of a stream; always the
/// first if there are no turns.
fn turn(mix: Option<u64>, position: u64, ways: u64, most: u64) -> (u64, usize) {
    let Some(seed) = mix else { return (0, 0) };
    let mut hasher = std::hash::DefaultHasher::new();
    (seed, position, ways).hash(&mut hasher);
    let number = hasher.finish();
    (number % ways, (number / ways % most) as usize)
}

/// Reads what there is, or some of it, and compares it. Returns the number of bytes.
fn read_some(
    now: Instant,
    conn: &mut Conn<'_>,
    stream: &Stream,
    mix: Option<u64>,
    buffer: &mut [u8],
) -> usize {
    let same = |at: u64, data: &[u8]| {
        let fits = data
            .chunks(PERIOD as usize)
            .zip(0..)
            .all(|(piece, number)| piece == &bytes_from(at + number * PERIOD)[..piece.len()]);
        assert!(fits, "bytes {at}.. of {stream:?}");
    };
    match turn(mix, stream.read, 4, 100_000) {
        (0, _) => {
            let read = conn.read(now, buffer).unwrap_or(0);
            same(stream.read, &buffer[..read]);
            read
        }
        (1, most) => {
            let [first, second] = conn.peek();
            same(stream.read, first);
            same(stream.read + first.len() as u64, second);
            let read = (first.len() + second.len()).min(most + 1);
            conn.consume(now, read);
            read
        }
        (_, most) => {
            let chunk = conn.read_chunk(now, most + 1).ok().flatten().unwrap_or_default();
            same(stream.read, &chunk);
            chunk.len()
        }
    }
}

/// Writes some of what is left.
fn write_some(
    now: Instant,
    conn: &mut Conn<'_>,
    stream: &Stream,
    mix: Option<u64>,
) -> Result<usize, StreamError> {
    let left = stream.plan.send - stream.written;
    match turn(mix, stream.written, 5, 300_000) {
        (0, _) => conn.write(now, &bytes_from(stream.written)[..left.min(PERIOD) as usize]),
        (1, most) => conn.write(now, &bytes_from(stream.written)[..(most % 1_000 + 1).min(left as usize)]),
        (2, most) => conn.write_with(now, most + 1, |room| {
            let mut filled = 0;
            for slice in room {
                let data = &bytes_from(stream.written)
                    [filled..(filled + slice.len()).min(left.min(PERIOD) as usize)];
                slice[..data.len()].copy_from_slice(data);
                filled += data.len();
            }
            filled
        }),
        (_, most) => {
            let mut chunk = chunk_from(stream.written, (most + 1).min(left as usize));
            let before = chunk.len();
            let taken = conn.write_bytes(now, &mut chunk)?;
            assert_eq!(before - chunk.len(), taken);
            Ok(taken)
        }
    }
}
