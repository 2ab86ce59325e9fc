//! Connections straight to their destination.

use crate::world::*;
use ackline_proxy::{Action, Config, Rule, Rules};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

#[tokio::test]
async fn data_pass_both_ways_over_either_version_of_ip() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    let inside = world.connect(port).await.expect("connected");
    talk(inside, server.accept().await.expect("a connection").0).await;
    let server = match tokio::net::TcpListener::bind("[::1]:0").await {
        Ok(server) => server,
        // A machine without IPv6.
        Err(error) => return assert_eq!(error.kind(), ErrorKind::AddrNotAvailable),
    };
    let port = server.local_addr().expect("bound").port();
    let inside = world.connect_to(address(OWN6, port)).await.expect("connected");
    talk(inside, server.accept().await.expect("a connection").0).await;
    world.until(|stats| stats.connections == 2 && stats.open_connections == 0).await;
    let stats = world.meter.read();
    assert_eq!((stats.bytes_up, stats.bytes_down), (10, 10));
}

#[tokio::test]
async fn bulk_passes_whole_in_both_directions_at_once() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    let inside = world.connect(port).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    exchange_bulk(inside, outside, 3_000_000).await;
    world.until(|stats| stats.finished == 1 && stats.open_connections == 0).await;
    assert_eq!(world.meter.read().bytes_up, 3_000_000);
}

#[tokio::test]
async fn what_the_other_side_does_not_take_yet_waits_and_arrives_whole() {
    // More than the kernel's socket takes.
    const BYTES: usize = 8_000_000;
    let world = world(Config::default());
    let (server, port) = listener().await;
    let inside = world.connect(port).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    let (mut inside_read, mut inside_write) = inside.into_split();
    let (mut outside_read, mut outside_write) = outside.into_split();
    let sent = pattern(BYTES);
    let data = sent.clone();
    let writers = tokio::spawn(async move {
        tokio::try_join!(
            async {
                inside_write.write_all(&data).await?;
                inside_write.shutdown().await
            },
            async {
                outside_write.write_all(&data).await?;
                outside_write.shutdown().await
            },
        )
    });
    let before = world.stalls().await;
    assert!(before < BYTES as u64, "all that was sent has found room");
    let (mut up, mut down) = (vec![], vec![]);
    let readers =
        async { tokio::try_join!(outside_read.read_to_end(&mut up), inside_read.read_to_end(&mut down)) };
    timeout(PATIENCE, readers).await.expect("in time").expect("no error");
    assert!(up == sent && down == sent, "what came is not what was sent");
    timeout(PATIENCE, writers).await.expect("in time").expect("no panic").expect("no error");
    world.until(|stats| stats.finished == 1 && stats.bytes_down == BYTES as u64).await;
}

#[tokio::test]
async fn connections_that_wait_for_their_clients_share_what_they_hold() {
    const BACKLOG: u32 = 256 << 10;
    let (device, end) = Channel::pair(ChannelConfig::default());
    let client = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let stack = Stack::builder(device).any_address().spawn().expect("a stack");
    let world = between(client, &stack, Config { backlog: BACKLOG.into(), ..Config::default() });
    let held = || {
        let connections = stack.snapshots(0, 10).0.into_iter().map(|conn| conn.info.tcp);
        connections.map(|tcp| tcp.unacked + tcp.notsent_bytes).max().expect("a connection")
    };
    let (server, port) = listener().await;
    let mut clients = vec![];
    for (count, share) in [(1, BACKLOG), (4, BACKLOG / 4)] {
        while clients.len() < count {
            let inside = world.connect(port).await.expect("connected");
            let (mut outside, _) = server.accept().await.expect("a connection");
            tokio::spawn(async move { while outside.write_all(&[7; 50_000]).await.is_ok() {} });
            clients.push(inside);
        }
        // The window has grown beyond what there is room for.
        for client in &mut clients {
            timeout(PATIENCE, client.read_exact(&mut vec![0; 4_000_000]))
                .await
                .expect("in time")
                .expect("data");
        }
        world.stalls().await;
        assert!((1..=share).contains(&held()), "{count} connections: {} bytes", held());
    }
}

#[tokio::test]
async fn clients_that_send_share_what_the_devices_queue_holds() {
    const WINDOWS: u32 = 256 << 10;
    let (device, end) = Channel::pair(ChannelConfig::default());
    let client = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let stack = Stack::builder(device).any_address().spawn().expect("a stack");
    let world = between(client, &stack, Config { windows: WINDOWS.into(), ..Config::default() });
    let (server, port) = listener().await;
    let mut servers = vec![];
    for (count, share) in [(1, WINDOWS), (4, WINDOWS / 4)] {
        while servers.len() < count {
            let mut inside = world.connect(port).await.expect("connected");
            servers.push(server.accept().await.expect("a connection").0);
            tokio::spawn(async move { while inside.write_all(&[7; 50_000]).await.is_ok() {} });
        }
        for _ in 0..20 {
            for server in &mut servers {
                timeout(PATIENCE, server.read_exact(&mut vec![0; 400_000]))
                    .await
                    .expect("in time")
                    .expect("data");
            }
        }
        let windows: Vec<_> =
            stack.snapshots(0, 10).0.into_iter().map(|conn| conn.info.tcp.rcv_wnd).collect();
        assert!(windows.len() == count && windows.iter().all(|window| *window <= share), "{windows:?}");
    }
}

#[tokio::test]
async fn a_few_bytes_take_little_room() {
    let (device, end) = Channel::pair(ChannelConfig::default());
    let client = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let stack = Stack::builder(device).any_address().spawn().expect("a stack");
    let world = between(client, &stack, Config::default());
    let (server, port) = listener().await;
    let mut inside = world.connect(port).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    let before = stack.stats().memory;
    outside.write_all(b"a few").await.expect("sent");
    timeout(PATIENCE, inside.read_exact(&mut [0; 5])).await.expect("in time").expect("data");
    let more = stack.stats().memory.saturating_sub(before);
    assert!(more < 4_000, "{more} bytes");
}

#[tokio::test]
async fn a_half_closed_connection_goes_on_the_other_way() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    for client_first in [true, false] {
        let mut inside = world.connect(port).await.expect("connected");
        let (mut outside, _) = server.accept().await.expect("a connection");
        let mut rest = vec![];
        let exchange = async {
            if client_first {
                inside.write_all(b"question").await.expect("sent");
                inside.shutdown().await.expect("closed");
                outside.read_to_end(&mut rest).await.expect("the end");
                outside.write_all(b"answer").await.expect("sent");
                drop(outside);
                inside.read_to_end(&mut rest).await.expect("the end");
            } else {
                outside.write_all(b"question").await.expect("sent");
                outside.shutdown().await.expect("closed");
                inside.read_to_end(&mut rest).await.expect("the end");
                inside.write_all(b"answer").await.expect("sent");
                drop(inside);
                outside.read_to_end(&mut rest).await.expect("the end");
            }
        };
        timeout(PATIENCE, exchange).await.expect("in time");
        assert_eq!(rest, b"questionanswer");
    }
    world.until(|stats| stats.finished == 2 && stats.open_connections == 0).await;
}

#[tokio::test]
async fn a_reset_of_either_side_resets_the_other() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    let inside = world.connect(port).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    inside.abort();
    let read = timeout(PATIENCE, outside.read(&mut [0; 1])).await.expect("in time");
    assert_eq!(read.expect_err("reset").kind(), ErrorKind::ConnectionReset);

    let mut inside = world.connect(port).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    outside.set_zero_linger().expect("an option");
    drop(outside);
    let read = timeout(PATIENCE, inside.read(&mut [0; 1])).await.expect("in time");
    assert_eq!(read.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    world.until(|stats| stats.reset == 2 && stats.open_connections == 0).await;
}

/// Writes until nothing is taken for some time.
async fn fill(stream: &mut (impl AsyncWrite + Unpin)) {
    let chunk = [7; 60_000];
    while timeout(Duration::from_millis(200), stream.write_all(&chunk)).await.is_ok() {}
}

#[tokio::test]
async fn a_reset_is_noticed_while_the_other_side_takes_nothing() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    // The server reads nothing, and the client gives up.
    let mut inside = world.connect(port).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    fill(&mut inside).await;
    inside.abort();
    world.until(|stats| stats.reset == 1 && stats.open_connections == 0).await;
    drop(outside);
    // The client reads nothing, and the server gives up.
    let inside = world.connect(port).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    fill(&mut outside).await;
    outside.set_zero_linger().expect("an option");
    drop(outside);
    world.until(|stats| stats.reset == 2 && stats.open_connections == 0).await;
    drop(inside);
}

#[tokio::test]
async fn a_reset_after_a_half_close_is_noticed_by_who_has_nothing_to_say() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    let mut inside = world.connect(port).await.expect("connected");
    let (mut outside, _) = server.accept().await.expect("a connection");
    inside.shutdown().await.expect("closed");
    assert_eq!(timeout(PATIENCE, outside.read(&mut [0; 1])).await.expect("in time").expect("the end"), 0);
    inside.abort();
    world.until(|stats| stats.reset == 1 && stats.open_connections == 0).await;
}

#[tokio::test]
async fn a_closed_port_refuses_and_nothing_was_established() {
    let world = world(Config::default());
    let error = world.connect(closed_port().await).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let stats = world.meter.read();
    assert_eq!((stats.upstream_refused, stats.finished + stats.reset), (1, 0));
    let counters = world.client.counters();
    assert_eq!(counters.tcp_out_segs, 1, "a SYN, and no ACK of a SYN-ACK");
}

#[tokio::test]
async fn what_no_gateway_carries_on_is_refused() {
    let world = world(Config::default());
    // "This network" (RFC 1122, section 3.2.1.3), and what is of one link: addresses that the
    // client's stack sends to.
    for to in ["0.1.2.3:80", "[fe80::1]:80"] {
        let error = world.connect_to(to.parse().expect("an address")).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{to}");
    }
    assert_eq!(world.meter.read().not_carried, 2);
}

#[tokio::test]
async fn rules_refuse_drop_or_carry_on() {
    let far = |last| vec![format!("192.0.2.{last}/32").parse().expect("a network")];
    let rules = vec![
        Rule { to: far(1), ..Rule::all(Action::Refuse) },
        Rule { to: far(2), ..Rule::all(Action::Drop) },
    ];
    let otherwise = Rules::all_through("direct".parse().expect("an upstream")).otherwise;
    let world = world(Config { rules: Rules { rules, otherwise }, ..Config::default() });
    let error = world.connect_to(address([192, 0, 2, 1], 80)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let silent = timeout(Duration::from_millis(200), world.client.connect(address([192, 0, 2, 2], 80))).await;
    assert!(silent.is_err(), "{silent:?}");
    let stats = world.meter.read();
    assert_eq!((stats.rule_refused, stats.rule_dropped), (1, 1));
}

#[tokio::test]
async fn a_graceful_end_lets_connections_finish_and_resets_the_rest() {
    let world = world(Config::default());
    let (server, port) = listener().await;
    let mut short = world.connect(port).await.expect("connected");
    let (mut short_far, _) = server.accept().await.expect("a connection");
    let mut long = world.connect(port).await.expect("connected");
    let (mut long_far, _) = server.accept().await.expect("a connection");
    let (meter, client) = (world.meter.clone(), world.client.clone());
    let exchange = async {
        // What is open works, until it has ended or the time is over.
        short.write_all(b"last").await.expect("sent");
        short.shutdown().await.expect("closed");
        let mut text = vec![];
        short_far.read_to_end(&mut text).await.expect("the end");
        assert_eq!(text, b"last");
        drop(short_far);
        let refused = client.connect((OWN, port)).await.expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let far = long_far.read(&mut [0; 1]).await.expect_err("reset");
        let near = long.read(&mut [0; 1]).await.expect_err("reset");
        assert_eq!((far.kind(), near.kind()), (ErrorKind::ConnectionReset, ErrorKind::ConnectionReset));
    };
    tokio::join!(world.finish(Duration::from_secs(1)), exchange);
    let stats = meter.read();
    assert_eq!((stats.finished, stats.open_connections), (1, 0), "{stats:?}");
}

#[test]
fn a_connection_is_carried_beside_the_driver_of_its_shard() {
    const CONNECTIONS: u64 = 16;
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (first, second) = (runtime(), runtime());
    let beside = second.handle().clone();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let beside_thread = std::thread::spawn(move || second.block_on(ended));
    first.block_on(async {
        let pair = || Channel::pair(ChannelConfig::default());
        let ((near, far), (near_too, far_too)) = (pair(), pair());
        let client =
            Stack::builder(near).queue(near_too).address(CLIENT).seed([7; 32]).spawn().expect("a stack");
        let stack = Stack::builder(far).queue(far_too).any_address().seed([7; 32]);
        let stack = stack.runtimes([first.handle().clone(), beside.clone()]).spawn().expect("a stack");
        let world = between(client, &stack, Config::default());
        let (listener, port) = listener().await;
        let (mut open, mut open_too) = (vec![], vec![]);
        for _ in 0..CONNECTIONS {
            let inside = world.connect(port).await.expect("connected");
            let (mut outside, _) = listener.accept().await.expect("accepted");
            open.push(inside);
            outside.write_all(b"!").await.expect("sent");
            assert_eq!(open.last_mut().expect("one").read_u8().await.expect("received"), b'!');
            open_too.push(outside);
        }
        let opened: Vec<_> =
            stack.shard_stats().iter().map(|shard| shard.counters.tcp_passive_opens).collect();
        assert_eq!(opened.iter().sum::<u64>(), CONNECTIONS);
        // Beside the second shard's driver, nothing else runs there.
        assert_eq!(beside.metrics().num_alive_tasks() as u64, 1 + opened[1], "{opened:?}");
        assert!(opened[1] > 0, "{opened:?}");
    });
    drop(end);
    beside_thread.join().expect("no panic").expect_err("dropped");
}
