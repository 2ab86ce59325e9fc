//! What may leave, and what its departure commits.
//!
//! In this order: the segment of an expired timer; a window probe; a tail loss probe; lost data; new data; and in
//! recovery, where losses are found by count, what may be lost (RFC 6675, NextSeg). Only probes and the first ignore
//! the congestion window and the pacer.

use super::new_data::{Ask, Piece, nagle_permits};
use super::pacer::Gap;
use super::timers::Waiting;
use super::{Flight, Next, SendLimits, Sender};
use crate::config::{ConnConfig, LossDetection, Nagle};
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::cc::{Clock, Pacing, Phase, Recovery, Restart, RestartCause, SendDecision, SentSegment};
use crate::policy::rto::{RtoGate, RtoPhase, RtoSend};
use crate::policy::sched::{ControlKind, SegmentClass};
use crate::recovery::{DUP_THRESH, Prr};
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::units::Window;
use alloc::boxed::Box;
use core::num::NonZeroU16;

/// What the congestion control (or the gate of an RTO response) still lets into the network.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// Bytes.
    room: u32,
    /// Lost data may go out.
    retransmit: bool,
    /// Data that may be lost may go out: there is no clock that finds out.
    speculate: bool,
    /// The congestion window, in bytes; what is beyond it leaves by limited transmit.
    window: u64,
    /// The configured cap is below what congestion control allows: it is not its window that holds data back.
    capped: bool,
    /// No data leaves before.
    earliest: Instant,
    /// Departures keep a distance: none is queued behind another.
    paced: bool,
    /// The time since the last departure releases data, not the window.
    clocked: bool,
    /// The pace follows from the window: what it holds back, the window would.
    window_paced: bool,
    /// Most payload of one packet.
    max_payload: u32,
    /// Most payload of new data that leaves at once.
    max_run: u32,
}

impl Sender {
    /// What may leave at `now`. Pure as far as sequence space is concerned.
    pub(crate) fn next(&mut self, now: Instant, config: &ConnConfig, limits: &SendLimits) -> Next {
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.pace_at = Instant::FAR_FUTURE;
        }
        match self.choose(now, config, limits) {
            Ok(out) => {
                self.blocked = Blocked::No;
                Next::Send(out)
            }
            Err(blocked) => {
                self.blocked = blocked;
                let waits = blocked == Blocked::ReceiveWindow || (blocked == Blocked::Nagle && config.cork);
                if !waits && self.waiting != Waiting::Nothing {
                    self.stop_waiting();
                }
                Next::Blocked
            }
        }
    }

    fn choose(&mut self, now: Instant, config: &ConnConfig, limits: &SendLimits) -> Result<Plan, Blocked> {
        if self.cc.is_none() {
            return Err(Blocked::State);
        }
        if self.flight.is_none() {
            if self.buffer.limit().le(self.snd_nxt) {
                return Err(Blocked::App);
            }
            let timed = self.sack && config.loss == LossDetection::Rack;
            self.flight = Some(Box::new(Flight::new(self.snd_una, timed, self.path)));
        }
        if let Some(out) = self.next_rto_segment() {
            return Ok(out);
        }
        if self.waiting == Waiting::Probe {
            return self.window_probe().ok_or(Blocked::ReceiveWindow);
        }
        if let Some(out) = self.next_probe() {
            return Ok(out);
        }
        self.restart_after_idle(now, config);
        let gate = self.gate(config, limits)?;
        if gate.retransmit
            && let Some(out) = self.next_lost(now, &gate)?
        {
            return Ok(out);
        }
        match self.next_new(now, config, &gate) {
            Err(blocked @ (Blocked::App | Blocked::ReceiveWindow)) if gate.retransmit && gate.speculate => {
                self.next_speculative(now, &gate)?.ok_or(blocked)
            }
            new => new,
        }
    }

    /// The segment that an expired timer sends, where it did not leave yet.
    fn next_rto_segment(&mut self) -> Option<Plan> {
        let send = self.flight.as_deref()?.recovery.rto.send?;
        let Some((start, end)) = self.rto_segment() else {
            self.flight.as_deref_mut()?.recovery.rto.send = None;
            return None;
        };
        let reason = match send {
            RtoSend::Nothing | RtoSend::Head => SendReason::RtoRetransmit,
            RtoSend::Again(_) | RtoSend::NewElseHighest => SendReason::RtoProbe,
        };
        let mut out = self.retransmission(start, end, reason);
        if start == self.snd_nxt {
            out.class = SegmentClass::Data;
        }
        let queued = self.flight.as_deref()?.reserved.holds(SendReason::is_rto);
        (!queued).then_some(out)
    }

    /// A probe of the closed window: an octet that is acknowledged already, which the peer must answer with an
    /// ACK that shows its window (RFC 9293, section 3.10.7.4). Section 3.8.6.1 would have an octet of new data
    /// sent; it would lie beyond the window, and have to be sent again wherever the window stays closed.
    fn window_probe(&self) -> Option<Plan> {
        let queued = self.flight.as_deref()?.reserved.holds(|reason| reason == SendReason::WindowProbe);
        (!queued).then_some(Plan {
            class: SegmentClass::Control(ControlKind::Probe),
            reason: SendReason::WindowProbe,
            seq: self.snd_una - 1,
            len: 0,
            segment_size: None,
            fin: false,
            psh: false,
        })
    }

    /// RFC 5681, section 4.1: after an idle RTO the ACK clock is gone, and the window falls to the restart
    /// window.
    fn restart_after_idle(&mut self, now: Instant, config: &ConnConfig) {
        let idle = now.since(self.last_sent);
        if self.snd_nxt != self.snd_una || idle <= self.rtt.rto() || self.pipe() > 0 {
            return;
        }
        if self.buffer.limit().le(self.snd_nxt) || !config.restart_after_idle {
            return;
        }
        let window = self.initial_window(config);
        let view = self.flow_view(now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.on_restart(&view, &Restart::new(RestartCause::Idle, window, idle));
        }
        self.last_sent = now;
    }

    /// What congestion control and the RTO response let out. An error where it is nothing at all.
    fn gate(&self, config: &ConnConfig, limits: &SendLimits) -> Result<Gate, Blocked> {
        let (Some(cc), Some(flight)) = (self.cc.as_deref(), self.flight.as_deref()) else {
            return Err(Blocked::State);
        };
        let decision = cc.decision();
        let smss = self.smss;
        let mut gate = Gate {
            room: u32::MAX,
            retransmit: true,
            speculate: config.loss == LossDetection::DupAck,
            window: u64::MAX,
            capped: config.cwnd_cap.is_some_and(|cap| decision.window > Window::from_bytes(cap)),
            earliest: Instant::ZERO,
            paced: false,
            clocked: false,
            window_paced: false,
            max_payload: limits.max_payload / smss * smss,
            max_run: limits.max_run / smss * smss,
        };
        match self.rto_gate() {
            RtoGate::ByCc => {}
            RtoGate::Closed => return Err(Blocked::CongestionWindow),
            RtoGate::NewOnly { window, from } => {
                let used = (self.snd_nxt + flight.reserved.new_bytes()).saturating_distance_from(from);
                gate.room = clamp(window.bytes()).saturating_sub(used);
                gate.retransmit = false;
                return Ok(gate);
            }
        }
        gate.earliest = flight.pacer.earliest(&decision, self.rtt.srtt_pace());
        let pipe = self.pipe();
        match decision.clock {
            Clock::Departure { max_outstanding } => {
                let most = u32::from(max_outstanding.max(1));
                let reserved = flight.reserved.new_bytes().div_ceil(smss);
                let out = flight.board.segments_out(most).saturating_add(reserved);
                gate.room = most.saturating_sub(out).saturating_mul(smss);
                gate.max_payload = smss;
                gate.max_run = smss;
                gate.clocked = true;
            }
            Clock::Ack => {
                gate.window = self.congestion_window(config, &decision, flight.recovery.prr.as_ref());
                gate.room = self.room_in(gate.window, pipe, config, &decision);
            }
        }
        // A window below one segment must not stop the flow for good: one segment may always be out.
        if pipe == 0 {
            gate.room = gate.room.max(smss);
        }
        if decision.burst > 0 && pipe > 0 {
            let left = decision.burst.saturating_sub(flight.released);
            gate.room = gate.room.min(left.saturating_mul(smss));
        }
        if let Some(gap) = Gap::of(&decision, self.rtt.srtt_pace()) {
            gate.paced = true;
            gate.window_paced = !gate.capped && !matches!(decision.pacing, Pacing::AtRate(_));
            let quantum = gap.quantum(smss, limits.departure_tick);
            gate.max_payload = gate.max_payload.min(quantum);
            gate.max_run = gate.max_run.min(quantum);
        }
        Ok(gate)
    }

    /// The congestion window in bytes, within the configured cap. In recovery PRR says what of it may be used, and
    /// for how much more than it the flight may shrink gently; an algorithm that limits recovery itself is not
    /// asked to.
    fn congestion_window(&self, config: &ConnConfig, decision: &SendDecision, prr: Option<&Prr>) -> u64 {
        let window = match prr.filter(|_| decision.recovery == Recovery::Core) {
            Some(prr) => prr.window(),
            None => decision.window.bytes(),
        };
        window.min(config.cwnd_cap.unwrap_or(u64::MAX))
    }

    /// Bytes that a congestion window of `window` bytes still takes.
    fn room_in(&self, window: u64, pipe: u32, config: &ConnConfig, decision: &SendDecision) -> u32 {
        let reserved = self.flight.as_deref().map_or(0, |flight| flight.reserved.new_bytes());
        let flight_size = self.flight_size().saturating_add(reserved);
        let room = clamp(window).saturating_sub(pipe);
        match self.phase() {
            Phase::Disorder if decision.recovery == Recovery::Core && !self.has_lost_data() => {
                let reorders = self
                    .flight
                    .as_deref()
                    .is_some_and(|flight| flight.recovery.rack.path.dup_thresh() > DUP_THRESH);
                // RFC 3042: one new segment for each of the first two duplicate ACKs; without limited
                // transmit, nothing beyond the window (RFC 5681, section 3.2). Where time decides, a reordering
                // path makes more than two, and each lets a segment go (RFC 6675, section 5, step 3.3).
                let extra = match config.loss {
                    _ if !config.limited_transmit => 0,
                    LossDetection::Rack if self.sack => return room,
                    // RFC 4653, section 3.2: where more are waited for, each of them lets a segment go.
                    _ if reorders => return room,
                    _ => 2 * self.smss,
                };
                room.min(clamp(window).saturating_add(extra).saturating_sub(flight_size))
            }
            _ => room,
        }
    }

    /// The congestion window takes no further segment. Where a clock or a lower cap lets data out, the window is not
    /// what holds it back.
    fn is_window_full(&self, config: &ConnConfig, decision: &SendDecision) -> bool {
        let window = decision.window.bytes();
        let capped = config.cwnd_cap.is_some_and(|cap| cap < window);
        decision.clock == Clock::Ack && !capped && window < u64::from(self.pipe()) + u64::from(self.smss)
    }

    /// Something waits to be retransmitted. In Disorder that is what a smaller path MTU has dropped: the flight that
    /// it is part of must not hold it back.
    fn has_lost_data(&self) -> bool {
        self.flight.as_deref().is_some_and(|flight| flight.board.tally().pending > 0)
    }

    /// Lost data, lowest first (RFC 6675, NextSeg, rule 1).
    fn next_lost(&mut self, now: Instant, gate: &Gate) -> Result<Option<Plan>, Blocked> {
        let smss = self.smss;
        let Some(flight) = self.flight.as_deref_mut() else { return Ok(None) };
        if flight.board.tally().pending == 0 {
            return Ok(None);
        }
        let forced = flight.recovery.forced;
        let most = if forced { smss } else { gate.max_payload.min(gate.room / smss * smss) };
        let Some((start, end)) = flight.board.next_lost(most.max(smss)) else { return Ok(None) };
        if !forced && gate.room < end.distance_from(start).min(smss) {
            if !gate.capped {
                flight.window_use.limit(self.snd_nxt);
            }
            return Err(Blocked::CongestionWindow);
        }
        // What does not wait for the window waits for the pacer: beside paced departures it would find the queue full
        // that has just dropped a packet.
        hold_back(flight, now, gate, self.snd_nxt, flight.board.tally().pending)?;
        let end = self.fit_window(start, end).ok_or(Blocked::ReceiveWindow)?;
        Ok(Some(self.retransmission(start, end, SendReason::FastRetransmit)))
    }

    /// RFC 6675, NextSeg, rules 3 and 4.
    fn next_speculative(&mut self, now: Instant, gate: &Gate) -> Result<Option<Plan>, Blocked> {
        let smss = self.smss;
        let Some(flight) = self.flight.as_deref_mut() else { return Ok(None) };
        let Some(piece) = flight.recovery.speculative(&flight.board, smss) else { return Ok(None) };
        if gate.room < piece.end.distance_from(piece.start) {
            return Err(Blocked::CongestionWindow);
        }
        hold_back(flight, now, gate, self.snd_nxt, 0)?;
        let end = self.fit_window(piece.start, piece.end).ok_or(Blocked::ReceiveWindow)?;
        Ok(Some(self.retransmission(piece.start, end, SendReason::FastRetransmit)))
    }

    /// New data (RFC 6675, NextSeg, rule 2).
    fn next_new(&mut self, now: Instant, config: &ConnConfig, gate: &Gate) -> Result<Plan, Blocked> {
        let space = self.buffer.space(config.send_buffer as usize);
        let wnd_end = self.wnd_end();
        let Some(flight) = self.flight.as_deref_mut() else { return Err(Blocked::State) };
        let nxt = self.snd_nxt + flight.reserved.new_bytes();
        if self.buffer.limit().le(nxt) {
            if gate.room > 0 && flight.board.tally().pending == 0 {
                self.delivery.on_app_limited(flight.board.pipe());
            }
            return Err(Blocked::App);
        }
        let data = self.buffer.end().saturating_distance_from(nxt);
        // A small segment that was given up in the scheduler is not outstanding.
        flight.small_end = flight.small_end.min(nxt);
        let overridden = self.waiting == Waiting::Overridden;
        let corked = config.cork && space > 0 && !overridden;
        let may_be_small = !corked && nagle_permits(config.nagle, self.snd_una, nxt, flight.small_end);
        let ask = Ask {
            data,
            fin: self.buffer.has_fin(),
            usable: wnd_end.saturating_distance_from(nxt),
            max_wnd: self.window.max(),
            room: gate.room,
            max_payload: gate.max_run,
            smss: self.smss,
            small: may_be_small,
            alone: matches!(config.nagle, Nagle::Rfc896 | Nagle::SunOs(_)),
            override_sws: overridden,
            sunos: if let Nagle::SunOs(rule) = config.nagle { Some(rule) } else { None },
        };
        let Piece { len, fin } = match ask.answer() {
            Ok(piece) => piece,
            Err(blocked) => {
                match blocked {
                    Blocked::CongestionWindow if !gate.capped => flight.window_use.limit(nxt),
                    Blocked::ReceiveWindow if nxt == self.snd_una => self.wait_for_window(now, config),
                    // A cork holds data back for 200 ms, as Linux's does (tcp(7), TCP_CORK).
                    Blocked::Nagle if corked && nxt == self.snd_una => self.wait_for_window(now, config),
                    _ => {}
                }
                return Err(blocked);
            }
        };
        hold_back(flight, now, gate, nxt, data)?;
        let limited = flight.recovery.phase == Phase::Disorder
            && u64::from(nxt.distance_from(self.snd_una)) + u64::from(len) > gate.window;
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
            segment_size: self.segment_size(len),
            fin,
            psh: len > 0 && nxt + len == self.buffer.end(),
        })
    }

    /// A packet with what `[start, end)` holds, FIN included.
    pub(crate) fn retransmission(&self, start: SeqNum, end: SeqNum, reason: SendReason) -> Plan {
        let data_end = end.min(self.buffer.end());
        let len = data_end.saturating_distance_from(start);
        Plan {
            class: SegmentClass::Retransmit,
            reason,
            seq: start,
            len,
            segment_size: self.segment_size(len),
            fin: end.gt(self.buffer.end()),
            psh: len > 0 && data_end == self.buffer.end(),
        }
    }

    fn segment_size(&self, len: u32) -> Option<NonZeroU16> {
        if len > self.smss { u16::try_from(self.smss).ok().and_then(NonZeroU16::new) } else { None }
    }

    /// The packet waits in the egress scheduler under `serial`.
    pub(crate) fn reserve(&mut self, out: &Plan, serial: u64) {
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let new = out.end().gt(self.snd_nxt);
        flight.reserved.push(*out, serial, new);
        if new {
            flight.released = flight.released.saturating_add(out.segments());
            self.note_small(out);
        } else if out.reason != SendReason::WindowProbe {
            flight.recovery.on_retransmission(out.seq, out.end(), &flight.board);
            flight.board.set_reserved(out.seq, out.end(), true);
        }
    }

    /// Remembers the end of a small segment for Minshall's rule.
    fn note_small(&mut self, out: &Plan) {
        if let Some(flight) = self.flight.as_deref_mut()
            && !out.len.is_multiple_of(self.smss)
        {
            flight.small_end = out.seq + out.len;
        }
    }

    /// The packet that was reserved under `serial` is about to leave: what is still to be sent. May be asked
    /// again where the device refused the packet.
    pub(crate) fn claim(&mut self, serial: u64) -> Option<Plan> {
        let (una, nxt) = (self.snd_una, self.snd_nxt);
        let flight = self.flight.as_deref_mut()?;
        let entry = flight.reserved.find(serial)?;
        let out = entry.out;
        if out.reason == SendReason::WindowProbe {
            if self.waiting == Waiting::Probe {
                return Some(out);
            }
            flight.reserved.remove(out.end(), false);
            return None;
        }
        // Where the path MTU fell meanwhile, a packet that was planned as one segment is planned anew.
        let too_large = out.segment_size.is_none() && out.len > self.smss;
        if entry.new {
            // RFC 9293, section 3.8.6: a window that shrank takes no new data beyond its edge.
            if too_large || (nxt + out.len).gt(una + self.window.wnd()) {
                flight.reserved.void_new(Some(entry.serial));
                return None;
            }
            return Some(Plan { segment_size: self.segment_size(out.len), ..out });
        }
        let (start, end) = (out.seq.max(una), out.end());
        // What an expiry sends is a question to the peer, also where the peer has reported it as received.
        let settled = flight.board.is_sacked(start, end) && !out.reason.is_rto();
        if too_large || start.ge(end) || settled {
            flight.reserved.remove(end, false);
            flight.board.set_reserved(start, end, false);
            return None;
        }
        Some(self.retransmission(start, end, out.reason))
    }

    /// A reserved retransmission that became void, by its serial.
    pub(crate) fn take_voided(&mut self) -> Option<u64> {
        self.flight.as_deref_mut()?.reserved.take_voided()
    }

    /// The packet left.
    pub(crate) fn sent(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Plan) {
        let now = ctx.now;
        if out.reason == SendReason::WindowProbe {
            self.on_probe_sent(ctx, config, out);
            return;
        }
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let segments = u64::from(out.segments());
        let new = out.end().gt(self.snd_nxt);
        let start = out.seq.max(self.snd_una);
        let idle = flight.board.is_empty();
        let was_reserved = flight.reserved.remove(out.end(), new).is_some();
        if out.reason.is_rto() {
            flight.recovery.rto.send = None;
        }
        if let Some(prr) = &mut flight.recovery.prr {
            prr.on_sent(out.end().distance_from(start));
        }
        let stamp = self.delivery.on_sent(now, idle);
        let limited = self.delivery.is_app_limited();
        if new {
            flight.board.push(self.snd_nxt, out.end(), stamp, self.smss, limited);
            self.snd_nxt = out.end();
            if let Some(ecn) = self.ecn.as_deref_mut()
                && out.len > 0
            {
                ecn.cwr_due = false;
            }
            if !was_reserved {
                flight.released = flight.released.saturating_add(out.segments());
                self.note_small(out);
            }
        } else {
            if !was_reserved {
                flight.recovery.on_retransmission(start, out.end(), &flight.board);
            }
            flight.board.on_retransmitted(start, out.end(), stamp, self.smss, limited);
            flight.recovery.first_retransmission.get_or_insert(now);
            if flight.recovery.in_episode()
                && let Some(mark) = &mut flight.recovery.undo
            {
                mark.on_retransmitted(out.end().distance_from(start));
            }
            self.stats.bytes_retrans += u64::from(out.len);
            self.stats.total_retrans = self.stats.total_retrans.saturating_add(out.segments());
            match flight.recovery.phase {
                Phase::Recovery => ctx.counters.tcp_fast_retrans += segments,
                Phase::Loss if !out.reason.is_rto() => ctx.counters.tcp_slow_start_retrans += segments,
                Phase::Loss | Phase::Open | Phase::Disorder => {}
            }
        }
        if out.len > 0 {
            self.stats.bytes_sent += u64::from(out.len);
            self.stats.data_segs_out += segments;
        }
        self.last_sent = now;
        if idle {
            self.progress_at = now;
        }
        self.stop_waiting();
        if out.len > 0 && self.rto_phase() != RtoPhase::Probe {
            let view = self.flow_view(now);
            if let Some(cc) = self.cc.as_deref_mut() {
                cc.on_sent(&view, &SentSegment::new(out.seq, out.len, !new));
            }
        }
        let Some(decision) = self.cc.as_deref().map(|cc| cc.decision()) else { return };
        let full = new && self.is_window_full(config, &decision);
        if out.len > 0
            && let Some(flight) = self.flight.as_deref_mut()
        {
            if new {
                flight.window_use.on_sent(self.snd_una, self.snd_nxt, full);
            }
            flight.pacer.on_departure(now, out.len, &decision, self.rtt.srtt_pace(), ctx.granularity);
        }
        // RFC 6298, 5.1: start it if it is not running. The head's retransmission, an expiry's segment and
        // every departure of a departure clock start it anew.
        let probe = out.reason == SendReason::TailLossProbe;
        let anew = (!new && start == self.snd_una) || out.reason.is_rto() || probe;
        if self.rto_at == Instant::FAR_FUTURE || anew || decision.clock != Clock::Ack {
            self.restart_rto(now, config);
        }
        if probe {
            self.on_tail_loss_probe(ctx, start, new);
        } else if new {
            self.schedule_probe(ctx, config);
        }
    }

    fn on_probe_sent(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Plan) {
        ctx.counters.tcp_win_probe += 1;
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.reserved.remove(out.end(), false);
        }
        self.probes = self.probes.saturating_add(1);
        self.waiting = Waiting::Nothing;
        self.wait_at = Instant::FAR_FUTURE;
        self.wait_for_window(ctx.now, config);
    }
}

/// An error where the pacer (or a paced packet that waits in the scheduler) holds data back that would leave
/// behind `nxt`; `waiting` bytes of it wait.
fn hold_back(
    flight: &mut Flight,
    now: Instant,
    gate: &Gate,
    nxt: SeqNum,
    waiting: u32,
) -> Result<(), Blocked> {
    if gate.earliest > now {
        flight.pace_at = gate.earliest;
        flight.pacer.hold();
        // Where less waits than there is room for, it is the application that leaves the window unused.
        if gate.clocked || (gate.window_paced && waiting >= gate.room) {
            flight.window_use.limit(nxt);
        }
        return Err(Blocked::Pacing);
    }
    if gate.paced && flight.reserved.holds_data() { Err(Blocked::Pacing) } else { Ok(()) }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
