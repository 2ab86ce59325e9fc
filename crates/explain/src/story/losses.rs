//! What was sent again, and how its loss was found.

use crate::loss_detection::LossDetection;
use serde::Serialize;

/// What was sent again, and what came out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Packets sent again.
    pub retransmissions: u64,
    /// The same in segments: what offload has joined is divided again.
    pub segments: u64,
    /// Octets sent again.
    pub bytes: u64,
    /// By duplicate ACKs, SACK or RACK.
    pub fast: u64,
    /// After a timeout.
    pub timeout: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Nothing tells what for.
    pub unclear: u64,
    /// Those that were needless: what they repeat had arrived.
    pub spurious: u64,
    /// Of these, because a DSACK said so.
    pub spurious_by_dsack: u64,
    /// Because the ACK echoes the timestamp of the original (RFC 3522).
    pub spurious_by_timestamp: u64,
    /// Because the ACK came too soon for it.
    pub spurious_by_time: u64,
    /// Because the stack states that it undid what the loss had caused.
    pub spurious_by_stack: u64,
    /// Those whose original did not pass the capture: lost before it.
    pub before: u64,
    /// Those that were stated by the sender's comments.
    pub stated: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Packets that came late and were not sent again: before the capture.
    pub reordered_before: u64,
    /// The same, behind the capture, as SACK shows it.
    pub reordered_after: u64,
    /// DSACKs of what was sent once as far as the capture shows: the network doubled it.
    pub duplicated: u64,
    /// Packets that the capture says were dropped.
    pub dropped: u64,
}

/// Retransmissions until everything that was sent before them is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Episode {
    /// When the first packet was sent again.
    pub at_ns: u64,
    /// Until everything sent before was acknowledged.
    pub time_ns: u64,
    /// How the loss was found, first.
    pub found: LossDetection,
    /// The sender's comments say so.
    pub stated: bool,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Octets sent again.
    pub bytes: u64,
    /// Of the packets, those that were needless.
    pub spurious: u64,
    /// Those whose original did not pass the capture.
    pub before: u64,
    /// Timeouts among them.
    pub timeouts: u64,
    /// The longest time in which the cumulative ACK did not advance.
    pub without_progress_ns: u64,
    /// Octets in flight when it began.
    pub flight_before: u64,
    /// Octets in flight at most in the round trip after it.
    pub flight_after: u64,
}
