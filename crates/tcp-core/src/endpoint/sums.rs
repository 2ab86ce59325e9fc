//! What the parts of an endpoint have in sum: deadlines, memory, numbers.

use super::Owners;
use super::shard::Shard;
use crate::config::EndpointConfig;
use crate::events::{WakeReason, Wakeup};
use crate::share::{Cx, Each};
use crate::time::Instant;

impl Owners {
    /// Bytes that belong to no connection. Asked for after each burst: each part knows its own.
    #[inline]
    pub(super) fn memory(&self, cx: &Cx<'_>) -> usize {
        let parts = self.table.memory()
            + self.egress.memory()
            + self.ip.memory()
            + self.opens.memory()
            + self.udp.memory();
        let foreign = self.shard.as_deref().map_or(0, Shard::memory);
        parts + foreign + self.waiting + cx.observe.budget.spare.memory()
    }

    /// How many of each kind there are.
    pub(super) fn numbers(&self) -> Each<usize> {
        Each {
            connections: self.table.slots.len(),
            half_open: self.opens.syn_cache.len(),
            held_syns: self.opens.held_syns.len(),
            orphans: self.table.orphans.len(),
            time_wait: self.table.time_wait.len(),
            fast_open: self.opens.fast_opens.pending() as usize,
        }
    }

    /// The next deadline, and what for: the first of those that are equally early.
    pub(super) fn deadline(&self, config: &EndpointConfig) -> Option<Wakeup> {
        let of = |at: Option<Instant>, reason| at.map(|at| Wakeup::new(at, reason, None));
        let all = [
            self.table.deadline(config),
            self.opens.deadline(),
            of(self.egress.wake_up_at(), WakeReason::Shaper),
            of(self.udp.deadline(), WakeReason::UdpFlow),
            of(self.ip.deadline(), WakeReason::Reassembly),
        ];
        all.into_iter().flatten().min_by_key(|wakeup| wakeup.at)
    }

    /// The same without what for, at less cost.
    pub(super) fn deadline_at(&self, config: &EndpointConfig) -> Option<Instant> {
        let table = self.table.deadline_at(config);
        // Mostly there is nothing but connections.
        let records = self.opens.syn_cache.len() + self.opens.held_syns.len() + self.ip.incomplete_packets();
        if records == 0 && self.egress.is_idle() && self.udp.is_empty() {
            return table;
        }
        let opens = self.opens.deadline().map(|wakeup| wakeup.at);
        let all = [table, opens, self.egress.wake_up_at(), self.udp.deadline(), self.ip.deadline()];
        all.into_iter().flatten().min()
    }
}
