//! Connections in TIME-WAIT that nobody holds any more: when they become records, what segments for
//! them call for, and when their four-tuples may be used again.

use super::stray::Stray;
use super::time_wait_table::Name;
use super::{Endpoint, Ingested};
use crate::State;
use crate::conn::{AckTrigger, Reaction, count_skipped_ack, may_answer};
use crate::four_tuple::FourTuple;
use crate::packet::SendReason;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{HeaderBuf, IpInfo, TcpHeader, TcpSegment, emit_tcp};

impl Endpoint {
    /// Makes a record of the connection at `index` if it is in TIME-WAIT, nobody holds it, and
    /// nothing of it is left to send. True if the connection itself can be forgotten.
    pub(super) fn retire(&mut self, index: u32) -> bool {
        let id = self.slots.id(index);
        let Some(slot) = self.slots.slot(index) else { return false };
        if !slot.is_unheld() || slot.queued > 0 || self.egress.holds(id) {
            return false;
        }
        let Some(conn) = slot.conn.as_deref() else { return false };
        let Some(retired) = conn.retire() else { return false };
        let name = self.time_wait.name(conn.tuple());
        while !self.limits.time_wait.has_room(self.time_wait.len()) {
            self.observe.counters.tcp_time_wait_overflow += 1;
            if !self.time_wait.remove_first() {
                return true;
            }
        }
        self.time_wait.insert(name, &retired, self.config.default_ttl);
        true
    }

    /// A segment for a record.
    pub(super) fn give_to_time_wait(
        &mut self,
        now: Instant,
        name: Name,
        tuple: &FourTuple,
        ip: &IpInfo,
        segment: &TcpSegment<'_>,
    ) -> Ingested {
        let ts_offset = self.isn.timestamp_offset(tuple);
        let Some(record) = self.time_wait.find_mut(name) else { return Ingested::Handled };
        match record.numbers.expected(now, ts_offset).in_time_wait(now, segment) {
            Reaction::Drop(reason) => self.drop_packet(reason),
            Reaction::Take => {
                record.numbers.take(segment);
                Ingested::Handled
            }
            Reaction::Reopen { iss_floor } => {
                let ingested = self.give_to_listener(now, tuple, ip, segment, Some(iss_floor));
                if ingested == Ingested::HalfOpen {
                    self.time_wait.remove(name);
                    self.observe.counters.tcp_tw_reopened += 1;
                }
                ingested
            }
            Reaction::Answer { dropped, trigger, restarts } => {
                let allowed = may_answer(&mut record.answers, now, segment);
                if restarts {
                    self.time_wait.restart(name, now);
                }
                if let Some(reason) = dropped {
                    reason.count(&mut self.observe.counters);
                }
                let reason = SendReason::AckByObligation;
                self.answer_in_time_wait(now, name, tuple, segment, allowed.then_some(reason), trigger);
                dropped.map_or(Ingested::Handled, Ingested::Dropped)
            }
            Reaction::Challenge(dropped) => {
                let allowed = record.challenges.allow(now) && self.challenges.allow(now);
                dropped.count(&mut self.observe.counters);
                let (reason, trigger) = (SendReason::ChallengeAck, AckTrigger::Challenge);
                self.answer_in_time_wait(now, name, tuple, segment, allowed.then_some(reason), trigger);
                Ingested::Dropped(dropped)
            }
        }
    }

    /// Queues an ACK for a segment in TIME-WAIT; without a `reason` to send one, counts that it is
    /// not.
    fn answer_in_time_wait(
        &mut self,
        now: Instant,
        name: Name,
        tuple: &FourTuple,
        segment: &TcpSegment<'_>,
        reason: Option<SendReason>,
        trigger: AckTrigger,
    ) {
        let counters = &mut self.observe.counters;
        let reason = reason.filter(|_| self.egress.strays.has_room_for_answer());
        let (Some(reason), Some(record)) = (reason, self.time_wait.find(name)) else {
            count_skipped_ack(counters, State::TimeWait, true, trigger);
            return;
        };
        let mut header = TcpHeader::new(tuple.local(), tuple.remote());
        header.ttl = record.ttl;
        header.tos = record.tos;
        let ts_offset = self.isn.timestamp_offset(tuple);
        let is_challenge = reason == SendReason::ChallengeAck;
        record.numbers.answer(now, ts_offset, segment, !is_challenge, &mut header);
        let mut built = HeaderBuf::new();
        let Ok(emitted) = emit_tcp(&header, [&[], &[]], self.config.tx_checksum, &mut built) else {
            return;
        };
        counters.tcp_out_segs += 1;
        counters.tcp_challenge_ack += u64::from(is_challenge);
        counters.tcp_dsack_old_sent += u64::from(!header.options.sack.is_empty());
        let ack = Stray::Ack { conn: None, header: built, checksum: emitted.checksum, reason };
        self.push_stray(now, ack);
    }

    /// Ends the TIME-WAIT of `tuple` for a new connection of this side. Returns SND.NXT of the old
    /// one.
    pub(super) fn take_from_time_wait(&mut self, tuple: &FourTuple) -> Option<SeqNum> {
        let name = self.time_wait.look_up(tuple)?;
        let floor = self.time_wait.find(name)?.numbers.snd_nxt();
        self.time_wait.remove(name);
        self.observe.counters.tcp_tw_recycled += 1;
        Some(floor)
    }
}
