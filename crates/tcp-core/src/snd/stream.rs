//! A sender's state for the whole connection, even while nothing is outstanding.

use super::data::buffer::SendBuffer;
use super::data::write_space::WriteSpace;
use super::ecn::EcnSender;
use super::losses::Losses;
use super::measure::chrono::Times;
use super::measure::path_mtu::{PathMtu, base_smss};
use super::measure::rate::Delivery;
use super::measure::rtt::Rtt;
use super::window::PeerWindow;
use super::{AckOutcome, OpenParams};
use crate::config::{ConnConfig, Ecn};
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::packet::SegmentClass;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::cc::{
    AckSample, CcInit, CongestionEvent, FlowView, Reaction, Restart, SendDecision, Undo,
};
use crate::policy::{CongestionControl, RtoResponse};
use crate::recovery::rack::PathMemory;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use core::num::NonZeroU16;

/// Segment size before the handshake has determined one (RFC 9293, section 3.7.1).
const DEFAULT_SMSS: u16 = 536;

/// SND.*, the send buffer, path estimates, congestion control and the totals.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) buffer: SendBuffer,
    /// SND.UNA.
    pub(super) una: SeqNum,
    /// SND.NXT: the next sequence number to be sent for the first time; reserved data is beyond it.
    pub(super) nxt: SeqNum,
    pub(super) window: PeerWindow,
    /// Payload bytes of a full segment.
    pub(super) smss: u16,
    /// Payload bytes that every path carries.
    pub(super) least_smss: u16,
    /// Present if something speaks against the full segment size.
    pub(super) path_mtu: Option<Box<PathMtu>>,
    pub(super) cc: Box<dyn CongestionControl>,
    /// Present if there is something in it.
    pub(super) losses: Option<Box<Losses>>,
    /// Present if ECN is in use.
    pub(super) ecn: Option<Box<EcnSender>>,
    pub(super) rtt: Rtt,
    pub(super) delivery: Delivery,
    pub(super) stats: Stats,
    /// The last departure of data.
    pub(super) last_sent: Instant,
    /// Congestion control's timer was served but did not move on: it is not served again before the
    /// next ACK.
    pub(super) cc_timer_stuck: bool,
    /// The last write found too little space: the application has more.
    pub(super) cut_short: bool,
    /// The space in the buffer that the application waits for.
    pub(super) wanted: Option<WriteSpace>,
    /// Why nothing is being sent.
    pub(super) blocked: Blocked,
    /// The handshake is complete, and congestion control is the connection's own.
    pub(super) open: bool,
    /// SACK is in use.
    pub(super) sack: bool,
    /// Timestamps are in use.
    pub(super) timestamps: bool,
    /// The peer has sent a SACK block.
    pub(super) sack_seen: bool,
    /// The peer has sent a DSACK block.
    pub(super) dsack_seen: bool,
    /// Time with something unsent or unacknowledged in earlier flights, in
    /// [coarse](Duration::to_coarse) units.
    pub(super) busy: u32,
    /// RACK's knowledge of the path from earlier flights.
    pub(super) path: PathMemory,
}

/// Totals of a connection.
#[derive(Debug, Default)]
pub(super) struct Stats {
    /// Payload bytes sent, retransmissions included.
    pub(super) bytes_sent: u64,
    /// Payload bytes acknowledged.
    pub(super) bytes_acked: u64,
    /// Wire segments with data sent.
    pub(super) data_segs_out: u64,
}

impl Stream {
    /// Before ESTABLISHED: SND.UNA is `iss`, SND.NXT one more.
    pub(super) fn new(config: &ConnConfig, iss: SeqNum) -> Self {
        let first = iss + 1;
        Self {
            buffer: SendBuffer::new(first),
            una: iss,
            nxt: first,
            window: PeerWindow::new(0, SeqNum(0), iss),
            smss: DEFAULT_SMSS,
            least_smss: 1,
            path_mtu: None,
            cc: Box::new(StandIn),
            losses: None,
            ecn: None,
            rtt: Rtt::new(config.initial_rto, first),
            delivery: Delivery::new(),
            stats: Stats::default(),
            last_sent: Instant::ZERO,
            cc_timer_stuck: false,
            cut_short: false,
            wanted: None,
            blocked: Blocked::State,
            open: false,
            sack: false,
            timestamps: false,
            sack_seen: false,
            dsack_seen: false,
            busy: 0,
            path: PathMemory::default(),
        }
    }

    /// The handshake is complete.
    pub(super) fn open(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        let OpenParams {
            smss,
            least_smss,
            snd_wnd,
            wl1,
            sack,
            timestamps,
            handshake_rtt,
            syn_timed_out,
            syn_lost,
            ecn,
            path,
            early,
        } = *params;
        self.nxt += early.acked;
        self.una = self.nxt;
        self.buffer.release(self.una);
        self.stats.bytes_sent += u64::from(early.sent);
        self.stats.bytes_acked += u64::from(early.acked);
        self.stats.data_segs_out += u64::from(early.sent > 0);
        self.window = PeerWindow::new(snd_wnd, wl1, self.una);
        self.set_smss(smss);
        self.least_smss = least_smss;
        self.sack = sack;
        self.timestamps = timestamps;
        match path {
            Some((payload, until)) => self.begin_narrow(config, payload, until),
            None => self.begin_mtu_search(ctx.now, config, base_smss(least_smss, config)),
        }
        self.ecn = ecn.as_ref().map(|agreed| Box::new(EcnSender::new(agreed, self.una)));
        self.last_sent = ctx.now;
        if syn_timed_out {
            self.rtt.after_syn_timeout(config);
        }
        if let Some(rtt) = handshake_rtt {
            self.rtt.handshake(ctx.now, rtt, config, ctx.host.granularity);
        }
        // RFC 5681, section 3.1: after a lost SYN or SYN-ACK the initial window is one segment. A
        // mark on one says as much (draft-ietf-tcpm-generalized-ecn, sections 3.2.1 and 3.2.2).
        let syn_marked = ecn.as_ref().is_some_and(|agreed| agreed.syn_marked);
        let window = if syn_lost || syn_marked {
            Window::from_bytes(u64::from(self.smss()))
        } else {
            self.initial_window(config)
        };
        self.cc = (config.policies.cc)(&self.cc_init(ctx, config, window));
        self.open = true;
        self.blocked = Blocked::No;
    }

    /// What a new congestion control begins with.
    pub(super) fn cc_init(&self, ctx: &Ctx<'_>, config: &ConnConfig, window: Window) -> CcInit {
        let mut init = CcInit::new(ctx.now, self.smss(), window);
        init.granularity = ctx.host.granularity;
        init.decrease_from = config.decrease_from;
        init.phases = config.window_phases.then(|| self.initial_window(config));
        init.srtt = self.rtt.srtt();
        init.min_rtt = self.rtt.min_rtt();
        init.delivered = self.delivery.delivered;
        // The initial sequence number is random (RFC 6528), and here to spread connections.
        init.seed = (u64::from(self.nxt.0) << 32) ^ ctx.now.as_nanos();
        init.ecn = self.ecn.as_deref().map_or(Ecn::Off, |ecn| ecn.mode);
        init
    }

    /// Bytes allocated, with those of the policies' structs.
    pub(super) fn memory(&self) -> usize {
        let losses = self.losses.as_deref().map_or(0, Losses::memory);
        let ecn = self.ecn.as_deref().map_or(0, size_of_val);
        let path_mtu = self.path_mtu.as_deref().map_or(0, size_of_val);
        self.buffer.memory() + size_of_val(&*self.cc) + losses + ecn + path_mtu
    }

    /// RFC 6928, section 2: min(10 SMSS, max(2 SMSS, 14600)), scaled to the configured number of
    /// segments.
    pub(super) fn initial_window(&self, config: &ConnConfig) -> Window {
        let (smss, segments) = (u64::from(self.smss()), u64::from(config.initial_window.max(1)));
        Window::from_bytes((segments * smss).min((2 * smss).max(segments * 1460)))
    }

    /// Payload bytes of a full segment; at least 1.
    pub(super) const fn smss(&self) -> u32 {
        self.smss as u32
    }

    /// Payload bytes of a segment as large as the device and the peer permit.
    pub(super) fn full_smss(&self) -> u32 {
        self.path_mtu.as_deref().map_or(self.smss(), |path| path.full)
    }

    /// Payload bytes of a segment that is sent again: less than others while a black hole is
    /// suspected.
    pub(super) fn repair_smss(&self) -> u32 {
        self.cut().map_or(self.smss(), |cut| cut.min(self.smss()))
    }

    /// The size to which repeated timeouts have cut what is sent again, until something arrives.
    pub(super) fn cut(&self) -> Option<u32> {
        self.path_mtu.as_deref()?.cut
    }

    pub(super) fn set_smss(&mut self, smss: u32) {
        self.smss = u16::try_from(smss).unwrap_or(u16::MAX).max(1);
    }

    /// What was lost, to read.
    pub(super) fn losses(&self) -> &Losses {
        self.losses.as_deref().unwrap_or(&Losses::NONE)
    }

    /// What was lost, to add to.
    pub(super) fn losses_mut(&mut self) -> &mut Losses {
        self.losses.get_or_insert_default()
    }

    /// The recovery that a timeout began has ended, if there was one.
    pub(super) fn end_rto_recovery(&mut self, now: Instant) {
        if let Some(losses) = &mut self.losses {
            losses.end_rto_recovery(now);
        }
    }

    /// Times of the connection, with those of the present flight.
    pub(super) fn times(&self, flight: Times) -> Times {
        let losses = self.losses();
        Times {
            busy: Duration::from_coarse(self.busy).saturating_add(flight.busy),
            rwnd_limited: losses.rwnd_limited.saturating_add(flight.rwnd_limited),
            sndbuf_limited: losses.sndbuf_limited.saturating_add(flight.sndbuf_limited),
            sched_limited: losses.sched_limited.saturating_add(flight.sched_limited),
        }
    }

    /// A flight ends at `now`, with these times.
    pub(super) fn keep_times(&mut self, now: Instant, flight: Times) {
        let Times { busy, rwnd_limited, sndbuf_limited, sched_limited } = flight;
        self.busy = self.busy.saturating_add(busy.to_coarse(now));
        if !(rwnd_limited.is_zero() && sndbuf_limited.is_zero() && sched_limited.is_zero()) {
            let losses = self.losses_mut();
            losses.rwnd_limited = losses.rwnd_limited.saturating_add(rwnd_limited);
            losses.sndbuf_limited = losses.sndbuf_limited.saturating_add(sndbuf_limited);
            losses.sched_limited = losses.sched_limited.saturating_add(sched_limited);
        }
    }

    /// The RTO response, once it was asked.
    pub(super) fn asked_response(&self) -> Option<&dyn RtoResponse> {
        self.losses.as_deref()?.asked_response()
    }

    /// `snd_nxt - snd_una`.
    pub(super) const fn flight_size(&self) -> u32 {
        self.nxt.distance_from(self.una)
    }

    /// The right edge of the peer's window.
    pub(super) fn wnd_end(&self) -> SeqNum {
        self.una + self.window.wnd()
    }

    /// The end of a retransmission of `[start, end)` that the peer can take if it has taken back
    /// window: old data inside the window is retransmitted, and the rest is not (RFC 9293, section
    /// 3.8.6, SHLD-16; a peer may drop a segment that ends beyond the edge as a whole). The head
    /// goes out into a closed window too, as its probe. It ends with its record at the latest.
    /// `None` if nothing of it can be sent.
    pub(super) fn fit_window(&self, start: SeqNum, end: SeqNum) -> Option<SeqNum> {
        let end = self.buffer.record_end(start).map_or(end, |record| end.min(record));
        let edge = self.wnd_end();
        if end.le(edge) {
            return Some(end);
        }
        match edge.saturating_distance_from(start) {
            0 if start == self.una => Some(end.min(start + self.smss())),
            0 => None,
            room if room < self.smss() => Some(edge),
            room => Some(start + room / self.smss() * self.smss()),
        }
    }

    /// One past the last octet of new data that one segment may carry beside the windows of
    /// congestion control: an SMSS, or all that is unsent, with the FIN behind it. `None` if it is
    /// none, or does not fit the peer's window whole.
    pub(super) fn new_probe(&self) -> Option<SeqNum> {
        let unsent = self.data_end(self.nxt).saturating_distance_from(self.nxt);
        let end = self.nxt + unsent.min(self.smss());
        if unsent == 0 || end.gt(self.wnd_end()) {
            return None;
        }
        let with_fin = self.buffer.has_fin() && end == self.buffer.end() && end.lt(self.wnd_end());
        Some(end + u32::from(with_fin))
    }

    /// One past the last byte that a segment from `from` on may have: of its record, or of all that
    /// is written.
    pub(super) fn data_end(&self, from: SeqNum) -> SeqNum {
        self.buffer.record_end(from).unwrap_or(self.buffer.end())
    }

    /// A packet with what `[start, end)` holds, FIN included.
    pub(super) fn retransmission(&self, start: SeqNum, end: SeqNum, reason: SendReason) -> Plan {
        let data_end = end.min(self.buffer.end());
        let len = data_end.saturating_distance_from(start);
        Plan {
            class: SegmentClass::Retransmit,
            reason,
            seq: start,
            len,
            segment_size: self.segment_size(len),
            fin: end.gt(self.buffer.end()),
            psh: len > 0 && data_end == self.data_end(start),
            marked: false,
        }
    }

    /// Payload bytes per wire segment of a packet with `len` bytes, if it is a super-packet.
    pub(super) fn segment_size(&self, len: u32) -> Option<NonZeroU16> {
        if len > self.smss() { NonZeroU16::new(self.smss) } else { None }
    }

    /// Everything written has left, the FIN included.
    pub(super) fn has_nothing_unsent(&self) -> bool {
        self.buffer.limit().le(self.nxt)
    }

    /// Nothing is unsent or unacknowledged.
    pub(super) fn is_empty(&self) -> bool {
        let first = if self.open { self.una } else { self.nxt };
        self.buffer.limit() == first
    }

    /// What an ACK changed that advanced SND.UNA by `acked`; `freed`: send buffer was freed.
    pub(super) fn outcome(&self, acked: u32, freed: bool) -> AckOutcome {
        AckOutcome { acked, fin_acked: self.is_fin_acked(), freed }
    }

    /// The peer has acknowledged the FIN.
    pub(super) fn is_fin_acked(&self) -> bool {
        self.buffer.has_fin() && self.una.gt(self.buffer.end())
    }
}

/// Stands in for congestion control before the handshake is complete. Nobody asks it to send:
/// without [`Stream::open`] there is no flight.
#[derive(Debug)]
struct StandIn;

impl CongestionControl for StandIn {
    fn name(&self) -> &'static str {
        ""
    }

    fn decision(&self) -> SendDecision {
        SendDecision::window(Window::ZERO, Window::MAX)
    }

    fn on_ack(&mut self, _: &FlowView, _: &AckSample) -> Reaction {
        Reaction::None
    }

    fn on_congestion(&mut self, _: &FlowView, _: &CongestionEvent) {}

    fn on_restart(&mut self, _: &FlowView, _: &Restart) {}

    fn checkpoint(&mut self, _: &FlowView) {}

    fn undo(&mut self, _: &FlowView, _: &Undo) {}
}
