//! What is measured.

use serde::{Deserialize, Serialize};

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Payload that arrived, in Gbit/s.
    GbitPerSecond,
    /// Jain's index of the flows' bytes: 1 if all got the same, 1/n if one got everything.
    Jain,
    /// The longest time that a flow waited for its next bytes, in milliseconds.
    LongestWait,
    /// By how much the resident memory of the process, both ends' buffers outside the kernel, grew
    /// at most, in MB.
    Resident,
    /// The kernel's memory for TCP at the end, of both ends if both are the kernel's, in MB.
    KernelMemory,
    /// Connections that were served, per second.
    PerSecond,
    /// Processor time of the measured end's threads for each of them, what the kernel did in their
    /// system calls for both ends included, in microseconds.
    MicrosEach,
    /// Of round trips, of the time to connect, or of the time to be served, in microseconds.
    MedianMicros,
    P99Micros,
    /// Clients that were connected within a second, of 100.
    InTime,
    /// Forged SYNs that were sent, in thousands per second.
    Forged,
    /// Processors that were busy with the measured end's threads, what the kernel did in their
    /// system calls for both ends included.
    Here,
    /// The same of the other end's thread.
    Peer,
    /// Of all on the machine.
    Machine,
    /// The resident memory of the process before the flood, in MB.
    ResidentBefore,
}
