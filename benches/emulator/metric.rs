//! What is measured.

use serde::{Deserialize, Serialize};

/// A quantity, of the worse direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// From the sender's call to the other device, more than the path takes, in microseconds.
    DelayP50,
    DelayP99,
    /// After the simulation's instant, in microseconds.
    LateP50,
    LateP99,
    LateMost,
    /// The rate behind the path, as a part of the path's: the one farther from it.
    Rate,
    /// Packets that devices dropped, before the path and behind it.
    Lost,
    /// Processor time of the emulator's thread, as a part of the time.
    Cpu,
}
