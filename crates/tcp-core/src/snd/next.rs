//! What to send next.
//!
//! In this order: the segment of an expired timer; a window probe; a tail loss probe; lost data;
//! new data; and in recovery, if losses are detected by count, data that may be lost (RFC 6675,
//! NextSeg). Only probes and the first ignore the congestion window and the pacer.

use super::data::new_data::{Piece, SizeQuestion, nagle_permits};
use super::flight::Flight;
use super::gate::Gate;
use super::measure::chrono::Spending;
use super::stream::Stream;
use super::window::wait::WaitCause;
use super::{SendLimits, Sender};
use crate::config::{ConnConfig, Nagle};
use crate::info::Blocked;
use crate::packet::{ControlKind, SegmentClass, SendReason};
use crate::plan::Plan;
use crate::policy::cc::{Phase, Restart, RestartCause, Validation};
use crate::policy::rto::RtoSend;
use crate::time::Instant;
use alloc::boxed::Box;

impl Sender {
    /// What to send at `now`; `None`: nothing, and `Info::blocked` says why. Does not change
    /// sequence space.
    pub(crate) fn next(&mut self, now: Instant, config: &ConnConfig, limits: &SendLimits) -> Option<Plan> {
        if self.rests() {
            return None;
        }
        let choice = self.choose(now, config, limits);
        self.stream.blocked = choice.err().unwrap_or(Blocked::No);
        choice.ok()
    }

    /// True if there is no flight and no reason for one: [`next`](Self::next) returns nothing.
    #[inline]
    pub(crate) fn rests(&mut self) -> bool {
        let snd = &mut self.stream;
        if self.flight.is_some() || (snd.open && !snd.has_nothing_unsent()) {
            return false;
        }
        snd.blocked = if snd.open { Blocked::App } else { Blocked::State };
        true
    }

    fn choose(&mut self, now: Instant, config: &ConnConfig, limits: &SendLimits) -> Result<Plan, Blocked> {
        let snd = &mut self.stream;
        let flight = self.flight.get_or_insert_with(|| Box::new(Flight::new(snd, config)));
        flight.refresh_decision(snd);
        let choice = flight.choose(snd, now, config, limits);
        if let Err(blocked) = choice {
            let waits = blocked == Blocked::ReceiveWindow || (blocked == Blocked::Nagle && config.cork);
            if !waits && flight.wait.cause != WaitCause::Nothing {
                flight.wait.stop();
            }
            flight.chrono.turn(now, flight.spending(snd, config, blocked));
        }
        choice
    }
}

impl Flight {
    fn choose(
        &mut self,
        snd: &mut Stream,
        now: Instant,
        config: &ConnConfig,
        limits: &SendLimits,
    ) -> Result<Plan, Blocked> {
        self.pace_at = Instant::FAR_FUTURE;
        if let Some(send) = self.rto.send
            && let Some(out) = self.next_rto_segment(snd, send)
        {
            return Ok(out);
        }
        if self.wait.cause == WaitCause::Probe {
            return self.window_probe(snd).ok_or(Blocked::ReceiveWindow);
        }
        if let Some(out) = self.next_probe(snd) {
            return Ok(out);
        }
        self.restart_after_idle(snd, now, config);
        let gate = self.gate(snd, config, limits)?;
        if gate.retransmit
            && let Some(out) = self.next_lost(snd, now, &gate)?
        {
            return Ok(out);
        }
        match self.next_new(snd, now, config, &gate) {
            Err(blocked @ (Blocked::App | Blocked::ReceiveWindow)) if gate.retransmit && gate.speculate => {
                self.next_speculative(snd, now, &gate)?.ok_or(blocked)
            }
            new => new,
        }
    }

    /// What the time goes into from now on: nothing more can be sent, and `blocked` says why.
    pub(super) fn spending(&self, snd: &Stream, config: &ConnConfig, blocked: Blocked) -> Spending {
        match blocked {
            _ if self.reserved.holds_data() => Spending::Scheduler,
            Blocked::ReceiveWindow => Spending::ReceiveWindow,
            Blocked::App if snd.is_empty() && self.is_idle() => Spending::Idle,
            Blocked::App if snd.wanted.is_some() && !self.is_window_full(snd, config) => Spending::SendBuffer,
            _ => Spending::Busy,
        }
    }

    /// The segment of an expired timer, if it has not been sent yet.
    fn next_rto_segment(&mut self, snd: &Stream, send: RtoSend) -> Option<Plan> {
        let Some((start, end)) = self.rto_segment(snd, send) else {
            self.rto.send = None;
            return None;
        };
        let reason = match send {
            RtoSend::Nothing | RtoSend::Head => SendReason::RtoRetransmit,
            RtoSend::Again(_) | RtoSend::NewElseHighest => SendReason::RtoProbe,
        };
        let mut out = snd.retransmission(start, end, reason);
        if start == snd.nxt {
            out.class = SegmentClass::Data;
        }
        let queued = self.reserved.holds(SendReason::is_rto);
        (!queued).then_some(out)
    }

    /// A probe of the closed window: an octet already acknowledged, which the peer must answer with
    /// an ACK that shows its window (RFC 9293, section 3.10.7.4). Section 3.8.6.1 would send an
    /// octet of new data; it would be outside the window, and have to be sent again as long as the
    /// window stays closed.
    fn window_probe(&self, snd: &Stream) -> Option<Plan> {
        let queued = self.reserved.holds(|reason| reason == SendReason::WindowProbe);
        let class = SegmentClass::Control(ControlKind::Probe);
        (!queued).then_some(Plan::control(class, SendReason::WindowProbe, snd.una - 1))
    }

    /// RFC 5681, section 4.1: after an idle RTO the ACK clock is gone, and the window falls to the
    /// restart window.
    fn restart_after_idle(&mut self, snd: &mut Stream, now: Instant, config: &ConnConfig) {
        let idle = now.since(snd.last_sent);
        if snd.nxt != snd.una || idle <= snd.rtt.rto() || self.pipe() > 0 {
            return;
        }
        let restarts = match self.decision.validation {
            Validation::ByUse => config.restart_after_idle,
            Validation::ByPhase => true,
            Validation::ByPace => false,
        };
        if snd.has_nothing_unsent() || !restarts {
            return;
        }
        let restart = Restart::new(RestartCause::Idle, snd.initial_window(config), idle);
        let view = self.flow_view(snd, now);
        self.tell(snd, |cc| cc.on_restart(&view, &restart));
        snd.rtt.on_idle(idle);
        snd.last_sent = now;
    }

    /// Lost data, lowest first (RFC 6675, NextSeg, rule 1).
    fn next_lost(&mut self, snd: &Stream, now: Instant, gate: &Gate) -> Result<Option<Plan>, Blocked> {
        let pending = self.board.tally().pending;
        if pending == 0 {
            return Ok(None);
        }
        let smss = snd.repair_smss();
        let forced = self.recovery.forced;
        let most = if forced { smss } else { gate.max_payload.min(gate.room / smss * smss) };
        let Some((start, end)) = self.board.next_lost(most.max(smss)) else { return Ok(None) };
        if !forced && gate.room < end.distance_from(start).min(smss) {
            if !gate.capped {
                self.window_use.limit(snd.nxt);
            }
            return Err(Blocked::CongestionWindow);
        }
        // Even data that ignores the window belongs to the paced stream, and to the reduced one: at
        // the old pace it would find the queue full that has just dropped a packet. A departure
        // clock's gap is that of its window already.
        let mut gate = *gate;
        if forced
            && gate.paced
            && !gate.clocked
            && let Some(srtt) = snd.rtt.srtt_pace()
        {
            gate.earliest = gate.earliest.max(self.pacer.earliest_repair(self.decision.window, srtt));
        }
        self.hold_back(now, &gate, snd.nxt, pending)?;
        let end = snd.fit_window(start, end).ok_or(Blocked::ReceiveWindow)?;
        Ok(Some(snd.retransmission(start, end, SendReason::FastRetransmit)))
    }

    /// RFC 6675, NextSeg, rules 3 and 4.
    fn next_speculative(&mut self, snd: &Stream, now: Instant, gate: &Gate) -> Result<Option<Plan>, Blocked> {
        let Some(piece) = self.recovery.speculative(&self.board, snd.smss()) else { return Ok(None) };
        if gate.room < piece.end.distance_from(piece.start) {
            return Err(Blocked::CongestionWindow);
        }
        self.hold_back(now, gate, snd.nxt, 0)?;
        let end = snd.fit_window(piece.start, piece.end).ok_or(Blocked::ReceiveWindow)?;
        Ok(Some(snd.retransmission(piece.start, end, SendReason::FastRetransmit)))
    }

    /// New data (RFC 6675, NextSeg, rule 2).
    fn next_new(
        &mut self,
        snd: &mut Stream,
        now: Instant,
        config: &ConnConfig,
        gate: &Gate,
    ) -> Result<Plan, Blocked> {
        let nxt = snd.nxt + self.reserved.new_bytes();
        if snd.buffer.limit().le(nxt) {
            let more = snd.more_follows(Some(self), config);
            if gate.room > 0 && self.board.tally().pending == 0 && !more {
                // Until the pacer's next slot, an application that has written nothing limits
                // nothing.
                self.ran_dry = gate.rate_paced && gate.earliest > now;
                if !self.ran_dry {
                    snd.delivery.on_app_limited(self.board.pipe());
                }
            }
            return Err(Blocked::App);
        }
        if core::mem::take(&mut self.ran_dry) && gate.earliest < now {
            snd.delivery.on_app_limited(self.board.pipe());
        }
        let end = snd.data_end(nxt);
        let data = end.saturating_distance_from(nxt);
        // What follows a record does not join its last segment, which so has nothing to wait for
        // (Linux: `TCP_NAGLE_PUSH` for all but the last).
        let ends_record = end != snd.buffer.end();
        if snd.path_mtu.is_some()
            && let Some(probe) = self.next_mtu_probe(snd, now, gate, nxt, data)
        {
            let probe = probe?;
            self.hold_back(now, gate, nxt, data)?;
            return Ok(probe);
        }
        // A small segment that was cancelled in the scheduler is not outstanding.
        self.small_end = self.small_end.min(nxt);
        let overridden = self.wait.cause == WaitCause::Overridden;
        let corked = config.cork && snd.write_space(Some(self), config) > 0 && !overridden;
        let more = snd.more_follows(Some(self), config);
        let waits_for_more = more && nxt != snd.una;
        let may_be_small =
            !corked && !waits_for_more && nagle_permits(config.nagle, snd.una, nxt, self.small_end);
        let ask = SizeQuestion {
            data,
            fin: snd.buffer.has_fin() && !ends_record,
            usable: snd.wnd_end().saturating_distance_from(nxt),
            max_wnd: snd.window.max(),
            room: gate.room,
            max_payload: gate.max_run,
            smss: snd.smss(),
            small: may_be_small || ends_record,
            alone: !ends_record && (more || matches!(config.nagle, Nagle::Rfc896 | Nagle::SunOs(_))),
            override_sws: overridden,
            sunos: if let Nagle::SunOs(rule) = config.nagle { Some(rule) } else { None },
        };
        let Piece { len, fin } = match ask.answer() {
            Ok(piece) => piece,
            Err(blocked) => {
                match blocked {
                    Blocked::CongestionWindow if !gate.capped => self.window_use.limit(nxt),
                    Blocked::ReceiveWindow if nxt == snd.una => self.wait_for_window(snd, now, config),
                    // A cork holds data back for 200 ms, as Linux's does (tcp(7), TCP_CORK).
                    Blocked::Nagle if corked && nxt == snd.una => self.wait_for_window(snd, now, config),
                    _ => {}
                }
                return Err(blocked);
            }
        };
        self.hold_back(now, gate, nxt, data)?;
        let limited = self.recovery.phase == Phase::Disorder
            && u64::from(nxt.distance_from(snd.una)) + u64::from(len) > gate.window;
        let (class, reason) = match (len, limited) {
            (0, _) => (SegmentClass::Control(ControlKind::Fin), SendReason::Fin),
            (_, true) => (SegmentClass::Data, SendReason::LimitedTransmit),
            (_, false) => (SegmentClass::Data, SendReason::NewData),
        };
        Ok(Plan {
            class,
            reason,
            seq: nxt,
            len,
            segment_size: snd.segment_size(len),
            fin,
            psh: len > 0 && nxt + len == end && (ends_record || !more),
            marked: false,
        })
    }

    /// The peer's window, or the cork, prevents sending although nothing is outstanding.
    pub(super) fn wait_for_window(&mut self, snd: &mut Stream, now: Instant, config: &ConnConfig) {
        if self.wait.begin(now, snd.window.wnd(), snd.rtt.rto(), config.max_rto) {
            self.progress_at = now;
        }
    }
}
