//! Rates of rules: held in sum, shared evenly, and by back-pressure alone.

use crate::exits::behind_a_stack;
use crate::servers::socks;
use crate::world::*;
use ackline_proxy::{Action, Config, Decision, RateLimit, Rule, Rules, Upstream};
use ackline_runtime::{TcpListener, TcpStream, timer};
use ackline_tcp_core::{Instant, Rate};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const MBIT: u64 = 1_000_000;

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits)
}

/// One rule for everything, with this rate.
fn limited(upstream: Upstream, limit: RateLimit) -> Config {
    let rule = Rule { rate: Some(limit), ..Rule::all(Action::Through(Arc::new(upstream))) };
    let rules = Rules { rules: vec![rule], otherwise: Action::Refuse };
    Config { rules, ..Config::default() }
}

fn seconds_since(begin: Instant) -> f64 {
    timer::now().since(begin).as_secs_f64()
}

/// Sends so many bytes each way, one way after the other: the seconds of each.
async fn timed<A, B>(mut inside: A, mut outside: B, bytes: usize) -> (f64, f64)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (sent, mut received) = (pattern(bytes), vec![0; bytes]);
    let mut times = [0.0; 2];
    let exchange = async {
        let begin = timer::now();
        tokio::try_join!(inside.write_all(&sent), outside.read_exact(&mut received))?;
        times[0] = seconds_since(begin);
        assert!(received == sent, "what came is not what was sent");
        received.fill(0);
        let begin = timer::now();
        tokio::try_join!(outside.write_all(&sent), inside.read_exact(&mut received))?;
        times[1] = seconds_since(begin);
        assert!(received == sent, "what came is not what was sent");
        std::io::Result::Ok(())
    };
    timeout(PATIENCE, exchange).await.expect("in time").expect("no error");
    times.into()
}

/// 400,000 bytes at 8 Mbit/s, and at 2 Mbit/s down.
fn assert_held((up, down): (f64, f64)) {
    assert!((0.36..2.0).contains(&up), "{up} s up");
    assert!((1.5..4.0).contains(&down), "{down} s down");
}

#[tokio::test]
async fn each_direction_has_its_rate_and_loses_nothing_by_the_kernel_and_by_a_stack() {
    let limit = RateLimit { up: Some(rate(8 * MBIT)), down: Some(rate(2 * MBIT)) };
    let (socks, _told) = socks().await;
    let world = world(limited(format!("socks5://127.0.0.1:{socks}").parse().expect("an upstream"), limit));
    let (server, port) = listener().await;
    let inside = world.connect_to(address(FAR, port)).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    assert_held(timed(inside, outside, 400_000).await);
    world.until(|stats| stats.finished == 1).await;
    let stats = world.meter.read();
    assert!(stats.rate_waits > 100 && stats.rate_waiting == 0 && stats.rate_lost == 0, "{stats:?}");

    let (world, far) = behind_a_stack(limited(Upstream::Direct, limit));
    let server = TcpListener::bind(&far, (FAR, 80)).await.expect("free");
    let inside = world.connect_to(address(FAR, 80)).await.expect("connected");
    let (outside, _) = server.accept().await.expect("a connection");
    assert_held(timed(inside, outside, 400_000).await);
}

/// A server that sends for ever.
async fn endless() -> (u16, JoinSet<()>) {
    let (server, port) = listener().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Ok((mut stream, _)) = server.accept().await {
            serving.spawn(async move { while stream.write_all(&[7; 10_000]).await.is_ok() {} });
        }
    });
    (port, tasks)
}

/// What comes in this time.
async fn bytes_in(stream: &mut TcpStream, time: Duration) -> usize {
    let mut bytes = 0;
    let mut buffer = vec![0; 100_000];
    let _ = timeout(time, async {
        while let Ok(more @ 1..) = stream.read(&mut buffer).await {
            bytes += more;
        }
    })
    .await;
    bytes
}

#[tokio::test]
async fn connections_share_a_rate_evenly_and_those_that_read_nothing_leave_theirs_to_others() {
    let (socks, _told) = socks().await;
    let limit = RateLimit { up: None, down: Some(rate(16 * MBIT)) };
    let config = limited(format!("socks5://127.0.0.1:{socks}").parse().expect("an upstream"), limit);
    let world = world(Config { backlog: 0, ..config });
    let (port, _tasks) = endless().await;
    let connect = async || world.connect_to(address(FAR, port)).await.expect("connected");
    // Ten that take nothing until their buffers are full.
    let mut idle = vec![];
    for _ in 0..10 {
        let stream = connect().await;
        stream.set_recv_buffer_size(20_000).expect("open");
        idle.push(stream);
    }
    let mut streams = [connect().await, connect().await];
    let [a, b] = &mut streams;
    sleep(Duration::from_millis(1_500)).await;
    let time = Duration::from_secs(1);
    let before = world.meter.read().bytes_down;
    let (a, b) = tokio::join!(bytes_in(a, time), bytes_in(b, time));
    let carried = world.meter.read().bytes_down - before;
    assert!((1_200_000..2_300_000).contains(&carried), "{carried} of 2,000,000 bytes");
    let share = a as f64 / (a + b) as f64;
    assert!((0.4..0.6).contains(&share), "{a} and {b} bytes");
    drop(idle);
}

/// Each has had a turn promised that is seconds away.
#[tokio::test]
async fn a_crowd_that_leaves_gives_its_turns_back() {
    let (socks, _told) = socks().await;
    let limit = RateLimit::both(rate(MBIT / 4));
    let world = world(limited(format!("socks5://127.0.0.1:{socks}").parse().expect("an upstream"), limit));
    let (port, _tasks) = endless().await;
    let mut crowd = vec![];
    for _ in 0..60 {
        crowd.push(world.connect_to(address(FAR, port)).await.expect("connected"));
    }
    // 1,460 bytes each: nearly three seconds.
    world.until(|stats| stats.rate_waiting > 50).await;
    crowd.iter().for_each(TcpStream::abort);
    world.until(|stats| stats.rate_waiting == 0).await;
    let begin = timer::now();
    let mut one = world.connect_to(address(FAR, port)).await.expect("connected");
    timeout(PATIENCE, one.read_u8()).await.expect("in time").expect("a byte");
    assert!(seconds_since(begin) < 1.0, "{} s", seconds_since(begin));
}

#[tokio::test]
async fn datagrams_wait_for_their_turn_and_a_flood_of_them_is_dropped() {
    let (socks, _told) = socks().await;
    let limit = RateLimit { up: None, down: Some(rate(MBIT)) };
    let world = world(limited(format!("socks5://127.0.0.1:{socks}").parse().expect("an upstream"), limit));
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let port = server.local_addr().expect("bound").port();
    let socket = world.client.bind_udp((CLIENT, 0).into()).expect("free");
    socket.connect((FAR, port)).await.expect("an address");
    socket.send(b"go").await.expect("sent");
    let mut buf = [0; 2_000];
    let (_, from) =
        timeout(PATIENCE, server.recv_from(&mut buf)).await.expect("in time").expect("a datagram");
    let begin = timer::now();
    // As many as the kernel's buffers hold.
    for number in 0..60_u8 {
        server.send_to(&[number; 1_000], from).await.expect("sent");
    }
    // All are either given to the client or lost.
    world.until(|stats| stats.datagrams_down + stats.rate_lost == 60).await;
    let stats = world.meter.read();
    assert!(stats.rate_lost > 20 && stats.datagrams_down >= 16, "{stats:?}");
    // 8 ms each, but for 20 ms of them.
    let expected = (stats.datagrams_down - 4) as f64 * 0.008;
    assert!(seconds_since(begin) >= expected, "{} of {expected} s", seconds_since(begin));
    let mut received = vec![];
    for _ in 0..stats.datagrams_down {
        let length = timeout(PATIENCE, socket.recv(&mut buf)).await.expect("in time").expect("a datagram");
        assert_eq!(length, 1_000);
        received.push(buf[0]);
    }
    assert!(received.is_sorted(), "{received:?}");
}

#[tokio::test]
async fn a_rate_by_server_name_begins_with_the_name_and_a_dry_run_holds_nothing_to_it() {
    for dry_run in [false, true] {
        let (socks, _told) = socks().await;
        let upstream: Upstream = format!("socks5://127.0.0.1:{socks}").parse().expect("an upstream");
        let through = Action::Through(Arc::new(upstream));
        let slow = Rule {
            server_names: vec!["slow.test".into()],
            rate: Some(RateLimit { up: None, down: Some(rate(2 * MBIT)) }),
            ..Rule::all(through.clone())
        };
        let decisions = Arc::new(Mutex::new(vec![]));
        let log = decisions.clone();
        let world = world(Config {
            rules: Rules { rules: vec![slow], otherwise: through },
            dry_run,
            log: Some(Arc::new(move |decision| {
                log.lock().expect("no panic").push(decision.clone());
                true
            })),
            ..Config::default()
        });
        let (server, port) = listener().await;
        let mut times = vec![];
        for name in ["fast.test", "slow.test"] {
            let mut inside = world.connect_to(address(FAR, port)).await.expect("connected");
            let (mut outside, _) = server.accept().await.expect("a connection");
            let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
            inside.write_all(request.as_bytes()).await.expect("sent");
            let mut read = vec![0; request.len()];
            timeout(PATIENCE, outside.read_exact(&mut read)).await.expect("in time").expect("received");
            times.push(timed(inside, outside, 100_000).await.1);
        }
        let [fast, slow] = times[..] else { unreachable!("two names") };
        // 100,000 bytes are 0.4 s.
        assert!(fast < 0.3, "{fast} s");
        assert_eq!(slow > 0.35, !dry_run, "{slow} s");
        let logged: Vec<Decision> = decisions.lock().expect("no panic").clone();
        let expected = Some(RateLimit { up: None, down: Some(rate(2 * MBIT)) });
        let logged: Vec<_> = logged.iter().map(|it| (it.rule, it.rate, it.enforced)).collect();
        assert_eq!(logged, [(None, None, true), (Some(1), expected, !dry_run)]);
        assert_eq!(world.meter.read().not_enforced, u64::from(dry_run));
    }
}
