//! Accepting in three steps.

use crate::common::{FAR, FAR6, NEAR, NEAR6, PORT, read_all, soon, until};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Incoming, Refusal, Stack};
use ackline_tcp_core::{ConnConfig, Duration, EndpointConfig, ListenOn};
use std::future::{pending, poll_fn};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt as _;

/// A client whose SYN is repeated soon, and a host that answers for every address and holds its
/// SYNs.
fn hosts(change: impl FnOnce(&mut EndpointConfig)) -> (Stack, Stack, Incoming) {
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let mut config = ConnConfig::default();
    config.initial_rto = Duration::from_millis(20);
    config.syn_retries = 2;
    let near = Stack::builder(near).address(NEAR).address(NEAR6).connections(config).spawn();
    let far = Stack::builder(far).address(FAR).address(FAR6).any_address().configure(change).spawn();
    let (near, far) = (near.expect("a timer"), far.expect("a timer"));
    let incoming = far.listen(ListenOn::Any).expect("nobody else").incoming().expect("a device");
    (near, far, incoming)
}

#[tokio::test]
async fn a_client_is_connected_when_the_program_has_accepted() {
    let (near, far, incoming) = hosts(|_| {});
    for to in [SocketAddr::new(FAR, PORT), "203.0.113.5:443".parse().unwrap(), SocketAddr::new(FAR6, 9)] {
        let client = {
            let near = near.clone();
            tokio::spawn(async move {
                let mut stream = near.connect(to).await?;
                stream.write_all(b"hello").await?;
                stream.shutdown().await?;
                read_all(&mut stream).await
            })
        };
        let syn = soon(incoming.next()).await.expect("a SYN");
        assert_eq!(syn.local_addr(), to);
        assert!([NEAR, NEAR6].contains(&syn.peer_addr().ip()));
        assert_eq!((syn.syn().ttl, syn.syn().options.mss.is_some()), (64, true));
        let repeats = far.counters().held_syn_repeats;
        // The upstream takes its time, and the client repeats its SYN in vain.
        let upstream = async {
            until(|| far.counters().held_syn_repeats > repeats).await;
            7
        };
        assert_eq!(soon(syn.hold(upstream)).await.expect("the client waits"), 7);
        assert!(!client.is_finished());
        assert_eq!((far.stats().held_syns, far.stats().connections), (1, 0));
        let mut stream = soon(syn.accept()).await.expect("connected");
        assert_eq!(stream.local_addr().expect("known"), to);
        assert_eq!(soon(read_all(&mut stream)).await.expect("read"), b"hello");
        stream.write_all(b"answer").await.expect("sent");
        stream.shutdown().await.expect("closed");
        assert_eq!(soon(client).await.expect("no panic").expect("connected"), b"answer");
        assert_eq!(far.stats().held_syns, 0);
    }
}

#[tokio::test]
async fn a_refusal_reaches_the_client() {
    let (near, _far, incoming) = hosts(|_| {});
    let foreign: SocketAddr = "203.0.113.5:443".parse().unwrap();
    let own = SocketAddr::new(FAR, PORT);
    let table = [
        (own, Some(Refusal::Rst), ErrorKind::ConnectionRefused),
        (SocketAddr::new(FAR6, PORT), Some(Refusal::Unreachable), ErrorKind::ConnectionRefused),
        // Dropped.
        (foreign, None, ErrorKind::ConnectionRefused),
        // A soft error, which counts when the client gives up (RFC 1122, section 4.2.3.9).
        (foreign, Some(Refusal::Unreachable), ErrorKind::HostUnreachable),
        (foreign, Some(Refusal::Drop), ErrorKind::TimedOut),
    ];
    for (to, how, kind) in table {
        let near = near.clone();
        let mut client = tokio::spawn(async move { near.connect(to).await.map(drop) });
        // Whatever comes again is refused again.
        let refused = loop {
            tokio::select! {
                syn = incoming.next() => match how {
                    Some(how) => syn.expect("a SYN").refuse(how),
                    None => drop(syn),
                },
                done = &mut client => break done,
            }
        };
        let refused = refused.expect("no panic").expect_err("refused");
        assert_eq!(refused.kind(), kind, "{to} {how:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_too_slow_is_told_and_so_is_the_client() {
    let (near, far, incoming) = hosts(|host| host.held_syn_timeout = Duration::from_millis(50));
    let client = tokio::spawn(async move { near.connect((FAR, PORT)).await.map(drop) });
    let syn = soon(incoming.next()).await.expect("a SYN");
    let error = soon(syn.hold(pending::<()>())).await.expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(soon(syn.accept()).await.expect_err("gone").kind(), ErrorKind::NotConnected);
    let refused = soon(client).await.expect("no panic").expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(far.counters().held_syns_expired, 1);
}

/// What the client hears of an accept that nobody waits for any more.
#[tokio::test]
async fn an_accept_that_is_dropped_resets_the_client() {
    let (near, far) = Channel::pair(ChannelConfig::default().queue(1, 10_000));
    let far = Stack::builder(far).address(FAR).spawn().expect("a timer");
    let near = Stack::builder(near).address(NEAR).spawn().expect("a timer");
    let incoming = far.listen(ListenOn::Port(PORT)).expect("free").incoming().expect("a device");
    let client = tokio::spawn(async move {
        let mut stream = near.connect((FAR, PORT)).await?;
        read_all(&mut stream).await
    });
    let syn = soon(incoming.next()).await.expect("a SYN");
    let mut accept = Box::pin(syn.accept());
    // The SYN-ACK leaves; its ACK may be there or not.
    poll_fn(|cx| {
        assert!(accept.as_mut().poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(accept);
    let error = soon(client).await.expect("no panic").expect_err("reset");
    assert!([ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset].contains(&error.kind()), "{error:?}");
    until(|| far.stats().connections + far.stats().half_open == 0).await;
}

#[tokio::test]
async fn who_waits_is_told_that_the_device_is_gone_and_of_a_shutdown() {
    let (device, other) = Channel::pair(ChannelConfig::default());
    let (stack, driver) = Stack::builder(device).address(FAR).build().expect("a timer");
    let driver = tokio::spawn(driver);
    let near = Stack::builder(other).address(NEAR).spawn().expect("a timer");
    let incoming = stack.listen(ListenOn::Any).expect("nobody else").incoming().expect("a device");
    let client = {
        let near = near.clone();
        tokio::spawn(async move { near.connect((FAR, PORT)).await.map(drop) })
    };
    let syn = soon(incoming.next()).await.expect("a SYN");
    let waiting = tokio::spawn(async move { incoming.next().await.map(drop) });
    let holding = tokio::spawn(async move { syn.hold(pending::<()>()).await });
    tokio::task::yield_now().await;
    driver.abort();
    for told in [soon(waiting).await, soon(holding).await] {
        assert_eq!(told.expect("no panic").expect_err("no device").kind(), ErrorKind::NetworkDown);
    }
    client.abort();

    let (near, far, incoming) = hosts(|_| {});
    let client = tokio::spawn(async move { near.connect((FAR, PORT)).await.map(drop) });
    let syn = soon(incoming.next()).await.expect("a SYN");
    let waiting = tokio::spawn(async move { incoming.next().await.map(drop) });
    let holding = tokio::spawn(async move { syn.cancelled().await });
    tokio::task::yield_now().await;
    soon(far.shutdown(std::time::Duration::from_secs(1))).await;
    assert_eq!(
        soon(waiting).await.expect("no panic").expect_err("shut down").kind(),
        ErrorKind::NotConnected
    );
    assert_eq!(soon(holding).await.expect("no panic").kind(), ErrorKind::ConnectionAborted);
    assert_eq!(
        soon(client).await.expect("no panic").expect_err("refused").kind(),
        ErrorKind::ConnectionRefused
    );
}

/// A thousand clients at once, each of which is answered when its upstream has connected.
#[tokio::test]
async fn a_crowd_is_held_and_all_of_it_is_served() {
    const CLIENTS: usize = 1_000;
    let (near, far, incoming) = hosts(|_| {});
    let near = {
        // The crowd's own SYNs need not be hasty.
        let config = ConnConfig::default();
        (near, std::sync::Arc::new(config))
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (near, config) = near.clone();
            tokio::spawn(async move {
                let mut stream = near.connect_with((FAR, PORT), config).await?;
                read_all(&mut stream).await
            })
        })
        .collect();
    let mut held = vec![];
    while held.len() < CLIENTS {
        held.push(soon(incoming.next()).await.expect("a SYN"));
    }
    assert_eq!(far.stats().held_syns, CLIENTS);
    for syn in held {
        tokio::spawn(async move {
            let mut stream = syn.accept().await?;
            stream.write_all(b"served").await?;
            stream.shutdown().await
        });
    }
    for client in clients {
        assert_eq!(soon(client).await.expect("no panic").expect("served"), b"served");
    }
    assert_eq!((far.stats().held_syns, far.counters().held_syns_full), (0, 0));
}
