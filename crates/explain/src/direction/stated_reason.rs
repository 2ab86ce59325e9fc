//! What a stack says of a packet that it sent.

use crate::story::LossDetection;

/// Why a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatedReason {
    New,
    Again(LossDetection),
    WindowProbe,
    KeepAlive,
}

impl StatedReason {
    /// The comment of a capture has `sent: REASON` (docs/captures.md).
    pub(super) fn in_comment(comment: &str) -> Option<Self> {
        let (_, reason) = comment.split_once("sent: ")?;
        Self::of(reason.split(';').next().unwrap_or_default())
    }

    /// The meaning of a reason.
    pub(super) fn of(reason: &str) -> Option<Self> {
        Some(match reason {
            "new-data" | "limited-transmit" | "path-mtu-probe" | "fin" => Self::New,
            "fast-retransmit" => Self::Again(LossDetection::Fast),
            "rto-retransmit" | "rto-probe" => Self::Again(LossDetection::Timeout),
            // It may carry new data, which is no retransmission.
            "tail-loss-probe" => Self::Again(LossDetection::Probe),
            "window-probe" => Self::WindowProbe,
            "keep-alive" => Self::KeepAlive,
            _ => return None,
        })
    }
}
