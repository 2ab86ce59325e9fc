//! What is measured.

use serde::{Deserialize, Serialize};

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// How late departures were, in microseconds.
    P50,
    P90,
    P99,
    P999,
    Longest,
    /// Times between departures, in microseconds.
    GapP50,
    GapP99,
    /// What left, as a part of what was asked for.
    Rate,
    /// Segments that left in one burst.
    BurstP50,
    BurstP99,
    BurstMost,
    /// Processor time of the thread that waits, as a part of the time.
    Cpu,
}
