//! On a runtime with worker threads, where the driver hands the stack over to the applications that
//! it woke.

use crate::common::{FAR, PORT, assert_same, connected, hosts, pattern, read_all, soon};
use ackline_registry::Registry;
use ackline_runtime::TcpStream;
use ackline_runtime::device::channel::ChannelConfig;
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn settings() -> ConnConfig {
    Registry::default().conn_config()
}

/// Sends back what comes, at most `most` bytes at once.
async fn echo(mut stream: TcpStream, most: usize) {
    let mut data = vec![0; most];
    while let Ok(read @ 1..) = stream.read(&mut data).await {
        stream.write_all(&data[..read]).await.expect("written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_wake_up_is_lost_between_tasks_and_driver() {
    const CONNECTIONS: u64 = 6;
    // More than may be handed over to at once, and fewer at the end, with sizes of all kinds.
    let (near, far) = hosts(ChannelConfig::default(), settings());
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let server = tokio::spawn(async move {
        for most in 0..CONNECTIONS {
            let (stream, _) = listener.accept().await.expect("accepted");
            tokio::spawn(echo(stream, 16 << (2 * most)));
        }
    });
    let clients = (0..CONNECTIONS).map(|seed| {
        let near = near.clone();
        tokio::spawn(async move {
            let mut stream = near.connect((FAR, PORT)).await.expect("connected");
            for (round, size) in pattern(seed, 300).into_iter().enumerate() {
                let sent = pattern(round as u64, 1 + usize::from(size) * (round % 40));
                let mut received = vec![0; sent.len()];
                let (mut reads, mut writes) = stream.split();
                let (read, written) =
                    soon(async { tokio::join!(reads.read_exact(&mut received), writes.write_all(&sent)) })
                        .await;
                read.expect("read");
                written.expect("written");
                assert_same(&received, &sent);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("no panic");
    }
    server.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_data_arrives_whole_in_both_directions() {
    let c = connected(settings()).await;
    let (mut near_reads, mut near_writes) = c.near.into_split();
    let (mut far_reads, mut far_writes) = c.far.into_split();
    let (there, back) = (pattern(1, 20 << 20), pattern(2, 20 << 20));
    let (sent_there, sent_back) = (there.clone(), back.clone());
    let writers = [
        tokio::spawn(async move {
            near_writes.write_all(&sent_there).await.expect("written");
            near_writes.shutdown().await.expect("shut down");
            near_writes
        }),
        tokio::spawn(async move {
            for piece in sent_back.chunks(10_000) {
                far_writes.write_all(piece).await.expect("written");
            }
            far_writes.shutdown().await.expect("shut down");
            far_writes
        }),
    ];
    let near = tokio::spawn(async move { read_all(&mut near_reads).await.expect("read") });
    let far = tokio::spawn(async move { read_all(&mut far_reads).await.expect("read") });
    assert_same(&soon(far).await.expect("no panic"), &there);
    assert_same(&soon(near).await.expect("no panic"), &back);
    for writer in writers {
        writer.await.expect("no panic");
    }
}

/// One task is woken, reads a byte, and then does something else for long; the other connection
/// does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_goes_on_without_an_application_that_does_not_come_back() {
    let c = connected(settings()).await;
    let (near, accepted) = tokio::join!(c.hosts.0.connect((FAR, PORT)), c.listener.accept());
    let (mut near, (far, _)) = (near.expect("connected"), accepted.expect("accepted"));
    let (mut slow, mut feeder) = (c.near, c.far);
    tokio::spawn(echo(far, 1 << 16));
    tokio::spawn(async move {
        let data = vec![7; 1 << 20];
        while feeder.write_all(&data).await.is_ok() {}
    });
    let busy = tokio::spawn(async move {
        let mut byte = [0];
        for _ in 0..200 {
            slow.read_exact(&mut byte).await.expect("read");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        slow
    });
    let mut byte = [0];
    for round in 0..200_u8 {
        soon(async {
            near.write_all(&[round]).await.expect("written");
            near.read_exact(&mut byte).await.expect("read");
        })
        .await;
        assert_eq!(byte, [round]);
    }
    drop(busy.await.expect("no panic"));
}
