//! ACKs that anybody can provoke who knows a connection's addresses and ports, and the limits on them (RFC 5961, section 7).

use super::Connection;
use crate::State;
use crate::ctx::Ctx;
use crate::rate_limit::RateLimit;
use crate::wire::TcpSegment;

/// What calls for an ACK that the limits may hold back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTrigger {
    /// A segment that gets a challenge ACK (RFC 5961).
    Challenge,
    /// A segment that PAWS dropped.
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
    ///
    /// Two hosts that each find the other's ACKs unacceptable would answer each other for ever, as fast as the
    /// path carries it. So segments that occupy no sequence space share the connection's limit of challenge ACKs.
    pub(super) fn answer_unacceptable(
        &mut self,
        ctx: &mut Ctx<'_>,
        seg: &TcpSegment<'_>,
        trigger: AckTrigger,
    ) {
        if seg.seg_len() == 0 && !self.challenges.allow(ctx.now) {
            self.count_skipped_ack(ctx, trigger);
            return;
        }
        self.rcv.on_unacceptable(ctx, &self.config, seg.seq, seg.payload.len() as u32);
    }

    /// The limits let an ACK not leave. Linux counts by state, and by cause elsewhere.
    fn count_skipped_ack(&self, ctx: &mut Ctx<'_>, trigger: AckTrigger) {
        let counters = &mut *ctx.counters;
        let counter = match (self.state, trigger) {
            (State::SynReceived, _) => &mut counters.tcp_ack_skipped_syn_recv,
            (_, AckTrigger::Challenge) => &mut counters.tcp_ack_skipped_challenge,
            (State::FinWait2, _) => &mut counters.tcp_ack_skipped_fin_wait2,
            (State::TimeWait, _) => &mut counters.tcp_ack_skipped_time_wait,
            (_, AckTrigger::OldTimestamp) => &mut counters.tcp_ack_skipped_paws,
            (_, AckTrigger::OutOfWindow) => &mut counters.tcp_ack_skipped_seq,
        };
        *counter += 1;
    }
}
