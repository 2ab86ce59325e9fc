//! Passive opens, from the SYN to the ACK of the SYN-ACK: which SYNs get a place in the SYN cache, what segments for an
//! entry call for, and when it becomes a connection.
//!
//! An entry is in SYN-RECEIVED. What a segment calls for is decided by the function that also serves connections in that
//! state (simultaneous opens): `Syns::in_syn_received`.

use super::stray::Stray;
use super::{Endpoint, Ingested};
use crate::State;
use crate::conn::{AckTrigger, Connection, HalfOpen, Opening, RstSpec, Syns, count_skipped_ack};
use crate::drop_reason::DropReason;
use crate::four_tuple::FourTuple;
use crate::packet::SendReason;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{HeaderBuf, IpInfo, TcpSegment, emit_tcp};
use alloc::boxed::Box;
use core::num::NonZeroU32;

impl Endpoint {
    /// A SYN for a listener. `iss_floor`: it follows a connection in TIME-WAIT.
    pub(super) fn on_syn(
        &mut self,
        now: Instant,
        number: NonZeroU32,
        tuple: &FourTuple,
        syn: &TcpSegment<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let Some(listener) = self.listeners.get(number) else { return Ingested::Handled };
        let config = listener.accept.conn.clone();
        // RFC 9293, section 3.10.7.2, does not cover these cases; the client repeats an unanswered SYN.
        if !listener.has_room() {
            return self.drop_packet(DropReason::BacklogFull);
        }
        if self.slots.len() >= self.config.max_connections as usize {
            return self.drop_packet(DropReason::EndpointFull);
        }
        if !self.egress.strays.has_room_for_syn_ack() || !self.make_room(tuple, iss_floor.is_some()) {
            return self.drop_packet(DropReason::HalfOpenFull);
        }
        let iss = match iss_floor {
            Some(floor) => self.isn.isn_above(now, tuple, floor),
            None => self.isn.isn(now, tuple),
        };
        let segs_in = syn.wire_segments.min(255) as u8;
        let half_open = HalfOpen { syns: Syns::passive(iss, syn), first_sent: None, segs_in };
        let place = self.syn_cache.insert(now, tuple, number, config, half_open, self.config.max_half_open);
        self.send_syn_ack(now, place);
        Ingested::HalfOpen
    }

    /// True if the SYN cache has room for another entry. If it is full, the oldest one makes room, unless the source has
    /// its share already: one source cannot push out what others have begun. `reopens`: the SYN has shown that it knows
    /// a connection in TIME-WAIT, which not many can.
    fn make_room(&mut self, tuple: &FourTuple, reopens: bool) -> bool {
        if self.syn_cache.len() < self.config.max_half_open as usize {
            return true;
        }
        if !reopens && self.syn_cache.share_of(tuple) >= self.config.half_open_per_source {
            return false;
        }
        let Some(oldest) = self.syn_cache.oldest() else { return false };
        self.syn_cache.remove(oldest);
        self.observe.counters.half_open_evicted += 1;
        true
    }

    /// A segment for the half-open connection at `place`.
    pub(super) fn give_to_half_open(
        &mut self,
        now: Instant,
        place: u32,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
    ) -> Ingested {
        let Some(entry) = self.syn_cache.get_mut(place) else { return Ingested::Handled };
        let opening = entry.syns.in_syn_received(&entry.config, segment);
        if let Opening::SynAck | Opening::Complete = opening {
            return self.complete(now, place, ip, segment);
        }
        entry.heard();
        match opening {
            Opening::SynAgain => {
                entry.syns.hear_again(segment.flags);
                self.send_syn_ack(now, place);
                Ingested::Handled
            }
            Opening::Refuse(rst) => {
                let tuple = entry.tuple;
                self.send_reset(now, tuple, rst)
            }
            Opening::Challenge(reason) => {
                self.challenge_half_open(now, place);
                self.drop_packet(reason)
            }
            Opening::Drop(reason) => self.drop_packet(reason),
            // The passive open returns to LISTEN.
            Opening::Reset | Opening::NewSyn | Opening::SynAck | Opening::Complete => {
                self.syn_cache.remove(place);
                self.observe.counters.embryonic_rsts += 1;
                self.observe.counters.tcp_attempt_fails += 1;
                Ingested::Handled
            }
        }
    }

    /// The peer has acknowledged the SYN-ACK: the entry becomes a connection, which takes the segment. Without room for
    /// it the ACK is dropped, and the entry stays: the peer answers the next SYN-ACK (as in Linux).
    fn complete(&mut self, now: Instant, place: u32, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        let listener = self.syn_cache.get(place).and_then(|entry| self.listeners.get(entry.listener));
        if listener.is_none_or(|listener| !listener.has_room()) {
            return self.drop_packet(DropReason::BacklogFull);
        }
        if self.slots.len() >= self.config.max_connections as usize {
            return self.drop_packet(DropReason::EndpointFull);
        }
        let Some(entry) = self.syn_cache.remove(place) else { return Ingested::Handled };
        let (tuple, half_open) = (entry.tuple, entry.half_open());
        let ts_offset = self.isn.timestamp_offset(&tuple);
        let (host, observe) = (&self.config, &mut self.observe);
        let id = self.slots.insert(|id| {
            let mut ctx = observe.ctx(now, id, host);
            Box::new(Connection::accept(&mut ctx, tuple, entry.config, ts_offset, half_open))
        });
        if let Some(slot) = self.slots.get_mut(id) {
            slot.set_listener(entry.listener);
        }
        self.expect_known_path(now, id);
        self.listeners.enter(entry.listener);
        self.name(&tuple, id);
        self.latest = id.index;
        self.give_to_conn(now, id.index, ip, segment);
        Ingested::Accepted(id)
    }

    /// Queues the SYN-ACK of the entry at `place`, unless it waits already. If too many wait, the timer tries again.
    fn send_syn_ack(&mut self, now: Instant, place: u32) {
        if !self.egress.strays.has_room_for_syn_ack() {
            return;
        }
        if let Some(entry) = self.syn_cache.get_mut(place)
            && entry.queue()
        {
            let tuple = entry.tuple;
            self.push_stray(now, Stray::SynAck { tuple });
        }
    }

    /// Queues a challenge ACK (RFC 5961), within the limits of the entry and of the endpoint.
    fn challenge_half_open(&mut self, now: Instant, place: u32) {
        let Some(entry) = self.syn_cache.get_mut(place) else { return };
        let counters = &mut self.observe.counters;
        let has_room = self.egress.strays.has_room_for_answer();
        if !has_room || !entry.may_challenge() || !self.challenges.allow(now) {
            count_skipped_ack(counters, State::SynReceived, AckTrigger::Challenge);
            return;
        }
        let header = entry.challenge_ack(&self.config);
        let mut built = HeaderBuf::new();
        let Ok(emitted) = emit_tcp(&header, [&[], &[]], self.config.tx_checksum, &mut built) else {
            return;
        };
        counters.tcp_out_segs += 1;
        counters.tcp_challenge_ack += 1;
        let reason = SendReason::ChallengeAck;
        self.push_stray(now, Stray::Ack { conn: None, header: built, checksum: emitted.checksum, reason });
    }

    /// Serves the timers of half-open connections up to `now`.
    pub(super) fn expire_half_open(&mut self, now: Instant) {
        while let Some(place) = self.syn_cache.overdue(now) {
            self.on_half_open_timeout(now, place);
        }
    }

    /// The timer of the entry at `place` expires.
    fn on_half_open_timeout(&mut self, now: Instant, place: u32) {
        let Some(entry) = self.syn_cache.get(place) else { return };
        self.observe.counters.tcp_timeouts += u64::from(!entry.is_due());
        if entry.is_given_up() {
            self.observe.counters.tcp_attempt_fails += 1;
            self.syn_cache.remove(place);
            return;
        }
        self.syn_cache.back_off(place, now);
        self.send_syn_ack(now, place);
    }

    /// Whatever waits for a timer that has backed off becomes due now.
    pub(super) fn end_back_off_of_half_open(&mut self, now: Instant) {
        for tuple in self.syn_cache.tuples_where(|entry| entry.is_backed_off() && !entry.is_due()) {
            if let Some(place) = self.syn_cache.look_up(&tuple) {
                self.on_half_open_timeout(now, place);
            }
        }
    }

    /// The listener is gone: its half-open connections are reset. A peer whose RST finds no room learns it from the RST
    /// that answers its ACK.
    pub(super) fn reset_half_open(&mut self, now: Instant, listener: NonZeroU32) {
        for tuple in self.syn_cache.tuples_where(|entry| entry.listener == listener) {
            let Some(entry) = self.syn_cache.look_up(&tuple).and_then(|place| self.syn_cache.remove(place))
            else {
                continue;
            };
            self.observe.counters.tcp_attempt_fails += 1;
            if self.egress.strays.has_room_for_reset() {
                let rst = RstSpec { seq: entry.syns.iss + 1, ack: Some(entry.syns.irs + 1) };
                self.push_stray(now, Stray::Reset { tuple, rst });
            }
        }
    }
}
