//! ACKs that anyone who has a connection's addresses and ports can provoke, and their rate limits
//! (RFC 5961, section 7).
//!
//! Each kind has a limit of its own. Somebody who knows only addresses and ports can use up that of
//! challenge ACKs (with SYNs), and that of segments outside the window. The peer's keep-alive and
//! window probes must still be answered, or the connection would end: they are told apart by their
//! numbers, SEG.SEQ = RCV.NXT - 1 and an acceptable SEG.ACK.

use super::Connection;
use crate::State;
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::rate_limit::{ConnRateLimit, RateLimit};
use crate::time::Instant;
use crate::wire::TcpSegment;

/// The cause of a rate-limited ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckTrigger {
    /// A segment that gets a challenge ACK (RFC 5961).
    Challenge,
    /// A segment dropped by PAWS.
    OldTimestamp,
    /// A segment outside the window.
    OutOfWindow,
}

impl Connection {
    /// A challenge ACK (RFC 5961), within the limits of the connection and of the endpoint.
    pub(super) fn send_challenge(&mut self, ctx: &mut Ctx<'_>, global: &mut RateLimit) {
        if self.challenges.allow(ctx.now) && global.allow(ctx.now) {
            self.challenge_due = true;
        } else {
            self.count_skipped_ack(ctx, AckTrigger::Challenge);
        }
    }

    /// RFC 9293, section 3.10.7.4: a segment that is not acceptable is answered with an ACK.
    pub(super) fn answer_unacceptable(
        &mut self,
        ctx: &mut Ctx<'_>,
        seg: &TcpSegment<'_>,
        trigger: AckTrigger,
    ) {
        // TIME-WAIT ends anyway.
        let probe = self.state != State::TimeWait
            && trigger == AckTrigger::OutOfWindow
            && seg.seq + 1 == self.rcv.rcv_nxt()
            && self.expected().accepts_ack(seg.ack);
        let limit = if probe { &mut self.probe_answers } else { &mut self.stray_answers };
        if !may_answer(limit, ctx.now, seg) {
            self.count_skipped_ack(ctx, trigger);
            return;
        }
        self.rcv.on_unacceptable(ctx, &self.config, seg.seq, seg.payload.len() as u32);
    }

    /// Counts an ACK suppressed by the limits.
    fn count_skipped_ack(&self, ctx: &mut Ctx<'_>, trigger: AckTrigger) {
        count_skipped_ack(&mut ctx.observe.counters, self.state, self.released, trigger);
    }
}

/// True if a segment that is not acceptable may be answered at `now`.
///
/// Two hosts that consider each other's ACKs unacceptable would answer each other forever, as fast
/// as the path allows. So answers to segments that occupy no sequence space are limited.
pub(crate) fn may_answer(limit: &mut ConnRateLimit, now: Instant, seg: &TcpSegment<'_>) -> bool {
    seg.seg_len() > 0 || limit.allow(now)
}

/// Counts an ACK suppressed by the limits. Linux counts by state where it has no whole socket,
/// which is so of an `orphan` in FIN-WAIT-2 as well, and by cause elsewhere.
pub(crate) fn count_skipped_ack(counters: &mut Counters, state: State, orphan: bool, trigger: AckTrigger) {
    let counter = match (state, trigger) {
        (State::SynReceived, _) => &mut counters.tcp_ack_skipped_syn_recv,
        (State::FinWait2, _) if orphan => &mut counters.tcp_ack_skipped_fin_wait2,
        (State::TimeWait, _) => &mut counters.tcp_ack_skipped_time_wait,
        (_, AckTrigger::Challenge) => &mut counters.tcp_ack_skipped_challenge,
        (_, AckTrigger::OldTimestamp) => &mut counters.tcp_ack_skipped_paws,
        (_, AckTrigger::OutOfWindow) => &mut counters.tcp_ack_skipped_seq,
    };
    *counter += 1;
}
