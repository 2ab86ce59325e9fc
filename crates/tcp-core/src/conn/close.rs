//! The end of a connection: FIN, RST, abort, TIME-WAIT, and release.

use super::{Connection, Notices, transition::Input};
use crate::State;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::TraceEvent;
use crate::time::{Duration, Instant};

/// A TIME-WAIT of at most this is counted apart (Linux, `inet_twsk_schedule`).
const SHORT_TIME_WAIT: Duration = Duration::from_secs(4);

impl Connection {
    /// Ends the connection. Received data stays readable; everything else is freed.
    pub(super) fn die(&mut self, ctx: &mut Ctx<'_>, error: Option<ConnError>) {
        if self.state == State::Closed {
            return;
        }
        // The application was told when TIME-WAIT began.
        let is_news = self.state != State::TimeWait;
        self.change_state(ctx, Input::Abort);
        self.error = self.error.or(error);
        if is_news {
            self.tell_closed(ctx);
        }
        // An RST that has yet to be sent needs the options of the SYNs.
        if !self.rst_due {
            self.handshake = None;
        }
        self.challenge_due = false;
        self.probe_due = false;
        self.wait_until = Instant::FAR_FUTURE;
        self.snd.discard(ctx.now);
    }

    /// Both sides have closed, and this side must wait for old duplicates to expire (RFC 9293,
    /// section 3.6).
    pub(super) fn enter_time_wait(&mut self, ctx: &mut Ctx<'_>) {
        if self.config.time_wait > SHORT_TIME_WAIT {
            ctx.observe.counters.tcp_tw += 1;
        } else {
            ctx.observe.counters.tcp_tw_killed += 1;
        }
        self.wait_until = ctx.now + self.config.time_wait;
        self.snd.trim(ctx.now);
        self.rcv.trim();
        self.tell_closed(ctx);
    }

    /// The application and the tracer are told of the end.
    fn tell_closed(&mut self, ctx: &mut Ctx<'_>) {
        self.notices.add(Notices::CLOSED);
        ctx.trace(|| TraceEvent::Closed { error: self.error });
    }

    /// An orphan in FIN-WAIT-2 is not kept forever.
    pub(super) fn arm_fin_wait_2(&mut self, now: Instant) {
        if self.released && self.state == State::FinWait2 {
            self.wait_until = now + self.config.fin_wait_2;
        }
    }

    /// The application closes its sending side.
    pub(crate) fn shutdown(&mut self, ctx: &mut Ctx<'_>) {
        if self.shut {
            return;
        }
        self.shut = true;
        match self.state {
            // Section 3.10.4: before the handshake a CLOSE deletes the connection. Data already
            // written must still be sent, so if there is some the FIN waits for the handshake.
            State::SynSent if self.snd.is_empty() => self.die(ctx, None),
            // The state follows when the handshake is complete.
            State::SynReceived if self.is_early() => self.snd.queue_fin(),
            State::Established | State::CloseWait => {
                self.snd.queue_fin();
                self.change_state(ctx, Input::Close);
            }
            _ => {}
        }
    }

    /// The application aborts the connection: RST, and waiting data is discarded.
    pub(crate) fn abort(&mut self, ctx: &mut Ctx<'_>, error: ConnError) {
        match self.state {
            State::Closed | State::Listen => {}
            // Section 3.10.5: nothing is sent from these.
            State::SynSent => self.die(ctx, Some(error)),
            // Nothing is lost: both sides have closed.
            State::TimeWait => self.die(ctx, None),
            // The section sends nothing from CLOSING and LAST-ACK either, as if all data had been
            // sent before them. But these states begin when the application closes, with whatever
            // is unsent: without an RST a peer that waits for the rest, or for the FIN, would wait
            // forever (Linux also resets if data is unsent).
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                self.rst_due = true;
                self.die(ctx, Some(error));
            }
        }
    }

    /// The endpoint needs the connection's memory: RST, and whatever is not sent or not read is
    /// lost.
    pub(crate) fn evict(&mut self, ctx: &mut Ctx<'_>) {
        ctx.observe.counters.tcp_abort_on_memory += 1;
        ctx.observe.counters.tcp_memory_evictions += 1;
        self.abort(ctx, ConnError::OutOfMemory);
        self.rcv.forfeit();
    }

    /// The application releases the connection: from now on it closes by itself.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_>) {
        if self.released {
            return;
        }
        self.released = true;
        let unread = self.rcv.readable() > 0;
        self.rcv.discard();
        // RFC 9293, section 3.6.1: unread data is lost, and the peer SHOULD be notified by an RST.
        if unread && self.state != State::TimeWait && self.state != State::Closed {
            ctx.observe.counters.tcp_abort_on_close += 1;
            self.abort(ctx, ConnError::Aborted);
            return;
        }
        self.shutdown(ctx);
        self.snd.shrink();
        self.arm_fin_wait_2(ctx.now);
    }
}
