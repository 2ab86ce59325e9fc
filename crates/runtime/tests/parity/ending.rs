//! How connections end, and which errors tell of it.

use crate::{kind, on_both};
use std::io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, InvalidInput, TimedOut};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};

on_both! {
    async fn one_direction_closes_and_the_other_goes_on(net) {
        let (mut client, mut server) = net.pair().await;
        client.write_all(b"question").await.expect("written");
        client.shutdown().await.expect("closed");
        assert_eq!(kind(client.write_all(b"more").await), Some(BrokenPipe));
        assert_eq!(kind(client.try_write(b"more")), Some(BrokenPipe));
        client.shutdown().await.expect("closed twice");
        let mut question = Vec::new();
        server.read_to_end(&mut question).await.expect("the end");
        assert_eq!(question, b"question");
        assert_eq!(server.read(&mut [0; 8]).await.expect("the end, again"), 0);
        server.write_all(b"answer").await.expect("written");
        server.shutdown().await.expect("closed");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("the end");
        assert_eq!(answer, b"answer");
        assert!(client.take_error().expect("known").is_none());
    }

    async fn a_reset_is_told_to_a_reader(net) {
        let (mut client, server) = net.pair().await;
        server.set_zero_linger().expect("set");
        drop(server);
        assert_eq!(kind(client.read(&mut [0; 8]).await), Some(ConnectionReset));
        assert!(client.take_error().expect("known").is_none(), "it was told");
        client.shutdown().await.expect("nothing is left to be closed");
    }

    async fn a_reset_is_told_to_a_writer(net) {
        let (mut client, server) = net.pair().await;
        server.set_zero_linger().expect("set");
        drop(server);
        client.ready(Interest::ERROR).await.expect("told");
        assert_eq!(kind(client.write(b"x").await), Some(ConnectionReset));
        assert!(client.take_error().expect("known").is_none(), "it was told");
    }

    async fn a_reset_is_told_to_one_who_peeks_or_tries(net) {
        for attempt in 0..3 {
            let (client, server) = net.pair().await;
            server.set_zero_linger().expect("set");
            drop(server);
            client.ready(Interest::ERROR).await.expect("told");
            let told = match attempt {
                0 => client.peek(&mut [0; 8]).await,
                1 => client.try_read(&mut [0; 8]),
                _ => client.try_write(b"x"),
            };
            assert_eq!(kind(told), Some(ConnectionReset), "attempt {attempt}");
        }
    }

    async fn the_error_is_taken_once(net) {
        let (client, server) = net.pair().await;
        server.set_zero_linger().expect("set");
        drop(server);
        client.ready(Interest::ERROR).await.expect("told");
        let error = client.take_error().expect("known").expect("an error");
        assert_eq!(error.kind(), ConnectionReset);
        assert!(client.take_error().expect("known").is_none());
    }

    async fn unread_data_makes_a_drop_a_reset(net) {
        let (mut client, server) = net.pair().await;
        client.write_all(b"unread").await.expect("written");
        server.readable().await.expect("it came");
        drop(server);
        assert_eq!(kind(client.read(&mut [0; 8]).await), Some(ConnectionReset));
    }

    async fn nobody_listens(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let to = listener.local_addr().expect("bound");
        drop(listener);
        assert_eq!(kind(net.connect(to).await), Some(ConnectionRefused));
    }

    async fn the_addresses_are_tried_in_turn(net) {
        let listener: TcpListener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let good = listener.local_addr().expect("bound");
        let gone = net.bind((Net::SERVER, 0)).await.expect("bound").local_addr().expect("bound");
        let client: TcpStream = net.connect(&[gone, good][..]).await.expect("the second accepts");
        assert_eq!(client.peer_addr().expect("known"), good);
        assert_eq!(kind(net.connect(&[gone, gone][..]).await), Some(ConnectionRefused));
        assert_eq!(kind(net.connect(&[] as &[SocketAddr]).await), Some(InvalidInput));
        assert_eq!(kind(net.bind(&[] as &[SocketAddr]).await), Some(InvalidInput));
    }

    async fn an_address_may_be_text(net) {
        let listener = net.bind(format!("{}:0", Net::SERVER)).await.expect("bound");
        let port = listener.local_addr().expect("bound").port();
        net.connect((Net::SERVER.to_string(), port)).await.expect("connected");
        net.connect((Net::SERVER.to_string().as_str(), port)).await.expect("connected");
        net.connect(format!("{}:{port}", Net::SERVER)).await.expect("connected");
        net.connect((Net::SERVER, port)).await.expect("connected");
        assert_eq!(kind(net.connect("no port").await), Some(InvalidInput));
    }

    async fn a_peer_that_falls_silent_times_out(net) {
        let (mut client, server) = net.pair().await;
        net.set_user_timeout(&client, Duration::from_millis(300));
        if !net.silence(&server, "ending::kernel::a_peer_that_falls_silent_times_out") {
            return;
        }
        client.write_all(b"unheard").await.expect("the buffer takes it");
        assert_eq!(kind(client.read(&mut [0; 8]).await), Some(TimedOut));
    }
}
