//! The queues between shards, the lock of one, and the limits of all, on threads in random
//! schedules: no packet and no wake-up is lost, and no limit exceeded.
//!
//! ```text
//! cargo run --release --manifest-path tests/models/Cargo.toml               # 20,000 schedules of each model
//! cargo run --release --manifest-path tests/models/Cargo.toml -- 1000000
//! SHUTTLE_RANDOM_SEED=SEED cargo run --release --manifest-path tests/models/Cargo.toml -- 1    # one that has failed
//! ```
//!
//! These are the runtime's own files, `shard/inbox.rs`, `shard/hub.rs`, `shard/egress.rs` and
//! `shard/lock.rs`, and the core's folder `reserve/`, with the locks
//! and atomics of shuttle in place of std's. shuttle runs one thread at a time, and chooses at each
//! lock, atomic operation and wake-up who goes on. A driver that sleeps although something has come
//! for it, or that others wait for, leaves nobody who could go on: shuttle calls that a deadlock,
//! and prints the seed of the schedule.
//!
//! A driver here does with its `HubPort` what the real one does in a turn, in the same order, and
//! nothing else. So the models cover who wakes whom, who takes what, the end of a stack and a shard
//! that stops; who sends what the scheduler of all releases; a driver that returns when an
//! application has the lock; and who may have how much of what all share. They do not cover what is
//! behind the lock of a shard, nor weak memory orders: shuttle's atomics are sequentially
//! consistent.

#[path = "../../../crates/runtime/src/shard/egress.rs"]
mod egress;
#[expect(dead_code, reason = "a part of it is modelled")]
#[path = "../../../crates/runtime/src/shard/hub.rs"]
mod hub;
#[path = "../../../crates/runtime/src/shard/inbox.rs"]
mod inbox;
#[path = "../../../crates/runtime/src/shard/lock.rs"]
mod lock;

#[expect(dead_code, unused_imports, reason = "a part of it is modelled")]
#[path = "../../../crates/tcp-core/src/reserve/mod.rs"]
mod reserve;

/// As the modules of this name in the runtime and in the core.
mod sync {
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::sync::{PoisonError, TryLockError};
}

use ackline_tcp_core::policy::sched::{
    Admission, Ask, Descriptor, DescriptorId, EgressScheduler as _, LinkView, Popped, SegmentClass,
};
use ackline_tcp_core::policy::spec::{PolicyKind, resolve};
use ackline_tcp_core::steering::Steering;
use ackline_tcp_core::{ConnId, Instant, RxPacket, SeqNum};
use hub::{Hub, HubPort};
use lock::Lock;
use reserve::{HostMemory, HostRate, Limit, MemoryPart, Pool};
use shuttle::{check_random, future, thread};
use std::env;
use std::future::poll_fn;
use std::process::ExitCode;
// Not shuttle's: what is counted with these is no part of the model.
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed};
use std::task::Poll;

/// Schedules of each model unless the command line says otherwise.
const SCHEDULES: usize = 20_000;

type Model = (&'static str, fn());

const MODELS: [Model; 9] = [
    ("packets for a shard that sleeps in between", packets_for_a_sleeper),
    ("shards that all come to rest", all_come_to_rest),
    ("a shard that stops", one_stops),
    ("one egress scheduler of several shards", at_the_scheduler),
    ("a driver and applications at the lock", at_the_lock),
    ("a driver that is called to make room", one_is_called),
    ("a limit of several endpoints", within_a_limit),
    ("memory of several endpoints", within_a_budget),
    ("a rate of several endpoints", within_a_rate),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let schedules = match &arguments[..] {
        [] => Some(SCHEDULES),
        [number] => number.parse::<usize>().ok().filter(|schedules| *schedules > 0),
        _ => None,
    };
    let Some(schedules) = schedules else {
        eprintln!("models: the number of schedules, at least 1");
        return ExitCode::FAILURE;
    };
    run(schedules);
    ExitCode::SUCCESS
}

/// Panics if a schedule fails.
fn run(schedules: usize) {
    for (name, model) in MODELS {
        check_random(model, schedules);
        println!("{name}: {schedules} schedules, nothing lost");
    }
}

fn hub_ports(shards: usize) -> Vec<HubPort> {
    let hub = sync::Arc::new(Hub::new(Steering::new(shards, &[0; 32])));
    (0..shards).map(|index| HubPort::new(hub.clone(), index)).collect()
}

/// Copies a packet for `owner`, or several, and delivers them.
fn give(hub_port: &mut HubPort, owner: usize, packets: usize) {
    for _ in 0..packets {
        hub_port.hand_over(owner, &[], &RxPacket::new(&[7]));
    }
    hub_port.deliver();
}

/// The packets that are there.
fn take(hub_port: &mut HubPort) -> usize {
    let mut taken = 0;
    while let Some(batch) = hub_port.take() {
        taken += batch.iter().count();
        hub_port.give_back(batch);
    }
    taken
}

/// A driver's turns, between which it sleeps, until it is `over`. It asks again when it has said
/// that it sleeps, because the last of the others may have come to rest meanwhile. Returns the
/// packets that it has taken.
fn drive(hub_port: &mut HubPort, over: impl Fn(&mut HubPort, usize) -> bool) -> usize {
    let mut taken = 0;
    future::block_on(poll_fn(|cx| {
        loop {
            taken += take(hub_port);
            if over(hub_port, taken) {
                return Poll::Ready(());
            }
            if hub_port.sleep(cx.waker()) && !over(hub_port, taken) {
                return Poll::Pending;
            }
        }
    }));
    taken
}

/// Two shards have packets for a third, in several batches. It has all of them before it ends.
fn packets_for_a_sleeper() {
    const BATCHES: [usize; 3] = [1, 2, 1];
    let mut shards = hub_ports(3).into_iter();
    let Some(mut owner) = shards.next() else { return };
    for mut hub_port in shards {
        thread::spawn(move || BATCHES.iter().for_each(|&packets| give(&mut hub_port, 0, packets)));
    }
    let all = 2 * BATCHES.iter().sum::<usize>();
    drive(&mut owner, |_, taken| taken == all);
    assert_eq!(owner.dropped(), 0);
}

/// No handle is left, and each shard still has something for the next one. All end, whoever is the
/// last.
fn all_come_to_rest() {
    let shards = hub_ports(3).into_iter().map(|mut hub_port| {
        thread::spawn(move || {
            let next = (hub_port.index + 1) % 3;
            give(&mut hub_port, next, 1);
            drive(&mut hub_port, |hub_port, _| hub_port.rest());
        })
    });
    for shard in shards.collect::<Vec<_>>() {
        shard.join().expect("no panic");
    }
}

/// A shard stops while others have packets for it, and wait until it has nothing to deliver. They
/// end, and each packet was taken or is counted as dropped.
fn one_stops() {
    const PACKETS: usize = 2;
    let mut shards = hub_ports(3).into_iter();
    let Some(mut stopping) = shards.next() else { return };
    let others = shards.map(|mut hub_port| {
        thread::spawn(move || {
            for _ in 0..PACKETS {
                give(&mut hub_port, 0, 1);
            }
            drive(&mut hub_port, |hub_port, _| hub_port.rest());
        })
    });
    let others: Vec<_> = others.collect();
    let taken = drive(&mut stopping, |_, taken| taken > 0);
    stopping.stop();
    for other in others {
        other.join().expect("no panic");
    }
    assert_eq!(taken as u64 + stopping.dropped(), 2 * PACKETS as u64);
}

/// Shards share a queue with room for one packet: each has several to send, and sleeps while it has
/// to wait. All leave, although another shard may be who takes a packet out of the queue.
fn at_the_scheduler() {
    const PACKETS: u64 = 2;
    const NOW: Instant = Instant::from_secs(1);
    const CONN: Option<ConnId> = Some(ConnId::for_test(0, 0));
    const ASK: Ask = Ask::new(CONN, SegmentClass::Data, 1_000);
    let data = |serial| {
        let id = DescriptorId::new(serial, SeqNum(serial as u32), 960);
        Descriptor::new(id, CONN, SegmentClass::Data, 1_000)
    };
    let hub = sync::Arc::new(Hub::new(Steering::new(3, &[0; 32])));
    let make = resolve(ackline_sched::SCHED, PolicyKind::Sched, "fifo:limit=1").expect("a scheduler");
    let ways = egress::for_all(make(), &hub).into_iter().enumerate();
    let shards = ways.map(|(index, mut way)| {
        let mut hub_port = HubPort::new(hub.clone(), index);
        thread::spawn(move || {
            let (mut given, mut sent, mut deferred) = (0, 0, false);
            future::block_on(poll_fn(|cx| {
                loop {
                    take(&mut hub_port);
                    deferred = deferred && way.poll_resume().is_none();
                    while given < PACKETS && !deferred {
                        deferred = given > sent && way.admit(NOW, &ASK) == Admission::Deferred;
                        if !deferred {
                            way.push(NOW, data(given));
                            given += 1;
                        }
                    }
                    // As an endpoint: whoever may ask again because of a packet that leaves does so
                    // before the next.
                    if let Popped::Packet(packet) = way.pop(NOW, &LinkView::new(u32::MAX)) {
                        assert_eq!(packet, data(sent), "its own, in order");
                        sent += 1;
                        continue;
                    }
                    if sent == PACKETS {
                        return Poll::Ready(());
                    }
                    if hub_port.sleep(cx.waker()) {
                        return Poll::Pending;
                    }
                }
            }));
        })
    });
    for shard in shards.collect::<Vec<_>>() {
        shard.join().expect("all of its packets leave");
    }
}

/// Applications have the stack when its driver is due: the driver has all its turns, and nobody
/// sees what another is changing.
fn at_the_lock() {
    const TURNS: usize = 3;
    let lock = sync::Arc::new(Lock::new(0));
    let add = |value: &mut usize| {
        let before = *value;
        thread::yield_now();
        *value = before + 1;
    };
    let applications: Vec<_> = (0..2)
        .map(|_| {
            let lock = lock.clone();
            thread::spawn(move || (0..TURNS).for_each(|_| add(&mut lock.lock())))
        })
        .collect();
    lock.crowd();
    for _ in 0..TURNS {
        future::block_on(poll_fn(|cx| lock.poll_lock(cx).map(|mut locked| add(&mut locked))));
    }
    for application in applications {
        application.join().expect("an application ends");
    }
    assert_eq!(*lock.lock(), 3 * TURNS);
}

/// A shard needs what another one has, which sleeps: it notices.
fn one_is_called() {
    let mut shards = hub_ports(2).into_iter();
    let (Some(needing), Some(mut other)) = (shards.next(), shards.next()) else { return };
    let host = sync::Arc::new(HostMemory::new(1_000, 2));
    let (needs, has) = (MemoryPart::new(host.clone()), MemoryPart::new(host));
    let caller = thread::spawn(move || {
        if needs.want(100) {
            needing.call_others();
        }
    });
    drive(&mut other, |_, _| has.wanted() > 0);
    caller.join().expect("no panic");
}

/// What all may have of something.
fn in_threads(work: impl Fn(usize) + Send + Sync + 'static) {
    let work = sync::Arc::new(work);
    let threads: Vec<_> = (0..3)
        .map(|index| {
            let work = work.clone();
            thread::spawn(move || work(index))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// Endpoints take, replace and give back. Together they never have more than the limit, and nothing
/// is lost.
fn within_a_limit() {
    for (whole, most) in [(3, 2), (400, 130)] {
        let pool = sync::Arc::new(Pool::new(whole, 3));
        let (of, used) = (pool.clone(), sync::Arc::new(Count::new(0)));
        in_threads(move |_| {
            let (mut limit, mut own) = (Limit::of_host(of.clone()), 0);
            let enter = |limit: &mut Limit, own: &mut usize| {
                while !limit.has_room(*own) && *own > 0 {
                    // The oldest makes room.
                    *own -= 1;
                    used.fetch_sub(1, Relaxed);
                }
                if limit.has_room(*own) {
                    *own += 1;
                    assert!(used.fetch_add(1, Relaxed) < whole as usize);
                }
                limit.settle(*own);
            };
            for _ in 0..most {
                enter(&mut limit, &mut own);
            }
            used.fetch_sub(own / 2 + own % 2, Relaxed);
            own /= 2;
            limit.settle(own);
            enter(&mut limit, &mut own);
            used.fetch_sub(own, Relaxed);
        });
        let mut all = Limit::of_host(pool);
        assert!(whole == 0 || all.has_room(whole as usize - 1), "all has been given back");
        assert!(!all.has_room(whole as usize));
    }
}

/// Endpoints reserve, hold, and give back. Together they never have reserved more than the budget,
/// and nothing is lost.
fn within_a_budget() {
    const BUDGET: u64 = 10_000;
    let host = sync::Arc::new(HostMemory::new(BUDGET, 3));
    let (of, all) = (host.clone(), sync::Arc::new(Count::new(0)));
    in_threads(move |index| {
        let (mut part, mut held) = (MemoryPart::new(of.clone()), 0);
        part.tell(index);
        for bytes in [3_000, 4_500, 1_000, 6_000] {
            if bytes <= held {
                all.fetch_sub((held - bytes) as usize, Relaxed);
                held = bytes;
            } else if part.reserve(bytes) {
                let before = all.fetch_add((bytes - held) as usize, Relaxed) as u64;
                assert!(before + bytes - held <= BUDGET);
                held = bytes;
            } else {
                part.want(bytes - held);
            }
            part.settle(held);
            part.end_want_if_left();
        }
        all.fetch_sub(held as usize, Relaxed);
    });
    let mut part = MemoryPart::new(host);
    assert_eq!((part.of_others(), part.connections()), (0, 0));
    assert!(part.reserve(BUDGET), "all has been given back");
}

/// Endpoints answer strangers, some of them a little late. Each interval has no more than its own.
fn within_a_rate() {
    let rate = sync::Arc::new(HostRate::new());
    let of = rate.clone();
    let taken = sync::Arc::new(Count::new(0));
    let sum = taken.clone();
    in_threads(move |_| {
        for interval in [1, 1, 2, 2] {
            taken.fetch_add(usize::from(of.take(interval, || 3)), Relaxed);
        }
    });
    let before = sum.load(Relaxed);
    assert!((3..=6).contains(&before), "{before}");
    assert!(before < 6 || !rate.take(2, || 3));
}
