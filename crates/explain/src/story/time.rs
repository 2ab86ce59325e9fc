//! What a sender's time went for.

use serde::Serialize;

/// Why a sender did not send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The application had written nothing more, or the other end's answer was awaited.
    Application,
    /// The receiver's window was full.
    ReceiverWindow,
    /// The receiver's window was zero.
    ZeroWindow,
    /// The congestion window was full: each packet follows an ACK.
    CongestionWindow,
    /// The same, and no ACK came for two round trips or more: the path stood still, or the receiver
    /// did.
    Silence,
    /// The sender spaced its packets.
    Pacing,
    /// The path before the capture spaced the packets, or pacing did: from here they look alike.
    Path,
    /// Losses were repaired.
    Recovery,
    /// Nothing came back until a timer fired.
    Timer,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Application,
        Self::ReceiverWindow,
        Self::ZeroWindow,
        Self::CongestionWindow,
        Self::Silence,
        Self::Pacing,
        Self::Path,
        Self::Recovery,
        Self::Timer,
    ];

    /// A few words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiverWindow => "receiver's window",
            Self::ZeroWindow => "zero window",
            Self::CongestionWindow => "congestion window",
            Self::Silence => "no ACKs",
            Self::Pacing => "pacing",
            Self::Path => "path or pacing",
            Self::Recovery => "recovery",
            Self::Timer => "waiting for a timer",
        }
    }
}

/// A share of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// What for.
    pub cause: Cause,
    /// How long.
    pub time_ns: u64,
    /// Of the whole.
    pub share: f64,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its begin.
    pub at_ns: u64,
    /// Its length.
    pub time_ns: u64,
    /// What for.
    pub cause: Cause,
}
