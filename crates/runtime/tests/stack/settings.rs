//! Settings of running connections and listeners, as far as the kernel's sockets have none to
//! compare with.

use crate::common::{
    Connected, FAR, NEAR, NEAR6, PORT, assert_same, connected, hosts, pattern, read_all, soon, until,
};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpListenerStream, TcpSocket};
use ackline_tcp_core::config::KeepAlive;
use ackline_tcp_core::policy::RtoResponse;
use ackline_tcp_core::policy::rto::{RtoPhase, RtoStep, RtoView};
use ackline_tcp_core::{ConnConfig, ListenOn};
use futures_core::Stream as _;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn buffers_of_a_running_transfer_grow_and_shrink() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    let sent = pattern(1, 4 << 20);
    let source = sent.clone();
    let writer = tokio::spawn(async move {
        for (part, piece) in source.chunks(100_000).enumerate() {
            let size = if part % 2 == 0 { 8_000 } else { 300_000 };
            near.set_send_buffer_size(size).expect("set");
            assert_eq!(near.send_buffer_size().expect("known"), size);
            near.write_all(piece).await.expect("written");
        }
        near.shutdown().await.expect("closed");
    });
    let (mut received, mut piece) = (Vec::new(), vec![0; 50_000]);
    for part in 0.. {
        let size = if part % 3 == 0 { 5_000 } else { 500_000 };
        far.set_recv_buffer_size(size).expect("set");
        assert_eq!(far.recv_buffer_size().expect("known"), size);
        match soon(far.read(&mut piece)).await.expect("read") {
            0 => break,
            read => received.extend_from_slice(&piece[..read]),
        }
    }
    writer.await.expect("no panic");
    assert_same(&received, &sent);
}

#[tokio::test]
async fn a_larger_receive_buffer_takes_more_from_a_sender_that_waits() {
    let mut narrow = ConnConfig::default();
    narrow.recv_buffer = 70_000;
    let Connected { near, far, .. } = connected(narrow).await;
    let unread = || far.info().expect("connected").unread_bytes;
    near.set_send_buffer_size(4 << 20).expect("connected");
    assert_eq!(near.try_write(&pattern(1, 250_000)).expect("room"), 250_000);
    until(|| unread() > 60_000).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(unread() <= 70_000);
    // As much as the window scale of the handshake can say.
    far.set_recv_buffer_size(200_000).expect("set");
    until(|| unread() == 2 * 65_535).await;
}

#[tokio::test]
async fn keep_alive_begins_and_ends_in_the_middle_of_a_connection() {
    let Connected { near, far, hosts, .. } = connected(ConnConfig::default()).await;
    assert_eq!(near.tcp_keepalive().expect("known"), None);
    let short = ackline_tcp_core::Duration::from_millis(10);
    let times = KeepAlive { idle: short, interval: short, count: 100, ..KeepAlive::default() };
    near.set_tcp_keepalive(&times).expect("set");
    assert_eq!(near.tcp_keepalive().expect("known"), Some(times));
    until(|| hosts.0.counters().tcp_keep_alive >= 2).await;
    near.set_keepalive(false).expect("set");
    let probes = hosts.0.counters().tcp_keep_alive;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(hosts.0.counters().tcp_keep_alive, probes);
    near.set_keepalive(true).expect("set");
    assert_eq!(near.tcp_keepalive().expect("known"), Some(KeepAlive::default()));
    let error = near.set_tcp_keepalive(&KeepAlive { count: 0, ..times }).expect_err("no probe at all");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    drop(far);
}

#[tokio::test]
async fn options_that_tokios_streams_lack() {
    let Connected { near, .. } = connected(ConnConfig::default()).await;
    near.set_tcp_user_timeout(None).expect("set");
    assert_eq!(near.tcp_user_timeout().expect("known"), None);
    near.set_tcp_user_timeout(Some(Duration::from_secs(9))).expect("set");
    assert_eq!(near.tcp_user_timeout().expect("known"), Some(Duration::from_secs(9)));
    near.set_tos_v4(0xb8).expect("set");
    assert_eq!(near.tos_v4().expect("known"), 0xb8);
    assert_eq!(near.set_tclass_v6(0xb8).expect_err("IPv4").kind(), ErrorKind::Unsupported);
    assert_eq!(near.set_tos_v4(256).expect_err("nine bits").kind(), ErrorKind::InvalidInput);
    near.set_cork(true).expect("set");
    assert!(near.cork().expect("known"));
}

/// The conventional response, counted.
#[derive(Debug)]
struct Counted(Arc<AtomicU32>);

impl RtoResponse for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.0.fetch_add(1, Ordering::Relaxed);
        RtoStep::conventional(view.flow.smss)
    }

    fn phase(&self) -> RtoPhase {
        RtoPhase::Open
    }
}

#[tokio::test]
async fn the_response_to_timeouts_is_swapped_in_the_middle_of_a_connection() {
    let mut config = ConnConfig::default();
    config.min_rto = ackline_tcp_core::Duration::from_millis(20);
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).connections(config).spawn().expect("a timer");
    let (far, driver) = Stack::builder(far).address(FAR).build().expect("a timer");
    let driver = tokio::spawn(driver);
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let (opened, _accepted) = (opened.expect("connected"), accepted.expect("accepted"));
    driver.abort();
    driver.await.expect_err("aborted");
    assert_eq!(opened.try_write(b"unheard").expect("room"), 7);
    until(|| opened.info().expect("open").timeouts >= 1).await;
    let asked = Arc::new(AtomicU32::new(0));
    let shared = asked.clone();
    opened.set_rto_response(&move || Box::new(Counted(shared.clone()))).expect("set");
    let name = opened.with_core(|conn, _| conn.rto_response().map(|response| response.name())).expect("open");
    assert_eq!(name, Some("counted"));
    until(|| asked.load(Ordering::Relaxed) >= 2).await;
}

#[tokio::test]
async fn names_are_resolved_by_the_system() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).address(NEAR6).spawn().expect("a timer");
    // A tunnel's end, which answers for the addresses of localhost, too.
    let far = Stack::builder(far).any_address().spawn().expect("a timer");
    let listener = far.listen(ListenOn::Any).expect("nobody else listens");
    let (opened, accepted) =
        soon(async { tokio::join!(near.connect("localhost:443"), listener.accept()) }).await;
    let (opened, (accepted, _)) = (opened.expect("connected"), accepted.expect("accepted"));
    let to: SocketAddr = opened.peer_addr().expect("known");
    assert!(to.ip().is_loopback() && to.port() == 443, "{to}");
    assert_eq!(accepted.local_addr().expect("known"), to);
}

#[tokio::test]
async fn a_bound_port_is_the_connections() {
    let (near, far) = hosts(ChannelConfig::default(), ConnConfig::default());
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let socket = TcpSocket::new_v4(&near).expect("a socket");
    socket.bind(SocketAddr::new(NEAR, 4_321)).expect("one of its own");
    socket.set_recv_buffer_size(12_345).expect("set");
    socket.configure(|config| config.sack = false);
    let (opened, accepted) = tokio::join!(socket.connect(SocketAddr::new(FAR, PORT)), listener.accept());
    let (opened, (_accepted, peer)) = (opened.expect("connected"), accepted.expect("accepted"));
    assert_eq!(peer, SocketAddr::new(NEAR, 4_321));
    assert_eq!(opened.recv_buffer_size().expect("known"), 12_345);
    assert!(!opened.info().expect("connected").sack);
    let again = TcpSocket::new_v4(&near).expect("a socket");
    again.bind(SocketAddr::new(NEAR, 4_321)).expect("nothing exists yet");
    let error = again.connect(SocketAddr::new(FAR, PORT)).await.expect_err("the same four-tuple");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_listener_is_a_stream_until_the_stack_ends() {
    let (near, far) = hosts(ChannelConfig::default(), ConnConfig::default());
    let mut stream = TcpListenerStream::new(far.listen(ListenOn::Port(PORT)).expect("a free port"));
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(soon(near.connect((FAR, PORT))).await.expect("connected"));
    }
    for opened in &mut opened {
        let next = soon(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx))).await.expect("not the end");
        let mut accepted = next.expect("accepted");
        assert_eq!(accepted.addresses().1, opened.addresses().0);
        accepted.write_all(b"x").await.expect("written");
        accepted.shutdown().await.expect("closed");
        assert_eq!(soon(read_all(opened)).await.expect("read"), b"x");
    }
    let waiting = tokio::spawn(async move {
        let last = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await.expect("one more");
        let end = poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await;
        (last.expect_err("the stack ends").kind(), end.is_none())
    });
    tokio::task::yield_now().await;
    far.shutdown(Duration::ZERO).await;
    assert_eq!(soon(waiting).await.expect("no panic"), (ErrorKind::NotConnected, true));
}
