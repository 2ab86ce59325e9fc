//! What idle connections cost: memory for each, in the core and resident through the runtime, and
//! the time of an active one among 0, 1,000 and 100,000 of them.

#[path = "support/ours.rs"]
mod ours;

use ackline::core::config::{ConnConfig, Target};
use ackline::core::policy::Policies;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::{Registry, Stack};
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
        while let Some(event) = pair.server.poll_event() {
            // Whoever asks for a connection accepts it.
            assert!(pair.server.conn(event.conn()).is_some());
        }
        while pair.client.poll_event().is_some() {}
    }
    assert_eq!(pair.client.connections(), count + 1);
    assert_eq!(pair.server.connections(), count + 1);
}

fn new_pair(policies: Policies) -> ours::Pair {
    let link = ours::Link { checksums: false, super_packets: false, buffers: false };
    ours::Pair::new(link, BATCH * SEGMENT, policies)
}

/// Adds idle connections; the bytes that each end of one takes.
fn added_memory(pair: &mut ours::Pair, count: usize, config: &ConnConfig) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    add_idle(pair, count, config);
    // Both ends of each connection live in this process.
    (LIVE.load(Ordering::Relaxed) - before).checked_div(2 * count).unwrap_or(0)
}

/// Bytes of this process in memory.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel shows it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Resident bytes that each end of one of `count` connections between two stacks takes, with the
/// default policies and its stream. The first connections come before, so that what stacks take
/// once is not counted. Measured at first: what another measurement has freed would be used again.
#[cfg(target_os = "linux")]
async fn resident_through_the_runtime(count: usize) -> std::io::Result<usize> {
    let (here, there) = Channel::pair(ChannelConfig::default());
    let ports = (count / PER_PORT + 1) as u16;
    let client = Stack::builder(here).address([10, 0, 0, 1]).spawn()?;
    let server = Stack::builder(there).address([10, 0, 0, 2]).spawn()?;
    let mut listeners = Vec::new();
    for port in 0..ports {
        let address = SocketAddr::new(ours::SERVER, ours::PORT + port);
        listeners.push((address, ackline::TcpListener::bind(&server, address).await?));
    }
    let mut streams = Vec::with_capacity(2 * (count + 10 * BURST));
    let mut before = 0;
    for number in 0..count + BURST {
        if number == BURST {
            // After the timers that give memory back.
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            before = resident();
        }
        let (address, listener) = &listeners[number % listeners.len()];
        let (near, far) = tokio::join!(client.connect(*address), listener.accept());
        streams.extend([near?, far?.0]);
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let each = (resident() - before) / (2 * count);
    drop(streams);
    Ok(each)
}

fn idle(c: &mut Criterion) {
    #[cfg(target_os = "linux")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
        let each = runtime.block_on(resident_through_the_runtime(100_000)).expect("they open");
        println!(
            "resident through the runtime, of one of 100000 idle connections, with its stream: {each} bytes"
        );
    }

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
