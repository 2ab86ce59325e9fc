//! One egress scheduler for all shards of a stack.
//!
//! A scheduler with a rate, or with a queue of its own, applies to the host: `rate=100mbit` limits
//! what the host sends, and fair shares are shares of that rate. So all shards share one scheduler
//! behind a lock. It gets the packets of all shards and picks the next; the picked packet goes to the
//! tray of its shard, which is woken.
//!
//! ```text
//!   shard 0 ── push ──►┐             ┌──► tray 0 ──► shard 0 sends
//!                      │ scheduler │─┤
//!   shard 1 ── push ──►┘   ▲         └──► tray 1 ──► shard 1 is woken, and sends
//!                          │
//!             pop, by any shard
//! ```
//!
//! The lock is held for one call, and only packets that go through the scheduler take it: those
//! that bypass it do not. Without a rate each shard has a scheduler in front of its own queue of
//! the device.
//!
//! A packet goes to a tray only if that shard has queued it and did not get it yet. A wrong answer
//! goes to the shard that asked, whose endpoint counts it and sends its oldest packet instead; so
//! no scheduler can fill trays or keep the lock.

use super::hub::Hub;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ackline_tcp_core::policy::sched::{
    Admission, Arrival, Ask, Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped,
    SchedulerProperties, Scope,
};
use ackline_tcp_core::policy::{Ledger, Metrics, Params, SpecError};
use ackline_tcp_core::{ConnId, Duration, Instant};
use std::collections::VecDeque;
use std::ops::Add;

/// The scheduler that all shards share.
#[derive(Debug)]
struct HostEgress {
    state: Mutex<State>,
    hub: Arc<Hub>,
}

#[derive(Debug)]
struct State {
    scheduler: Box<dyn EgressScheduler>,
    /// The latest instant that a shard has passed in. The clocks of two shards may differ by a turn.
    latest: Instant,
    trays: Box<[Tray]>,
    /// Requests that were deferred, less those that were named since: no more are named.
    deferred: u64,
}

/// The scheduler's part of one shard, by the shard's own handles and serial numbers.
#[derive(Debug, Default)]
struct Tray {
    /// Packets that leave next, or are dropped.
    popped: VecDeque<Popped>,
    /// Connections that may ask again.
    resumed: VecDeque<ConnId>,
    /// The shard's packets in the scheduler.
    queued: Ledger,
}

/// A shard's access to the shared scheduler.
#[derive(Debug)]
struct ShardEgress {
    host: Arc<HostEgress>,
    index: usize,
}

/// Shards, one bit each.
type Set = u64;

/// Shares `scheduler` among all shards: returns the access of each.
pub(crate) fn for_all(scheduler: Box<dyn EgressScheduler>, hub: &Arc<Hub>) -> Vec<Box<dyn EgressScheduler>> {
    let shards = hub.shards();
    let trays = (0..shards).map(|_| Tray::default()).collect();
    let state = Mutex::new(State { scheduler, latest: Instant::ZERO, trays, deferred: 0 });
    let host = Arc::new(HostEgress { state, hub: hub.clone() });
    let of = |index| Box::new(ShardEgress { host: host.clone(), index }) as Box<dyn EgressScheduler>;
    (0..shards).map(of).collect()
}

impl State {
    /// The instant of a call. Time does not go backwards for the scheduler.
    fn at(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// After a departure, lets deferred connections ask again. Returns the shards that own them.
    fn resume(&mut self) -> Set {
        let mut owners = 0;
        let shards = self.trays.len();
        while self.deferred > 0
            && let Some(conn) = self.scheduler.poll_resume()
        {
            self.deferred -= 1;
            let (owner, conn) = conn.in_shard(shards);
            self.trays[owner].resumed.push_back(conn);
            owners |= 1 << owner;
        }
        owners
    }
}

/// The serial number of no packet.
const UNKNOWN_SERIAL: u64 = u64::MAX;

/// A packet as part of the backlog.
fn amount(packet: &Descriptor) -> Backlog {
    Backlog { packets: 1, bytes: packet.len.into() }
}

impl ShardEgress {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A scheduler that panics ends the shard that called it; the others go on.
        self.host.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shards(&self) -> usize {
        self.host.hub.shards()
    }

    /// Wakes the drivers of `shards` to look into their trays. The lock must be free.
    fn wake(&self, mut shards: Set) {
        while shards != 0 {
            self.host.hub.wake(shards.trailing_zeros() as usize);
            shards &= shards - 1;
        }
    }

    /// The same for `shards` without this one, which is running.
    fn nudge_others(&self, shards: Set) {
        self.wake(shards & !(1 << self.index));
    }

    fn conn_of_host(&self, conn: ConnId) -> ConnId {
        conn.of_shard(self.index, self.shards())
    }

    /// Unique among all shards.
    fn serial_of_host(&self, serial: u64) -> u64 {
        serial.wrapping_mul(self.shards() as u64).wrapping_add(self.index as u64)
    }

    fn of_host(&self, mut packet: Descriptor) -> Descriptor {
        packet.conn = packet.conn.map(|conn| self.conn_of_host(conn));
        packet.id.serial = self.serial_of_host(packet.id.serial);
        packet
    }

    /// Shard that owns the packet with a serial number of the host, and the shard's own number.
    fn split(&self, serial: u64) -> (usize, u64) {
        let shards = self.shards() as u64;
        ((serial % shards) as usize, serial / shards)
    }
}

impl EgressScheduler for ShardEgress {
    fn name(&self) -> &'static str {
        self.lock().scheduler.name()
    }

    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        let (mut ask, asks) = (*ask, ask.conn);
        ask.conn = ask.conn.map(|conn| self.conn_of_host(conn));
        let mut state = self.lock();
        let now = state.at(now);
        let admission = state.scheduler.admit(now, &ask);
        if ask.class.is_data() {
            // It has asked again, named or not.
            state.trays[self.index].resumed.retain(|named| Some(*named) != asks);
        }
        state.deferred += u64::from(admission == Admission::Deferred);
        admission
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        let mut state = self.lock();
        let now = state.at(now);
        state.scheduler.push(now, self.of_host(packet));
        state.trays[self.index].queued.push(packet);
    }

    /// Takes what is next for this shard. What is next for others before that goes to their trays.
    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let mut owners = 0;
        let popped = {
            let mut state = self.lock();
            let now = state.at(now);
            let ready = state.trays[self.index].popped.pop_front();
            ready.unwrap_or_else(|| {
                loop {
                    let popped = state.scheduler.pop(now, link);
                    let Some(packet) = popped.packet() else { break popped };
                    owners |= state.resume();
                    let (owner, serial) = self.split(packet.id.serial);
                    let Some(queued) = state.trays[owner].queued.take(serial) else {
                        break popped.map(|mut packet| {
                            packet.id.serial = UNKNOWN_SERIAL;
                            packet
                        });
                    };
                    // As it was queued, and marked if it is.
                    let popped = popped.map(|packet| {
                        let mut queued = queued;
                        queued.ecn = packet.ecn;
                        queued
                    });
                    if owner == self.index {
                        break popped;
                    }
                    state.trays[owner].popped.push_back(popped);
                    owners |= 1 << owner;
                }
            })
        };
        if popped.packet().is_some() {
            self.nudge_others(owners);
        } else {
            // A packet of another shard may have made room for a connection of this one, which does
            // not come again by itself.
            self.wake(owners);
        }
        popped
    }

    fn woke_late(&mut self, now: Instant, by: Duration) {
        let mut state = self.lock();
        let now = state.at(now);
        state.scheduler.woke_late(now, by);
    }

    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        let mut state = self.lock();
        let now = state.at(now);
        state.scheduler.repriced(now, &self.of_host(*packet), len);
    }

    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        let owners = {
            let mut state = self.lock();
            let now = state.at(now);
            state.scheduler.departed(now, &self.of_host(*packet));
            state.resume()
        };
        self.nudge_others(owners);
    }

    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        let mut arrival = *arrival;
        arrival.conn = self.conn_of_host(arrival.conn);
        let mut state = self.lock();
        let now = state.at(now);
        state.scheduler.arrived(now, &arrival);
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        let (named, owners) = {
            let mut state = self.lock();
            let owners = state.resume();
            (state.trays[self.index].resumed.pop_front(), owners)
        };
        self.nudge_others(owners);
        named
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        let owners = {
            let mut state = self.lock();
            let now = state.at(now);
            let State { scheduler, trays, .. } = &mut *state;
            let tray = &mut trays[self.index];
            let is_void = |packet: &Descriptor| match which {
                Forget::Packet { serial, .. } => packet.id.serial == serial,
                Forget::Conn(conn) => packet.conn == Some(conn),
            };
            // They have been popped, and will not be sent.
            while let Some(place) = tray.popped.iter().position(|popped| popped.packet().is_some_and(is_void))
                && let Some(popped) = tray.popped.remove(place)
            {
                if let Popped::Packet(packet) = popped {
                    scheduler.repriced(now, &self.of_host(packet), 0);
                }
            }
            match which {
                Forget::Packet { serial, .. } => drop(tray.queued.take(serial)),
                Forget::Conn(gone) => {
                    tray.queued.take_conn(gone, usize::MAX);
                    tray.resumed.retain(|conn| *conn != gone);
                }
            }
            scheduler.forget(
                now,
                match which {
                    Forget::Packet { conn, serial } => Forget::Packet {
                        conn: conn.map(|conn| self.conn_of_host(conn)),
                        serial: self.serial_of_host(serial),
                    },
                    Forget::Conn(conn) => Forget::Conn(self.conn_of_host(conn)),
                },
            );
            state.resume()
        };
        self.wake(owners);
    }

    /// The shard's own, but of a class: that of all shards.
    fn backlog(&self, scope: Scope) -> Backlog {
        let state = self.lock();
        let tray = &state.trays[self.index];
        match scope {
            Scope::All => {
                tray.popped.iter().filter_map(Popped::packet).map(amount).fold(tray.queued.held(), Add::add)
            }
            Scope::Conn(conn) => {
                let backlog = state.scheduler.backlog(Scope::Conn(self.conn_of_host(conn)));
                let popped = tray.popped.iter().filter_map(Popped::packet);
                let popped = popped.filter(|packet| packet.conn == Some(conn));
                popped.map(amount).fold(backlog, Add::add)
            }
            Scope::Class(_) => state.scheduler.backlog(scope),
        }
    }

    fn properties(&self) -> SchedulerProperties {
        self.lock().scheduler.properties()
    }

    fn busy_until(&self, now: Instant) -> Instant {
        self.lock().scheduler.busy_until(now)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.lock().scheduler.metrics(report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.lock().scheduler.configure(params)
    }
}

#[cfg(test)]
#[path = "egress/tests.rs"] // tests/models has this file as another module
mod tests;
