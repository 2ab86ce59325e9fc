//! What policies and `info` see of the sender.

use super::Sender;
use super::flight::Flight;
use super::measure::chrono::Times;
use super::pacer::Gap;
use super::stream::Stream;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::info::Info;
use crate::policy::cc::{FlowView, Phase};
use crate::policy::rto::RtoView;
use crate::policy::{CongestionControl, Metrics};
use crate::time::Instant;
use crate::units::Window;

impl Stream {
    /// The sender as a congestion control sees it while nothing is outstanding.
    pub(super) fn flow_view(&self, now: Instant) -> FlowView {
        let mut view = FlowView::new(now, self.smss());
        view.snd_una = self.una;
        view.snd_nxt = self.nxt;
        view.snd_wnd = self.window.wnd();
        view.flight_size = self.flight_size();
        view.delivered = self.delivery.delivered;
        view.srtt_pace = self.rtt.srtt_pace();
        view.srtt = self.rtt.srtt();
        view.rttvar = self.rtt.rttvar();
        view.min_rtt = self.rtt.min_rtt();
        view.rto = self.rtt.rto();
        view.app_limited = self.delivery.is_app_limited();
        view.cwnd_limited = false;
        view.has_sack = self.sack;
        view
    }
}

impl Flight {
    /// The sender as a congestion control sees it.
    pub(super) fn flow_view(&self, snd: &Stream, now: Instant) -> FlowView {
        let mut view = snd.flow_view(now);
        view.pipe = self.pipe();
        view.sacked = self.board.tally().sacked;
        view.oldest_departure = self.board.oldest_departure();
        view.phase = self.recovery.phase;
        view.cwnd_limited = self.window_use.is_limited(snd.una);
        view.flight_used = self.window_use.largest_flight();
        view
    }

    /// The sender as the response to a timeout sees it, with the given `pipe`.
    pub(super) fn rto_view(
        &self,
        snd: &Stream,
        ctx: &Ctx<'_>,
        config: &ConnConfig,
        pipe: u32,
        in_recovery: bool,
    ) -> RtoView {
        let mut flow = self.flow_view(snd, ctx.now);
        flow.pipe = pipe;
        let mut view = RtoView::new(flow, self.decision.window, self.decision.ssthresh);
        let end = snd.new_probe().unwrap_or(snd.nxt).min(snd.buffer.end());
        view.unsent = end.saturating_distance_from(snd.nxt);
        view.fin_outstanding = snd.buffer.has_fin() && snd.nxt.gt(snd.buffer.end());
        view.sack_permitted = snd.sack;
        view.sack_seen = snd.sack_seen;
        view.timestamps = snd.timestamps;
        view.in_recovery = in_recovery;
        view.granularity = ctx.host.granularity;
        view.initial_window = snd.initial_window(config).bytes();
        view.dsack_seen = snd.dsack_seen;
        view.ecn_reduced = self.is_reduced_for_ecn(snd);
        view.retransmitted = u64::from(snd.losses().total_retrans);
        view.tlp = self.recovery.tlp.open.map(|probe| (probe.start, probe.new));
        view.highest = self.highest_data(snd);
        view.expiries = self.rto.expiries;
        view
    }
}

impl Sender {
    /// The sender as a congestion control sees it.
    pub(super) fn flow_view(&self, now: Instant) -> FlowView {
        match self.flight.as_deref() {
            Some(flight) => flight.flow_view(&self.stream, now),
            None => self.stream.flow_view(now),
        }
    }

    /// The congestion control, to read. `None` before [`open`](Self::open).
    pub(crate) fn shown_cc(&self) -> Option<&dyn CongestionControl> {
        self.stream.open.then_some(&*self.stream.cc)
    }

    /// Shows the variables of the response to timeouts; none before [`open`](Self::open).
    pub(crate) fn rto_metrics(&self, config: &ConnConfig, report: &mut Metrics<'_>) {
        if self.stream.open {
            self.stream.losses().show_response(config, |response| response.metrics(report));
        }
    }

    /// Name of the response to timeouts.
    pub(crate) fn rto_response_name(&self, config: &ConnConfig) -> &'static str {
        self.stream.losses().show_response(config, |response| response.name())
    }

    /// Fills in the sender's fields.
    pub(crate) fn info(&self, config: &ConnConfig, info: &mut Info) {
        let snd = &self.stream;
        info.cc = snd.cc.name();
        info.snd_mss = snd.smss();
        info.rto = snd.rtt.rto();
        info.backoff = snd.rtt.backoff();
        info.rtt = snd.rtt.srtt();
        info.rttvar = snd.rtt.rttvar();
        info.min_rtt = snd.rtt.min_rtt();
        let losses = snd.losses();
        if snd.open {
            info.rto_response = self.rto_response_name(config);
            let decision = snd.ask_for_decision();
            let window = decision.window;
            info.snd_cwnd = self.flight.as_deref().map_or(window, |flight| flight.gated(snd, window)).bytes();
            info.snd_ssthresh = (decision.ssthresh != Window::MAX).then(|| decision.ssthresh.bytes());
            info.pacing_rate = Gap::of(&decision, snd.rtt.srtt_pace()).map(Gap::rate);
            info.unacked = snd.flight_size();
        }
        info.snd_wnd = snd.window.wnd();
        info.ca_state = Phase::Open;
        info.pipe = 0;
        if let Some(flight) = self.flight.as_deref() {
            let tally = flight.board.tally();
            info.ca_state = flight.recovery.phase;
            info.sacked = tally.sacked;
            info.lost = tally.lost;
            info.retrans = tally.again;
            info.pipe = flight.pipe();
            info.retransmits = flight.rto.expiries;
            info.probes = u32::from(flight.wait.probes);
        }
        let flight = self.flight.as_deref().map_or(Times::default(), |flight| flight.chrono.times(info.now));
        let Times { busy, rwnd_limited, sndbuf_limited, sched_limited } = snd.times(flight);
        (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = (busy, rwnd_limited, sndbuf_limited);
        info.sched_limited = sched_limited;
        info.notsent_bytes = snd.buffer.end().saturating_distance_from(snd.nxt);
        info.delivery_rate = (snd.delivery.last != crate::Rate::ZERO).then_some(snd.delivery.last);
        info.bytes_sent = snd.stats.bytes_sent;
        info.bytes_retrans = losses.bytes_retrans;
        info.bytes_acked = snd.stats.bytes_acked;
        info.data_segs_out = snd.stats.data_segs_out;
        info.total_retrans = u64::from(losses.total_retrans);
        info.timeouts = u64::from(losses.timeouts);
        info.total_rto_recoveries = u64::from(losses.rto_recoveries);
        info.total_rto_time = losses.rto_time(info.now);
        info.dsack_dups = u64::from(losses.dsack_dups);
        info.reord_seen = losses.reord_seen;
        info.app_limited = snd.delivery.is_app_limited();
        info.delivered = snd.delivery.delivered;
        info.last_data_sent = snd.last_sent;
        let path = self.flight.as_deref().map_or(snd.path, |flight| flight.recovery.rack.path);
        info.reordering = path.dup_thresh();
        info.reordering_seen = path.reordering_seen();
        if let Some(ecn) = snd.ecn.as_deref() {
            info.ece_received = ecn.ece_received;
            info.delivered_ce = ecn.delivered_ce;
            if let Some(feedback) = &ecn.accurate {
                info.delivered_ce = u64::from(feedback.marked());
                info.delivered_bytes = feedback.bytes();
            }
        }
        info.blocked = self.blocked();
    }
}
