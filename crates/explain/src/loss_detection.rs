//! How losses are found.

use serde::Serialize;

/// How a sender found a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// By duplicate ACKs or SACK.
    Fast,
    /// By a tail loss probe.
    Probe,
    /// By the retransmission timer.
    Timeout,
    /// Nothing tells.
    Unclear,
}
