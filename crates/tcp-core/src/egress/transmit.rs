//! Sending: from the connection whose turn it is, through the scheduler or bypassing it, to the
//! device.
//!
//! ```text
//!   ready ──► next() ──► admit ──► reserve, push ──► │scheduler│ ──► pop ──► claim, build ──► emit ──► sent
//!   queue               Deferred: off the queue,                              refused: held, goes first
//!                       until the scheduler names it
//! ```
//!
//! A connection is in the ready queue while it may have something to send, so a call costs what the
//! active connections cost, however many there are. They take [turns](super::ready::Ready) of one
//! quantum of bytes each. Everything that waits is pushed to the scheduler before it is asked for a
//! packet. If the scheduler is empty and allows [bypassing](crate::policy::sched::Bypass), and the
//! device has room, packets go straight to the device; if the device takes no super-packets, a
//! connection's new data is still built as one, and split on the way.

use super::send_trace::{trace_ack, trace_queued};
use super::strays::Origins;
use super::{Deferral, Egress, HEADERS_AHEAD, Release};
use crate::config::EndpointConfig;
use crate::conn::Connection;
use crate::error::ConnError;
use crate::id::{ConnId, TxId};
use crate::packet::{SendReason, TxBudget, TxPacket, TxReport};
use crate::plan::Plan;
use crate::policy::sched::{Admission, Ask, Bypass, Descriptor, Forget, QueuedAcks, SegmentClass};
use crate::share::Cx;
use crate::table::{Flags, Table};
use crate::time::Instant;
use crate::wire::{Ecn, Payload, TcpHeader, TxChecksum, TxChecksumMode, gso, split_fields};
use core::num::NonZeroU16;

/// Maximum packets of a run: more would save nothing, and others wait for their turn.
const MAX_RUN: usize = 16;

impl Egress {
    /// See [`Endpoint::transmit`](crate::Endpoint::transmit).
    pub(crate) fn transmit<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        origins: &mut impl Origins,
        budget: TxBudget,
        mut emit: impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<TxReport, E> {
        if core::mem::take(&mut self.properties_are_old) {
            self.properties = self.scheduler.properties();
        }
        // Everything takes the scheduler, or only what the device does not take at once.
        let orders = budget.reports_departures || self.properties.bypass == Bypass::Never;
        let straight = !orders && (self.properties.bypass == Bypass::Always || !self.device_full);
        let mut report = TxReport::default();
        let acks = budget.keeps_acks && straight;
        let data = budget.corks && straight && cx.config.autocorking;
        self.permit(&mut table.slots, Deferral { acks, data });
        if self.asked_for.is_some() || !self.on_wire.is_empty() {
            if let Some(by) = self.lateness(cx.now) {
                cx.observe.counters.egress_late += 1;
                self.scheduler.woke_late(cx.now, by);
            }
            self.depart_until(cx.now);
        }
        if orders {
            // Even while the link is busy: an ACK takes its place in the queue, with its number,
            // when it arises.
            self.give(table, cx, usize::MAX);
        } else if !straight {
            // Half of what leaves if the device has room again, so that the queue runs dry even if
            // more could always be sent, and the way past it is open again.
            self.give(table, cx, (budget.packets / 2).max(1));
        } else if !self.deferred.is_empty() {
            self.resume_named(&mut table.slots);
        }
        while report.packets < budget.packets {
            let sent = if straight && self.is_idle() {
                self.send_straight(table, cx, budget.packets - report.packets, budget.takes_fields, &mut emit)
            } else {
                self.send_scheduled(table, cx, origins, budget, orders, &mut emit)
            };
            match sent {
                Ok(SendOutcome::Packets { packets, bytes }) => {
                    report.packets += packets;
                    report.bytes += bytes;
                }
                Ok(SendOutcome::Void) => {}
                Ok(SendOutcome::NothingLeft) => {
                    self.device_full = false;
                    return Ok(self.with_kept(report));
                }
                Err(error) => {
                    self.device_full = true;
                    return Err(error);
                }
            }
        }
        if self.is_idle() {
            self.device_full = false;
        }
        report.more = self.could_send(table, cx);
        Ok(self.with_kept(report))
    }

    const fn with_kept(&self, mut report: TxReport) -> TxReport {
        let Deferral { acks, data } = self.keeps;
        report.kept_acks = acks;
        report.corked = data;
        report
    }

    /// Sends the next packet past the scheduler, which is empty and would only pass it on; or a run
    /// of at most `most` packets of new data, which costs TCP little more than one.
    fn send_straight<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        most: usize,
        takes_fields: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<SendOutcome, E> {
        let run = if cx.config.max_super_packet == 0 { most.min(MAX_RUN) } else { 1 };
        let Some((index, plan)) = self.next_plan(table, cx, run as u32) else {
            return Ok(SendOutcome::NothingLeft);
        };
        let id = table.slots.id(index);
        let sent = match plan.segment_size {
            Some(size) if cx.config.max_super_packet == 0 => {
                self.offer_run(table, cx, (id, &plan), size, takes_fields, emit)
            }
            _ => {
                let serial = self.next_serial();
                self.offer(table, cx, (id, &plan), serial, takes_fields, emit).inspect_err(|_| {
                    self.held = table
                        .slots
                        .conn_mut(index)
                        .map(|conn| hold(cx.now, cx.config, conn, id, &plan, serial));
                })
            }
        }?;
        if let SendOutcome::Packets { bytes, .. } = sent {
            if plan.class == SegmentClass::PureAck
                && table.slots.conn_mut(index).is_some_and(|conn| conn.rests())
            {
                // Most that send an ACK have nothing else.
                self.ready.leave(&mut table.slots);
                return Ok(sent);
            }
            self.ready.spend(index, bytes as u32);
            if plan.class == SegmentClass::Data
                && let Some(slot) = table.slots.slot_mut(index)
            {
                slot.sent_in = self.turn;
            }
        }
        Ok(sent)
    }

    /// Splits a run of new data into packets, offers them one by one, and commits those that the
    /// device takes.
    fn offer_run<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        (id, plan): (ConnId, &Plan),
        size: NonZeroU16,
        takes_fields: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<SendOutcome, E> {
        let Some(conn) = table.slots.conn_mut(id.index) else { return Ok(SendOutcome::Void) };
        conn.gather(plan);
        let Self { header, segment_headers, serial, held, accounts, .. } = self;
        let (mut packets, mut bytes, mut taken, mut refused) = (0, 0, 0, None);
        let mut offer =
            |fields: Option<&TcpHeader<'static>>, header: &[u8], checksum, payload: Payload<'_>| {
                let [first, second, _] = payload.slices();
                let packet = TxPacket {
                    id: TxId(*serial),
                    header,
                    fields,
                    payload: [first, second],
                    segment_size: None,
                    checksum,
                    conn: Some(id),
                    class: plan.class,
                    reason: plan.reason,
                };
                *serial += 1;
                let len = packet.len() as u64;
                if let Err(error) = emit(packet) {
                    refused = Some(error);
                    return false;
                }
                packets += 1;
                bytes += len;
                taken += payload.len() as u32;
                true
            };
        let mut fields = None;
        let built = if takes_fields { conn.build_fields(cx.now, cx.config, plan, &mut fields) } else { None };
        let built = if let (Some(fields), Some(built)) = (&mut fields, built) {
            split_fields(fields, conn.payload(plan).into(), size).map(|mut segments| {
                while let Some((fields, payload)) = segments.next()
                    && offer(Some(fields), &[], TxChecksum::Omitted, payload)
                {}
                built
            })
        } else {
            let built = conn.build(cx.now, cx.config, plan, TxChecksumMode::Omit, header);
            built.and_then(|built| {
                let mode = cx.config.tx_checksum;
                let mut payload = Payload::from(conn.payload(plan));
                let mut segments = gso::split(header.as_slice(), payload, size, mode)?;
                let checksum = segments.checksum();
                for headers in segment_headers.iter_mut() {
                    segments.next_headers(headers);
                }
                let mut turn = 0;
                while let Some(headers) = segment_headers.get_mut(turn % HEADERS_AHEAD)
                    && !headers.is_empty()
                    && offer(None, headers.as_slice(), checksum, payload.split_to(size.get().into()))
                {
                    segments.next_headers(headers);
                    turn += 1;
                }
                Ok(built)
            })
        };
        let Ok(built) = built else {
            conn.abort(&mut cx.conn(id), ConnError::Aborted);
            return Ok(SendOutcome::Void);
        };
        if packets > 0 {
            cx.observe.counters.ip_out_requests += packets as u64;
            accounts.sent(plan.class, packets as u64, bytes);
            conn.sent(&mut cx.conn(id), &plan.first(taken), &built);
        }
        match refused {
            None => Ok(SendOutcome::Packets { packets, bytes }),
            Some(error) => {
                cx.observe.counters.tx_refused += 1;
                let next = plan.packet_at(taken, u32::from(size.get()));
                *held = Some(hold(cx.now, cx.config, conn, id, &next, *serial - 1));
                Err(error)
            }
        }
    }

    /// Sends the held packet first, then the one that the scheduler releases next.
    fn send_scheduled<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        origins: &mut impl Origins,
        budget: TxBudget,
        orders: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<SendOutcome, E> {
        let held = self.held.take().map(Release::Send);
        let descriptor = match held.or_else(|| self.next_release(table, cx, orders)) {
            None => return Ok(SendOutcome::NothingLeft),
            Some(Release::Lose(descriptor)) => {
                self.lose(table, cx, origins, &descriptor);
                return Ok(SendOutcome::Void);
            }
            Some(Release::Send(descriptor)) => descriptor,
        };
        let sent = match descriptor.conn {
            Some(id) if !self.strays.has(descriptor.id.serial) => {
                self.send_reserved(table, cx, id, &descriptor, budget.takes_fields, emit)
            }
            _ => self.emit_stray(table, cx, origins, &descriptor, emit).map(|bytes| match bytes {
                Some(bytes) => SendOutcome::Packets { packets: 1, bytes },
                None => SendOutcome::Void,
            }),
        };
        match sent {
            Ok(SendOutcome::Packets { bytes, .. }) => {
                let delay = cx.now.since(descriptor.queued_at);
                // A packet without a connection takes the scheduler even if others bypass it, and
                // then waits in no queue.
                if orders || descriptor.conn.is_some() || !delay.is_zero() {
                    self.accounts.waited(descriptor.class, delay);
                }
                let descriptor = self.repriced(cx, descriptor, bytes);
                let most = cx.config.max_on_wire;
                if !self.took(cx.now, descriptor, budget.reports_departures, most) {
                    cx.observe.counters.departures_missing += 1;
                }
            }
            Ok(_) => {
                self.scheduler.repriced(cx.now, &descriptor, 0);
                let void = Forget::Packet { conn: descriptor.conn, serial: descriptor.id.serial };
                self.scheduler.forget(cx.now, void);
            }
            Err(_) => {}
        }
        sent
    }

    /// Tells the scheduler if a packet was sent with a different length than it was queued with:
    /// options are written last.
    fn repriced(&mut self, cx: &mut Cx<'_>, mut descriptor: Descriptor, bytes: u64) -> Descriptor {
        // A super-packet has one header for all its packets, so its bytes do not give its price.
        if descriptor.segments == 1 {
            let len = cx.config.pricing.price(bytes as u32, descriptor.id.payload, 1);
            if len != descriptor.len {
                self.scheduler.repriced(cx.now, &descriptor, len);
                descriptor.len = len;
            }
        }
        descriptor
    }

    /// Pushes up to `most` packets of what waits and the scheduler admits.
    fn give(&mut self, table: &mut Table, cx: &mut Cx<'_>, most: usize) {
        self.resume_named(&mut table.slots);
        let mut given = 0;
        while given < most && self.push_one(table, cx) {
            given += 1;
        }
    }

    /// The scheduler has dropped the packet of `descriptor`. TCP takes it for sent, and learns of
    /// the loss from the peer's ACKs.
    fn lose(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        origins: &mut impl Origins,
        descriptor: &Descriptor,
    ) {
        cx.observe.counters.egress_lost += 1;
        let id = match descriptor.conn {
            Some(id) if !self.strays.has(descriptor.id.serial) => id,
            _ => return self.lose_stray(table, cx, origins, descriptor),
        };
        let Some(conn) = table.slots.get_mut(id).and_then(|slot| slot.conn.as_deref_mut()) else { return };
        let plan = conn.claim(cx.config, descriptor);
        self.touch(table, cx, id.index);
        let Some(plan) = plan else { return };
        let Some(conn) = table.slots.conn_mut(id.index) else { return };
        conn.gather(&plan);
        match conn.build(cx.now, cx.config, &plan, TxChecksumMode::Omit, &mut self.header) {
            Ok(built) => conn.sent(&mut cx.conn(id), &plan, &built),
            // As when it is sent.
            Err(_) => conn.abort(&mut cx.conn(id), ConnError::Aborted),
        }
    }

    /// What the scheduler releases next. If it `orders` all packets, what waits is pushed before.
    fn next_release(&mut self, table: &mut Table, cx: &mut Cx<'_>, orders: bool) -> Option<Release> {
        if orders {
            self.give(table, cx, usize::MAX);
        }
        loop {
            if let Some(release) = self.pop(cx.now, &mut table.slots, &mut cx.observe.counters) {
                return Some(release);
            }
            // When the scheduler is bypassed, its queue only contains packets from before.
            if orders || !self.push_one(table, cx) {
                return None;
            }
        }
    }

    /// The next packet of the connection whose turn it is; `None` if no connection has anything to
    /// send.
    fn next_plan(&mut self, table: &mut Table, cx: &mut Cx<'_>, run: u32) -> Option<(u32, Plan)> {
        let largest = cx.config.max_super_packet;
        let largest = largest.min(self.properties.largest_packet);
        loop {
            let Some(index) = self.ready.current() else {
                self.resume_if_idle(&mut table.slots);
                if self.ready.is_empty() {
                    return None;
                }
                continue;
            };
            if let Some(slot) = table.slots.slot_mut(index)
                && let Some(conn) = slot.conn.as_deref_mut()
            {
                if slot.flags.set(Flags::TOUCHED) {
                    table.touched.push(index);
                }
                if let Some(plan) =
                    conn.next(cx.now, cx.config, largest, slot.flags.has(Flags::DEFERRED), run)
                {
                    let may_keep = self.may_keep;
                    if may_keep.acks && conn.may_keep(&plan) {
                        self.keeps.acks = true;
                    } else if may_keep.data
                        && slot.sent_in == self.turn
                        && conn.may_cork(cx.config, largest, &plan)
                    {
                        self.keeps.data = true;
                        cx.observe.counters.tcp_auto_corking += 1;
                    } else {
                        return Some((index, plan));
                    }
                    self.keep(&mut table.slots, index);
                }
            }
            self.ready.leave(&mut table.slots);
        }
    }

    /// Queues one packet of the connection whose turn it is; false if no connection has anything to
    /// send.
    fn push_one(&mut self, table: &mut Table, cx: &mut Cx<'_>) -> bool {
        while let Some((index, plan)) = self.next_plan(table, cx, 1) {
            let id = table.slots.id(index);
            let Some(slot) = table.slots.slot_mut(index) else { return false };
            let Some(conn) = slot.conn.as_deref_mut() else { return false };
            let ip_len = conn.ip_len(&plan);
            let price = cx.config.pricing.price(ip_len, plan.len, plan.segments());
            let admission = self.scheduler.admit(cx.now, &Ask::new(Some(id), plan.class, price));
            if admission == Admission::Deferred && plan.may_be_deferred() && !self.is_idle() {
                conn.on_deferred(cx.now);
                // It may have an ACK, which is never deferred.
                self.defer(&mut table.slots, index);
                continue;
            }
            let serial = self.next_serial();
            let mut descriptor = plan.descriptor(id, serial, price, conn.codepoint(&plan));
            let acks = self.properties.acks;
            if plan.class == SegmentClass::PureAck && acks != QueuedAcks::Newest {
                let thins = acks == QueuedAcks::Thinned;
                match self.stamp(table, cx, (id, &plan), serial, admission == Admission::Dropped, thins) {
                    Some(ack) => descriptor.id.seq = ack,
                    None => continue,
                }
            } else {
                conn.reserve(&plan, serial);
                if plan.class == SegmentClass::PureAck && plan.reason != SendReason::ChallengeAck {
                    // It is stamped anew when it is popped; until then it has this number.
                    descriptor.id.seq = conn.ack_number();
                }
            }
            if let Some(slot) = table.slots.slot_mut(index) {
                slot.queued += 1;
                if admission == Admission::Granted && plan.class.is_data() {
                    // A retransmission is let in that did not have to wait. Nobody names the
                    // connection any more.
                    slot.flags.clear(Flags::DEFERRED);
                }
            }
            self.push(cx.now, descriptor);
            self.ready.spend(index, ip_len);
            return true;
        }
        false
    }

    /// True if a packet could be sent at once.
    fn could_send(&mut self, table: &mut Table, cx: &mut Cx<'_>) -> bool {
        self.held.is_some()
            || (!self.queued.is_empty() && self.not_before.is_none_or(|at| at <= cx.now))
            || self.next_plan(table, cx, 1).is_some()
    }

    /// Sends what is still to be sent of a packet popped from the scheduler.
    fn send_reserved<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        id: ConnId,
        descriptor: &Descriptor,
        takes_fields: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<SendOutcome, E> {
        let Some(conn) = table.slots.get_mut(id).and_then(|slot| slot.conn.as_deref_mut()) else {
            return Ok(SendOutcome::Void);
        };
        let plan = conn.claim(cx.config, descriptor);
        // Whatever made it void may require another packet; and those behind it may continue.
        self.touch(table, cx, id.index);
        let Some(mut plan) = plan else { return Ok(SendOutcome::Void) };
        plan.marked = descriptor.ecn == Ecn::Ce;
        let serial = descriptor.id.serial;
        if cx.observe.tracer.is_some() {
            trace_queued(cx, id, descriptor.queued_at);
        }
        let sent = self.offer(table, cx, (id, &plan), serial, takes_fields, emit);
        if sent.is_err()
            && let Some(conn) = table.slots.conn_mut(id.index)
        {
            conn.unclaim(&plan);
            // New data is sent in order, so it may be a different piece from the one that was
            // queued.
            let mut held = plan.descriptor(id, serial, descriptor.len, descriptor.ecn);
            held.queued_at = descriptor.queued_at;
            self.held = Some(held);
        }
        sent
    }

    /// Builds a connection's packet, offers it to the device, and commits it if the device takes
    /// it.
    fn offer<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        (id, plan): (ConnId, &Plan),
        serial: u64,
        takes_fields: bool,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<SendOutcome, E> {
        if cx.observe.tracer.is_some() {
            trace_ack(table, cx, id, plan);
        }
        let Some(conn) = table.slots.conn_mut(id.index) else { return Ok(SendOutcome::Void) };
        conn.gather(plan);
        let header = &mut self.header;
        let mut fields = None;
        let built = if takes_fields { conn.build_fields(cx.now, cx.config, plan, &mut fields) } else { None };
        let built = match built {
            Some(built) => Ok(built),
            None => conn.build(cx.now, cx.config, plan, cx.config.tx_checksum, header),
        };
        let Ok(built) = built else {
            // No configuration and no peer can cause this; the connection cannot continue.
            conn.abort(&mut cx.conn(id), ConnError::Aborted);
            return Ok(SendOutcome::Void);
        };
        let packet = TxPacket {
            id: TxId(serial),
            header: if fields.is_some() { &[] } else { header.as_slice() },
            fields: fields.as_ref(),
            payload: conn.payload(plan),
            segment_size: plan.segment_size,
            checksum: built.emitted.checksum,
            conn: Some(id),
            class: plan.class,
            reason: plan.reason,
        };
        let bytes = packet.len() as u64;
        if let Err(error) = emit(packet) {
            cx.observe.counters.tx_refused += 1;
            return Err(error);
        }
        cx.observe.counters.ip_out_requests += 1;
        self.accounts.sent(plan.class, u64::from(plan.segments()), bytes);
        conn.sent(&mut cx.conn(id), plan, &built);
        Ok(SendOutcome::Packets { packets: 1, bytes })
    }
}

/// Holds a packet that bypassed the scheduler and was refused by the device.
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
    Descriptor { queued_at: now, ..plan.descriptor(id, serial, price, conn.codepoint(plan)) }
}

/// The result of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendOutcome {
    /// The device took them.
    Packets {
        /// Their number; super-packets count once.
        packets: usize,
        /// Their IP bytes.
        bytes: u64,
    },
    /// A queued packet became void.
    Void,
    /// Nothing can be sent.
    NothingLeft,
}
