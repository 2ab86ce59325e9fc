//! The kinds of explicit congestion notification.

/// The kind of explicit congestion notification of a connection. It is used if both SYNs agree.
///
/// The first two use the same SYN flags, so set both sides to the same of them: RFC 8257, section
/// 5, restricts DCTCP to networks where one operator controls both hosts and the path. Accurate ECN
/// has flags of its own, and falls back to classic ECN with a peer that knows no better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Ecn {
    /// Neither requested nor accepted; data is not ECN-capable.
    #[default]
    Off,
    /// RFC 3168: a mark is echoed until the sender confirms its reduction, at most one reduction
    /// per round trip.
    Classic,
    /// RFC 8257: each ACK tells whether the data it covers was marked. Use it with a congestion
    /// control that reacts to the fraction of marks, such as `dctcp`.
    Dctcp,
    /// RFC 9768: the peer counts marks, and each segment tells the count. Congestion control learns
    /// of every mark, and those that need only one per round trip of one.
    Accurate,
}
