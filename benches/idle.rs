//! What idle connections cost: memory for each, and the time of an active one among 0, 1,000 and 100,000 of them.

mod support;

use ackline::core::policy::Policies;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{SEGMENT, ours};

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

const BATCH: usize = 16;

fn idle(c: &mut Criterion) {
    let mut group = c.benchmark_group("idle");
    group.throughput(Throughput::Elements(BATCH as u64));
    for connections in [0, 1_000, 100_000] {
        let mut pair = ours::Pair::new(ours::Link::Trusted, BATCH * SEGMENT, Policies::default());
        let before = LIVE.load(Ordering::Relaxed);
        pair.add_idle(connections);
        if connections > 0 {
            // Both ends of each connection live in this process.
            let each = (LIVE.load(Ordering::Relaxed) - before) / (2 * connections);
            println!("memory of one of {connections} idle connections: {each} bytes");
        }
        pair.warm_up();
        group.bench_function(BenchmarkId::from_parameter(connections), |b| b.iter(|| pair.batch()));
    }
    group.finish();
}

criterion_group!(benches, idle);
criterion_main!(benches);
