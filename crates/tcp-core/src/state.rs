//! The states of a connection (RFC 9293, section 3.3.2).

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum State {
    /// No connection.
    #[default]
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open.
    Established,
    /// FIN sent, peer still sends.
    FinWait1,
    /// FIN acknowledged, peer still sends.
    FinWait2,
    /// Peer's FIN received, this side still sends.
    CloseWait,
    /// Both FINs sent, ours not acknowledged.
    Closing,
    /// Peer's FIN received, ours sent and not acknowledged.
    LastAck,
    /// Both sides closed; waiting out old duplicates.
    TimeWait,
}

impl State {
    /// All eleven states.
    pub const ALL: [Self; 11] = [
        Self::Closed,
        Self::Listen,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
    ];

    /// True from ESTABLISHED on, when our ACK of the peer's SYN has been acknowledged
    /// ("synchronized states", RFC 9293, section 3.5.2 (3)).
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// True if the application may still write.
    #[must_use]
    pub const fn may_send(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// True if the peer may still send data.
    #[must_use]
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// The name in RFC 9293.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Serialized as the name in RFC 9293.
#[cfg(feature = "serde")]
impl serde::Serialize for State {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
