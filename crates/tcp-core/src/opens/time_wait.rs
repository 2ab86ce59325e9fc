//! Connections in TIME-WAIT that are only records: what segments for them call for.

use super::segments::{Inbound, Opened};
use super::{Below, Opens};
use crate::State;
use crate::conn::{AckTrigger, Reaction, count_skipped_ack, may_answer};
use crate::egress::Stray;
use crate::packet::SendReason;
use crate::share::{Cx, Ingested};
use crate::table::Name;
use crate::wire::{HeaderBuf, TcpHeader, emit_tcp};

impl Opens {
    /// A segment for a record.
    pub(crate) fn on_time_wait_segment(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        name: Name,
        inbound: &Inbound<'_>,
    ) -> Opened {
        let Inbound { tuple, segment, .. } = inbound;
        let ts_offset = below.table.isn.timestamp_offset(tuple);
        let Some(record) = below.table.time_wait.find_mut(name) else {
            return Opened::Done(Ingested::Handled);
        };
        Opened::Done(match record.numbers.expected(cx.now, ts_offset).in_time_wait(cx.now, segment) {
            Reaction::Drop(reason) => cx.drop_packet(reason),
            Reaction::Take => {
                record.numbers.take(segment);
                Ingested::Handled
            }
            Reaction::Reopen { iss_floor } => {
                let opened = self.on_new_segment(below, cx, inbound, Some(iss_floor));
                if opened == Opened::Done(Ingested::HalfOpen) {
                    below.table.time_wait.remove(name);
                    cx.observe.counters.tcp_tw_reopened += 1;
                }
                return opened;
            }
            Reaction::Answer { dropped, trigger, restarts } => {
                let allowed = may_answer(&mut record.answers, cx.now, segment);
                if restarts {
                    below.table.time_wait.restart(name, cx.now);
                }
                if let Some(reason) = dropped {
                    reason.count(&mut cx.observe.counters);
                }
                let reason = SendReason::AckByObligation;
                answer_in_time_wait(below, cx, name, inbound, allowed.then_some(reason), trigger);
                dropped.map_or(Ingested::Handled, Ingested::Dropped)
            }
            Reaction::Challenge(dropped) => {
                let allowed = record.challenges.allow(cx.now) && self.challenges.allow(cx.now);
                dropped.count(&mut cx.observe.counters);
                let (reason, trigger) = (SendReason::ChallengeAck, AckTrigger::Challenge);
                answer_in_time_wait(below, cx, name, inbound, allowed.then_some(reason), trigger);
                Ingested::Dropped(dropped)
            }
        })
    }
}

/// Queues an ACK for a segment in TIME-WAIT; without a `reason` to send one, counts that it is
/// not.
fn answer_in_time_wait(
    below: &mut Below<'_>,
    cx: &mut Cx<'_>,
    name: Name,
    inbound: &Inbound<'_>,
    reason: Option<SendReason>,
    trigger: AckTrigger,
) {
    let Inbound { tuple, segment, .. } = inbound;
    let counters = &mut cx.observe.counters;
    let reason = reason.filter(|_| below.egress.strays.has_room_for_answer());
    let (Some(reason), Some(record)) = (reason, below.table.time_wait.find(name)) else {
        count_skipped_ack(counters, State::TimeWait, true, trigger);
        return;
    };
    let mut header = TcpHeader::new(tuple.local(), tuple.remote());
    header.ttl = record.ttl;
    header.tos = record.tos;
    let ts_offset = below.table.isn.timestamp_offset(tuple);
    let is_challenge = reason == SendReason::ChallengeAck;
    record.numbers.answer(cx.now, ts_offset, segment, !is_challenge, &mut header);
    let mut built = HeaderBuf::new();
    let Ok(emitted) = emit_tcp(&header, [&[], &[]], cx.config.tx_checksum, &mut built) else {
        return;
    };
    counters.tcp_out_segs += 1;
    counters.tcp_challenge_ack += u64::from(is_challenge);
    counters.tcp_dsack_old_sent += u64::from(!header.options.sack.is_empty());
    let ack = Stray::Ack { conn: None, header: built, checksum: emitted.checksum, reason };
    below.egress.push_stray(cx, ack);
}
