//! Listeners.

use crate::{kind, on_both, waits};
use std::future::poll_fn;
use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, ConnectionReset, InvalidInput};
use std::net::{IpAddr, Ipv4Addr};
use std::task::Poll;
use tokio::io::AsyncReadExt as _;

on_both! {
    async fn port_zero_is_replaced(net) {
        let (one, other): (TcpListener, TcpListener) =
            (net.bind((Net::SERVER, 0)).await.expect("bound"), net.bind((Net::SERVER, 0)).await.expect("bound"));
        let (one, other) = (one.local_addr().expect("bound"), other.local_addr().expect("bound"));
        assert_eq!((one.ip(), other.ip()), (Net::SERVER, Net::SERVER));
        assert!(one.port() != 0 && other.port() != 0 && one != other);
    }

    async fn a_place_is_taken_once(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let place = listener.local_addr().expect("bound");
        assert_eq!(kind(net.bind(place).await), Some(AddrInUse));
        drop(listener);
        net.bind(place).await.expect("free again");
    }

    async fn the_first_address_that_is_free_is_taken(net) {
        let taken = net.bind((Net::SERVER, 0)).await.expect("bound");
        let free = net.bind((Net::SERVER, 0)).await.expect("bound").local_addr().expect("bound");
        let places = [taken.local_addr().expect("bound"), free];
        let listener = net.bind(&places[..]).await.expect("one is free");
        assert_eq!(listener.local_addr().expect("bound"), free);
    }

    async fn an_address_of_somebody_else_is_not_available(net) {
        let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(kind(net.bind((foreign, 0)).await), Some(AddrNotAvailable));
    }

    async fn every_address_is_the_unspecified_one(net) {
        let listener = net.bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("bound");
        let at = listener.local_addr().expect("bound");
        assert!(at.ip().is_unspecified() && at.port() != 0);
        let (client, accepted) = tokio::join!(net.connect((Net::SERVER, at.port())), listener.accept());
        let (server, _) = accepted.expect("accepted");
        assert_eq!(server.local_addr().expect("known"), client.expect("connected").peer_addr().expect("known"));
    }

    async fn accept_tells_the_peer(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let to = listener.local_addr().expect("bound");
        assert!(waits(listener.accept()).await);
        let client = net.connect(to).await.expect("the handshake needs no accept");
        let (server, peer) = listener.accept().await.expect("accepted");
        assert_eq!(peer, client.local_addr().expect("known"));
        assert_eq!(peer, server.peer_addr().expect("known"));
    }

    async fn polling_accepts(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let to = listener.local_addr().expect("bound");
        assert!(poll_fn(|cx| Poll::Ready(listener.poll_accept(cx).is_pending())).await);
        let (client, accepted) = tokio::join!(net.connect(to), poll_fn(|cx| listener.poll_accept(cx)));
        let (_server, peer) = accepted.expect("accepted");
        assert_eq!(peer, client.expect("connected").local_addr().expect("known"));
    }

    async fn hop_limit_is_inherited(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        assert_eq!(listener.ttl().expect("known"), 64);
        listener.set_ttl(9).expect("set");
        assert_eq!(listener.ttl().expect("known"), 9);
        assert_eq!(kind(listener.set_ttl(0)), Some(InvalidInput));
        let (client, accepted) =
            tokio::join!(net.connect(listener.local_addr().expect("bound")), listener.accept());
        assert_eq!(accepted.expect("accepted").0.ttl().expect("known"), 9);
        assert_eq!(client.expect("connected").ttl().expect("known"), 64);
    }

    async fn a_dropped_listener_resets_whom_nobody_accepted(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let mut client = net.connect(listener.local_addr().expect("bound")).await.expect("connected");
        // The last segment of the handshake is there.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        drop(listener);
        assert_eq!(kind(client.read(&mut [0; 8]).await), Some(ConnectionReset));
    }
}
