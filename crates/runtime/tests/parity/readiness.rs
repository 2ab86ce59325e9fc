//! Waiting, trying, looking.

use crate::{kind, on_both, waits};
use std::future::poll_fn;
use std::io::ErrorKind::WouldBlock;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest, ReadBuf};

on_both! {
    async fn a_fresh_stream_is_writable_and_not_readable(net) {
        let (client, _server) = net.pair().await;
        client.writable().await.expect("sound");
        assert!(client.ready(Interest::WRITABLE).await.expect("sound").is_writable());
        let ready = client.ready(Interest::READABLE | Interest::WRITABLE).await.expect("sound");
        assert!(ready.is_writable() && !ready.is_readable(), "{ready:?}");
        assert!(!ready.is_read_closed() && !ready.is_write_closed() && !ready.is_error(), "{ready:?}");
        assert!(waits(client.readable()).await);
        assert_eq!(kind(client.try_read(&mut [0; 8])), Some(WouldBlock));
        assert!(waits(client.ready(Interest::ERROR)).await);
        assert!(waits(client.ready(Interest::READABLE | Interest::ERROR)).await);
    }

    async fn data_makes_a_stream_readable_until_it_is_read(net) {
        let (client, mut server) = net.pair().await;
        server.write_all(b"hello").await.expect("written");
        client.readable().await.expect("sound");
        let ready = client.ready(Interest::READABLE).await.expect("sound");
        assert!(ready.is_readable() && !ready.is_read_closed(), "{ready:?}");
        let mut buf = [0; 4];
        assert_eq!(client.try_read(&mut buf).expect("there"), 4);
        assert_eq!(&buf, b"hell");
        client.readable().await.expect("there is more");
        assert_eq!(client.try_read(&mut buf).expect("there"), 1);
        assert_eq!(kind(client.try_read(&mut buf)), Some(WouldBlock));
        assert!(waits(client.readable()).await);
    }

    async fn several_buffers_are_read_and_written_in_one_try(net) {
        let (client, server) = net.pair().await;
        server.writable().await.expect("sound");
        let bufs = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two ")];
        assert_eq!(server.try_write_vectored(&bufs).expect("there is room"), 8);
        assert_eq!(server.try_write(b"three").expect("there is room"), 5);
        let mut looked = [0; 13];
        while client.peek(&mut looked).await.expect("sound") < 13 {
            client.readable().await.expect("sound");
        }
        let (mut first, mut second) = ([0; 3], [0; 5]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(client.try_read_vectored(&mut bufs).expect("there"), 8);
        assert_eq!((&first, &second), (b"one", b" two "));
        let mut rest = Vec::with_capacity(64);
        assert_eq!(client.try_read_buf(&mut rest).expect("there"), 5);
        assert_eq!(rest, b"three");
    }

    async fn a_full_buffer_is_writable_again_when_the_peer_has_read(net) {
        let (client, mut server) = net.pair().await;
        let piece = vec![7; 64 << 10];
        let mut written = 0;
        // What is under way may make room for more.
        loop {
            match client.try_write(&piece) {
                Ok(more) => written += more,
                Err(error) => {
                    assert_eq!(error.kind(), WouldBlock);
                    if waits(client.writable()).await {
                        break;
                    }
                }
            }
        }
        let mut received = vec![0; written];
        server.read_exact(&mut received).await.expect("read");
        client.writable().await.expect("sound");
        assert!(client.try_write(&piece).expect("there is room") > 0);
    }

    async fn what_was_peeked_at_is_still_there(net) {
        let (client, mut server) = net.pair().await;
        assert!(waits(client.peek(&mut [0; 2])).await);
        server.write_all(b"abc").await.expect("written");
        let mut looked = [0; 2];
        for _ in 0..2 {
            assert_eq!(client.peek(&mut looked).await.expect("sound"), 2);
            assert_eq!(&looked, b"ab");
        }
        let mut space = [0; 8];
        let mut buf = ReadBuf::new(&mut space);
        assert_eq!(poll_fn(|cx| client.poll_peek(cx, &mut buf)).await.expect("sound"), 3);
        assert_eq!(buf.filled(), b"abc");
        let mut client = client;
        let mut all = [0; 3];
        client.read_exact(&mut all).await.expect("read");
        assert_eq!(&all, b"abc");
        server.shutdown().await.expect("closed");
        assert_eq!(client.peek(&mut looked).await.expect("the end"), 0);
    }

    async fn the_end_is_ready_to_be_read(net) {
        let (client, mut server) = net.pair().await;
        server.write_all(b"x").await.expect("written");
        server.shutdown().await.expect("closed");
        // Both have come.
        let ready = loop {
            let ready = client.ready(Interest::READABLE).await.expect("sound");
            if ready.is_read_closed() {
                break ready;
            }
            tokio::task::yield_now().await;
        };
        assert!(ready.is_readable(), "{ready:?}");
        let mut buf = [0; 8];
        assert_eq!(client.try_read(&mut buf).expect("the last byte"), 1);
        assert_eq!(client.try_read(&mut buf).expect("the end"), 0);
        client.readable().await.expect("the end stays");
        let ready = client.ready(Interest::WRITABLE).await.expect("sound");
        assert!(ready.is_writable() && !ready.is_write_closed(), "the other direction is open: {ready:?}");
    }

    async fn a_reset_is_ready_for_everything(net) {
        let (client, server) = net.pair().await;
        server.set_zero_linger().expect("set");
        drop(server);
        assert!(client.ready(Interest::ERROR).await.expect("told").is_error());
        let all = Interest::READABLE | Interest::WRITABLE | Interest::ERROR;
        let ready = client.ready(all).await.expect("told");
        assert!(ready.is_readable() && ready.is_writable() && ready.is_error(), "{ready:?}");
        assert!(ready.is_read_closed() && ready.is_write_closed(), "{ready:?}");
    }

    async fn what_is_not_asked_for_is_not_told(net) {
        let (client, mut server) = net.pair().await;
        server.write_all(b"x").await.expect("written");
        client.readable().await.expect("sound");
        let ready = client.ready(Interest::WRITABLE).await.expect("sound");
        assert!(ready.is_writable() && !ready.is_readable(), "{ready:?}");
    }

    async fn urgent_data_is_none(net) {
        let (client, mut server) = net.pair().await;
        #[cfg(target_os = "linux")]
        {
            server.write_all(b"x").await.expect("written");
            client.readable().await.expect("sound");
            assert!(waits(client.ready(Interest::PRIORITY)).await);
        }
    }

    async fn several_tasks_wait_for_the_same_thing(net) {
        let (client, mut server) = net.pair().await;
        let client: Arc<TcpStream> = Arc::new(client);
        let wait = || {
            let client = client.clone();
            tokio::spawn(async move { client.readable().await.expect("sound") })
        };
        let waiting = [wait(), wait(), wait()];
        let peeking = {
            let client = client.clone();
            tokio::spawn(async move { client.peek(&mut [0; 8]).await.expect("sound") })
        };
        tokio::task::yield_now().await;
        // One that gives up takes nobody's wake-up along.
        let given_up = wait();
        tokio::task::yield_now().await;
        given_up.abort();
        server.write_all(b"x").await.expect("written");
        for waiting in waiting {
            waiting.await.expect("woken");
        }
        assert_eq!(peeking.await.expect("woken"), 1);
    }

    async fn polling_wakes_its_task(net) {
        let (client, mut server) = net.pair().await;
        poll_fn(|cx| client.poll_write_ready(cx)).await.expect("sound");
        let first = poll_fn(|cx| Poll::Ready(client.poll_read_ready(cx).is_pending())).await;
        assert!(first, "nothing is there");
        let writer = tokio::spawn(async move {
            tokio::task::yield_now().await;
            server.write_all(b"x").await.expect("written");
            server
        });
        poll_fn(|cx| client.poll_read_ready(cx)).await.expect("sound");
        assert_eq!(client.try_read(&mut [0; 8]).expect("there"), 1);
        writer.await.expect("no panic");
    }
}
