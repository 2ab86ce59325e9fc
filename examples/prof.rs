#[path = "../benches/support/mod.rs"]
mod support;
use support::{SEGMENT, ours, smol};
fn main() {
    let mode = std::env::args().nth(1).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    if mode.starts_with('S') {
        let mut pair = smol::Pair::new(mode == "Sc", 16 * SEGMENT);
        pair.warm_up();
        let c0 = cpu();
        for _ in 0..n {
            pair.batch();
        }
        println!("smoltcp {mode}: {} cpu ns/segment", (cpu() - c0) as f64 / (n * 16) as f64);
        return;
    }
    let (link, segs) = match mode.as_str() {
        "c" => (ours::Link::Checksums, 16),
        "t" => (ours::Link::Trusted, 16),
        _ => (ours::Link::SuperPackets, 44),
    };
    let mut pair = ours::Pair::new(link, segs * SEGMENT, ackline::core::policy::Policies::default());
    pair.warm_up();
    let c0 = cpu();
    for _ in 0..n {
        pair.batch();
    }
    println!("ackline {mode}: {} cpu ns/segment", (cpu() - c0) as f64 / (n * segs) as f64);
}
fn cpu() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
