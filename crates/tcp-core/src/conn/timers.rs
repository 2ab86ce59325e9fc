//! Every deadline of a connection.

use super::{Connection, transition::Input};
use crate::State;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::WakeReason;
use crate::time::{Duration, Instant};

/// Time without arrivals after which buffers that are nearly empty give back memory. Long compared
/// with a round trip, so that an active connection does not allocate and free memory for each
/// burst.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// Time after which they do so despite arrivals: a peer that sends a byte now and then pins
/// nothing.
const TRIM_AGAIN_AFTER: Duration = Duration::from_secs(10);

impl Connection {
    /// The earliest deadline, and its purpose.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, WakeReason)> {
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                let deadline = self.handshake.as_ref()?.deadline;
                let resend = (deadline != Instant::FAR_FUTURE).then_some((deadline, WakeReason::Rto));
                let more = self.early_departure().map(|at| (at, WakeReason::Pace));
                return resend.into_iter().chain(more).min_by_key(|(at, _)| *at);
            }
            State::TimeWait => return Some((self.wait_until, WakeReason::TimeWait)),
            _ => {}
        }
        let mut first = self.snd.next_timeout();
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && first.is_none_or(|(best, _)| at < best)
            {
                first = Some((at, reason));
            }
        };
        consider(self.rcv.next_timeout(&self.config), WakeReason::DelayedAck);
        if self.wait_until != Instant::FAR_FUTURE {
            consider(Some(self.wait_until), WakeReason::FinWait2);
        }
        consider(self.trim_at(), WakeReason::Trim);
        if self.config.keep_alive.is_some() {
            consider(self.keep_alive_at(), WakeReason::KeepAlive);
        }
        if self.config.user_timeout.is_some() {
            consider(self.user_timeout_at(), WakeReason::UserTimeout);
        }
        first
    }

    /// Serves every deadline up to `ctx.now`.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now;
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        match self.state {
            State::Closed | State::Listen => return,
            State::SynSent | State::SynReceived => {
                if due(self.handshake.as_ref().map(|handshake| handshake.deadline)) {
                    self.on_handshake_timeout(ctx);
                }
                if due(self.early_departure()) {
                    self.snd.on_timeout(ctx, &self.config);
                }
                return;
            }
            State::TimeWait => {
                if due(Some(self.wait_until)) {
                    self.change_state(ctx, Input::TimeWaitOver);
                    self.wait_until = Instant::FAR_FUTURE;
                }
                return;
            }
            _ => {}
        }
        if due(self.user_timeout_at()) {
            self.time_out(ctx);
            return;
        }
        if due(Some(self.wait_until)) {
            // What the peer may still send will not be read: the orphan is forgotten.
            self.die(ctx, None);
            return;
        }
        if due(self.keep_alive_at()) && self.on_keep_alive(ctx) {
            return;
        }
        if due(self.trim_at()) {
            self.rcv.trim();
            self.snd.shrink();
            // Whoever is busy takes others.
            ctx.observe.budget.spare.clear();
            self.trimmed_at = now;
        }
        if due(self.rcv.next_timeout(&self.config)) {
            self.rcv.on_timeout(ctx, &self.config);
        }
        if due(self.snd.next_timeout().map(|(at, _)| at)) {
            self.snd.on_timeout(ctx, &self.config);
        }
    }

    /// True if a SYN, data or a window probe waits to be repeated by a timer that has backed off.
    pub(crate) fn waits_for_a_backed_off_timer(&self) -> bool {
        match self.handshake.as_deref() {
            Some(handshake) => handshake.syns.expiries > 0 && handshake.deadline != Instant::FAR_FUTURE,
            None => self.snd.waits_for_a_backed_off_timer(),
        }
    }

    /// Makes that timer due. Its next timeout is as long as it would have been.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        match self.handshake.as_deref_mut() {
            Some(handshake) => handshake.deadline = now,
            None => self.snd.end_back_off(now),
        }
    }

    /// The peer no longer answers.
    pub(crate) fn time_out(&mut self, ctx: &mut Ctx<'_>) {
        ctx.observe.counters.tcp_abort_on_timeout += 1;
        let error = self.soft_error.unwrap_or(ConnError::TimedOut);
        // RFC 5482 and RFC 9293, section 3.8.3: the connection is aborted, which notifies the peer
        // if it is alive.
        self.abort(ctx, error);
    }

    /// RFC 9293, section 3.8.3: the limit R2 on time without progress.
    fn user_timeout_at(&self) -> Option<Instant> {
        Some(self.snd.stalled_since()? + self.config.user_timeout?)
    }

    /// When to give back what nearly empty buffers do not need.
    fn trim_at(&self) -> Option<Instant> {
        let spare = self.rcv.has_spare_memory() || self.snd.has_spare_memory();
        spare.then(|| (self.last_arrival + TRIM_AFTER).min(self.trimmed_at + TRIM_AGAIN_AFTER))
    }

    /// When the next keep-alive probe is due, or the connection is given up for lack of an answer.
    fn keep_alive_at(&self) -> Option<Instant> {
        let keep_alive = self.config.keep_alive.as_ref()?;
        // Section 3.8.4: only if no data is outstanding; otherwise the retransmission timer is
        // enough.
        if !self.snd.is_empty() || self.probe_due {
            return None;
        }
        let probes = self.keep_alive_probes;
        if keep_alive.count == 0 && probes == u8::MAX {
            return None;
        }
        let intervals = keep_alive.interval.saturating_mul(u64::from(probes));
        Some(self.last_arrival + keep_alive.idle + intervals + part_of(keep_alive.spread, probes))
    }

    /// A keep-alive probe is due, or the last one was not answered. True if the connection is over.
    fn on_keep_alive(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let Some(keep_alive) = self.config.keep_alive.as_ref() else { return false };
        if keep_alive.count > 0 && self.keep_alive_probes >= keep_alive.count {
            self.time_out(ctx);
            return true;
        }
        self.probe_due = true;
        false
    }
}

/// The part of `spread` by which probe `number` is late: multiples of the golden ratio, modulo 1,
/// are spread evenly however many there are (Knuth, The Art of Computer Programming, section 6.4,
/// theorem S).
fn part_of(spread: Duration, number: u8) -> Duration {
    const GOLDEN: u16 = 0x9e37;
    let part = u64::from(u16::from(number).wrapping_mul(GOLDEN));
    Duration::from_nanos((spread.as_nanos() >> 16).saturating_mul(part))
}
