//! Sockets that are set up before they connect or listen.

use crate::{kind, on_both};
use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, ConnectionRefused, InvalidInput};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

on_both! {
    async fn options_are_kept(net) {
        let socket: TcpSocket = net.client_socket().expect("a socket");
        assert_eq!((socket.nodelay().expect("known"), socket.keepalive().expect("known")), (false, false));
        assert_eq!(socket.linger().expect("known"), None);
        socket.set_nodelay(true).expect("set");
        socket.set_keepalive(true).expect("set");
        socket.set_zero_linger().expect("set");
        socket.set_reuseaddr(true).expect("set");
        assert!(socket.nodelay().expect("known") && socket.keepalive().expect("known"));
        assert_eq!(socket.linger().expect("known"), Some(Duration::ZERO));
        assert!(socket.reuseaddr().expect("known"));
        socket.set_keepalive(false).expect("set");
        assert!(!socket.keepalive().expect("known"));
        assert!(socket.take_error().expect("known").is_none());
        assert_eq!(socket.local_addr().expect("known"), SocketAddr::from(([0, 0, 0, 0], 0)));
    }

    /// The kernel doubles what it is given, for its bookkeeping.
    async fn buffers_are_at_least_what_was_asked_for(net) {
        let socket = net.client_socket().expect("a socket");
        for size in [20_000, 100_000] {
            socket.set_send_buffer_size(size).expect("set");
            socket.set_recv_buffer_size(size).expect("set");
            let sizes = [socket.send_buffer_size().expect("known"), socket.recv_buffer_size().expect("known")];
            for found in sizes {
                assert!((size..=2 * size).contains(&found), "{found} for {size}");
            }
        }
        socket.set_send_buffer_size(1).expect("set");
        assert!(socket.send_buffer_size().expect("known") >= 2_048, "no less than makes sense");
    }

    async fn type_of_service(net) {
        let socket = net.client_socket().expect("a socket");
        assert_eq!(socket.tos_v4().expect("known"), 0);
        socket.set_tos_v4(0x10).expect("set");
        assert_eq!(socket.tos_v4().expect("known"), 0x10);
        socket.set_tos_v4(0xb8 | 3).expect("set");
        assert_eq!(socket.tos_v4().expect("known"), 0xb8, "ECN is TCP's own");
        // Without IPv6 in the kernel there is nothing to compare with.
        if let Ok(socket) = net.client_socket_v6() {
            socket.set_tclass_v6(0x20).expect("set");
            assert_eq!(socket.tclass_v6().expect("known"), 0x20);
            assert_eq!(kind(socket.set_tclass_v6(256)), Some(InvalidInput));
        }
        assert!(net.client_socket().expect("a socket").set_tclass_v6(0x20).is_err(), "of IPv6");
    }

    async fn a_listener_passes_its_options_on(net) {
        let socket = net.server_socket().expect("a socket");
        socket.set_nodelay(true).expect("set");
        socket.set_zero_linger().expect("set");
        socket.bind(SocketAddr::new(Net::SERVER, 0)).expect("bound");
        let listener: TcpListener = socket.listen(16).expect("listens");
        let to = listener.local_addr().expect("bound");
        assert!(to.ip() == Net::SERVER && to.port() != 0);
        let (client, accepted) = tokio::join!(net.connect(to), listener.accept());
        let (mut client, (mut server, _)) = (client.expect("connected"), accepted.expect("accepted"));
        assert!(server.nodelay().expect("known") && !client.nodelay().expect("known"));
        assert_eq!(server.linger().expect("known"), Some(Duration::ZERO));
        server.write_all(b"x").await.expect("written");
        assert_eq!(client.read_u8().await.expect("read"), b'x');
    }

    async fn a_connection_has_its_sockets_options_and_address(net) {
        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let socket = net.client_socket().expect("a socket");
        socket.set_nodelay(true).expect("set");
        socket.set_zero_linger().expect("set");
        socket.set_recv_buffer_size(30_000).expect("set");
        socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("bound");
        let to = listener.local_addr().expect("bound");
        let (client, accepted) = tokio::join!(socket.connect(to), listener.accept());
        let (client, (server, peer)): (TcpStream, _) = (client.expect("connected"), accepted.expect("accepted"));
        assert!(client.nodelay().expect("known"));
        assert_eq!(client.linger().expect("known"), Some(Duration::ZERO));
        assert_eq!(client.local_addr().expect("known"), peer);
        assert!(!server.nodelay().expect("known"));
    }

    async fn what_cannot_be_is_said(net) {
        let socket = net.client_socket().expect("a socket");
        let foreign = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
        assert_eq!(kind(socket.bind(foreign)), Some(AddrNotAvailable));
        socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("bound");
        assert_eq!(kind(socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))), Some(InvalidInput));

        let listener = net.bind((Net::SERVER, 0)).await.expect("bound");
        let taken = listener.local_addr().expect("bound");
        let second = net.server_socket().expect("a socket");
        let outcome = second.bind(taken).and_then(|()| second.listen(1));
        assert_eq!(kind(outcome), Some(AddrInUse));
        drop(listener);
        assert_eq!(kind(socket.connect(taken).await), Some(ConnectionRefused));
    }
}
