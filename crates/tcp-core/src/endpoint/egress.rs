//! The way out of an endpoint: who may have something to send, what the scheduler was given, and what is on the wire.
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
//! A packet has *departed* when the driver says so; where no driver does, when the link is free again that a
//! shaper imitates, or at once. Then the connections that the scheduler resumes push, and only then comes the next
//! pop: a deferred packet stands behind what came while the link was busy.
//!
//! No scheduler can stop the host: only data can be deferred, and what it deferred is admitted all the same
//! once nothing is queued or on the wire.

use super::ready::Ready;
use super::slots::{Flags, Slots};
use super::stray::Strays;
use crate::config::EndpointConfig;
use crate::id::{ConnId, TxId};
use crate::policy::EgressScheduler;
use crate::policy::sched::{Descriptor, Forget, LinkView, Popped, SchedulerProperties};
use crate::queueing::Accounts;
use crate::time::{Duration, Instant};
use crate::wire::HeaderBuf;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The way out of an endpoint.
#[derive(Debug)]
pub(super) struct Egress {
    pub(super) scheduler: Box<dyn EgressScheduler>,
    /// What the scheduler said of itself when it was last asked.
    pub(super) properties: SchedulerProperties,
    /// It may have been configured since.
    pub(super) properties_are_old: bool,
    /// Connections that may have something to send.
    pub(super) ready: Ready,
    /// Connections whose data the scheduler deferred, longest ago first. [`Flags::IN_DEFERRED`] says who stands
    /// here, [`Flags::DEFERRED`] who still waits.
    pub(super) deferred: VecDeque<u32>,
    /// Connections whose pure ACK stayed, so that what the application sends may carry it. [`Flags::KEPT`] says who
    /// stands here.
    pub(super) kept: Vec<u32>,
    /// Pure ACKs may stay.
    pub(super) keeps_acks: bool,
    /// Packets that are no longer (or never were) a connection's, of which the scheduler has descriptors.
    pub(super) strays: Strays,
    /// A packet that the device refused. It is in no queue.
    pub(super) held: Option<Descriptor>,
    /// Packets that the device took and that have not departed, oldest first; and when they will, `FAR_FUTURE`
    /// where the driver says it.
    pub(super) on_wire: VecDeque<(Descriptor, Instant)>,
    /// The device refused a packet, and not everything that waited behind it has left.
    pub(super) device_full: bool,
    /// What left.
    pub(super) accounts: Accounts,
    /// Descriptors in the scheduler.
    pub(super) queued: usize,
    /// Serial number of the next descriptor.
    pub(super) serial: u64,
    /// Before this instant the scheduler lets nothing out of what it has.
    pub(super) not_before: Option<Instant>,
    /// When the driver was last asked to come for a packet that waits.
    pub(super) asked_for: Option<Instant>,
    /// Where headers are built.
    pub(super) header: HeaderBuf,
    /// Where those of one packet of a run are built.
    pub(super) segment_header: HeaderBuf,
}

impl Egress {
    pub(super) fn new(scheduler: Box<dyn EgressScheduler>, host: &EndpointConfig) -> Self {
        Self {
            properties: scheduler.properties(),
            properties_are_old: false,
            scheduler,
            // A turn is one packet where all are of the largest size.
            ready: Ready::new(host.mtu.max(host.max_super_packet)),
            deferred: VecDeque::new(),
            kept: Vec::new(),
            keeps_acks: false,
            strays: Strays::default(),
            held: None,
            on_wire: VecDeque::new(),
            device_full: false,
            accounts: Accounts::default(),
            queued: 0,
            serial: 0,
            not_before: None,
            asked_for: None,
            header: HeaderBuf::new(),
            segment_header: HeaderBuf::new(),
        }
    }

    /// The scheduler, to be configured or read.
    pub(super) fn scheduler_mut(&mut self) -> &mut dyn EgressScheduler {
        self.properties_are_old = true;
        &mut *self.scheduler
    }

    /// The connection at `index` may have something to send.
    pub(super) fn wake(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index) {
            self.ready.enter(slot, index);
        }
    }

    /// When the scheduler lets the next packet out, or a departure lets somebody go on; `None` where nothing is
    /// waited for but the device.
    pub(super) fn wake_up_at(&self) -> Option<Instant> {
        // A held packet waits for the device, not for the scheduler.
        let pop = self.not_before.filter(|_| self.queued > 0 && self.held.is_none());
        let departure = self.on_wire.front().map(|(_, at)| *at);
        let departure = departure.filter(|at| *at != Instant::FAR_FUTURE && !self.deferred.is_empty());
        pop.into_iter().chain(departure).min()
    }

    /// The serial number of a packet to come.
    pub(super) const fn next_serial(&mut self) -> u64 {
        let serial = self.serial;
        self.serial += 1;
        serial
    }

    /// Gives a descriptor to the scheduler.
    pub(super) fn push(&mut self, now: Instant, mut descriptor: Descriptor) {
        descriptor.queued_at = now;
        self.scheduler.push(now, descriptor);
        if self.queued == 0 {
            // The packet that the driver was to come for was given up.
            self.asked_for = None;
        }
        self.queued += 1;
        // Whatever the scheduler said before, it may say otherwise of this packet.
        self.not_before = None;
    }

    /// A reserved packet of the connection at `index` became void.
    pub(super) fn forget_packet(&mut self, slots: &mut Slots, now: Instant, index: u32, serial: u64) {
        self.scheduler.forget(now, Forget::Packet(serial));
        if self.held.take_if(|held| held.id.serial == serial).is_some() {
            return;
        }
        self.queued = self.queued.saturating_sub(1);
        if let Some(slot) = slots.slot_mut(index) {
            slot.queued = slot.queued.saturating_sub(1);
        }
    }

    /// A connection with `queued` descriptors in the scheduler is gone; `deferred`: it also waited for the
    /// scheduler's leave.
    pub(super) fn forget_conn(&mut self, now: Instant, conn: ConnId, queued: u32, deferred: bool) {
        let held = self.held.take_if(|held| held.conn == Some(conn)).is_some();
        if queued > 0 || held || deferred {
            self.strays.remove_conn(conn);
            self.scheduler.forget(now, Forget::Conn(conn));
            self.queued = self.queued.saturating_sub(queued as usize);
        }
    }

    /// Nothing is queued or on the wire: whoever asks is admitted.
    pub(super) fn is_idle(&self) -> bool {
        self.queued == 0 && self.held.is_none() && self.on_wire.is_empty()
    }

    /// The device took a packet of the scheduler's.
    pub(super) fn took(
        &mut self,
        now: Instant,
        descriptor: Descriptor,
        reports_departures: bool,
        most: usize,
    ) -> bool {
        self.accounts.waited(descriptor.class, now.since(descriptor.queued_at));
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

    /// Packets leave the link that the scheduler imitates.
    pub(super) fn depart_until(&mut self, now: Instant) {
        while self.on_wire.front().is_some_and(|(_, at)| *at <= now)
            && let Some((descriptor, _)) = self.on_wire.pop_front()
        {
            self.scheduler.departed(now, &descriptor);
        }
    }

    /// The data of the connection at `index` waits for the scheduler.
    pub(super) fn defer(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index) {
            slot.flags.set(Flags::DEFERRED);
            if slot.flags.set(Flags::IN_DEFERRED) {
                self.deferred.push_back(index);
            }
        }
    }

    /// Lets the connection at `index` ask again, where it was deferred.
    pub(super) fn resume(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.clear(Flags::DEFERRED)
        {
            self.ready.enter(slot, index);
        }
    }

    /// Lets those ask again whom the scheduler names.
    pub(super) fn resume_named(&mut self, slots: &mut Slots) {
        // More names than connections that wait are no help, and must not keep the host busy.
        for _ in 0..self.deferred.len() {
            let Some(conn) = self.scheduler.poll_resume() else { return };
            if slots.get_mut(conn).is_some() {
                self.resume(slots, conn.index);
            }
        }
    }

    /// Where nothing is under way, whoever waits longest asks again, named or not.
    pub(super) fn resume_if_idle(&mut self, slots: &mut Slots) {
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

    /// The pure ACK of the connection at `index` stays.
    pub(super) fn keep(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.set(Flags::KEPT)
        {
            self.kept.push(index);
        }
    }

    /// Pure ACKs that stayed may go.
    pub(super) fn release_kept(&mut self, slots: &mut Slots) {
        for index in self.kept.drain(..) {
            if let Some(slot) = slots.slot_mut(index) {
                slot.flags.clear(Flags::KEPT);
                self.ready.enter(slot, index);
            }
        }
    }

    /// How much later than it was asked to the driver comes for what waits in the scheduler, or for a departure that somebody
    /// waits for. Each instant counts once, when the driver comes after it for the first time.
    pub(super) fn lateness(&mut self, now: Instant) -> Option<Duration> {
        let pop = self.asked_for.take_if(|at| *at <= now).filter(|_| self.queued > 0);
        let departure = self.on_wire.front().map(|(_, at)| *at);
        let departure = departure.filter(|at| *at <= now && !self.deferred.is_empty());
        // A packet that the device refused waits for the device.
        let asked_for = pop.into_iter().chain(departure).min().filter(|_| self.held.is_none())?;
        Some(now.since(asked_for)).filter(|by| !by.is_zero())
    }

    /// What the scheduler lets out.
    pub(super) fn pop(&mut self, now: Instant, slots: &mut Slots) -> Option<Descriptor> {
        if self.queued == 0 {
            return None;
        }
        self.not_before = None;
        self.asked_for = None;
        match self.scheduler.pop(now, &LinkView::new(u32::MAX)) {
            Popped::Packet(descriptor) => {
                self.queued -= 1;
                if let Some(slot) = descriptor.conn.and_then(|id| slots.get_mut(id)) {
                    slot.queued = slot.queued.saturating_sub(1);
                }
                Some(descriptor)
            }
            Popped::NotBefore(at) => {
                self.not_before = Some(at);
                self.asked_for = Some(at);
                None
            }
            Popped::Empty => {
                // It has the last word about what it has.
                self.queued = 0;
                None
            }
        }
    }

    /// See [`Endpoint::departed`](super::Endpoint::departed).
    pub(super) fn departed(&mut self, now: Instant, packet: TxId) {
        // In order of departure, as a rule, so that it is the first.
        let Some(place) = self.on_wire.iter().position(|(descriptor, _)| descriptor.id.serial == packet.0)
        else {
            return;
        };
        if let Some((descriptor, _)) = self.on_wire.remove(place) {
            self.scheduler.departed(now, &descriptor);
        }
    }
}
