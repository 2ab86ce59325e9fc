//! What happened in neighbour resolution.

/// Counters since the device was opened; ARP and neighbour discovery together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NeighbourStats {
    /// Requests (ARP) and solicitations sent for a neighbour; without probes for own addresses.
    pub requests_sent: u64,
    /// Requests and solicitations received for an own address.
    pub requests_received: u64,
    /// Replies and advertisements sent in answer.
    pub replies_sent: u64,
    /// Replies and advertisements received about a neighbour that is remembered.
    pub replies_received: u64,
    /// Neighbours whose address became known after they were asked for.
    pub resolved: u64,
    /// Neighbours that did not answer.
    pub failures: u64,
    /// Ethernet addresses that changed.
    pub changes: u64,
    /// Neighbours forgotten because there was no room.
    pub evictions: u64,
    /// Neighbours that asked and were not remembered, because everything remembered was in use.
    pub not_learned: u64,
    /// Messages that break a rule of their RFC (lengths, checksum, hop limit, addresses), dropped.
    pub invalid: u64,
    /// Messages of another host that uses an own address.
    pub conflicts: u64,
    /// Defences of an own address.
    pub defences: u64,
    /// Requests and answers that were not sent because too many waited for the device.
    pub outgoing_dropped: u64,
    /// Packets that waited for a resolution.
    pub waited: u64,
    /// Of these, dropped because too many bytes waited.
    pub waiting_dropped: u64,
    /// Of these, given up because the neighbour did not answer.
    pub waiting_failed: u64,
}
