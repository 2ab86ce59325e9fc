//! The sending half of a connection.
//!
//! | file | holds |
//! |---|---|
//! | `buffer.rs` | the stream's bytes from SND.UNA on |
//! | `window.rs` | the peer's window |
//! | `transmit.rs` | what may leave, and what its departure commits |
//! | `new_data.rs` | how much new data: windows, Nagle, SWS avoidance |
//! | `pacer.rs` | when the next data may leave |
//! | `reservations.rs` | packets that wait in the egress scheduler |
//! | `ecn.rs` | ECN: what ECE does, and CWR |
//! | `path_mtu.rs` | what ICMP says of the path's MTU |
//! | `on_ack.rs` | what an ACK says |
//! | `rtt.rs`, `min_rtt.rs`, `rate.rs` | RTT, RTO, smallest RTT, delivery rate |
//! | `timers.rs` | every deadline of the sender |
//! | `view.rs` | what policies and `info` see |
//!
//! [`Sender`] holds what an idle connection needs; what outstanding data needs is in [`Flight`], which exists
//! from the first departure until the connection has been idle for a while.

mod buffer;
pub(crate) mod ecn;
mod min_rtt;
mod new_data;
mod on_ack;
mod pacer;
mod path_mtu;
mod rate;
mod reservations;
mod rtt;
mod timers;
mod transmit;
mod view;
mod window;

#[cfg(test)]
mod tests;

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::plan::Plan;
use crate::policy::cc::CcInit;
use crate::policy::{CongestionControl, NewCongestionControl, RtoResponse};
use crate::recovery::Recovery;
use crate::recovery::rack::PathMemory;
use crate::scoreboard::Scoreboard;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use crate::window_use::WindowUse;
use crate::wire::SackBlocks;
use alloc::boxed::Box;
use buffer::SendBuffer;
use ecn::{Agreed, EcnSender};
use min_rtt::Successors;
use pacer::Pacer;
use path_mtu::PathMtu;
use rate::Delivery;
use reservations::Reservations;
use rtt::Rtt;
use timers::Waiting;
use window::PeerWindow;

/// Segment size before the handshake has settled one (RFC 9293, section 3.7.1).
const DEFAULT_SMSS: u32 = 536;

/// What the handshake settled for the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParams {
    /// Payload bytes of a full segment.
    pub(crate) smss: u32,
    /// The peer's window in bytes.
    pub(crate) snd_wnd: u32,
    /// Sequence number of the segment that announced it (SND.WL1).
    pub(crate) wl1: SeqNum,
    /// SACK is in use.
    pub(crate) sack: bool,
    /// Timestamps are in use.
    pub(crate) timestamps: bool,
    /// RTT of the handshake; none where a SYN was retransmitted.
    pub(crate) handshake_rtt: Option<Duration>,
    /// A SYN was retransmitted (RFC 6298, 5.7; RFC 5681, section 3.1).
    pub(crate) syn_retransmitted: bool,
    /// ECN, where both sides agreed on it.
    pub(crate) ecn: Option<Agreed>,
}

/// Limits of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Most payload bytes in one packet that the device takes; at least the SMSS.
    pub(crate) max_payload: u32,
    /// Most payload bytes of new data in packets that leave one right after the other, where neither the pacer
    /// nor a clock has a say; at least `max_payload`.
    pub(crate) max_run: u32,
    /// Time within which the driver does not tell departures apart, for the pacer's quantum.
    pub(crate) departure_tick: Duration,
}

/// What the sender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This may leave.
    Send(Plan),
    /// Nothing may leave; `Info::blocked` says why.
    Blocked,
}

/// What a segment with ACK says to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSegment {
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    /// RCV.NXT, for the age of the window.
    pub(crate) rcv_nxt: SeqNum,
    /// Window in bytes, scaled.
    pub(crate) window: u32,
    /// Empty where SACK is not in use.
    pub(crate) sack: SackBlocks,
    /// TSecr, where timestamps are in use.
    pub(crate) tsecr: Option<u32>,
    /// What our timestamp clock shows at arrival.
    pub(crate) ts_now: u32,
    pub(crate) ece: bool,
    pub(crate) payload_len: u32,
    pub(crate) fin: bool,
}

/// What an ACK changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckOutcome {
    /// Sequence numbers newly acknowledged.
    pub(crate) acked: u32,
    /// Our FIN is acknowledged; also on later ACKs.
    pub(crate) fin_acked: bool,
    /// Send buffer was freed.
    pub(crate) freed: bool,
}

/// SND.*, the send buffer, what was sent, and the policies of the sender.
///
/// Called by the connection: [`open`](Self::open) once; then [`next`](Self::next) until it is blocked, after
/// every other call; [`sent`](Self::sent) for what left; [`on_ack`](Self::on_ack) for every acceptable segment
/// whose ACK it [accepts](Self::accepts); [`on_timeout`](Self::on_timeout) at [`next_timeout`](Self::next_timeout).
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) buffer: SendBuffer,
    pub(crate) snd_una: SeqNum,
    /// Next sequence number to leave for the first time; what is reserved lies beyond it.
    pub(crate) snd_nxt: SeqNum,
    pub(crate) window: PeerWindow,
    /// Payload bytes of a full segment.
    pub(crate) smss: u32,
    /// Where ICMP has spoken of the path's MTU.
    path_mtu: Option<Box<PathMtu>>,
    /// None before the handshake is complete.
    pub(crate) cc: Option<Box<dyn CongestionControl>>,
    /// None before the handshake is complete.
    pub(crate) rto: Option<Box<dyn RtoResponse>>,
    pub(crate) flight: Option<Box<Flight>>,
    /// Where ECN is in use.
    ecn: Option<Box<EcnSender>>,
    pub(crate) rtt: Rtt,
    delivery: Delivery,
    pub(crate) stats: Stats,
    /// When the retransmission timer expires; [`Instant::FAR_FUTURE`] where it is off.
    pub(crate) rto_at: Instant,
    /// When `waiting` is over.
    wait_at: Instant,
    /// The last departure of data.
    last_sent: Instant,
    /// Since when SND.UNA has not moved although data is outstanding.
    progress_at: Instant,
    /// What the peer's window makes the sender wait for.
    waiting: Waiting,
    /// Probes of a closed window since it was last open.
    probes: u8,
    /// Congestion control's timer was served and did not move on: it is not served before the next ACK.
    cc_timer_stuck: bool,
    /// Why nothing leaves.
    blocked: Blocked,
    /// SACK is in use.
    sack: bool,
    /// Timestamps are in use.
    timestamps: bool,
    /// The peer has sent a SACK block.
    sack_seen: bool,
    /// The peer has sent a DSACK block.
    dsack_seen: bool,
    /// What RACK learnt of the path in earlier flights.
    path: PathMemory,
    /// The RTO response has been asked at least once.
    pub(crate) rto_heard: bool,
}

/// Totals of a connection.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// Payload bytes sent, retransmissions included.
    bytes_sent: u64,
    /// Payload bytes retransmitted.
    bytes_retrans: u64,
    /// Payload bytes acknowledged.
    bytes_acked: u64,
    /// Wire segments with data sent.
    data_segs_out: u64,
    /// Wire segments retransmitted.
    total_retrans: u32,
    /// Retransmission timeouts.
    pub(crate) timeouts: u32,
}

/// What a sender with outstanding data needs.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) reserved: Reservations,
    pacer: Pacer,
    /// When the pacer permits what waits for it; [`Instant::FAR_FUTURE`] where nothing does.
    pace_at: Instant,
    /// Payload bytes of the largest packet known to have arrived.
    largest_acked: u16,
    /// When the peer counts as reneging; [`Instant::FAR_FUTURE`] unless the head is SACKed.
    pub(crate) reneging_at: Instant,
    pub(crate) window_use: WindowUse,
    /// End of the last segment smaller than the SMSS (Minshall's `snd_sml`).
    small_end: SeqNum,
    /// Segments of new data since the last ACK.
    released: u32,
    /// What follows the smallest RTT when that is too old.
    min_rtt: Successors,
}

impl Flight {
    fn new(una: SeqNum, timed: bool, path: PathMemory) -> Self {
        Self {
            board: Scoreboard::new(una, timed),
            recovery: Recovery::new(una, path),
            reserved: Reservations::default(),
            pacer: Pacer::default(),
            pace_at: Instant::FAR_FUTURE,
            largest_acked: 0,
            reneging_at: Instant::FAR_FUTURE,
            window_use: WindowUse::new(una),
            small_end: una,
            released: 0,
            min_rtt: Successors::default(),
        }
    }
}

impl Sender {
    /// A sender before ESTABLISHED: SND.UNA is `iss`, SND.NXT one more.
    pub(crate) fn new(config: &ConnConfig, iss: SeqNum) -> Self {
        let first = iss + 1;
        Self {
            buffer: SendBuffer::new(first),
            snd_una: iss,
            snd_nxt: first,
            window: PeerWindow::new(0, SeqNum(0), iss),
            smss: DEFAULT_SMSS,
            path_mtu: None,
            cc: None,
            rto: None,
            flight: None,
            ecn: None,
            rtt: Rtt::new(config.initial_rto, first),
            delivery: Delivery::new(),
            stats: Stats::default(),
            rto_at: Instant::FAR_FUTURE,
            wait_at: Instant::FAR_FUTURE,
            last_sent: Instant::ZERO,
            progress_at: Instant::ZERO,
            waiting: Waiting::Nothing,
            probes: 0,
            cc_timer_stuck: false,
            blocked: Blocked::State,
            sack: false,
            timestamps: false,
            sack_seen: false,
            dsack_seen: false,
            path: PathMemory::default(),
            rto_heard: false,
        }
    }

    /// The handshake is complete.
    pub(crate) fn open(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        let OpenParams { smss, snd_wnd, wl1, sack, timestamps, handshake_rtt, syn_retransmitted, ecn } =
            *params;
        self.snd_una = self.snd_nxt;
        self.window = PeerWindow::new(snd_wnd, wl1, self.snd_una);
        self.smss = smss.max(1);
        self.sack = sack;
        self.timestamps = timestamps;
        self.ecn = ecn.map(|agreed| Box::new(EcnSender::new(agreed, self.snd_una)));
        self.last_sent = ctx.now;
        self.progress_at = ctx.now;
        if syn_retransmitted {
            self.rtt.after_syn_timeout(config);
        }
        if let Some(rtt) = handshake_rtt {
            self.rtt.handshake(ctx.now, rtt, config, ctx.granularity);
        }
        // RFC 5681, section 3.1: after a lost SYN or SYN-ACK the initial window is one segment.
        let window = if syn_retransmitted {
            Window::from_bytes(u64::from(self.smss))
        } else {
            self.initial_window(config)
        };
        let mut init = CcInit::new(ctx.now, self.smss, window);
        init.granularity = ctx.granularity;
        self.cc = Some((config.policies.cc)(&init));
        self.rto = Some((config.policies.rto)());
        self.blocked = Blocked::No;
    }

    /// RFC 6928, section 2: min(10 SMSS, max(2 SMSS, 14600)), scaled to the configured number of segments.
    fn initial_window(&self, config: &ConnConfig) -> Window {
        let (smss, segments) = (u64::from(self.smss), u64::from(config.initial_window.max(1)));
        Window::from_bytes((segments * smss).min((2 * smss).max(segments * 1460)))
    }

    /// Copies what fits of `data` into the send buffer.
    pub(crate) fn write(&mut self, config: &ConnConfig, data: &[u8]) -> usize {
        self.buffer.write(data, config.send_buffer as usize)
    }

    /// Free send buffer in place, at most `max` bytes.
    pub(crate) fn writable_slices(&mut self, config: &ConnConfig, max: usize) -> [&mut [u8]; 2] {
        self.buffer.writable_slices(max, config.send_buffer as usize)
    }

    /// `n` bytes of the slices are filled.
    pub(crate) fn commit_write(&mut self, n: usize) {
        self.buffer.commit(n);
    }

    /// Free bytes of the send buffer.
    pub(crate) fn write_space(&self, config: &ConnConfig) -> usize {
        self.buffer.space(config.send_buffer as usize)
    }

    /// A FIN follows what is written.
    pub(crate) fn queue_fin(&mut self) {
        self.buffer.queue_fin();
    }

    /// Stream bytes `seq .. seq + len`, which must be in the send buffer.
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        self.buffer.payload(seq, len)
    }

    /// The path carries less, or may carry more: segments have `smss` payload bytes from here on.
    pub(crate) fn set_smss(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, smss: u32) {
        let old = core::mem::replace(&mut self.smss, smss.max(1));
        if let Some(flight) = self.flight.as_deref_mut() {
            // RFC 1191, section 5: what was dropped is sent again, and the window stays as it is.
            flight.board.mark_larger_than(self.smss);
        }
        let view = self.flow_view(ctx.now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.on_smss_change(&view, old);
        }
        self.restart_rto(ctx.now, config);
    }

    pub(crate) const fn smss(&self) -> u32 {
        self.smss
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    pub(crate) const fn snd_una(&self) -> SeqNum {
        self.snd_una
    }

    pub(crate) const fn snd_nxt(&self) -> SeqNum {
        self.snd_nxt
    }

    /// SEG.SEQ of a segment without data: SND.NXT, unless the peer has taken back so much window that it would
    /// not accept that number, nor anything else that the segment says; then the window's edge.
    ///
    /// `grain` is the unit in bytes in which the peer states its window: an edge may seem to move back by less
    /// than that without meaning it. Behind a closed window the peer takes nothing but the edge, and drops
    /// retransmissions with all that they say.
    pub(crate) fn seq_without_data(&self, grain: u32) -> SeqNum {
        // Before ESTABLISHED the window is not known.
        if self.cc.is_none() {
            return self.snd_nxt;
        }
        let edge = self.wnd_end();
        let taken_back = self.snd_nxt.saturating_distance_from(edge);
        if taken_back < grain && self.window.wnd() > 0 { self.snd_nxt } else { edge.min(self.snd_nxt) }
    }

    /// The right edge of the peer's window.
    pub(crate) fn wnd_end(&self) -> SeqNum {
        self.snd_una + self.window.wnd()
    }

    /// The end of a retransmission of `[start, end)` that the peer can take where it has taken back window: old
    /// data inside the window is retransmitted, and the rest is not (RFC 9293, section 3.8.6, SHLD-16; a peer
    /// may drop a segment that ends beyond the edge as a whole). The head goes out into a closed window too, as
    /// its probe. `None` where nothing of it can be sent.
    pub(crate) fn fit_window(&self, start: SeqNum, end: SeqNum) -> Option<SeqNum> {
        let edge = self.wnd_end();
        if end.le(edge) {
            return Some(end);
        }
        match edge.saturating_distance_from(start) {
            0 if start == self.snd_una => Some(end.min(start + self.smss)),
            0 => None,
            room if room < self.smss => Some(edge),
            room => Some(start + room / self.smss * self.smss),
        }
    }

    /// Every byte written is acknowledged; the FIN need not be.
    pub(crate) fn is_delivered(&self) -> bool {
        self.snd_una.ge(self.buffer.end())
    }

    /// Nothing is unsent or unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        let first = if self.cc.is_some() { self.snd_una } else { self.snd_nxt };
        self.buffer.limit() == first
    }

    /// The connection is over: nothing is sent any more, memory is given back.
    pub(crate) fn discard(&mut self) {
        self.buffer.discard();
        self.flight = None;
        self.rto_at = Instant::FAR_FUTURE;
        self.stop_waiting();
        self.blocked = Blocked::State;
    }

    /// Gives back memory that an idle connection does not need.
    pub(crate) fn trim(&mut self) {
        self.buffer.trim();
        if let Some(flight) = self.flight.as_deref()
            && flight.board.is_empty()
            && flight.reserved.is_empty()
        {
            self.path = flight.recovery.rack.path;
            self.flight = None;
        }
    }

    /// Swaps the congestion control.
    pub(crate) fn swap_cc(&mut self, ctx: &mut Ctx<'_>, make: &NewCongestionControl) {
        let Some(cc) = self.cc.as_mut() else { return };
        let decision = cc.decision();
        let mut init = CcInit::new(ctx.now, self.smss, decision.window);
        init.ssthresh = decision.ssthresh;
        init.granularity = ctx.granularity;
        *cc = make(&init);
    }

    /// SACK is in use.
    pub(crate) const fn has_sack(&self) -> bool {
        self.sack
    }

    /// `None` before [`open`](Self::open).
    pub(crate) fn cc(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        self.cc.as_deref_mut()
    }

    /// `None` before [`open`](Self::open).
    pub(crate) fn rto_response(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        self.rto.as_deref_mut()
    }
}
