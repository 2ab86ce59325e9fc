//! The receiving half of a connection: RCV.NXT, the receive buffer and its window, reassembly, and
//! the ACKs that are due.
//!
//! ```text
//!        1            2                      3                     4
//!   ───────────┬──────────────┬──────────────────────────┬──────────────►  sequence space
//!           first unread   RCV.NXT            RCV.NXT + RCV.WND (the edge)
//!
//!   1  read by the application      3  receive window; data may wait in it past a hole
//!   2  in order, not read yet       4  not acceptable
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | the [`Receiver`] that a connection drives |
//! | `data.rs` | processing of a segment's data and FIN |
//! | `reassembly.rs` | the [stored stream](reassembly::Reassembly), its memory, and its end |
//! | `assembler.rs` | which bytes past RCV.NXT are present; SACK and DSACK |
//! | `buffer.rs` | what arrived in order and was not read |
//! | `pieces.rs` | sparse data past a hole |
//! | `window.rs` | the window that is advertised, and how it grows |
//! | `marks.rs` | what is told of ECN marks, by one of the next two |
//! | `echo.rs` | ECN: which ACKs carry ECE, and up to where they acknowledge |
//! | `accecn.rs` | accurate ECN: what arrived with which codepoint, and what of it is told |
//! | `obligations.rs` | host of the ACK policy, and the ACKs that the core demands regardless of the policy |

mod accecn;
pub(crate) mod assembler;
mod buffer;
mod data;
mod echo;
mod marks;
mod obligations;
mod pieces;
mod reassembly;
mod window;

#[cfg(test)]
mod tests;

use crate::config::{ConnConfig, Ecn};
use crate::ctx::Ctx;
use crate::info::Info;
use crate::memory::budget::Grant;
use crate::memory::ring::MAX_CAPACITY;
use crate::packet::SendReason;
use crate::pattern::Pattern;
use crate::policy::ack::{AckCause, AckInit, AckSent, RecvView};
use crate::policy::builtin::CeEcho;
use crate::policy::{AckPolicy, NewAckPolicy};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{self, AccEcnOption, Payload, SackBlocks, TcpFlags};
use alloc::boxed::Box;
use bytes::Bytes;
use marks::{AckContext, Marks, PendingAcks};
use obligations::Acks;
use reassembly::Reassembly;
use window::{Position, RecvWindow};

pub(crate) use data::{acceptable, repeats};

/// The receiving half of a connection.
///
/// The connection creates it with [`new`](Self::new) and passes the result of the handshake to
/// [`open`](Self::open). After that each segment goes through [`acceptable`], and then to
/// [`on_data`](Self::on_data) or [`on_unacceptable`](Self::on_unacceptable). Whenever
/// [`ack_wanted`](Self::ack_wanted) returns a reason, a segment with
/// [`ack_numbers`](Self::ack_numbers) should be sent; call [`ack_sent`](Self::ack_sent) once for
/// every segment sent with them.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// What arrived, in order or not.
    reassembly: Reassembly,
    window: RecvWindow,
    acks: Acks,
    /// What is to be told of marks, if ECN is in use.
    marks: Option<Box<Marks>>,
    /// Highest acknowledgment number sent.
    highest_ack: SeqNum,
    /// RTT of the handshake; `MAX` if it was not measured.
    handshake_rtt: Duration,
    /// This side's own smoothed RTT; `MAX` if it never sent data.
    srtt: Duration,
    /// Wire segments with data received.
    data_segs_in: u64,
    /// Pure ACKs sent.
    acks_out: u64,
    /// RMSS: the largest payload that this side accepts in a segment.
    rmss: u16,
    /// Estimate of the payload of the peer's full segments, at most `rmss`.
    peer_mss: u16,
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenParams {
    /// The peer's initial sequence number.
    pub(crate) irs: SeqNum,
    /// Shift of our window field; 0 if scaling is not in use.
    pub(crate) wscale: u8,
    /// Largest payload that this side accepts in a segment, less the options on every segment.
    pub(crate) rmss: u32,
    /// SACK is in use.
    pub(crate) sack: bool,
    /// RTT of the handshake, if measured.
    pub(crate) handshake_rtt: Option<Duration>,
    /// ECN, if it is in use.
    pub(crate) ecn: Option<EcnStart>,
}

/// ECN at the end of the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnStart {
    pub(crate) mode: Ecn,
    /// Accurate ECN: marked packets counted, from 5 on.
    pub(crate) marked: u32,
    /// Accurate ECN, of a client: the codepoint of the SYN-ACK, of which the next ACK tells.
    pub(crate) echo: Option<wire::Ecn>,
}

/// Acceptable packets, for accurate ECN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) ecn: wire::Ecn,
    pub(crate) seq: SeqNum,
    /// Payload of all.
    pub(crate) bytes: u32,
    /// Wire packets.
    pub(crate) packets: u32,
}

/// What a segment offers the receiving half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRoom {
    /// Octets for options beside those on every segment.
    pub(crate) options: usize,
    /// It has neither data nor FIN.
    pub(crate) bare: bool,
}

/// Data or FIN of an acceptable segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    /// Sequence number of the first payload byte.
    pub(crate) seq: SeqNum,
    /// The payload.
    pub(crate) payload: Payload<'a>,
    /// A FIN follows the payload.
    pub(crate) fin: bool,
    /// PSH was set.
    pub(crate) psh: bool,
    /// URG was set.
    pub(crate) urg: bool,
    /// The IP header carried CE.
    pub(crate) ce: bool,
    /// CWR was set.
    pub(crate) cwr: bool,
    /// Number of wire segments; at least 1.
    pub(crate) segments: u32,
    /// RTT of this side's segment echoed by TSecr.
    pub(crate) ts_rtt: Option<Duration>,
    /// This side's own smoothed RTT.
    pub(crate) srtt: Option<Duration>,
}

/// The result of processing a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct DataOutcome {
    /// There is more to read than before.
    pub(crate) readable: bool,
    /// The peer's FIN was reached: everything before it has arrived.
    pub(crate) fin: bool,
}

/// The receiving half's part of an outgoing segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckNumbers {
    /// Acknowledgment number.
    pub(crate) ack: SeqNum,
    /// The window field, scaled.
    pub(crate) window: u16,
    /// SACK blocks; a DSACK, if due, comes first.
    pub(crate) sack: SackBlocks,
    /// ECE of classic ECN and DCTCP's, or ACE.
    pub(crate) ecn: TcpFlags,
    /// The option of accurate ECN.
    pub(crate) accecn: Option<AccEcnOption>,
    /// An option was due, and there was no room.
    crowded: bool,
    /// It tells of marks.
    marks: bool,
    /// The right edge given by the window field.
    edge: SeqNum,
}

/// The window announced by our SYN, in bytes: not scaled (RFC 7323, section 2.2).
pub(crate) fn syn_window(config: &ConnConfig) -> u32 {
    config.initial_recv_window.unwrap_or(u32::MAX).min(config.recv_buffer).min(0xffff)
}

/// The maximum number of bytes in the receive buffer.
fn limit(config: &ConnConfig) -> u32 {
    config.recv_buffer.min(MAX_CAPACITY as u32)
}

/// A round trip, stored as `MAX` until it is known: half the size of an `Option`.
fn known(rtt: Duration) -> Option<Duration> {
    (rtt != Duration::MAX).then_some(rtt)
}

/// What an ACK is sent for, as the policy is told.
const fn cause_of(reason: SendReason) -> AckCause {
    match reason {
        SendReason::AckByPolicy => AckCause::Plan,
        SendReason::AckByTimer => AckCause::Timer,
        SendReason::WindowUpdate => AckCause::WindowUpdate,
        SendReason::AckByObligation | SendReason::ChallengeAck => AckCause::Obligation,
        _ => AckCause::Piggyback,
    }
}

/// Segment size until the peer's is known: RFC 9293's default for IPv4 (section 3.7.1).
const UNKNOWN_MSS: u32 = 536;

impl Receiver {
    /// A receiver before the handshake. Does not allocate.
    pub(crate) fn new(config: &ConnConfig) -> Self {
        Self {
            reassembly: Reassembly::new(),
            window: RecvWindow::new(config.initial_recv_window.unwrap_or(u32::MAX)),
            acks: Acks::new(),
            marks: None,
            highest_ack: SeqNum(0),
            handshake_rtt: Duration::MAX,
            srtt: Duration::MAX,
            data_segs_in: 0,
            acks_out: 0,
            rmss: 0,
            peer_mss: 0,
        }
    }

    /// The received stream follows a pattern, as long as it is not found to differ.
    pub(crate) fn expect(&mut self, pattern: Pattern) {
        self.reassembly.expect(pattern);
    }

    /// The handshake is done. Our SYN announced [`syn_window`].
    pub(crate) fn open(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, params: &OpenParams) {
        self.reassembly.open(params.irs + 1, params.sack);
        self.highest_ack = self.rcv_nxt();
        self.handshake_rtt = params.handshake_rtt.unwrap_or(Duration::MAX);
        self.rmss = params.rmss.clamp(1, 0xffff) as u16;
        self.peer_mss = params.rmss.clamp(1, UNKNOWN_MSS) as u16;
        if let Some(start) = params.ecn {
            self.marks = Some(Box::new(Marks::new(start)));
        }
        let edge = self.rcv_nxt() + syn_window(config);
        self.window.open(edge, params.wscale, limit(config));
        if !self.acks.has_policy() {
            self.swap_policy(ctx, config, &*config.policies.ack);
        }
    }

    /// Replaces the ACK policy. Whatever its predecessor held back is acknowledged at once.
    pub(crate) fn swap_policy(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, make: &NewAckPolicy) {
        let rmss = u32::from(self.peer_mss);
        let mut init = AckInit::new(ctx.now, rmss, known(self.handshake_rtt));
        init.hold_limit = config.ack_hold_limit;
        let policy = make(&init);
        // RFC 8257, section 3.2: a change of CE is reported at once, whatever the policy.
        let accurate = self.ecn_mode() == Ecn::Dctcp;
        self.acks.install(if accurate { Box::new(CeEcho::around(policy)) } else { policy });
    }

    /// The ACK policy, to read; `None` before the connection is established.
    pub(crate) fn shown_policy(&self) -> Option<&(dyn AckPolicy + 'static)> {
        self.acks.policy()
    }

    /// The ACK policy, to configure; `None` before the connection is established.
    pub(crate) fn policy(&mut self) -> Option<&mut (dyn AckPolicy + 'static)> {
        self.acks.policy_mut()
    }

    /// SACK is in use.
    pub(crate) const fn has_sack(&self) -> bool {
        self.reassembly.has_sack()
    }

    /// Shift of our window field; 0 if scaling is not in use.
    pub(crate) const fn wscale(&self) -> u8 {
        self.window.shift()
    }

    /// RCV.NXT.
    #[inline]
    pub(crate) const fn rcv_nxt(&self) -> SeqNum {
        self.reassembly.rcv_nxt()
    }

    /// Last.ACK.sent of RFC 7323: the highest acknowledgment number sent.
    pub(crate) const fn highest_ack(&self) -> SeqNum {
        self.highest_ack
    }

    /// The end of the latest data that has arrived, in order or not.
    pub(crate) fn highest_received(&self) -> SeqNum {
        self.reassembly.highest_received()
    }

    /// Wire segments with data received.
    pub(crate) const fn data_segments_in(&self) -> u64 {
        self.data_segs_in
    }

    /// Sequence numbers of the stream that have arrived, up to RCV.NXT: its bytes, and its FIN.
    pub(crate) fn received(&self) -> u64 {
        self.reassembly.bytes_received() + u64::from(self.fin_received())
    }

    /// RCV.WND: what is left of the window last advertised, in bytes.
    pub(crate) const fn window(&self) -> u32 {
        self.window.left(self.rcv_nxt())
    }

    /// True if data waits past a hole, or a duplicate must be reported: the next ACK needs room for
    /// SACK blocks.
    pub(crate) fn has_out_of_order(&self) -> bool {
        self.reassembly.has_out_of_order()
    }

    /// Bytes allocated, with those of the policy's struct.
    pub(crate) fn memory(&self) -> usize {
        let policy = self.acks.policy().map_or(0, size_of_val);
        let ecn = self.marks.as_deref().map_or(0, size_of_val);
        self.reassembly.memory() + policy + ecn
    }

    /// Number of readable bytes.
    pub(crate) fn readable(&self) -> usize {
        self.reassembly.unread()
    }

    /// The received data, in place, or its beginning.
    pub(crate) fn peek(&self) -> [&[u8]; 2] {
        self.reassembly.peek()
    }

    /// Takes a chunk of received data, of at most `max` bytes.
    pub(crate) fn read_chunk(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, max: usize) -> Option<Bytes> {
        let chunk = self.reassembly.read_chunk(max)?;
        self.on_read(ctx, config, chunk.len());
        Some(chunk)
    }

    /// Moves received data into `out` and returns the number of bytes.
    pub(crate) fn read(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, out: &mut [u8]) -> usize {
        let read = self.reassembly.read(out, &mut ctx.observe.budget.spare);
        self.on_read(ctx, config, read);
        read
    }

    /// Frees up to `n` received bytes.
    pub(crate) fn consume(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, n: usize) {
        let read = self.reassembly.consume(n, &mut ctx.observe.budget.spare);
        self.on_read(ctx, config, read);
    }

    /// The buffer's limit has changed.
    pub(crate) fn on_buffer_change(&mut self, config: &ConnConfig) {
        // Before the connection is established, opening it takes care of that; after the FIN the
        // window no longer matters.
        if !self.acks.has_policy() || self.fin_received() {
            return;
        }
        self.window.resize(limit(config));
        self.acks.on_window(self.window.update(&self.position(config), self.is_steady()));
    }

    /// True if [`heed`](Self::heed) would change nothing.
    #[inline]
    pub(crate) fn heeds(&self, grant: Grant) -> bool {
        self.reassembly.grant() == grant
    }

    /// The endpoint's memory permits a buffer of `grant` from now on. The window follows, but its
    /// edge does not move back: it closes as data arrives.
    pub(crate) fn heed(&mut self, config: &ConnConfig, grant: Grant) {
        let raised = grant > self.reassembly.grant();
        self.reassembly.set_grant(grant);
        if raised && self.acks.has_policy() && !self.fin_received() {
            self.acks.on_window(self.window.update(&self.position(config), self.is_steady()));
        }
    }

    /// Drops what arrived out of order, which the peer still has (RFC 2018, section 8). True if
    /// there was some.
    pub(crate) fn prune(&mut self) -> bool {
        self.reassembly.prune()
    }

    /// True if [`trim`](Self::trim) would free memory.
    pub(crate) fn has_spare_memory(&self) -> bool {
        self.reassembly.has_spare_memory()
    }

    /// Frees memory that what is held does not need.
    pub(crate) fn trim(&mut self) {
        self.reassembly.trim();
    }

    /// The connection is over, and what was received will not be read: not as if the stream were
    /// complete.
    pub(crate) fn forfeit(&mut self) {
        self.reassembly.forfeit();
    }

    /// Nobody reads any more: frees what was received, in order or not.
    pub(crate) fn discard(&mut self) {
        self.reassembly.discard();
    }

    /// Each data segment is acknowledged on arrival; a held ACK is sent now.
    pub(crate) fn set_quick_acks(&mut self, on: bool) {
        self.acks.set_quick(on);
    }

    /// As set by [`set_quick_acks`](Self::set_quick_acks).
    pub(crate) const fn quick_acks(&self) -> bool {
        self.acks.is_quick()
    }

    /// `n` bytes left the buffer.
    fn on_read(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, n: usize) {
        // After the FIN the window no longer matters.
        if n == 0 || self.fin_received() {
            return;
        }
        let rtt = known(self.handshake_rtt).max(known(self.srtt));
        self.window.on_read(
            ctx.now,
            n as u32,
            u32::from(self.rmss),
            rtt,
            self.reassembly.granted(config),
            ctx.observe.backlogged,
        );
        let update = self.window.update(&self.position(config), self.is_steady());
        let view = self.view(ctx.now, config);
        self.acks.on_app_read(&view, update);
    }

    /// Why an ACK is due beyond the `queued` ones in the egress scheduler.
    pub(crate) fn ack_wanted(&self, queued: u8) -> Option<SendReason> {
        self.acks.wanted(queued)
    }

    /// True if the due ACK may be delayed by some microseconds: it reports nothing out of order,
    /// and the policy either lets it wait or has no influence on it, because it acknowledges no
    /// data or a FIN.
    pub(crate) fn ack_may_wait(&self) -> bool {
        !self.has_out_of_order()
            && (self.acks.may_wait() || self.fin_received() || self.highest_ack == self.rcv_nxt())
    }

    /// An ACK must be sent for `reason`; no policy can hold it.
    pub(crate) fn oblige(&mut self, reason: SendReason) {
        self.acks.oblige(reason);
    }

    /// Acceptable packets arrived; their data is not processed yet (RFC 9768, section 3.2.2.5.1).
    #[inline]
    pub(crate) fn count(&mut self, now: Instant, config: &ConnConfig, packets: &Counted) {
        if self.counts_codepoints() {
            self.count_codepoints(now, config, packets);
        }
    }

    fn count_codepoints(&mut self, now: Instant, config: &ConnConfig, packets: &Counted) {
        let acks = PendingAcks {
            unacked: packets.bytes > 0 || self.rcv_nxt() != self.highest_ack,
            withholding: self.acks.is_withholding(),
            due: self.acks.wanted(0).is_some(),
        };
        let Some(marks) = self.marks.as_deref_mut() else { return };
        if marks.on_packets(now, config.accecn_option, packets, acks) {
            self.acks.oblige(SendReason::AckByObligation);
        }
    }

    /// True if the ACK of the SYN-ACK is still to leave: alone, before data (RFC 9768, section
    /// 3.2.2.1).
    pub(crate) fn answers_syn_ack(&self) -> bool {
        self.marks.as_deref().is_some_and(Marks::answers_syn_ack)
    }

    /// Accurate ECN is in use.
    pub(crate) fn counts_codepoints(&self) -> bool {
        self.marks.as_deref().is_some_and(Marks::counts_codepoints)
    }

    /// The peer has sent its SYN-ACK again.
    pub(crate) fn on_syn_ack_again(&mut self, ecn: wire::Ecn) {
        if let Some(marks) = self.marks.as_deref_mut() {
            marks.on_syn_ack_again(ecn);
        }
    }

    /// ACE of the next segment with data.
    pub(crate) fn ace(&self) -> TcpFlags {
        self.marks.as_deref().map_or(TcpFlags::NONE, |marks| marks.ace(self.rcv_nxt()))
    }

    /// The window field of an ACK.
    pub(crate) fn window_field(&self, config: &ConnConfig) -> u16 {
        self.window.offer(&self.position(config), self.acks.hint(), self.is_steady()).0
    }

    /// The ACK fields of an outgoing segment.
    pub(crate) fn ack_numbers(&self, now: Instant, config: &ConnConfig, room: AckRoom) -> AckNumbers {
        let (window, edge) = self.window.offer(&self.position(config), self.acks.hint(), self.is_steady());
        let waiting = self.reassembly.sack_source();
        let mut numbers = AckNumbers {
            ack: self.rcv_nxt(),
            window,
            sack: SackBlocks::EMPTY,
            ecn: TcpFlags::NONE,
            accecn: None,
            crowded: false,
            marks: false,
            edge,
        };
        let mut blocks = waiting;
        if let Some(marks) = self.marks.as_deref() {
            let fields = marks.fields(&AckContext {
                now,
                rcv_nxt: self.rcv_nxt(),
                frequency: config.accecn_option,
                srtt: known(self.srtt).or(known(self.handshake_rtt)),
                due: self.acks.wanted(0).is_some(),
                room,
                waiting,
            });
            (numbers.ack, numbers.ecn, numbers.accecn) = (fields.ack, fields.flags, fields.option);
            (numbers.crowded, numbers.marks) = (fields.crowded, fields.news);
            (numbers.window, numbers.edge) = self.window.seen_from(fields.ack, edge);
            blocks = waiting.filter(|_| !fields.forbids_sack);
        }
        if let Some(waiting) = blocks {
            let fit = SackBlocks::that_fit(room.options, numbers.accecn.as_ref());
            if fit > 0 {
                numbers.sack = waiting.sack_blocks(fit).collect();
            }
        }
        numbers
    }

    /// The ACK fields of a SYN-ACK that acknowledges data: its window is not scaled (RFC 7323,
    /// section 2.2).
    pub(crate) fn syn_ack_numbers(&self) -> AckNumbers {
        let window = self.window().min(0xffff);
        let edge = self.rcv_nxt() + window;
        AckNumbers {
            ack: self.rcv_nxt(),
            window: window as u16,
            sack: SackBlocks::EMPTY,
            ecn: TcpFlags::NONE,
            accecn: None,
            crowded: false,
            marks: false,
            edge,
        }
    }

    /// Data arrived before the handshake was complete. It is, and took so long, if that was
    /// measured.
    pub(crate) fn on_early_handshake(&mut self, rtt: Option<Duration>) {
        self.handshake_rtt = rtt.unwrap_or(Duration::MAX);
    }

    /// True if an ACK with `numbers`, not sent yet, only advances the acknowledgment number: no
    /// duplicate, no SACK or DSACK, no marks, no smaller window. RFC 3449, section 5.2.1: only such
    /// ACKs may replace one another.
    pub(crate) fn is_plain(&self, numbers: &AckNumbers) -> bool {
        numbers.ack.gt(self.highest_ack)
            && numbers.sack.as_slice().is_empty()
            && !numbers.marks
            && (self.counts_codepoints() || numbers.ecn.is_empty())
            && numbers.accecn.is_none()
            && numbers.edge.ge(self.window.edge())
    }

    /// A segment with `numbers` was sent, for `reason`. `pure`: without data and FIN.
    pub(crate) fn ack_sent(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        pure: bool,
        reason: SendReason,
        numbers: &AckNumbers,
    ) {
        let advance = numbers.ack.saturating_distance_from(self.highest_ack);
        self.highest_ack = self.highest_ack.max(numbers.ack);
        self.window.advertised(numbers.edge);
        self.window.on_field_sent(&mut ctx.observe.counters, numbers.window);
        let another = match self.marks.as_deref_mut() {
            Some(marks) => marks.on_ack_sent(&mut ctx.observe.counters, ctx.now, numbers, pure),
            None => false,
        };
        self.acks_out += u64::from(pure);
        let reports = self.reassembly.on_ack_sent(&mut ctx.observe.counters, &numbers.sack) || pure;
        let view = self.view(ctx.now, config);
        self.acks.on_sent(ctx, &view, &AckSent::new(cause_of(reason), advance), reports);
        if another {
            self.acks.oblige(SendReason::AckByObligation);
        }
    }

    /// The ACK policy, and which rule, of it or of the core, wants the ACK that is sent for
    /// `reason`.
    pub(crate) fn ack_rule(
        &self,
        now: Instant,
        config: &ConnConfig,
        reason: SendReason,
    ) -> (&'static str, &'static str) {
        let view = self.view(now, config);
        let cause = cause_of(reason);
        let rule = match cause {
            AckCause::Plan | AckCause::Timer => match self.acks.rule(&view, cause) {
                "" => self.arrival_rule(&view),
                rule => rule,
            },
            AckCause::Obligation if self.acks.is_truncating() => "held for too long",
            AckCause::Obligation if self.acks.is_quick() => "quick ACKs are set",
            AckCause::Obligation => self.arrival_rule(&view),
            AckCause::Piggyback | AckCause::WindowUpdate => "",
        };
        (self.acks.policy().map_or("", AckPolicy::name), rule)
    }

    /// What about the latest arrivals wants an ACK.
    fn arrival_rule(&self, view: &RecvView) -> &'static str {
        if self.data_segs_in == 0 {
            "SYN"
        } else if self.fin_received() {
            "FIN"
        } else if self.has_out_of_order() {
            "out of order"
        } else if view.unacked() == 0 {
            "nothing new"
        } else if self.nearly_full() {
            "the window is nearly used up"
        } else if view.unacked() >= view.rmss.saturating_mul(2) {
            "second segment"
        } else {
            "a hole is filled"
        }
    }

    /// When the policy's timer or the hold limit is due.
    pub(crate) fn next_timeout(&self, config: &ConnConfig) -> Option<Instant> {
        self.acks.next_timeout(config.ack_hold_limit)
    }

    /// The instant of [`next_timeout`](Self::next_timeout) has come.
    pub(crate) fn on_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let view = self.view(ctx.now, config);
        let update = self.window.update(&self.position(config), self.is_steady());
        self.acks.on_timeout(&view, update, config.ack_hold_limit);
    }

    /// Fills in the receiving half's fields of a snapshot.
    pub(crate) fn info(&self, info: &mut Info) {
        info.ack_policy = self.acks.policy().map_or("", AckPolicy::name);
        info.ato = self.acks.policy().and_then(AckPolicy::delay);
        info.rcv_mss = u32::from(self.peer_mss);
        info.advmss = u32::from(self.rmss);
        info.rcv_wnd = self.window();
        info.rcv_space = self.window.size();
        info.rcv_rtt = self.window.rtt();
        info.unread_bytes = self.unread();
        info.ooo_bytes = self.reassembly.out_of_order_bytes();
        info.bytes_received = self.reassembly.bytes_received();
        info.data_segs_in = self.data_segs_in;
        info.rcv_ooopack = u64::from(self.reassembly.segments_out_of_order());
        info.acks_out = self.acks_out;
        info.acks_waived = u64::from(self.acks.waived());
        info.ecn = self.ecn_mode();
        if let Some(marks) = self.marks.as_deref() {
            marks.info(info);
        }
    }

    /// The kind of ECN in use.
    fn ecn_mode(&self) -> Ecn {
        self.marks.as_deref().map_or(Ecn::Off, Marks::mode)
    }

    /// Bytes in order that the application has not read.
    fn unread(&self) -> u32 {
        self.reassembly.unread() as u32
    }

    /// The peer's FIN and everything before it have arrived.
    pub(crate) fn fin_received(&self) -> bool {
        self.reassembly.fin_received()
    }

    /// RFC 5681, section 2: a duplicate ACK has the same window as the ACK before it. A sender
    /// without SACK counts them, so the window is fixed while there is a hole.
    fn is_steady(&self) -> bool {
        !self.has_sack() && self.reassembly.has_hole()
    }

    fn position(&self, config: &ConnConfig) -> Position {
        Position {
            rcv_nxt: self.rcv_nxt(),
            unread: self.unread(),
            rmss: u32::from(self.rmss),
            limit: self.reassembly.granted(config),
        }
    }

    /// The receiver as the policy sees it.
    fn view(&self, now: Instant, config: &ConnConfig) -> RecvView {
        let buffer = limit(config);
        RecvView {
            now,
            rcv_nxt: self.rcv_nxt(),
            highest_ack: self.highest_ack,
            edge: self.window.edge(),
            buffer,
            free: buffer.saturating_sub(self.unread()),
            rmss: u32::from(self.peer_mss),
            mss: u32::from(self.rmss),
            oldest_unacked: self.acks.oldest_unacked(),
            handshake_rtt: known(self.handshake_rtt),
            srtt: known(self.srtt),
            ecn: self.ecn_mode(),
        }
    }
}
