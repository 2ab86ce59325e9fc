//! `backpressure`: at most `b` data packets of each connection wait in the host; TCP holds back the
//! rest (Kalampoukas, Varma and Ramakrishnan, 1997, section 5).
//!
//! The queue is first in, first out, but short: an ACK waits for `b` packets of each upload instead
//! of its whole window. A larger `b` favours uploads at the expense of downloads. ACKs are never
//! held back (step 12). The count includes the packet on the link: with `b = 1` the next one enters
//! when that has left, behind the ACKs that arrived meanwhile (step 11).

use crate::entry;
use crate::waiters::Waiters;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Admission, Ask, Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped,
    SchedulerProperties, Scope,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewEgressScheduler, Params, SpecError};
use ackline_tcp_core::{ConnId, Instant};
use alloc::collections::VecDeque;
use hashbrown::HashMap;

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    source: "Kalampoukas et al. 1997, section 5",
    ..entry::keyed::<Limit, Backpressure>(
        "backpressure",
        "at most b data packets of each connection wait in the host; more favours uploads",
    )
};

/// b.
#[derive(Clone, Debug)]
pub(crate) struct Limit(u32);

impl Default for Limit {
    fn default() -> Self {
        Self(1)
    }
}

impl Keyed for Limit {
    const KEYS: &'static [Key<Self>] = &[Key::integer(
        "b",
        1..=65_535,
        "data packets of a connection that may be queued or on the link",
        |it| &mut it.0,
    )];
}

impl From<Limit> for Backpressure {
    fn from(limit: Limit) -> Self {
        Self::new(limit.0)
    }
}

/// First in, first out, with a limit on each connection's data (steps 11 to 15). O(1) per packet.
#[derive(Debug)]
pub struct Backpressure {
    /// b\[c\], the same for all connections.
    limit: u32,
    queue: Fifo,
    /// occ\[c\]: data packets queued or on the link; only connections that have some.
    occupancy: HashMap<ConnId, u32>,
    /// Data packets popped but not departed, oldest first.
    on_link: VecDeque<(u64, ConnId)>,
    /// Deferred connections, longest ago first.
    suspended: Waiters,
    /// Connections that may ask again.
    released: Waiters,
    /// Number of deferrals.
    deferred: u64,
}

impl Default for Backpressure {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Backpressure {
    /// At most `b` data packets of each connection, at least 1.
    #[must_use]
    pub fn new(b: u32) -> Self {
        Self {
            limit: b.max(1),
            queue: Fifo::default(),
            occupancy: HashMap::new(),
            on_link: VecDeque::new(),
            suspended: Waiters::default(),
            released: Waiters::default(),
            deferred: 0,
        }
    }

    /// occ\[c\]: data packets of a connection queued or on the link.
    #[must_use]
    pub fn occupancy(&self, conn: ConnId) -> u32 {
        self.occupancy.get(&conn).copied().unwrap_or(0)
    }

    /// Step 13: a data packet of the connection is gone; if that makes room, it may ask again.
    fn release(&mut self, conn: ConnId) {
        let Some(occupancy) = self.occupancy.get_mut(&conn) else { return };
        *occupancy = occupancy.saturating_sub(1);
        let left = *occupancy;
        if left == 0 {
            self.occupancy.remove(&conn);
        }
        if left < self.limit && self.suspended.remove(conn) {
            self.released.insert(conn);
        }
    }
}

impl EgressScheduler for Backpressure {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
    }

    /// Step 11. (TCP checks the window.)
    fn admit(&mut self, _now: Instant, ask: &Ask) -> Admission {
        let Some(conn) = ask.conn.filter(|_| ask.class.is_data()) else { return Admission::Granted };
        self.released.remove(conn);
        if self.occupancy(conn) >= self.limit {
            self.deferred += 1;
            self.suspended.insert(conn);
            return Admission::Deferred;
        }
        self.suspended.remove(conn);
        Admission::Granted
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        if let Some(conn) = packet.conn.filter(|_| packet.class.is_data()) {
            *self.occupancy.entry(conn).or_insert(0) += 1;
        }
        self.queue.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let popped = self.queue.pop(now, link);
        if let Popped::Packet(packet) = &popped
            && let Some(conn) = packet.conn.filter(|_| packet.class.is_data())
        {
            self.on_link.push_back((packet.id.serial, conn));
        }
        popped
    }

    fn departed(&mut self, _now: Instant, packet: &Descriptor) {
        // Usually the first, since packets depart in order.
        let place = self.on_link.iter().position(|(serial, _)| *serial == packet.id.serial);
        if let Some((_, conn)) = place.and_then(|place| self.on_link.remove(place)) {
            self.release(conn);
        }
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        self.released.pop()
    }

    /// Step 15: packets that are removed no longer count.
    fn forget(&mut self, now: Instant, which: Forget) {
        match which {
            Forget::Packet { serial, .. } => {
                if let Some(place) = self.on_link.iter().position(|(popped, _)| *popped == serial) {
                    if let Some((_, conn)) = self.on_link.remove(place) {
                        self.release(conn);
                    }
                } else if let Some(packet) = self.queue.take(serial)
                    && let Some(conn) = packet.conn.filter(|_| packet.class.is_data())
                {
                    self.release(conn);
                }
            }
            Forget::Conn(conn) => {
                self.queue.forget(now, which);
                self.on_link.retain(|(_, owner)| *owner != conn);
                self.occupancy.remove(&conn);
                self.suspended.remove(conn);
                self.released.remove(conn);
            }
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.queue.backlog(scope)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.number("b", self.limit);
        report.count("suspended", self.suspended.len() as u64);
        report.count("backpressure_deferred", self.deferred);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut limit = Limit(self.limit);
        limit.set(ENTRY.name, params)?;
        let limit = limit.0;
        if limit > self.limit {
            // Connections that now have room may ask; the others keep waiting, in the same order.
            for _ in 0..self.suspended.len() {
                let Some(conn) = self.suspended.pop() else { break };
                if self.occupancy(conn) < limit {
                    self.released.insert(conn);
                } else {
                    self.suspended.insert(conn);
                }
            }
        }
        self.limit = limit;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
