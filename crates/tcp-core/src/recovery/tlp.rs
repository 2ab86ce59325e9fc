//! Tail loss probes (RFC 8985, section 7): where the end of a flight may be lost, and no ACK can tell, one segment
//! is sent after about two round trips. Its acknowledgment shows RACK what is missing, long before the
//! retransmission timer would.
//!
//! The probe is new data where there is some, whatever the congestion window says, and otherwise the highest
//! outstanding segment again. In the second case a lost segment may have been repaired without anybody having
//! noticed the loss: the episode ([`Probe`]) stays open until an ACK tells (section 7.4).

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::cc::{Clock, CongestionEvent, Phase};
use crate::policy::rto::{AckFacts, RtoPhase};
use crate::policy::sched::SegmentClass;
use crate::seq::SeqNum;
use crate::snd::Sender;
use crate::time::{Duration, Instant};

/// TLP.max_ack_delay: how long a peer may hold the ACK of a single segment. A smaller floor of the RTO says that the
/// peers of this host hold none so long (Linux, `tcp_schedule_loss_probe`).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe timeout before an RTT sample.
const INITIAL_PTO: Duration = Duration::from_secs(1);

/// A probe that nothing has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// First sequence number of the probe.
    pub(crate) start: SeqNum,
    /// TLP.end_seq: SND.NXT when it had left.
    end: SeqNum,
    /// Not TLP.is_retrans: it was data that had never left.
    pub(crate) new: bool,
}

/// The state of tail loss probes.
#[derive(Debug)]
pub(crate) struct Tlp {
    /// When the next probe is due; [`Instant::FAR_FUTURE`] where none is.
    pub(crate) at: Instant,
    /// The timer fired, and the probe has not left.
    due: bool,
    pub(crate) open: Option<Probe>,
    /// The last probe, answered or not.
    pub(crate) last: Option<Probe>,
    /// No RTT sample has come since the last probe.
    unsampled: bool,
}

impl Tlp {
    pub(crate) const fn new() -> Self {
        Self { at: Instant::FAR_FUTURE, due: false, open: None, last: None, unsampled: false }
    }

    /// TLP_init (section 7.1): a recovery begins.
    pub(crate) fn reset(&mut self) {
        self.at = Instant::FAR_FUTURE;
        self.due = false;
        self.open = None;
    }

    /// The ACK at hand gave an RTT sample.
    pub(crate) fn on_rtt_sample(&mut self) {
        self.unsampled = false;
    }
}

impl Sender {
    /// Section 7.2: (re)starts the probe timer where a probe may be needed, and stops it otherwise. Called after
    /// new data has left and after an ACK that reported something.
    pub(crate) fn schedule_probe(&mut self, ctx: &Ctx<'_>, config: &ConnConfig) {
        let permitted = config.tlp && self.may_probe();
        let at = if permitted {
            // Section 7.2 has the probe wait no longer than the retransmission timer would. A timer that does not leave
            // the peer the time to acknowledge a single segment is the exception: it waits for the probe, because
            // one of the timers runs at a time (section 8).
            let at = self.probe_at(ctx, config).min(self.rto_at.max(self.ack_due(config)));
            self.rto_at = self.rto_at.max(at);
            at
        } else {
            Instant::FAR_FUTURE
        };
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.recovery.tlp.at = at;
            flight.recovery.tlp.due = false;
        }
    }

    fn may_probe(&self) -> bool {
        let Some(flight) = self.flight.as_deref() else { return false };
        let recovery = &flight.recovery;
        self.has_sack()
            && recovery.phase == Phase::Open
            && recovery.rto.send.is_none()
            && recovery.tlp.open.is_none()
            && !recovery.tlp.unsampled
            && !flight.board.is_empty()
            && flight.board.tally().sacked == 0
            && self.rto_phase() == RtoPhase::Open
    }

    /// TLP_calc_PTO with the host's margin, but for the bound that the retransmission timer sets.
    fn probe_at(&self, ctx: &Ctx<'_>, config: &ConnConfig) -> Instant {
        let timeout = match self.srtt() {
            Some(srtt) => srtt.saturating_mul(2).saturating_add(self.ack_delay(config)),
            None => INITIAL_PTO,
        };
        ctx.now + timeout + ctx.probe_margin
    }

    /// When the ACK of a single segment that is outstanding may come at the latest; [`Instant::ZERO`] where more is
    /// outstanding, or no RTT sample tells.
    fn ack_due(&self, config: &ConnConfig) -> Instant {
        let delay = self.ack_delay(config);
        let left = self.flight.as_deref().and_then(|flight| flight.board.oldest_departure());
        match (left, self.srtt()) {
            (Some(left), Some(srtt)) if !delay.is_zero() => left + srtt.saturating_add(delay),
            _ => Instant::ZERO,
        }
    }

    /// How long the peer may hold the ACK of what is outstanding.
    fn ack_delay(&self, config: &ConnConfig) -> Duration {
        if self.flight_size() <= self.smss { MAX_ACK_DELAY.min(config.min_rto) } else { Duration::ZERO }
    }

    /// The probe timer fired. The retransmission timer starts anew (section 7.3).
    pub(crate) fn on_probe_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let due = self.may_probe() && !self.is_departure_pending();
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.recovery.tlp.at = Instant::FAR_FUTURE;
            flight.recovery.tlp.due = due;
        }
        if due {
            self.restart_rto(ctx.now, config);
        }
    }

    /// The pacer or a departure clock holds data back: its own departure comes, and probes.
    fn is_departure_pending(&self) -> bool {
        let clocked = self.cc.as_deref().is_some_and(|cc| cc.decision().clock != Clock::Ack);
        self.is_paced_now() || (clocked && self.buffer.limit().gt(self.snd_nxt))
    }

    /// TLP_send_probe: the probe that is due.
    pub(crate) fn next_probe(&mut self) -> Option<Plan> {
        if !self.flight.as_deref()?.recovery.tlp.due {
            return None;
        }
        let plan = self.probe_plan();
        let flight = self.flight.as_deref_mut()?;
        if plan.is_none() {
            flight.recovery.tlp.due = false;
        }
        plan.filter(|_| !flight.reserved.holds(is_probe))
    }

    fn probe_plan(&self) -> Option<Plan> {
        let flight = self.flight.as_deref()?;
        if flight.reserved.new_bytes() > 0 && !flight.reserved.holds(is_probe) {
            // New data waits for the device already.
            return None;
        }
        if let Some(end) = self.new_probe() {
            let mut plan = self.retransmission(self.snd_nxt, end, SendReason::TailLossProbe);
            plan.class = SegmentClass::Data;
            return Some(plan);
        }
        let (start, end) = flight.board.segment_at(flight.board.highest_before(self.snd_nxt)?, self.smss)?;
        let end = self.fit_window(start, end)?;
        Some(self.retransmission(start, end, SendReason::TailLossProbe))
    }

    /// The probe `[start, ..)` left.
    pub(crate) fn on_tail_loss_probe(&mut self, ctx: &mut Ctx<'_>, start: SeqNum, new: bool) {
        ctx.counters.tcp_loss_probes += 1;
        let end = self.snd_nxt;
        if let Some(flight) = self.flight.as_deref_mut() {
            let tlp = &mut flight.recovery.tlp;
            tlp.due = false;
            tlp.at = Instant::FAR_FUTURE;
            tlp.unsampled = true;
            tlp.last = Some(Probe { start, end, new });
            if flight.recovery.phase == Phase::Open {
                tlp.open = tlp.last;
                if !new {
                    flight.recovery.first_retransmission = Some(ctx.now);
                }
            }
        }
        ctx.trace(|| TraceEvent::TailLossProbe { start, new });
    }

    /// TLP_process_ack (section 7.4): what an ACK makes of an open probe.
    pub(crate) fn judge_probe(&mut self, ctx: &mut Ctx<'_>, facts: &AckFacts, prior_pipe: u32) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let Some(probe) = flight.recovery.tlp.open.filter(|probe| una.ge(probe.end)) else { return };
        let reported = facts.dsack.is_some_and(|(_, end)| end == probe.end);
        let repaired = !probe.new && !reported && una.gt(probe.end);
        // Without SACK option a duplicate ACK of the end says the same as a DSACK: both copies arrived.
        if probe.new || reported || repaired || (facts.duplicate && !facts.sack_option) {
            flight.recovery.tlp.open = None;
        }
        if repaired {
            // The probe's copy was the only one to arrive: congestion control hears of the loss.
            flight.recovery.undo = None;
            ctx.counters.tcp_loss_probe_recovery += 1;
            self.report_repaired_loss(ctx, &CongestionEvent::Loss { prior_pipe });
        }
    }

    /// A probe that nothing has answered: its first sequence number, and whether it was new data.
    pub(crate) fn open_probe(&self) -> Option<(SeqNum, bool)> {
        let probe = self.flight.as_deref()?.recovery.tlp.open?;
        Some((probe.start, probe.new))
    }
}

fn is_probe(reason: SendReason) -> bool {
    reason == SendReason::TailLossProbe
}

impl Probe {
    /// A DSACK of `[.., end)` reports this probe.
    pub(crate) fn is_reported_by(&self, end: SeqNum) -> bool {
        !self.new && end == self.end
    }
}
