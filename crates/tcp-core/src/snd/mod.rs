//! The sending half of a connection.

use crate::config::ConnConfig;
use crate::conn::Ctx;
use crate::events::WakeReason;
use crate::info::Info;
use crate::packet::SendReason;
use crate::policy::sched::SegmentClass;
use crate::policy::{CongestionControl, NewCongestionControl, RtoResponse};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::SackBlocks;
use core::num::NonZeroU16;

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
}

/// Limits of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Most payload bytes in one packet that the device takes; at least the SMSS.
    pub(crate) max_payload: u32,
}

/// What the sender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This may leave.
    Send(Outgoing),
    /// Nothing may leave; `Info::blocked` says why.
    Blocked,
}

/// One packet of the sender: stream bytes, a FIN, or a window probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) class: SegmentClass,
    pub(crate) reason: SendReason,
    /// First sequence number.
    pub(crate) seq: SeqNum,
    /// Payload bytes.
    pub(crate) len: u32,
    /// Payload bytes per wire segment, where there are several.
    pub(crate) segment_size: Option<NonZeroU16>,
    /// Carries our FIN.
    pub(crate) fin: bool,
    /// Ends a write that empties the send buffer.
    pub(crate) psh: bool,
}

/// What a segment with ACK says to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSegment {
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
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

/// What an ACK was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckVerdict {
    /// Acknowledges what was never sent.
    TooNew,
    /// Older than the largest window seen (RFC 5961, section 5.2).
    TooOld,
    /// Processed.
    Fine {
        /// Sequence numbers newly acknowledged.
        acked: u32,
        /// Our FIN is acknowledged; also on later ACKs.
        fin_acked: bool,
        /// Send buffer was freed.
        freed: bool,
    },
}

/// What an expired timer of the sender means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutVerdict {
    Fine,
    /// The connection must be given up.
    GiveUp,
}

/// SND.*, the send buffer, what was sent, and the policies of the sender.
#[derive(Debug)]
pub(crate) struct Sender {}

#[expect(unused_variables, clippy::todo, reason = "replaced by the sender")]
impl Sender {
    /// A sender before ESTABLISHED: SND.UNA is `iss`, SND.NXT one more.
    pub(crate) fn new(config: &ConnConfig, iss: SeqNum) -> Self {
        todo!()
    }

    /// The handshake is complete.
    pub(crate) fn open(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        todo!()
    }

    /// Copies what fits of `data` into the send buffer.
    pub(crate) fn write(&mut self, config: &ConnConfig, data: &[u8]) -> usize {
        todo!()
    }

    /// Free send buffer in place, at most `max` bytes.
    pub(crate) fn writable_slices(&mut self, config: &ConnConfig, max: usize) -> [&mut [u8]; 2] {
        todo!()
    }

    /// `n` bytes of the slices are filled.
    pub(crate) fn commit_write(&mut self, n: usize) {
        todo!()
    }

    /// Free bytes of the send buffer.
    pub(crate) fn write_space(&self, config: &ConnConfig) -> usize {
        todo!()
    }

    /// A FIN follows what is written.
    pub(crate) fn queue_fin(&mut self) {
        todo!()
    }

    /// What may leave at `now`. Pure as far as sequence space is concerned.
    pub(crate) fn next(&mut self, now: Instant, config: &ConnConfig, limits: &SendLimits) -> Next {
        todo!()
    }

    /// The packet waits in the egress scheduler under `serial`.
    pub(crate) fn reserve(&mut self, out: &Outgoing, serial: u64) {
        todo!()
    }

    /// A reserved packet is about to leave: what is still to be sent of it.
    pub(crate) fn claim(
        &mut self,
        class: SegmentClass,
        reason: SendReason,
        seq: SeqNum,
        len: u32,
    ) -> Option<Outgoing> {
        todo!()
    }

    /// A reserved retransmission that became void, by its serial.
    pub(crate) fn take_voided(&mut self) -> Option<u64> {
        todo!()
    }

    /// Stream bytes `seq .. seq + len`, which must be in the send buffer.
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        todo!()
    }

    /// The packet left.
    pub(crate) fn sent(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &Outgoing) {
        todo!()
    }

    /// A segment with ACK arrived.
    pub(crate) fn on_ack(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, ack: &AckSegment) -> AckVerdict {
        todo!()
    }

    /// The sender's earliest deadline.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, WakeReason)> {
        todo!()
    }

    /// Serves every deadline of the sender up to `ctx.now`.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) -> TimeoutVerdict {
        todo!()
    }

    /// The path carries less: segments have `smss` payload bytes from here on.
    pub(crate) fn set_smss(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, smss: u32) {
        todo!()
    }

    pub(crate) const fn smss(&self) -> u32 {
        todo!()
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        todo!()
    }

    pub(crate) const fn snd_una(&self) -> SeqNum {
        todo!()
    }

    pub(crate) const fn snd_nxt(&self) -> SeqNum {
        todo!()
    }

    /// Nothing is unsent or unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        todo!()
    }

    /// Since when unacknowledged data has made no progress, or a zero window has blocked.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        todo!()
    }

    /// The connection is over: nothing is sent any more, memory is given back.
    pub(crate) fn discard(&mut self) {
        todo!()
    }

    /// Gives back memory that an idle connection does not need.
    pub(crate) fn trim(&mut self) {
        todo!()
    }

    /// Swaps the congestion control.
    pub(crate) fn swap_cc(&mut self, ctx: &mut Ctx<'_>, make: &NewCongestionControl) {
        todo!()
    }

    /// `None` before [`open`](Self::open).
    pub(crate) fn cc(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        todo!()
    }

    /// `None` before [`open`](Self::open).
    pub(crate) fn rto_response(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        todo!()
    }

    /// Fills in the sender's fields.
    pub(crate) fn info(&self, info: &mut Info) {
        todo!()
    }
}
