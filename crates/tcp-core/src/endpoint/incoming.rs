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

use super::held_syns::{IncomingSyn, SynEvent, SynId};
use super::memory::takes_held_syn;
use super::{Endpoint, Ingested, datagrams};
use crate::conn::RstSpec;
use crate::drop_reason::DropReason;
use crate::error::{AcceptError, ConnError};
use crate::four_tuple::FourTuple;
use crate::id::ListenerId;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{
    HeaderBuf, IcmpErrorKind, IpInfo, IpVersion, TcpFlags, TcpHeader, TcpSegment, TxChecksumMode,
    Unreachable, emit_tcp,
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

impl Endpoint {
    /// The next SYN of a listener that [holds](crate::AcceptConfig::hold_syns) them; `None` if
    /// there is none, and [`SynEvent::Arrived`] tells of the next. The application must
    /// [accept](Self::accept_syn) or [refuse](Self::refuse_syn) it. Until then its client waits,
    /// and repeats its SYN in vain. O(log n) for n listeners.
    ///
    /// ```
    /// use ackline_tcp_core::endpoint::{IncomingSyn, Refusal, SynEvent, SynId};
    /// use ackline_tcp_core::{ConnId, Endpoint, Instant, ListenerId};
    ///
    /// fn on_syn_event(endpoint: &mut Endpoint, event: SynEvent) -> Option<ConnId> {
    ///     match event {
    ///         SynEvent::Arrived(listener) => {
    ///             while let Some((id, syn)) = endpoint.next_syn(listener) {
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
    ///     if !connected || endpoint.accept_syn(now, id).is_err() {
    ///         endpoint.refuse_syn(now, id, Refusal::Unreachable);
    ///     }
    /// }
    /// # fn begin_upstream(_: SynId, _: &IncomingSyn) {}
    /// # fn end_upstream(_: SynId) {}
    /// ```
    pub fn next_syn(&mut self, listener: ListenerId) -> Option<(SynId, IncomingSyn)> {
        self.unsettled = true;
        self.held_syns.take_next(NonZeroU32::new(listener.0)?)
    }

    /// Answers a SYN with a SYN-ACK. [`SynEvent::Connected`] follows when the client has
    /// acknowledged it, or [`SynEvent::Ended`]. The connection has the settings that the listener
    /// has now. O(1).
    ///
    /// # Errors
    /// [`AcceptError`]: the SYN is not held any more, and no event follows.
    pub fn accept_syn(&mut self, now: Instant, id: SynId) -> Result<(), AcceptError> {
        self.now = self.now.max(now);
        self.unsettled = true;
        let place = self.held_syns.place_of(&id).ok_or(AcceptError::Gone)?;
        let held = self.held_syns.remove(place).ok_or(AcceptError::Gone)?;
        self.count_held_syns();
        let listener = self.listeners.get(held.listener).ok_or(AcceptError::Gone)?;
        let config = listener.accept.conn.clone();
        if self.lookup(&id.tuple).is_some() {
            // A cookie from before the listener held SYNs has made one.
            return Err(AcceptError::Gone);
        }
        if !self.limits.connections.may_have_room(self.slots.len()) {
            self.drop_packet(DropReason::EndpointFull);
            return Err(AcceptError::TooManyConnections);
        }
        let reopens = held.iss_floor.is_some();
        let half_open = held.half_open(self.iss(now, &id.tuple, held.iss_floor));
        match self.begin_half_open(now, held.listener, &id.tuple, config, half_open, reopens) {
            Ok(()) => {}
            Err(reason) => {
                self.drop_packet(reason);
                return Err(match reason {
                    DropReason::ConnectionMemory => AcceptError::OutOfMemory,
                    _ => AcceptError::TooManyConnections,
                });
            }
        }
        self.end_time_wait(&id.tuple);
        self.held_syns.answered(id);
        Ok(())
    }

    /// Refuses a SYN. One that has been accepted, and whose handshake is not complete, is reset,
    /// however it is refused. Nothing happens if it is gone. O(1).
    pub fn refuse_syn(&mut self, now: Instant, id: SynId, how: Refusal) {
        self.now = self.now.max(now);
        self.unsettled = true;
        if let Some(place) = self.held_syns.place_of(&id) {
            self.observe.counters.held_syns_refused += 1;
            self.refuse_held_syn(now, place, how);
        } else if self.held_syns.is_answered(&id.tuple) == Some(id)
            && let Some(place) = self.syn_cache.look_up(&id.tuple)
        {
            self.held_syns.take_answered(&id.tuple);
            self.reset_half_open_at(now, place);
        }
    }

    /// Answers a SYN as a listener does that holds none, and lets it go: by an entry in the SYN
    /// cache, or a cookie that takes nothing. If the client completes the handshake, the connection
    /// waits in the listener's [backlog](crate::AcceptConfig::backlog) as any other. For an
    /// application that has more SYNs than it has answers for, and wants clients to prove their
    /// addresses first. What finds no room is dropped and counted; the client repeats it. No event
    /// follows. Nothing happens if the SYN is gone. O(1).
    pub fn release_syn(&mut self, now: Instant, id: SynId) {
        self.now = self.now.max(now);
        self.unsettled = true;
        let Some(place) = self.held_syns.place_of(&id) else { return };
        let Some(held) = self.held_syns.remove(place) else { return };
        self.count_held_syns();
        self.observe.counters.held_syns_released += 1;
        if self.lookup(&id.tuple).is_some() {
            return;
        }
        let (listener, half_open) = (held.listener, held.half_open(SeqNum(0)));
        let answered = self
            .may_answer(listener)
            .and_then(|config| self.answer_syn(now, listener, &id.tuple, config, half_open, held.iss_floor));
        if let Err(reason) = answered {
            self.drop_packet(reason);
            return;
        }
        if held.iss_floor.is_some() {
            self.end_time_wait(&id.tuple);
        }
    }

    /// A SYN that is answered reopens a connection in TIME-WAIT.
    fn end_time_wait(&mut self, tuple: &FourTuple) {
        if let Some(name) = self.time_wait.look_up(tuple) {
            self.time_wait.remove(name);
            self.observe.counters.tcp_tw_reopened += 1;
        }
    }

    /// The next thing that has happened to held SYNs. Drain it as [`poll_event`](Self::poll_event).
    pub fn poll_syn_event(&mut self) -> Option<SynEvent> {
        let event = self.held_syns.next_event();
        self.unsettled |= event.is_some();
        event
    }

    /// Number of held SYNs: at most [`max_held_syns`](crate::EndpointConfig::max_held_syns).
    #[must_use]
    pub fn held_syns(&self) -> usize {
        self.held_syns.len()
    }

    /// A SYN for a listener that holds them.
    pub(super) fn hold_syn(
        &mut self,
        now: Instant,
        number: NonZeroU32,
        tuple: &FourTuple,
        ip: &IpInfo,
        syn: &TcpSegment<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let Some(listener) = self.listeners.get(number) else { return Ingested::Handled };
        let (most, held) = (self.config.max_held_syns, self.held_syns.len());
        let has_share = self.held_syns.of_source(tuple) >= self.config.held_syns_per_source;
        if (has_share && self.limits.held_syns.is_half_used(held))
            || !self.limits.held_syns.has_room(held)
            || !self.held_syns.has_room_for(number, &listener.accept)
        {
            return self.drop_packet(DropReason::HeldSynsFull);
        }
        if !takes_held_syn(&mut self.observe.budget) {
            self.held_syns.settle(number);
            return self.drop_packet(DropReason::ConnectionMemory);
        }
        let timeout = self.config.held_syn_timeout;
        self.held_syns.hold(now, (number, tuple), (ip, syn), iss_floor, timeout, most);
        self.observe.counters.held_syns += 1;
        self.count_held_syns();
        Ingested::HeldSyn
    }

    /// A segment of a client whose SYN, at `place`, is held by the listener with this number.
    pub(super) fn give_to_held_syn(
        &mut self,
        now: Instant,
        (place, number): (u32, NonZeroU32),
        tuple: &FourTuple,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let flags = segment.flags;
        let Some(held) = self.held_syns.get_mut(place) else { return Ingested::Handled };
        if flags.contains(TcpFlags::RST) {
            if segment.seq != held.syns.irs + 1 {
                return self.drop_packet(DropReason::RstNotExpected);
            }
            self.cancel_held_syn(place);
            Ingested::Handled
        } else if flags.contains(TcpFlags::ACK) {
            self.refuse_segment(now, *tuple, segment)
        } else if !flags.contains(TcpFlags::SYN) {
            self.ignore_segment()
        } else if segment.seq == held.syns.irs {
            held.hear_again(segment);
            self.observe.counters.held_syn_repeats += 1;
            Ingested::Handled
        } else {
            self.cancel_held_syn(place);
            self.on_syn(now, number, tuple, ip, segment, iss_floor)
        }
    }

    /// The client has ended the SYN at `place`.
    fn cancel_held_syn(&mut self, place: u32) {
        self.observe.counters.held_syns_cancelled += 1;
        self.end_held_syn(place, ConnError::Reset);
    }

    /// Forgets the SYN at `place`, and tells the application if it has it.
    pub(super) fn end_held_syn(&mut self, place: u32, error: ConnError) {
        if let Some(held) = self.held_syns.remove(place)
            && held.taken
        {
            self.held_syns.tell(SynEvent::Ended { syn: held.id(), error });
        }
        self.count_held_syns();
    }

    /// The half-open connection of `tuple` has ended. If the application has accepted its SYN, it
    /// is told.
    pub(super) fn end_answered_syn(&mut self, tuple: &FourTuple, error: ConnError) {
        if let Some(syn) = self.held_syns.take_answered(tuple) {
            self.held_syns.tell(SynEvent::Ended { syn, error });
        }
    }

    /// Tells the client that the SYN at `place` is refused, and forgets it.
    fn refuse_held_syn(&mut self, now: Instant, place: u32, how: Refusal) {
        let Some(held) = self.held_syns.remove(place) else { return };
        self.count_held_syns();
        let tuple = held.tuple;
        match how {
            Refusal::Drop => {}
            Refusal::Rst => {
                // RFC 9293, section 3.10.7.1.
                let rst = RstSpec { seq: SeqNum(0), ack: Some(held.syns.irs + 1) };
                self.send_reset(now, tuple, rst);
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
                    let error = self.unreachable(syn.local.ip());
                    let (src, dst) = (syn.local.ip(), syn.remote.ip());
                    self.send_icmp_error(now, src, dst, error, quote.as_slice().into());
                }
            }
        }
    }

    /// The error for a SYN to `local`: see [`Refusal::Unreachable`].
    fn unreachable(&self, local: IpAddr) -> IcmpErrorKind {
        let version = if local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        if self.config.addresses.contains(&local) {
            return datagrams::port_unreachable(version);
        }
        let code = match version {
            IpVersion::V4 => 13,
            IpVersion::V6 => 1,
        };
        IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Prohibited, code }
    }

    /// Refuses the SYNs that have been held for too long.
    pub(super) fn expire_held_syns(&mut self, now: Instant) {
        while let Some(place) = self.held_syns.overdue(now) {
            self.unsettled = true;
            self.observe.counters.held_syns_expired += 1;
            self.reset_held_syn(now, place, ConnError::TimedOut);
        }
    }

    /// The listener is gone: its held SYNs are refused.
    pub(super) fn reset_held_syns(&mut self, now: Instant, listener: NonZeroU32) {
        for tuple in self.held_syns.tuples_of(listener) {
            if let Some(place) = self.held_syns.look_up(&tuple) {
                self.reset_held_syn(now, place, ConnError::Aborted);
            }
        }
        self.held_syns.forget_listener(listener);
    }

    /// Refuses the SYN at `place` in place of the application, and tells it.
    fn reset_held_syn(&mut self, now: Instant, place: u32, error: ConnError) {
        if let Some(held) = self.held_syns.get_mut(place)
            && held.taken
        {
            let syn = held.id();
            self.held_syns.tell(SynEvent::Ended { syn, error });
        }
        self.refuse_held_syn(now, place, Refusal::Rst);
    }

    fn count_held_syns(&mut self) {
        self.observe.counters.curr_held_syns = self.held_syns.len() as u64;
    }
}
