//! What idle connections cost: memory for each, and the time of an active one among 0, 1,000 and 100,000 of them.

#[path = "support/ours.rs"]
mod ours;

use ackline::Registry;
use ackline::core::config::{ConnConfig, Target};
use ackline::core::policy::Policies;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts live bytes.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Segments of a batch, and payload bytes of a full segment: an MTU of 1,500 without TCP options.
const BATCH: usize = 16;
const SEGMENT: usize = 1_460;
/// Idle connections to one port of the server, and how many open at once.
const PER_PORT: usize = 20_000;
const BURST: usize = 500;

/// `count` more connections between the two hosts, which then idle.
fn add_idle(pair: &mut ours::Pair, count: usize, config: &ConnConfig) {
    let config = Arc::new(config.clone());
    for opened in (0..count).step_by(BURST) {
        for idle in opened..count.min(opened + BURST) {
            // A local port serves one connection to each remote port.
            let remote = SocketAddr::new(ours::SERVER, ours::PORT + 1 + (idle / PER_PORT) as u16);
            pair.client.connect(pair.now, Target::new(remote), config.clone()).expect("there is a port");
        }
        pair.settle();
        while pair.server.poll_event().is_some() {}
        while pair.client.poll_event().is_some() {}
    }
    assert_eq!(pair.client.connections(), count + 1);
    assert_eq!(pair.server.connections(), count + 1);
}

fn new_pair(policies: Policies) -> ours::Pair {
    let link = ours::Link { checksums: false, super_packets: false };
    ours::Pair::new(link, BATCH * SEGMENT, policies)
}

/// Adds idle connections; the bytes that each end of one takes.
fn added_memory(pair: &mut ours::Pair, count: usize, config: &ConnConfig) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    add_idle(pair, count, config);
    // Both ends of each connection live in this process.
    (LIVE.load(Ordering::Relaxed) - before).checked_div(2 * count).unwrap_or(0)
}

fn idle(c: &mut Criterion) {
    let mut group = c.benchmark_group("idle");
    group.throughput(Throughput::Elements(BATCH as u64));
    for connections in [0, 1_000, 100_000] {
        let mut pair = new_pair(Policies::default());
        let each = added_memory(&mut pair, connections, &ConnConfig::default());
        if connections > 0 {
            println!("memory of one of {connections} idle connections: {each} bytes");
            let each = added_memory(
                &mut new_pair(Registry::default().policies()),
                connections,
                &Registry::default().conn_config(),
            );
            println!("the same with cubic and linux-like: {each} bytes");
        }
        pair.warm_up();
        group.bench_function(BenchmarkId::from_parameter(connections), |b| b.iter(|| pair.batch()));
    }
    group.finish();
}

criterion_group!(benches, idle);
criterion_main!(benches);
