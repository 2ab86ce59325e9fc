//! Which explicit congestion notification a connection speaks.

/// Explicit congestion notification of a connection. It is used where both sides' SYNs agree.
///
/// The SYNs of both kinds are the same, so that both ends must be set to the same one: RFC 8257, section 5, has it
/// used only where one hand controls both ends and what is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Ecn {
    /// Neither asked for nor agreed to; data is not ECN-capable.
    #[default]
    Off,
    /// RFC 3168: a mark is echoed until the sender confirms its reduction, at most one reduction per round trip.
    Classic,
    /// RFC 8257: each ACK tells whether what it covers was marked. To be used with a congestion control that
    /// reacts to the share of marks, such as `dctcp`.
    Dctcp,
}
