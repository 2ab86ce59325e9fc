//! No application keeps the driver, or other applications, from running.

use crate::common::{FAR, NEAR, PORT, assert_same, pattern, read_all, soon};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Bytes of a turn in these tests.
const TURN: usize = 200_000;
/// Of each write and read.
const CHUNK: usize = 30_000;
/// What a test looks at, at least.
const MUCH: usize = 20 << 20;

/// Two hosts whose applications have turns of `turn` bytes, and `count` connections between them.
/// Buffers are so large that nothing else stops a writer for long.
async fn connections(turn: usize, count: usize) -> (Vec<(TcpStream, TcpStream)>, [Stack; 2]) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let mut config = ConnConfig::default();
    config.send_buffer = 32 << 20;
    let host = |device, address| {
        let builder = Stack::builder(device).address(address).turn(turn);
        builder.connections(config.clone()).spawn().expect("a timerfd and random numbers")
    };
    let (near, far) = (host(near, NEAR), host(far, FAR));
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let mut streams = Vec::new();
    for _ in 0..count {
        let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
        streams.push((opened.expect("connected"), accepted.expect("accepted").0));
    }
    (streams, [near, far])
}

/// The most that `act` did between two looks of a task that looks whenever it may run. `act` adds
/// what it does, until that is [`MUCH`].
async fn most_at_once<F>(act: impl FnOnce(Arc<AtomicUsize>) -> F) -> usize
where
    F: Future<Output = ()> + Send + 'static,
{
    let done = Arc::new(AtomicUsize::new(0));
    let actor = tokio::spawn(act(done.clone()));
    // A task like any other, in the same queue: the test's own future comes last.
    let watcher = tokio::spawn(async move {
        let (mut before, mut most) = (0, 0);
        poll_fn(|cx| {
            let now = done.load(Ordering::Relaxed);
            most = most.max(now - before);
            before = now;
            if now >= MUCH {
                return Poll::Ready(most);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    });
    let most = soon(watcher).await.expect("no panic");
    actor.abort();
    most
}

async fn drain(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 20];
    while stream.read(&mut buffer).await.expect("read") > 0 {}
}

/// What a writer that never waits by itself writes before others run.
async fn written_at_once(turn: usize) -> usize {
    let (mut streams, _hosts) = connections(turn, 1).await;
    let (mut near, far) = streams.remove(0);
    tokio::spawn(drain(far));
    most_at_once(|done| async move {
        loop {
            near.write_all(&[7; CHUNK]).await.expect("written");
            done.fetch_add(CHUNK, Ordering::Relaxed);
        }
    })
    .await
}

#[tokio::test]
async fn a_writer_leaves_the_thread_to_others_after_its_turn() {
    let most = written_at_once(TURN).await;
    assert!(most <= TURN + CHUNK, "{most} bytes");
    // Without turns tokio's budget is all that stops it.
    let most = written_at_once(usize::MAX).await;
    assert!(most > 2 * TURN, "{most} bytes");
}

#[tokio::test]
async fn a_reader_leaves_the_thread_to_others_after_its_turn() {
    let (mut streams, hosts) = connections(TURN, 1).await;
    let (mut near, mut far) = streams.remove(0);
    tokio::spawn(async move { while near.write_all(&[7; 1 << 20]).await.is_ok() {} });
    let most = most_at_once(|done| async move {
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = far.read(&mut buffer).await.expect("read");
            done.fetch_add(read, Ordering::Relaxed);
            // So slow that there is always more.
            black_box(buffer.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
        }
    })
    .await;
    assert!(most <= TURN, "{most} bytes");
    assert!(hosts[1].stats().turn_waits > 0, "it never had to wait");
}

#[tokio::test]
async fn a_loop_of_readiness_and_trying_has_turns_too() {
    let (mut streams, _hosts) = connections(TURN, 1).await;
    let (near, far) = streams.remove(0);
    tokio::spawn(drain(far));
    let most = most_at_once(|done| async move {
        loop {
            near.writable().await.expect("alive");
            if let Ok(written) = near.try_write(&[7; CHUNK]) {
                done.fetch_add(written, Ordering::Relaxed);
            }
        }
    })
    .await;
    assert!(most <= TURN + CHUNK, "{most} bytes");
}

#[tokio::test]
async fn packets_that_a_turn_leaves_behind_are_a_backlog() {
    for (time, counts) in [(Duration::ZERO, true), (Duration::MAX, false)] {
        let (near, far) = Channel::pair(ChannelConfig::default());
        let near = Stack::builder(near).address(NEAR).spawn().expect("a timerfd and random numbers");
        let far = Stack::builder(far).address(FAR).backlog_time(time).spawn().expect("as before");
        let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
        let mut streams = Vec::new();
        // Each sends a packet: more than a turn receives.
        for _ in 0..200 {
            let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
            streams.push((opened.expect("connected"), accepted.expect("accepted").0));
        }
        for (opened, _) in &streams {
            assert_eq!(opened.try_write(&[7; 100]).expect("an empty buffer"), 100);
        }
        for (_, accepted) in &mut streams {
            soon(accepted.read_exact(&mut [0; 100])).await.expect("all of it");
        }
        assert_eq!(far.stats().device_backlogs > 0, counts);
    }
}

#[tokio::test]
async fn trying_never_waits() {
    let (mut streams, hosts) = connections(TURN, 1).await;
    let (near, _far) = streams.remove(0);
    near.set_send_buffer_size(4 << 20).expect("connected");
    let mut written = 0;
    while written < 10 * TURN {
        written += near.try_write(&[7; CHUNK]).expect("there is room");
    }
    assert_eq!(hosts[0].stats().turn_waits, 0);
}

#[tokio::test]
async fn busy_connections_share_a_turn_whatever_they_write_at_once() {
    let (streams, _hosts) = connections(1 << 20, 4).await;
    let written: Vec<_> = streams
        .into_iter()
        .zip([1_000, 8 << 10, 64 << 10, 1 << 20])
        .map(|((mut near, far), chunk)| {
            tokio::spawn(drain(far));
            let written = Arc::new(AtomicUsize::new(0));
            let sum = written.clone();
            tokio::spawn(async move {
                let data = vec![7; chunk];
                loop {
                    sum.fetch_add(near.write(&data).await.expect("written"), Ordering::Relaxed);
                }
            });
            written
        })
        .collect();
    let all = || written.iter().map(|sum| sum.load(Ordering::Relaxed));
    soon(async {
        while all().sum::<usize>() < 4 * MUCH {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
    let least = all().skip(1).min().expect("there are four");
    let most = all().max().expect("there are four");
    assert!(most <= 2 * least, "{:?}", all().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_turn_of_a_crowd_is_as_long_as_one_of_a_few() {
    let (streams, _hosts) = connections(TURN, 100).await;
    let most = most_at_once(|done| async move {
        let mut tasks = tokio::task::JoinSet::new();
        for (mut near, far) in streams {
            tasks.spawn(drain(far));
            let done = done.clone();
            tasks.spawn(async move {
                loop {
                    let written = near.write(&[7; CHUNK]).await.expect("written");
                    done.fetch_add(written, Ordering::Relaxed);
                }
            });
        }
        tasks.join_next().await;
    })
    .await;
    assert!(most <= 4 * TURN, "{most} bytes");
}

/// The most that a reader of bulk data got between two rounds of its runtime: a task that yields
/// runs once in each, and the future of `block_on`, and whoever waits for I/O, no more often. Both
/// hosts of the flow are on the runtime, so packets wake drivers without any I/O.
async fn most_in_a_round() -> usize {
    let (mut streams, _hosts) = connections(1 << 20, 1).await;
    let (mut near, mut far) = streams.remove(0);
    tokio::spawn(async move { while near.write_all(&[7; 256 << 10]).await.is_ok() {} });
    let read = Arc::new(AtomicUsize::new(0));
    let sum = read.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 256 << 10];
        loop {
            sum.fetch_add(far.read(&mut buffer).await.expect("read"), Ordering::Relaxed);
        }
    });
    let watcher = tokio::spawn(async move {
        let (mut before, mut most) = (0, 0);
        while before < 4 * MUCH {
            tokio::task::yield_now().await;
            let now = read.load(Ordering::Relaxed);
            most = most.max(now - before);
            before = now;
        }
        most
    });
    soon(watcher).await.expect("no panic")
}

/// Without rounds in between, 61 polls of tasks move some ten MiB.
const ROUND: usize = 8 << 20;

#[tokio::test]
async fn bulk_data_lets_the_runtime_go_round() {
    let most = most_in_a_round().await;
    assert!(most <= ROUND, "{most} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bulk_data_lets_a_runtime_with_workers_go_round() {
    let most = tokio::spawn(most_in_a_round()).await.expect("no panic");
    assert!(most <= ROUND, "{most} bytes");
}

async fn exchange(turn: usize) {
    const LENGTH: usize = 1 << 20;
    let (streams, hosts) = connections(turn, 3).await;
    let mut tasks = Vec::new();
    for (seed, (near, far)) in streams.into_iter().enumerate() {
        for (seed, stream) in [(seed, near), (seed + 100, far)] {
            tasks.push(tokio::spawn(async move {
                let (mut read, mut write) = stream.into_split();
                let sent = pattern(seed as u64, LENGTH);
                let (received, ()) = tokio::join!(read_all(&mut read), async {
                    write.write_all(&sent).await.expect("written");
                    write.shutdown().await.expect("shut down");
                });
                (seed, received.expect("read"))
            }));
        }
    }
    for task in tasks {
        let (seed, received) = soon(task).await.expect("no panic");
        assert_same(&received, &pattern(((seed + 100) % 200) as u64, LENGTH));
    }
    assert!(hosts[0].stats().turn_waits > 0, "nobody had to wait");
}

#[tokio::test]
async fn no_wake_up_is_lost_on_one_thread() {
    exchange(1_000).await;
    exchange(100_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    exchange(1_000).await;
    exchange(100_000).await;
}

#[tokio::test]
async fn small_writes_leave_together_and_a_lone_one_at_once() {
    const SMALL: usize = 1_000;
    let (mut streams, hosts) = connections(1 << 20, 1).await;
    let (mut near, mut far) = streams.remove(0);
    near.set_nodelay(true).expect("alive");
    let packets = || hosts[0].stats().device.tx_packets;
    let before = packets();
    near.write_all(&[7; SMALL]).await.expect("written");
    assert_eq!(packets(), before + 1, "it did not wait for the driver");
    // No other task runs meanwhile.
    for _ in 0..60 {
        near.write_all(&[7; SMALL]).await.expect("written");
    }
    assert!(packets() < before + 5, "{} packets for 61 writes", packets() - before);
    let mut there = [0; 61 * SMALL];
    soon(far.read_exact(&mut there)).await.expect("nothing more has to be written");
    assert!(hosts[0].counters().tcp_auto_corking > 0);
}

#[tokio::test]
async fn who_waits_for_its_turn_hears_that_the_driver_is_gone() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let (near, driver) = Stack::builder(near).address(NEAR).turn(9_000).build().expect("a timerfd");
    let driver = tokio::spawn(driver);
    let far = Stack::builder(far).address(FAR).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, _accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let mut stream = opened.expect("connected");
    let mut written = 0;
    // No other task runs on this thread before the turn is used up.
    let mut nobody = Context::from_waker(Waker::noop());
    while let Poll::Ready(wrote) = pin!(stream.write(&[7; 3_000])).poll(&mut nobody) {
        written += wrote.expect("written");
    }
    assert_eq!((written, near.stats().turn_waits), (9_000, 1));
    let writer = tokio::spawn(async move { stream.write(&[7]).await });
    driver.abort();
    let error = soon(writer).await.expect("no panic").expect_err("nobody drives the stack");
    assert_eq!(error.kind(), std::io::ErrorKind::NetworkDown);
}
