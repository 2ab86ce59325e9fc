//! What the ends count: bytes of each flow, and the longest time that one waited.

use ackline_runtime::timer;
use ackline_tcp_core::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What has come through so far. The end that receives writes; whoever measures reads.
#[derive(Debug)]
pub(crate) struct Board {
    flows: Vec<Flow>,
    /// Of round trips.
    times: Mutex<Vec<Duration>>,
}

#[derive(Debug, Default)]
struct Flow {
    bytes: AtomicU64,
    /// When the latest bytes came, in nanoseconds of the clock.
    last: AtomicU64,
    /// The longest time from some bytes to the next, in nanoseconds.
    longest: AtomicU64,
}

impl Board {
    pub(crate) fn new(flows: usize) -> Self {
        let flows = (0..flows).map(|_| Flow::default()).collect();
        Self { flows, times: Mutex::default() }
    }

    /// `bytes` of the flow arrived.
    pub(crate) fn add(&self, flow: usize, bytes: usize) {
        let Flow { bytes: sum, last, longest } = &self.flows[flow];
        let now = timer::now().as_nanos();
        sum.fetch_add(bytes as u64, Ordering::Relaxed);
        longest.fetch_max(now.saturating_sub(last.swap(now, Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// One more round trip.
    pub(crate) fn round_trip(&self, took: Duration) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }

    /// Of all flows.
    pub(crate) fn total(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Starts a measurement.
    pub(crate) fn start(&self, now: Instant) {
        for Flow { bytes, last, longest } in &self.flows {
            last.store(now.as_nanos(), Ordering::Relaxed);
            longest.store(0, Ordering::Relaxed);
            bytes.store(0, Ordering::Relaxed);
        }
        self.times.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Bytes of each flow since the start.
    pub(crate) fn bytes(&self) -> Vec<u64> {
        self.flows.iter().map(|flow| flow.bytes.load(Ordering::Relaxed)).collect()
    }

    /// The longest time that a flow waited since the start, those that still wait included.
    pub(crate) fn longest_wait(&self, now: Instant) -> Duration {
        let waits = self.flows.iter().map(|Flow { last, longest, .. }| {
            let waits = now.as_nanos().saturating_sub(last.load(Ordering::Relaxed));
            waits.max(longest.load(Ordering::Relaxed))
        });
        Duration::from_nanos(waits.max().unwrap_or(0))
    }

    /// Of the round trips since the start, shortest first.
    pub(crate) fn times(&self) -> Vec<Duration> {
        let mut times = std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        times.sort_unstable();
        times
    }
}

/// Jain's index of fairness (Jain, Chiu and Hawe, DEC-TR-301, 1984).
pub(crate) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
