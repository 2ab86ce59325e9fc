//! What is kept of a run: who used which part of the line.

use ackline_lab::results::{QueueResult, RunResult};
use serde::{Deserialize, Serialize};

/// Bytes of a full segment with Ethernet's header and checksum, and of its payload.
const FULL: (f64, f64) = (1_518.0, 1_448.0);

/// The parts of a line that a run used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shares {
    /// What uploads received of what the uplink could carry in full segments.
    pub(super) up: f64,
    /// What downloads received of what the downlink could carry.
    pub(super) down: f64,
    /// ACKs' part of the uplink.
    pub(super) acks: f64,
    /// The scheduler's share at the end, if it has one.
    pub(super) f: Option<f64>,
    /// The rate of the downlink that it counts with at the end, bit/s.
    pub(super) downlink_bps: Option<f64>,
}

impl Shares {
    /// Reads them from a run of `auto.toml`.
    pub(super) fn read(run: &RunResult) -> Self {
        let queue = |name: &str| run.queues.iter().find(|queue| queue.link == name);
        let rate =
            |name: &str| queue(name).and_then(|queue| queue.rate_bps).map_or(f64::NAN, |rate| rate as f64);
        let (up, down) = (rate("line"), rate("line.back"));
        let received = |app: &str, rate: f64| {
            let goodput: f64 =
                run.flows.iter().filter(|flow| flow.app == app).map(|flow| flow.goodput_bps).sum();
            goodput / rate * FULL.0 / FULL.1
        };
        let metric = |name: &str| {
            let near = run.hosts.iter().find(|host| host.host == "near")?;
            near.metrics.get(name).copied()
        };
        let seconds = run.window_s.1 - run.window_s.0;
        let ack_bits = |queue: &QueueResult| queue.classes.ack.bytes as f64 * 8.0;
        Self {
            up: received("up", up),
            down: received("down", down),
            acks: queue("line").map_or(f64::NAN, |queue| ack_bits(queue) / seconds / up),
            f: metric("f"),
            downlink_bps: metric("downlink_bit"),
        }
    }

    /// The sum of both directions.
    pub(super) fn sum(&self) -> f64 {
        self.up + self.down
    }
}
