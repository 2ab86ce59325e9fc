//! The sending half of a connection.
//!
//! | file | holds |
//! |---|---|
//! | `stream.rs` | state of the whole connection: SND.*, path estimates, congestion control, totals |
//! | `losses.rs` | state once something was lost: the RTO response, totals of repairs |
//! | `flight.rs` | state while data is outstanding: scoreboard, recovery, pacer, reservations, decision |
//! | `data/buffer.rs`, `data/chunks.rs` | bytes from SND.UNA on: in a ring, or in shared memory |
//! | `allowance.rs`, `data/write_space.rs` | how many there may be, and what a writer waits for |
//! | `window.rs`, `window/wait.rs` | the peer's window, and what the sender waits for because of it |
//! | `measure/chrono.rs` | time with something to deliver, and what limited the sender meanwhile |
//! | `measure/rtt.rs`, `measure/min_rtt.rs`, `measure/rate.rs` | RTT, RTO, smallest RTT, delivery rate |
//! | `on_ack.rs` | processing an ACK: its facts, and the order of the actions |
//! | `episode.rs` | recovery episodes: start, end, undo |
//! | `probe.rs` | tail loss probes |
//! | `rto_response.rs` | retransmission timeouts, and the steps of the response to them |
//! | `congestion.rs` | telling congestion control of events, and its decision |
//! | `ecn.rs`, `ece.rs` | ECN: state, and the effect of marks |
//! | `ecn/agreement.rs` | what the handshake agreed on for ECN |
//! | `ecn/accecn.rs` | what the peer tells by accurate ECN |
//! | `measure/path_mtu.rs`, `mtu/packet_too_big.rs` | the path MTU according to ICMP |
//! | `mtu/device_mtu.rs` | the MTU of the device has changed |
//! | `mtu/black_hole.rs`, `mtu/mtu_search.rs` | packetization layer path MTU discovery (RFC 4821) |
//! | `next.rs`, `gate.rs`, `data/new_data.rs` | what to send: windows, Nagle, SWS avoidance |
//! | `pacer.rs` | when the next data may be sent |
//! | `reserve.rs`, `reservations.rs` | packets in the egress scheduler |
//! | `sent.rs` | what a departure commits |
//! | `timers.rs` | every deadline of the sender |
//! | `view.rs` | what policies and `info` see |
//!
//! [`Sender`] unwraps the flight once per event. The rest are methods of [`Flight`] and of the
//! types that it owns; they take the [`Stream`] as `snd`, and cannot find the flight missing.
//! Before the handshake is complete a policy without memory stands in for the two of the sender, so
//! they need no unwrapping either. Loss recovery itself decides in [`recovery`](crate::recovery).

mod allowance;
mod congestion;
mod data;
mod ece;
pub(crate) mod ecn;
mod episode;
mod flight;
mod gate;
mod losses;
mod measure;
mod mtu;
mod next;
mod on_ack;
mod pacer;
mod probe;
mod reservations;
mod reserve;
mod rto_response;
mod sent;
mod stream;
mod timers;
mod view;
mod window;

#[cfg(test)]
mod tests;

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::pattern::Pattern;
use crate::policy::{CongestionControl, NewCongestionControl, NewRtoResponse, RtoResponse};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{Ecn, SackBlocks, TcpFlags};
use alloc::boxed::Box;
use bytes::Bytes;
pub(crate) use data::buffer::{Usage, is_shared};
pub(crate) use data::write_space::WriteSpace;
use ecn::EcnSender;
use ecn::accecn::AccEcnFields;
use ecn::agreement::EcnAgreement;
use flight::Flight;
use measure::chrono::Spending;
use stream::Stream;

/// The handshake's results for the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParams {
    /// Payload bytes of a full segment.
    pub(crate) smss: u32,
    /// Payload bytes that every path carries: no reason to send less.
    pub(crate) least_smss: u16,
    /// The peer's window in bytes.
    pub(crate) snd_wnd: u32,
    /// Sequence number of the segment that announced it (SND.WL1).
    pub(crate) wl1: SeqNum,
    /// SACK is in use.
    pub(crate) sack: bool,
    /// Timestamps are in use.
    pub(crate) timestamps: bool,
    /// RTT of the handshake; `None` if a SYN was retransmitted.
    pub(crate) handshake_rtt: Option<Duration>,
    /// The timer of our SYN or SYN-ACK has expired (RFC 6298, 5.7).
    pub(crate) syn_timed_out: bool,
    /// It has, and nothing shows that the SYN and its answer were only late (RFC 5681, section
    /// 3.1).
    pub(crate) syn_lost: bool,
    /// ECN, if both sides agreed on it.
    pub(crate) ecn: Option<EcnAgreement>,
    /// Payload bytes that arrive according to earlier connections, and until when that is believed.
    pub(crate) path: Option<(u32, Instant)>,
    /// Data that our SYN carried.
    pub(crate) early: EarlyData,
}

/// Data that our SYN carried (RFC 7413).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlyData {
    /// Bytes sent.
    pub(crate) sent: u32,
    /// Bytes that the peer has acknowledged with the SYN; the rest is sent like data that never
    /// was.
    pub(crate) acked: u32,
}

/// Limits of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Maximum payload in one packet that the device accepts; at least the SMSS.
    pub(crate) max_payload: u32,
    /// Maximum payload of new data in packets sent back to back, if neither the pacer nor a clock
    /// limits it; at least `max_payload`.
    pub(crate) max_run: u32,
    /// Departures closer together than this are treated as one; for the pacer's quantum.
    pub(crate) departure_tick: Duration,
}

/// The sender's view of a segment with ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSegment {
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    /// RCV.NXT, for the age of the window.
    pub(crate) rcv_nxt: SeqNum,
    /// Window in bytes, scaled.
    pub(crate) window: u32,
    /// Empty if SACK is not in use.
    pub(crate) sack: SackBlocks,
    /// TSecr, if timestamps are in use.
    pub(crate) tsecr: Option<u32>,
    /// Our timestamp clock at arrival.
    pub(crate) ts_now: u32,
    pub(crate) ece: bool,
    /// What it says if accurate ECN is in use.
    pub(crate) accecn: AccEcnFields,
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

/// The sending half of a connection. The connection calls [`open`](Self::open) once; then, after
/// every other call, [`next`](Self::next) until it returns nothing; [`sent`](Self::sent) for each
/// packet sent; [`on_ack`](Self::on_ack) for every acceptable segment whose ACK it
/// [accepts](Self::accepts); [`on_timeout`](Self::on_timeout) at
/// [`next_timeout`](Self::next_timeout).
#[derive(Debug)]
pub(crate) struct Sender {
    stream: Stream,
    /// From the first departure until the connection has been idle for a while.
    flight: Option<Box<Flight>>,
}

impl Sender {
    /// A sender before ESTABLISHED: SND.UNA is `iss`, SND.NXT one more.
    pub(crate) fn new(config: &ConnConfig, iss: SeqNum) -> Self {
        Self { stream: Stream::new(config, iss), flight: None }
    }

    /// The stream follows a pattern, until something else is written.
    pub(crate) fn expect(&mut self, pattern: Pattern) {
        self.stream.buffer.expect(pattern);
    }

    /// The handshake is complete.
    pub(crate) fn open(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        self.stream.open(ctx, config, params);
    }

    /// Data was sent before the peer acknowledged our SYN-ACK, which it has: `rtt` after that was
    /// sent, if it was only sent once. The timer of the data starts anew then, as this acknowledges
    /// something new (RFC 6298, 5.3).
    pub(crate) fn on_early_handshake(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        self.stream.rtt.handshake(ctx.now, rtt, config, ctx.host.granularity);
        if let Some((snd, flight)) = self.in_flight() {
            flight.restart_rto(snd, ctx.now, config);
        }
    }

    /// The stream and the flight, if there is one.
    fn in_flight(&mut self) -> Option<(&mut Stream, &mut Flight)> {
        let flight = self.flight.as_deref_mut()?;
        flight.refresh_decision(&self.stream);
        Some((&mut self.stream, flight))
    }

    /// Copies as much of `data` as fits into the send buffer.
    pub(crate) fn write(&mut self, config: &ConnConfig, data: &[u8]) -> usize {
        let limit = self.write_limit(config);
        self.stream.buffer.write(data, limit)
    }

    /// Takes as much of `chunk` as fits into the send buffer, but no more than `most` bytes, off
    /// its front.
    pub(crate) fn write_chunk(&mut self, config: &ConnConfig, chunk: &mut Bytes, most: usize) -> usize {
        let limit = self.stream.buffer.len() + self.write_space(config).min(most);
        self.stream.buffer.write_chunk(chunk, limit)
    }

    /// Free send buffer in place, at most `max` bytes.
    pub(crate) fn writable_slices(&mut self, config: &ConnConfig, max: usize) -> [&mut [u8]; 2] {
        let limit = self.write_limit(config);
        self.stream.buffer.writable_slices(max, limit)
    }

    /// What is used of the send buffer's memory.
    pub(crate) fn usage(&self) -> Usage {
        self.stream.buffer.usage()
    }

    /// Bytes written and not acknowledged.
    pub(crate) fn buffered(&self) -> usize {
        self.stream.buffer.len()
    }

    /// `n` bytes of the slices are filled.
    pub(crate) fn commit_write(&mut self, n: usize) {
        self.stream.buffer.commit(n);
    }

    /// How far writes may fill the buffer now.
    fn write_limit(&self, config: &ConnConfig) -> usize {
        self.stream.buffer.len() + self.write_space(config)
    }

    /// A record ends with what is written.
    pub(crate) fn end_record(&mut self) {
        self.stream.buffer.end_record();
    }

    /// A FIN follows the written data.
    pub(crate) fn queue_fin(&mut self) {
        self.stream.buffer.queue_fin();
    }

    /// Sees to it that two slices contain stream bytes `seq .. seq + len`. Call it before
    /// [`payload`](Self::payload).
    #[inline]
    pub(crate) fn gather(&mut self, seq: SeqNum, len: u32) {
        self.stream.buffer.gather(seq, len);
    }

    /// Stream bytes `seq .. seq + len`, which must be in the send buffer.
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        self.stream.buffer.payload(seq, len)
    }

    pub(crate) const fn smss(&self) -> u32 {
        self.stream.smss()
    }

    /// Why nothing more is sent, after [`next`](Self::next) returned nothing. A window that is
    /// full, or an application that has written no more, is not the reason while data waits in the
    /// egress scheduler.
    pub(crate) fn blocked(&self) -> Blocked {
        match self.stream.blocked {
            Blocked::App | Blocked::ReceiveWindow | Blocked::CongestionWindow
                if self.waits_in_scheduler() =>
            {
                Blocked::Scheduler
            }
            blocked => blocked,
        }
    }

    fn waits_in_scheduler(&self) -> bool {
        self.flight.as_deref().is_some_and(|flight| flight.reserved.holds_data())
    }

    /// The egress scheduler has deferred the connection's data.
    pub(crate) fn on_deferred(&mut self, now: Instant) {
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.chrono.turn(now, Spending::Scheduler);
        }
    }

    /// Payload bytes that have not been sent.
    pub(crate) fn unsent(&self) -> u32 {
        self.stream.buffer.end().saturating_distance_from(self.stream.nxt)
    }

    /// Something sent has not been acknowledged.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.stream.una != self.stream.nxt
    }

    /// Routers may fragment what leaves: the path carries less than the smallest segments.
    pub(crate) fn may_fragment(&self) -> bool {
        self.stream.path_mtu.as_deref().is_some_and(|path| path.may_fragment)
    }

    /// True if [`take_path_news`](Self::take_path_news) has some.
    pub(crate) fn has_path_news(&self) -> bool {
        self.stream.path_mtu.as_deref().is_some_and(|path| path.news.is_some())
    }

    /// The payload of segments that were newly shown to arrive, and that of full ones.
    pub(crate) fn take_path_news(&mut self) -> Option<(u32, u32)> {
        let path = self.stream.path_mtu.as_deref_mut()?;
        let news = path.news.take()?;
        Some((u32::from(news), path.full))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.stream.rtt.srtt()
    }

    pub(crate) const fn snd_una(&self) -> SeqNum {
        self.stream.una
    }

    pub(crate) const fn snd_nxt(&self) -> SeqNum {
        self.stream.nxt
    }

    /// SEG.SEQ of a segment without data: SND.NXT, or the window's edge if the peer has shrunk its
    /// window so far that it would not accept SND.NXT, nor anything else in the segment.
    ///
    /// `grain` is the unit of the peer's window in bytes: an edge may appear to move back by less
    /// than that unintentionally. While its window is closed the peer only accepts the edge, and
    /// drops retransmissions with everything they carry.
    pub(crate) fn seq_without_data(&self, grain: u32) -> SeqNum {
        let snd = &self.stream;
        // Before ESTABLISHED the window is not known.
        if !snd.open {
            return snd.nxt;
        }
        let edge = snd.wnd_end();
        let taken_back = snd.nxt.saturating_distance_from(edge);
        if taken_back < grain && snd.window.wnd() > 0 { snd.nxt } else { edge.min(snd.nxt) }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.stream.memory() + self.flight.as_deref().map_or(0, Flight::memory)
    }

    /// True if nothing is unsent or unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.stream.is_empty()
    }

    /// ECN state for outgoing data; `None` if ECN is not in use.
    pub(crate) fn ecn(&self) -> Option<&EcnSender> {
        self.stream.ecn.as_deref()
    }

    /// The codepoint of new data. `l4s`: ECT(1) whatever congestion control asks for.
    pub(crate) fn codepoint(&self, l4s: bool) -> Ecn {
        match self.stream.ecn.as_deref() {
            Some(ecn) if ecn.capable => {
                let l4s = l4s || self.flight.as_deref().is_some_and(|flight| flight.decision.l4s);
                if ecn.accurate.is_some() && l4s { Ecn::Ect1 } else { Ecn::Ect0 }
            }
            _ => Ecn::NotEct,
        }
    }

    /// True if the peer gives accurate feedback (RFC 9768).
    pub(crate) fn has_accurate_ecn(&self) -> bool {
        self.stream.ecn.as_deref().is_some_and(|ecn| ecn.accurate.is_some())
    }

    /// True if the ECN bits of a segment say nothing new.
    #[inline]
    pub(crate) fn expects_ecn(&self, flags: TcpFlags) -> bool {
        match self.stream.ecn.as_deref().and_then(|ecn| ecn.accurate.as_ref()) {
            Some(feedback) => feedback.expects(flags),
            None => !flags.intersects(TcpFlags::ACE),
        }
    }

    /// The connection has ended: nothing more is sent, memory is freed.
    pub(crate) fn discard(&mut self, now: Instant) {
        let snd = &mut self.stream;
        snd.buffer.discard();
        snd.blocked = Blocked::State;
        snd.end_rto_recovery(now);
        self.end_flight(now);
    }

    /// True if [`shrink`](Self::shrink) would free memory.
    pub(crate) fn has_spare_memory(&self) -> bool {
        self.stream.buffer.has_spare()
    }

    /// Frees memory that what is unsent or unacknowledged does not need.
    pub(crate) fn shrink(&mut self) {
        self.stream.buffer.shrink();
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn trim(&mut self, now: Instant) {
        self.stream.buffer.trim();
        if self.flight.as_deref().is_some_and(Flight::is_idle) {
            self.end_flight(now);
        }
    }

    /// Frees the flight's memory, and keeps what outlives it.
    fn end_flight(&mut self, now: Instant) {
        if let Some(flight) = self.flight.take() {
            self.stream.path = flight.recovery.rack.path;
            self.stream.keep_times(now, flight.chrono.times(now));
        }
    }

    /// Replaces the congestion control.
    pub(crate) fn swap_cc(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, make: &NewCongestionControl) {
        if !self.stream.open {
            return;
        }
        let decision = self.stream.ask_for_decision();
        let mut init = self.stream.cc_init(ctx, config, decision.window);
        init.ssthresh = decision.ssthresh;
        self.stream.cc = make(&init);
        self.forget_decision();
    }

    /// Replaces the response to timeouts. The new one takes effect at the next timeout.
    pub(crate) fn swap_rto_response(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        make: &NewRtoResponse,
    ) {
        if !self.stream.open {
            return;
        }
        match self.in_flight() {
            Some((snd, flight)) => flight.swap_rto_response(snd, ctx, config, make),
            None => self.stream.losses_mut().swap_response(make),
        }
    }

    /// The congestion control, for configuration. `None` before [`open`](Self::open).
    pub(crate) fn cc(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        self.forget_decision();
        let Stream { cc, open, .. } = &mut self.stream;
        open.then_some(&mut **cc)
    }

    /// The response to timeouts, for configuration. `None` before [`open`](Self::open).
    pub(crate) fn rto_response(&mut self, config: &ConnConfig) -> Option<&mut (dyn RtoResponse + 'static)> {
        self.stream.open.then(|| self.stream.losses_mut().response_mut(config))
    }

    /// The congestion control may have changed: its decision is fetched again before the next
    /// event.
    fn forget_decision(&mut self) {
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.forget_decision();
        }
    }
}
