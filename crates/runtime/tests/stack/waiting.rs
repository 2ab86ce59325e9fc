//! Back-pressure, and what happens when nothing comes.

use crate::common::{Connected, FAR, NEAR, PORT, assert_same, connected, pattern, read_all, soon};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::config::KeepAlive;
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn small_buffers() -> ConnConfig {
    let mut config = ConnConfig::default();
    config.send_buffer = 100_000;
    config.recv_buffer = 50_000;
    config
}

/// Writes until nothing more is taken for a while; how much was.
async fn fill(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while let Ok(written) =
        tokio::time::timeout(Duration::from_millis(50), stream.write(&bytes[taken..])).await
    {
        taken += written.expect("written");
    }
    taken
}

#[tokio::test]
async fn a_writer_waits_for_a_reader_that_does_not_read() {
    let Connected { mut near, mut far, .. } = connected(small_buffers()).await;
    let sent = pattern(1, 1_000_000);
    let taken = fill(&mut near, &sent).await;
    assert!((100_000..=150_000).contains(&taken), "the buffers hold 150,000 bytes, {taken} were taken");
    let unread = far.info().expect("connected").unread_bytes;
    assert!(unread <= 50_000, "the receive buffer holds {unread} bytes");

    let writer = tokio::spawn(async move {
        near.write_all(&sent[taken..]).await.expect("written");
        near.shutdown().await.expect("closed");
        sent
    });
    let received = soon(read_all(&mut far)).await.expect("read");
    assert_same(&received, &writer.await.expect("no panic"));
}

#[tokio::test]
async fn a_slow_reader_gets_everything() {
    let Connected { mut near, mut far, .. } = connected(small_buffers()).await;
    let sent = pattern(2, 400_000);
    let source = sent.clone();
    let writer = tokio::spawn(async move {
        near.write_all(&source).await.expect("written");
        near.shutdown().await.expect("closed");
    });
    let mut received = Vec::new();
    let mut piece = vec![0; 20_000];
    loop {
        let read = soon(far.read(&mut piece)).await.expect("read");
        if read == 0 {
            break;
        }
        received.extend_from_slice(&piece[..read]);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    writer.await.expect("no panic");
    assert_same(&received, &sent);
}

#[tokio::test]
async fn a_cancelled_read_or_write_loses_nothing() {
    let Connected { mut near, mut far, .. } = connected(small_buffers()).await;
    let sent = pattern(3, 300_000);
    let source = sent.clone();
    let writer = tokio::spawn(async move {
        let mut written = 0;
        while written < source.len() {
            let more = tokio::time::timeout(Duration::from_millis(1), near.write(&source[written..])).await;
            written += more.map_or(0, |more| more.expect("written"));
        }
        near.shutdown().await.expect("closed");
    });
    let (mut received, mut piece) = (Vec::new(), vec![0; 30_000]);
    loop {
        match tokio::time::timeout(Duration::from_micros(100), far.read(&mut piece)).await {
            Ok(read) => match read.expect("read") {
                0 => break,
                read => received.extend_from_slice(&piece[..read]),
            },
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
    writer.await.expect("no panic");
    assert_same(&received, &sent);
}

/// The far host's driver stops, with its device left open: a cable that goes nowhere.
async fn cut(connections: ConnConfig) -> (TcpStream, TcpStream) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).connections(connections).spawn().expect("a timerfd");
    let (far, driver) = Stack::builder(far).address(FAR).build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let streams = (opened.expect("connected"), accepted.expect("accepted").0);
    driver.abort();
    driver.await.expect_err("aborted");
    streams
}

#[tokio::test]
async fn a_peer_that_falls_silent_times_out() {
    let mut config = ConnConfig::default();
    config.user_timeout = Some(ackline_tcp_core::Duration::from_millis(300));
    config.min_rto = ackline_tcp_core::Duration::from_millis(20);
    let (mut near, _far) = cut(config).await;
    let start = tokio::time::Instant::now();
    near.write_all(b"unheard").await.expect("the send buffer takes it");
    let error = soon(near.read_u8()).await.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(300), "after {:?}", start.elapsed());
    assert!(near.info().expect("the handle is held").timeouts > 0);
}

/// Gives up after `count` unanswered probes, 20 ms apart.
fn eager_keep_alive(count: u8) -> ConnConfig {
    let mut config = ConnConfig::default();
    let interval = ackline_tcp_core::Duration::from_millis(20);
    config.keep_alive = Some(KeepAlive { idle: interval, interval, count, ..KeepAlive::default() });
    config
}

#[tokio::test]
async fn keep_alive_finds_a_dead_peer() {
    let (mut near, _far) = cut(eager_keep_alive(3)).await;
    let error = soon(near.read_u8()).await.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn keep_alive_leaves_a_living_peer_alone() {
    let Connected { mut near, mut far, .. } = connected(eager_keep_alive(100)).await;
    let quiet = tokio::time::timeout(Duration::from_millis(300), near.read_u8()).await;
    assert!(quiet.is_err(), "the peer said nothing, and the connection lives");
    far.write_u8(7).await.expect("written");
    assert_eq!(soon(near.read_u8()).await.expect("read"), 7);
}

#[tokio::test]
async fn an_idle_stack_does_nothing() {
    let Connected { near: _near, far: _far, hosts, .. } = connected(ConnConfig::default()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = hosts.0.stats().driver_runs;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let runs = hosts.0.stats().driver_runs - before;
    assert!(runs <= 2, "{runs} runs without work");
}
