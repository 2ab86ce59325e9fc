//! Floods, and limits of clients.

use crate::world::*;
use ackline_proxy::{Config, Limits};
use ackline_runtime::{Stack, TcpSocket, TcpStream};
use std::io;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
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
