//! Header prediction (RFC 1323, appendix; Van Jacobson): the segment that a bulk receiver expects
//! next.
//!
//! Nearly every segment of a bulk transfer brings the next data in order and nothing new for the
//! sender. Each of the [checks](super::checks) would accept such a segment; here they are combined
//! into one test, followed by what [`arrival`](super::arrival) would have done.

use super::{Connection, Notices};
use crate::State;
use crate::ctx::Ctx;
use crate::time::Instant;
use crate::wire::{IpInfo, Run, TcpFlags, TcpSegment};

impl Connection {
    /// True if the segment is the predicted one.
    #[inline(always)]
    fn predicts(&self, now: Instant, seg: &TcpSegment<'_>) -> bool {
        let window = u32::from(seg.window) << self.snd_wscale;
        self.state == State::Established
            && seg.flags.difference(TcpFlags::PSH | TcpFlags::ACE) == TcpFlags::ACK
            && self.snd.expects_ecn(seg.flags)
            && self.rcv.expects(seg.seq, seg.payload.len() as u32)
            && seg.options.sack.is_empty()
            && seg.options.accecn.is_none()
            && self.snd.knows(seg.ack, window)
            && !self.released
            && (!self.ts.enabled() || seg.options.timestamps.is_some_and(|ts| !self.ts.rejects(now, ts.val)))
    }

    /// How many bytes a [run](Run) may have that begins with `seg`, if `seg` is predicted.
    #[inline]
    pub(crate) fn predicts_run(&self, now: Instant, seg: &TcpSegment<'_>) -> Option<u32> {
        self.predicts(now, seg).then(|| self.rcv.window())
    }

    /// Free memory for the data of such a run.
    #[inline]
    pub(crate) fn room_for_run(&mut self, seg: &TcpSegment<'_>) -> [&mut [u8]; 2] {
        self.rcv.room_for_run(seg.payload.len())
    }

    /// True if there is memory for a run of so many bytes.
    pub(crate) fn has_memory(&self, ctx: &Ctx<'_>, bytes: u32) -> bool {
        self.rcv.has_memory(ctx, bytes)
    }

    /// Processes a run whose first segment, `seg`, is [predicted](Self::predicts_run). It fits the
    /// window, there is [memory](Self::has_memory) for it, and nobody traces. The result is that of
    /// each segment alone: all tell the same but for their data, and no ACK is sent in between.
    pub(crate) fn take_run(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>, run: &Run<'_>) {
        debug_assert!(ctx.observe.tracer.is_none(), "a tracer sees each segment");
        self.segs_in += u64::from(run.segments());
        let last = seg.seq + run.last_offset();
        self.count(ctx, ip, seg, run.bytes(), run.segments());
        self.take_predicted_header(ctx, seg);
        self.snd.on_known_ack(last, seg.ack, u32::from(seg.window) << self.snd_wscale);
        let incoming = self.incoming(ctx.now, ip, seg, seg.seq);
        if self.rcv.on_run(ctx, &self.config, &incoming, run).readable {
            self.notices.add(Notices::READABLE);
        }
    }

    /// Processes a segment if it is the predicted one. Returns false, with nothing done, if it
    /// needs full processing.
    #[inline]
    pub(super) fn take_predicted(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>) -> bool {
        if !self.predicts(ctx.now, seg) {
            return false;
        }
        self.count(ctx, ip, seg, seg.payload.len() as u32, seg.wire_segments);
        self.take_predicted_header(ctx, seg);
        let incoming = self.incoming(ctx.now, ip, seg, seg.seq);
        if self.rcv.on_expected(ctx, &self.config, &incoming).readable {
            self.notices.add(Notices::READABLE);
        }
        true
    }

    /// What the header of a predicted segment tells.
    #[inline]
    fn take_predicted_header(&mut self, ctx: &Ctx<'_>, seg: &TcpSegment<'_>) {
        if let Some(ts) = seg.options.timestamps
            && self.ts.enabled()
        {
            // The ACK is SND.UNA.
            self.ts.update(ctx.now, ts.val, seg.seq, self.rcv.highest_ack(), false);
        }
        self.snd.on_known_ack(seg.seq, seg.ack, u32::from(seg.window) << self.snd_wscale);
        self.heard(ctx);
    }
}
