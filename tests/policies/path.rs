//! Two hosts and the path between them, in virtual time: what the tests of policies run over.

use ackline::core::policy::EgressScheduler;
use ackline::core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket,
    TxBudget,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

/// A path and what it does to packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathConfig {
    /// One way.
    pub delay: Duration,
    /// Packets of 1000 that are lost, in both directions.
    pub loss: u64,
    /// Packets of 1000 that take half a delay longer than the others.
    pub late: u64,
    pub seed: u64,
    /// Each so-manieth packet with data is lost; 0: none.
    pub periodic_loss: u64,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self { delay: Duration::from_millis(10), loss: 0, late: 0, seed: 1, periodic_loss: 0 }
    }
}

/// A client that sends `size` bytes to a server, whose every byte is checked.
pub(crate) struct Path {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    /// The client's end of the connection.
    pub conn: ConnId,
    /// The server's end, once it is accepted.
    pub accepted: Option<ConnId>,
    config: PathConfig,
    rng: u64,
    /// Packets with data that the client has sent.
    data_packets: u64,
    /// Packets to the client, to the server.
    wires: [VecDeque<(Instant, Vec<u8>)>; 2],
    size: u64,
    written: u64,
    pub received: u64,
    /// Everything has arrived, and the server has seen the end.
    pub finished: bool,
    /// A digest of everything that was sent, and when.
    pub digest: u64,
}

/// The byte of the stream at `position`.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn host(address: [u8; 4], scheduler: Box<dyn EgressScheduler>) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.addresses.push(address.into());
    Endpoint::new(config, scheduler, [address[3]; 32])
}

impl Path {
    /// Starts the transfer. `schedulers` are the client's and the server's.
    pub(crate) fn new(
        config: PathConfig,
        conn: ConnConfig,
        size: u64,
        schedulers: [Box<dyn EgressScheduler>; 2],
    ) -> Self {
        let [to_server, to_client] = schedulers;
        let (mut client, mut server) = (host([10, 0, 0, 1], to_server), host([10, 0, 0, 2], to_client));
        let address = SocketAddr::from(([10, 0, 0, 2], 80));
        let conn = Arc::new(conn);
        let now = Instant::from_secs(1);
        server.listen(now, ListenOn::Address(address), AcceptConfig::new(conn.clone())).unwrap();
        let conn = client.connect(now, address.into(), conn).unwrap();
        Self {
            now,
            client,
            server,
            conn,
            accepted: None,
            config,
            rng: config.seed,
            data_packets: 0,
            wires: [VecDeque::new(), VecDeque::new()],
            size,
            written: 0,
            received: 0,
            finished: false,
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    fn random(&mut self) -> u64 {
        self.rng = self.rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let x = self.rng ^ (self.rng >> 32);
        (x.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) % 1000
    }

    /// Runs until the transfer is finished or `end` has come.
    pub(crate) fn run_until(&mut self, end: Instant) {
        let (mut last, mut rounds) = (self.now, 0);
        while !self.finished {
            rounds = if self.now == last { rounds + 1 } else { 0 };
            last = self.now;
            assert!(rounds < 1_000, "{rounds} rounds at {last:?}: livelock");
            self.serve(0);
            self.serve(1);
            let arrivals = self.wires.iter().filter_map(|wire| wire.iter().map(|(at, _)| *at).min());
            let hosts = [&self.client, &self.server];
            let timeouts = hosts.into_iter().filter_map(|host| host.poll_timeout().map(|wakeup| wakeup.at));
            let next = arrivals.chain(timeouts).min().expect("neither a packet nor a timer: deadlock");
            if next > end {
                self.now = self.now.max(end);
                return;
            }
            // A deadline that has passed is due at once; if it stayed, the rounds would tell.
            self.now = next.max(self.now);
        }
    }

    /// Runs until the transfer is finished; panics if it is not within `limit`.
    pub(crate) fn finish_within(&mut self, limit: Duration) {
        let end = self.now + limit;
        self.run_until(end);
        let (received, size) = (self.received, self.size);
        assert!(self.finished, "{received} of {size} bytes after {limit:?}: {:?}", self.info());
    }

    pub(crate) fn info(&mut self) -> Option<ackline::core::info::Info> {
        self.client.conn(self.conn).map(|conn| conn.info())
    }

    fn serve(&mut self, side: usize) {
        let now = self.now;
        let due = self.wires[side].iter().filter(|(at, _)| *at <= now).count();
        for _ in 0..due {
            let Some(first) = self.wires[side].iter().position(|(at, _)| *at <= now) else { break };
            if let Some((_, packet)) = self.wires[side].remove(first) {
                self.host(side).ingest(now, RxPacket::new(&packet));
            }
        }
        self.host(side).handle_timeout(now);
        self.transmit(side);
        while let Some(event) = self.host(side).poll_event() {
            self.on_event(side, event);
        }
        self.transmit(side);
    }

    fn host(&mut self, side: usize) -> &mut Endpoint {
        if side == 0 { &mut self.client } else { &mut self.server }
    }

    fn transmit(&mut self, side: usize) {
        let mut sent = Vec::new();
        let now = self.now;
        let result = self.host(side).transmit(now, TxBudget::UNLIMITED, |packet| {
            sent.push([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, Infallible>(())
        });
        result.unwrap_or_else(|never| match never {});
        for packet in sent {
            for byte in now.as_nanos().to_le_bytes().iter().chain(&packet) {
                self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let mut lost = self.random() < self.config.loss;
            if side == 0 && packet.len() > 100 {
                self.data_packets += 1;
                lost |= self.config.periodic_loss > 0
                    && self.data_packets.is_multiple_of(self.config.periodic_loss);
            }
            let late =
                if self.random() < self.config.late { self.config.delay.div(2) } else { Duration::ZERO };
            if !lost {
                self.wires[1 - side].push_back((now + self.config.delay + late, packet));
            }
        }
    }

    fn on_event(&mut self, side: usize, event: Event) {
        let now = self.now;
        match event {
            Event::Accepted { conn, .. } => self.accepted = Some(conn),
            Event::Connected(id) | Event::Writable(id) if side == 0 => {
                let (size, mut written) = (self.size, self.written);
                let Some(mut conn) = self.client.conn(id) else { return };
                let mut chunk = [0; 16_384];
                while written < size {
                    let wanted = chunk.len().min(usize::try_from(size - written).unwrap());
                    for (at, byte) in (written..).zip(&mut chunk[..wanted]) {
                        *byte = byte_at(at);
                    }
                    match conn.write(now, &chunk[..wanted]).expect("the connection is open") {
                        0 => break,
                        taken => written += taken as u64,
                    }
                }
                if written == size && self.written < size {
                    conn.shutdown(now);
                }
                self.written = written;
            }
            Event::Readable(id) if side == 1 => {
                let Some(mut conn) = self.server.conn(id) else { return };
                let mut chunk = [0; 16_384];
                loop {
                    let taken = conn.read(now, &mut chunk).expect("the connection is open");
                    for byte in &chunk[..taken] {
                        assert_eq!(*byte, byte_at(self.received), "the byte at {} is wrong", self.received);
                        self.received += 1;
                    }
                    if taken == 0 {
                        break;
                    }
                }
                if conn.at_end() {
                    assert_eq!(self.received, self.size, "the stream ended early");
                    self.finished = true;
                    conn.shutdown(now);
                }
            }
            Event::Closed { error: Some(error), .. } => panic!("host {side}: {error}"),
            _ => {}
        }
    }
}
