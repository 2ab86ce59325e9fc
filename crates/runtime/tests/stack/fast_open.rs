//! TCP Fast Open: data with the SYN.

use crate::common::{FAR, FAR6, PORT, hosts, pattern, socket, soon, until};
use ackline_runtime::device::channel::ChannelConfig;
use ackline_runtime::{Stack, TcpListener, TcpSocket, TcpStream};
use ackline_tcp_core::ConnConfig;
use ackline_tcp_core::config::FastOpen;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Two hosts with the default settings, and a listener with fast open.
fn served() -> (Stack, Stack, TcpListener) {
    let (near, far) = hosts(ChannelConfig::default(), ConnConfig::default());
    let socket_of = TcpSocket::new_v6(&far).expect("a socket");
    socket_of.set_fast_open(FastOpen::Server).expect("set");
    assert_eq!(socket_of.fast_open().expect("known"), FastOpen::Server);
    socket_of.bind(socket(IpAddr::from([0; 16]), PORT)).expect("bound");
    let listener = socket_of.listen(8).expect("a free port");
    (near, far, listener)
}

/// Sends `request` with connect, and echoes it. Returns whether it came with the SYN, as both sides
/// see it.
async fn echo(near: &Stack, listener: &TcpListener, to: IpAddr, request: &[u8]) -> (bool, bool) {
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut got = vec![0; request.len()];
        stream.read_exact(&mut got).await.expect("the request");
        assert!(got == request);
        stream.write_all(&got).await.expect("written");
        stream.shutdown().await.expect("closed");
        let syn_data = stream.info().expect("it lives").syn_data;
        assert_eq!(stream.read(&mut got).await.expect("the end"), 0);
        syn_data
    };
    let client = async {
        let mut stream = TcpStream::connect_with_data(near, (to, PORT), request).await.expect("connected");
        let syn_data = stream.info().expect("it lives").syn_data;
        let mut got = vec![];
        stream.read_to_end(&mut got).await.expect("the answer");
        assert!(got == request);
        syn_data
    };
    soon(async { tokio::join!(client, server) }).await
}

#[tokio::test]
async fn the_second_connection_sends_with_its_syn() {
    let (near, far, listener) = served();
    for to in [FAR, FAR6] {
        assert_eq!(echo(&near, &listener, to, b"hello").await, (false, false), "it has to ask for a cookie");
        assert_eq!(echo(&near, &listener, to, b"hello").await, (true, true));
        // The rest follows.
        assert_eq!(echo(&near, &listener, to, &pattern(1, 50_000)).await, (true, true));
    }
    assert_eq!(near.stats().fast_open_entries, 2);
    let (near, far_counters) = (near.counters(), far.counters());
    assert_eq!((near.tcp_fast_open_active, near.tcp_fast_open_active_fail), (4, 0));
    assert_eq!((far_counters.tcp_fast_open_cookie_reqd, far_counters.tcp_fast_open_passive), (2, 4));
    until(|| far.stats().fast_open_pending == 0).await;
}

#[tokio::test]
async fn keys_can_be_shared_and_changed_and_a_listener_can_do_without() {
    let (near, far, listener) = served();
    far.set_fast_open_keys([1; 16], None);
    assert_eq!(echo(&near, &listener, FAR, b"hello").await, (false, false));
    far.set_fast_open_keys([2; 16], Some([1; 16]));
    assert_eq!(echo(&near, &listener, FAR, b"hello").await, (true, true), "the key before counts");
    far.set_fast_open_keys([3; 16], Some([2; 16]));
    assert_eq!(echo(&near, &listener, FAR, b"hello").await, (true, true), "the cookie was renewed");
    far.set_fast_open_keys([5; 16], Some([4; 16]));
    assert_eq!(echo(&near, &listener, FAR, b"hello").await, (false, false));
    assert_eq!(near.counters().tcp_fast_open_active_fail, 1);
    assert_eq!(far.counters().tcp_fast_open_passive_alt_key, 2);
    drop(listener);
    let plain = far.listen(ackline_tcp_core::ListenOn::Port(PORT)).expect("free again");
    assert_eq!(echo(&near, &plain, FAR, b"hello").await, (false, false), "off by default");
}
