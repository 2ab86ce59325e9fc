//! Counters of what a host says on an Ethernet to be reached there.

/// Counters since the device was opened, ARP and neighbour discovery combined; DHCP and router
/// advertisements if the host [configures](super::frame_socket::Provision) others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NeighbourStats {
    /// Requests (ARP) and solicitations sent for neighbours, without probes for the host's own
    /// addresses.
    pub requests_sent: u64,
    /// Requests and solicitations received for the host's addresses.
    pub requests_received: u64,
    /// Replies and advertisements sent in answer.
    pub replies_sent: u64,
    /// Replies and advertisements received from known neighbours.
    pub replies_received: u64,
    /// Neighbours whose address was resolved by a request.
    pub resolved: u64,
    /// Neighbours that did not answer.
    pub failures: u64,
    /// Neighbours whose Ethernet address changed.
    pub changes: u64,
    /// Neighbours evicted from a full table.
    pub evictions: u64,
    /// Neighbours that sent a request and were not added, because the whole table was in use.
    pub not_learned: u64,
    /// Messages dropped because they violate their RFC (lengths, checksum, hop limit, addresses).
    pub invalid: u64,
    /// Messages of other hosts that use one of this host's addresses.
    pub conflicts: u64,
    /// Announcements sent in defence of an address.
    pub defences: u64,
    /// Requests and answers dropped because too many waited for the device.
    pub outgoing_dropped: u64,
    /// Packets that waited for a resolution.
    pub waited: u64,
    /// Of these, dropped because the limit of waiting bytes was reached.
    pub waiting_dropped: u64,
    /// Of these, dropped because the neighbour did not answer.
    pub waiting_failed: u64,
    /// Messages of DHCP that offered or confirmed an address, or configured a host that has one.
    pub leases_granted: u64,
    /// Requests of DHCP for an address that is another host's, or that came when none was left.
    pub leases_refused: u64,
    /// Router advertisements sent.
    pub router_advertisements_sent: u64,
}

impl NeighbourStats {
    /// Adds those of another queue.
    pub(super) const fn add(&mut self, other: &Self) {
        let Self {
            requests_sent,
            requests_received,
            replies_sent,
            replies_received,
            resolved,
            failures,
            changes,
            evictions,
            not_learned,
            invalid,
            conflicts,
            defences,
            outgoing_dropped,
            waited,
            waiting_dropped,
            waiting_failed,
            leases_granted,
            leases_refused,
            router_advertisements_sent,
        } = *other;
        self.requests_sent += requests_sent;
        self.requests_received += requests_received;
        self.replies_sent += replies_sent;
        self.replies_received += replies_received;
        self.resolved += resolved;
        self.failures += failures;
        self.changes += changes;
        self.evictions += evictions;
        self.not_learned += not_learned;
        self.invalid += invalid;
        self.conflicts += conflicts;
        self.defences += defences;
        self.outgoing_dropped += outgoing_dropped;
        self.waited += waited;
        self.waiting_dropped += waiting_dropped;
        self.waiting_failed += waiting_failed;
        self.leases_granted += leases_granted;
        self.leases_refused += leases_refused;
        self.router_advertisements_sent += router_advertisements_sent;
    }
}
