//! Passive opens, from the SYN to the ACK of the SYN-ACK: which SYNs get a place in the SYN cache,
//! what segments for an entry call for, and when it becomes a connection.
//!
//! An entry is in SYN-RECEIVED. What a segment calls for is decided by the function that also
//! serves connections in that state (simultaneous opens): `Syns::in_syn_received`.
//!
//! An entry of 96 bytes has what the SYN-ACK and a later connection need to know of the SYN. The
//! ACK of the SYN-ACK makes the connection, which then takes that segment like any other. SYN-ACKs
//! wait in the scheduler as packets without a connection, and are built when they leave. If the
//! cache is full, a SYN gets a [cookie](super::syn_cookies), whose ACK brings along what an entry
//! would have kept. Without cookies the oldest entry makes room, which is O(1): entries with the
//! same number of timeouts stand in a queue in the order of their deadlines.

use super::fast_open::FastOpenSyn;
use super::held_syns::SynEvent;
use super::segments::{Inbound, Opened};
use super::syn_cache::Entry;
use super::{Below, HALF_OPEN, Opens, syn_cookies};
use crate::config::{ConnConfig, Ecn, SynCookies};
use crate::conn::{
    AckTrigger, Connection, HalfOpen, IcmpError, Offer, Opening, OwnSyn, RstSpec, Syns, TimestampClock,
    blank_header, count_skipped_ack, default_mss,
};
use crate::egress::{Egress, Stray};
use crate::error::ConnError;
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::packet::SendReason;
use crate::seq::SeqNum;
use crate::share::{Cx, Ingested};
use crate::state::State;
use crate::table::{Table, takes_connection};
use crate::wire::{HeaderBuf, TcpFlags, emit_tcp};
use alloc::sync::Arc;
use core::num::NonZeroU32;

impl Opens {
    /// A SYN for a listener. `iss_floor`: it follows a connection in TIME-WAIT.
    pub(crate) fn on_syn(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        inbound: &Inbound<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Ingested {
        let Inbound { ref tuple, segment: syn, .. } = *inbound;
        let Some(listener) = self.listeners.get_mut(number) else { return Ingested::Handled };
        if listener.accept.hold_syns {
            return self.hold_syn(cx, number, inbound, iss_floor);
        }
        let config = match self.may_answer(below, cx, number) {
            Ok(config) => config,
            Err(reason) => return cx.drop_packet(reason),
        };
        let fast_open = self.fast_open_syn(cx, &config, inbound);
        if let FastOpenSyn::Valid(cookie) = fast_open {
            if let Err(reason) = self.take_place(below.table, cx, number, false) {
                return cx.drop_packet(reason);
            }
            let iss = below.table.iss(cx.now, tuple, iss_floor);
            return self.accept_early(below, cx, number, inbound, iss, cookie);
        }
        let mut offer = Offer::of(syn, inbound.ip.ecn);
        if let FastOpenSyn::WithoutCookie { experimental } = fast_open {
            offer = offer.with_cookie(experimental);
        }
        let half_open = HalfOpen::begun_by(syn, SeqNum(0), offer);
        match self.answer_syn(below, cx, (number, tuple), config, half_open, iss_floor) {
            Ok(()) => Ingested::HalfOpen,
            Err(reason) => cx.drop_packet(reason),
        }
    }

    /// The settings of connections of a listener, if a SYN for it may be answered. RFC 9293,
    /// section 3.10.7.2, does not cover what forbids that; the client repeats an unanswered SYN.
    pub(crate) fn may_answer(
        &mut self,
        below: &Below<'_>,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
    ) -> Result<Arc<ConnConfig>, DropReason> {
        let listener = self.listeners.get_mut(number).ok_or(DropReason::NoConnection)?;
        if !listener.may_have_room() {
            return Err(DropReason::BacklogFull);
        }
        if !cx.limits.connections.may_have_room(below.table.slots.len()) {
            return Err(DropReason::EndpointFull);
        }
        if !below.egress.strays.has_room_for_syn_ack() {
            return Err(DropReason::HalfOpenFull);
        }
        Ok(listener.accept.conn.clone())
    }

    /// Answers a SYN by a cookie, or by an entry in the SYN cache. `half_open` has no sequence
    /// number of ours yet. `iss_floor`: it follows a connection in TIME-WAIT.
    pub(crate) fn answer_syn(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        (number, tuple): (NonZeroU32, &FourTuple),
        config: Arc<ConnConfig>,
        mut half_open: HalfOpen,
        iss_floor: Option<SeqNum>,
    ) -> Result<(), DropReason> {
        if iss_floor.is_none() && self.wants_cookie(cx) {
            self.send_cookie(below, cx, &config, tuple, &half_open.syns);
            return Ok(());
        }
        half_open.syns.iss = below.table.iss(cx.now, tuple, iss_floor);
        self.begin_half_open(below, cx, (number, tuple), config, half_open, iss_floor.is_some())
    }

    /// Adds an entry to the SYN cache, and queues its SYN-ACK. `reopens`: it follows a connection
    /// in TIME-WAIT.
    pub(crate) fn begin_half_open(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        (number, tuple): (NonZeroU32, &FourTuple),
        config: Arc<ConnConfig>,
        half_open: HalfOpen,
        reopens: bool,
    ) -> Result<(), DropReason> {
        if !self.make_room(cx, tuple, reopens) {
            return Err(DropReason::HalfOpenFull);
        }
        // Somebody makes room, as for a connection: of these there are `max_half_open` at most.
        if !cx.observe.budget.admit(HALF_OPEN) {
            return Err(DropReason::ConnectionMemory);
        }
        let place = self.syn_cache.insert(cx.now, tuple, number, config, half_open, cx.config.max_half_open);
        self.send_syn_ack(below.egress, cx, place);
        Ok(())
    }

    /// True if a SYN is to be answered with a cookie.
    fn wants_cookie(&self, cx: &mut Cx<'_>) -> bool {
        match cx.config.syn_cookies {
            SynCookies::Off => false,
            SynCookies::WhenFull => {
                let full = self.is_cache_full(cx);
                cx.observe.counters.tcp_req_q_full_do_cookies += u64::from(full);
                full
            }
            SynCookies::Always => true,
        }
    }

    fn is_cache_full(&self, cx: &mut Cx<'_>) -> bool {
        !cx.limits.half_open.has_room(self.syn_cache.len())
    }

    /// Queues a SYN-ACK with a cookie, for the client's part of `asked`.
    fn send_cookie(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        config: &ConnConfig,
        tuple: &FourTuple,
        asked: &Syns,
    ) {
        let mut peer = asked.peer;
        if !config.timestamps || peer.timestamp().is_none() {
            peer = peer.mss_only();
        }
        let remote = tuple.remote_ip();
        let mss = peer.mss().unwrap_or(default_mss(&remote));
        let syns = Syns::passive(self.cookies.make(cx.now, tuple, asked.irs, mss), asked.irs, peer);
        let ts_offset = below.table.isn.timestamp_offset(tuple);
        let mut header = blank_header(config, cx.config, tuple);
        header.seq = syns.iss;
        let own = OwnSyn::new(config, cx.config, remote);
        own.write(cx.now, SendReason::SynAck, &syns, &TimestampClock::new(ts_offset), &mut header);
        if let Some(timestamps) = &mut header.options.timestamps {
            let clock = timestamps.val.wrapping_sub(ts_offset);
            // The ACK of a peer with accurate ECN says so itself (RFC 9768, section 5.1).
            let accurate = peer.ecn_mode(config.ecn) == Ecn::Accurate;
            let stamped = if accurate { peer.without_ecn() } else { peer };
            timestamps.val = syn_cookies::stamp(clock, stamped).wrapping_add(ts_offset);
        }
        let mut built = HeaderBuf::new();
        if let Ok(emitted) = emit_tcp(&header, [&[], &[]], cx.config.tx_checksum, &mut built) {
            cx.observe.counters.syncookies_sent += 1;
            below.egress.push_stray(cx, Stray::Cookie { header: built, checksum: emitted.checksum });
        }
    }

    /// The handshake that an ACK for a listener completes because it acknowledges a cookie.
    pub(crate) fn cookie_of(
        &self,
        below: &Below<'_>,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        inbound: &Inbound<'_>,
    ) -> Option<HalfOpen> {
        let Inbound { ref tuple, segment, .. } = *inbound;
        if segment.flags.contains(TcpFlags::SYN) || !self.cookies.may_be_valid(cx.now) {
            return None;
        }
        let config = &self.listeners.get(number)?.accept.conn;
        let counters = &mut cx.observe.counters;
        let (iss, irs) = (segment.ack - 1, segment.seq - 1);
        let Some(mss) = self.cookies.check(cx.now, tuple, irs, iss) else {
            counters.syncookies_failed += 1;
            return None;
        };
        counters.syncookies_recv += 1;
        let ts_offset = below.table.isn.timestamp_offset(tuple);
        let mut peer = match segment.options.timestamps {
            Some(ts) if config.timestamps => syn_cookies::offer(mss, ts.ecr.wrapping_sub(ts_offset), ts.val),
            _ => Offer::new(Some(mss), None, false, None, false),
        };
        if config.ecn == Ecn::Accurate && (2..=7).contains(&segment.flags.ace()) {
            peer = peer.with_accurate_ecn();
        }
        let mut syns = Syns::passive(iss, irs, peer);
        // As the SYN-ACK was sent; with a cookie it is never ECN-capable.
        syns.sent(syns.ecn_setup(config.ecn, SendReason::SynAck) != TcpFlags::NONE, false);
        Some(HalfOpen { syns, first_sent: None, segs_in: 1 })
    }

    /// True if the SYN cache has room for another entry. If it is full, the oldest one makes room,
    /// unless the source has its share already: one source cannot push out what others have begun.
    /// `reopens`: the SYN has shown that it knows a connection in TIME-WAIT, which not many can.
    fn make_room(&mut self, cx: &mut Cx<'_>, tuple: &FourTuple, reopens: bool) -> bool {
        if !self.is_cache_full(cx) {
            return true;
        }
        if !reopens && self.syn_cache.share_of(tuple) >= cx.config.half_open_per_source {
            return false;
        }
        while self.is_cache_full(cx) {
            let Some(oldest) = self.syn_cache.oldest() else { return false };
            self.end_half_open(oldest, ConnError::TimedOut);
            cx.observe.counters.half_open_evicted += 1;
        }
        true
    }

    /// A segment for the half-open connection at `place`.
    pub(crate) fn on_half_open_segment(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        place: u32,
        inbound: &Inbound<'_>,
    ) -> Opened {
        let segment = inbound.segment;
        let Some(entry) = self.syn_cache.get_mut(place) else { return Opened::Done(Ingested::Handled) };
        let opening = entry.syns.in_syn_received(&entry.config, segment);
        if opening == Opening::Complete && segment.seg_len() == 0 && entry.defers() {
            entry.heard();
            return Opened::Done(cx.drop_packet(DropReason::AcceptDeferred));
        }
        if let Opening::SynAck | Opening::Complete = opening {
            let listener = entry.listener;
            let Some(half_open) = self.syn_cache.half_open(place) else {
                return Opened::Done(Ingested::Handled);
            };
            return self.complete(below, cx, listener, half_open, inbound);
        }
        entry.heard();
        Opened::Done(match opening {
            Opening::SynAgain => {
                entry.syns.hear_again(segment, inbound.ip.ecn);
                if entry.may_answer_again() {
                    self.send_syn_ack(below.egress, cx, place);
                } else {
                    cx.observe.counters.tcp_ack_skipped_syn_recv += 1;
                }
                Ingested::Handled
            }
            Opening::Refuse(rst) => {
                let tuple = entry.tuple;
                self.send_reset(below.egress, cx, tuple, rst)
            }
            Opening::Challenge(reason) => {
                self.challenge_half_open(below.egress, cx, place);
                cx.drop_packet(reason)
            }
            Opening::Drop(reason) => cx.drop_packet(reason),
            // The passive open returns to LISTEN.
            Opening::Reset | Opening::NewSyn | Opening::SynAck | Opening::Complete => {
                self.end_half_open(place, ConnError::Reset);
                cx.observe.counters.embryonic_rsts += 1;
                cx.observe.counters.tcp_attempt_fails += 1;
                Ingested::Handled
            }
        })
    }

    /// The peer has acknowledged the SYN-ACK: the handshake becomes a connection, which is to take
    /// the segment. Without room for it the ACK is dropped. An entry in the SYN cache stays, and
    /// the peer answers the next SYN-ACK (as in Linux).
    pub(crate) fn complete(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        half_open: HalfOpen,
        inbound: &Inbound<'_>,
    ) -> Opened {
        let tuple = &inbound.tuple;
        let syn = self.held_syns.is_answered(tuple);
        // One whose SYN the application has accepted does not wait for it.
        if let Err(reason) = self.take_place(below.table, cx, number, syn.is_some()) {
            return Opened::Done(cx.drop_packet(reason));
        }
        if !takes_connection(&mut cx.observe.budget) {
            self.listeners.settle(number);
            return Opened::Done(cx.drop_packet(DropReason::ConnectionMemory));
        }
        let Some(listener) = self.listeners.get(number) else { return Opened::Done(Ingested::Handled) };
        let entry = self.syn_cache.look_up(tuple).and_then(|place| self.syn_cache.remove(place));
        let config = entry.map_or_else(|| listener.accept.conn.clone(), |entry| entry.config);
        let id = self.add_accepted(below, cx, syn.is_none().then_some(number), tuple, config, half_open);
        if let Some(syn) = self.held_syns.take_answered(tuple) {
            self.held_syns.tell(SynEvent::Connected { syn, conn: id });
        }
        Opened::Complete(id)
    }

    /// Takes a place for a connection that waits for the application unless its SYN `is_answered`
    /// already.
    fn take_place(
        &mut self,
        table: &Table,
        cx: &mut Cx<'_>,
        number: NonZeroU32,
        is_answered: bool,
    ) -> Result<(), DropReason> {
        let Some(listener) = self.listeners.get_mut(number) else { return Ok(()) };
        if !is_answered && !listener.has_room() {
            return Err(DropReason::BacklogFull);
        }
        if !cx.limits.connections.has_room(table.slots.len()) {
            self.listeners.settle(number);
            return Err(DropReason::EndpointFull);
        }
        Ok(())
    }

    /// Adds a connection in SYN-RECEIVED, which waits in the backlog of the listener with this
    /// number, if any.
    pub(crate) fn add_accepted(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        number: Option<NonZeroU32>,
        tuple: &FourTuple,
        config: Arc<ConnConfig>,
        half_open: HalfOpen,
    ) -> ConnId {
        let table = &mut *below.table;
        let ts_offset = table.isn.timestamp_offset(tuple);
        let id = table.insert(cx, tuple, |ctx| Connection::accept(ctx, *tuple, config, ts_offset, half_open));
        if let (Some(number), Some(slot)) = (number, table.slots.get_mut(id)) {
            slot.set_listener(number);
            self.listeners.enter(number);
        }
        table.latest = id.index;
        below.expect_known_path(cx, id);
        id
    }

    /// Queues the SYN-ACK of the entry at `place`, unless it waits already. If too many wait, the
    /// timer tries again.
    fn send_syn_ack(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, place: u32) {
        if !egress.strays.has_room_for_syn_ack() {
            return;
        }
        if let Some(entry) = self.syn_cache.get_mut(place)
            && entry.queue()
        {
            let tuple = entry.tuple;
            egress.push_stray(cx, Stray::SynAck { tuple });
        }
    }

    /// Queues a challenge ACK (RFC 5961), within the limits of the entry and of the endpoint.
    fn challenge_half_open(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, place: u32) {
        let Some(entry) = self.syn_cache.get_mut(place) else { return };
        let counters = &mut cx.observe.counters;
        let has_room = egress.strays.has_room_for_answer();
        if !has_room || !entry.may_challenge() || !self.challenges.allow(cx.now) {
            count_skipped_ack(counters, State::SynReceived, true, AckTrigger::Challenge);
            return;
        }
        let header = entry.challenge_ack(cx.config);
        let mut built = HeaderBuf::new();
        let Ok(emitted) = emit_tcp(&header, [&[], &[]], cx.config.tx_checksum, &mut built) else {
            return;
        };
        counters.tcp_out_segs += 1;
        counters.tcp_challenge_ack += 1;
        let reason = SendReason::ChallengeAck;
        egress.push_stray(cx, Stray::Ack { conn: None, header: built, checksum: emitted.checksum, reason });
    }

    /// Serves the timers of half-open connections up to `now`.
    pub(crate) fn expire_half_open(&mut self, egress: &mut Egress, cx: &mut Cx<'_>) {
        while let Some(place) = self.syn_cache.overdue(cx.now) {
            self.on_half_open_timeout(egress, cx, place);
        }
    }

    /// The timer of the entry at `place` expires.
    fn on_half_open_timeout(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, place: u32) {
        let Some(entry) = self.syn_cache.get(place) else { return };
        cx.observe.counters.tcp_timeouts += u64::from(!entry.is_due());
        if entry.is_given_up() {
            cx.observe.counters.tcp_attempt_fails += 1;
            self.end_half_open(place, ConnError::TimedOut);
            return;
        }
        let repeats = entry.repeats();
        self.syn_cache.back_off(place, cx.now);
        if repeats {
            self.send_syn_ack(egress, cx, place);
        }
    }

    /// Whatever waits for a timer that has backed off becomes due now.
    pub(crate) fn end_back_off(&mut self, egress: &mut Egress, cx: &mut Cx<'_>) {
        for tuple in self.syn_cache.tuples_where(|entry| entry.is_backed_off() && !entry.is_due()) {
            if let Some(place) = self.syn_cache.look_up(&tuple) {
                self.on_half_open_timeout(egress, cx, place);
            }
        }
    }

    /// The listener is gone: its half-open connections are reset. A peer whose RST finds no room
    /// learns it from the RST that answers its ACK.
    pub(crate) fn reset_half_open(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, listener: NonZeroU32) {
        for tuple in self.syn_cache.tuples_where(|entry| entry.listener == listener) {
            if let Some(place) = self.syn_cache.look_up(&tuple) {
                self.reset_half_open_at(egress, cx, place);
            }
        }
    }

    /// Resets the half-open connection at `place`.
    pub(crate) fn reset_half_open_at(&mut self, egress: &mut Egress, cx: &mut Cx<'_>, place: u32) {
        let Some(entry) = self.end_half_open(place, ConnError::Aborted) else { return };
        cx.observe.counters.tcp_attempt_fails += 1;
        if egress.strays.has_room_for_reset() {
            let rst = RstSpec { seq: entry.syns.iss + 1, ack: Some(entry.syns.irs + 1) };
            egress.push_stray(cx, Stray::Reset { tuple: entry.tuple, rst });
        }
    }

    /// An ICMP error about a half-open connection changes nothing: the peer may answer all the
    /// same, and if it does not, the entry ends by itself.
    pub(crate) fn on_icmp(&self, cx: &mut Cx<'_>, place: u32, error: IcmpError, quoted: SeqNum) {
        let outstanding = self.syn_cache.get(place).is_some_and(|entry| entry.syns.is_outstanding(quoted));
        let counters = &mut cx.observe.counters;
        match error {
            _ if !outstanding => counters.out_of_window_icmps += 1,
            // A SYN-ACK fits every link.
            IcmpError::TooBig(_) => counters.tcp_mtu_refused += 1,
            IcmpError::Unreachable | IcmpError::Refused => {}
        }
    }

    /// Removes the half-open connection at `place`, which will not become a connection because of
    /// `error`.
    pub(crate) fn end_half_open(&mut self, place: u32, error: ConnError) -> Option<Entry> {
        let entry = self.syn_cache.remove(place)?;
        self.end_answered_syn(&entry.tuple, error);
        Some(entry)
    }
}
