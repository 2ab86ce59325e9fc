//! Stacks of several shards, on a network that delivers packets to any queue.

use crate::common::{FAR, FAR6, NEAR, NEAR6, PORT, assert_same, pattern, read_all, soon, until};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use ackline_runtime::stack::{Builder, Shards};
use ackline_runtime::{Stack, TcpListener, TcpStream};
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, FourTuple, Instant, ListenOn, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;

/// The far end of several channels: sends to each in turn, so that every packet is as likely as not
/// at the wrong queue.
struct Fan {
    ends: Vec<Channel>,
    turn: usize,
}

impl Device for Fan {
    fn caps(&self) -> DeviceCaps {
        self.ends[0].caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let full = self.ends.iter_mut().position(|end| {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            end.poll_readable(&mut cx).is_ready()
        });
        match full {
            Some(end) => self.ends[end].try_recv(),
            None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.turn += 1;
        for step in 0..self.ends.len() {
            let end = (self.turn + step) % self.ends.len();
            match self.ends[end].try_send(packet) {
                // As the kernel does, which takes queues that have been closed out of use.
                Err(error) if error.kind() == ErrorKind::NotConnected => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // All of them, so that each has the waker.
        let ready: Vec<_> = self.ends.iter_mut().map(|end| end.poll_readable(cx).is_ready()).collect();
        if ready.contains(&true) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // All of them, so that each has the waker.
        let ready: Vec<_> = self.ends.iter_mut().map(|end| end.poll_writable(cx).is_ready()).collect();
        if ready.contains(&true) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

/// What a [`Queue`] does.
#[derive(Clone, Debug, Default)]
struct Switch(Arc<AtomicU8>);

impl Switch {
    const PANICS: u8 = 1;
    const GONE: u8 = 2;

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }
}

/// A queue that can be broken.
struct Queue {
    inner: Channel,
    switch: Switch,
}

impl Device for Queue {
    fn caps(&self) -> DeviceCaps {
        self.inner.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        match self.switch.0.load(Ordering::Relaxed) {
            Switch::PANICS => panic!("as asked"),
            Switch::GONE => Err(io::Error::new(ErrorKind::NetworkDown, "somebody pulled it out")),
            _ => self.inner.try_recv(),
        }
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.inner.try_send(packet)
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

/// A stack of `shards` shards, its peer of one, and what breaks each queue.
fn hosts(shards: usize, change: impl FnOnce(Builder) -> Builder) -> (Stack, Stack, Vec<Switch>) {
    let (queues, ends): (Vec<_>, Vec<_>) =
        (0..shards).map(|_| Channel::pair(ChannelConfig::default())).unzip();
    let switches: Vec<Switch> = queues.iter().map(|_| Switch::default()).collect();
    let mut queues = queues.into_iter().zip(&switches);
    let mut queue = || queues.next().map(|(inner, switch)| Queue { inner, switch: switch.clone() });
    let mut builder = Stack::builder(queue().expect("one")).address(NEAR).address(NEAR6);
    while let Some(next) = queue() {
        builder = builder.queue(next);
    }
    let near = change(builder).spawn().expect("descriptors");
    let far = Stack::builder(Fan { ends, turn: 0 }).address(FAR).address(FAR6).spawn().expect("descriptors");
    assert_eq!(near.shards(), shards);
    (near, far, switches)
}

/// Sends everything back.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = stream.split();
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}

fn serve(listener: TcpListener) {
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.runtime().clone().spawn(echo(stream));
        }
    });
}

async fn exchange(stream: io::Result<TcpStream>, seed: u64) {
    let mut stream = stream.expect("connected");
    let sent = pattern(seed, 3_000);
    stream.write_all(&sent).await.expect("written");
    stream.shutdown().await.expect("shut down");
    assert_same(&read_all(&mut stream).await.expect("read"), &sent);
}

async fn connects(shards: usize) {
    let (near, far, _) = hosts(shards, |builder| builder);
    serve(near.listen(ListenOn::Port(PORT)).expect("free"));
    serve(far.listen(ListenOn::Port(PORT)).expect("free"));
    let mut used = BTreeSet::new();
    for round in 0..100 {
        let (to, back) = if round % 2 == 0 { (FAR, NEAR) } else { (FAR6, NEAR6) };
        let active = near.connect((to, PORT)).await;
        used.insert(active.as_ref().expect("connected").shard());
        exchange(active, round).await;
        exchange(far.connect((back, PORT)).await, round + 1_000).await;
    }
    assert_eq!(used.len(), shards, "all shards open connections");
    let (ours, theirs) = (near.stats(), far.stats());
    // An old ACK that another queue has delayed may be answered with an RST, which ends nothing.
    for counters in [&ours.counters, &theirs.counters] {
        assert_eq!((counters.tcp_estab_resets, counters.tcp_attempt_fails), (0, 0));
    }
    assert_eq!(ours.counters.tcp_active_opens, 100);
    assert_eq!(ours.counters.tcp_passive_opens, 100);
    assert_eq!((ours.handed_over == 0, ours.handover_drops), (shards == 1, 0));
    assert!(near.shutdown(Duration::from_secs(10)).await && far.shutdown(Duration::from_secs(10)).await);
}

#[tokio::test]
async fn connections_both_ways_work_whichever_queue_their_packets_come_to() {
    for shards in [1, 2, 4] {
        soon(connects(shards)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_do_on_several_threads() {
    soon(connects(3)).await;
}

#[tokio::test]
async fn bulk_data_arrives_whole() {
    let (near, far, _) = hosts(3, |builder| builder);
    serve(near.listen(ListenOn::Port(PORT)).expect("free"));
    let transfers = (0..6).map(|seed| {
        let far = far.clone();
        tokio::spawn(async move {
            let stream = far.connect((NEAR, PORT)).await.expect("connected");
            let (mut from, mut to) = stream.into_split();
            let sent = pattern(seed, 2_000_000);
            let (received, _) = tokio::join!(read_all(&mut from), async {
                to.write_all(&sent).await.expect("written");
                to.shutdown().await.expect("shut down");
            });
            assert_same(&received.expect("read"), &sent);
        })
    });
    for transfer in transfers.collect::<Vec<_>>() {
        soon(transfer).await.expect("no panic");
    }
    assert!(near.stats().handed_over > 100);
}

#[tokio::test]
async fn a_listener_is_one_for_all_shards() {
    let (near, far, _) = hosts(4, |builder| builder);
    let listener = near.listen(ListenOn::Address((NEAR, 0).into())).expect("free");
    let place = listener.local_addr().expect("known");
    assert_eq!(near.listen(ListenOn::Address(place)).expect_err("taken").kind(), ErrorKind::AddrInUse);
    listener.set_ttl(9).expect("a listener");
    assert_eq!(listener.ttl().expect("a listener"), 9);
    // Enough for each shard to get some: half as many would miss one of the four in one run of a
    // thousand.
    const CONNECTIONS: usize = 64;
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        streams.push(soon(far.connect(place)).await.expect("connected"));
    }
    until(|| near.listeners() == [(place, CONNECTIONS)]).await;
    let mut shards = BTreeSet::new();
    for _ in 0..CONNECTIONS {
        let (stream, _) = soon(listener.accept()).await.expect("accepted");
        assert_eq!(stream.ttl().expect("alive"), 9);
        shards.insert(stream.shard());
    }
    assert_eq!(shards.len(), 4);
    drop(listener);
    let refused = soon(far.connect(place)).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    near.listen(ListenOn::Address(place)).expect("free again");
}

#[tokio::test]
async fn waiting_for_connections_ends_with_the_stack() {
    let (near, _far, _) = hosts(2, |builder| builder);
    let listener = near.listen(ListenOn::Port(PORT)).expect("free");
    let waiting = tokio::spawn(async move { listener.accept().await.map(drop) });
    tokio::task::yield_now().await;
    assert!(soon(near.shutdown(Duration::from_secs(1))).await);
    let error = soon(waiting).await.expect("no panic").expect_err("shut down");
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    assert_eq!(soon(near.connect((FAR, PORT))).await.expect_err("shut down").kind(), ErrorKind::NotConnected);
}

#[tokio::test]
async fn held_syns_come_from_all_shards() {
    let (near, far, _) = hosts(4, |builder| builder);
    let incoming = near.listen(ListenOn::Port(PORT)).and_then(TcpListener::incoming).expect("free");
    let mut shards = BTreeSet::new();
    for _ in 0..24 {
        let (stream, _) = soon(async {
            tokio::join!(
                async { incoming.next().await.expect("a SYN").accept().await.expect("alive") },
                async { far.connect((NEAR, PORT)).await.expect("connected") }
            )
        })
        .await;
        shards.insert(stream.shard());
    }
    assert_eq!(shards.len(), 4);
}

#[tokio::test]
async fn a_given_port_decides_the_shard() {
    let (near, far, _) = hosts(4, |builder| builder);
    serve(far.listen(ListenOn::Port(PORT)).expect("free"));
    let mut shards = BTreeSet::new();
    for port in 1_000..1_024 {
        let mut target = Target::new((FAR, PORT).into());
        target.local_port = Some(port);
        let stream = soon(near.connect_to(target, near.connections().clone())).await;
        shards.insert(stream.as_ref().expect("connected").shard());
        soon(exchange(stream, port.into())).await;
    }
    assert_eq!(shards.len(), 4);
}

/// Who has which handle.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<BTreeMap<ConnId, FourTuple>>>);

impl Tracer for Names {
    fn trace(&mut self, _now: Instant, conn: ConnId, event: &TraceEvent) {
        if let TraceEvent::Opened { tuple, .. } = event {
            let before = self.0.lock().expect("no panic").insert(conn, *tuple);
            assert_eq!(before, None, "{conn:?} is there twice");
        }
    }
}

#[tokio::test]
async fn tools_see_the_connections_of_all_shards() {
    let (near, far, _) = hosts(3, |builder| builder);
    let names = Names::default();
    near.set_tracer(Some(Box::new(names.clone())));
    let listener = near.listen(ListenOn::Port(PORT)).expect("free");
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(soon(far.connect((NEAR, PORT))).await.expect("connected"));
        streams.push(soon(listener.accept()).await.expect("accepted").0);
    }
    let names = names.0.lock().expect("no panic").clone();
    assert_eq!(names.len(), 20);
    for most in [1, 3, 7, 100] {
        let (mut seen, mut from) = (BTreeMap::new(), Some(0));
        while let Some(at) = from {
            let (some, next) = near.snapshots(at, most);
            assert!(some.len() <= most);
            for shown in some {
                let tuple = near.with_connection(shown.id, |conn, _| conn.addresses()).expect("it is there");
                assert_eq!(seen.insert(shown.id, tuple), None, "{most} at a time");
            }
            from = next;
        }
        assert_eq!(seen.len(), 20, "{most} at a time");
        for (id, (local, remote)) in seen {
            assert_eq!(names.get(&id), Some(&FourTuple::new(local, remote)));
        }
    }
    let each = near.shard_stats();
    let sum: usize = each.iter().map(|stats| stats.connections).sum();
    assert_eq!((each.len(), sum, near.stats().connections), (3, 20, 20));
    assert!(each.iter().all(|stats| stats.connections > 0));
}

#[tokio::test]
async fn a_driver_that_panics_ends_its_connections_and_no_others() {
    let (near, far, switches) = hosts(3, |builder| builder);
    let listener = near.listen(ListenOn::Port(PORT)).expect("free");
    let mut pairs = Vec::new();
    for _ in 0..30 {
        let theirs = soon(far.connect((NEAR, PORT))).await.expect("connected");
        pairs.push((soon(listener.accept()).await.expect("accepted").0, theirs));
    }
    switches[1].set(Switch::PANICS);
    // Something has to arrive.
    for (ours, theirs) in &mut pairs {
        soon(theirs.write_all(&[1])).await.expect("written");
        let read = soon(ours.read_u8()).await;
        assert_eq!(read.is_ok(), ours.shard() != 1, "{read:?} on shard {}", ours.shard());
        if let Err(error) = read {
            assert_eq!(error.kind(), ErrorKind::NetworkDown, "{error}");
        }
    }
    assert!(
        pairs.iter().any(|(ours, _)| ours.shard() == 1) && pairs.iter().any(|(ours, _)| ours.shard() != 1)
    );
    // The others have its share from now on, both ways.
    serve(listener);
    serve(far.listen(ListenOn::Port(PORT)).expect("free"));
    for round in 0..30 {
        soon(exchange(far.connect((NEAR, PORT)).await, round)).await;
        soon(exchange(near.connect((FAR, PORT)).await, round)).await;
    }
    // Its peers learn that their connections are gone.
    for (ours, theirs) in &mut pairs {
        if ours.shard() == 1 {
            let error = soon(async {
                loop {
                    if let Err(error) = theirs.write_all(&[2]).await {
                        break error;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
    }
}

#[tokio::test]
async fn when_the_device_is_gone_every_shard_says_so() {
    let (near, far, switches) = hosts(4, |builder| builder);
    let listener = near.listen(ListenOn::Port(PORT)).expect("free");
    let mut streams = Vec::new();
    for _ in 0..16 {
        let theirs = soon(far.connect((NEAR, PORT))).await.expect("connected");
        streams.push((soon(listener.accept()).await.expect("accepted").0, theirs));
    }
    switches.iter().for_each(|switch| switch.set(Switch::GONE));
    // Each queue notices when something comes.
    for (_, theirs) in &mut streams {
        soon(theirs.write_all(&[1; 10])).await.expect("written");
    }
    for (ours, _) in &mut streams {
        let error = soon(ours.read_u8()).await.expect_err("gone");
        assert_eq!(error.kind(), ErrorKind::NetworkDown);
    }
    let error = soon(listener.accept()).await.expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::NetworkDown);
    assert!(error.to_string().contains("somebody pulled it out"), "{error}");
    assert_eq!(soon(near.connect((FAR, PORT))).await.expect_err("gone").kind(), ErrorKind::NetworkDown);
    assert_eq!(near.listen(ListenOn::Port(9)).expect_err("gone").kind(), ErrorKind::NetworkDown);
    assert!(soon(near.shutdown(Duration::from_secs(1))).await, "nothing is left");
}

#[tokio::test]
async fn drivers_end_together_when_the_last_handle_is_dropped() {
    let (queues, _ends): (Vec<_>, Vec<_>) = (0..3).map(|_| Channel::pair(ChannelConfig::default())).unzip();
    let mut queues = queues.into_iter();
    let mut builder = Stack::builder(queues.next().expect("one")).address(NEAR);
    for queue in queues {
        builder = builder.queue(queue);
    }
    let (stack, drivers) = builder.build_shards().expect("descriptors");
    assert_eq!(drivers.len(), 3);
    let drivers: Vec<_> = drivers.into_iter().map(tokio::spawn).collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(drivers.iter().all(|driver| !driver.is_finished()));
    let last = stack.listen(ListenOn::Port(PORT)).expect("free");
    drop(stack);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(drivers.iter().all(|driver| !driver.is_finished()));
    drop(last);
    for driver in drivers {
        soon(driver).await.expect("no panic").expect("no error");
    }
}

#[tokio::test]
async fn what_shards_cannot_do_is_refused() {
    let queue = || Channel::pair(ChannelConfig::default()).0;
    let kind = |builder: Builder| {
        let error = builder.spawn().expect_err("impossible");
        (error.kind(), error.to_string())
    };
    let (known, text) = kind(Stack::builder(queue()).shards(2));
    assert_eq!(known, ErrorKind::Unsupported, "{text}");
    assert!(text.contains("only one queue"), "{text}");
    let (known, text) = kind(Stack::builder(queue()).shards(0));
    assert_eq!(known, ErrorKind::InvalidInput, "{text}");
    let (known, text) = kind(Stack::builder(queue()).shards(65));
    assert!(known == ErrorKind::InvalidInput && text.contains("at most 64"), "{text}");
    assert_eq!(Stack::builder(queue()).shards(Shards::Auto).spawn().expect("one shard").shards(), 1);
    let error = Stack::builder(queue()).queue(queue()).build().expect_err("two drivers");
    assert!(error.to_string().contains("build_shards"), "{error}");
}

#[tokio::test]
async fn limits_are_the_hosts() {
    let (near, far, _) = hosts(4, |builder| {
        builder.configure(|config| {
            config.max_connections = 40;
            config.max_memory = Some(1 << 30);
        })
    });
    let _listener = near.listen(ListenOn::Port(PORT)).expect("free");
    assert_eq!(near.stats().max_memory, Some(1 << 30));
    let attempts = (0..100).map(|_| {
        let far = far.clone();
        tokio::spawn(async move {
            tokio::time::timeout(Duration::from_millis(500), far.connect((NEAR, PORT))).await
        })
    });
    let mut streams = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        streams.extend(attempt.await.expect("no panic").ok());
    }
    // Clients do not know whether their ACKs found room.
    until(|| near.stats().connections >= 40).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(near.stats().connections, 40);
    let each: Vec<_> = near.shard_stats().iter().map(|shard| shard.connections).collect();
    assert_eq!(each.iter().sum::<usize>(), 40, "{each:?}");
    assert!(near.shard_stats().iter().all(|shard| shard.max_memory == Some(1 << 30)));
}

/// Two shards, one with a thread of its own, and many flows that never stop. Their tasks run where
/// their shard does, or all on the thread of the first. Returns how many shares each has sent when
/// there are eight for each.
async fn shares_of_two_shards(everyone_at_home: bool) -> Vec<usize> {
    const FLOWS: usize = 300;
    const SHARE: usize = 64 << 10;
    let (near, far, _) = hosts(2, |builder| builder);
    let listener = far.listen(ListenOn::Port(PORT)).expect("free");
    let mut flows = vec![];
    for _ in 0..FLOWS {
        let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
        flows.push((opened.expect("connected"), accepted.expect("accepted").0));
    }
    let sent: Arc<Vec<AtomicUsize>> = Arc::new((0..FLOWS).map(|_| AtomicUsize::new(0)).collect());
    for (flow, (mut near, mut far)) in flows.into_iter().enumerate() {
        let sent = sent.clone();
        let place = if everyone_at_home { near.runtime().clone() } else { Handle::current() };
        place.spawn(async move {
            while let Ok(written) = near.write(&[7; SHARE]).await {
                sent[flow].fetch_add(written, Ordering::Relaxed);
            }
        });
        tokio::spawn(async move { tokio::io::copy(&mut far, &mut tokio::io::sink()).await });
    }
    let shares = || sent.iter().map(|sent| sent.load(Ordering::Relaxed) / SHARE);
    until(|| shares().sum::<usize>() >= 8 * FLOWS).await;
    shares().collect()
}

fn check_that_all_move(shares: &[usize]) {
    let without = shares.iter().filter(|shares| **shares == 0).count();
    assert_eq!(without, 0, "of {} flows that had {} shares", shares.len(), shares.iter().sum::<usize>());
}

#[tokio::test]
async fn every_flow_of_every_shard_moves() {
    check_that_all_move(&shares_of_two_shards(true).await);
}

#[tokio::test]
async fn every_flow_of_two_shards_moves_on_one_thread() {
    check_that_all_move(&shares_of_two_shards(false).await);
}
