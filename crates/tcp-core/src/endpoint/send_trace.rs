//! What a tracer is told of sending. Called only if there is one, so sending costs no more without.

use super::Endpoint;
use super::slots::Flags;
use crate::events::TraceEvent;
use crate::id::ConnId;
use crate::info::Blocked;
use crate::plan::Plan;
use crate::time::Instant;

impl Endpoint {
    /// Traces why each connection that was asked for packets has no more for now: one of those
    /// touched that is not in the ready queue.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_blocked(&mut self, now: Instant) {
        for &index in &self.touched {
            let id = self.slots.id(index);
            if let Some(slot) = self.slots.slot_mut(index)
                && !slot.flags.has(Flags::READY)
                && let Some(conn) = slot.conn.as_deref()
            {
                let deferred = slot.flags.has(Flags::DEFERRED);
                let cause = if deferred { Blocked::Scheduler } else { conn.blocked() };
                if cause != Blocked::No {
                    self.observe.ctx(now, id, &self.config).trace(|| TraceEvent::Blocked { cause });
                }
            }
        }
    }

    /// Traces for how long the connection's next packet was queued.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_queued(&mut self, now: Instant, id: ConnId, queued_at: Instant) {
        let delay = now.since(queued_at);
        if !delay.is_zero() {
            self.observe.ctx(now, id, &self.config).trace(|| TraceEvent::Queued { delay });
        }
    }

    /// Traces which rule asked for the ACK that is offered next, if it is one.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_ack(&mut self, now: Instant, id: ConnId, plan: &Plan) {
        if let Some(conn) = self.slots.conn_mut(id.index)
            && let Some((policy, rule)) = conn.ack_rule(now, plan)
        {
            self.observe.ctx(now, id, &self.config).trace(|| TraceEvent::Ack { policy, rule });
        }
    }
}
