//! Chunks: memory that is handed over instead of copied.

use crate::common::{Connected, assert_same, connected, connected_over, pattern, read_all, soon};
use ackline_runtime::TcpStream;
use ackline_runtime::device::channel::ChannelConfig;
use ackline_tcp_core::ConnConfig;
use bytes::Bytes;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A chunk, and what counts its owners.
fn counted(data: &[u8]) -> (Bytes, Arc<[u8]>) {
    struct Owner(Arc<[u8]>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let memory = Arc::from(data);
    (Bytes::from_owner(Owner(Arc::clone(&memory))), memory)
}

async fn all_chunks(stream: &mut TcpStream, max: usize) -> std::io::Result<Vec<Bytes>> {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.read_chunk(max).await? {
        assert!(!chunk.is_empty() && chunk.len() <= max);
        chunks.push(chunk);
    }
    Ok(chunks)
}

#[tokio::test]
async fn megabytes_pass_as_chunks_and_their_memory_is_returned() {
    for cable in [ChannelConfig::default(), ChannelConfig::default().plain()] {
        let Connected { mut near, mut far, .. } = connected_over(cable, ConnConfig::default()).await;
        let sent = pattern(1, 5_000_000);
        let (chunk, owners) = counted(&sent);
        let reader = tokio::spawn(async move { all_chunks(&mut far, 1 << 20).await.expect("read") });
        soon(near.write_bytes(chunk)).await.expect("written");
        near.shutdown().await.expect("closed");
        soon(near.flushed()).await.expect("acknowledged");
        assert_eq!(Arc::strong_count(&owners), 1);
        let chunks = soon(reader).await.expect("no panic");
        assert_same(&chunks.concat(), &sent);
    }
}

#[tokio::test]
async fn a_chain_of_chunks_relays_a_stream() {
    let Connected { mut near, far, hosts, listener, .. } = connected(ConnConfig::default()).await;
    let second = hosts.0.connect((crate::common::FAR, crate::common::PORT));
    let (onward, accepted) = tokio::join!(second, listener.accept());
    let (mut onward, (mut end, _)) = (onward.expect("connected"), accepted.expect("accepted"));
    let relay = tokio::spawn(async move {
        let (mut read, _write) = far.into_split();
        while let Some(chunk) = read.read_chunk(usize::MAX).await.expect("read") {
            onward.write_bytes(chunk).await.expect("written");
        }
        onward.shutdown().await.expect("closed");
        onward
    });
    let sent = pattern(2, 3_000_000);
    let writer = tokio::spawn({
        let sent = sent.clone();
        async move {
            near.write_all(&sent).await.expect("written");
            near.shutdown().await.expect("closed");
            near
        }
    });
    assert_same(&soon(read_all(&mut end)).await.expect("read"), &sent);
    soon(relay).await.expect("no panic");
    soon(writer).await.expect("no panic");
}

#[tokio::test]
async fn chunks_copies_and_places_alternate() {
    let Connected { near, far, .. } = connected(ConnConfig::default()).await;
    let sent = pattern(3, 2_000_000);
    let (mut read, _keep) = far.into_split();
    let (_keep_too, mut write) = near.into_split();
    let all = Bytes::from(sent.clone());
    let writer = tokio::spawn(async move {
        let mut rest = all;
        let mut turn = 0;
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min([100, 70_000, 9_000, 300_000, 1_000][turn % 5]));
            match turn % 3 {
                0 => write.write_bytes(part).await.expect("written"),
                1 => write.write_all(&part).await.expect("written"),
                _ => {
                    let mut left = part;
                    while !left.is_empty() {
                        let done = write.write_with(left.len(), |room| {
                            let mut written = 0;
                            for slice in room {
                                let n = slice.len().min(left.len() - written);
                                slice[..n].copy_from_slice(&left[written..written + n]);
                                written += n;
                            }
                            written
                        });
                        let done = done.await.expect("written");
                        left = left.slice(done..);
                    }
                }
            }
            turn += 1;
        }
        write.shutdown().await.expect("closed");
    });
    let mut received = Vec::new();
    let mut buffer = vec![0; 50_000];
    for turn in 0.. {
        let read = match turn % 3 {
            0 => match soon(read.read_chunk(40_000)).await.expect("read") {
                Some(chunk) => {
                    received.extend_from_slice(&chunk);
                    chunk.len()
                }
                None => 0,
            },
            1 => {
                let n = soon(read.read(&mut buffer)).await.expect("read");
                received.extend_from_slice(&buffer[..n]);
                n
            }
            _ => soon(read.with_readable(|pieces| {
                let there = pieces.concat();
                received.extend_from_slice(&there);
                (there.len(), there.len())
            }))
            .await
            .expect("read"),
        };
        if read == 0 {
            break;
        }
    }
    soon(writer).await.expect("no panic");
    assert_same(&received, &sent);
}

#[tokio::test]
async fn what_does_not_fit_stays_in_the_chunk() {
    let mut config = ConnConfig::default();
    (config.send_buffer, config.min_send_buffer) = (100_000, None);
    (config.recv_buffer, config.initial_recv_window) = (20_000, None);
    let Connected { mut near, mut far, .. } = connected(config).await;
    let (mut chunk, owners) = counted(&pattern(4, 1_000_000));
    let sent = chunk.clone();
    assert_eq!(near.try_write_bytes(&mut Bytes::new()).expect("nothing to do"), 0);
    let mut taken = 0;
    while let Ok(more) = near.try_write_bytes(&mut chunk) {
        taken += more;
        assert_eq!(chunk, sent[taken..]);
    }
    assert!((100_000..=120_000).contains(&taken), "{taken}: the send buffer and what has left");
    let error = near.try_write_bytes(&mut chunk).expect_err("it is full");
    assert_eq!((error.kind(), chunk.len()), (ErrorKind::WouldBlock, 1_000_000 - taken));
    let mut received = Vec::new();
    while received.len() < 1_000_000 {
        let more = soon(async {
            tokio::select! {
                biased;
                more = poll_fn(|cx| near.poll_write_bytes(cx, &mut chunk)), if !chunk.is_empty() => more.map(|_| None),
                more = far.read_chunk(9_000) => more,
            }
        });
        received.extend_from_slice(&more.await.expect("open").unwrap_or_default());
    }
    assert_same(&received, &sent);
    assert_eq!(far.try_read_chunk(100).expect_err("nothing more").kind(), ErrorKind::WouldBlock);
    assert_eq!(far.try_read_chunk(0).expect("nothing to do"), Some(Bytes::new()));
    drop((chunk, sent));
    soon(async {
        while Arc::strong_count(&owners) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_end_and_a_reset_come_after_what_arrived() {
    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.write_bytes(Bytes::from_static(b"the end")).await.expect("written");
    near.shutdown().await.expect("closed");
    assert_eq!(soon(far.read_chunk(3)).await.expect("read").expect("data"), b"the"[..]);
    assert_eq!(soon(all_chunks(&mut far, 100)).await.expect("read").concat(), b" end");
    assert_eq!(soon(far.read_chunk(100)).await.expect("still the end"), None);
    let error = near.write_bytes(Bytes::from_static(b"more")).await.expect_err("it is closed");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);

    let Connected { mut near, mut far, .. } = connected(ConnConfig::default()).await;
    near.write_bytes(Bytes::from_static(b"the end")).await.expect("written");
    soon(far.readable()).await.expect("data");
    near.abort();
    assert_eq!(soon(far.read_chunk(100)).await.expect("read").expect("data"), b"the end"[..]);
    let error = soon(far.read_chunk(100)).await.expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let mut chunk = Bytes::from_static(b"late");
    let error = far.try_write_bytes(&mut chunk).expect_err("a reset");
    assert_eq!((error.kind(), chunk.len()), (ErrorKind::ConnectionReset, 4));
}
