//! Ports of this machine that lead to a client.

use crate::world::*;
use ackline_proxy::{Config, Limits, Publish, PublishError};
use ackline_runtime::TcpListener;
use ackline_tcp_core::ListenOn;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

fn publish(text: &str) -> Publish {
    text.parse().expect("ports")
}

/// Publishes a free port of the loopback.
fn open(world: &World, guest: &str) -> (Publish, SocketAddr) {
    let publish = publish(&format!("127.0.0.1:0:{guest}"));
    let listens = world.publisher.add(&publish).expect("published");
    (publish, listens[0])
}

fn serve(world: &World, port: u16) -> TcpListener {
    world.client.listen(ListenOn::Address((CLIENT, port).into())).expect("a free port")
}

#[tokio::test]
async fn connections_of_a_published_port_go_to_the_guest() {
    let world = world(Config::default());
    let guest = serve(&world, 80);
    let (_, at) = open(&world, "100.64.0.2:80");
    let outside = TcpStream::connect(at).await.expect("connected");
    let (inside, from) = timeout(PATIENCE, guest.accept()).await.expect("in time").expect("a connection");
    // A guest could not answer 127.0.0.1.
    assert_eq!(from.ip(), OWN);
    exchange_bulk(inside, outside, 1_000_000).await;
    world.until(|stats| stats.finished == 1 && stats.open_connections == 0).await;
    let stats = world.meter.read();
    assert_eq!((stats.published, stats.published_failed, stats.connections), (1, 0, 1));
    assert_eq!((stats.bytes_up, stats.bytes_down), (1_000_000, 1_000_000));
}

#[tokio::test]
async fn a_connection_begins_with_the_header_that_is_asked_for() {
    let world = world(Config::default());
    let guest = serve(&world, 80);
    let (_, at) = open(&world, "100.64.0.2:80,proxy=1");
    let outside = TcpStream::connect(at).await.expect("connected");
    let client = outside.local_addr().expect("connected");
    let (mut inside, _) = guest.accept().await.expect("a connection");
    let expected = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\n", client.port(), at.port());
    let mut header = vec![0; expected.len()];
    inside.read_exact(&mut header).await.expect("a header");
    assert_eq!(String::from_utf8_lossy(&header), expected);
    talk(inside, outside).await;
}

#[tokio::test]
async fn a_client_is_reset_if_the_guest_refuses() {
    let world = world(Config::default());
    let (_, at) = open(&world, "100.64.0.2:81");
    let mut outside = TcpStream::connect(at).await.expect("the kernel accepts");
    let read = timeout(PATIENCE, outside.read_u8()).await.expect("in time");
    assert_eq!(read.expect_err("refused").kind(), ErrorKind::ConnectionReset);
    world.until(|stats| stats.published_failed == 1).await;
}

#[tokio::test]
async fn a_guest_that_does_not_answer_is_not_waited_for_longer_than_an_upstream() {
    let limit = std::time::Duration::from_millis(50);
    let world = world(Config { connect_timeout: limit, ..Config::default() });
    // Nobody has this address.
    let (_, at) = open(&world, "100.64.0.9:80");
    let mut outside = TcpStream::connect(at).await.expect("the kernel accepts");
    let read = timeout(PATIENCE, outside.read_u8()).await.expect("in time");
    assert_eq!(read.expect_err("no answer").kind(), ErrorKind::ConnectionReset);
    world.until(|stats| stats.published_failed == 1 && stats.open_connections == 0).await;
}

#[tokio::test]
async fn ports_are_published_and_closed_while_connections_go_on() {
    let world = world(Config::default());
    let guest = serve(&world, 80);
    let (what, at) = open(&world, "100.64.0.2:80");
    assert!(matches!(world.publisher.add(&what), Err(PublishError::Twice(_))));
    let taken = publish(&format!("{at}:100.64.0.2:80"));
    assert!(
        matches!(world.publisher.add(&taken), Err(PublishError::Listen { address, .. }) if address == at)
    );
    assert!(matches!(world.publisher.add(&publish("8080")), Err(PublishError::NoGuest(_))));
    let outside = TcpStream::connect(at).await.expect("connected");
    let (inside, _) = guest.accept().await.expect("a connection");
    let listed = world.publisher.list();
    assert_eq!((listed.len(), &listed[0].publish, &listed[0].listens[..]), (1, &what, &[at][..]));
    assert!(world.publisher.remove(&what) && !world.publisher.remove(&what));
    let closed = async {
        while TcpStream::connect(at).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, closed).await.expect("in time");
    talk(inside, outside).await;
    let publisher = world.publisher.clone();
    world.finish(std::time::Duration::ZERO).await;
    assert!(matches!(publisher.add(&what), Err(PublishError::Ended)) && publisher.list().is_empty());
}

#[tokio::test]
async fn clients_of_published_ports_have_limits_as_others() {
    let limits = Limits { client_connections: 1, ..Limits::default() };
    let world = world(Config { limits, ..Config::default() });
    let guest = serve(&world, 80);
    let (_, at) = open(&world, "100.64.0.2:80");
    let first = TcpStream::connect(at).await.expect("connected");
    let (inside, _) = guest.accept().await.expect("a connection");
    let mut second = TcpStream::connect(at).await.expect("the kernel accepts");
    let read = timeout(PATIENCE, second.read_u8()).await.expect("in time");
    assert_eq!(read.expect_err("too many").kind(), ErrorKind::ConnectionReset);
    assert_eq!(world.meter.read().client_connections_limit, 1);
    talk(inside, first).await;
}

#[tokio::test]
async fn datagrams_of_a_published_port_go_to_the_guest_and_answers_come_back() {
    let world = world(Config::default());
    let guest = world.client.bind_udp((CLIENT, 53).into()).expect("a free port");
    // To one address, and to any.
    for at in ["127.0.0.1", "0.0.0.0"] {
        let publish = publish(&format!("{at}:0:100.64.0.2:53/udp"));
        let port = world.publisher.add(&publish).expect("published")[0].port();
        let clients = [UdpSocket::bind("127.0.0.1:0").await, UdpSocket::bind("127.0.0.1:0").await]
            .map(|socket| socket.expect("a socket"));
        for (number, client) in (0_u8..).zip(&clients) {
            // Linux answers at all addresses of 127.0.0.0/8: the answer comes from the one asked.
            let asked = if at == "0.0.0.0" { Ipv4Addr::new(127, 0, 0, 7) } else { Ipv4Addr::LOCALHOST };
            client.send_to(&[b'q', number], (asked, port)).await.expect("sent");
            let mut buffer = [0; 16];
            let (length, from) =
                timeout(PATIENCE, guest.recv_from(&mut buffer)).await.expect("in time").expect("a datagram");
            assert_eq!((&buffer[..length], from.ip()), (&[b'q', number][..], OWN.into()));
            guest.send_to(&[b'a', number], from).await.expect("sent");
            let (length, from) =
                timeout(PATIENCE, client.recv_from(&mut buffer)).await.expect("in time").expect("an answer");
            assert_eq!((&buffer[..length], from), (&[b'a', number][..], (asked, port).into()));
        }
        assert!(world.publisher.remove(&publish));
        world.until(|stats| stats.open_flows == 0).await;
    }
    let stats = world.meter.read();
    assert_eq!((stats.published, stats.flows, stats.published_failed), (4, 4, 0));
    assert_eq!((stats.datagrams_up, stats.datagrams_down), (4, 4));
}

#[tokio::test]
async fn half_of_a_published_connection_may_close_first() {
    let world = world(Config::default());
    let guest = serve(&world, 80);
    let (_, at) = open(&world, "100.64.0.2:80");
    let mut outside = TcpStream::connect(at).await.expect("connected");
    outside.write_all(b"question").await.expect("sent");
    outside.shutdown().await.expect("closed");
    let (mut inside, _) = guest.accept().await.expect("a connection");
    let mut question = vec![];
    inside.read_to_end(&mut question).await.expect("received");
    inside.write_all(&question).await.expect("sent");
    inside.shutdown().await.expect("closed");
    let mut answer = vec![];
    timeout(PATIENCE, outside.read_to_end(&mut answer)).await.expect("in time").expect("received");
    assert_eq!((&question[..], &answer[..]), (&b"question"[..], &b"question"[..]));
}
