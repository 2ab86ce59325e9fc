//! What the endpoint charges to its [memory budget](crate::budget).
//!
//! A connection is charged with what it holds and with its entries in the endpoint's arrays, at each
//! [settlement](super::service). The rest (half-open connections, records in TIME-WAIT, what is known of paths, packets
//! without a connection, descriptors) is charged as a whole. Arrays do not shrink when connections end, so their spare entries are not charged: after a peak they may
//! hold a few percent of it.

use super::Endpoint;
use super::slots::Slot;
use crate::policy::sched::Descriptor;
use crate::time::Instant;

/// What the endpoint's arrays hold for a connection: its slot, its node in the timing wheel, and its bucket in the hash
/// table.
const ENTRIES: usize = size_of::<Slot>() + 24 + 16;

impl Endpoint {
    /// Charges the connection at `index`, unless it is gone, with what it holds.
    pub(super) fn charge(&mut self, index: u32) {
        if let Some(conn) = self.slots.conn_mut(index) {
            conn.charge(&mut self.observe.budget, ENTRIES);
        }
    }

    /// Every connection has been charged.
    pub(super) fn settle_memory(&mut self, now: Instant) {
        let descriptors = self.egress.queued * size_of::<Descriptor>();
        let tables = self.syn_cache.memory()
            + self.time_wait.memory()
            + self.paths.memory()
            + self.egress.strays.memory()
            + descriptors;
        let observe = &mut self.observe;
        observe.budget.settle(now, tables, &mut observe.counters);
    }
}
