//! What is measured.

use serde::{Deserialize, Serialize};

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Payload that arrived, in Gbit/s.
    GbitPerSecond,
    /// Processor time for a gigabyte of that, in seconds: of the terminator, and of everything on
    /// the machine.
    TerminatorPerGigabyte,
    AllPerGigabyte,
    /// Connections per second.
    PerSecond,
    /// From `connect()` to the byte that came back, in microseconds.
    MedianMicros,
    P99Micros,
    /// Connections that got their byte back, or flows that carried bytes during the measurement; of
    /// 100.
    Served,
    /// Memory of the terminator that an idle connection adds, in bytes.
    BytesEach,
    /// The most memory that the terminator had, in MB.
    Resident,
    /// Connections of [`Ending::EACH`](crate::ending::Ending::EACH) that had not ended in time on
    /// both sides, or lost bytes.
    ClientFirst,
    ServerFirst,
    Both,
    ClientReset,
    ServerReset,
    /// The terminator ended by itself: 1, or 0.
    Crashed,
}
