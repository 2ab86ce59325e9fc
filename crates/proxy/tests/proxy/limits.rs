//! Floods, and limits of clients.

use crate::world::*;
use ackline_proxy::{Config, Limits};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use ackline_runtime::{Stack, TcpSocket, TcpStream};
use ackline_tcp_core::wire::checksum::checksum;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::time::timeout;

async fn connect_from(client: &Stack, from: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4(client)?;
    socket.bind(address(from, 0))?;
    timeout(PATIENCE, socket.connect(address(OWN, port))).await.expect("an answer")
}

#[tokio::test]
async fn a_client_has_no_more_connections_than_it_may_and_another_one_its_own() {
    let limits = Limits { client_connections: 3, ..Limits::default() };
    let world = world(Config { limits, ..Config::default() });
    let (server, port) = listener().await;
    let mut streams = vec![];
    for _ in 0..3 {
        streams.push(connect_from(&world.client, CLIENT, port).await.expect("connected"));
    }
    let error = connect_from(&world.client, CLIENT, port).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let other = connect_from(&world.client, OTHER, port).await.expect("connected");
    assert_eq!(world.meter.read().client_connections_limit, 1);
    let lines = world.lines();
    assert!(lines.len() == 1 && lines[0].contains("100.64.0.2 has as many connections"), "{lines:?}");
    // A place is free again once a connection has ended.
    drop((streams.pop(), other, server));
    world.until(|stats| stats.open_connections <= 2).await;
}

#[tokio::test]
async fn a_flood_of_flows_of_one_client_ends_at_its_limit_and_others_go_on() {
    let limits = Limits { client_flows: 50, ..Limits::default() };
    let world = world(Config { limits, ..Config::default() });
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let port = server.local_addr().expect("bound").port();
    let sockets: Vec<_> =
        (0..500).map(|_| world.client.bind_udp((CLIENT, 0).into()).expect("free")).collect();
    for socket in &sockets {
        socket.send_to(b"flood", (OWN, port)).await.expect("sent");
    }
    world.until(|stats| stats.flows == 500).await;
    let stats = world.meter.read();
    assert_eq!((stats.client_flows_limit, stats.open_flows), (450, 50), "{stats:?}");
    let other = world.client.bind_udp((OTHER, 0).into()).expect("free");
    other.send_to(b"honest", (OWN, port)).await.expect("sent");
    let mut buf = [0; 9];
    let mut found = false;
    while !found {
        let (length, from) =
            timeout(PATIENCE, server.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
        found = &buf[..length] == b"honest";
        server.send_to(&buf[..length], from).await.expect("sent");
    }
    let received = timeout(PATIENCE, other.recv(&mut buf)).await.expect("in time");
    assert_eq!(received.expect("a datagram"), 6);
}

/// A SYN of IPv4, from any address.
fn syn(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = vec![0; 40];
    (packet[0], packet[3], packet[8], packet[9]) = (0x45, 40, 64, 6);
    packet[12..16].copy_from_slice(&from.0.octets());
    packet[16..20].copy_from_slice(&to.0.octets());
    packet[20..22].copy_from_slice(&from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&to.1.to_be_bytes());
    // Five words, SYN, a window.
    (packet[32], packet[33], packet[34]) = (5 << 4, 2, 0xff);
    let sum = checksum(&packet[..20]).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    // The pseudo-header of RFC 9293, section 3.1.
    let pseudo = [&packet[12..20], &[0, 6, 0, 20], &packet[20..]].concat();
    let sum = checksum(&pseudo).to_be_bytes();
    packet[36..38].copy_from_slice(&sum);
    packet
}

/// A device from which SYNs of many addresses come before all else.
struct Flooded {
    device: Channel,
    left: u32,
    packet: Vec<u8>,
}

impl Device for Flooded {
    fn caps(&self) -> DeviceCaps {
        self.device.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        if self.left == 0 {
            return self.device.try_recv();
        }
        self.left -= 1;
        let from = Ipv4Addr::from(Ipv4Addr::new(10, 0, 0, 0).to_bits() + self.left);
        self.packet = syn((from, 1_000), (FAR, 443));
        Ok(RxPacket::new(&self.packet))
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.device.try_send(packet)
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.left > 0 { Poll::Ready(Ok(())) } else { self.device.poll_readable(cx) }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.device.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
}

#[tokio::test]
async fn a_flood_of_forged_syns_begins_few_connections_outside_and_an_honest_client_is_served_meanwhile() {
    const TOTAL: u32 = 200;
    const SYNS: u32 = 3_000;
    const EARLY: u64 = TOTAL as u64 / 4;
    let (device, end) = Channel::pair(ChannelConfig::default());
    let client = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let device = Flooded { device, left: SYNS, packet: vec![] };
    let limits = Limits { total: TOTAL, ..Limits::default() };
    // An upstream that never answers: what is begun there lasts.
    let (silent, upstream) = listener().await;
    let config = Config { limits, ..through(&format!("socks5://127.0.0.1:{upstream}")) };
    let world = on(device, client, config);
    world.until(|stats| stats.proof_first + stats.connections == u64::from(SYNS)).await;
    assert_eq!(world.meter.read().connections, EARLY);
    // The client proves its address, and has what others cannot take.
    let (server, port) = listener().await;
    let stream = world.connect(port).await.expect("connected");
    talk(stream, server.accept().await.expect("a connection").0).await;
    world.until(|stats| stats.finished + stats.reset == 1).await;
    let stats = world.meter.read();
    assert_eq!(
        (stats.connections, stats.upstream_timeouts, stats.no_descriptor),
        (EARLY + 1, 0, 0),
        "{stats:?}"
    );
    for _ in 0..EARLY {
        timeout(PATIENCE, silent.accept()).await.expect("in time").expect("a connection");
    }
    assert!(timeout(Duration::from_millis(100), silent.accept()).await.is_err(), "one more");
}

#[tokio::test]
async fn a_client_beyond_its_limit_of_early_connections_is_connected_first() {
    let limits = Limits { client_early: 0, ..Limits::default() };
    let world = world(Config { limits, ..Config::default() });
    let (server, port) = listener().await;
    let stream = world.connect(port).await.expect("connected");
    talk(stream, server.accept().await.expect("a connection").0).await;
    // All that it can be told is that it is not connected any more.
    let mut stream = world.connect(closed_port().await).await.expect("connected");
    let read = timeout(PATIENCE, stream.read_u8()).await.expect("in time");
    assert_eq!(read.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    world.until(|stats| stats.finished + stats.reset == 1).await;
    let stats = world.meter.read();
    assert_eq!((stats.proof_first, stats.connections, stats.upstream_refused), (2, 2, 1), "{stats:?}");
}
