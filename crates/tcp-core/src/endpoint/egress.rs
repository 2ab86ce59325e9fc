//! What leaves: connections that may have something, the scheduler, and the packet that the device refused.
//!
//! ```text
//!   ready ──► next() ──► admit ──► reserve, push ──► │scheduler│ ──► pop ──► claim, build ──► emit ──► sent
//!   queue               Deferred: off the queue,                              refused: held, goes first
//!                       until the scheduler names it
//! ```
//!
//! A connection stands in the ready queue while it may have something to send, so a call costs what the active
//! connections cost, however many there are. They take [turns](Ready) of one quantum of bytes each.
//! The scheduler is given everything that waits before it is asked for a packet. Where it is
//! empty and lets packets [past it](crate::policy::sched::Bypass), and the device takes all there is, they go straight
//! to the device; and if that takes no super-packets, a connection's new data is built as one all the same, and
//! split on the way.
//!
//! A packet has *departed* when the driver says so; where no driver does, when the link is free again that a
//! shaper imitates, or at once. Then the connections that the scheduler resumes push, and only then comes the next
//! pop: a deferred packet stands behind what came while the link was busy.
//!
//! No scheduler can stop the host: only data can be deferred, and what it deferred is admitted all the same
//! once nothing is queued or on the wire.

use super::Endpoint;
use super::ready::Ready;
use super::slots::{Flags, Slots};
use super::stray::Strays;
use crate::config::EndpointConfig;
use crate::conn::Connection;
use crate::error::ConnError;
use crate::id::{ConnId, TxId};
use crate::packet::{SendReason, TxBudget, TxPacket, TxReport};
use crate::plan::Plan;
use crate::policy::EgressScheduler;
use crate::policy::sched::{
    Admission, Ask, Bypass, Descriptor, Forget, LinkView, Popped, QueuedAcks, SchedulerProperties,
    SegmentClass,
};
use crate::queueing::Accounts;
use crate::time::{Duration, Instant};
use crate::wire::{HeaderBuf, TxChecksumMode, gso};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU16;

/// The way out of an endpoint.
#[derive(Debug)]
pub(super) struct Egress {
    pub(super) scheduler: Box<dyn EgressScheduler>,
    /// What the scheduler said of itself when it was last asked.
    properties: SchedulerProperties,
    /// It may have been configured since.
    properties_are_old: bool,
    /// Connections that may have something to send.
    pub(super) ready: Ready,
    /// Connections whose data the scheduler deferred, longest ago first. [`Flags::IN_DEFERRED`] says who stands
    /// here, [`Flags::DEFERRED`] who still waits.
    deferred: VecDeque<u32>,
    /// Connections whose pure ACK stayed, so that what the application sends may carry it. [`Flags::KEPT`] says who
    /// stands here.
    kept: Vec<u32>,
    /// Pure ACKs may stay.
    keeps_acks: bool,
    /// Packets that are no longer (or never were) a connection's, of which the scheduler has descriptors.
    pub(super) strays: Strays,
    /// A packet that the device refused. It is in no queue.
    pub(super) held: Option<Descriptor>,
    /// Packets that the device took and that have not departed, oldest first; and when they will, `FAR_FUTURE`
    /// where the driver says it.
    on_wire: VecDeque<(Descriptor, Instant)>,
    /// The device refused a packet, and not everything that waited behind it has left.
    device_full: bool,
    /// What left.
    pub(super) accounts: Accounts,
    /// Descriptors in the scheduler.
    queued: usize,
    /// Serial number of the next descriptor.
    serial: u64,
    /// Before this instant the scheduler lets nothing out of what it has.
    not_before: Option<Instant>,
    /// When the driver was last asked to come for a packet that waits.
    asked_for: Option<Instant>,
    /// Where headers are built.
    pub(super) header: HeaderBuf,
    /// Where those of one packet of a run are built.
    segment_header: HeaderBuf,
}

/// Most packets of a run: beyond that it saves nothing, and others wait for their turn.
const MAX_RUN: usize = 16;

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
    fn is_idle(&self) -> bool {
        self.queued == 0 && self.held.is_none() && self.on_wire.is_empty()
    }

    /// The device took a packet of the scheduler's.
    fn took(&mut self, now: Instant, descriptor: Descriptor, reports_departures: bool, most: usize) -> bool {
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
    fn depart_until(&mut self, now: Instant) {
        while self.on_wire.front().is_some_and(|(_, at)| *at <= now)
            && let Some((descriptor, _)) = self.on_wire.pop_front()
        {
            self.scheduler.departed(now, &descriptor);
        }
    }

    /// The data of the connection at `index` waits for the scheduler.
    fn defer(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index) {
            slot.flags.set(Flags::DEFERRED);
            if slot.flags.set(Flags::IN_DEFERRED) {
                self.deferred.push_back(index);
            }
        }
    }

    /// Lets the connection at `index` ask again, where it was deferred.
    fn resume(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.clear(Flags::DEFERRED)
        {
            self.ready.enter(slot, index);
        }
    }

    /// Lets those ask again whom the scheduler names.
    fn resume_named(&mut self, slots: &mut Slots) {
        // More names than connections that wait are no help, and must not keep the host busy.
        for _ in 0..self.deferred.len() {
            let Some(conn) = self.scheduler.poll_resume() else { return };
            if slots.get_mut(conn).is_some() {
                self.resume(slots, conn.index);
            }
        }
    }

    /// Where nothing is under way, whoever waits longest asks again, named or not.
    fn resume_if_idle(&mut self, slots: &mut Slots) {
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
    fn keep(&mut self, slots: &mut Slots, index: u32) {
        if let Some(slot) = slots.slot_mut(index)
            && slot.flags.set(Flags::KEPT)
        {
            self.kept.push(index);
        }
    }

    /// Pure ACKs that stayed may go.
    fn release_kept(&mut self, slots: &mut Slots) {
        for index in self.kept.drain(..) {
            if let Some(slot) = slots.slot_mut(index) {
                slot.flags.clear(Flags::KEPT);
                self.ready.enter(slot, index);
            }
        }
    }

    /// How much later than it was asked to the driver comes for what waits in the scheduler, or for a departure that somebody
    /// waits for. Each instant counts once, when the driver comes after it for the first time.
    fn lateness(&mut self, now: Instant) -> Option<Duration> {
        let pop = self.asked_for.take_if(|at| *at <= now).filter(|_| self.queued > 0);
        let departure = self.on_wire.front().map(|(_, at)| *at);
        let departure = departure.filter(|at| *at <= now && !self.deferred.is_empty());
        // A packet that the device refused waits for the device.
        let asked_for = pop.into_iter().chain(departure).min().filter(|_| self.held.is_none())?;
        Some(now.since(asked_for)).filter(|by| !by.is_zero())
    }

    /// What the scheduler lets out.
    fn pop(&mut self, now: Instant, slots: &mut Slots) -> Option<Descriptor> {
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
}

/// Keeps a packet that went past the scheduler and that the device refused.
fn hold(
    now: Instant,
    host: &EndpointConfig,
    conn: &mut Connection,
    id: ConnId,
    plan: &Plan,
    serial: u64,
) -> Descriptor {
    conn.reserve(plan, serial);
    let price = host.pricing.price(conn.ip_len(plan), plan.len, plan.segments());
    Descriptor { queued_at: now, ..plan.descriptor(id, serial, price) }
}

impl Endpoint {
    /// See [`Endpoint::transmit`].
    pub(super) fn transmit_all<E>(
        &mut self,
        now: Instant,
        budget: TxBudget,
        mut emit: impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<TxReport, E> {
        let egress = &mut self.egress;
        if core::mem::take(&mut egress.properties_are_old) {
            egress.properties = egress.scheduler.properties();
        }
        let straight = !budget.reports_departures
            && match egress.properties.bypass {
                Bypass::Never => false,
                Bypass::UntilDeviceFull => !egress.device_full,
                Bypass::Always => true,
            };
        let mut report = TxReport::default();
        self.egress.keeps_acks = budget.keeps_acks && straight;
        if !self.egress.keeps_acks {
            self.egress.release_kept(&mut self.slots);
        }
        if let Some(by) = self.egress.lateness(now) {
            self.observe.counters.egress_late += 1;
            self.egress.scheduler.woke_late(now, by);
        }
        self.egress.depart_until(now);
        if !straight {
            // Also while the link is busy: an acknowledgment takes its place when it arises, with its number.
            self.give_all(now);
        } else if !self.egress.deferred.is_empty() {
            self.egress.resume_named(&mut self.slots);
        }
        while report.packets < budget.packets {
            let sent = if straight && self.egress.is_idle() {
                self.send_straight(now, budget.packets - report.packets, &mut emit)
            } else {
                self.send_scheduled(now, budget.reports_departures, !straight, &mut emit)
            };
            match sent {
                Ok(Sent::Packets { packets, bytes }) => {
                    report.packets += packets;
                    report.bytes += bytes;
                }
                Ok(Sent::Void) => {}
                Ok(Sent::NothingLeft) => {
                    self.egress.device_full = false;
                    report.kept_acks = !self.egress.kept.is_empty();
                    return Ok(report);
                }
                Err(error) => {
                    self.egress.device_full = true;
                    return Err(error);
                }
            }
        }
        report.more = self.could_send(now);
        report.kept_acks = !self.egress.kept.is_empty();
        Ok(report)
    }

    /// Sends the next packet past the scheduler, which is empty and would only pass it on; or a run of at most
    /// `most` packets of new data, which costs TCP hardly more than one.
    fn send_straight<E>(
        &mut self,
        now: Instant,
        most: usize,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let run = if self.config.max_super_packet == 0 { most.min(MAX_RUN) } else { 1 };
        let Some((index, plan)) = self.next_plan(now, run as u32) else { return Ok(Sent::NothingLeft) };
        let id = self.slots.id(index);
        let sent = match plan.segment_size {
            Some(size) if self.config.max_super_packet == 0 => self.offer_run(now, id, &plan, size, emit),
            _ => {
                let serial = self.egress.next_serial();
                self.offer(now, id, &plan, serial, emit).inspect_err(|_| {
                    self.egress.held = self
                        .slots
                        .conn_mut(index)
                        .map(|conn| hold(now, &self.config, conn, id, &plan, serial));
                })
            }
        }?;
        if let Sent::Packets { bytes, .. } = sent {
            self.egress.ready.spend(index, bytes as u32);
        }
        Ok(sent)
    }

    /// Splits a run of new data into the packets that it stands for, offers them one by one, and commits those
    /// that the device takes.
    fn offer_run<E>(
        &mut self,
        now: Instant,
        id: ConnId,
        plan: &Plan,
        size: NonZeroU16,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let Some(conn) = self.slots.conn_mut(id.index) else { return Ok(Sent::Void) };
        let Egress { header, segment_header, serial, held, accounts, .. } = &mut self.egress;
        let built = conn.build(now, &self.config, plan, TxChecksumMode::Omit, header);
        let segments =
            gso::split(header.as_slice(), conn.payload(plan).into(), size, self.config.tx_checksum);
        let (Ok(built), Ok(mut segments)) = (built, segments) else {
            conn.abort(&mut self.observe.ctx(now, id, &self.config), ConnError::Aborted);
            return Ok(Sent::Void);
        };
        let (mut packets, mut bytes, mut taken, mut refused) = (0, 0, 0, None);
        while let Some((emitted, payload)) = segments.next_into(segment_header) {
            let [first, second, _] = payload.slices();
            let packet = TxPacket {
                id: TxId(*serial),
                header: segment_header.as_slice(),
                payload: [first, second],
                segment_size: None,
                checksum: emitted.checksum,
                conn: Some(id),
                class: plan.class,
                reason: plan.reason,
            };
            *serial += 1;
            let len = packet.len() as u64;
            if let Err(error) = emit(packet) {
                refused = Some(error);
                break;
            }
            packets += 1;
            bytes += len;
            taken += payload.len() as u32;
        }
        if packets > 0 {
            self.observe.counters.ip_out_requests += packets as u64;
            accounts.sent(plan.class, packets as u64, bytes);
            conn.sent(&mut self.observe.ctx(now, id, &self.config), &plan.first(taken), &built);
        }
        match refused {
            None => Ok(Sent::Packets { packets, bytes }),
            Some(error) => {
                self.observe.counters.tx_refused += 1;
                let next = plan.packet_at(taken, u32::from(size.get()));
                *held = Some(hold(now, &self.config, conn, id, &next, *serial - 1));
                Err(error)
            }
        }
    }

    /// Sends the packet that the scheduler lets out next, after the one that is held.
    fn send_scheduled<E>(
        &mut self,
        now: Instant,
        reports_departures: bool,
        give_all: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let held = self.egress.held.take();
        let Some(descriptor) = held.or_else(|| self.next_descriptor(now, give_all)) else {
            return Ok(Sent::NothingLeft);
        };
        let sent = match descriptor.conn {
            Some(id) if !self.egress.strays.has(descriptor.id.serial) => {
                self.send_reserved(now, id, &descriptor, emit)
            }
            _ => self.emit_stray(&descriptor, emit),
        };
        match sent {
            Ok(Sent::Packets { bytes, .. }) => {
                let descriptor = self.repriced(now, descriptor, bytes);
                let most = self.config.max_on_wire;
                if !self.egress.took(now, descriptor, reports_departures, most) {
                    self.observe.counters.departures_missing += 1;
                }
            }
            Ok(_) => {
                self.egress.scheduler.repriced(now, &descriptor, 0);
                self.egress.scheduler.forget(now, Forget::Packet(descriptor.id.serial));
            }
            Err(_) => {}
        }
        sent
    }

    /// Tells the scheduler where a packet left with other bytes than it was queued with: options are written last.
    fn repriced(&mut self, now: Instant, mut descriptor: Descriptor, bytes: u64) -> Descriptor {
        // One header stands for all packets of a super-packet, so that its bytes do not say what it costs.
        if descriptor.segments == 1 {
            let len = self.config.pricing.price(bytes as u32, descriptor.id.payload, 1);
            if len != descriptor.len {
                self.egress.scheduler.repriced(now, &descriptor, len);
                descriptor.len = len;
            }
        }
        descriptor
    }

    /// Gives the scheduler everything that waits and that it admits.
    fn give_all(&mut self, now: Instant) {
        self.egress.resume_named(&mut self.slots);
        while self.push_one(now) {}
    }

    /// What the scheduler lets out next, after it was given what waits.
    fn next_descriptor(&mut self, now: Instant, give_all: bool) -> Option<Descriptor> {
        if give_all {
            self.give_all(now);
        }
        loop {
            if let Some(descriptor) = self.egress.pop(now, &mut self.slots) {
                return Some(descriptor);
            }
            // Behind one that is passed by there is nothing but what was queued while it was not.
            if give_all || !self.push_one(now) {
                return None;
            }
        }
    }

    /// The next packet of the connection whose turn it is; `None` where none has anything to send.
    fn next_plan(&mut self, now: Instant, run: u32) -> Option<(u32, Plan)> {
        let largest = self.config.max_super_packet;
        let largest = if largest > 0 { largest.min(self.egress.properties.largest_packet) } else { 0 };
        loop {
            let Some(index) = self.egress.ready.current() else {
                self.egress.resume_if_idle(&mut self.slots);
                if self.egress.ready.is_empty() {
                    return None;
                }
                continue;
            };
            if let Some(slot) = self.slots.slot_mut(index)
                && let Some(conn) = slot.conn.as_deref_mut()
            {
                if slot.flags.set(Flags::TOUCHED) {
                    self.touched.push(index);
                }
                if let Some(plan) =
                    conn.next(now, &self.config, largest, slot.flags.has(Flags::DEFERRED), run)
                {
                    if !(self.egress.keeps_acks && conn.may_keep(&plan)) {
                        return Some((index, plan));
                    }
                    self.egress.keep(&mut self.slots, index);
                }
            }
            self.egress.ready.leave(&mut self.slots);
        }
    }

    /// Queues one packet of the connection whose turn it is; false where none has anything to send.
    fn push_one(&mut self, now: Instant) -> bool {
        while let Some((index, plan)) = self.next_plan(now, 1) {
            let id = self.slots.id(index);
            let Some(slot) = self.slots.slot_mut(index) else { return false };
            let Some(conn) = slot.conn.as_deref_mut() else { return false };
            let ip_len = conn.ip_len(&plan);
            let price = self.config.pricing.price(ip_len, plan.len, plan.segments());
            let admission = self.egress.scheduler.admit(now, &Ask::new(Some(id), plan.class, price));
            if admission == Admission::Deferred && plan.may_be_deferred() && !self.egress.is_idle() {
                // It may have an acknowledgment, which does not wait.
                self.egress.defer(&mut self.slots, index);
                continue;
            }
            let serial = self.egress.next_serial();
            let mut descriptor = plan.descriptor(id, serial, price);
            let acks = self.egress.properties.acks;
            if plan.class == SegmentClass::PureAck && acks != QueuedAcks::Newest {
                let thins = acks == QueuedAcks::Thinned;
                match self.stamp(now, id, &plan, serial, admission == Admission::Dropped, thins) {
                    Some(ack) => descriptor.id.seq = ack,
                    None => continue,
                }
            } else {
                conn.reserve(&plan, serial);
                if plan.class == SegmentClass::PureAck && plan.reason != SendReason::ChallengeAck {
                    // It is stamped anew when it is popped; until then it says this.
                    descriptor.id.seq = conn.ack_number();
                }
            }
            if let Some(slot) = self.slots.slot_mut(index) {
                slot.queued += 1;
            }
            self.egress.push(now, descriptor);
            self.egress.ready.spend(index, ip_len);
            return true;
        }
        false
    }

    /// True where a packet could leave at once.
    fn could_send(&mut self, now: Instant) -> bool {
        let egress = &self.egress;
        egress.held.is_some()
            || (egress.queued > 0 && egress.not_before.is_none_or(|at| at <= now))
            || self.next_plan(now, 1).is_some()
    }

    /// Sends what is still to be sent of a packet that the scheduler had.
    fn send_reserved<E>(
        &mut self,
        now: Instant,
        id: ConnId,
        descriptor: &Descriptor,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let Some(conn) = self.slots.get_mut(id).and_then(|slot| slot.conn.as_deref_mut()) else {
            return Ok(Sent::Void);
        };
        let plan = conn.claim(descriptor);
        // What made it void may have left something else to say; and what was behind it may go on.
        self.touch(now, id.index);
        let Some(plan) = plan else { return Ok(Sent::Void) };
        let serial = descriptor.id.serial;
        let sent = self.offer(now, id, &plan, serial, emit);
        if sent.is_err()
            && let Some(conn) = self.slots.conn_mut(id.index)
        {
            conn.unclaim(&plan);
            // New data leaves in order, so that it may be another piece than the one that was queued.
            let mut held = plan.descriptor(id, serial, descriptor.len);
            held.queued_at = descriptor.queued_at;
            self.egress.held = Some(held);
        }
        sent
    }

    /// Builds a connection's packet, offers it to the device, and commits it where the device takes it.
    fn offer<E>(
        &mut self,
        now: Instant,
        id: ConnId,
        plan: &Plan,
        serial: u64,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Sent, E> {
        let Some(conn) = self.slots.conn_mut(id.index) else { return Ok(Sent::Void) };
        let header = &mut self.egress.header;
        let Ok(built) = conn.build(now, &self.config, plan, self.config.tx_checksum, header) else {
            // No configuration and no peer leads here; the connection cannot go on.
            conn.abort(&mut self.observe.ctx(now, id, &self.config), ConnError::Aborted);
            return Ok(Sent::Void);
        };
        let packet = TxPacket {
            id: TxId(serial),
            header: header.as_slice(),
            payload: conn.payload(plan),
            segment_size: plan.segment_size,
            checksum: built.emitted.checksum,
            conn: Some(id),
            class: plan.class,
            reason: plan.reason,
        };
        let bytes = packet.len() as u64;
        if let Err(error) = emit(packet) {
            self.observe.counters.tx_refused += 1;
            return Err(error);
        }
        self.observe.counters.ip_out_requests += 1;
        self.egress.accounts.sent(plan.class, u64::from(plan.segments()), bytes);
        conn.sent(&mut self.observe.ctx(now, id, &self.config), plan, &built);
        Ok(Sent::Packets { packets: 1, bytes })
    }

    /// See [`Endpoint::departed`].
    pub(super) fn on_departure(&mut self, now: Instant, packet: TxId) {
        let egress = &mut self.egress;
        // In order of departure, as a rule, so that it is the first.
        let Some(place) = egress.on_wire.iter().position(|(descriptor, _)| descriptor.id.serial == packet.0)
        else {
            return;
        };
        if let Some((descriptor, _)) = egress.on_wire.remove(place) {
            egress.scheduler.departed(now, &descriptor);
        }
    }
}

/// What became of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The device took them.
    Packets {
        /// How many; super-packets count once.
        packets: usize,
        /// Their IP bytes.
        bytes: u64,
    },
    /// A queued packet need not be sent any more.
    Void,
    /// Nothing may leave.
    NothingLeft,
}
