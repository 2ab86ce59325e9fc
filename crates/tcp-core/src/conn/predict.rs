//! Header prediction (RFC 1323, appendix; Van Jacobson): the segment that a bulk receiver expects next.
//!
//! Nearly every segment of a bulk transfer brings the next data in order and nothing new for the sender. Each
//! of the [checks](super::checks) would accept such a segment; here they are combined into one test, followed
//! by what [`arrival`](super::arrival) would have done.

use super::{Connection, Notices};
use crate::State;
use crate::ctx::Ctx;
use crate::wire::{IpInfo, TcpFlags, TcpSegment};

impl Connection {
    /// Processes a segment if it is the predicted one. Returns false, with nothing done, if it needs full
    /// processing.
    #[inline]
    pub(super) fn take_predicted(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>) -> bool {
        let window = u32::from(seg.window) << self.snd_wscale;
        let predicted = self.state == State::Established
            && seg.flags.difference(TcpFlags::PSH) == TcpFlags::ACK
            && self.rcv.expects(seg.seq, seg.payload.len() as u32)
            && seg.options.sack.is_empty()
            && self.snd.knows(seg.ack, window)
            && !self.released;
        if !predicted {
            return false;
        }
        if self.ts.enabled() {
            match seg.options.timestamps {
                Some(ts) if !self.ts.rejects(ctx.now, ts.val) => {
                    self.ts.update(ctx.now, ts.val, seg.seq, self.rcv.highest_ack());
                }
                _ => return false,
            }
        }
        self.snd.on_known_ack(seg.seq, seg.ack, window);
        self.heard(ctx);
        let incoming = self.incoming(ctx.now, ip, seg, seg.seq);
        if self.rcv.on_expected(ctx, &self.config, &incoming).readable {
            self.notices.add(Notices::READABLE);
        }
        true
    }
}
