//! The receiving half of a connection.

#[cfg_attr(not(test), expect(dead_code, reason = "the receiver's data path uses it once it is built"))]
pub(crate) mod assembler;

use crate::config::ConnConfig;
use crate::conn::Ctx;
use crate::info::Info;
use crate::packet::SendReason;
use crate::policy::{AckPolicy, NewAckPolicy};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{Payload, SackBlocks};

/// What the handshake settled for the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParams {
    /// The peer's initial sequence number. The window that our SYN announced began after it.
    pub(crate) irs: SeqNum,
    /// Shift of our window field.
    pub(crate) wscale: u8,
    /// Payload bytes of the largest segment that the peer may send.
    pub(crate) rmss: u32,
    /// SACK is in use.
    pub(crate) sack: bool,
    /// RTT of the handshake; none where a SYN was retransmitted.
    pub(crate) handshake_rtt: Option<Duration>,
}

/// Data, or a FIN, that arrived in the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    /// First sequence number.
    pub(crate) seq: SeqNum,
    pub(crate) payload: Payload<'a>,
    pub(crate) fin: bool,
    pub(crate) psh: bool,
    pub(crate) urg: bool,
    /// Congestion experienced.
    pub(crate) ce: bool,
    /// Wire segments that it stands for.
    pub(crate) segments: u32,
    /// Age of its TSecr.
    pub(crate) ts_rtt: Option<Duration>,
    /// The sender's smoothed RTT.
    pub(crate) srtt: Option<Duration>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// There is more to read.
    pub(crate) readable: bool,
    /// Everything up to and including the peer's FIN has arrived.
    pub(crate) fin: bool,
}

/// What goes into a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckNumbers {
    pub(crate) ack: SeqNum,
    /// Window field, shifted.
    pub(crate) window: u16,
    pub(crate) sack: SackBlocks,
}

/// RCV.*, the receive buffer, and the ACK policy.
#[derive(Debug)]
pub(crate) struct Receiver {}

#[expect(unused_variables, clippy::todo, reason = "replaced by the receiver")]
impl Receiver {
    pub(crate) fn new(config: &ConnConfig) -> Self {
        todo!()
    }

    /// The handshake is complete.
    pub(crate) fn open(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        todo!()
    }

    /// The test of RFC 9293, section 3.10.7.4 (table 6); `len` counts SYN and FIN.
    pub(crate) fn acceptable(&self, seq: SeqNum, len: u32) -> bool {
        todo!()
    }

    pub(crate) fn on_data(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        incoming: &Incoming<'_>,
    ) -> Received {
        todo!()
    }

    /// A segment failed the acceptance test (or PAWS): an ACK is owed.
    pub(crate) fn on_unacceptable(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, seq: SeqNum, len: u32) {
        todo!()
    }

    /// An ACK is owed at once, for `reason`.
    pub(crate) fn oblige(&mut self, reason: SendReason) {
        todo!()
    }

    /// Why an ACK is to be sent at once, where one is, beyond the `acks_queued` that wait in the scheduler.
    pub(crate) fn ack_wanted(&self, acks_queued: u8) -> Option<SendReason> {
        todo!()
    }

    pub(crate) fn has_out_of_order(&self) -> bool {
        todo!()
    }

    /// What a segment built at this moment says, with at most `max_sack_blocks`.
    pub(crate) fn ack_numbers(&self, config: &ConnConfig, max_sack_blocks: usize) -> AckNumbers {
        todo!()
    }

    /// A segment with these numbers left; `pure`: without data.
    pub(crate) fn ack_sent(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        pure: bool,
        reason: SendReason,
        numbers: &AckNumbers,
    ) {
        todo!()
    }

    pub(crate) const fn rcv_nxt(&self) -> SeqNum {
        todo!()
    }

    /// The highest acknowledgment number sent (Last.ACK.sent of RFC 7323).
    pub(crate) const fn highest_ack(&self) -> SeqNum {
        todo!()
    }

    /// RCV.WND in bytes.
    pub(crate) fn window(&self) -> u32 {
        todo!()
    }

    /// Bytes that can be read.
    pub(crate) fn readable(&self) -> usize {
        todo!()
    }

    pub(crate) fn read(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, buf: &mut [u8]) -> usize {
        todo!()
    }

    pub(crate) fn peek(&self) -> [&[u8]; 2] {
        todo!()
    }

    pub(crate) fn consume(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, n: usize) {
        todo!()
    }

    /// The policy's timer or the hold limit.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        todo!()
    }

    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        todo!()
    }

    /// Swaps the ACK policy.
    pub(crate) fn swap_policy(&mut self, ctx: &mut Ctx<'_>, make: &NewAckPolicy) {
        todo!()
    }

    /// `None` before [`open`](Self::open).
    pub(crate) fn policy(&mut self) -> Option<&mut (dyn AckPolicy + 'static)> {
        todo!()
    }

    /// Gives back memory that is not in use.
    pub(crate) fn trim(&mut self) {
        todo!()
    }

    /// Fills in the receiver's fields.
    pub(crate) fn info(&self, info: &mut Info) {
        todo!()
    }
}
