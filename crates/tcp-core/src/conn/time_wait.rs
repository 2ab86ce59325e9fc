//! TIME-WAIT: RSTs do not end it (RFC 1337), a newer SYN reuses it (RFC 6191), and the peer's FIN restarts it.

use super::Connection;
use super::arrival::Disposition;
use super::challenge::AckTrigger;
use crate::ctx::Ctx;
use crate::drop_reason::DropReason;
use crate::wire::{TcpFlags, TcpSegment};

impl Connection {
    /// Handling of TIME-WAIT before the checks. `None`: continue with them.
    pub(super) fn in_time_wait(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) -> Option<Disposition> {
        let flags = seg.flags;
        if flags.contains(TcpFlags::RST) {
            // RFC 1337, fix F1: an RST must not end TIME-WAIT early.
            ctx.dropped(DropReason::RstInTimeWait);
            return Some(Disposition::Handled);
        }
        if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK) && self.is_newer(ctx, seg) {
            ctx.counters.tcp_tw_recycled += 1;
            let iss_floor = self.snd.snd_nxt();
            self.die(ctx, None);
            return Some(Disposition::NewSyn { iss_floor });
        }
        None
    }

    /// An acceptable segment in TIME-WAIT. The peer has nothing to send after its FIN, so anything but the
    /// ACK of our FIN shows that the two sides disagree, and is answered. That ACK is not: a peer in
    /// TIME-WAIT would answer it in turn.
    pub(super) fn take_in_time_wait(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) {
        if seg.seg_len() > 0 || seg.seq != self.rcv.rcv_nxt() {
            self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
        } else {
            self.take_timestamp(ctx, seg);
        }
    }

    /// Section 3.10.7.4, eighth: the peer's repeated FIN, which is answered like every old segment, restarts
    /// the 2 MSL timer.
    pub(super) fn restart_time_wait(&mut self, ctx: &Ctx<'_>, seg: &TcpSegment<'_>) {
        let fin_again = seg.flags.contains(TcpFlags::FIN) && seg.seq + seg.seg_len() == self.rcv.rcv_nxt();
        if fin_again && seg.flags.contains(TcpFlags::ACK) && self.snd.accepts(seg.ack) {
            self.wait_until = ctx.now + self.config.time_wait;
        }
    }

    /// RFC 6191, section 2: true if the SYN is provably newer than everything this connection received.
    fn is_newer(&self, ctx: &Ctx<'_>, syn: &TcpSegment<'_>) -> bool {
        let beyond = syn.seq.gt(self.rcv.rcv_nxt());
        match syn.options.timestamps {
            Some(ts) if self.ts.enabled() => {
                let later = !self.ts.rejects(ctx.now, ts.val) && ts.val != self.ts.recent();
                later || (ts.val == self.ts.recent() && beyond)
            }
            _ => beyond,
        }
    }
}
