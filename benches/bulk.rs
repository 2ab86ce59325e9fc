//! Bulk transfer in memory: both ends' work for each segment of 1,460 bytes, one ACK for 16
//! segments (or for one super-packet), beside smoltcp doing the same. The writer copies from a
//! slice, the reader consumes in place (ackline: `peek` and `consume`; smoltcp: `recv` with a
//! closure). Throughput is in segments: `1 s / rate` is the time for one.

#[path = "support/ours.rs"]
mod ours;
#[path = "support/smol.rs"]
mod smol;

use ackline::Registry;
use ackline::core::policy::Policies;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Payload bytes of a full segment: an MTU of 1,500 without TCP options.
const SEGMENT: usize = 1_460;
/// Segments of a batch of single packets.
const BATCH: usize = 16;
/// Segments of a super-packet.
const SUPER: usize = 44;

fn bulk(c: &mut Criterion) {
    let mut group = c.benchmark_group("bulk");
    for (name, link, segments) in [
        ("checksums", ours::Link { checksums: true, super_packets: false, buffers: false }, BATCH),
        ("trusted", ours::Link { checksums: false, super_packets: false, buffers: false }, BATCH),
        ("super-packets", ours::Link { checksums: false, super_packets: true, buffers: false }, SUPER),
    ] {
        let mut pair = ours::Pair::new(link, segments * SEGMENT, Policies::default());
        pair.warm_up();
        group.throughput(Throughput::Elements(segments as u64));
        group.bench_function(BenchmarkId::new("ackline", name), |b| b.iter(|| pair.batch()));
    }
    // The scheduler that the core has built in, those of the table without a shaper, and one that
    // is asked about each packet: its shaper lets everything through.
    for spec in ["fifo", "kalampoukas:f=0.5", "fifo:rate=100000gbit", "kalampoukas:f=0.5,rate=100000gbit"] {
        let link = ours::Link { checksums: false, super_packets: false, buffers: false };
        let make = Registry::default().sched(spec).expect("it is in the table");
        let mut pair = ours::Pair::scheduled(link, BATCH * SEGMENT, Policies::default(), &*make);
        pair.warm_up();
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(BenchmarkId::new("scheduled", spec), |b| b.iter(|| pair.batch()));
    }
    // With timestamps, and with a buffer for each packet between the ends, from which a batch is
    // taken together.
    for (name, checksums) in [("checksums", true), ("trusted", false)] {
        let link = ours::Link { checksums, super_packets: false, buffers: true };
        let mut pair = ours::Pair::new(link, BATCH * SEGMENT, Policies::default());
        pair.warm_up();
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(BenchmarkId::new("ackline buffered", name), |b| b.iter(|| pair.batch()));
        let mut pair = smol::Pair::new(checksums, true, BATCH * SEGMENT);
        pair.warm_up();
        group.bench_function(BenchmarkId::new("smoltcp stamped", name), |b| b.iter(|| pair.batch()));
    }
    for (name, checksums) in [("checksums", true), ("trusted", false)] {
        let mut pair = smol::Pair::new(checksums, false, BATCH * SEGMENT);
        pair.warm_up();
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(BenchmarkId::new("smoltcp", name), |b| b.iter(|| pair.batch()));
    }
    group.finish();
}

criterion_group!(benches, bulk);
criterion_main!(benches);
