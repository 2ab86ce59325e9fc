//! The connections of an endpoint: storage, look-up, deadlines, and what each has to report.
//!
//! | file | holds |
//! |---|---|
//! | `slots.rs`, `demux.rs`, `wheel.rs` | storage of connections: by handle, by four-tuple, by deadline |
//! | `orphans.rs` | connections that the application has released |
//! | `time_wait.rs` | connections in TIME-WAIT that nobody holds, as records |
//! | `isn.rs`, `ports.rs` | initial sequence numbers, timestamp offsets and ephemeral ports |

mod demux;
mod isn;
mod orphans;
mod ports;
mod slots;
mod time_wait;
mod wheel;

pub(crate) use isn::IsnGenerator;
pub(crate) use ports::{PortSelector, PortUsage};
pub(crate) use slots::{Flags, Slot, Slots};
pub(crate) use time_wait::{Name, TIME_WAIT, TimeWaitTable};

use crate::config::EndpointConfig;
use crate::conn::{Connection, Notices};
use crate::ctx::Ctx;
use crate::events::{Event, WakeReason, Wakeup};
use crate::four_tuple::FourTuple;
use crate::id::{ConnId, ListenerId};
use crate::memory::budget::Budget;
use crate::pattern::Pattern;
use crate::seq::SeqNum;
use crate::share::{Cx, Keys};
use crate::state::State;
use crate::time::Instant;
use crate::wire::{IpInfo, TcpSegment};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use demux::Demux;
use orphans::Orphans;
use wheel::TimingWheel;

/// What the arrays of the table hold for a connection: its slot, its place in the timing wheel, and
/// its bucket in the hash table.
pub(crate) const ENTRIES: usize = size_of::<Slot>() + 4 + 16;

/// True if the budget has room for another connection, which it has taken then.
pub(crate) fn takes_connection(budget: &mut Budget) -> bool {
    budget.admit(ENTRIES + size_of::<Connection>())
}

/// The connections of an endpoint. The layers above insert, touch and settle them.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) slots: Slots,
    /// Connections by their addresses and ports.
    demux: Demux,
    /// The connection of the last segment was at this index; it may be gone.
    pub(crate) latest: u32,
    /// The earliest deadline of each connection, by its index.
    pub(crate) wheel: TimingWheel,
    pub(crate) orphans: Orphans,
    /// Connections in TIME-WAIT that nobody holds.
    pub(crate) time_wait: TimeWaitTable,
    pub(crate) isn: IsnGenerator,
    pub(crate) ports: PortSelector,
    /// Connections with events for the application. [`Flags::EVENTS`] marks those in this queue.
    pub(crate) events: VecDeque<u32>,
    /// Connections touched since they were last settled. [`Flags::TOUCHED`] marks those in this
    /// list.
    pub(crate) touched: Vec<u32>,
    /// Connections of which only the notices were taken since then. [`Flags::NOTICED`] marks those
    /// to be settled.
    pub(crate) noticed: Vec<u32>,
    /// What streams are made of.
    pub(crate) pattern: Option<Pattern>,
}

/// The four-tuples of connections, and of records in TIME-WAIT.
pub(crate) struct Tuples<'a> {
    slots: &'a Slots,
    demux: &'a Demux,
    time_wait: &'a TimeWaitTable,
}

impl Tuples<'_> {
    /// The connection with this four-tuple.
    fn look_up(&self, tuple: &FourTuple) -> Option<u32> {
        self.demux.find(tuple, |index| self.slots.conn(index).is_some_and(|conn| conn.tuple() == tuple))
    }

    /// What `tuple` is to a new connection. `reuses`: it may use those in TIME-WAIT again.
    pub(crate) fn usage(&self, now: Instant, tuple: &FourTuple, reuses: bool) -> PortUsage {
        if self.look_up(tuple).is_some() {
            return PortUsage::Taken;
        }
        match self.time_wait.look_up(tuple) {
            None => PortUsage::Free,
            Some(name) if reuses && self.time_wait.is_reusable(now, name) => PortUsage::Reusable,
            Some(_) => PortUsage::Taken,
        }
    }
}

impl Table {
    /// No connections.
    pub(crate) fn new(config: &EndpointConfig, keys: &Keys) -> Self {
        Self {
            slots: Slots::default(),
            demux: Demux::new(keys.demux),
            latest: 0,
            wheel: TimingWheel::new(),
            orphans: Orphans::default(),
            time_wait: TimeWaitTable::new(keys.time_wait),
            isn: IsnGenerator::new(keys.isn),
            ports: PortSelector::new(keys.ports, config.ephemeral_ports.clone()),
            events: VecDeque::new(),
            touched: Vec::new(),
            noticed: Vec::new(),
            pattern: None,
        }
    }

    /// Bytes held for no connection in particular, or for one that is only a record.
    pub(crate) fn memory(&self) -> usize {
        self.time_wait.memory() + self.wheel.memory()
    }

    /// When a connection's timer, an orphan or a record in TIME-WAIT is due, and which.
    pub(crate) fn deadline(&self, config: &EndpointConfig) -> Option<Wakeup> {
        let timer = self.wheel.next().map(|(at, index)| {
            let reason = self.slots.conn(index).and_then(|conn| conn.next_deadline());
            // A timer is only armed for a deadline.
            let reason = reason.map_or(WakeReason::Policy, |(_, reason)| reason);
            Wakeup::new(at, reason, Some(self.slots.id(index)))
        });
        let time_wait = self.time_wait.next_end().map(|at| Wakeup::new(at, WakeReason::TimeWait, None));
        let all = [timer, time_wait, self.orphan_deadline(config)];
        all.into_iter().flatten().min_by_key(|wakeup| wakeup.at)
    }

    /// The same without what for, at less cost.
    pub(crate) fn deadline_at(&self, config: &EndpointConfig) -> Option<Instant> {
        let timer = self.wheel.next().map(|(at, _)| at);
        // Mostly there is nothing but connections.
        if self.time_wait.len() + self.orphans.len() == 0 {
            return timer;
        }
        let orphan = self.orphan_deadline(config).map(|wakeup| wakeup.at);
        [timer, self.time_wait.next_end(), orphan].into_iter().flatten().min()
    }

    /// True if the segment is for the connection at `index`.
    #[inline]
    pub(crate) fn is_named(&self, index: u32, ip: &IpInfo, segment: &TcpSegment<'_>) -> bool {
        self.slots.slot(index).is_some_and(|slot| {
            slot.flags.has(Flags::NAMED)
                && slot
                    .conn
                    .as_deref()
                    .is_some_and(|conn| conn.tuple().is(ip.dst, segment.dst_port, ip.src, segment.src_port))
        })
    }

    /// The connection with this four-tuple.
    pub(crate) fn look_up(&self, tuple: &FourTuple) -> Option<u32> {
        let Self { slots, demux, time_wait, .. } = self;
        Tuples { slots, demux, time_wait }.look_up(tuple)
    }

    /// Adds the connection that `make` creates in its context. Segments find it by `tuple`.
    pub(crate) fn insert(
        &mut self,
        cx: &mut Cx<'_>,
        tuple: &FourTuple,
        make: impl FnOnce(&mut Ctx<'_>) -> Connection,
    ) -> ConnId {
        let id = self.slots.insert(|id| Box::new(make(&mut cx.conn(id))));
        if let Some(slot) = self.slots.get_mut(id) {
            if let (Some(pattern), Some(conn)) = (self.pattern, slot.conn.as_deref_mut()) {
                conn.expect_pattern(pattern);
            }
            if slot.flags.set(Flags::NAMED) {
                self.demux.insert(tuple, id.index);
            }
        }
        id
    }

    /// Segments no longer find the connection at `index`.
    pub(crate) fn unname(&mut self, index: u32) {
        if let Some(slot) = self.slots.slot_mut(index)
            && slot.flags.clear(Flags::NAMED)
            && let Some(conn) = slot.conn.as_deref()
        {
            self.demux.remove(conn.tuple(), index);
        }
    }

    /// The choice of ports, and the four-tuples in use.
    pub(crate) const fn ports_and_tuples(&mut self) -> (&mut PortSelector, Tuples<'_>) {
        let Self { ports, slots, demux, time_wait, .. } = self;
        (ports, Tuples { slots, demux, time_wait })
    }

    /// The initial sequence number of a connection; above `floor`, if it follows one in TIME-WAIT.
    pub(crate) fn iss(&self, now: Instant, tuple: &FourTuple, floor: Option<SeqNum>) -> SeqNum {
        match floor {
            Some(floor) => self.isn.isn_above(now, tuple, floor),
            None => self.isn.isn(now, tuple),
        }
    }

    /// Ends the TIME-WAIT of `tuple` for a new connection of this side. Returns SND.NXT of the old
    /// one.
    pub(crate) fn take_from_time_wait(&mut self, cx: &mut Cx<'_>, tuple: &FourTuple) -> Option<SeqNum> {
        let name = self.time_wait.look_up(tuple)?;
        let floor = self.time_wait.find(name)?.numbers.snd_nxt();
        self.time_wait.remove(name);
        cx.observe.counters.tcp_tw_recycled += 1;
        Some(floor)
    }

    /// Makes a record of the connection at `index` if it is in TIME-WAIT, nobody holds it, and
    /// nothing of it is left to send. True if the connection itself can be forgotten.
    pub(crate) fn retire(&mut self, cx: &mut Cx<'_>, index: u32) -> bool {
        let Some(slot) = self.slots.slot(index) else { return false };
        if !slot.is_unheld() || slot.queued > 0 {
            return false;
        }
        let Some(conn) = slot.conn.as_deref() else { return false };
        let Some(retired) = conn.retire() else { return false };
        let name = self.time_wait.name(conn.tuple());
        while !cx.limits.time_wait.has_room(self.time_wait.len()) {
            cx.observe.counters.tcp_time_wait_overflow += 1;
            if !self.time_wait.remove_first() {
                return true;
            }
        }
        self.time_wait.insert(name, &retired, cx.config.default_ttl);
        true
    }

    /// A packet of the connection left that it does not wait for itself.
    pub(crate) fn settle_later(&mut self, conn: ConnId) {
        if let Some(slot) = self.slots.get_mut(conn)
            && slot.flags.set(Flags::TOUCHED)
        {
            self.touched.push(conn.index);
        }
    }

    /// Takes the notices of touched connections, and leaves the rest to the next settlement:
    /// deadlines, and memory, as long as that is plentiful. False if the rest cannot wait.
    pub(crate) fn take_notices(&mut self) -> bool {
        let can_wait = |slot: &Slot| {
            let waits = |conn: &Connection| conn.state() == State::Established && !conn.has_path_news();
            slot.conn.as_deref().is_some_and(waits) && !slot.flags.has(Flags::RELEASED | Flags::EARLY)
        };
        let lasts = |index: &u32| self.slots.slot(*index).is_some_and(can_wait);
        if !self.touched.iter().all(lasts) {
            return false;
        }
        for index in self.touched.drain(..) {
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
        true
    }

    /// The next event. Those of one connection come in the order in which they can happen.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
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
}
