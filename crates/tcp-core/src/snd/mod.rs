//! The sending half of a connection.
//!
//! | file | holds |
//! |---|---|
//! | `stream.rs` | what lasts as long as the connection: SND.*, what is known of the path, policies, totals |
//! | `flight.rs` | what exists while data is outstanding: scoreboard, recovery, pacer, reservations, decision |
//! | `buffer.rs` | the stream's bytes from SND.UNA on |
//! | `window.rs`, `window_wait.rs` | the peer's window, and what it makes the sender wait for |
//! | `rtt.rs`, `min_rtt.rs`, `rate.rs` | RTT, RTO, smallest RTT, delivery rate |
//! | `on_ack.rs` | what an ACK says: its facts, and the order in which they are acted upon |
//! | `episode.rs` | an episode of recovery begins, ends, or is taken back |
//! | `probe.rs` | tail loss probes |
//! | `rto_response.rs` | an expired retransmission timer, and the steps of the response to it |
//! | `congestion.rs` | what congestion control is told, and its decision |
//! | `ecn.rs`, `ece.rs` | ECN: what is remembered, and what ECE does |
//! | `path_mtu.rs`, `packet_too_big.rs` | what ICMP says of the path's MTU |
//! | `next.rs`, `gate.rs`, `new_data.rs` | what may leave: the choice, the windows, Nagle and SWS avoidance |
//! | `pacer.rs` | when the next data may leave |
//! | `reserve.rs`, `reservations.rs` | packets that wait in the egress scheduler |
//! | `sent.rs` | what a departure commits |
//! | `timers.rs` | every deadline of the sender |
//! | `view.rs` | what policies and `info` see |
//!
//! [`Sender`] unwraps the flight once per event. What follows are methods of [`Flight`], which is then there, and of the
//! types that it owns; they take the [`Stream`] as `snd`. Loss recovery itself decides in [`recovery`](crate::recovery).

mod buffer;
mod congestion;
mod ece;
pub(crate) mod ecn;
mod episode;
mod flight;
mod gate;
mod min_rtt;
mod new_data;
mod next;
mod on_ack;
mod pacer;
mod packet_too_big;
mod path_mtu;
mod probe;
mod rate;
mod reservations;
mod reserve;
mod rto_response;
mod rtt;
mod sent;
mod stream;
mod timers;
mod view;
mod window;
mod window_wait;

#[cfg(test)]
mod tests;

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::policy::cc::CcInit;
use crate::policy::{CongestionControl, NewCongestionControl, NewRtoResponse, RtoResponse};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::SackBlocks;
use alloc::boxed::Box;
use ecn::{EcnAgreement, EcnSender};
use flight::Flight;
use stream::Stream;

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
    pub(crate) ecn: Option<EcnAgreement>,
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

/// The sending half of a connection.
///
/// Called by the connection: [`open`](Self::open) once; then [`next`](Self::next) until it gives nothing, after
/// every other call; [`sent`](Self::sent) for what left; [`on_ack`](Self::on_ack) for every acceptable segment
/// whose ACK it [accepts](Self::accepts); [`on_timeout`](Self::on_timeout) at [`next_timeout`](Self::next_timeout).
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

    /// The handshake is complete.
    pub(crate) fn open(&mut self, ctx: &Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        self.stream.open(ctx, config, params);
    }

    /// What an event is about, if there is a flight.
    fn in_flight(&mut self) -> Option<(&mut Stream, &mut Flight)> {
        let flight = self.flight.as_deref_mut()?;
        flight.refresh_decision(&self.stream);
        Some((&mut self.stream, flight))
    }

    /// Copies what fits of `data` into the send buffer.
    pub(crate) fn write(&mut self, config: &ConnConfig, data: &[u8]) -> usize {
        self.stream.buffer.write(data, config.send_buffer as usize)
    }

    /// Free send buffer in place, at most `max` bytes.
    pub(crate) fn writable_slices(&mut self, config: &ConnConfig, max: usize) -> [&mut [u8]; 2] {
        self.stream.buffer.writable_slices(max, config.send_buffer as usize)
    }

    /// `n` bytes of the slices are filled.
    pub(crate) fn commit_write(&mut self, n: usize) {
        self.stream.buffer.commit(n);
    }

    /// Free bytes of the send buffer.
    pub(crate) fn write_space(&self, config: &ConnConfig) -> usize {
        self.stream.buffer.space(config.send_buffer as usize)
    }

    /// A FIN follows what is written.
    pub(crate) fn queue_fin(&mut self) {
        self.stream.buffer.queue_fin();
    }

    /// Stream bytes `seq .. seq + len`, which must be in the send buffer.
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        self.stream.buffer.payload(seq, len)
    }

    pub(crate) const fn smss(&self) -> u32 {
        self.stream.smss
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

    /// SEG.SEQ of a segment without data: SND.NXT, unless the peer has taken back so much window that it would
    /// not accept that number, nor anything else that the segment says; then the window's edge.
    ///
    /// `grain` is the unit in bytes in which the peer states its window: an edge may seem to move back by less
    /// than that without meaning it. Behind a closed window the peer takes nothing but the edge, and drops
    /// retransmissions with all that they say.
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

    /// Every byte written is acknowledged; the FIN need not be.
    pub(crate) fn is_delivered(&self) -> bool {
        self.stream.una.ge(self.stream.buffer.end())
    }

    /// Nothing is unsent or unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.stream.is_empty()
    }

    /// What ECN puts into outgoing data; `None` where ECN is not in use.
    pub(crate) fn ecn(&self) -> Option<&EcnSender> {
        self.stream.ecn.as_deref()
    }

    /// The connection is over: nothing is sent any more, memory is given back.
    pub(crate) fn discard(&mut self) {
        let snd = &mut self.stream;
        snd.buffer.discard();
        snd.rto_at = Instant::FAR_FUTURE;
        snd.blocked = Blocked::State;
        self.flight = None;
    }

    /// Gives back memory that an idle connection does not need.
    pub(crate) fn trim(&mut self) {
        self.stream.buffer.trim();
        if let Some(flight) = self.flight.as_deref()
            && flight.is_idle()
        {
            self.stream.path = flight.recovery.rack.path;
            self.flight = None;
        }
    }

    /// Swaps the congestion control.
    pub(crate) fn swap_cc(&mut self, ctx: &Ctx<'_>, make: &NewCongestionControl) {
        if !self.stream.open {
            return;
        }
        let decision = self.stream.ask_for_decision();
        let mut init = CcInit::new(ctx.now, self.stream.smss, decision.window);
        init.ssthresh = decision.ssthresh;
        init.granularity = ctx.granularity;
        self.stream.cc = make(&init);
        self.forget_decision();
    }

    /// Replaces the response to timeouts. The new one begins with the next expiry.
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
            None => self.stream.swap_rto_response(make),
        }
    }

    /// The congestion control, to be looked at or set. `None` before [`open`](Self::open).
    pub(crate) fn cc(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        self.forget_decision();
        let Stream { cc, open, .. } = &mut self.stream;
        open.then_some(&mut **cc)
    }

    /// The response to timeouts, to be looked at or set. `None` before [`open`](Self::open).
    pub(crate) fn rto_response(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        let Stream { response, open, .. } = &mut self.stream;
        open.then_some(&mut **response)
    }

    /// The congestion control may have changed: its decision is asked for before the next event.
    fn forget_decision(&mut self) {
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.forget_decision();
        }
    }
}
