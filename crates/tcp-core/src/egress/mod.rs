//! The way out of an endpoint: which connections may have something to send, what is in the
//! scheduler, and what is on the wire.
//!
//! ```text
//!           ┌── deferred ◄──┐
//!           ▼               │
//!   ready queue ──► push ──►│scheduler│──► pop ──► device ──► on the wire ──► departed
//!                                                    │ refused
//!                                                    ▼
//!                                                  held, goes first
//! ```
//!
//! A packet has *departed* when the driver reports it; without a driver that reports departures,
//! when the link emulated by a shaper is free again, or at once. Then the resumed connections push,
//! and only then comes the next pop: a deferred packet queues behind what arrived while the link
//! was busy.
//!
//! | file | holds |
//! |---|---|
//! | `ready.rs` | whose turn it is |
//! | `touch.rs` | something has happened to a connection |
//! | `transmit.rs` | what to send next, and what its departure commits |
//! | `strays.rs` | packets without a connection |
//! | `send_trace.rs` | what a tracer is told of sending |
//!
//! No scheduler can stop the host: only data can be deferred, and deferred data is admitted anyway
//! once nothing is queued or on the wire. What the scheduler holds is known here, too
//! ([`Ledger`]). The oldest queued packet leaves instead if the answer cannot be true: `Empty`
//! although packets are queued, `NotBefore` an instant that has passed, or a packet that is not
//! queued. One packet for each answer, so a shaper's rate holds.

mod ready;
mod send_trace;
mod strays;
mod touch;
mod transmit;

pub(crate) use send_trace::trace_blocked;
pub(crate) use strays::{Origins, Stray};

use crate::config::EndpointConfig;
use crate::counters::Counters;
use crate::id::{ConnId, TxId};
use crate::policy::sched::{Descriptor, Forget, LinkView, Popped, SchedulerProperties};
use crate::policy::{EgressScheduler, Ledger};
use crate::queueing::Accounts;
use crate::table::{Flags, Slots};
use crate::time::{Duration, Instant};
use crate::wire::{Ecn, HeaderBuf};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use ready::Ready;
use strays::Strays;

/// Packets of a run whose headers are written before the first of them leaves. A device copies
/// headers with wide loads, which wait until all that was written before them is in the cache,
/// copies of earlier packets included; so headers are written some packets ahead.
pub(crate) const HEADERS_AHEAD: usize = 8;

/// What becomes of a packet that the scheduler does not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// It leaves.
    Send(Descriptor),
    /// It is lost on the way out.
    Lose(Descriptor),
}

/// What is held back while applications run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deferral {
    /// Pure ACKs.
    pub(crate) acks: bool,
    /// New data that does not fill a packet.
    pub(crate) data: bool,
}

/// The way out of an endpoint.
#[derive(Debug)]
pub(crate) struct Egress {
    pub(crate) scheduler: Box<dyn EgressScheduler>,
    /// The scheduler's properties when last asked.
    pub(crate) properties: SchedulerProperties,
    /// It may have been configured since.
    pub(crate) properties_are_old: bool,
    /// Connections that may have something to send.
    pub(crate) ready: Ready,
    /// Connections whose data the scheduler deferred, longest ago first. [`Flags::IN_DEFERRED`]
    /// marks those in this queue, [`Flags::DEFERRED`] those still waiting.
    pub(crate) deferred: VecDeque<u32>,
    /// Connections with a pure ACK that is held, to piggyback on what the application sends, or
    /// with new data that waits for more of it. [`Flags::KEPT`] marks those in this list.
    pub(crate) kept: Vec<u32>,
    /// What may be held, and what is.
    pub(crate) may_keep: Deferral,
    pub(crate) keeps: Deferral,
    /// Counts the calls that hold back no new data; wraps around. A segment that waits because of
    /// an old number leaves with the next such call, too.
    pub(crate) turn: u8,
    /// Packets without a connection (any more) whose descriptors are in the scheduler.
    pub(crate) strays: Strays,
    /// A packet that the device refused. It is in no queue.
    pub(crate) held: Option<Descriptor>,
    /// Packets that the device took but that have not departed, oldest first, with their departure
    /// time; `FAR_FUTURE` if the driver reports it.
    pub(crate) on_wire: VecDeque<(Descriptor, Instant)>,
    /// The device refused a packet, and not everything queued behind it has been sent.
    pub(crate) device_full: bool,
    /// What left.
    pub(crate) accounts: Accounts,
    /// Descriptors in the scheduler.
    pub(crate) queued: Ledger,
    /// Serial number of the next descriptor.
    pub(crate) serial: u64,
    /// The scheduler releases nothing before this instant.
    pub(crate) not_before: Option<Instant>,
    /// When the driver was last asked to come for a waiting packet.
    pub(crate) asked_for: Option<Instant>,
    /// Buffer for headers.
    pub(crate) header: HeaderBuf,
    /// Buffers for the headers of the next packets of a run.
    pub(crate) segment_headers: [HeaderBuf; HEADERS_AHEAD],
}

impl Egress {
    pub(crate) fn new(scheduler: Box<dyn EgressScheduler>, host: &EndpointConfig) -> Self {
        Self {
            properties: scheduler.properties(),
            properties_are_old: false,
            scheduler,
            ready: Ready::new(quantum(host)),
            deferred: VecDeque::new(),
            kept: Vec::new(),
            may_keep: Deferral::default(),
            keeps: Deferral::default(),
            turn: 0,
            strays: Strays::default(),
            held: None,
            on_wire: VecDeque::new(),
            device_full: false,
            accounts: Accounts::default(),
            queued: Ledger::new(),
            serial: 0,
            not_before: None,
            asked_for: None,
            header: HeaderBuf::new(),
            segment_headers: [const { HeaderBuf::new() }; HEADERS_AHEAD],
        }
    }

    /// The largest packet of `host` may have another size from now on.
    pub(crate) fn resize(&mut self, host: &EndpointConfig) {
        self.ready.set_quantum(quantum(host));
    }

    /// The scheduler, to read.
    pub(crate) fn scheduler(&self) -> &dyn EgressScheduler {
        &*self.scheduler
    }

    /// The scheduler, for configuration.
    pub(crate) fn scheduler_mut(&mut self) -> &mut dyn EgressScheduler {
        self.properties_are_old = true;
        &mut *self.scheduler
    }

    /// The connection at `index` may have something to send.
    pub(crate) fn wake(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index) {
            self.ready.enter(slot, index);
        }
    }

    /// When the scheduler releases the next packet, or a departure allows a connection to continue;
    /// `None` if only the device is waited for.
    pub(crate) fn wake_up_at(&self) -> Option<Instant> {
        // A held packet waits for the device, not the scheduler.
        let pop = self.not_before.filter(|_| !self.queued.is_empty() && self.held.is_none());
        let departure = self.on_wire.front().map(|(_, at)| *at);
        let departure = departure.filter(|at| *at != Instant::FAR_FUTURE && !self.deferred.is_empty());
        pop.into_iter().chain(departure).min()
    }

    /// The serial number for the next packet.
    pub(crate) const fn next_serial(&mut self) -> u64 {
        let serial = self.serial;
        self.serial += 1;
        serial
    }

    /// Pushes a descriptor to the scheduler.
    pub(crate) fn push(&mut self, now: Instant, mut descriptor: Descriptor) {
        descriptor.queued_at = now;
        self.scheduler.push(now, descriptor);
        if self.queued.is_empty() {
            // The packet that the driver was asked to come for is no longer awaited.
            self.asked_for = None;
        }
        self.queued.push(descriptor);
        // Whatever the scheduler said before may not apply to this packet.
        self.not_before = None;
    }

    /// A reserved packet of the connection at `index` became void.
    pub(crate) fn forget_packet(&mut self, slots: &mut Slots, now: Instant, index: u32, serial: u64) {
        self.scheduler.forget(now, Forget::Packet { conn: Some(slots.id(index)), serial });
        if self.held.take_if(|held| held.id.serial == serial).is_some() {
            return;
        }
        if self.queued.take(serial).is_some()
            && let Some(slot) = slots.slot_mut(index)
        {
            slot.queued = slot.queued.saturating_sub(1);
        }
    }

    /// A connection with `queued` descriptors in the scheduler is gone; `deferred`: it was also
    /// waiting for the scheduler's permission.
    pub(crate) fn forget_conn(&mut self, now: Instant, conn: ConnId, queued: u32, deferred: bool) {
        let held = self.held.take_if(|held| held.conn == Some(conn)).is_some();
        if queued > 0 || held || deferred {
            self.strays.remove_conn(conn);
            self.scheduler.forget(now, Forget::Conn(conn));
            self.queued.take_conn(conn, queued as usize);
        }
    }

    /// True if the packet that the device refused is the connection's.
    pub(crate) fn holds(&self, conn: ConnId) -> bool {
        self.held.is_some_and(|held| held.conn == Some(conn))
    }

    /// Bytes held, with those of the scheduler's queue.
    pub(crate) fn memory(&self) -> usize {
        self.strays.memory() + self.queued.memory() + self.queued.len() * size_of::<Descriptor>()
    }

    /// True if nothing is queued or on the wire: every request is admitted.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.held.is_none() && self.on_wire.is_empty()
    }

    /// The device took a packet from the scheduler.
    pub(crate) fn took(
        &mut self,
        now: Instant,
        descriptor: Descriptor,
        reports_departures: bool,
        most: usize,
    ) -> bool {
        let at = if reports_departures { Instant::FAR_FUTURE } else { self.scheduler.busy_until(now) };
        if at <= now {
            self.scheduler.departed(now, &descriptor);
            return true;
        }
        self.on_wire.push_back((descriptor, at));
        if self.on_wire.len() > most.max(1)
            && let Some((oldest, _)) = self.on_wire.pop_front()
        {
            self.scheduler.departed(now, &oldest);
            return false;
        }
        true
    }

    /// Lets packets depart from the link that the scheduler emulates.
    pub(crate) fn depart_until(&mut self, now: Instant) {
        while self.on_wire.front().is_some_and(|(_, at)| *at <= now)
            && let Some((descriptor, _)) = self.on_wire.pop_front()
        {
            self.scheduler.departed(now, &descriptor);
        }
    }

    /// The data of the connection at `index` waits for the scheduler.
    pub(crate) fn defer(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index) {
            slot.flags.set(Flags::DEFERRED);
            if slot.flags.set(Flags::IN_DEFERRED) {
                self.deferred.push_back(index);
            }
        }
    }

    /// Lets the connection at `index` ask again if it was deferred.
    pub(crate) fn resume(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.clear(Flags::DEFERRED)
        {
            self.ready.enter(slot, index);
        }
    }

    /// Lets the connections named by the scheduler ask again.
    pub(crate) fn resume_named(&mut self, slots: &mut Slots) {
        // More names than waiting connections are useless, and must not keep the host busy.
        for _ in 0..self.deferred.len() {
            let Some(conn) = self.scheduler.poll_resume() else { return };
            if slots.get_mut(conn).is_some() {
                self.resume(slots, conn.index);
            }
        }
    }

    /// If nothing is in progress, the connection that has waited longest asks again, whether named
    /// or not.
    pub(crate) fn resume_if_idle(&mut self, slots: &mut Slots) {
        while self.is_idle()
            && self.ready.is_empty()
            && let Some(index) = self.deferred.pop_front()
        {
            if let Some(slot) = slots.slot_mut(index) {
                slot.flags.clear(Flags::IN_DEFERRED);
            }
            self.resume(slots, index);
        }
    }

    /// Sets what may be held from now on. What may no longer be held may leave.
    #[inline]
    pub(crate) fn permit(&mut self, slots: &mut Slots, may_keep: Deferral) {
        let before = core::mem::replace(&mut self.may_keep, may_keep);
        if !may_keep.data {
            self.turn = self.turn.wrapping_add(1);
        }
        if (before.acks && !may_keep.acks) || (before.data && !may_keep.data) {
            self.release_kept(slots);
        }
    }

    /// Holds the pure ACK, or the new data, of the connection at `index`.
    pub(crate) fn keep(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.set(Flags::KEPT)
        {
            self.kept.push(index);
        }
    }

    /// Releases what is held.
    #[inline(never)]
    fn release_kept(&mut self, slots: &mut Slots) {
        self.keeps = Deferral::default();
        for index in self.kept.drain(..) {
            if let Some(slot) = slots.slot_mut(index) {
                slot.flags.clear(Flags::KEPT);
                self.ready.enter(slot, index);
            }
        }
    }

    /// How late the driver is for a packet waiting in the scheduler, or for a departure that a
    /// connection waits for. Each instant counts once, when the driver first comes after it.
    pub(crate) fn lateness(&mut self, now: Instant) -> Option<Duration> {
        let pop = self.asked_for.take_if(|at| *at <= now).filter(|_| !self.queued.is_empty());
        let departure = self.on_wire.front().map(|(_, at)| *at);
        let departure = departure.filter(|at| *at <= now && !self.deferred.is_empty());
        // A packet refused by the device waits for the device.
        let asked_for = pop.into_iter().chain(departure).min().filter(|_| self.held.is_none())?;
        Some(now.since(asked_for)).filter(|by| !by.is_zero())
    }

    /// Takes the packet that the scheduler releases or drops; the oldest if what it says cannot be
    /// true.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        slots: &mut Slots,
        counters: &mut Counters,
    ) -> Option<Release> {
        if self.queued.is_empty() {
            return None;
        }
        self.not_before = None;
        self.asked_for = None;
        let popped = self.scheduler.pop(now, &LinkView::new(u32::MAX));
        let released = match popped {
            Popped::Packet(descriptor) | Popped::Drop(descriptor) => {
                // A mark is all that may be new.
                let marked = descriptor.ecn == Ecn::Ce;
                self.queued.take(descriptor.id.serial).map(|mut queued| {
                    if marked && matches!(queued.ecn, Ecn::Ect0 | Ecn::Ect1) {
                        queued.ecn = Ecn::Ce;
                        counters.egress_marked += 1;
                    }
                    queued
                })
            }
            Popped::NotBefore(at) if at > now => {
                self.not_before = Some(at);
                self.asked_for = Some(at);
                return None;
            }
            Popped::NotBefore(_) | Popped::Empty => None,
        };
        let lost = matches!(popped, Popped::Drop(_)) && released.is_some();
        let descriptor = released.or_else(|| {
            counters.egress_overruled += 1;
            let oldest = self.queued.take_oldest()?;
            let gone = Forget::Packet { conn: oldest.conn, serial: oldest.id.serial };
            self.scheduler.forget(now, gone);
            Some(oldest)
        })?;
        if let Some(slot) = descriptor.conn.and_then(|id| slots.get_mut(id)) {
            slot.queued = slot.queued.saturating_sub(1);
        }
        if lost && self.may_lose(&descriptor) {
            return Some(Release::Lose(descriptor));
        }
        counters.egress_overruled += u64::from(lost);
        Some(Release::Send(descriptor))
    }

    /// True if the scheduler may drop the packet: [`Popped::Drop`].
    fn may_lose(&self, packet: &Descriptor) -> bool {
        self.strays.may_lose(packet.id.serial)
            || (packet.class.is_data() && packet.conn.is_some() && !packet.id.reason.is_rto())
    }

    /// See [`Endpoint::departed`](crate::Endpoint::departed).
    pub(crate) fn departed(&mut self, now: Instant, packet: TxId) {
        // Usually the first, since packets depart in order.
        let Some(place) = self.on_wire.iter().position(|(descriptor, _)| descriptor.id.serial == packet.0)
        else {
            return;
        };
        if let Some((descriptor, _)) = self.on_wire.remove(place) {
            self.scheduler.departed(now, &descriptor);
        }
    }
}

/// IP bytes of a turn: one packet of the largest size.
fn quantum(host: &EndpointConfig) -> u32 {
    host.mtu.max(host.max_super_packet)
}
