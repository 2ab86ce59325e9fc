//! What is set is what is got.

use crate::{kind, on_both};
use std::io::ErrorKind::InvalidInput;
use std::time::Duration;

on_both! {
    async fn addresses_are_each_others(net) {
        let (client, server): (TcpStream, TcpStream) = net.pair().await;
        assert_eq!(client.local_addr().expect("known"), server.peer_addr().expect("known"));
        assert_eq!(server.local_addr().expect("known"), client.peer_addr().expect("known"));
        assert_eq!(server.local_addr().expect("known").ip(), Net::SERVER);
        assert!(AsRef::<TcpStream>::as_ref(&client).local_addr().expect("known").is_ipv4());
    }

    async fn nodelay(net) {
        let (client, _server) = net.pair().await;
        assert!(!client.nodelay().expect("known"));
        for on in [true, true, false] {
            client.set_nodelay(on).expect("set");
            assert_eq!(client.nodelay().expect("known"), on);
        }
    }

    async fn hop_limit(net) {
        let (client, server) = net.pair().await;
        assert_eq!(client.ttl().expect("known"), 64);
        client.set_ttl(3).expect("set");
        assert_eq!((client.ttl().expect("known"), server.ttl().expect("known")), (3, 64));
        client.set_ttl(255).expect("set");
        for wrong in [0, 256] {
            assert_eq!(kind(client.set_ttl(wrong)), Some(InvalidInput));
        }
        assert_eq!(client.ttl().expect("known"), 255);
    }

    async fn quickack(net) {
        let (client, _server) = net.pair().await;
        for on in [true, false, true] {
            client.set_quickack(on).expect("set");
            assert_eq!(client.quickack().expect("known"), on);
        }
    }

    async fn linger(net) {
        let (client, _server) = net.pair().await;
        assert_eq!(client.linger().expect("known"), None);
        client.set_zero_linger().expect("set");
        assert_eq!(client.linger().expect("known"), Some(Duration::ZERO));
        for linger in [Some(Duration::from_secs(5)), None] {
            net.set_linger(&client, linger);
            assert_eq!(client.linger().expect("known"), linger);
        }
    }

    async fn no_error_is_pending_on_a_sound_connection(net) {
        let (client, _server) = net.pair().await;
        assert!(client.take_error().expect("known").is_none());
    }
}
