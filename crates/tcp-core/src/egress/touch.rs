//! Events of connections.
//!
//! Events (segments, departures, calls of the application) come in bursts, and only the final state
//! matters. So an event only *touches* its connection, and the endpoint settles touched connections
//! after the burst.

use super::Egress;
use crate::share::Cx;
use crate::table::{Flags, Table};
use crate::time::Instant;

impl Egress {
    /// Something happened to the connection at `index`: it may have something to send, to report,
    /// or to wait for.
    #[inline]
    pub(crate) fn touch(&mut self, table: &mut Table, cx: &mut Cx<'_>, index: u32) {
        let Some(slot) = table.slots.slot_mut(index) else { return };
        if !slot.is_touched() {
            self.touch_anew(table, cx, index);
        }
    }

    fn touch_anew(&mut self, table: &mut Table, cx: &mut Cx<'_>, index: u32) {
        let Some(slot) = table.slots.slot_mut(index) else { return };
        let is_first = slot.flags.set(Flags::TOUCHED);
        if slot.queued == 0 {
            self.ready.enter(slot, index);
        } else {
            self.drop_void(table, cx.now, index);
        }
        if is_first {
            touched_first(table, cx, index);
        }
    }

    /// The same for a connection with packets in the scheduler.
    fn drop_void(&mut self, table: &mut Table, now: Instant, index: u32) {
        // A void packet must not be popped: the scheduler would account for it as sent.
        while let Some(conn) = table.slots.conn_mut(index)
            && let Some(serial) = conn.take_voided()
        {
            self.forget_packet(&mut table.slots, now, index, serial);
        }
        self.wake(&mut table.slots, index);
    }
}

/// The first event of the connection since it was settled.
#[inline]
fn touched_first(table: &mut Table, cx: &mut Cx<'_>, index: u32) {
    table.touched.push(index);
    let grant = cx.observe.budget.grant();
    if let Some(conn) = table.slots.conn_mut(index)
        && !conn.heeds(grant)
    {
        conn.heed(grant);
    }
}
