//! How much congestion control (or the response to a timeout) permits to be sent.

use super::SendLimits;
use super::flight::Flight;
use super::pacer::Gap;
use super::stream::Stream;
use crate::config::{ConnConfig, LossDetection};
use crate::info::Blocked;
use crate::policy::cc::{Clock, Pacing, Phase, Recovery};
use crate::policy::rto::RtoGate;
use crate::recovery::DUP_THRESH;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::units::Window;

/// What congestion control (or the gate of an RTO response) still allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    /// Bytes.
    pub(super) room: u32,
    /// Lost data may be sent.
    pub(super) retransmit: bool,
    /// Data that may be lost may be sent: no clock detects losses.
    pub(super) speculate: bool,
    /// The congestion window, in bytes; anything beyond it is sent by limited transmit.
    pub(super) window: u64,
    /// The configured cap is below congestion control's window, so that window is not the limit.
    pub(super) capped: bool,
    /// No data may be sent before this.
    pub(super) earliest: Instant,
    /// Departures are spaced: none is queued behind another.
    pub(super) paced: bool,
    /// Data is released by the time since the last departure, not by the window.
    pub(super) clocked: bool,
    /// The pace is derived from the window: what it holds back, the window holds back.
    pub(super) window_paced: bool,
    /// The pace is a rate that the algorithm sets.
    pub(super) rate_paced: bool,
    /// Maximum payload of one packet.
    pub(super) max_payload: u32,
    /// Maximum payload of new data sent at once.
    pub(super) max_run: u32,
}

impl Flight {
    /// What may be sent; an error if nothing at all.
    pub(super) fn gate(
        &self,
        snd: &Stream,
        config: &ConnConfig,
        limits: &SendLimits,
    ) -> Result<Gate, Blocked> {
        let decision = &self.decision;
        let smss = snd.smss();
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
            rate_paced: false,
            max_payload: limits.max_payload / smss * smss,
            max_run: limits.max_run / smss * smss,
        };
        match self.rto.gate(self.rto_phase(snd)) {
            RtoGate::ByCc => {}
            RtoGate::Closed => return Err(Blocked::CongestionWindow),
            RtoGate::NewOnly { window, from } => {
                let used = (snd.nxt + self.reserved.new_bytes()).saturating_distance_from(from);
                gate.room = clamp(window.bytes()).saturating_sub(used);
                gate.retransmit = false;
                return Ok(gate);
            }
        }
        let srtt = snd.rtt.srtt_pace();
        gate.earliest = self.pacer.earliest(decision, srtt);
        let pipe = self.pipe();
        match decision.clock {
            Clock::Departure { max_outstanding } => {
                let most = u32::from(max_outstanding.max(1));
                let reserved = self.reserved.new_bytes().div_ceil(smss);
                let out = self.board.segments_out(most).saturating_add(reserved);
                gate.room = most.saturating_sub(out).saturating_mul(smss);
                gate.max_payload = smss;
                gate.max_run = smss;
                gate.clocked = true;
            }
            Clock::Ack => {
                gate.window = self.congestion_window(config);
                gate.room = self.room_in(snd, gate.window, pipe, config);
            }
        }
        // A window below one segment must not stop the flow forever: one segment may always be
        // outstanding.
        if pipe == 0 {
            gate.room = gate.room.max(smss);
        }
        if let Some(cut) = snd.cut() {
            // RFC 6298, 5.4: an expiry sends the earliest segment. What was cut off it waits for
            // the answer, and so does what lies behind it.
            gate.room = if pipe == 0 { gate.room.min(cut) } else { 0 };
        }
        if decision.burst > 0 && pipe > 0 {
            let left = decision.burst.saturating_sub(self.released);
            gate.room = gate.room.min(left.saturating_mul(smss));
        }
        if let Some(gap) = Gap::of(decision, srtt) {
            gate.paced = true;
            gate.rate_paced = matches!(decision.pacing, Pacing::AtRate(_));
            gate.window_paced = !gate.capped && !gate.rate_paced;
            let quantum = gap.quantum(smss, limits.departure_tick).max(decision.quantum / smss * smss);
            gate.max_payload = gate.max_payload.min(quantum);
            gate.max_run = gate.max_run.min(quantum);
        }
        Ok(gate)
    }

    /// The congestion window in bytes, within the configured cap. In recovery PRR limits how much
    /// of it may be used, and how gently the flight may shrink to it, unless the algorithm limits
    /// recovery itself.
    fn congestion_window(&self, config: &ConnConfig) -> u64 {
        let window = match &self.recovery.prr {
            Some(prr) if self.decision.recovery == Recovery::Core => prr.window(),
            _ => self.decision.window.bytes(),
        };
        window.min(config.cwnd_cap.unwrap_or(u64::MAX))
    }

    /// Bytes that fit into a congestion window of `window` bytes.
    fn room_in(&self, snd: &Stream, window: u64, pipe: u32, config: &ConnConfig) -> u32 {
        let room = clamp(window).saturating_sub(pipe);
        let limited = self.recovery.phase == Phase::Disorder && self.decision.recovery == Recovery::Core;
        // Data dropped because of a smaller path MTU is also sent again in Disorder: the flight
        // that it is part of must not hold it back.
        if !limited || self.board.tally().pending > 0 {
            return room;
        }
        let reorders = self.recovery.rack.path.dup_thresh() > DUP_THRESH;
        // RFC 3042: one new segment for each of the first two duplicate ACKs; without limited
        // transmit, nothing beyond the window (RFC 5681, section 3.2). If time decides, a
        // reordering path makes more than two, and each lets a segment go (RFC 6675, section 5,
        // step 3.3).
        let extra = match config.loss {
            _ if !config.limited_transmit => 0,
            LossDetection::Rack if snd.sack => return room,
            // RFC 4653, section 3.2: if more are waited for, each of them lets a segment go.
            _ if reorders => return room,
            _ => 2 * snd.smss(),
        };
        let flight_size = snd.flight_size().saturating_add(self.reserved.new_bytes());
        room.min(clamp(window).saturating_add(extra).saturating_sub(flight_size))
    }

    /// True if the congestion window has no room for another segment. If a clock or a lower cap
    /// releases data, the window is not the limit.
    pub(super) fn is_window_full(&self, snd: &Stream, config: &ConnConfig) -> bool {
        let window = self.decision.window.bytes();
        let capped = config.cwnd_cap.is_some_and(|cap| cap < window);
        self.decision.clock == Clock::Ack
            && !capped
            && window < u64::from(self.pipe()) + u64::from(snd.smss())
    }

    /// An error if the pacer (or a paced packet in the scheduler) holds back data after `nxt`;
    /// `waiting` bytes of it wait.
    pub(super) fn hold_back(
        &mut self,
        now: Instant,
        gate: &Gate,
        nxt: SeqNum,
        waiting: u32,
    ) -> Result<(), Blocked> {
        if gate.earliest > now {
            self.pace_at = gate.earliest;
            self.pacer.hold();
            // If less waits than there is room for, it is the application that leaves the window
            // unused.
            if gate.clocked || (gate.window_paced && waiting >= gate.room) {
                self.window_use.limit(nxt);
            }
            return Err(Blocked::Pacing);
        }
        if gate.paced && self.reserved.holds_data() { Err(Blocked::Pacing) } else { Ok(()) }
    }
}

fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
