//! What a tracer is told of sending. Called only if there is one, so sending costs no more without.

use crate::events::TraceEvent;
use crate::id::ConnId;
use crate::info::Blocked;
use crate::plan::Plan;
use crate::share::Cx;
use crate::table::{Flags, Table};
use crate::time::Instant;

/// Traces why each connection that was asked for packets has no more for now: one of those
/// touched that is not in the ready queue.
#[cold]
#[inline(never)]
pub(crate) fn trace_blocked(table: &mut Table, cx: &mut Cx<'_>) {
    for &index in &table.touched {
        let id = table.slots.id(index);
        if let Some(slot) = table.slots.slot_mut(index)
            && !slot.flags.has(Flags::READY)
            && let Some(conn) = slot.conn.as_deref()
        {
            let deferred = slot.flags.has(Flags::DEFERRED);
            let cause = if deferred { Blocked::Scheduler } else { conn.blocked() };
            if cause != Blocked::No {
                cx.conn(id).trace(|| TraceEvent::Blocked { cause });
            }
        }
    }
}

/// Traces for how long the connection's next packet was queued.
#[cold]
#[inline(never)]
pub(crate) fn trace_queued(cx: &mut Cx<'_>, id: ConnId, queued_at: Instant) {
    let delay = cx.now.since(queued_at);
    if !delay.is_zero() {
        cx.conn(id).trace(|| TraceEvent::Queued { delay });
    }
}

/// Traces which rule asked for the ACK that is offered next, if it is one.
#[cold]
#[inline(never)]
pub(crate) fn trace_ack(table: &mut Table, cx: &mut Cx<'_>, id: ConnId, plan: &Plan) {
    if let Some(conn) = table.slots.conn_mut(id.index)
        && let Some((policy, rule)) = conn.ack_rule(cx.now, plan)
    {
        cx.conn(id).trace(|| TraceEvent::Ack { policy, rule });
    }
}
