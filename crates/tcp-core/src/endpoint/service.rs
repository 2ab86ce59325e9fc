//! What follows an event of a connection: timers, events for the application, and the end.
//!
//! Events (segments, departures, calls of the application) come in bursts, and only the final state
//! matters. So an event only *touches* its connection; touched connections are settled once, when
//! [`transmit`](Endpoint::transmit) ends, before timers are served and before events are taken. A
//! driver that takes events before it sends has them settled in two steps: the notices at once, the
//! rest after sending.

use super::Endpoint;
use super::slots::{Flags, Slot};
use crate::State;
use crate::conn::{Connection, Notices, PathNews};
use crate::events::Event;
use crate::id::{ConnId, ListenerId};
use crate::time::Instant;

impl Endpoint {
    /// Something happened to the connection at `index`: it may have something to send, to report,
    /// or to wait for.
    #[inline]
    pub(super) fn touch(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.slot_mut(index) else { return };
        let is_first = slot.flags.set(Flags::TOUCHED);
        if slot.queued == 0 {
            self.egress.ready.enter(slot, index);
        } else {
            self.drop_void(now, index);
        }
        if is_first {
            self.touched_first(index);
        }
    }

    /// The first event of the connection since it was settled.
    #[inline(never)]
    fn touched_first(&mut self, index: u32) {
        self.touched.push(index);
        if let Some(conn) = self.slots.conn_mut(index) {
            conn.heed(self.observe.budget.grant());
        }
    }

    /// A packet of the connection left that it does not wait for itself.
    pub(super) fn settle_later(&mut self, conn: ConnId) {
        if let Some(slot) = self.slots.get_mut(conn)
            && slot.flags.set(Flags::TOUCHED)
        {
            self.touched.push(conn.index);
        }
    }

    /// The same as [`touch`](Self::touch), for a connection with packets in the scheduler.
    fn drop_void(&mut self, now: Instant, index: u32) {
        // A void packet must not be popped: the scheduler would account for it as sent.
        while let Some(conn) = self.slots.conn_mut(index)
            && let Some(serial) = conn.take_voided()
        {
            self.egress.forget_packet(&mut self.slots, now, index, serial);
        }
        self.egress.wake(&mut self.slots, index);
    }

    /// Settles every touched connection, and the account of memory.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if !self.touched.is_empty() || !self.noticed.is_empty() || self.unsettled || self.is_short() {
            self.settle_all(now);
        }
        debug_assert_eq!(self.tables() as u64, self.observe.budget.tables(), "what tables hold is settled");
    }

    fn settle_all(&mut self, now: Instant) {
        if !self.touched.is_empty() {
            // Settling a connection never touches another one; the list is put back to keep its
            // allocation.
            let mut touched = core::mem::take(&mut self.touched);
            for index in touched.drain(..) {
                self.settle_one(now, index);
            }
            self.touched = touched;
            self.count_orphans();
        }
        self.settle_noticed(now);
        self.settle_memory(now);
    }

    /// Settles the connections of which only the notices have been taken, unless that has been
    /// done.
    fn settle_noticed(&mut self, now: Instant) {
        let mut noticed = core::mem::take(&mut self.noticed);
        for index in noticed.drain(..) {
            if self.slots.slot(index).is_some_and(|slot| slot.flags.has(Flags::NOTICED)) {
                self.settle_one(now, index);
            }
        }
        self.noticed = noticed;
    }

    /// Takes the notices of touched connections, and leaves the rest to the next settlement:
    /// deadlines, and memory, as long as that is plentiful. False if the rest cannot wait.
    pub(super) fn settle_notices(&mut self) -> bool {
        let can_wait = |slot: &Slot| {
            let waits = |conn: &Connection| conn.state() == State::Established && !conn.has_path_news();
            slot.conn.as_deref().is_some_and(waits) && !slot.flags.has(Flags::RELEASED | Flags::EARLY)
        };
        let lasts = |index: &u32| self.slots.slot(*index).is_some_and(can_wait);
        if self.unsettled || !self.observe.budget.is_plentiful() || !self.touched.iter().all(lasts) {
            return false;
        }
        let mut touched = core::mem::take(&mut self.touched);
        for index in touched.drain(..) {
            let Some(slot) = self.slots.slot_mut(index) else { continue };
            slot.flags.clear(Flags::TOUCHED);
            let Some(conn) = slot.conn.as_deref_mut() else { continue };
            let notices = conn.take_notices();
            if slot.take_in(notices) {
                self.events.push_back(index);
            }
            if slot.flags.set(Flags::NOTICED) {
                self.noticed.push(index);
            }
        }
        self.touched = touched;
        true
    }

    /// Settles one connection: its notices, its deadline, and whether it has ended.
    pub(super) fn settle_one(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.slot_mut(index) else { return };
        slot.flags.clear(Flags::TOUCHED | Flags::NOTICED);
        let Some(conn) = slot.conn.as_deref_mut() else { return };
        if self.observe.budget.is_under_pressure() {
            conn.shrink(&mut self.observe.counters);
        }
        conn.look_at_memory(&self.observe.budget);
        let (notices, deadline, over) = (conn.take_notices(), conn.next_deadline(), conn.is_over());
        let state = conn.state();
        if let Some(news) = conn.take_path_news() {
            self.unsettled = true;
            let (to, max) = (conn.tuple().remote_ip(), self.config.max_path_entries);
            match news {
                PathNews::Narrow { mtu, expiry } => {
                    let replaced = self.paths.learn(now, to, mtu, now + expiry, max);
                    self.observe.counters.tcp_path_mtu_replaced += u64::from(replaced);
                }
                PathNews::Wide => self.paths.forget(to),
            }
        }
        if slot.take_in(notices) {
            self.events.push_back(index);
        }
        if slot.flags.has(Flags::RELEASED | Flags::EARLY) {
            if state != State::SynReceived && slot.flags.clear(Flags::EARLY) {
                self.fast_opens.leave();
                self.unsettled = true;
            }
            self.unsettled |= self.orphans.settle(now, slot);
        }
        if over {
            self.unsettled = true;
            self.note_unanswered_fast_open(now, index);
        }
        if over || (state == State::TimeWait && self.retire(index)) {
            self.finish(now, index);
        } else if let Some((at, _)) = deadline {
            self.wheel.set(index, at);
        } else {
            self.wheel.cancel(index);
        }
        self.charge(index);
    }

    /// The connection at `index` has ended: segments no longer find it. If the application holds
    /// it, it stays so that remaining data can be read.
    fn finish(&mut self, now: Instant, index: u32) {
        self.unsettled = true;
        self.wheel.cancel(index);
        let id = self.slots.id(index);
        let Some(slot) = self.slots.slot_mut(index) else { return };
        let (queued, deferred) = (core::mem::take(&mut slot.queued), slot.flags.clear(Flags::DEFERRED));
        self.egress.forget_conn(now, id, queued, deferred);
        if slot.flags.clear(Flags::NAMED)
            && let Some(conn) = slot.conn.as_deref()
        {
            self.demux.remove(conn.tuple(), index);
        }
        if slot.is_unheld() {
            if let Some(listener) = slot.listener() {
                self.listeners.leave(listener);
            }
            if let Some(mut conn) = self.slots.remove(index) {
                conn.discharge(&mut self.observe.budget);
            }
        }
    }

    /// Serves every deadline up to `now`.
    pub(super) fn serve_timers(&mut self, now: Instant) {
        self.settle(now);
        self.end_overdue_orphans(now);
        self.unsettled |= self.time_wait.len() + self.syn_cache.len() > 0;
        self.time_wait.expire(now);
        self.expire_half_open(now);
        self.expire_held_syns(now);
        self.expire_fragments(now);
        self.expire_flows(now);
        while let Some(index) = self.wheel.pop_expired(now) {
            let id = self.slots.id(index);
            let Some(conn) = self.slots.conn_mut(index) else { continue };
            conn.on_timeout(&mut self.observe.ctx(now, id, &self.config));
            // Its next deadline is armed after all have been served, so that one already in the
            // past is not served over and over.
            self.touch(now, index);
        }
        self.settle(now);
    }

    /// The next event. Those of one connection come in the order in which they can happen.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        loop {
            let index = *self.events.front()?;
            let conn = self.slots.id(index);
            let Some(slot) = self.slots.slot_mut(index) else {
                self.events.pop_front();
                continue;
            };
            let event = slot.notices.take_first().and_then(|notice| match notice {
                Notices::ACCEPTED => {
                    // A connection without a listener was not accepted by one.
                    let number = slot.listener()?;
                    slot.flags.set(Flags::OFFERED);
                    Some(Event::Accepted { listener: ListenerId(number.get()), conn })
                }
                Notices::CONNECTED => Some(Event::Connected(conn)),
                Notices::READABLE => Some(Event::Readable(conn)),
                Notices::WRITABLE => Some(Event::Writable(conn)),
                Notices::FLUSHED => Some(Event::Flushed(conn)),
                _ => Some(Event::Closed { conn, error: slot.conn.as_deref().and_then(|conn| conn.error()) }),
            });
            if slot.notices.is_empty() {
                slot.flags.clear(Flags::EVENTS);
                self.events.pop_front();
            }
            if event.is_some() {
                return event;
            }
        }
    }

    /// The application releases a connection.
    pub(super) fn let_go(&mut self, now: Instant, id: ConnId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        if let Some(number) = slot.take_listener() {
            self.listeners.leave(number);
        }
        if !slot.flags.set(Flags::RELEASED) {
            return;
        }
        slot.notices = Notices::default();
        if let Some(conn) = slot.conn.as_deref_mut() {
            conn.release(&mut self.observe.ctx(now, id, &self.config));
        }
        self.touch(now, id.index);
        self.orphan(now, id.index);
        if self.slots.conn(id.index).is_some_and(|conn| conn.is_over()) {
            self.settle_one(now, id.index);
        }
    }
}
