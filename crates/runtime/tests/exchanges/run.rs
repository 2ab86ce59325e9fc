//! One run: what the two hosts are like, and what their applications do.

use crate::cable::{Counted, Nature, Port, cable};
use crate::rng::Rng;
use ackline_registry::Registry;
use ackline_runtime::device::DeviceCaps;
use ackline_runtime::stream::{OwnedReadHalf, OwnedWriteHalf};
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::policy::spec::PolicyKind;
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
const PORT: u16 = 7;

/// The most that one writer does.
pub(crate) const STEPS: usize = 12;

/// The longest time in which nothing moves. A few timeouts take less, on a loaded machine as well.
const PATIENCE: Duration = Duration::from_secs(30);

/// Octet `at` of a stream.
fn octet(stream: u64, at: usize) -> u8 {
    (stream.wrapping_mul(0x9e37_79b9).wrapping_add(at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn octets(stream: u64, at: usize, len: usize) -> Vec<u8> {
    (at..at + len).map(|at| octet(stream, at)).collect()
}

/// What has moved in one direction of a connection.
#[derive(Debug, Default)]
struct Moved {
    written: AtomicUsize,
    read: AtomicUsize,
}

fn nature(rng: &mut Rng, counted: &Counted) -> Nature {
    let mtu = rng.pick(&[576, 1_280, 1_500, 1_500, 9_000]);
    let caps = if rng.one_in(2) { DeviceCaps::plain(mtu) } else { DeviceCaps::offload(mtu) };
    Nature {
        caps,
        room: rng.pick(&[1, 3, 100, 100]),
        losses: rng.pick(&[0, 0, 0, 0, 0, 100]),
        strays: rng.pick(&[0, 1, 5, 50]),
        batch: rng.pick(&[1, 4, 64]),
        lends: rng.one_in(2),
        counted: counted.clone(),
    }
}

/// A name of the kind's table.
fn policy(rng: &mut Rng, registry: &Registry, kind: PolicyKind) -> &'static str {
    let names: Vec<_> = registry.list(kind).iter().map(|policy| policy.name).collect();
    rng.pick(&names)
}

fn host(rng: &mut Rng, ports: Vec<Port>, address: IpAddr) -> (Stack, String) {
    let registry = Registry::default();
    let options = loop {
        let [cc, ack, rto, sched] = [PolicyKind::Cc, PolicyKind::Ack, PolicyKind::Rto, PolicyKind::Sched]
            .map(|kind| policy(rng, &registry, kind));
        let options = format!("cc={cc},ack={ack},rto={rto},sched={sched}");
        // Some want others beside them.
        if registry.options(&options).and_then(|options| options.conn(&ConnConfig::default())).is_ok() {
            break options;
        }
    };
    let mut config = ConnConfig::default();
    // Smaller ones would wait for timers of real time after each segment.
    let mut buffer = || (64 << 10) + rng.size(20) as u32;
    (config.send_buffer, config.recv_buffer) = (buffer(), buffer());
    let turn = rng.pick(&[1_000, 30_000, 1 << 20]);
    let mut ports = ports.into_iter();
    let builder = Stack::builder(ports.next().expect("one")).address(address).turn(turn);
    let builder = ports.fold(builder, |builder, port| builder.queue(port));
    let builder = builder.runtimes([Handle::current()]).connections(config);
    let stack = builder.options(&options).expect("they have been read").spawn().expect("descriptors");
    (stack, options)
}

/// Writes until it has taken its steps; returns how much that is.
async fn write(
    mut rng: Rng,
    stream: u64,
    steps: usize,
    mut to: OwnedWriteHalf,
    counted: Counted,
    moved: Arc<Moved>,
) {
    let mut at = 0;
    for _ in 0..(1 + rng.below(STEPS as u64) as usize).min(steps) {
        let data = octets(stream, at, 1 + rng.size(14) as usize);
        at += match rng.below(5) {
            0 => to.write(&data).await.expect("written"),
            1 => {
                let len = data.len();
                to.write_bytes(counted.memory(data)).await.expect("written");
                len
            }
            2 => {
                let fill = |room: [&mut [u8]; 2]| {
                    let places = room.into_iter().flatten().zip(&data);
                    places.map(|(place, octet)| *place = *octet).count()
                };
                to.write_with(data.len(), fill).await.expect("written")
            }
            3 => {
                to.writable().await.expect("alive");
                match to.try_write(&data) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                    written => written.expect("written"),
                }
            }
            _ => {
                tokio::task::yield_now().await;
                0
            }
        };
        moved.written.store(at, Ordering::Relaxed);
    }
    to.shutdown().await.expect("shut down");
}

/// Reads to the end, and keeps some chunks for a while.
async fn read(mut rng: Rng, stream: u64, mut from: OwnedReadHalf, moved: Arc<Moved>) {
    let (mut at, mut ended, mut kept) = (0, false, vec![]);
    let check = |at: usize, data: &[u8]| {
        let wrong = data.iter().enumerate().find(|(n, octet_there)| **octet_there != octet(stream, at + n));
        assert!(wrong.is_none(), "stream {stream}, from {at}: {wrong:?}");
        data.len()
    };
    while !ended {
        let most = 1 + rng.size(17) as usize;
        let mut buffer = vec![0; most];
        let n = match rng.below(5) {
            0 => from.read(&mut buffer).await.map(|n| check(at, &buffer[..n])).expect("read"),
            1 => {
                let chunk = from.read_chunk(most).await.expect("read");
                let n = chunk.as_ref().map_or(0, |chunk| check(at, chunk));
                kept.extend(chunk.filter(|_| rng.one_in(2)));
                n
            }
            2 => {
                let take = |pieces: [&[u8]; 2]| {
                    let first = check(at, &pieces[0][..pieces[0].len().min(most)]);
                    let second = check(at + first, &pieces[1][..pieces[1].len().min(most - first)]);
                    (first + second, first + second)
                };
                from.with_readable(take).await.expect("read")
            }
            3 => {
                from.readable().await.expect("alive");
                match from.try_read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    read => read.map(|n| check(at, &buffer[..n])).expect("read"),
                }
            }
            _ => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        ended = n == 0;
        at += n;
        moved.read.store(at, Ordering::Relaxed);
        if rng.one_in(4) {
            kept.clear();
        }
    }
    assert_eq!(at, moved.written.load(Ordering::Relaxed), "stream {stream}");
}

/// Waits until `holds`; fails if `moved`, which changes while something moves, has not for long.
async fn until<T>(what: &str, moved: impl Fn() -> T, mut holds: impl FnMut() -> bool)
where
    T: PartialEq + std::fmt::Debug,
{
    let (mut before, mut still) = (moved(), 0);
    while !holds() {
        sleep(Duration::from_millis(1)).await;
        let now = moved();
        still = if now == before { still + 1 } else { 0 };
        before = now;
        assert!(still < PATIENCE.as_millis(), "{what}: {before:?}");
    }
}

/// Runs what `seed` says, with so many steps of each writer.
pub(crate) async fn run(seed: u64, steps: usize) {
    let mut rng = Rng::new(seed);
    let counted = Counted::default();
    let nature = nature(&mut rng, &counted);
    let queues = [1 + rng.below(3) as usize, 1 + rng.below(2) as usize];
    let [near, far] = cable(&nature, queues, rng.next());
    let (near, options) = host(&mut rng, near, ADDRESSES[0]);
    let (far, others) = host(&mut rng, far, ADDRESSES[1]);
    let what = format!("seed {seed}: {queues:?} queues, {options}; {others}; {nature:?}");

    let listener = far.listen(ListenOn::Port(PORT)).expect("free");
    let (mut tasks, mut streams) = (JoinSet::new(), vec![]);
    for connection in 0..1 + rng.below(3) {
        let both =
            timeout(PATIENCE, async { tokio::join!(near.connect((ADDRESSES[1], PORT)), listener.accept()) });
        let (opened, accepted) = both.await.unwrap_or_else(|_| panic!("nobody connects: {what}"));
        let ends = [opened.expect("connected"), accepted.expect("accepted").0];
        let halves = ends.map(TcpStream::into_split);
        let moved = [(); 2].map(|()| Arc::new(Moved::default()));
        for (side, (from, to)) in halves.into_iter().enumerate() {
            let stream = |side: usize| seed * 10 + connection * 2 + side as u64;
            let [of_writer, of_reader] = [(); 2].map(|()| Rng::new(rng.next()));
            tasks.spawn(write(
                of_writer,
                stream(side),
                steps.max(1),
                to,
                counted.clone(),
                moved[side].clone(),
            ));
            tasks.spawn(read(of_reader, stream(1 - side), from, moved[1 - side].clone()));
        }
        streams.extend(moved);
    }
    until(
        &what,
        || format!("{streams:?}"),
        || {
            while let Some(ended) = tasks.try_join_next() {
                ended.unwrap_or_else(|error| panic!("{error}: {what}"));
            }
            tasks.is_empty()
        },
    )
    .await;
    drop(listener);

    let (first, second) = tokio::join!(near.shutdown(PATIENCE), far.shutdown(PATIENCE));
    assert!(first && second, "connections do not end: {what}");
    for stats in [near.stats(), far.stats()] {
        let left = [stats.connections, stats.orphans, stats.half_open];
        assert_eq!(left, [0; 3], "{what}");
    }
    for stats in [near.stats(), far.stats()] {
        assert_eq!(stats.handover_drops, 0, "{what}");
    }
    // What is still on its way is taken.
    until(&what, || counted.alive(), || counted.alive() == 0).await;
}
