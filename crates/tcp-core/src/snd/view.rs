//! What policies and `info` see of the sender.

use super::Sender;
use super::pacer::Gap;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::info::Info;
use crate::policy::cc::{FlowView, Phase, SendDecision};
use crate::policy::rto::RtoView;
use crate::time::Instant;
use crate::units::Window;

impl Sender {
    /// `snd_nxt - snd_una`.
    pub(crate) const fn flight_size(&self) -> u32 {
        self.snd_nxt.distance_from(self.snd_una)
    }

    /// Bytes believed to be in the network, and those reserved.
    pub(crate) fn pipe(&self) -> u32 {
        self.flight
            .as_deref()
            .map_or(0, |flight| flight.board.pipe().saturating_add(flight.reserved.new_bytes()))
    }

    pub(super) fn phase(&self) -> Phase {
        self.flight.as_deref().map_or(Phase::Open, |flight| flight.recovery.phase)
    }

    /// The sender as a congestion control sees it.
    pub(crate) fn flow_view(&self, now: Instant) -> FlowView {
        let mut view = FlowView::new(now, self.smss);
        view.snd_una = self.snd_una;
        view.snd_nxt = self.snd_nxt;
        view.snd_wnd = self.window.wnd();
        view.flight_size = self.flight_size();
        view.delivered = self.delivery.delivered;
        view.srtt_pace = self.rtt.srtt_pace();
        view.srtt = self.rtt.srtt();
        view.min_rtt = self.rtt.min_rtt();
        view.rto = self.rtt.rto();
        view.app_limited = self.delivery.is_app_limited();
        view.cwnd_limited = false;
        if let Some(flight) = self.flight.as_deref() {
            view.pipe = flight.board.pipe().saturating_add(flight.reserved.new_bytes());
            view.sacked = flight.board.tally().sacked;
            view.oldest_departure = flight.board.oldest_departure();
            view.phase = flight.recovery.phase;
            view.cwnd_limited = flight.window_use.is_limited(self.snd_una);
            view.flight_used = flight.window_use.largest_flight();
        }
        view
    }

    /// The sender as the response to a timeout sees it, with the given `pipe`.
    pub(crate) fn rto_view(
        &self,
        ctx: &Ctx<'_>,
        config: &ConnConfig,
        pipe: u32,
        in_recovery: bool,
    ) -> RtoView {
        let mut flow = self.flow_view(ctx.now);
        flow.pipe = pipe;
        let (window, ssthresh) = match self.cc.as_deref().map(|cc| cc.decision()) {
            Some(decision) => (decision.window, decision.ssthresh),
            None => (Window::ZERO, Window::MAX),
        };
        let mut view = RtoView::new(flow, window, ssthresh);
        let end = self.new_probe().unwrap_or(self.snd_nxt).min(self.buffer.end());
        view.unsent = end.saturating_distance_from(self.snd_nxt);
        view.fin_outstanding = self.buffer.has_fin() && self.snd_nxt.gt(self.buffer.end());
        view.sack_permitted = self.sack;
        view.sack_seen = self.sack_seen;
        view.timestamps = self.timestamps;
        view.in_recovery = in_recovery;
        view.rttvar = self.rtt.rttvar();
        view.granularity = ctx.granularity;
        view.initial_window = self.initial_window(config).bytes();
        view.dsack_seen = self.dsack_seen;
        view.ecn_reduced = self.is_reduced_for_ecn();
        view.retransmitted = u64::from(self.stats.total_retrans);
        view.tlp = self.open_probe();
        view.highest = self.highest_data();
        if let Some(flight) = self.flight.as_deref() {
            view.expiries = flight.recovery.rto.expiries;
        }
        view
    }

    /// Fills in the sender's fields.
    pub(crate) fn info(&self, info: &mut Info) {
        let decision: Option<SendDecision> = self.cc.as_deref().map(|cc| cc.decision());
        info.cc = self.cc.as_deref().map_or("", |cc| cc.name());
        info.rto_response = self.rto.as_deref().map_or("", |rto| rto.name());
        info.ca_state = self.phase();
        info.snd_mss = self.smss;
        info.rto = self.rtt.rto();
        info.backoff = self.rtt.backoff();
        info.rtt = self.rtt.srtt();
        info.rttvar = self.rtt.rttvar();
        info.min_rtt = self.rtt.min_rtt();
        if let Some(decision) = &decision {
            info.snd_cwnd = self.gated(decision.window).bytes();
            info.snd_ssthresh = (decision.ssthresh != Window::MAX).then(|| decision.ssthresh.bytes());
            info.pacing_rate = Gap::of(decision, self.rtt.srtt_pace()).map(Gap::rate);
            info.unacked = self.flight_size();
        }
        info.snd_wnd = self.window.wnd();
        if let Some(flight) = self.flight.as_deref() {
            let tally = flight.board.tally();
            info.sacked = tally.sacked;
            info.lost = tally.lost;
            info.retrans = tally.again;
        }
        info.pipe = self.pipe();
        info.notsent_bytes = self.buffer.end().saturating_distance_from(self.snd_nxt);
        info.delivery_rate = (self.delivery.last != crate::Rate::ZERO).then_some(self.delivery.last);
        info.bytes_sent = self.stats.bytes_sent;
        info.bytes_retrans = self.stats.bytes_retrans;
        info.bytes_acked = self.stats.bytes_acked;
        info.data_segs_out = self.stats.data_segs_out;
        info.total_retrans = u64::from(self.stats.total_retrans);
        info.timeouts = u64::from(self.stats.timeouts);
        if let Some(ecn) = self.ecn.as_deref() {
            info.ece_received = ecn.ece_received;
            info.delivered_ce = ecn.delivered_ce;
        }
        info.blocked = self.blocked;
    }
}
