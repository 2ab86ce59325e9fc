//! What a stack says of a packet that it sent.

use crate::story::Found;

/// Why a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stated {
    New,
    Again(Found),
    WindowProbe,
    KeepAlive,
}

impl Stated {
    /// The comment of a capture has `sent: REASON` (docs/captures.md).
    pub(super) fn in_comment(comment: &str) -> Option<Self> {
        let (_, reason) = comment.split_once("sent: ")?;
        Self::of(reason.split(';').next().unwrap_or_default())
    }

    /// The meaning of a reason.
    pub(super) fn of(reason: &str) -> Option<Self> {
        Some(match reason {
            "new-data" | "limited-transmit" | "path-mtu-probe" | "fin" => Self::New,
            "fast-retransmit" => Self::Again(Found::Fast),
            "rto-retransmit" | "rto-probe" => Self::Again(Found::Timeout),
            // It may carry new data, which is no retransmission.
            "tail-loss-probe" => Self::Again(Found::Probe),
            "window-probe" => Self::WindowProbe,
            "keep-alive" => Self::KeepAlive,
            _ => return None,
        })
    }
}
