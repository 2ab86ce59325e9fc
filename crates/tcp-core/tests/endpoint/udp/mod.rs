//! UDP: sockets, flows, and what strangers cannot do to them. Packets are built and read by
//! etherparse.

mod flows;
mod sockets;

use ackline_tcp_core::endpoint::{UdpEvent, UdpReceived};
use ackline_tcp_core::error::UdpError;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{
    DropReason, Duration, Endpoint, EndpointConfig, Ingested, Instant, RxPacket, TxBudget, UdpId,
};
use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, SlicedPacket, TransportSlice};
use std::net::{IpAddr, SocketAddr};

/// The hosts of both families: this one, a peer, and a stranger.
const US: [&str; 2] = ["10.0.0.1", "fd00::1"];
const PEER: [&str; 2] = ["10.0.0.2", "fd00::2"];
const STRANGER: [&str; 2] = ["10.0.0.3", "fd00::3"];

/// What a datagram counts beside its data, at most.
const OVERHEAD: usize = 128;

/// An endpoint, its clock, and what left it.
struct Host {
    endpoint: Endpoint,
    now: Instant,
}

impl Host {
    fn new(change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut config = EndpointConfig::default();
        config.addresses = US.map(|address| address.parse().unwrap()).into();
        change(&mut config);
        Self {
            endpoint: Endpoint::new(config, Box::new(Fifo::default()), [7; 32]),
            now: Instant::from_secs(1),
        }
    }

    /// One that answers for every address, and takes flows.
    fn tunnel(change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut host = Self::new(|config| {
            config.any_address = true;
            change(config);
        });
        host.endpoint.udp().take_flows(host.now, true).unwrap();
        host
    }

    fn bind(&mut self, local: &str) -> UdpId {
        self.endpoint.udp().bind(self.now, at(local)).unwrap()
    }

    fn inject(&mut self, packet: &[u8]) -> Ingested {
        self.endpoint.ingest(self.now, RxPacket::new(packet))
    }

    /// A datagram arrives.
    fn arrives(&mut self, from: &str, to: &str, data: &[u8]) -> Ingested {
        self.inject(&packet(from, to, data))
    }

    fn send(&mut self, id: UdpId, to: Option<&str>, data: &[u8]) -> Result<(), UdpError> {
        self.endpoint.udp().send(self.now, id, to.map(at), data)
    }

    /// What leaves.
    fn leaves(&mut self) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        let sent = self.endpoint.transmit(self.now, TxBudget::UNLIMITED, |packet| {
            packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, std::convert::Infallible>(())
        });
        sent.unwrap();
        while self.endpoint.poll_event().is_some() {}
        packets
    }

    /// The data of what waits in a socket, and who sent it.
    fn received(&mut self, id: UdpId) -> Vec<(SocketAddr, Vec<u8>)> {
        std::iter::from_fn(|| self.endpoint.udp().recv(id).unwrap())
            .map(|UdpReceived { from, data, .. }| (from, data.to_vec()))
            .collect()
    }

    fn events(&mut self) -> Vec<UdpEvent> {
        std::iter::from_fn(|| self.endpoint.udp().poll_event()).collect()
    }

    /// Time passes.
    fn after(&mut self, time: Duration) {
        self.now += time;
        self.endpoint.handle_timeout(self.now);
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ip(src: IpAddr, dst: IpAddr) -> PacketBuilderStep<IpHeaders> {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => PacketBuilder::ipv4(src.octets(), dst.octets(), 64),
        (IpAddr::V6(src), IpAddr::V6(dst)) => PacketBuilder::ipv6(src.octets(), dst.octets(), 64),
        _ => unreachable!("one version"),
    }
}

fn packet(from: &str, to: &str, data: &[u8]) -> Vec<u8> {
    let (from, to) = (at(from), at(to));
    let mut packet = vec![];
    ip(from.ip(), to.ip()).udp(from.port(), to.port()).write(&mut packet, data).unwrap();
    packet
}

/// An ICMP error about `about` for its sender: unreachable, with the code of each version.
fn unreachable(about: &[u8], codes: [u8; 2]) -> Vec<u8> {
    let (from, to, _) = read(about);
    let mut packet = vec![];
    let builder = ip(to.ip(), from.ip());
    let quote = &about[..about.len().min(500)];
    let unused = [0; 4];
    match from {
        SocketAddr::V4(_) => builder.icmpv4_raw(3, codes[0], unused).write(&mut packet, quote).unwrap(),
        SocketAddr::V6(_) => builder.icmpv6_raw(1, codes[1], unused).write(&mut packet, quote).unwrap(),
    }
    packet
}

/// "Nobody listens there."
const PORT: [u8; 2] = [3, 4];

/// Sender, receiver and data of a datagram whose checksums are right.
fn read(packet: &[u8]) -> (SocketAddr, SocketAddr, Vec<u8>) {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("not UDP: {sliced:?}") };
    let (header, data) = (udp.to_header(), udp.payload().to_vec());
    let (src, dst): (IpAddr, IpAddr) = match sliced.net.unwrap() {
        etherparse::NetSlice::Ipv4(net) => {
            let ip = net.header().to_header();
            assert_eq!(header.calc_checksum_ipv4(&ip, &data).unwrap(), header.checksum);
            assert!(ip.dont_fragment && ip.calc_header_checksum() == ip.header_checksum);
            (ip.source.into(), ip.destination.into())
        }
        etherparse::NetSlice::Ipv6(net) => {
            let ip = net.header().to_header();
            assert_eq!(header.calc_checksum_ipv6(&ip, &data).unwrap(), header.checksum);
            (ip.source.into(), ip.destination.into())
        }
        etherparse::NetSlice::Arp(_) => panic!("not IP"),
    };
    (SocketAddr::new(src, header.source_port), SocketAddr::new(dst, header.destination_port), data)
}

/// The address and port of a host.
fn of(host: &str, port: u16) -> String {
    SocketAddr::new(host.parse().unwrap(), port).to_string()
}

fn dropped(reason: DropReason) -> Ingested {
    Ingested::Dropped(reason)
}
