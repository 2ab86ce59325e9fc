//! Bounds from losses and marks (section 5.5.10).
//!
//! Each lost transmission is judged on its own while a probe for bandwidth is under way: more than
//! the threshold of what was in flight with it means that the probe went too far, and the flight at
//! that point becomes the long-term bound. Otherwise the losses of a round trip lower the
//! short-term bounds once, to no less than what arrived in it.

use super::episode::UndoState;
use super::math::percent;
use super::{Ack, Bbr, State, UNSET};
use ackline_tcp_core::policy::cc::{FlowView, LostRecord};
use ackline_tcp_core::seq::SeqNum;

/// The round trip in which losses are counted: it begins anew with its first loss.
#[derive(Clone, Debug)]
pub(super) struct LossRound {
    /// `delivered` at which it ends.
    ends_at: u64,
    /// The last ACK has ended it.
    pub(super) start: bool,
    /// Something was lost in it.
    is_lossy: bool,
    /// Separate ranges lost in it, and the end of the last one.
    ranges: u32,
    last_end: Option<SeqNum>,
    /// Highest rate and volume delivered in it.
    bw_latest: u64,
    inflight_latest: u64,
}

impl LossRound {
    pub(super) const fn new(delivered: u64) -> Self {
        Self {
            ends_at: delivered,
            start: false,
            is_lossy: false,
            ranges: 0,
            last_end: None,
            bw_latest: 0,
            inflight_latest: 0,
        }
    }

    pub(super) const fn ranges(&self) -> u32 {
        self.ranges
    }

    pub(super) const fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    /// `BBRUpdateLatestDeliverySignals`.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) {
        self.start = false;
        let Some(rs) = &ack.rs else { return };
        self.bw_latest = self.bw_latest.max(rs.rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        if rs.prior_delivered >= self.ends_at {
            self.ends_at = ack.view.delivered;
            self.start = true;
        }
    }

    /// `BBRAdvanceLatestDeliverySignals`: the next one begins with this ACK's sample.
    pub(super) fn restart(&mut self, ack: &Ack<'_>) {
        if let Some(rs) = &ack.rs
            && self.start
        {
            (self.bw_latest, self.inflight_latest) = (rs.rate, rs.delivered);
            (self.ranges, self.last_end) = (0, None);
        }
    }

    /// `BBRResetCongestionSignals`.
    pub(super) const fn reset(&mut self) {
        self.is_lossy = false;
        (self.bw_latest, self.inflight_latest) = (0, 0);
    }

    /// The losses were none.
    pub(super) const fn forgive(&mut self) {
        self.is_lossy = false;
    }

    /// `[seq, seq + len)` is lost, while `delivered` bytes have arrived. A record that begins where
    /// the last one ended belongs to its range.
    fn on_lost(&mut self, seq: SeqNum, len: u32, delivered: u64) {
        if !self.is_lossy {
            self.ends_at = delivered;
        }
        self.is_lossy = true;
        self.ranges += u32::from(self.last_end != Some(seq));
        self.last_end = Some(seq + len);
    }
}

impl Bbr {
    /// `IsInflightTooHigh`: `lost` bytes are too many of `in_flight`.
    pub(super) fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost.saturating_mul(BASIS) > in_flight.saturating_mul(u64::from(self.params.loss_thresh))
    }

    /// `BBRHandleLostPacket`.
    pub(super) fn note_loss(&mut self, view: &FlowView, lost: &LostRecord) {
        if !self.episode.is_open() {
            self.save_state();
        }
        self.loss_round.on_lost(lost.seq, lost.len, view.delivered);
        let (in_flight, bytes) = (u64::from(lost.tx_in_flight), u64::from(lost.lost_since_sent));
        if !self.cycle.is_sample
            || self.loss_round.ranges < self.params.min_loss_ranges
            || !self.is_too_high(bytes, in_flight)
        {
            return;
        }
        let safe = self.inflight_at_loss(u64::from(lost.len), in_flight, bytes);
        if self.on_inflight_too_high(view, safe, lost.app_limited) {
            self.episode.undo_state = Some(UndoState::Up);
        }
    }

    /// A loss that a tail loss probe has repaired: the probe's copy arrived, and no record was
    /// marked. A segment is missing of what arrived.
    pub(super) fn on_repaired_loss(&mut self, view: &FlowView) {
        // A segment fits.
        let smss = self.control.smss as u32;
        let in_flight = u32::try_from(self.loss_round.inflight_latest).unwrap_or(u32::MAX);
        let lost = LostRecord::new(view.snd_una, smss, in_flight.saturating_add(smss));
        self.note_loss(view, &lost);
    }

    /// `BBRInflightAtLoss`: where in the packet of `len` bytes, after which `in_flight` bytes were
    /// in the network and of those `lost` are lost, the threshold was exceeded. With the flight f
    /// and the loss l before it, f + x bytes hold l + x lost ones:
    /// x = (thresh f - l) / (1 - thresh).
    fn inflight_at_loss(&self, len: u64, in_flight: u64, lost: u64) -> u64 {
        let (before, lost_before) = (in_flight.saturating_sub(len), lost.saturating_sub(len));
        let thresh = u64::from(self.params.loss_thresh);
        let allowed = before.saturating_mul(thresh).saturating_sub(lost_before.saturating_mul(BASIS));
        before.saturating_add(allowed / (BASIS - thresh))
    }

    /// `BBRHandleInflightTooHigh`: once per probe. True if it ends Up.
    fn on_inflight_too_high(&mut self, view: &FlowView, in_flight: u64, app_limited: bool) -> bool {
        self.cycle.was_too_high = true;
        self.cycle.is_sample = false;
        if !app_limited {
            let least = percent(self.target_inflight(), self.params.beta);
            self.model.inflight_longterm = in_flight.max(least);
        }
        let was_up = self.state == State::Up;
        if was_up {
            self.enter_down(view);
        }
        was_up
    }

    /// `BBRUpdateCongestionSignals`, `BBRAdaptShortTermModel`: at the end of a round trip with
    /// losses, except while the flow probes for bandwidth.
    pub(super) fn end_loss_round(&mut self, ack: &Ack<'_>) {
        if !self.loss_round.start || ack.rs.is_none() {
            return;
        }
        if self.loss_round.is_lossy && !self.state.probes_bandwidth() {
            let (max_bw, cwnd, beta) = (self.model.max_bw.get(), self.cwnd(), self.params.beta);
            let LossRound { bw_latest, inflight_latest, .. } = self.loss_round;
            let model = &mut self.model;
            let bw = if model.bw_shortterm == UNSET { max_bw } else { model.bw_shortterm };
            let inflight = if model.inflight_shortterm == UNSET { cwnd } else { model.inflight_shortterm };
            model.bw_shortterm = bw_latest.max(percent(bw, beta));
            model.inflight_shortterm = inflight_latest.max(percent(inflight, beta));
        }
        self.loss_round.is_lossy = false;
    }

    /// A mark by classic ECN, once per window of data. The draft leaves it open; RFC 3168, section
    /// 5, requires the answer that a loss gets, of whoever sets ECT. Unlike after a loss, what
    /// arrived in the round trip is no floor: it includes the queue that was marked.
    pub(super) fn on_mark(&mut self, view: &FlowView) {
        match self.state {
            State::Startup => self.fill_by_loss(),
            State::Refill | State::Up if self.cycle.is_sample => {
                self.on_inflight_too_high(view, u64::from(view.pipe), view.app_limited);
            }
            _ => {
                let from = match self.model.inflight_shortterm {
                    UNSET => self.cwnd(),
                    inflight => inflight,
                };
                self.model.inflight_shortterm = percent(from, self.params.beta).max(self.min_pipe_cwnd());
            }
        }
        self.bound_cwnd_for_model();
    }
}

/// The loss threshold counts in parts of this.
const BASIS: u64 = 10_000;
