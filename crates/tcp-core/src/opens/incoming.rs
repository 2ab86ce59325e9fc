//! Accepting in three steps: a SYN is held, the application looks at it, and answers when it knows
//! what to say.
//!
//! ```text
//!   SYN ──► held ──┬─ accept_syn ──► SYN cache ──► SYN-ACK ── ACK ──► SynEvent::Connected
//!                  ├─ release_syn ─► SYN cache or cookie ──── ACK ──► backlog of the listener
//!                  ├─ refuse_syn ──► RST, ICMP error, or nothing
//!                  └─ RST, another SYN, too long, no memory ──► SynEvent::Ended, if the application has it
//! ```
//!
//! To its client, a listener whose SYN is held is in LISTEN and has not answered: repeated SYNs are
//! absorbed (what they say of timestamps and ECN counts for the SYN-ACK), an ACK gets an RST (RFC
//! 9293, section 3.10.7.2), and nothing is challenged, because a challenge ACK would be an answer.
//!
//! - **An RST** ends a held SYN if it has the number behind the SYN's, as for a half-open
//!   connection (RFC 5961, section 3); a stranger has to guess it.
//! - **A SYN with another number** is a client that has begun anew: the held one ends, and the new
//!   one is held. A stranger who guesses addresses and ports can do that, too; the client's next
//!   SYN undoes it.
//! - **TIME-WAIT** that the SYN may end (RFC 6191) lasts until it is accepted.
//! - **SYN cookies** are not used for SYNs that are accepted: they save the state that the held SYN
//!   has taken already. The entry in the SYN cache has to find room as any other. SYNs that are
//!   released are answered with cookies as those of other listeners.
//! - **Fast open** is off: data of a SYN would have to be kept, and nobody has accepted it yet. The
//!   client sends it again.

use super::held_syns::{IncomingSyn, RECORD, SynEvent, SynId};
use super::segments::{Inbound, ignore_segment};
use super::{Below, Opens};
use crate::conn::RstSpec;
use crate::error::{AcceptError, ConnError};
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::ListenerId;
use crate::ip::port_unreachable;
use crate::seq::SeqNum;
use crate::share::{Context, Cx, Ingested};
use crate::table::Table;
use crate::time::Instant;
use crate::wire::{
    HeaderBuf, IcmpErrorKind, IpVersion, TcpFlags, TcpHeader, TxChecksumMode, Unreachable, emit_tcp,
};
use core::net::IpAddr;
use core::num::NonZeroU32;

/// How a SYN is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// By an RST, as by a port that nobody listens on: the client fails at once (`ECONNREFUSED`).
    Rst,
    /// Without a word: the client repeats its SYN, which is held anew, and times out in the end.
    Drop,
    /// By an ICMP error, within the limits of such errors
    /// ([`icmp_errors_per_second`](crate::EndpointConfig::icmp_errors_per_second),
    /// [`refuse_datagrams`](crate::EndpointConfig::refuse_datagrams)).
    ///
    /// For one of the endpoint's own addresses it says *port unreachable* (RFC 1122, section
    /// 3.2.2.1: IPv4 code 3; RFC 4443, section 3.1: IPv6 code 4); Linux clients fail with
    /// `ECONNREFUSED`. For an address that it answers for in the name of others it says
    /// *administratively prohibited* (RFC 1812, section 5.2.7.1: code 13; RFC 4443: code 1), as a
    /// gateway does that does not let the connection pass; Linux clients fail with `EHOSTUNREACH`
    /// over IPv4, and `EACCES` over IPv6.
    Unreachable,
}

/// The SYNs that an endpoint holds for its application: [`Endpoint::syns`](crate::Endpoint::syns).
#[derive(Debug)]
pub struct IncomingSyns<'a> {
    pub(crate) opens: &'a mut Opens,
    pub(crate) below: Below<'a>,
    pub(crate) context: &'a mut Context,
}

impl IncomingSyns<'_> {
    /// The next SYN of a listener that [holds](crate::AcceptConfig::hold_syns) them; `None` if
    /// there is none, and [`SynEvent::Arrived`] tells of the next. The application must
    /// [accept](Self::accept) or [refuse](Self::refuse) it. Until then its client waits,
    /// and repeats its SYN in vain. O(log n) for n listeners.
    ///
    /// ```
    /// use ackline_tcp_core::endpoint::{IncomingSyn, Refusal, SynEvent, SynId};
    /// use ackline_tcp_core::{ConnId, Endpoint, Instant, ListenerId};
    ///
    /// fn on_syn_event(endpoint: &mut Endpoint, event: SynEvent) -> Option<ConnId> {
    ///     match event {
    ///         SynEvent::Arrived(listener) => {
    ///             while let Some((id, syn)) = endpoint.syns().next(listener) {
    ///                 begin_upstream(id, &syn);
    ///             }
    ///             None
    ///         }
    ///         SynEvent::Connected { conn, .. } => Some(conn),
    ///         SynEvent::Ended { syn, .. } => {
    ///             end_upstream(syn);
    ///             None
    ///         }
    ///         _ => None,
    ///     }
    /// }
    ///
    /// fn on_upstream(endpoint: &mut Endpoint, now: Instant, id: SynId, connected: bool) {
    ///     if !connected || endpoint.syns().accept(now, id).is_err() {
    ///         endpoint.syns().refuse(now, id, Refusal::Unreachable);
    ///     }
    /// }
    /// # fn begin_upstream(_: SynId, _: &IncomingSyn) {}
    /// # fn end_upstream(_: SynId) {}
    /// ```
    pub fn next(&mut self, listener: ListenerId) -> Option<(SynId, IncomingSyn)> {
        self.opens.held_syns.take_next(NonZeroU32::new(listener.0)?)
    }

    /// Answers a SYN with a SYN-ACK. [`SynEvent::Connected`] follows when the client has
    /// acknowledged it, or [`SynEvent::Ended`]. The connection has the settings that the listener
    /// has now. O(1).
    ///
    /// # Errors
    /// [`AcceptError`]: the SYN is not held any more, and no event follows.
    pub fn accept(&mut self, now: Instant, id: SynId) -> Result<(), AcceptError> {
        let cx = &mut self.context.at(now);
        let place = self.opens.held_syns.place_of(&id).ok_or(AcceptError::Gone)?;
        let held = self.opens.held_syns.remove(place).ok_or(AcceptError::Gone)?;
        self.opens.count_held_syns(cx);
        let listener = self.opens.listeners.get(held.listener).ok_or(AcceptError::Gone)?;
        let config = listener.accept.conn.clone();
        if self.below.table.look_up(&id.tuple).is_some() {
            // A cookie from before the listener held SYNs has made one.
            return Err(AcceptError::Gone);
        }
        if !cx.limits.connections.may_have_room(self.below.table.slots.len()) {
            cx.drop_packet(DropReason::EndpointFull);
            return Err(AcceptError::TooManyConnections);
        }
        let reopens = held.iss_floor.is_some();
        let half_open = held.half_open(self.below.table.iss(cx.now, &id.tuple, held.iss_floor));
        match self.opens.begin_half_open(
            &mut self.below,
            cx,
            (held.listener, &id.tuple),
            config,
            half_open,
            reopens,
        ) {
            Ok(()) => {}
            Err(reason) => {
                cx.drop_packet(reason);
                return Err(match reason {
                    DropReason::ConnectionMemory => AcceptError::OutOfMemory,
                    _ => AcceptError::TooManyConnections,
                });
            }
        }
        end_time_wait(self.below.table, cx, &id.tuple);
        self.opens.held_syns.answered(id);
        Ok(())
    }

    /// Refuses a SYN. One that has been accepted, and whose handshake is not complete, is reset,
    /// however it is refused. Nothing happens if it is gone. O(1).
    pub fn refuse(&mut self, now: Instant, id: SynId, how: Refusal) {
        let cx = &mut self.context.at(now);
        if let Some(place) = self.opens.held_syns.place_of(&id) {
            cx.observe.counters.held_syns_refused += 1;
            self.opens.refuse_held_syn(&mut self.below, cx, place, how);
        } else if self.opens.held_syns.is_answered(&id.tuple) == Some(id)
            && let Some(place) = self.opens.syn_cache.look_up(&id.tuple)
        {
            self.opens.held_syns.take_answered(&id.tuple);
            self.opens.reset_half_open_at(self.below.egress, cx, place);
        }
    }

    /// Answers a SYN as a listener does that holds none, and lets it go: by an entry in the SYN
    /// cache, or a cookie that takes nothing. If the client completes the handshake, the connection
    /// waits in the listener's [backlog](crate::AcceptConfig::backlog) as any other. For an
    /// application that has more SYNs than it has answers for, and wants clients to prove their
    /// addresses first. What finds no room is dropped and counted; the client repeats it. No event
    /// follows. Nothing happens if the SYN is gone. O(1).
    pub fn release(&mut self, now: Instant, id: SynId) {
        let cx = &mut self.context.at(now);
        let Some(place) = self.opens.held_syns.place_of(&id) else { return };
        let Some(held) = self.opens.held_syns.remove(place) else { return };
        self.opens.count_held_syns(cx);
        cx.observe.counters.held_syns_released += 1;
        if self.below.table.look_up(&id.tuple).is_some() {
            return;
        }
        let (listener, half_open) = (held.listener, held.half_open(SeqNum(0)));
        let answered = self.opens.may_answer(&self.below, cx, listener).and_then(|config| {
            self.opens.answer_syn(
                &mut self.below,
                cx,
                (listener, &id.tuple),
                config,
                half_open,
                held.iss_floor,
            )
        });
        if let Err(reason) = answered {
            cx.drop_packet(reason);
            return;
        }
        if held.iss_floor.is_some() {
            end_time_wait(self.below.table, cx, &id.tuple);
        }
    }

    /// The next thing that has happened to held SYNs. Drain it as
    /// [`Endpoint::poll_event`](crate::Endpoint::poll_event).
    pub fn poll_event(&mut self) -> Option<SynEvent> {
        self.opens.held_syns.next_event()
    }
}

impl Opens {
    /// A SYN for a listener that holds them.
    pub(crate) fn hold_syn(
        &mut self,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        inbound: &Inbound<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let tuple = &inbound.tuple;
        let Some(listener) = self.listeners.get(number) else { return Ingested::Handled };
        let (most, held) = (cx.config.max_held_syns, self.held_syns.len());
        let has_share = self.held_syns.of_source(tuple) >= cx.config.held_syns_per_source;
        if (has_share && cx.limits.held_syns.is_half_used(held))
            || !cx.limits.held_syns.has_room(held)
            || !self.held_syns.has_room_for(number, &listener.accept)
        {
            return cx.drop_packet(DropReason::HeldSynsFull);
        }
        if !cx.observe.budget.take(RECORD) {
            self.held_syns.settle(number);
            return cx.drop_packet(DropReason::ConnectionMemory);
        }
        let timeout = cx.config.held_syn_timeout;
        self.held_syns.hold(cx.now, (number, tuple), (inbound.ip, inbound.segment), iss_floor, timeout, most);
        cx.observe.counters.held_syns += 1;
        self.count_held_syns(cx);
        Ingested::HeldSyn
    }

    /// A segment of a client whose SYN, at `place`, is held by the listener with this number.
    pub(crate) fn on_held_syn_segment(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        (place, number): (u32, NonZeroU32),
        inbound: &Inbound<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let segment = inbound.segment;
        let flags = segment.flags;
        let Some(held) = self.held_syns.get_mut(place) else { return Ingested::Handled };
        if flags.contains(TcpFlags::RST) {
            if segment.seq != held.syns.irs + 1 {
                return cx.drop_packet(DropReason::RstNotExpected);
            }
            self.cancel_held_syn(cx, place);
            Ingested::Handled
        } else if flags.contains(TcpFlags::ACK) {
            self.refuse_segment(below.egress, cx, inbound)
        } else if !flags.contains(TcpFlags::SYN) {
            ignore_segment(cx)
        } else if segment.seq == held.syns.irs {
            held.hear_again(segment, inbound.ip.ecn);
            cx.observe.counters.held_syn_repeats += 1;
            Ingested::Handled
        } else {
            self.cancel_held_syn(cx, place);
            self.on_syn(below, cx, number, inbound, iss_floor)
        }
    }

    /// The client has ended the SYN at `place`.
    fn cancel_held_syn(&mut self, cx: &mut Cx<'_>, place: u32) {
        cx.observe.counters.held_syns_cancelled += 1;
        self.end_held_syn(cx, place, ConnError::Reset);
    }

    /// Forgets the SYN at `place`, and tells the application if it has it.
    pub(crate) fn end_held_syn(&mut self, cx: &mut Cx<'_>, place: u32, error: ConnError) {
        if let Some(held) = self.held_syns.remove(place)
            && held.taken
        {
            self.held_syns.tell(SynEvent::Ended { syn: held.id(), error });
        }
        self.count_held_syns(cx);
    }

    /// The half-open connection of `tuple` has ended. If the application has accepted its SYN, it
    /// is told.
    pub(crate) fn end_answered_syn(&mut self, tuple: &FourTuple, error: ConnError) {
        if let Some(syn) = self.held_syns.take_answered(tuple) {
            self.held_syns.tell(SynEvent::Ended { syn, error });
        }
    }

    /// Tells the client that the SYN at `place` is refused, and forgets it.
    fn refuse_held_syn(&mut self, below: &mut Below<'_>, cx: &mut Cx<'_>, place: u32, how: Refusal) {
        let Some(held) = self.held_syns.remove(place) else { return };
        self.count_held_syns(cx);
        let tuple = held.tuple;
        match how {
            Refusal::Drop => {}
            Refusal::Rst => {
                // RFC 9293, section 3.10.7.1.
                let rst = RstSpec { seq: SeqNum(0), ack: Some(held.syns.irs + 1) };
                self.send_reset(below.egress, cx, tuple, rst);
            }
            Refusal::Unreachable => {
                // The client recognises its SYN by its addresses, ports and number.
                let syn = held.incoming();
                let mut header = TcpHeader::new(syn.remote, syn.local);
                (header.ttl, header.tos, header.flow_label) = (syn.ttl, syn.dscp << 2, syn.flow_label);
                (header.seq, header.flags) = (syn.seq, TcpFlags::SYN);
                (header.window, header.options) = (syn.window, syn.options);
                let mut quote = HeaderBuf::new();
                if emit_tcp(&header, [&[], &[]], TxChecksumMode::Complete, &mut quote).is_ok() {
                    let error = unreachable(cx, syn.local.ip());
                    let (src, dst) = (syn.local.ip(), syn.remote.ip());
                    below.ip.send_icmp_error(below.egress, cx, src, dst, error, quote.as_slice().into());
                }
            }
        }
    }

    /// Refuses the SYNs that have been held for too long.
    pub(crate) fn expire_held_syns(&mut self, below: &mut Below<'_>, cx: &mut Cx<'_>) {
        while let Some(place) = self.held_syns.overdue(cx.now) {
            cx.observe.counters.held_syns_expired += 1;
            self.reset_held_syn(below, cx, place, ConnError::TimedOut);
        }
    }

    /// The listener is gone: its held SYNs are refused.
    pub(crate) fn reset_held_syns(&mut self, below: &mut Below<'_>, cx: &mut Cx<'_>, listener: NonZeroU32) {
        for tuple in self.held_syns.tuples_of(listener) {
            if let Some(place) = self.held_syns.look_up(&tuple) {
                self.reset_held_syn(below, cx, place, ConnError::Aborted);
            }
        }
        self.held_syns.forget_listener(listener);
    }

    /// Refuses the SYN at `place` in place of the application, and tells it.
    fn reset_held_syn(&mut self, below: &mut Below<'_>, cx: &mut Cx<'_>, place: u32, error: ConnError) {
        if let Some(held) = self.held_syns.get_mut(place)
            && held.taken
        {
            let syn = held.id();
            self.held_syns.tell(SynEvent::Ended { syn, error });
        }
        self.refuse_held_syn(below, cx, place, Refusal::Rst);
    }

    fn count_held_syns(&self, cx: &mut Cx<'_>) {
        cx.observe.counters.curr_held_syns = self.held_syns.len() as u64;
    }
}

/// A SYN that is answered reopens a connection in TIME-WAIT.
fn end_time_wait(table: &mut Table, cx: &mut Cx<'_>, tuple: &FourTuple) {
    if let Some(name) = table.time_wait.look_up(tuple) {
        table.time_wait.remove(name);
        cx.observe.counters.tcp_tw_reopened += 1;
    }
}

/// The error for a SYN to `local`: see [`Refusal::Unreachable`].
fn unreachable(cx: &Cx<'_>, local: IpAddr) -> IcmpErrorKind {
    let version = if local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    if cx.config.addresses.contains(&local) {
        return port_unreachable(version);
    }
    let code = match version {
        IpVersion::V4 => 13,
        IpVersion::V6 => 1,
    };
    IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Prohibited, code }
}
