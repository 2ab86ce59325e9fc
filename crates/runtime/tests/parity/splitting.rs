//! Halves of a stream.

use crate::{kind, on_both, waits};
use std::io::ErrorKind::WouldBlock;
use std::io::{IoSlice, IoSliceMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};

on_both! {
    async fn borrowed_halves_work_at_the_same_time(net) {
        let (mut client, mut server) = net.pair().await;
        {
            let (mut read, mut write) = client.split();
            let (mut from, mut to) = server.split();
            let (mut asked, mut told) = ([0; 3], [0; 3]);
            let outcomes = tokio::join!(
                write.write_all(b"ask"),
                read.read_exact(&mut told),
                to.write_all(b"say"),
                from.read_exact(&mut asked)
            );
            assert!(outcomes.0.is_ok() && outcomes.1.is_ok() && outcomes.2.is_ok() && outcomes.3.is_ok());
            assert_eq!((&asked, &told), (b"ask", b"say"));
            assert_eq!(read.local_addr().expect("known"), write.local_addr().expect("known"));
            assert_eq!(read.peer_addr().expect("known"), to.local_addr().expect("known"));
            assert!(AsRef::<TcpStream>::as_ref(&read).nodelay().is_ok());
        }
        client.write_all(b"whole").await.expect("it is one again");
    }

    async fn halves_do_what_streams_do(net) {
        let (client, server) = net.pair().await;
        let (mut read, write) = client.into_split();
        let (from, _to) = server.into_split();
        write.writable().await.expect("sound");
        assert!(write.ready(Interest::WRITABLE).await.expect("sound").is_writable());
        assert_eq!(write.try_write(b"ab").expect("room"), 2);
        assert_eq!(write.try_write_vectored(&[IoSlice::new(b"cd")]).expect("room"), 2);
        from.readable().await.expect("there");
        assert!(from.ready(Interest::READABLE).await.expect("sound").is_readable());
        let mut all = Vec::with_capacity(16);
        while all.len() < 4 {
            from.readable().await.expect("there");
            let read = match all.len() {
                0 => {
                    let mut one = [0; 1];
                    let read = from.try_read_vectored(&mut [IoSliceMut::new(&mut one)]);
                    read.inspect(|read| all.extend(&one[..*read]))
                }
                1 => {
                    let mut one = [0; 1];
                    from.try_read(&mut one).inspect(|read| all.extend(&one[..*read]))
                }
                _ => from.try_read_buf(&mut all),
            };
            assert!(read.is_ok() || kind(read) == Some(WouldBlock));
        }
        assert_eq!(all, b"abcd");
        assert!(waits(read.peek(&mut [0; 1])).await);
        assert_eq!(read.local_addr().expect("known"), from.peer_addr().expect("known"));
        assert_eq!(write.peer_addr().expect("known"), from.local_addr().expect("known"));
        write.as_ref().set_nodelay(true).expect("set");
        assert!(read.as_ref().nodelay().expect("known"));
    }

    async fn two_halves_make_a_stream_again(net) {
        let (client, mut server) = net.pair().await;
        let (read, write) = client.into_split();
        let client: TcpStream = read.reunite(write).expect("halves of one stream");
        let (read, write) = client.into_split();
        let mut client = write.reunite(read).expect("halves of one stream");
        client.write_all(b"x").await.expect("no FIN was sent");
        assert_eq!(server.read_u8().await.expect("read"), b'x');
    }

    async fn foreign_halves_come_back(net) {
        let ((one, mut first), (other, mut second)) = (net.pair().await, net.pair().await);
        let ((read, write), (foreign_read, foreign_write)) = (one.into_split(), other.into_split());
        let error = read.reunite(foreign_write).expect_err("of two streams");
        assert!(!error.to_string().is_empty());
        let (read, mut foreign_write) = (error.0, error.1);
        foreign_write.write_all(b"b").await.expect("usable");
        assert_eq!(second.read_u8().await.expect("read"), b'b');
        let error = write.reunite(foreign_read).expect_err("of two streams");
        let mut write = error.1;
        write.write_all(b"a").await.expect("usable");
        assert_eq!(first.read_u8().await.expect("read"), b'a');
        read.reunite(write).expect("halves of one stream");
    }

    async fn dropping_the_writing_half_closes_that_direction_alone(net) {
        let (client, mut server) = net.pair().await;
        let (mut read, mut write) = client.into_split();
        write.write_all(b"last").await.expect("written");
        drop(write);
        let mut asked = Vec::new();
        server.read_to_end(&mut asked).await.expect("the end");
        assert_eq!(asked, b"last");
        server.write_all(b"answer").await.expect("that direction is open");
        drop(server);
        let mut answer = Vec::new();
        read.read_to_end(&mut answer).await.expect("the end");
        assert_eq!(answer, b"answer");
    }

    async fn a_writing_half_that_is_forgotten_closes_nothing(net) {
        let (client, mut server) = net.pair().await;
        let (read, write) = client.into_split();
        write.forget();
        assert!(waits(server.read_u8()).await);
        drop(read);
        assert_eq!(kind(server.read_u8().await), Some(std::io::ErrorKind::UnexpectedEof));
    }
}
