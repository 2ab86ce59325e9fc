//! Processing a segment with ACK.
//!
//! First the facts are gathered, which tags the scoreboard ([`AckCx`]). Then they are acted on, in
//! this order: path MTU; delivery rate; the RTO response, which may consume the ACK; RTT; tail loss
//! probe; undo; loss detection; congestion control; PRR; the end of an episode; timers.
//! docs/one-ack.md walks through it.

use super::ece::gather_marks;
use super::flight::Flight;
use super::rto_response::AckUse;
use super::stream::Stream;
use super::timers::reneging_delay;
use super::window::WindowUpdate;
use super::{AckOutcome, AckSegment, Sender};
use crate::config::{ConnConfig, LossDetection};
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{Phase, RateSample, Reaction};
use crate::policy::rto::RtoPhase;
use crate::recovery::loss::{Finding, LossRules};
use crate::recovery::rack::Clocks;
use crate::scoreboard::{AckCx, Record};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};

impl Sender {
    /// The oldest acceptable acknowledgment number (RFC 5961, section 5.2): behind SND.UNA by no
    /// more than the largest window seen, nor by more than was ever acknowledged (Linux,
    /// `tcp_ack`), a FIN included.
    pub(crate) fn oldest_ack(&self) -> SeqNum {
        let snd = &self.stream;
        let acknowledged = snd.stats.bytes_acked + u64::from(snd.is_fin_acked());
        snd.una - u64::from(snd.window.max()).min(acknowledged) as u32
    }

    /// A segment with an ACK that is at least [`oldest_ack`](Self::oldest_ack), and at most
    /// SND.NXT, arrived.
    pub(crate) fn on_ack(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, seg: &AckSegment) -> AckOutcome {
        let snd = &mut self.stream;
        snd.cc_timer_stuck = false;
        let same_window = seg.window == snd.window.wnd();
        let offer = if seg.ack.ge(snd.una) { snd.update_window(ctx, seg) } else { Offer::Same };
        let reports = snd.sack && !seg.sack.is_empty();
        if let Some((snd, flight)) = self.in_flight() {
            match offer {
                Offer::Same => {}
                Offer::Changed => flight.wait.stop(),
                // RFC 9293, section 3.8.6.1: a peer that answers probes is alive, however long its
                // window is closed.
                Offer::Closed => flight.progress_at = ctx.now,
            }
            if !flight.board.is_empty() {
                return flight.on_ack(snd, ctx, config, seg, same_window);
            }
            snd.note_count(ctx, seg);
            if reports || flight.recovery.tlp.open.is_some() {
                flight.on_late_ack(snd, ctx, config, seg, same_window);
            }
        } else {
            self.stream.note_count(ctx, seg);
        }
        if reports && self.flight.is_none() {
            // The flight's memory was freed long ago; the peer may still report what it received
            // twice.
            let snd = &mut self.stream;
            Flight::new(snd, config).on_late_ack(snd, ctx, config, seg, same_window);
        }
        self.stream.outcome(0, false)
    }

    /// True if nothing is outstanding, and a segment with data that acknowledges `ack` and offers a
    /// window of `window` bytes tells nothing new: [`on_known_ack`](Self::on_known_ack) may then be
    /// called in place of [`on_ack`](Self::on_ack).
    #[inline]
    pub(crate) fn knows(&self, ack: SeqNum, window: u32) -> bool {
        ack == self.stream.una
            && window == self.stream.window.wnd()
            && window > 0
            && self.flight.as_deref().is_none_or(|flight| flight.board.is_empty())
    }

    /// A segment arrived whose acknowledgment and window are already known.
    #[inline]
    pub(crate) fn on_known_ack(&mut self, seq: SeqNum, ack: SeqNum, window: u32) {
        let snd = &mut self.stream;
        snd.cc_timer_stuck = false;
        snd.window.update(&WindowUpdate { seq, ack, wnd: window }, snd.una, seq);
    }
}

/// The peer's window after a segment.
#[derive(Clone, Copy, Debug)]
enum Offer {
    /// Open, as it was before.
    Same,
    /// Open, and another one.
    Changed,
    Closed,
}

impl Stream {
    /// RFC 9293, section 3.10.7.4: SND.WND.
    fn update_window(&mut self, ctx: &mut Ctx<'_>, seg: &AckSegment) -> Offer {
        let before = self.window.wnd();
        let update = WindowUpdate { seq: seg.seq, ack: seg.ack, wnd: seg.window };
        self.window.update(&update, self.una, seg.rcv_nxt);
        let wnd = self.window.wnd();
        if wnd == 0 {
            ctx.observe.counters.tcp_peer_zero_window += u64::from(before > 0);
            Offer::Closed
        } else if wnd == before {
            Offer::Same
        } else {
            Offer::Changed
        }
    }

    /// The clocks for loss detection by time, if that is in use.
    pub(super) fn clocks(&self, now: Instant, config: &ConnConfig) -> Option<Clocks> {
        let in_use = self.sack && config.loss == LossDetection::Rack;
        in_use.then(|| Clocks { now, min_rtt: self.rtt.min_rtt(), srtt: self.rtt.srtt() })
    }
}

/// A duplicate in the sense of RFC 5681, section 2, with SND.UNA at `una`.
fn is_duplicate(seg: &AckSegment, una: SeqNum, same_window: bool) -> bool {
    seg.ack == una && seg.payload_len == 0 && !seg.fin && same_window
}

impl Flight {
    /// An ACK while data is outstanding.
    fn on_ack(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &AckSegment,
        same_window: bool,
    ) -> AckOutcome {
        let mut ack = AckCx::new(ctx.now, snd.una, seg.ack);
        self.gather(snd, ctx, seg, same_window, &mut ack);
        let ack = &ack;
        self.note_answer(snd, seg, ack);
        self.judge_claim(snd, ctx, config, ack);
        let lost = snd.losses().lost;
        let rate = snd.delivery.on_ack(&mut self.delivery, ack, lost);
        let advanced = ack.acked() > 0;
        if advanced {
            self.progress_at = ctx.now;
            self.drop_void_reservations(snd);
        }
        let (mut used, mut probing) = (AckUse::default(), false);
        if snd.asked_response().is_some() {
            used = self.show_to_response(snd, ctx, config, ack);
            probing = self.rto_phase(snd) == RtoPhase::Probe;
        }
        if !used.consumed && !probing {
            if !used.sampled {
                self.take_rtt(snd, ctx, config, ack, rate.as_ref());
            }
            self.judge_probe(snd, ctx, ack);
            self.undo_if_needless(snd, ctx, ack);
            let unnamed = self.board.unnamed();
            let mut finding = self.detect_loss(snd, ctx, config, ack);
            if finding.begin && snd.path_mtu.is_some() {
                finding = self.excuse_mtu_probe(snd, ctx, config, finding);
            }
            let delivered = if snd.sack {
                ack.delivered
            } else {
                (ack.acked() + self.board.unnamed()).saturating_sub(unnamed)
            };
            if finding.begin {
                self.begin_recovery(snd, ctx, config, ack.prior_pipe, delivered);
            }
            self.tell_of_ack(snd, ctx, ack, finding.newly_lost, rate);
            self.run_prr(snd, delivered, advanced && finding.newly_lost == 0);
        }
        if !probing {
            self.end_episode(snd, ctx, config);
        }
        self.judge_claim_by_loss(snd, ctx, config);
        if advanced {
            // RFC 6298, 5.2 and 5.3.
            self.restart_rto(snd, ctx.now, config);
            self.rto.on_progress(self.rto_phase(snd) == RtoPhase::Probe);
        }
        if advanced || ack.facts.newly_sacked > 0 {
            self.schedule_probe(snd, ctx, config);
        }
        self.released = 0;
        self.trace_congestion(snd, ctx);
        snd.outcome(ack.acked(), ack.freed)
    }

    /// Nothing is outstanding: an ACK can still report duplicates, and the fate of a probe.
    fn on_late_ack(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &AckSegment,
        same_window: bool,
    ) {
        let mut ack = AckCx::new(ctx.now, snd.una, seg.ack);
        ack.facts.duplicate = is_duplicate(seg, snd.una, same_window);
        ack.facts.sack_option = !seg.sack.is_empty();
        let blocks = seg.sack.as_slice();
        if let Some(&block) = blocks.first()
            && is_dsack(seg.ack, block, blocks.get(1))
        {
            self.gather_dsack(snd, ctx, block, &mut ack);
            if snd.asked_response().is_some() && self.show_to_response(snd, ctx, config, &ack).consumed {
                return;
            }
            self.adapt_reordering_window(snd, config, &ack);
        }
        self.judge_probe(snd, ctx, &ack);
        self.undo_if_needless(snd, ctx, &ack);
    }

    /// Tags what the ACK and its SACK blocks cover, and gathers the facts.
    fn gather(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        seg: &AckSegment,
        same_window: bool,
        ack: &mut AckCx,
    ) {
        let prior_una = snd.una;
        ack.prior_pipe = self.pipe();
        ack.cwnd_limited = self.window_use.is_limited(prior_una);
        ack.min_rtt = snd.rtt.min_rtt();
        ack.echoed = echoed(ctx.now, seg);
        ack.claim = snd.open_claim();
        if ack.acked() > 0 {
            self.advance(snd, ack);
        }
        if snd.sack && !seg.sack.is_empty() {
            self.gather_sack(snd, ctx, seg, ack);
        }
        gather_marks(snd, ctx, seg, prior_una, ack);
        ack.facts.duplicate = is_duplicate(seg, prior_una, same_window);
        ack.facts.sack_option = !seg.sack.is_empty();
        if snd.asked_response().is_some() || self.recovery.phase == Phase::Recovery {
            ack.facts.echoes_original = self.echoes_original(ctx.now, seg);
        }
        // RFC 6298, section 3: an ACK that fills a hole does not measure when the data behind it
        // arrived (Linux, `FLAG_RETRANS_DATA_ACKED`). SACK would have reported it on arrival, from a
        // peer that does report.
        if ack.facts.sack_option {
            self.unreported = 0;
        } else if ack.facts.duplicate {
            self.unreported = self.unreported.saturating_add(1);
        }
        let waited = ack.repairs && (!snd.sack || self.withholds_sack(snd));
        let sample = |at: Option<Instant>| at.filter(|_| !waited).map(|at| ctx.now.since(at));
        ack.rtt_oldest = sample(ack.facts.original).or_else(|| timestamp_rtt(seg, ack.acked()));
        ack.rtt_newest = sample(ack.newest_departure);
    }

    /// The peer does not say what waits behind a hole, although it agreed to SACK (gVisor's stack
    /// after its FIN). Each retransmission of what had arrived makes one duplicate ACK that rightly
    /// has no block; there were more.
    fn withholds_sack(&self, snd: &Stream) -> bool {
        self.unreported > snd.losses().total_retrans
    }

    /// SND.UNA moves.
    fn advance(&mut self, snd: &mut Stream, ack: &mut AckCx) {
        let (prior_una, una) = (snd.una, ack.facts.ack);
        snd.una = una;
        let bytes = snd.buffer.release(una);
        ack.freed = bytes > 0;
        snd.stats.bytes_acked += u64::from(bytes);
        self.board.acknowledge(una, ack);
        self.reneging_at = if self.board.head_is_sacked() {
            ack.now + reneging_delay(snd.rtt.srtt())
        } else {
            Instant::FAR_FUTURE
        };
        self.recovery.on_advance(una);
        self.recovery.rack.on_advance(prior_una);
        self.window_use.on_advance(una);
        self.small_end = self.small_end.max(una);
        snd.rtt.forget_before(prior_una);
    }

    fn gather_sack(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, seg: &AckSegment, ack: &mut AckCx) {
        let blocks = seg.sack.as_slice();
        for (i, &block) in blocks.iter().enumerate() {
            let (start, end) = block;
            if i == 0 && is_dsack(seg.ack, block, blocks.get(1)) {
                self.gather_dsack(snd, ctx, block, ack);
                continue;
            }
            // A late ACK may report data acknowledged in the meantime.
            if start.lt(end) && end.le(snd.una) {
                continue;
            }
            if !start.lt(end) || start.le(snd.una) || end.gt(snd.nxt) {
                ctx.observe.counters.tcp_sack_discard += 1;
                continue;
            }
            snd.sack_seen = true;
            if let Some(slot) = ack.facts.sack.get_mut(usize::from(ack.facts.sack_count)) {
                *slot = block;
                ack.facts.sack_count += 1;
            }
            ack.facts.newly_sacked += self.board.sack(start, end, ack);
        }
    }

    fn gather_dsack(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        block: (SeqNum, SeqNum),
        ack: &mut AckCx,
    ) {
        ack.facts.dsack = Some(block);
        ack.facts.all_dsacked = self.recovery.on_dsack(block.0, block.1);
        if block.0.lt(ack.facts.ack) {
            ctx.observe.counters.tcp_dsack_recv += 1;
        } else {
            ctx.observe.counters.tcp_dsack_ofo_recv += 1;
        }
        snd.dsack_seen = true;
        let losses = snd.losses_mut();
        losses.dsack_dups = losses.dsack_dups.saturating_add(1);
    }

    /// RFC 3522, section 3.2: TSecr is older than the first retransmission of the episode.
    fn echoes_original(&self, now: Instant, seg: &AckSegment) -> Option<bool> {
        let first = self.recovery.first_retransmission?;
        let age = seg.ts_now.wrapping_sub(seg.tsecr?);
        Some(u64::from(age) > now.as_millis() - first.as_millis() && age < 1 << 31)
    }

    /// RFC 8985, section 6.2, step 4: the effect of DSACK on the reordering window.
    fn adapt_reordering_window(&mut self, snd: &Stream, config: &ConnConfig, ack: &AckCx) {
        if config.loss == LossDetection::Rack {
            // A duplicate made by the network, or risked by a tail loss probe, says nothing about
            // reordering.
            let (probe, retransmitted) = (self.recovery.tlp.last, snd.losses().total_retrans > 0);
            let ours = |end| retransmitted && !probe.is_some_and(|probe| probe.is_reported_by(end));
            let dsack = ack.facts.dsack.is_some_and(|(_, end)| ours(end));
            self.recovery.rack.on_ack(snd.una, snd.nxt, dsack);
        }
    }

    /// Samples the round-trip time. `srtt` of RFC 6298 takes one sample per round trip, the pacer's
    /// every one.
    fn take_rtt(
        &mut self,
        snd: &mut Stream,
        ctx: &Ctx<'_>,
        config: &ConnConfig,
        ack: &AckCx,
        rate: Option<&RateSample>,
    ) {
        if ack.rtt_oldest.is_some() || ack.rtt_newest.is_some() {
            self.recovery.tlp.on_rtt_sample();
        }
        if let Some(rtt) = ack.rtt_newest {
            // It covers less than a segment, and nothing else was delivered since that was sent:
            // the peer may have held it (Linux, `FLAG_ACK_MAYBE_DELAYED`).
            let acked = ack.acked();
            let held = acked < snd.smss() && rate.is_some_and(|rate| rate.delivered == u64::from(acked));
            if !self.ack_delay.is_timer(ack, rtt, snd.rtt.srtt_pace(), snd.is_fin_acked()) {
                snd.rtt.on_newest(&mut self.min_rtt, ctx.now, rtt, held);
            }
        }
        if let Some(rtt) = ack.rtt_oldest {
            snd.rtt.on_oldest(rtt, snd.una, snd.nxt, config, ctx.host.granularity);
        }
    }

    fn detect_loss(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        ack: &AckCx,
    ) -> Finding {
        let rules = LossRules { sack: snd.sack, smss: snd.smss(), clocks: snd.clocks(ctx.now, config) };
        self.adapt_reordering_window(snd, config, ack);
        let known = self.recovery.rack.path.reordering_seen();
        if rules.clocks.is_some() && self.recovery.rack.on_arrival(ack) {
            snd.losses_mut().on_reordering();
            ctx.observe.counters.tcp_sack_reorder += u64::from(!known);
        }
        let from = self.recovery.phase;
        let (una, loss) = (snd.una, self.loss_cx(ctx.now));
        let on_lost = &mut |record: &Record| snd.tell_of_loss(&loss, record);
        let finding = self.recovery.detect(&mut self.board, &rules, una, ack, on_lost);
        if finding.newly_lost > 0 {
            self.decision = snd.ask_for_decision();
        }
        note_lost(ctx, finding.newly_lost, finding.lost_again, false);
        let to = self.recovery.phase;
        if from != to {
            ctx.trace(|| TraceEvent::Phase { from, to });
        }
        finding
    }

    fn tell_of_ack(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        ack: &AckCx,
        newly_lost: u32,
        rate: Option<RateSample>,
    ) {
        if ack.facts.ece {
            self.on_ece(snd, ctx, ack);
        }
        if ack.acked() == 0 && ack.facts.newly_sacked == 0 && !ack.facts.duplicate {
            return;
        }
        let mut view = self.flow_view(snd, ctx.now);
        view.cwnd_limited = ack.cwnd_limited;
        let mut sample = ack.sample(newly_lost, rate);
        if let Some(rate) = &mut sample.rate {
            rate.lost = rate.lost.saturating_add(newly_lost);
        }
        if self.tell(snd, |cc| cc.on_ack(&view, &sample)) == Reaction::Reduced {
            snd.on_ecn_reduction(ctx);
        }
    }

    /// The reordering window of the oldest waiting segment has ended.
    pub(super) fn on_reorder_timeout(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        self.recovery.rack.reorder_at = Instant::FAR_FUTURE;
        if self.rto_phase(snd) == RtoPhase::Probe {
            return;
        }
        let Some(clocks) = snd.clocks(ctx.now, config) else { return };
        let prior_pipe = self.pipe();
        let in_episode = self.recovery.in_episode();
        let loss = self.loss_cx(ctx.now);
        let on_lost = &mut |record: &Record| snd.tell_of_loss(&loss, record);
        let found = self.recovery.rack.detect(&mut self.board, in_episode, &clocks, on_lost);
        if found.bytes > 0 {
            self.decision = snd.ask_for_decision();
        }
        if let Some(prr) = &mut self.recovery.prr {
            prr.on_lost(found.bytes);
        }
        note_lost(ctx, found.bytes, found.lost_again, true);
        let mut finding =
            Finding { newly_lost: found.bytes, begin: found.bytes > 0 && !in_episode, lost_again: 0 };
        if finding.begin && snd.path_mtu.is_some() {
            finding = self.excuse_mtu_probe(snd, ctx, config, finding);
        }
        if finding.begin {
            self.begin_recovery(snd, ctx, config, prior_pipe, 0);
        }
        self.judge_claim_by_loss(snd, ctx, config);
        // RFC 8985, section 8: only one of the timers runs at a time, this one before that of
        // retransmission.
        self.restart_rto(snd, ctx.now, config);
    }
}

fn note_lost(ctx: &mut Ctx<'_>, bytes: u32, again: u32, by_timer: bool) {
    ctx.observe.counters.tcp_lost_retransmit += u64::from(again);
    if bytes > 0 {
        ctx.trace(|| TraceEvent::Lost { bytes, again, by_timer });
    }
}

/// When the segment was sent whose timestamp the ACK echoes, in milliseconds.
fn echoed(now: Instant, seg: &AckSegment) -> Option<u64> {
    let age = seg.ts_now.wrapping_sub(seg.tsecr.filter(|tsecr| *tsecr != 0)?);
    (age < 1 << 31).then(|| now.as_millis().saturating_sub(u64::from(age)))
}

/// RFC 2883, section 4: the first block reports a duplicate if it is below the acknowledgment
/// number, or within the second block.
fn is_dsack(ack: SeqNum, (start, end): (SeqNum, SeqNum), second: Option<&(SeqNum, SeqNum)>) -> bool {
    start.lt(end) && (end.le(ack) || second.is_some_and(|second| second.0.le(start) && end.le(second.1)))
}

/// RFC 7323, section 4.1: if only segments sent more than once are acknowledged, TSecr still tells
/// which departure the ACK answers. `None` if SND.UNA did not advance. Rounded up to a tick.
fn timestamp_rtt(seg: &AckSegment, acked: u32) -> Option<Duration> {
    let tsecr = seg.tsecr.filter(|tsecr| *tsecr != 0 && acked > 0)?;
    let ticks = seg.ts_now.wrapping_sub(tsecr);
    (ticks < 1 << 31).then(|| Duration::from_millis(u64::from(ticks.max(1))))
}
