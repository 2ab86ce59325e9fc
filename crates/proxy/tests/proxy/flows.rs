//! UDP.

use crate::servers::{reply, request, socks};
use crate::world::*;
use ackline_proxy::Config;
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UdpSocket;
use tokio::time::timeout;

#[tokio::test]
async fn datagrams_pass_both_ways_directly_and_through_socks() {
    let (socks, mut told) = socks().await;
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let port = server.local_addr().expect("bound").port();
    let through_socks = through(&format!("socks5://127.0.0.1:{socks}"));
    for (config, to) in [(Config::default(), OWN), (through_socks, FAR)] {
        let world = world(config);
        let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.connect((to, port)).await.expect("an address");
        let mut buf = [0; 2_000];
        let mut peers = vec![];
        for size in [1_usize, 1_000, 0, 1_472] {
            let datagram = vec![size as u8; size];
            socket.send(&datagram).await.expect("sent");
            let (length, from) =
                timeout(PATIENCE, server.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
            assert_eq!(buf[..length], datagram);
            peers.push(from);
            server.send_to(&buf[..length], from).await.expect("sent");
            let length =
                timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("a datagram");
            assert_eq!(buf[..length], datagram);
        }
        peers.dedup();
        assert_eq!(peers.len(), 1, "one flow");
        // What the device does not carry is lost, and counted.
        server.send_to(&[0; 1_600], peers[0]).await.expect("sent");
        world.until(|stats| stats.datagrams_too_long == 1).await;
        let stats = world.meter.read();
        assert_eq!((stats.flows, stats.datagrams_up, stats.datagrams_down), (1, 4, 4), "{stats:?}");
    }
    let asked = told.recv().await.expect("asked");
    assert_eq!((asked.command, &*asked.host, asked.port), (3, "0.0.0.0", 0));
}

/// As those of clients whose datagrams come in fragments.
#[tokio::test]
async fn a_datagram_longer_than_the_mtu_passes_whole() {
    let (socks, _told) = socks().await;
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let port = server.local_addr().expect("bound").port();
    let through_socks = through(&format!("socks5://127.0.0.1:{socks}"));
    for (config, to) in [(Config::default(), OWN), (through_socks, FAR)] {
        let mut channel = ChannelConfig::default();
        channel.mtu = 9_000;
        let (device, end) = Channel::pair(channel);
        let world = on(device, Stack::builder(end).address(CLIENT).spawn().expect("a stack"), config);
        let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.connect((to, port)).await.expect("an address");
        let mut buf = [0; 10_000];
        for size in [8_000_usize, 3, 4_000] {
            let datagram = vec![size as u8; size];
            socket.send(&datagram).await.expect("sent");
            let taken = timeout(PATIENCE, server.recv_from(&mut buf)).await.expect("in time");
            let (length, _) = taken.expect("a datagram");
            assert!(buf[..length] == datagram, "{length} of {size} bytes");
        }
    }
}

#[tokio::test]
async fn a_socks_server_may_refuse_a_flow_or_end_it_and_the_next_datagram_gets_another_one() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect((FAR, 9)).await.expect("an address");
    socket.send(b"one").await.expect("sent");
    let asked = async || timeout(PATIENCE, request(&listener, false)).await.expect("in time");
    let (mut stream, request) = asked().await;
    assert_eq!(request.command, 3);
    // It does not know the command (RFC 1928, section 6).
    reply(&mut stream, 7, address(Ipv4Addr::UNSPECIFIED, 0)).await;
    let error = timeout(PATIENCE, socket.recv(&mut [0; 9])).await.expect("in time").expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(world.meter.read().upstream_failed, 1);
    let lines = world.lines();
    assert!(lines.len() == 1 && lines[0].contains("it does not know the command"), "{lines:?}");
    for (flow, datagram) in [b"two", b"six"].into_iter().enumerate() {
        socket.send(datagram).await.expect("sent");
        let (mut stream, _) = asked().await;
        let relay = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        reply(&mut stream, 0, relay.local_addr().expect("bound")).await;
        let mut buf = [0; 100];
        let length = timeout(PATIENCE, relay.recv(&mut buf)).await.expect("in time").expect("a datagram");
        assert!(buf[..length].ends_with(datagram), "{flow}");
        // It ends the association (RFC 1928, section 7).
        drop(stream);
        world.until(|stats| stats.open_flows == 0).await;
    }
    assert_eq!(world.meter.read().flows, 3);
}

#[tokio::test]
async fn a_port_that_nobody_serves_and_an_upstream_without_datagrams_refuse() {
    let (port, http) = (closed_port().await, closed_port().await);
    let through_http = through(&format!("http://127.0.0.1:{http}"));
    // An ICMP error does not end a flow that has a port outside (RFC 4787, REQ-12).
    for (config, to, stays) in [(Config::default(), OWN, 1), (through_http, FAR, 0)] {
        let world = world(config);
        let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
        socket.connect((to, port)).await.expect("an address");
        socket.send(b"hello").await.expect("sent");
        let error = timeout(PATIENCE, socket.recv(&mut [0; 9])).await.expect("in time").expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
        world.until(|stats| stats.flows == 1 && stats.open_flows == stays).await;
    }
}

/// RFC 1928, section 6: BND.ADDR may be a name; section 7: each datagram says who sent it.
#[tokio::test]
async fn a_relay_may_have_a_name_and_a_datagrams_sender_must_have_an_address() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.send_to(b"there", (FAR, 9)).await.expect("sent");
    let (mut stream, _) = timeout(PATIENCE, request(&listener, false)).await.expect("in time");
    let relay = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let relay_port = relay.local_addr().expect("bound").port().to_be_bytes();
    let answer = [&[5, 0, 0, 3, 9][..], b"localhost", &relay_port].concat();
    stream.write_all(&answer).await.expect("sent");
    let mut buf = [0; 100];
    let (length, from) =
        timeout(PATIENCE, relay.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
    assert_eq!(buf[..length], *b"\0\0\0\x01\xc0\0\x02\x07\0\x09there");
    for unknown in [&b"\0\0\0\x03\x06a.test\0\x09no"[..], b"\0\0\0\x01\xc0\0\x02\x08\0\x09no", b"\0\0\0\x01"]
    {
        relay.send_to(unknown, from).await.expect("sent");
    }
    relay.send_to(b"\0\0\0\x01\xc0\0\x02\x07\0\x0aback", from).await.expect("sent");
    let (length, sender) =
        timeout(PATIENCE, socket.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
    assert_eq!((&buf[..length], sender), (&b"back"[..], address(FAR, 10)));
    assert_eq!(world.meter.read().datagrams_filtered, 2);
}
