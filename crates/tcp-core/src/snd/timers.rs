//! Every deadline of the sender: retransmission, tail loss probe, reordering, persist and SWS override, the pacer, the congestion control's
//! own timer, and giving memory back.

use super::Sender;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::WakeReason;
use crate::policy::cc::Clock;
use crate::time::{Duration, Instant};

/// How long a small usable window (RFC 9293, section 3.8.6.2.1: 0.1 to 1 s) or a cork holds data back before the
/// override.
const SWS_OVERRIDE: Duration = Duration::from_millis(200);
/// An empty sender keeps its memory for so long.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// The least time for which a SACKed head is given the benefit of the doubt.
const MIN_RENEGING_DELAY: Duration = Duration::from_millis(10);

/// How long a head may be SACKed before the peer counts as reneging (RFC 2018, section 8): half a round trip, at least
/// 10 ms, as Linux has it. An ACK that covers the head may be on its way; and as the tags are given up by a timer,
/// a peer that lies about them cannot make each of its ACKs cost a walk over all that is outstanding.
pub(super) fn reneging_delay(srtt: Option<Duration>) -> Duration {
    srtt.map_or(MIN_RENEGING_DELAY, |srtt| Duration::from_nanos(srtt.as_nanos() / 2).max(MIN_RENEGING_DELAY))
}

/// What the peer's window or the cork makes an otherwise idle sender wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing.
    Nothing,
    /// The next probe of a closed window.
    Persist,
    /// The probe is due.
    Probe,
    /// The override of SWS avoidance, or of the cork.
    Override,
    /// The override is due.
    Overridden,
}

impl Sender {
    /// Starts the retransmission timer anew, or stops it where nothing is outstanding (RFC 6298, 5.2, 5.3).
    pub(crate) fn restart_rto(&mut self, now: Instant, config: &ConnConfig) {
        let outstanding = self.flight.as_deref().is_some_and(|flight| !flight.board.is_empty());
        self.rto_at = if outstanding {
            now + self.rtt.backed_off_rto(config).saturating_add(self.clock_wait(now))
        } else {
            Instant::FAR_FUTURE
        };
    }

    /// The wait that a departure clock itself imposes: an ACK cannot come for what it has not let go.
    fn clock_wait(&self, now: Instant) -> Duration {
        let (Some(cc), Some(flight)) = (self.cc.as_deref(), self.flight.as_deref()) else {
            return Duration::ZERO;
        };
        let decision = cc.decision();
        match decision.clock {
            Clock::Ack => Duration::ZERO,
            Clock::Departure { .. } => flight.pacer.earliest(&decision, self.rtt.srtt_pace()).since(now),
        }
    }

    /// The peer's window, or the cork, keeps the sender from sending although nothing is outstanding: arms the timer
    /// that ends this.
    pub(super) fn wait_for_window(&mut self, now: Instant, config: &ConnConfig) {
        let closed = self.window.wnd() == 0;
        let probes = matches!(self.waiting, Waiting::Persist | Waiting::Probe);
        // A window may close while the override waits, or after it was due.
        if self.waiting != Waiting::Nothing && (probes || !closed) {
            return;
        }
        if closed {
            // RFC 9293, section 3.8.6.1: the first probe after one RTO, then with exponential back-off.
            self.waiting = Waiting::Persist;
            let backed_off = self.rtt.rto().saturating_mul(1 << self.probes.min(32));
            self.wait_at = now + backed_off.min(config.max_rto);
            if self.probes == 0 {
                self.progress_at = now;
            }
        } else {
            self.waiting = Waiting::Override;
            self.wait_at = now + SWS_OVERRIDE;
        }
    }

    /// The window opened, or there is nothing to wait for any more.
    pub(super) fn stop_waiting(&mut self) {
        self.waiting = Waiting::Nothing;
        self.wait_at = Instant::FAR_FUTURE;
        self.probes = 0;
    }

    /// The sender's earliest deadline.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, WakeReason)> {
        let waiting =
            if self.waiting == Waiting::Persist { WakeReason::Persist } else { WakeReason::SwsOverride };
        let probe_at = self.flight.as_deref().map_or(Instant::FAR_FUTURE, |flight| flight.recovery.tlp.at);
        let mut first = (probe_at, WakeReason::Tlp);
        let mut consider = |at: Instant, reason| {
            if at < first.0 {
                first = (at, reason);
            }
        };
        consider(self.rto_at, WakeReason::Rto);
        consider(self.wait_at, waiting);
        if let Some(flight) = self.flight.as_deref() {
            consider(flight.pace_at, WakeReason::Pace);
            consider(flight.recovery.rack.reorder_at, WakeReason::Reorder);
            consider(flight.reneging_at, WakeReason::Rto);
        }
        consider(self.claim_at(), WakeReason::PathMtu);
        consider(self.trim_at(), WakeReason::Trim);
        if let Some(at) = self.cc_timer() {
            consider(at, WakeReason::Policy);
        }
        (first.0 != Instant::FAR_FUTURE).then_some(first)
    }

    /// The pacer holds data back.
    pub(crate) fn is_paced_now(&self) -> bool {
        self.flight.as_deref().is_some_and(|flight| flight.pace_at != Instant::FAR_FUTURE)
    }

    /// When congestion control wants to be called. An instant that stays due however often it is served would
    /// keep the driver busy for ever.
    fn cc_timer(&self) -> Option<Instant> {
        self.cc.as_deref().filter(|_| !self.cc_timer_stuck)?.next_timeout()
    }

    /// When an empty sender gives its memory back.
    fn trim_at(&self) -> Instant {
        let idle = match self.flight.as_deref() {
            Some(flight) => flight.board.is_empty() && flight.reserved.is_empty(),
            None => self.buffer.has_memory(),
        };
        if idle && self.is_empty() {
            self.last_sent.max(self.progress_at) + TRIM_AFTER
        } else {
            Instant::FAR_FUTURE
        }
    }

    /// Serves every deadline of the sender up to `ctx.now`.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let now = ctx.now;
        let due = |at: Instant| at <= now;
        if self.flight.as_deref().is_some_and(|flight| due(flight.recovery.rack.reorder_at)) {
            self.on_reorder_timeout(ctx, config);
        }
        // Before the retransmission timer, which may be due at the same instant and then starts anew.
        if self.flight.as_deref().is_some_and(|flight| due(flight.recovery.tlp.at)) {
            self.on_probe_timeout(ctx, config);
        }
        let reneging = self.flight.as_deref().is_some_and(|flight| due(flight.reneging_at));
        if due(self.claim_at()) {
            self.on_claim_timeout(ctx, config);
        }
        if reneging || due(self.rto_at) {
            self.judge_path_by_timeout(ctx, config);
            self.on_rto_expiry(ctx, config);
        }
        if self.wait_at <= ctx.now {
            self.wait_at = Instant::FAR_FUTURE;
            self.waiting = match self.waiting {
                Waiting::Persist | Waiting::Probe => Waiting::Probe,
                Waiting::Override | Waiting::Overridden => Waiting::Overridden,
                Waiting::Nothing => Waiting::Nothing,
            };
        }
        if let Some(flight) = self.flight.as_deref_mut()
            && flight.pace_at <= ctx.now
        {
            flight.pace_at = Instant::FAR_FUTURE;
        }
        if self.trim_at() <= ctx.now {
            self.trim();
        }
        if self.cc_timer().is_some_and(|at| at <= ctx.now) {
            let view = self.flow_view(ctx.now);
            if let Some(cc) = self.cc.as_deref_mut() {
                cc.on_timeout(&view);
            }
            self.cc_timer_stuck = self.cc_timer().is_some_and(|at| at <= ctx.now);
        }
    }

    /// The retransmission timer or the wait between two window probes has backed off.
    pub(crate) fn waits_for_a_backed_off_timer(&self) -> bool {
        (self.rto_at != Instant::FAR_FUTURE && self.rtt.backoff() > 0)
            || (self.waiting == Waiting::Persist && self.probes > 0)
    }

    /// Makes these timers due.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        if self.rto_at != Instant::FAR_FUTURE && self.rtt.backoff() > 0 {
            self.rto_at = now;
        }
        if self.waiting == Waiting::Persist && self.probes > 0 {
            self.wait_at = now;
        }
    }

    /// Since when unacknowledged data has made no progress, or a zero window has blocked.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        let outstanding = self.flight.as_deref().is_some_and(|flight| !flight.board.is_empty());
        (outstanding || self.probes > 0).then_some(self.progress_at)
    }
}
