//! What a segment with ACK says, in this order: window; tags; the RTO response, which may consume the ACK; RTT;
//! tail loss probe; undo; loss detection; congestion; PRR; timers.

use super::timers::reneging_delay;
use super::window::Announced;
use super::{AckOutcome, AckSegment, Sender};
use crate::config::{ConnConfig, LossDetection};
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{AckSample, CongestionEvent, Phase, RateSample, Reaction};
use crate::policy::rto::{AckFacts, RtoPhase};
use crate::recovery::loss::{Evidence, Finding};
use crate::recovery::rack::Clocks;
use crate::recovery::rto_host::Heard;
use crate::recovery::{Progress, Prr};
use crate::scoreboard::Arrived;
use crate::scoreboard::Covered;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

/// What an ACK changed in the tags.
#[derive(Debug, Default)]
pub(super) struct Tagged {
    /// Bytes by which SND.UNA advanced.
    acked: u32,
    newly_sacked: u32,
    /// A duplicate in the sense of RFC 5681, section 2.
    duplicate: bool,
    /// Send buffer was freed.
    freed: bool,
    /// What is acknowledged left while the congestion window was full or held back more.
    pub(super) cwnd_limited: bool,
    /// ECE of an ACK that is not old, where ECN is in use.
    ece: bool,
    pub(super) covered: Covered,
}

impl Sender {
    /// The acknowledgment number is acceptable (RFC 5961, section 5.2): at most SND.NXT, and behind SND.UNA by no more
    /// than the largest window seen, nor by more than was ever acknowledged (Linux, `tcp_ack`).
    pub(crate) fn accepts(&self, ack: SeqNum) -> bool {
        let oldest = u64::from(self.window.max()).min(self.stats.bytes_acked) as u32;
        ack.le(self.snd_nxt) && ack.ge(self.snd_una - oldest)
    }

    /// A segment with an ACK that is [accepted](Self::accepts) arrived.
    pub(crate) fn on_ack(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, seg: &AckSegment) -> AckOutcome {
        self.cc_timer_stuck = false;
        let prior_una = self.snd_una;
        let same_window = seg.window == self.window.wnd();
        if seg.ack.ge(prior_una) {
            self.update_window(ctx, seg);
        }
        if self.flight.as_deref().is_none_or(|flight| flight.board.is_empty()) {
            if self.open_probe().is_some() || (self.sack && !seg.sack.is_empty()) {
                self.hear_late(ctx, config, seg, same_window);
            }
            return self.outcome(0, false);
        }
        let prior_pipe = self.pipe();
        let mut facts = AckFacts::new(prior_una, seg.ack);
        let tagged = self.tag(ctx, seg, same_window, &mut facts);
        self.judge_claim(ctx, config, &tagged.covered);
        let Tagged { acked, ref covered, .. } = tagged;
        let rate = self.delivery.on_ack(ctx.now, covered, self.rtt.min_rtt());
        if let Some(rate) = &rate {
            self.delivery.last = rate.rate();
        }
        // RFC 6298, section 3: an ACK that fills a hole is no measure of what had arrived behind it (Linux,
        // `FLAG_RETRANS_DATA_ACKED`). SACK would have reported that when it came.
        let waited = covered.repairs && !self.sack;
        let sample = |at: Option<Instant>| at.filter(|_| !waited).map(|at| ctx.now.since(at));
        let rtt_oldest = sample(covered.oldest_departure).or_else(|| timestamp_rtt(seg, acked));
        let rtt_newest = sample(covered.newest_departure);

        if acked > 0 {
            self.progress_at = ctx.now;
            self.drop_void_reservations();
        }
        let heard = if self.rto_heard {
            self.rto_response_on_ack(ctx, config, prior_pipe, &facts, (rtt_oldest, rtt_newest))
        } else {
            Heard::default()
        };
        let probing = self.rto_heard && self.rto_phase() == RtoPhase::Probe;
        if !heard.consumed && !probing {
            if !heard.sampled {
                let held = self.is_lone_runt(acked, rate.as_ref());
                self.take_rtt(ctx, config, rtt_oldest, rtt_newest, held);
            }
            self.judge_probe(ctx, &facts, prior_pipe);
            self.undo_if_needless(ctx, &facts);
            let unnamed = self.unnamed();
            let finding = self.detect_loss(ctx, config, &tagged, &facts);
            let delivered = if self.sack {
                tagged.covered.bytes
            } else {
                (tagged.acked + self.unnamed()).saturating_sub(unnamed)
            };
            if finding.begin {
                self.begin_recovery(ctx, config, prior_pipe, delivered);
            }
            self.tell_congestion_control(ctx, &tagged, finding, prior_pipe, rtt_oldest, rtt_newest, rate);
            self.run_prr(delivered, tagged.acked > 0 && finding.newly_lost == 0);
        }
        if !probing {
            self.end_episode(ctx, config);
        }
        self.judge_claim_by_loss(ctx, config);
        if acked > 0 {
            // RFC 6298, 5.2 and 5.3.
            self.restart_rto(ctx.now, config);
            self.on_rto_progress();
        }
        if acked > 0 || tagged.newly_sacked > 0 {
            self.schedule_probe(ctx, config);
        }
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.released = 0;
        }
        self.trace_congestion(ctx);
        self.outcome(acked, tagged.freed)
    }

    /// True where nothing is outstanding, and a segment with data that acknowledges `ack` and shows a window of
    /// `window` bytes says what is known: [`on_known_ack`](Self::on_known_ack) may take it in place of
    /// [`on_ack`](Self::on_ack).
    #[inline]
    pub(crate) fn knows(&self, ack: SeqNum, window: u32) -> bool {
        ack == self.snd_una
            && window == self.window.wnd()
            && window > 0
            && self.flight.as_deref().is_none_or(|flight| flight.board.is_empty())
    }

    /// A segment arrived whose acknowledgment and window are known.
    #[inline]
    pub(crate) fn on_known_ack(&mut self, seq: SeqNum, ack: SeqNum, window: u32) {
        self.cc_timer_stuck = false;
        self.window.update(&Announced { seq, ack, wnd: window }, self.snd_una, seq);
    }

    fn outcome(&self, acked: u32, freed: bool) -> AckOutcome {
        let fin_acked = self.buffer.has_fin() && self.snd_una.gt(self.buffer.end());
        AckOutcome { acked, fin_acked, freed }
    }

    /// RFC 9293, section 3.10.7.4: SND.WND.
    fn update_window(&mut self, ctx: &mut Ctx<'_>, seg: &AckSegment) {
        let before = self.window.wnd();
        let announced = Announced { seq: seg.seq, ack: seg.ack, wnd: seg.window };
        self.window.update(&announced, self.snd_una, seg.rcv_nxt);
        let wnd = self.window.wnd();
        if wnd == 0 {
            if before > 0 {
                ctx.counters.tcp_peer_zero_window += 1;
            }
            // RFC 9293, section 3.8.6.1: a peer that answers probes lives, however long its window is closed.
            self.progress_at = ctx.now;
        } else if wnd != before {
            self.stop_waiting();
        }
    }

    /// Tags what the ACK and its SACK blocks cover.
    fn tag(
        &mut self,
        ctx: &mut Ctx<'_>,
        seg: &AckSegment,
        same_window: bool,
        facts: &mut AckFacts,
    ) -> Tagged {
        let prior_una = self.snd_una;
        let mut tagged = Tagged { acked: facts.acked, ..Tagged::default() };
        let min_rtt = self.rtt.min_rtt();
        tagged.covered.claim = self.open_claim();
        let Some(flight) = self.flight.as_deref_mut() else { return tagged };
        tagged.covered.arrived = Arrived::new(ctx.now, min_rtt, echoed(ctx.now, seg));
        tagged.cwnd_limited = flight.window_use.is_limited(prior_una);
        if tagged.acked > 0 {
            self.snd_una = seg.ack;
            let bytes = self.buffer.release(seg.ack);
            tagged.freed = bytes > 0;
            self.stats.bytes_acked += u64::from(bytes);
            flight.board.acknowledge(seg.ack, &mut tagged.covered);
            flight.reneging_at = if flight.board.head_is_sacked() {
                ctx.now + reneging_delay(self.rtt.srtt())
            } else {
                Instant::FAR_FUTURE
            };
            flight.recovery.on_advance(seg.ack);
            flight.recovery.rack.on_advance(prior_una);
            flight.window_use.on_advance(seg.ack);
            flight.small_end = flight.small_end.max(seg.ack);
            self.rtt.forget_before(prior_una);
        }
        if self.sack && !seg.sack.is_empty() {
            self.take_sack(ctx, seg, facts, &mut tagged);
        }
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ecn.on_advance(self.snd_una);
            tagged.ece = seg.ece && seg.ack.ge(prior_una);
        }
        tagged.duplicate = seg.ack == prior_una && seg.payload_len == 0 && !seg.fin && same_window;
        facts.newly_sacked = tagged.newly_sacked;
        facts.duplicate = tagged.duplicate;
        facts.ece = tagged.ece;
        facts.sack_option = !seg.sack.is_empty();
        facts.original = tagged.covered.oldest_departure;
        if self.rto_heard || self.phase() == Phase::Recovery {
            facts.echoes_original = self.echoes_original(ctx.now, seg);
        }
        tagged
    }

    fn take_sack(&mut self, ctx: &mut Ctx<'_>, seg: &AckSegment, facts: &mut AckFacts, tagged: &mut Tagged) {
        let (una, nxt) = (self.snd_una, self.snd_nxt);
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let blocks = seg.sack.as_slice();
        for (i, &(start, end)) in blocks.iter().enumerate() {
            if i == 0 && is_dsack(seg.ack, start, end, blocks.get(1)) {
                flight.recovery.note_dsack(start, end, facts);
                count_dsack(ctx, seg.ack, start);
                self.dsack_seen = true;
                continue;
            }
            // A late ACK may report what is acknowledged meanwhile.
            if start.lt(end) && end.le(una) {
                continue;
            }
            if !start.lt(end) || start.le(una) || end.gt(nxt) {
                ctx.counters.tcp_sack_discard += 1;
                continue;
            }
            self.sack_seen = true;
            if let Some(slot) = facts.sack.get_mut(usize::from(facts.sack_count)) {
                *slot = (start, end);
                facts.sack_count += 1;
            }
            tagged.newly_sacked += flight.board.sack(start, end, &mut tagged.covered);
        }
    }

    /// Nothing is outstanding: an ACK still tells what the peer received twice, and what became of a probe.
    fn hear_late(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, seg: &AckSegment, same_window: bool) {
        let mut facts = AckFacts::new(self.snd_una, seg.ack);
        facts.duplicate = seg.ack == self.snd_una && seg.payload_len == 0 && !seg.fin && same_window;
        facts.sack_option = !seg.sack.is_empty();
        let blocks = seg.sack.as_slice();
        if let Some(&(start, end)) = blocks.first()
            && is_dsack(seg.ack, start, end, blocks.get(1))
        {
            count_dsack(ctx, seg.ack, start);
            self.dsack_seen = true;
            if let Some(flight) = self.flight.as_deref_mut() {
                flight.recovery.note_dsack(start, end, &mut facts);
            }
            facts.dsack = Some((start, end));
            if self.rto_heard && self.rto_response_on_ack(ctx, config, 0, &facts, (None, None)).consumed {
                return;
            }
            self.adapt_reordering_window(config, &facts);
        }
        self.judge_probe(ctx, &facts, 0);
        self.undo_if_needless(ctx, &facts);
    }

    /// RFC 8985, section 6.2, step 4: what DSACK tells of the reordering window.
    fn adapt_reordering_window(&mut self, config: &ConnConfig, facts: &AckFacts) {
        let (una, nxt, retransmitted) = (self.snd_una, self.snd_nxt, self.stats.total_retrans > 0);
        let Some(flight) = self.flight.as_deref_mut() else { return };
        if config.loss == LossDetection::Rack {
            // A duplicate that the network made, or that a tail loss probe risked, says nothing of reordering.
            let probe = flight.recovery.tlp.last;
            let ours = |end| retransmitted && !probe.is_some_and(|probe| probe.is_reported_by(end));
            flight.recovery.rack.on_ack(una, nxt, facts.dsack.is_some_and(|(_, end)| ours(end)));
        }
    }

    /// RFC 3522, section 3.2: TSecr is older than the first retransmission of the episode.
    fn echoes_original(&self, now: Instant, seg: &AckSegment) -> Option<bool> {
        let first = self.flight.as_deref()?.recovery.first_retransmission?;
        let age = seg.ts_now.wrapping_sub(seg.tsecr?);
        Some(u64::from(age) > now.as_millis() - first.as_millis() && age < 1 << 31)
    }

    /// The ACK covers less than a segment, and nothing else was delivered since that left: the peer may have held it
    /// (Linux, `FLAG_ACK_MAYBE_DELAYED`).
    fn is_lone_runt(&self, acked: u32, rate: Option<&RateSample>) -> bool {
        acked < self.smss && rate.is_some_and(|rate| rate.delivered == u64::from(acked))
    }

    /// Samples the round-trip time. `srtt` of RFC 6298 takes one sample per round trip, the pacer's every one.
    fn take_rtt(
        &mut self,
        ctx: &Ctx<'_>,
        config: &ConnConfig,
        oldest: Option<Duration>,
        newest: Option<Duration>,
        held: bool,
    ) {
        if let Some(flight) = self.flight.as_deref_mut() {
            if oldest.is_some() || newest.is_some() {
                flight.recovery.tlp.on_rtt_sample();
            }
            if let Some(rtt) = newest {
                self.rtt.on_newest(&mut flight.min_rtt, ctx.now, rtt, held);
            }
        }
        if let Some(rtt) = oldest {
            self.rtt.on_oldest(rtt, self.snd_una, self.snd_nxt, config, ctx.granularity);
        }
    }

    /// Where losses are found by time: the clocks that say which.
    fn clocks(&self, now: Instant, config: &ConnConfig) -> Option<Clocks> {
        let in_use = self.sack && config.loss == LossDetection::Rack;
        in_use.then(|| Clocks { now, min_rtt: self.rtt.min_rtt(), srtt: self.rtt.srtt() })
    }

    fn detect_loss(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        tagged: &Tagged,
        facts: &AckFacts,
    ) -> Finding {
        let evidence = Evidence {
            una: self.snd_una,
            sack: self.sack,
            acked: tagged.acked,
            newly_sacked: tagged.newly_sacked,
            duplicate: tagged.duplicate,
            smss: self.smss,
            clocks: self.clocks(ctx.now, config),
        };
        self.adapt_reordering_window(config, facts);
        let Some(flight) = self.flight.as_deref_mut() else { return Finding::default() };
        if evidence.clocks.is_some() && flight.recovery.rack.on_arrival(&tagged.covered.arrived) {
            ctx.counters.tcp_sack_reorder += 1;
        }
        let from = flight.recovery.phase;
        let finding = flight.recovery.detect(&mut flight.board, &evidence);
        note_lost(ctx, finding.newly_lost, finding.lost_again, false);
        let to = flight.recovery.phase;
        if from != to {
            ctx.trace(|| TraceEvent::Phase { from, to });
        }
        finding
    }

    #[expect(clippy::too_many_arguments, reason = "the facts of one ACK, gathered in their order")]
    fn tell_congestion_control(
        &mut self,
        ctx: &mut Ctx<'_>,
        tagged: &Tagged,
        finding: Finding,
        prior_pipe: u32,
        rtt_oldest: Option<Duration>,
        rtt: Option<Duration>,
        rate: Option<RateSample>,
    ) {
        if tagged.ece {
            self.on_ece(ctx, tagged);
        }
        if tagged.acked == 0 && tagged.newly_sacked == 0 && !tagged.duplicate {
            return;
        }
        let mut sample = AckSample::new(tagged.acked, tagged.covered.segments);
        sample.newly_sacked = tagged.newly_sacked;
        sample.newly_delivered = tagged.covered.bytes;
        sample.newly_lost = finding.newly_lost;
        sample.duplicate = tagged.acked == 0;
        sample.ece = tagged.ece;
        sample.ce = if tagged.ece { sample.newly_delivered } else { 0 };
        sample.rtt = rtt;
        sample.rtt_oldest = rtt_oldest;
        sample.prior_pipe = prior_pipe;
        sample.rate = rate;
        let mut view = self.flow_view(ctx.now);
        view.cwnd_limited = tagged.cwnd_limited;
        if let Some(cc) = self.cc.as_deref_mut() {
            let reaction = cc.on_ack(&view, &sample);
            if reaction == Reaction::Reduced {
                self.on_ecn_reduction(ctx);
            }
        }
    }

    /// RACK's reordering window has passed for the oldest segment that waits for it.
    pub(super) fn on_reorder_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let clocks = self.clocks(ctx.now, config);
        let probing = self.rto_phase() == RtoPhase::Probe;
        let prior_pipe = self.pipe();
        let Some(flight) = self.flight.as_deref_mut() else { return };
        flight.recovery.rack.reorder_at = Instant::FAR_FUTURE;
        let Some(clocks) = clocks.filter(|_| !probing) else { return };
        let found = flight.recovery.detect_by_time(&mut flight.board, &clocks);
        if let Some(prr) = &mut flight.recovery.prr {
            prr.on_lost(found.bytes);
        }
        let begin = found.bytes > 0 && !flight.recovery.in_episode();
        note_lost(ctx, found.bytes, found.lost_again, true);
        if begin {
            self.begin_recovery(ctx, config, prior_pipe, 0);
        }
        self.judge_claim_by_loss(ctx, config);
        // RFC 8985, section 8: one of the timers runs at a time, this one before that of retransmission.
        self.restart_rto(ctx.now, config);
    }

    /// Fast recovery begins; the ACK at hand reported `delivered` bytes.
    pub(super) fn begin_recovery(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        prior_pipe: u32,
        delivered: u32,
    ) {
        let (una, nxt) = (self.snd_una, self.snd_nxt);
        let inflight = self.pipe();
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let from = flight.recovery.phase;
        let tally = flight.board.tally();
        if config.undo {
            flight.recovery.arm_undo(una, tally.again, false);
        }
        flight.recovery.begin(Phase::Recovery, una, nxt);
        if config.prr {
            // RFC 9937, section 6.1: what had been SACKed before this ACK is not to be recovered any more.
            let fresh = tally.outstanding.saturating_sub(tally.sacked).saturating_add(delivered);
            flight.recovery.prr = Some(Prr::new(fresh, inflight));
        }
        ctx.trace(|| TraceEvent::Phase { from, to: Phase::Recovery });
        if self.sack {
            ctx.counters.tcp_sack_recovery += 1;
        } else {
            ctx.counters.tcp_reno_recovery += 1;
        }
        let reduced = self.is_reduced_for_ecn();
        let view = self.flow_view(ctx.now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.checkpoint(&view);
            // RFC 3168, section 6.1.2: one reduction per window of data, whatever the signals.
            if !reduced {
                cc.on_congestion(&view, &CongestionEvent::Loss { prior_pipe });
                self.on_reduction();
            }
        }
    }

    /// Ends the episode whose recovery point is acknowledged. Where loss beyond it is known, the next one
    /// begins at once.
    fn end_episode(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let from = flight.recovery.phase;
        if !flight.recovery.end_if_acknowledged(una, &mut flight.board) {
            return;
        }
        let to = flight.recovery.phase;
        let lost = flight.board.tally().pending > 0;
        ctx.trace(|| TraceEvent::Phase { from, to });
        let view = self.flow_view(ctx.now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.on_recovery_exit(&view);
        }
        if lost {
            self.begin_recovery(ctx, config, self.pipe(), 0);
        }
    }

    /// A tail loss probe has repaired a loss: the reduction of a recovery that is over before it began.
    pub(crate) fn report_repaired_loss(&mut self, ctx: &mut Ctx<'_>, loss: &CongestionEvent) {
        if self.is_reduced_for_ecn() {
            return;
        }
        let view = self.flow_view(ctx.now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.checkpoint(&view);
            cc.on_congestion(&view, loss);
            cc.on_recovery_exit(&view);
        }
        self.on_reduction();
        self.trace_congestion(ctx);
    }

    /// RFC 9937: an ACK in recovery has reported `delivered` bytes.
    fn run_prr(&mut self, delivered: u32, safe: bool) {
        let inflight = self.pipe();
        let Some(decision) = self.cc.as_deref().map(|cc| cc.decision()) else { return };
        let smss = self.smss;
        if let Some(flight) = self.flight.as_deref_mut()
            && let Some(prr) = &mut flight.recovery.prr
        {
            let target = decision.window.bytes();
            prr.on_ack(&Progress { delivered, safe, inflight, target, smss });
        }
    }

    /// Bytes that duplicate ACKs without SACK stand for.
    fn unnamed(&self) -> u32 {
        self.flight.as_deref().map_or(0, |flight| flight.board.unnamed())
    }

    /// Gives up reserved retransmissions of what is acknowledged.
    fn drop_void_reservations(&mut self) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        if flight.reserved.is_empty() {
            return;
        }
        while flight.reserved.take_void(|entry| entry.out.end().le(una) && entry.out.seq != una).is_some() {}
    }

    fn trace_congestion(&self, ctx: &mut Ctx<'_>) {
        ctx.trace(|| {
            let decision = self.cc.as_deref().map(|cc| cc.decision());
            TraceEvent::Congestion {
                cwnd: decision.map_or(0, |decision| decision.window.bytes()),
                ssthresh: decision.map_or(u64::MAX, |decision| decision.ssthresh.bytes()),
                pipe: self.pipe(),
                srtt: self.rtt.srtt(),
            }
        });
    }
}

fn note_lost(ctx: &mut Ctx<'_>, bytes: u32, again: u32, by_timer: bool) {
    ctx.counters.tcp_lost_retransmit += u64::from(again);
    if bytes > 0 {
        ctx.trace(|| TraceEvent::Lost { bytes, again, by_timer });
    }
}

/// When the segment left whose timestamp the ACK echoes, in milliseconds.
fn echoed(now: Instant, seg: &AckSegment) -> Option<u64> {
    let age = seg.ts_now.wrapping_sub(seg.tsecr.filter(|tsecr| *tsecr != 0)?);
    (age < 1 << 31).then(|| now.as_millis().saturating_sub(u64::from(age)))
}

/// RFC 2883, section 4: the first block reports a duplicate where it lies below the acknowledgment number, or
/// within the second block.
fn is_dsack(ack: SeqNum, start: SeqNum, end: SeqNum, second: Option<&(SeqNum, SeqNum)>) -> bool {
    start.lt(end) && (end.le(ack) || second.is_some_and(|second| second.0.le(start) && end.le(second.1)))
}

/// Counts a DSACK block that begins at `start`, in an ACK up to `ack`.
fn count_dsack(ctx: &mut Ctx<'_>, ack: SeqNum, start: SeqNum) {
    if start.lt(ack) {
        ctx.counters.tcp_dsack_recv += 1;
    } else {
        ctx.counters.tcp_dsack_ofo_recv += 1;
    }
}

/// RFC 7323, section 4.1: where only segments that left more than once are acknowledged, TSecr still tells
/// which departure the ACK answers. None where SND.UNA did not advance. Rounded up to a tick.
fn timestamp_rtt(seg: &AckSegment, acked: u32) -> Option<Duration> {
    let tsecr = seg.tsecr.filter(|tsecr| *tsecr != 0 && acked > 0)?;
    let ticks = seg.ts_now.wrapping_sub(tsecr);
    (ticks < 1 << 31).then(|| Duration::from_millis(u64::from(ticks.max(1))))
}
