//! Two stacks exchange bytes under random settings: policies, shards, batches, chunks and lent
//! memory; see [`run`]. Every byte arrives once and in its place, nothing stays behind, and nobody
//! waits for what will not come.
//!
//! `ACKLINE_SEED` is the seed of the first run, `ACKLINE_RUNS` how many there are. With
//! `ACKLINE_STEPS` that one run has only so many steps of each writer, to look at it.

mod cable;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/hostile/rng.rs"]
mod rng;
mod run;

use run::{STEPS, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Runs at once on one runtime: they wait for timers of real time.
const AT_ONCE: usize = 32;

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number"));
    std::env::var(name).ok().map(number)
}

/// Half of the runs are on a runtime with one thread.
fn runtime(workers: bool) -> Runtime {
    let mut builder = if workers { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}

const fn has_workers(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// The fewest steps, as a power of two, with which the run of `seed` fails again.
fn shrink(seed: u64) -> usize {
    let fails = |&steps: &usize| {
        runtime(has_workers(seed)).block_on(async { tokio::spawn(run(seed, steps)).await.is_err() })
    };
    (0..).map(|log| 1 << log).take_while(|&steps| steps < STEPS).find(fails).unwrap_or(STEPS)
}

/// Runs the seeds that `next` gives, until that is `end`.
async fn work(next: &AtomicU64, end: u64, failed: &Mutex<Vec<u64>>) {
    let mut runs = JoinSet::new();
    loop {
        // Two at a time, of which this runtime has one.
        let seed = next.fetch_add(2, Ordering::Relaxed);
        if seed < end {
            runs.spawn(async move { (seed, tokio::spawn(run(seed, STEPS)).await.is_ok()) });
        }
        if runs.len() >= AT_ONCE || seed >= end {
            match runs.join_next().await {
                Some(done) => {
                    let (seed, ok) = done.expect("no panic");
                    if !ok {
                        failed.lock().expect("no panic").push(seed);
                    }
                }
                None => return,
            }
        }
    }
}

fn exchanges(count: u64) {
    let first = setting("ACKLINE_SEED").unwrap_or(1);
    if let Some(steps) = setting("ACKLINE_STEPS") {
        runtime(has_workers(first)).block_on(run(first, steps as usize));
        return;
    }
    let end = first + setting("ACKLINE_RUNS").unwrap_or(count);
    println!("seeds {first} to {}", end - 1);
    let failed = Mutex::new(vec![]);
    thread::scope(|scope| {
        for start in [first, first + 1] {
            let (next, failed) = (AtomicU64::new(start), &failed);
            scope.spawn(move || runtime(has_workers(start)).block_on(work(&next, end, failed)));
        }
    });
    let failed = failed.into_inner().expect("no panic");
    let failed: Vec<_> = failed.into_iter().take(20).map(|seed| (seed, shrink(seed))).collect();
    assert!(failed.is_empty(), "seeds, and steps with which they fail: {failed:?}");
}

#[test]
fn every_byte_arrives_and_nothing_stays_behind() {
    exchanges(200);
}

#[test]
#[ignore = "slow: 10,000 runs"]
fn every_byte_arrives_and_nothing_stays_behind_ten_thousand_times() {
    exchanges(10_000);
}
