//! What follows an event of a connection: timers, notices for the application, and the end.
//!
//! Events [touch](crate::egress) connections. Touched connections are settled once, when
//! [`transmit`](super::Endpoint::transmit) ends, before timers are served and before events are
//! taken. A driver that takes events before it sends has them settled in two steps: the notices at
//! once, the rest after sending.
//!
//! After the connections, the account of memory is settled: each part says what it holds, so nobody
//! has to tell that this has changed.

use super::Owners;
use crate::conn::{Connection, Notices};
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::Wakeup;
use crate::id::ConnId;
use crate::share::Cx;
use crate::state::State;
use crate::table::Flags;

impl Owners {
    /// Settles every touched connection, and the account of memory.
    #[inline]
    pub(super) fn settle(&mut self, cx: &mut Cx<'_>) {
        if !self.table.touched.is_empty()
            || !self.table.noticed.is_empty()
            || !cx.observe.budget.is_settled(self.memory(cx))
            || cx.observe.budget.is_short()
        {
            self.settle_all(cx);
        } else if cx.limits.are_shared() {
            cx.limits.settle(&self.numbers());
        }
    }

    fn settle_all(&mut self, cx: &mut Cx<'_>) {
        if !self.table.touched.is_empty() {
            // Settling a connection never touches another one.
            let mut next = 0;
            while let Some(&index) = self.table.touched.get(next) {
                self.settle_one(cx, index);
                next += 1;
            }
            self.table.touched.clear();
            self.table.count_orphans(cx);
        }
        if !self.table.noticed.is_empty() {
            self.settle_noticed(cx);
        }
        self.settle_memory(cx);
    }

    /// Settles the connections of which only the notices have been taken, unless that has been
    /// done.
    fn settle_noticed(&mut self, cx: &mut Cx<'_>) {
        let mut next = 0;
        while let Some(&index) = self.table.noticed.get(next) {
            if self.table.slots.slot(index).is_some_and(|slot| slot.flags.has(Flags::NOTICED)) {
                self.settle_one(cx, index);
            }
            next += 1;
        }
        self.table.noticed.clear();
    }

    /// Settles one connection: its notices, its deadline, and whether it has ended.
    pub(super) fn settle_one(&mut self, cx: &mut Cx<'_>, index: u32) {
        let table = &mut self.table;
        let Some(slot) = table.slots.slot_mut(index) else { return };
        slot.flags.clear(Flags::TOUCHED | Flags::NOTICED);
        let Some(conn) = slot.conn.as_deref_mut() else { return };
        if cx.observe.budget.is_under_pressure() {
            conn.shrink(&mut cx.observe.counters);
        }
        conn.look_at_memory(&cx.observe.budget);
        let (notices, deadline, over) = (conn.take_notices(), conn.next_deadline(), conn.is_over());
        let state = conn.state();
        if let Some(news) = conn.take_path_news() {
            self.ip.learn_path(cx, conn.tuple().remote_ip(), news);
        }
        if slot.take_in(notices) {
            table.events.push_back(index);
        }
        if slot.flags.has(Flags::RELEASED | Flags::EARLY) {
            if state != State::SynReceived && slot.flags.clear(Flags::EARLY) {
                self.opens.fast_opens.leave();
            }
            table.orphans.settle(cx.now, slot);
        }
        if over {
            self.opens.note_unanswered_fast_open(table, cx, index);
        }
        if over || (state == State::TimeWait && self.retire(cx, index)) {
            self.finish(cx, index);
        } else if let Some((at, _)) = deadline {
            self.table.wheel.set(index, at);
        } else {
            self.table.wheel.cancel(index);
        }
        self.charge(cx, index);
    }

    /// A connection in TIME-WAIT becomes a record, unless something of it is left to send. True if
    /// it can be forgotten.
    fn retire(&mut self, cx: &mut Cx<'_>, index: u32) -> bool {
        !self.egress.holds(self.table.slots.id(index)) && self.table.retire(cx, index)
    }

    /// The connection at `index` has ended: segments no longer find it. If the application holds
    /// it, it stays so that remaining data can be read.
    fn finish(&mut self, cx: &mut Cx<'_>, index: u32) {
        let table = &mut self.table;
        table.wheel.cancel(index);
        let id = table.slots.id(index);
        let Some(slot) = table.slots.slot_mut(index) else { return };
        let (queued, deferred) = (core::mem::take(&mut slot.queued), slot.flags.clear(Flags::DEFERRED));
        let (listener, unheld) = (slot.listener(), slot.is_unheld());
        self.egress.forget_conn(cx.now, id, queued, deferred);
        table.unname(index);
        if unheld {
            if let Some(listener) = listener {
                self.opens.listeners.leave(listener);
            }
            if let Some(mut conn) = table.slots.remove(index) {
                conn.discharge(&mut cx.observe.budget);
            }
        }
    }

    /// Serves every deadline up to `cx.now`.
    pub(super) fn serve_timers(&mut self, cx: &mut Cx<'_>) {
        self.settle(cx);
        if self.deadline_at(cx.config).is_none_or(|at| at > cx.now) {
            return;
        }
        self.end_overdue_orphans(cx);
        self.table.time_wait.expire(cx.now);
        let (opens, mut below) = self.opening();
        opens.expire(&mut below, cx);
        self.ip.expire_fragments(&mut self.egress, cx);
        self.udp.expire_flows(cx);
        while let Some(index) = self.table.wheel.pop_expired(cx.now) {
            let id = self.table.slots.id(index);
            let Some(conn) = self.table.slots.conn_mut(index) else { continue };
            conn.on_timeout(&mut cx.conn(id));
            // Its next deadline is armed after all have been served, so that one already in the
            // past is not served over and over.
            self.touch(cx, index);
        }
        self.settle(cx);
    }

    /// The application releases a connection.
    pub(super) fn let_go(&mut self, cx: &mut Cx<'_>, id: ConnId) {
        let Some(slot) = self.table.slots.get_mut(id) else { return };
        if let Some(number) = slot.take_listener() {
            self.opens.listeners.leave(number);
        }
        if !slot.flags.set(Flags::RELEASED) {
            return;
        }
        slot.notices = Notices::default();
        if let Some(conn) = slot.conn.as_deref_mut() {
            conn.release(&mut cx.conn(id));
        }
        self.touch(cx, id.index);
        self.table.orphan(cx.now, id.index);
        while !cx.limits.orphans.covers(self.table.orphans.len())
            && let Some(stalest) = self.table.orphans.stalest()
        {
            self.reset_orphan(cx, stalest);
        }
        self.table.count_orphans(cx);
        if self.table.slots.conn(id.index).is_some_and(|conn| conn.is_over()) {
            self.settle_one(cx, id.index);
        }
    }

    /// Ends the orphans that have waited for too long.
    fn end_overdue_orphans(&mut self, cx: &mut Cx<'_>) {
        while let Some(Wakeup { conn: Some(ConnId { index, .. }), .. }) =
            self.table.orphan_deadline(cx.config).filter(|wakeup| wakeup.at <= cx.now)
        {
            cx.observe.counters.tcp_orphan_timeouts += 1;
            self.end_orphan(cx, index, Connection::time_out);
        }
    }

    /// Resets the orphan at `index`, for whose memory there is a better use.
    pub(super) fn reset_orphan(&mut self, cx: &mut Cx<'_>, index: u32) {
        cx.observe.counters.tcp_abort_on_memory += 1;
        self.end_orphan(cx, index, |conn, ctx| conn.abort(ctx, ConnError::Aborted));
    }

    /// Ends the orphan at `index` as `end` does.
    fn end_orphan(&mut self, cx: &mut Cx<'_>, index: u32, end: impl FnOnce(&mut Connection, &mut Ctx<'_>)) {
        self.table.adopt(index);
        let id = self.table.slots.id(index);
        if let Some(conn) = self.table.slots.conn_mut(index) {
            end(conn, &mut cx.conn(id));
        }
        self.touch(cx, index);
    }
}
