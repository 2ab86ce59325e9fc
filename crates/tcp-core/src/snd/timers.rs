//! Every deadline of the sender: retransmission, tail loss probe, reordering, persist and SWS
//! override, the pacer, the congestion control's own timer, and giving memory back.

use super::Sender;
use super::flight::Flight;
use super::pacer::Gap;
use super::stream::Stream;
use super::window::wait::WaitCause;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::WakeReason;
use crate::policy::cc::Clock;
use crate::time::{Duration, Instant};

/// An empty sender keeps its memory for so long.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// A peer's delayed-ACK timer, as most set it (Linux, `TCP_DELACK_MIN`).
const ACK_TIMER: Duration = Duration::from_millis(40);

/// The least time for which a SACKed head is given the benefit of the doubt.
const MIN_RENEGING_DELAY: Duration = Duration::from_millis(10);

/// How long a head may be SACKed before the peer counts as reneging (RFC 2018, section 8): half a
/// round trip, at least 10 ms, as Linux has it. An ACK that covers the head may be on its way; and
/// as the tags are given up by a timer, a peer that lies about them cannot make each of its ACKs
/// cost a walk over all that is outstanding.
pub(super) fn reneging_delay(srtt: Option<Duration>) -> Duration {
    srtt.map_or(MIN_RENEGING_DELAY, |srtt| Duration::from_nanos(srtt.as_nanos() / 2).max(MIN_RENEGING_DELAY))
}

impl Sender {
    /// The sender's earliest deadline.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, WakeReason)> {
        let snd = &self.stream;
        let flight = self.flight.as_deref();
        let mut first = (Instant::FAR_FUTURE, WakeReason::Tlp);
        let mut consider = |at: Instant, reason| {
            if at < first.0 {
                first = (at, reason);
            }
        };
        if let Some(flight) = flight {
            consider(flight.recovery.tlp.at, WakeReason::Tlp);
            consider(flight.rto_at, WakeReason::Rto);
            let persists = flight.wait.cause == WaitCause::Persist;
            consider(flight.wait.at, if persists { WakeReason::Persist } else { WakeReason::SwsOverride });
            consider(flight.pace_at, WakeReason::Pace);
            consider(flight.recovery.rack.reorder_at, WakeReason::Reorder);
            consider(flight.reneging_at, WakeReason::Rto);
            consider(snd.claim_at(), WakeReason::PathMtu);
        }
        consider(self.trim_at(), WakeReason::Trim);
        if let Some(at) = snd.cc_timer() {
            consider(at, WakeReason::Policy);
        }
        (first.0 != Instant::FAR_FUTURE).then_some(first)
    }

    /// When the pacer lets the next data go.
    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.flight.as_deref().map(|flight| flight.pace_at).filter(|at| *at != Instant::FAR_FUTURE)
    }

    /// Serves every deadline of the sender up to `ctx.now`.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        if let Some((snd, flight)) = self.in_flight() {
            flight.on_timeout(snd, ctx, config);
        }
        if self.trim_at() <= ctx.now {
            self.trim(ctx.now);
        }
        if self.stream.cc_timer().is_some_and(|at| at <= ctx.now) {
            self.on_cc_timeout(ctx.now);
        }
    }

    /// Congestion control's own timer fired.
    fn on_cc_timeout(&mut self, now: Instant) {
        let view = self.flow_view(now);
        match self.in_flight() {
            Some((snd, flight)) => flight.tell(snd, |cc| cc.on_timeout(&view)),
            None => self.stream.cc.on_timeout(&view),
        }
        self.stream.cc_timer_stuck = self.stream.cc_timer().is_some_and(|at| at <= now);
    }

    /// When an empty sender gives its memory back.
    fn trim_at(&self) -> Instant {
        let last_sent = self.stream.last_sent;
        let (idle, since) = match self.flight.as_deref() {
            Some(flight) => (flight.is_idle(), last_sent.max(flight.progress_at)),
            None => (self.stream.buffer.has_memory(), last_sent),
        };
        if idle && self.is_empty() { since + TRIM_AFTER } else { Instant::FAR_FUTURE }
    }

    /// The retransmission timer or the wait between two window probes has backed off.
    pub(crate) fn waits_for_a_backed_off_timer(&self) -> bool {
        let flight = self.flight.as_deref();
        flight.is_some_and(|flight| flight.wait.has_backed_off() || flight.has_backed_off(&self.stream))
    }

    /// Makes these timers due.
    pub(crate) fn end_back_off(&mut self, now: Instant) {
        let Some(flight) = self.flight.as_deref_mut() else { return };
        if flight.has_backed_off(&self.stream) {
            flight.rto_at = now;
        }
        if flight.wait.has_backed_off() {
            flight.wait.at = now;
        }
    }

    /// Since when unacknowledged data has made no progress, or a zero window has blocked.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        let flight = self.flight.as_deref()?;
        let stalled = !flight.board.is_empty() || flight.wait.probes > 0;
        stalled.then_some(flight.progress_at)
    }
}

impl Stream {
    /// When congestion control wants to be called. An instant that stays due however often it is
    /// served would keep the driver busy for ever.
    fn cc_timer(&self) -> Option<Instant> {
        if self.cc_timer_stuck { None } else { self.cc.next_timeout() }
    }
}

impl Flight {
    /// The retransmission timer runs, and has backed off.
    fn has_backed_off(&self, snd: &Stream) -> bool {
        self.rto_at != Instant::FAR_FUTURE && snd.rtt.backoff() > 0
    }

    /// Starts the retransmission timer anew, or stops it if nothing is outstanding (RFC 6298, 5.2,
    /// 5.3).
    pub(super) fn restart_rto(&mut self, snd: &Stream, now: Instant, config: &ConnConfig) {
        self.rto_at = if self.board.is_empty() {
            Instant::FAR_FUTURE
        } else {
            let rto = snd.rtt.backed_off_rto(config);
            match self.decision.clock {
                Clock::Ack => now + rto,
                Clock::Departure { max_outstanding } => (now + rto.saturating_add(self.clock_wait(snd, now)))
                    .max(now + self.clocked_rto(snd, max_outstanding.max(1)).min(config.max_rto)),
            }
        };
    }

    /// The wait that a departure clock itself imposes: an ACK cannot come for what it has not let
    /// go.
    fn clock_wait(&self, snd: &Stream, now: Instant) -> Duration {
        self.pacer.earliest(&self.decision, snd.rtt.srtt_pace()).since(now)
    }

    /// The least timeout under a departure clock that keeps `delta` segments in flight: the last of
    /// them leaves `delta` - 1 gaps after the first, a round trip before the peer's ACK. SRTT and
    /// the wait in it lag behind a gap that a decrease has just doubled, so that a small minimum of
    /// the timeout would let it end before. A peer that waits for `delta` segments acknowledges
    /// fewer when its timer ends.
    fn clocked_rto(&self, snd: &Stream, delta: u16) -> Duration {
        let (Some(pace), Some(rttvar)) = (snd.rtt.srtt_pace(), snd.rtt.rttvar()) else {
            return Duration::ZERO;
        };
        let gap =
            Gap::of(&self.decision, Some(pace)).map_or(Duration::ZERO, |gap| gap.of_segment(snd.smss()));
        let out = self.board.segments_out(u32::from(delta));
        let timer = if out < u32::from(delta) { ACK_TIMER } else { Duration::ZERO };
        pace.saturating_add(gap.saturating_mul(u64::from(delta - 1)))
            .saturating_add(rttvar.saturating_mul(4))
            .saturating_add(timer)
    }

    /// Serves the deadlines that exist while data is outstanding.
    fn on_timeout(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let now = ctx.now;
        if self.recovery.rack.reorder_at <= now {
            self.on_reorder_timeout(snd, ctx, config);
        }
        // Before the retransmission timer, which may be due at the same instant and then starts
        // anew.
        if self.recovery.tlp.at <= now {
            self.on_probe_timeout(snd, ctx, config);
        }
        let reneging = self.reneging_at <= now;
        if snd.claim_at() <= now {
            self.on_claim_timeout(snd, ctx, config);
        }
        if reneging || self.rto_at <= now {
            self.judge_path_by_timeout(snd, ctx, config);
            self.on_rto_expiry(snd, ctx, config);
        }
        if self.wait.at <= now {
            self.wait.on_timeout();
        }
        if self.pace_at <= now {
            self.pace_at = Instant::FAR_FUTURE;
        }
    }
}
