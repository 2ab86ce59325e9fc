//! A driver that asks the device again and again instead of sleeping.

use crate::common::{FAR, NEAR, PORT, assert_same, pattern, soon, sooner_or_later};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::ListenOn;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A connection between two hosts of which the near one polls; and the near host.
async fn polling(limit: Duration) -> (Stack, TcpStream, TcpStream) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).busy_poll(limit).spawn().expect("a timerfd");
    let far = Stack::builder(far).address(FAR).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    (near, opened.expect("connected"), accepted.expect("accepted").0)
}

async fn exchange(near: &mut TcpStream, far: &mut TcpStream, rounds: u64) {
    for round in 0..rounds {
        let sent = pattern(round, 100);
        let mut there = vec![0; sent.len()];
        near.write_all(&sent).await.expect("written");
        soon(far.read_exact(&mut there)).await.expect("read");
        far.write_all(&there).await.expect("written");
        let mut back = vec![0; sent.len()];
        soon(near.read_exact(&mut back)).await.expect("read");
        assert_same(&back, &sent);
    }
}

#[tokio::test]
async fn it_polls_after_a_packet_and_then_sleeps() {
    let (stack, mut near, mut far) = polling(Duration::from_millis(20)).await;
    sooner_or_later(async || {
        exchange(&mut near, &mut far, 3).await;
        let before = stack.stats().driver_runs;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let polled = stack.stats().driver_runs - before;
        if polled > 20 { Ok(()) } else { Err(format!("{polled} runs in 5 ms")) }
    })
    .await;

    sooner_or_later(async || {
        // The delayed ACK has left, too.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = stack.stats().driver_runs;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let asleep = stack.stats().driver_runs - before;
        if asleep < 5 { Ok(()) } else { Err(format!("{asleep} runs while nothing happened")) }
    })
    .await;

    exchange(&mut near, &mut far, 3).await;
}

#[tokio::test]
async fn other_tasks_of_the_thread_go_on() {
    // It never sleeps, and the far host, both applications and a task of its own kind share the
    // thread with it.
    let (stack, mut near, mut far) = polling(Duration::MAX).await;
    let ticks = tokio::spawn(async {
        let mut ticks = 0;
        while ticks < 20 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            ticks += 1;
        }
        ticks
    });
    exchange(&mut near, &mut far, 200).await;
    assert_eq!(soon(ticks).await.expect("no panic"), 20);
    assert!(stack.stats().driver_runs > 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_on_another_thread_gets_the_stack() {
    let (_stack, mut near, mut far) = polling(Duration::MAX).await;
    let exchanging = tokio::spawn(async move { exchange(&mut near, &mut far, 200).await });
    soon(exchanging).await.expect("no panic");
}

#[tokio::test]
async fn timers_are_served_while_it_polls() {
    let (_stack, mut near, far) = polling(Duration::from_secs(5)).await;
    // Reset after the time to linger, for the far side does not close.
    near.set_linger(Some(Duration::from_millis(20))).expect("set");
    near.write_all(b"x").await.expect("written");
    drop(near);
    let mut far = far;
    let mut byte = [0; 2];
    assert_eq!(soon(far.read(&mut byte)).await.expect("read"), 1);
    let end = soon(async {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if let Err(error) = far.write(b"y").await {
                return error;
            }
        }
    });
    assert_eq!(end.await.kind(), std::io::ErrorKind::ConnectionReset);
}
