//! Opening connections: by address, by any address, in vain.

use crate::common::{FAR, FAR6, NEAR, PORT, hosts, pattern, read_all, socket, soon, until};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_tcp_core::{AcceptConfig, ConnConfig, Duration, ListenOn, Target};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn default_hosts() -> (Stack, Stack) {
    hosts(ChannelConfig::default(), ConnConfig::default())
}

#[tokio::test]
async fn both_ends_know_both_addresses() {
    let (near, far) = default_hosts();
    let listener = far.listen(ListenOn::Address(socket(FAR6, PORT))).expect("a free port");
    let (opened, accepted) =
        soon(async { tokio::join!(near.connect((FAR6, PORT)), listener.accept()) }).await;
    let (opened, (accepted, peer)) = (opened.expect("connected"), accepted.expect("accepted"));
    assert_eq!(opened.addresses().1, socket(FAR6, PORT));
    assert_eq!(accepted.addresses().0, socket(FAR6, PORT));
    assert_eq!(accepted.addresses().1, opened.addresses().0);
    assert_eq!(peer, opened.addresses().0);
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_refuses() {
    let (near, _far) = default_hosts();
    let error = soon(near.connect((FAR, PORT))).await.expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(near.stats().connections, 0, "a refused connection leaves nothing behind");
}

#[tokio::test]
async fn a_host_that_does_not_answer_times_out() {
    let mut impatient = ConnConfig::default();
    impatient.initial_rto = Duration::from_millis(10);
    impatient.syn_retries = 2;
    let (near, _silent) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).connections(impatient).spawn().expect("a timerfd");
    let error = soon(near.connect((FAR, PORT))).await.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let stats = near.stats();
    assert_eq!(stats.device.tx_packets, 3, "a SYN and two retries");
    assert!(stats.timer_expiries >= 3);
    assert!(stats.timer_lateness.count() >= 3);
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_said_at_once() {
    let (near, _far) = default_hosts();
    let kind =
        |error: std::io::Result<_>| error.map(|_: ackline_runtime::TcpStream| ()).map_err(|e| e.kind());
    assert_eq!(kind(near.connect((FAR, 0)).await), Err(ErrorKind::InvalidInput));
    let mut foreign = Target::new(socket(FAR, PORT));
    foreign.local_address = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    assert_eq!(kind(near.connect_to(foreign, Arc::default()).await), Err(ErrorKind::AddrNotAvailable));
}

#[tokio::test]
async fn an_abandoned_connect_leaves_nothing_behind() {
    let (near, _silent) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).spawn().expect("a timerfd");
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), near.connect((FAR, PORT)));
    waiting.await.expect_err("nobody answers");
    assert_eq!(near.stats().connections, 0);
}

#[tokio::test]
async fn a_place_is_listened_on_once() {
    let (_near, far) = default_hosts();
    let first = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let kind = |on| far.listen(on).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(kind(ListenOn::Port(PORT)), Err(ErrorKind::AddrInUse));
    assert_eq!(kind(ListenOn::Address(socket(NEAR, PORT))), Err(ErrorKind::AddrNotAvailable));
    drop(first);
    far.listen(ListenOn::Port(PORT)).expect("free again");
}

#[tokio::test]
async fn a_tunnels_end_takes_every_address_and_port() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let near = Stack::builder(near).address(NEAR).spawn().expect("a timerfd");
    let far = Stack::builder(far).any_address().spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Any).expect("nobody else listens");
    for (address, port) in [([198, 51, 100, 7], 443), ([203, 0, 113, 9], 25)] {
        let wanted = socket(address.into(), port);
        let (opened, accepted) = soon(async { tokio::join!(near.connect(wanted), listener.accept()) }).await;
        let (mut opened, (mut accepted, _)) = (opened.expect("connected"), accepted.expect("accepted"));
        assert_eq!(accepted.addresses().0, wanted);
        accepted.write_all(b"through").await.expect("written");
        accepted.shutdown().await.expect("closed");
        assert_eq!(soon(read_all(&mut opened)).await.expect("read"), b"through");
    }
}

#[tokio::test]
async fn several_tasks_accept_from_one_listener() {
    let (near, far) = default_hosts();
    let listener = Arc::new(far.listen(ListenOn::Port(PORT)).expect("a free port"));
    let acceptors: Vec<_> = (0..8)
        .map(|_| {
            let listener = listener.clone();
            tokio::spawn(async move { listener.accept().await.expect("accepted").1 })
        })
        .collect();
    let mut opened = Vec::new();
    for _ in 0..8 {
        opened.push(soon(near.connect((FAR, PORT))).await.expect("connected"));
    }
    let mut peers = Vec::new();
    for acceptor in acceptors {
        peers.push(soon(acceptor).await.expect("no panic"));
    }
    let mut expected: Vec<_> = opened.iter().map(|stream| stream.addresses().0).collect();
    peers.sort();
    expected.sort();
    assert_eq!(peers, expected);
}

#[tokio::test]
async fn an_accept_given_up_takes_no_connection_along() {
    let (near, far) = default_hosts();
    let listener = Arc::new(far.listen(ListenOn::Port(PORT)).expect("a free port"));
    let accept = || {
        let listener = listener.clone();
        tokio::spawn(async move { listener.accept().await.expect("accepted").0 })
    };
    let mut opened = Vec::new();
    for _ in 0..50 {
        let (given_up, kept) = (accept(), accept());
        tokio::task::yield_now().await;
        opened.push(soon(near.connect((FAR, PORT))).await.expect("connected"));
        // It may have got the connection already.
        given_up.abort();
        if given_up.await.is_err() {
            soon(kept).await.expect("no panic");
        } else {
            kept.abort();
        }
    }
}

#[tokio::test]
async fn data_that_came_before_accept_is_there() {
    let (near, far) = default_hosts();
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let sent = pattern(1, 50_000);
    let mut opened = soon(near.connect((FAR, PORT))).await.expect("connected");
    opened.write_all(&sent).await.expect("written");
    opened.shutdown().await.expect("closed");
    soon(opened.flushed()).await.expect("all is acknowledged");
    let (mut accepted, _) = soon(listener.accept()).await.expect("accepted");
    assert_eq!(soon(read_all(&mut accepted)).await.expect("read"), sent);
}

#[tokio::test]
async fn a_dropped_listener_resets_whom_nobody_accepted() {
    let (near, far) = default_hosts();
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let mut opened = soon(near.connect((FAR, PORT))).await.expect("connected");
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    drop(listener);
    let error = soon(read_all(&mut opened)).await.expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let error = soon(near.connect((FAR, PORT))).await.expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_full_queue_of_a_listener_does_not_grow() {
    let (near, far) = default_hosts();
    let mut narrow = AcceptConfig::default();
    narrow.backlog = 2;
    let listener = far.listen_with(ListenOn::Port(PORT), narrow).expect("a free port");
    let attempts: Vec<_> = (0..5)
        .map(|_| {
            let near = near.clone();
            tokio::spawn(async move {
                let mut stream = near.connect((FAR, PORT)).await?;
                read_all(&mut stream).await
            })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let mut served = 0;
    while let Ok(accepted) =
        tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await
    {
        drop(accepted.expect("accepted"));
        served += 1;
    }
    assert_eq!(served, 2, "the queue holds two");
    assert_eq!(far.counters().tcp_out_rsts, 0, "nobody is reset for being one too many");
    for attempt in attempts {
        attempt.abort();
    }
}

/// Sends its number and reads it back.
async fn ask(near: Stack, number: u32) -> std::io::Result<u32> {
    let mut stream = near.connect((FAR, PORT)).await?;
    stream.write_u32(number).await?;
    stream.read_u32().await
}

#[tokio::test]
async fn thousands_who_connect_at_once_are_all_served() {
    const CLIENTS: u32 = 3_000;
    let mut config = ConnConfig::default();
    // SYNs that find the backlog full come again soon.
    config.initial_rto = Duration::from_millis(100);
    let (near, far) = hosts(ChannelConfig::default(), config);
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(ask(near.clone(), number))).collect();
    // The backlog fills while the application does something else, and SYNs that found it full come
    // again.
    until(|| far.counters().listen_overflows > 0).await;
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("accepted");
            tokio::spawn(async move {
                let number = stream.read_u32().await.expect("a number");
                stream.write_u32(number).await.expect("written");
            });
        }
    });
    for (number, client) in clients.into_iter().enumerate() {
        let answer = soon(client).await.expect("no panic");
        assert_eq!(answer.expect("served") as usize, number);
    }
    for host in [near, far] {
        // A FIN that was sent again may find its connection forgotten, and be answered by an RST;
        // that ends nothing.
        assert_eq!(host.counters().tcp_estab_resets, 0);
    }
    server.abort();
}
