//! Connections and flows that leave by another stack.

use crate::world::*;
use ackline_proxy::{Config, Exit};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpListener};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// A proxy whose way out is a stack, and the host at its other end.
pub(crate) fn behind_a_stack(config: Config) -> (World, Stack) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let exit = Stack::builder(near).address([192, 0, 2, 1]).spawn().expect("a stack");
    let far = Stack::builder(far).address(FAR).spawn().expect("a stack");
    (world(Config { exit: Exit::Stack(exit), ..config }), far)
}

async fn listening(far: &Stack) -> (TcpListener, u16) {
    let listener = TcpListener::bind(far, (FAR, 0)).await.expect("free");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

#[tokio::test]
async fn connections_leave_by_a_stack_with_their_ends_and_resets() {
    let (world, far) = behind_a_stack(Config::default());
    let (server, port) = listening(&far).await;
    let inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (outside, from) = server.accept().await.expect("a connection");
    assert_eq!(from.ip(), Ipv4Addr::new(192, 0, 2, 1));
    talk(inside, outside).await;
    world.until(|stats| stats.finished == 1 && stats.open_connections == 0).await;

    let mut inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    let mut rest = vec![];
    let exchange = async {
        inside.write_all(b"question").await.expect("sent");
        inside.shutdown().await.expect("closed");
        outside.read_to_end(&mut rest).await.expect("the end");
        outside.write_all(b"answer").await.expect("sent");
        drop(outside);
        inside.read_to_end(&mut rest).await.expect("the end");
    };
    timeout(PATIENCE, exchange).await.expect("in time");
    assert_eq!(rest, b"questionanswer");

    let inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    exchange_bulk(inside, outside, 3_000_000).await;

    let inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    inside.abort();
    let read = timeout(PATIENCE, outside.read(&mut [0; 1])).await.expect("in time");
    assert_eq!(read.expect_err("reset").kind(), ErrorKind::ConnectionReset);

    drop(server);
    let error = world.connect_to(address(FAR, port)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(world.meter.read().upstream_refused, 1);
}

#[tokio::test]
async fn an_upstreams_server_and_flows_are_reached_by_the_stack_and_the_loopback_by_the_kernel() {
    let (world, far) = behind_a_stack(through("http://192.0.2.7:3128"));
    let server = TcpListener::bind(&far, (FAR, 3_128)).await.expect("free");
    let answer = async {
        let (mut stream, _) = server.accept().await.expect("a connection");
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a request"));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("sent");
        stream
    };
    let (inside, outside) = tokio::join!(world.connect_to(address([203, 0, 113, 9], 443)), answer);
    talk(inside.expect("connected"), outside).await;

    let (near, port) = listener().await;
    let inside = world.connect(port).await.expect("connected");
    talk(inside, near.accept().await.expect("a connection").0).await;

    let (world, far) = behind_a_stack(Config::default());
    let server = far.bind_udp(address(FAR, 0)).expect("free");
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect(server.local_addr().expect("bound")).await.expect("an address");
    socket.send(b"there").await.expect("sent");
    let mut buf = [0; 9];
    let (length, from) =
        timeout(PATIENCE, server.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
    assert_eq!(&buf[..length], b"there");
    server.send_to(b"back", from).await.expect("sent");
    let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("a datagram");
    assert_eq!(&buf[..length], b"back");
}

#[tokio::test]
async fn a_way_out_that_is_gone_is_told_in_a_line() {
    let (near, _far) = Channel::pair(ChannelConfig::default());
    let exit = Stack::builder(near).address([192, 0, 2, 1]).spawn().expect("a stack");
    let world = world(Config { exit: Exit::Stack(exit.clone()), ..Config::default() });
    exit.shutdown(Duration::ZERO).await;
    let error = world.connect_to(address(FAR, 443)).await.expect_err("unreachable");
    assert_eq!(error.kind(), ErrorKind::HostUnreachable);
    assert_eq!(world.meter.read().upstream_failed, 1);
    assert!(world.lines()[0].starts_with("direct: "), "{:?}", world.lines());
}
