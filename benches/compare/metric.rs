//! What is measured.

use serde::{Deserialize, Serialize};

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Payload, in Gbit/s.
    GbitPerSecond,
    /// Processor time of the measured end's thread, in seconds per 10^9 bytes of payload.
    CpuHere,
    /// Of the other end's thread.
    CpuPeer,
    /// Of the process, which is both.
    CpuBoth,
    /// Of everything on the machine.
    CpuMachine,
    /// The kernel's share of `CpuBoth`, 0 to 1.
    KernelShare,
    /// Packets that a receiver sent for each segment that it received.
    AcksPerSegment,
    /// Share of a processor that the measured end's thread used, 0 to 1.
    LoadHere,
    /// That the other end's thread used.
    LoadPeer,
    /// Of the segments that were sent, those that were sent again, 0 to 1.
    Retransmitted,
    /// Packets and events that a capture or trace lacks, because its queue was full.
    NotObserved,
    /// Of round trips.
    MedianMicros,
    P99Micros,
    /// Connections per second.
    PerSecond,
    /// Processor time of both ends for one connection, in microseconds.
    CpuMicrosEach,
}
