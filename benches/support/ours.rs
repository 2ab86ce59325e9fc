//! Two ackline endpoints in one address space.

use ackline::core::config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
use ackline::core::events::Event;
use ackline::core::policy::NewEgressScheduler;
use ackline::core::policy::builtin::Fifo;
use ackline::core::wire::{RxChecksum, RxPacket, TxChecksumMode};
use ackline::core::{ConnId, Duration, Endpoint, Instant, TxBudget};
use core::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const PORT: u16 = 5_001;

/// What the link between the two does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Checksums are computed and verified, not trusted.
    pub(crate) checksums: bool,
    /// It takes super-packets of up to 64 KiB, not only packets of the MTU.
    pub(crate) super_packets: bool,
    /// Packets wait in buffers of their own, and are handed over together; segments have
    /// timestamps.
    pub(crate) buffers: bool,
}

/// Packets on their way, in buffers that stay where they are: the first `ready` of them.
#[derive(Default)]
struct Buffers {
    packets: Vec<Vec<u8>>,
    ready: usize,
}

impl Buffers {
    /// Carries every packet that `from` sends to `to`, in one batch. The number of packets.
    fn pump(&mut self, now: Instant, from: &mut Endpoint, to: &mut Endpoint, checksum: RxChecksum) -> usize {
        self.ready = 0;
        let report = from.transmit(now, TxBudget::UNLIMITED, |packet| {
            if self.ready == self.packets.len() {
                self.packets.push(Vec::with_capacity(1_600));
            }
            let buffer = &mut self.packets[self.ready];
            buffer.clear();
            for piece in [packet.header, packet.payload[0], packet.payload[1]] {
                buffer.extend_from_slice(piece);
            }
            self.ready += 1;
            Ok::<(), Infallible>(())
        });
        let mut batch = [RxPacket::new(&[]); 32];
        for packets in self.packets[..self.ready].chunks(batch.len()) {
            for (place, packet) in batch.iter_mut().zip(packets) {
                *place = RxPacket::new(packet).with_checksum(checksum);
            }
            to.ingest_batch(now, &batch[..packets.len()]);
        }
        report.expect("memory takes every packet").packets
    }
}

/// Carries every packet that `from` sends to `to`, straight from the send buffer into the receive
/// buffer, as a driver in one address space does. The number of packets.
fn pump(now: Instant, from: &mut Endpoint, to: &mut Endpoint, checksum: RxChecksum) -> usize {
    let report = from.transmit(now, TxBudget::UNLIMITED, |packet| {
        let packet = RxPacket::new(packet.header)
            .with_more(packet.payload)
            .with_segment_size(packet.segment_size)
            .with_checksum(checksum);
        to.ingest(now, packet);
        Ok::<(), Infallible>(())
    });
    report.expect("memory takes every packet").packets
}

/// A client that writes and a server that reads.
pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    from: ConnId,
    to: ConnId,
    pub(crate) now: Instant,
    checksum: RxChecksum,
    buffers: Option<Buffers>,
    data: Vec<u8>,
}

impl Pair {
    /// One established connection; every batch carries `batch` bytes.
    pub(crate) fn new(link: Link, batch: usize, policies: ackline::core::policy::Policies) -> Self {
        Self::scheduled(link, batch, policies, &|| Box::new(Fifo::default()))
    }

    /// The same with an egress scheduler at both ends.
    pub(crate) fn scheduled(
        link: Link,
        batch: usize,
        policies: ackline::core::policy::Policies,
        scheduler: &NewEgressScheduler,
    ) -> Self {
        let host = |address| {
            let mut host = EndpointConfig::default();
            host.addresses = vec![address];
            host.tx_checksum = if link.checksums { TxChecksumMode::Complete } else { TxChecksumMode::Omit };
            // Segments have 1,460 bytes, with timestamps or without.
            host.mtu = if link.buffers { 1_512 } else { 1_500 };
            host.max_super_packet = if link.super_packets { 65_535 } else { 0 };
            Endpoint::new(host, scheduler(), [7; 32])
        };
        let (mut client, mut server) = (host(CLIENT), host(SERVER));
        let mut config = ConnConfig::default();
        config.policies = policies;
        config.timestamps = link.buffers;
        let config = Arc::new(config);
        let now = Instant::from_nanos(1_000_000_000);
        server.listen(now, ListenOn::Any, AcceptConfig::new(config.clone())).expect("nobody listens yet");
        let target = Target::new(SocketAddr::new(SERVER, PORT));
        let from = client.connect(now, target, config).expect("there is an address");
        let mut pair = Self {
            to: from,
            from,
            client,
            server,
            now,
            checksum: if link.checksums { RxChecksum::Verify } else { RxChecksum::Trusted },
            buffers: link.buffers.then(Buffers::default),
            data: (0..batch).map(|at| (at % 251) as u8).collect(),
        };
        pair.settle();
        pair.to = pair.accepted().expect("the handshake is over");
        pair
    }

    fn accepted(&mut self) -> Option<ConnId> {
        std::iter::from_fn(|| self.server.poll_event()).find_map(|event| match event {
            Event::Accepted { conn, .. } => Some(conn),
            _ => None,
        })
    }

    /// Carries packets both ways until neither side has any.
    pub(crate) fn settle(&mut self) {
        loop {
            self.now += Duration::from_micros(50);
            if self.there() + self.back() == 0 {
                return;
            }
        }
    }

    /// Carries what the client sends.
    fn there(&mut self) -> usize {
        let Self { now, client, server, checksum, .. } = self;
        match &mut self.buffers {
            Some(buffers) => buffers.pump(*now, client, server, *checksum),
            None => pump(*now, client, server, *checksum),
        }
    }

    /// Carries what the server sends.
    fn back(&mut self) -> usize {
        let Self { now, client, server, checksum, .. } = self;
        match &mut self.buffers {
            Some(buffers) => buffers.pump(*now, server, client, *checksum),
            None => pump(*now, server, client, *checksum),
        }
    }

    /// Writes one batch from a slice, sends it, consumes it in place (as a reader does that parses
    /// or forwards what is there), acknowledges it: the bytes that arrived.
    pub(crate) fn batch(&mut self) -> usize {
        self.now += Duration::from_micros(100);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        let written =
            self.client.conn(self.from).expect("it lives").write(self.now, &self.data).expect("it is open");
        self.there();
        let mut server = self.server.conn(self.to).expect("it lives");
        let read = server.peek().iter().map(|piece| piece.len()).sum();
        server.consume(self.now, read);
        self.back();
        while self.server.poll_event().is_some() {}
        while self.client.poll_event().is_some() {}
        debug_assert_eq!(written, self.data.len());
        read
    }

    /// Batches until the window is wide open and each one arrives whole.
    pub(crate) fn warm_up(&mut self) {
        for _ in 0..1_000 {
            self.batch();
        }
        assert_eq!(self.batch(), self.data.len(), "a batch must leave in one go");
    }
}
