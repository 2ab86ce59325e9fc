//! How connections end: dropped, aborted, lingering, and with the whole stack.

use crate::common::{Connected, FAR, PORT, assert_same, connected, hosts, pattern, read_all, soon, until};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_tcp_core::{ConnConfig, ListenOn, State};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Waits until `stack` has no connection left, TIME-WAIT included.
async fn forgotten(stack: &Stack) {
    let left = || {
        let stats = stack.stats();
        stats.connections + stats.time_wait
    };
    until(|| left() == 0).await;
}

fn brief_time_wait() -> ConnConfig {
    let mut config = ConnConfig::default();
    config.time_wait = ackline_tcp_core::Duration::from_millis(50);
    config
}

#[tokio::test]
async fn a_dropped_stream_still_delivers_what_was_written() {
    let Connected { mut near, mut far, hosts, .. } = connected(brief_time_wait()).await;
    near.set_send_buffer_size(4 << 20).expect("connected");
    let sent = pattern(1, 2 << 20);
    near.write_all(&sent).await.expect("written");
    drop(near);
    assert_same(&soon(read_all(&mut far)).await.expect("the end, not a reset"), &sent);
    drop(far);
    forgotten(&hosts.0).await;
    forgotten(&hosts.1).await;
}

#[tokio::test]
async fn dropping_with_unread_data_resets() {
    let Connected { near, mut far, hosts, .. } = connected(ConnConfig::default()).await;
    far.write_all(b"nobody reads this").await.expect("written");
    until(|| near.info().expect("connected").unread_bytes > 0).await;
    drop(near);
    let error = soon(read_all(&mut far)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(hosts.0.stats().connections, 0);
}

#[tokio::test]
async fn an_aborted_connection_is_reset_at_the_other_end() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.abort();
    let kinds = [
        near.read_u8().await.expect_err("aborted").kind(),
        near.write_u8(1).await.expect_err("aborted").kind(),
        near.shutdown().await.expect_err("aborted").kind(),
    ];
    assert_eq!(kinds, [ErrorKind::ConnectionAborted; 3]);
    assert_eq!(soon(far.read_u8()).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    assert_eq!(soon(far.flushed()).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_reset_wakes_reader_and_writer() {
    let Connected { near, far, .. } = connected(ConnConfig::default()).await;
    let (mut read, mut write) = near.into_split();
    let reader = tokio::spawn(async move { read_all(&mut read).await });
    let writer = tokio::spawn(async move {
        let endless = vec![0; 1 << 20];
        loop {
            if let Err(error) = write.write_all(&endless).await {
                return error;
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!reader.is_finished() && !writer.is_finished(), "both wait");
    far.abort();
    let error = soon(reader).await.expect("no panic").expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(soon(writer).await.expect("no panic").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_came_before_a_reset_can_be_read() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.write_all(b"last").await.expect("written");
    until(|| far.info().expect("connected").unread_bytes == 4).await;
    near.abort();
    until(|| far.info().expect("held").state == State::Closed).await;
    let mut got = [0; 4];
    soon(far.read_exact(&mut got)).await.expect("there before the reset");
    assert_eq!(&got, b"last");
    assert_eq!(soon(far.read_u8()).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn linger_zero_resets_on_drop() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.set_linger(Some(Duration::ZERO)).expect("set");
    assert_eq!(near.linger().expect("known"), Some(Duration::ZERO));
    near.write_all(b"may be lost").await.expect("written");
    drop(near);
    let mut bytes = Vec::new();
    let error = soon(far.read_to_end(&mut bytes)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_linger_limit_resets_a_peer_that_does_not_read() {
    let mut config = ConnConfig::default();
    config.recv_buffer = 65_536;
    let Connected { mut near, mut far, hosts, .. } = connected(config).await;
    near.set_linger(Some(Duration::from_millis(60))).expect("set");
    near.set_send_buffer_size(4 << 20).expect("connected");
    near.write_all(&pattern(1, 1 << 20)).await.expect("fits the send buffer");
    drop(near);
    assert_eq!(hosts.0.stats().connections, 1, "it closes in the background");
    forgotten(&hosts.0).await;
    until(|| far.info().expect("held").state == State::Closed).await;
    let error = soon(read_all(&mut far)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn shutdown_waits_for_the_connections_and_refuses_new_ones() {
    let Connected { mut near, mut far, hosts: (near_host, far_host), listener } =
        connected(ConnConfig::default()).await;
    let ending = {
        let far_host = far_host.clone();
        tokio::spawn(async move { far_host.shutdown(Duration::from_secs(10)).await })
    };
    let error = soon(listener.accept()).await.expect_err("shutting down");
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    assert_eq!(far_host.connect((FAR, 1)).await.expect_err("shutting down").kind(), ErrorKind::NotConnected);
    assert_eq!(
        far_host.listen(ListenOn::Port(9)).expect_err("shutting down").kind(),
        ErrorKind::NotConnected
    );
    let refused = soon(near_host.connect((FAR, PORT))).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    far.write_all(b"still open").await.expect("written");
    drop(far);
    assert_eq!(soon(read_all(&mut near)).await.expect("read"), b"still open");
    assert!(!ending.is_finished(), "the near end is open");
    drop(near);
    assert!(soon(ending).await.expect("no panic"), "nothing had to be reset");
}

#[tokio::test]
async fn shutdown_resets_what_does_not_end_in_time() {
    let Connected { mut near, far: _far, hosts, .. } = connected(ConnConfig::default()).await;
    assert!(!soon(hosts.1.shutdown(Duration::from_millis(50))).await, "the far stream is still held");
    assert_eq!(soon(near.read_u8()).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    assert!(soon(hosts.1.shutdown(Duration::from_secs(5))).await, "nothing is left");
}

#[tokio::test]
async fn the_driver_ends_when_nothing_is_left_to_drive() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let (near, driver) = Stack::builder(near).address([10, 0, 0, 1]).build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let far = Stack::builder(far).address(FAR).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let (mut opened, (mut accepted, _)) = (opened.expect("connected"), accepted.expect("accepted"));
    let sent = pattern(1, 1 << 20);
    opened.set_send_buffer_size(4 << 20).expect("connected");
    opened.write_all(&sent).await.expect("written");
    drop((near, opened));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!driver.is_finished(), "a connection closes in the background");
    assert_same(&soon(read_all(&mut accepted)).await.expect("read"), &sent);
    drop(accepted);
    soon(driver).await.expect("no panic").expect("an orderly end");
}

/// The far peer answers each probe of its closed window, for as long as it is asked.
#[tokio::test]
async fn the_driver_ends_although_a_peer_never_reads() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address([10, 0, 0, 1]).options("orphan_timeout=100ms").expect("right");
    let (near, driver) = near.build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let far = Stack::builder(far).address(FAR).options("recv_buffer=64k").expect("right");
    let far = far.spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let (mut opened, (mut accepted, _)) = (opened.expect("connected"), accepted.expect("accepted"));
    opened.set_send_buffer_size(4 << 20).expect("connected");
    opened.write_all(&pattern(1, 1 << 20)).await.expect("fits the send buffer");
    drop(opened);
    let stats = near.stats();
    assert_eq!((stats.connections, stats.orphans), (1, 1));
    drop(near);
    soon(driver).await.expect("no panic").expect("an orderly end");
    let error = soon(read_all(&mut accepted)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn shutdown_resets_orphans() {
    let mut config = ConnConfig::default();
    config.recv_buffer = 65_536;
    let Connected { mut near, mut far, hosts, .. } = connected(config).await;
    near.set_send_buffer_size(4 << 20).expect("connected");
    near.write_all(&pattern(1, 1 << 20)).await.expect("fits the send buffer");
    drop(near);
    assert!(!soon(hosts.0.shutdown(Duration::from_millis(50))).await, "the far peer does not read");
    assert_eq!(hosts.0.stats().orphans, 0);
    let error = soon(read_all(&mut far)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn an_idle_stack_ends_with_its_last_handle() {
    let (near, _far) = Channel::pair(ChannelConfig::default());
    let (stack, driver) = Stack::builder(near).build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let other = stack.clone();
    let listener = other.listen(ListenOn::Port(PORT)).expect("a free port");
    drop((stack, other));
    tokio::task::yield_now().await;
    assert!(!driver.is_finished(), "a listener is left");
    drop(listener);
    soon(driver).await.expect("no panic").expect("an orderly end");
}

#[tokio::test]
async fn connections_that_come_and_go_leave_nothing_behind() {
    let (near, far) = hosts(ChannelConfig::default(), brief_time_wait());
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("accepted");
            let bytes = read_all(&mut stream).await.expect("read");
            stream.write_all(&bytes).await.expect("written");
        }
    });
    for n in 0..200 {
        let mut stream = soon(near.connect((FAR, PORT))).await.expect("connected");
        let sent = pattern(n, 100);
        stream.write_all(&sent).await.expect("written");
        stream.shutdown().await.expect("closed");
        assert_same(&soon(read_all(&mut stream)).await.expect("read"), &sent);
    }
    forgotten(&near).await;
    forgotten(&far).await;
    server.abort();
}
