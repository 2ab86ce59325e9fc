//! UDP beside TCP.

use crate::common::{FAR, FAR6, NEAR, NEAR6, PORT, pattern, soon, until};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, UdpSocket};
use ackline_tcp_core::{ConnConfig, Duration};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::ReadBuf;

/// A cable with offload, and one without.
fn cables() -> [ChannelConfig; 2] {
    [ChannelConfig::default(), ChannelConfig::default().plain()]
}

fn hosts(channel: ChannelConfig) -> (Stack, Stack) {
    crate::common::hosts(channel, ConnConfig::default())
}

/// The near host, and one beyond that answers for every address.
fn with_tunnel(change: impl FnOnce(&mut ackline_tcp_core::EndpointConfig)) -> (Stack, Stack) {
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let near = Stack::builder(near).address(NEAR).address(NEAR6).spawn();
    let far = Stack::builder(far).any_address().configure(change).spawn();
    (near.expect("a timer"), far.expect("a timer"))
}

#[tokio::test]
async fn datagrams_pass_both_ways_over_both_families() {
    for cable in cables() {
        let (near, far) = hosts(cable);
        for (own, other) in [(NEAR, FAR), (NEAR6, FAR6)] {
            let server = UdpSocket::bind(&far, (other, PORT)).await.expect("free");
            let client = UdpSocket::bind(&near, (own, 0)).await.expect("free");
            let own = client.local_addr().expect("bound");
            let longest = if own.is_ipv4() { 1_472 } else { 1_452 };
            let mut buf = [0; 2_000];
            for len in [0, 1, 511, longest] {
                let data = pattern(len as u64, len);
                assert_eq!(soon(client.send_to(&data, (other, PORT))).await.expect("sent"), len);
                let (got, from) = soon(server.recv_from(&mut buf)).await.expect("received");
                assert_eq!((&buf[..got], from), (&data[..], own));
                soon(server.send_to(&data, from)).await.expect("sent");
                soon(client.readable()).await.expect("a datagram");
                let (peeked, _) = soon(client.peek_from(&mut buf)).await.expect("a datagram");
                assert_eq!(peeked, len);
                // What does not fit is lost.
                let (got, from) = client.try_recv_from(&mut buf[..600]).expect("a datagram");
                assert_eq!((&buf[..got], from), (&data[..len.min(600)], SocketAddr::new(other, PORT)));
                assert_eq!(client.try_recv(&mut buf).expect_err("no more").kind(), ErrorKind::WouldBlock);
            }
            let too_long = client.send_to(&vec![0; longest + 1], (other, PORT)).await;
            assert_eq!(too_long.expect_err("longer than the MTU").kind(), ErrorKind::InvalidInput);
            assert_eq!((client.stats().out_datagrams, server.stats().in_datagrams), (4, 4));
        }
        assert_eq!(near.stats().udp_sockets, 0, "they are dropped");
    }
}

#[tokio::test]
async fn a_connected_socket_is_refused_by_a_closed_port() {
    let (near, _far) = hosts(ChannelConfig::default());
    for to in [FAR, FAR6] {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(&near, any).await.expect("free");
        assert_eq!(socket.send(b"x").await.expect_err("to whom?").kind(), ErrorKind::NotConnected);
        socket.connect((to, PORT)).await.expect("an address");
        assert_eq!(socket.peer_addr().expect("connected"), SocketAddr::new(to, PORT));
        assert!([NEAR, NEAR6].contains(&socket.local_addr().expect("bound").ip()));
        socket.send(b"anybody there?").await.expect("sent");
        let refused = soon(socket.recv(&mut [0; 10])).await.expect_err("nobody is");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(socket.take_error().expect("none").is_none(), "it was told");
    }
}

#[tokio::test]
async fn addresses_are_taken_once_and_given_back() {
    let (near, _far) = hosts(ChannelConfig::default());
    let first = near.bind_udp(SocketAddr::new(NEAR, PORT)).expect("free");
    let taken = UdpSocket::bind(&near, (NEAR, PORT)).await.expect_err("taken");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        near.bind_udp(SocketAddr::new(FAR, PORT)).expect_err("not ours").kind(),
        ErrorKind::AddrNotAvailable
    );
    drop(first);
    near.bind_udp(SocketAddr::new(NEAR, PORT)).expect("free again");
    // TCP has ports of its own.
    near.listen(ackline_tcp_core::ListenOn::Port(PORT)).expect("free");
}

#[tokio::test]
async fn several_tasks_receive_from_one_socket() {
    let (near, far) = hosts(ChannelConfig::default());
    let server = Arc::new(UdpSocket::bind(&far, (FAR, PORT)).await.expect("free"));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.recv(&mut [0; 100]).await.expect("received") })
        })
        .collect();
    let polled = {
        let server = server.clone();
        tokio::spawn(async move {
            let mut buf = [0; 100];
            let mut buf = ReadBuf::new(&mut buf);
            poll_fn(|cx| server.poll_recv_from(cx, &mut buf)).await.expect("received");
            buf.filled().len()
        })
    };
    tokio::task::yield_now().await;
    let client = UdpSocket::bind(&near, (NEAR, 0)).await.expect("free");
    for _ in 0..5 {
        client.send_to(b"four", (FAR, PORT)).await.expect("sent");
    }
    for task in tasks.into_iter().chain([polled]) {
        assert_eq!(soon(task).await.expect("no panic"), 4);
    }
}

/// The device is full, and its far end takes a packet now and then: senders wait, and nothing is
/// lost.
#[tokio::test]
async fn a_sender_waits_for_a_full_device() {
    const DATAGRAMS: usize = 3_000;
    let (near, far) = hosts(ChannelConfig::default().queue(2, 10_000));
    let server = UdpSocket::bind(&far, (FAR, PORT)).await.expect("free");
    let client = UdpSocket::bind(&near, (NEAR, 0)).await.expect("free");
    let sender = tokio::spawn(async move {
        for _ in 0..DATAGRAMS {
            client.send_to(&[1; 1_000], (FAR, PORT)).await.expect("sent");
        }
        client
    });
    let mut buf = [0; 2_000];
    for number in 0..DATAGRAMS {
        let (len, _) = soon(server.recv_from(&mut buf)).await.expect("received");
        assert_eq!(len, 1_000, "{number}");
    }
    soon(sender).await.expect("no panic");
    assert_eq!(far.counters().udp_rcvbuf_errors, 0);
}

#[tokio::test]
async fn flows_to_any_address_are_accepted_and_answered_from_there() {
    let (near, far) = with_tunnel(|_| {});
    let incoming = far.incoming_udp().expect("nobody else");
    assert_eq!(far.incoming_udp().expect_err("taken").kind(), ErrorKind::AddrInUse);
    for (own, to) in [(NEAR, "203.0.113.5:443"), (NEAR6, "[2001:db8::5]:443")] {
        let client = UdpSocket::bind(&near, (own, 0)).await.expect("free");
        client.connect(to).await.expect("an address");
        client.send(b"question").await.expect("sent");
        let flow = soon(incoming.accept()).await.expect("a flow");
        assert_eq!(flow.local_addr().expect("known").to_string(), to);
        assert_eq!(flow.peer_addr().expect("known"), client.local_addr().expect("bound"));
        let mut buf = [0; 100];
        assert_eq!(soon(flow.recv(&mut buf)).await.expect("received"), 8);
        flow.send(b"answer").await.expect("sent");
        assert_eq!(soon(client.recv(&mut buf)).await.expect("received"), 6);
        // Dropped, it ends; the next datagram begins another one.
        drop(flow);
        assert_eq!(far.stats().udp_flows, 0);
        client.send(b"again").await.expect("sent");
        let flow = soon(poll_fn(|cx| incoming.poll_accept(cx))).await.expect("a flow");
        assert_eq!(soon(flow.recv(&mut buf)).await.expect("received"), 5);
        flow.refuse();
        let refused = soon(client.recv(&mut buf)).await.expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
    drop(incoming);
    let client = UdpSocket::bind(&near, (NEAR, 0)).await.expect("free");
    client.connect("203.0.113.5:443").await.expect("an address");
    client.send(b"x").await.expect("sent");
    assert_eq!(
        soon(client.recv(&mut [0; 9])).await.expect_err("refused").kind(),
        ErrorKind::ConnectionRefused
    );
}

#[tokio::test]
async fn an_idle_flow_ends_by_itself() {
    let (near, far) = with_tunnel(|config| config.udp_flow_timeout = Duration::from_millis(50));
    let incoming = far.incoming_udp().expect("nobody else");
    let client = UdpSocket::bind(&near, (NEAR, 0)).await.expect("free");
    client.send_to(b"x", "203.0.113.5:443").await.expect("sent");
    let flow = soon(incoming.accept()).await.expect("a flow");
    let mut buf = [0; 9];
    assert_eq!(soon(flow.recv(&mut buf)).await.expect("received"), 1);
    assert_eq!(soon(flow.recv(&mut buf)).await.expect_err("ended").kind(), ErrorKind::TimedOut);
    assert_eq!(far.counters().udp_flows_idle, 1);
}

#[tokio::test]
async fn who_waits_is_told_that_the_device_is_gone_and_of_a_shutdown() {
    let (device, other) = Channel::pair(ChannelConfig::default());
    let (stack, driver) = Stack::builder(device).address(NEAR).build().expect("a timer");
    let driver = tokio::spawn(driver);
    let socket = UdpSocket::bind(&stack, (NEAR, PORT)).await.expect("free");
    let incoming = stack.incoming_udp().expect("nobody else");
    let waiting = tokio::spawn(async move { (socket.recv(&mut [0; 9]).await, socket) });
    let accepting = tokio::spawn(async move { incoming.accept().await.map(drop) });
    tokio::task::yield_now().await;
    driver.abort();
    let (received, socket) = soon(waiting).await.expect("no panic");
    assert_eq!(received.expect_err("no device").kind(), ErrorKind::NetworkDown);
    assert_eq!(
        soon(accepting).await.expect("no panic").expect_err("no device").kind(),
        ErrorKind::NetworkDown
    );
    assert_eq!(socket.send_to(b"x", (FAR, 1)).await.expect_err("no device").kind(), ErrorKind::NetworkDown);
    drop(other);

    let (near, _far) = hosts(ChannelConfig::default());
    let incoming = near.incoming_udp().expect("nobody else");
    let accepting = tokio::spawn(async move { incoming.accept().await.map(drop) });
    tokio::task::yield_now().await;
    soon(near.shutdown(std::time::Duration::from_secs(1))).await;
    assert_eq!(
        soon(accepting).await.expect("no panic").expect_err("shut down").kind(),
        ErrorKind::NotConnected
    );
    assert_eq!(
        near.bind_udp(SocketAddr::new(NEAR, PORT)).expect_err("shut down").kind(),
        ErrorKind::NotConnected
    );
}

/// The last datagram leaves although nobody holds the stack any more.
#[tokio::test]
async fn what_was_sent_leaves_after_the_last_handle() {
    let (near, far) = hosts(ChannelConfig::default().queue(1, 10_000));
    let server = UdpSocket::bind(&far, (FAR, PORT)).await.expect("free");
    let client = UdpSocket::bind(&near, (NEAR, 0)).await.expect("free");
    for _ in 0..20 {
        client.send_to(b"x", (FAR, PORT)).await.expect("sent");
    }
    drop((client, near));
    let mut received = 0;
    while received < 20 {
        soon(server.recv(&mut [0; 9])).await.expect("received");
        received += 1;
    }
    until(|| server.stats().in_datagrams == 20).await;
}
