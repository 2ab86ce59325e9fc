//! The received stream as far as it is stored: in order and not read, or waiting past a hole.
//!
//! Data past a hole is written ahead in the receive buffer, unless it lies so far ahead that the
//! distance would cost more than the data: then it is kept apart, in [`Pieces`]. Memory that was
//! given to either is given back when what is held does not need it.

use super::assembler::{Assembler, Insertion, Placement};
use super::buffer::RecvBuffer;
use super::limit;
use super::pieces::{PIECE, Pieces};
use crate::config::ConnConfig;
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::memory::blocks::SpareBlocks;
use crate::memory::budget::Grant;
use crate::pattern::Pattern;
use crate::seq::SeqNum;
use crate::wire::{Payload, SackBlocks};
use alloc::boxed::Box;
use bytes::Bytes;

/// The buffer takes data past a hole if it reaches at most so many times as far as there is data
/// past the hole.
const SPARSE: u32 = 4;

/// The received stream, up to its FIN: RCV.NXT, what is stored before it and after it.
///
/// A segment that is [expected](Self::expects) is [appended](Self::append), and then RCV.NXT
/// [advances](Self::advance). Any other one is [inserted](Self::insert), once there is memory for
/// it: [`take_memory`](Self::take_memory), or [`take_far`](Self::take_far) if it
/// [lies far ahead](Self::is_far).
#[derive(Debug)]
pub(super) struct Reassembly {
    /// Received data: the readable part ends at RCV.NXT; data past a hole is written ahead.
    buf: RecvBuffer,
    /// Out-of-order data; allocated for the first such segment.
    waiting: Option<Box<Assembler>>,
    /// Payload bytes received in order.
    bytes_received: u64,
    /// Next sequence number expected.
    rcv_nxt: SeqNum,
    /// Sequence number of the peer's FIN, if `fin_known`: smaller than an `Option`.
    fin: SeqNum,
    /// Wire segments that arrived out of order.
    rcv_ooopack: u32,
    /// What of the buffer the endpoint's memory permits at present.
    grant: Grant,
    /// SACK is in use.
    sack: bool,
    /// The peer's FIN is known.
    fin_known: bool,
}

impl Reassembly {
    /// An empty stream before the handshake, without memory.
    pub(super) fn new() -> Self {
        Self {
            buf: RecvBuffer::new(),
            waiting: None,
            bytes_received: 0,
            rcv_nxt: SeqNum(0),
            fin: SeqNum(0),
            rcv_ooopack: 0,
            grant: Grant::UNLIMITED,
            sack: false,
            fin_known: false,
        }
    }

    /// The received stream follows a pattern, as long as it is not found to differ.
    pub(super) fn expect(&mut self, pattern: Pattern) {
        self.buf.expect(pattern);
    }

    /// The stream begins at `rcv_nxt`. `sack`: SACK is in use.
    pub(super) const fn open(&mut self, rcv_nxt: SeqNum, sack: bool) {
        (self.rcv_nxt, self.sack) = (rcv_nxt, sack);
    }

    /// RCV.NXT.
    #[inline]
    pub(super) const fn rcv_nxt(&self) -> SeqNum {
        self.rcv_nxt
    }

    /// SACK is in use.
    #[inline]
    pub(super) const fn has_sack(&self) -> bool {
        self.sack
    }

    /// Payload bytes received in order.
    #[inline]
    pub(super) const fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    /// Sequence number of the peer's FIN, once it is known.
    #[inline]
    pub(super) fn fin(&self) -> Option<SeqNum> {
        self.fin_known.then_some(self.fin)
    }

    /// The peer's FIN and everything before it have arrived.
    #[inline]
    pub(super) fn fin_received(&self) -> bool {
        self.fin().is_some_and(|fin| self.rcv_nxt.gt(fin))
    }

    /// The end of the latest data that has arrived, in order or not.
    pub(super) fn highest_received(&self) -> SeqNum {
        self.last_range().map_or(self.rcv_nxt, |(_, end)| end.max(self.rcv_nxt))
    }

    fn last_range(&self) -> Option<(SeqNum, SeqNum)> {
        self.waiting.as_ref().and_then(|waiting| waiting.iter().last())
    }

    /// Data waits past a hole.
    #[inline]
    pub(super) fn has_hole(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    /// Bytes past a hole.
    pub(super) fn out_of_order_bytes(&self) -> u32 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Wire segments that arrived out of order.
    pub(super) const fn segments_out_of_order(&self) -> u32 {
        self.rcv_ooopack
    }

    /// `segments` wire segments arrived together that start past RCV.NXT. `merged`: ranges that
    /// came twice, the segments themselves or those that they cover.
    pub(super) fn count_out_of_order(&mut self, counters: &mut Counters, segments: u32, merged: u32) {
        counters.tcp_ofo_queue += 1;
        counters.tcp_ofo_merge += u64::from(merged);
        self.rcv_ooopack = self.rcv_ooopack.saturating_add(segments);
    }

    /// True if data waits past a hole, or a duplicate must be reported.
    #[inline]
    pub(super) fn has_out_of_order(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_empty() || (self.sack && waiting.duplicate().is_some()))
    }

    /// What SACK blocks report; `None` if there is nothing, or SACK is not in use.
    #[inline]
    pub(super) fn sack_source(&self) -> Option<&Assembler> {
        self.waiting.as_deref().filter(|_| self.sack)
    }

    /// An ACK with `blocks` was sent. True if they reported anything.
    #[inline]
    pub(super) fn on_ack_sent(&mut self, counters: &mut Counters, blocks: &SackBlocks) -> bool {
        let Some(waiting) = self.waiting.as_mut() else { return false };
        let Some(&first) = blocks.as_slice().first() else { return false };
        if waiting.duplicate() == Some(first) {
            if first.0.lt(self.rcv_nxt) {
                counters.tcp_dsack_old_sent += 1;
            } else {
                counters.tcp_dsack_ofo_sent += 1;
            }
            waiting.on_ack_sent();
        }
        true
    }

    /// Bytes in order that the application has not read.
    #[inline]
    pub(super) fn unread(&self) -> usize {
        self.buf.len()
    }

    /// The received data, in place, or its beginning.
    pub(super) fn peek(&self) -> [&[u8]; 2] {
        self.buf.peek()
    }

    /// Takes a chunk of received data, of at most `max` bytes.
    pub(super) fn read_chunk(&mut self, max: usize) -> Option<Bytes> {
        self.buf.pop_chunk(max)
    }

    /// Moves received data into `out` and returns the number of bytes.
    #[inline]
    pub(super) fn read(&mut self, out: &mut [u8], spare: &mut SpareBlocks) -> usize {
        self.buf.pop_slice(out, spare)
    }

    /// Frees up to `n` received bytes and returns their number.
    #[inline]
    pub(super) fn consume(&mut self, n: usize, spare: &mut SpareBlocks) -> usize {
        let read = n.min(self.buf.len());
        self.buf.consume(read, spare);
        read
    }

    /// What of the buffer the endpoint's memory permits at present.
    #[inline]
    pub(super) const fn grant(&self) -> Grant {
        self.grant
    }

    /// The endpoint's memory permits a buffer of `grant` from now on.
    pub(super) const fn set_grant(&mut self, grant: Grant) {
        self.grant = grant;
    }

    /// Bytes that the buffer may hold at present.
    #[inline]
    pub(super) fn granted(&self, config: &ConnConfig) -> u32 {
        limit(config).min(self.grant.bytes())
    }

    /// True if data from `seq` on is the next in order, nothing waits past a hole, and the stream
    /// is not known to end.
    #[inline]
    pub(super) fn expects(&self, seq: SeqNum) -> bool {
        seq == self.rcv_nxt && !self.fin_known && !self.has_hole()
    }

    /// Takes the memory for `n` bytes past RCV.NXT; returns for how many there is some.
    #[inline]
    pub(super) fn take_memory(&self, ctx: &mut Ctx<'_>, n: u32) -> u32 {
        let (used, capacity) = self.buf.usage();
        let total = used + n as usize;
        if total <= capacity {
            return n;
        }
        // No more than n.
        (ctx.observe.budget.request(capacity, total).saturating_sub(used) as u32).min(n)
    }

    /// True if there is memory for `n` bytes past RCV.NXT.
    #[inline]
    pub(super) fn has_memory(&self, ctx: &Ctx<'_>, n: u32) -> bool {
        let (used, capacity) = self.buf.usage();
        let total = used + n as usize;
        total <= capacity || total <= ctx.observe.budget.allowance(capacity)
    }

    /// Free memory for data in order, in packets of up to `len` bytes, before it is
    /// [committed](Self::commit).
    #[inline]
    pub(super) fn free_slices(&mut self, len: usize) -> [&mut [u8]; 2] {
        self.buf.free_slices(len)
    }

    /// Stores the next data in order; [`advance`](Self::advance) is still to follow.
    #[inline]
    pub(super) fn append(&mut self, config: &ConnConfig, payload: &Payload<'_>, spare: &mut SpareBlocks) {
        self.buf.append(payload, self.granted(config), spare);
    }

    /// The next `n` bytes in order lie in their place, in [free memory](Self::free_slices).
    #[inline]
    pub(super) fn commit(&mut self, n: u32) {
        self.buf.commit(n as usize);
    }

    /// RCV.NXT moves, with the buffer's readable part.
    #[inline]
    pub(super) fn advance(&mut self, n: u32) {
        self.rcv_nxt += n;
        self.bytes_received += u64::from(n);
    }

    /// The peer's stream ends at `end`, unless that contradicts data already received.
    pub(super) fn learn_fin(&mut self, end: SeqNum) {
        let contradicts = end.lt(self.rcv_nxt) || self.last_range().is_some_and(|(_, held)| held.gt(end));
        if !self.fin_known && !contradicts {
            (self.fin, self.fin_known) = (end, true);
        }
    }

    /// RCV.NXT moves past the peer's FIN. True if everything before it has arrived, for the first
    /// time.
    pub(super) fn take_fin(&mut self) -> bool {
        let reached = self.fin() == Some(self.rcv_nxt);
        self.rcv_nxt += u32::from(reached);
        reached
    }

    /// A segment repeats `[start, end)`, which was delivered: DSACK reports it.
    pub(super) fn note_repeat(&mut self, config: &ConnConfig, start: SeqNum, end: SeqNum) {
        if self.sack && config.dsack {
            let rcv_nxt = self.rcv_nxt;
            self.assembler(config).insert(rcv_nxt, start, end);
        }
    }

    /// Stores a segment that has been cut to the window, and moves RCV.NXT past what is complete.
    /// `far`: it [lies far ahead](Self::is_far).
    pub(super) fn insert(
        &mut self,
        config: &ConnConfig,
        start: SeqNum,
        mut payload: Payload<'_>,
        far: bool,
    ) -> Insertion {
        let inserted = self.place(config, start, start + payload.len() as u32);
        let skip = self.rcv_nxt.saturating_distance_from(start);
        payload.advance(skip as usize);
        let offset = (start + skip).distance_from(self.rcv_nxt);
        match inserted.placement {
            Placement::Refused | Placement::Duplicate => {}
            Placement::InOrder | Placement::FillsHole => {
                self.fetch_far(inserted.advance);
                self.write_ahead(offset, &payload);
            }
            Placement::NewRange | Placement::Extended if far => self.store_far(start, &payload),
            Placement::NewRange | Placement::Extended => self.write_ahead(offset, &payload),
        }
        self.commit(inserted.advance);
        self.advance(inserted.advance);
        inserted
    }

    /// Where `[start, end)` belongs; its bytes are still to be stored.
    fn place(&mut self, config: &ConnConfig, start: SeqNum, end: SeqNum) -> Insertion {
        let rcv_nxt = self.rcv_nxt;
        if !self.has_hole() && start == rcv_nxt {
            let len = end.distance_from(start);
            return Insertion {
                placement: Placement::InOrder,
                advance: len,
                new_bytes: len,
                duplicate_bytes: 0,
                covered: 0,
            };
        }
        self.assembler(config).insert(rcv_nxt, start, end)
    }

    fn assembler(&mut self, config: &ConnConfig) -> &mut Assembler {
        let dsack = self.sack && config.dsack;
        self.waiting.get_or_insert_with(|| Box::new(Assembler::new(config.max_out_of_order_ranges, dsack)))
    }

    /// Copies data to its place, `offset` bytes past RCV.NXT. It has been cut to the window, and
    /// the window never exceeds the buffer's limit, so it always fits.
    fn write_ahead(&mut self, offset: u32, payload: &Payload<'_>) {
        let mut at = offset as usize;
        for slice in payload.slices() {
            if !slice.is_empty() {
                self.buf.write_at(at, slice);
                at += slice.len();
            }
        }
    }

    /// True if `[start, end)`, which has not arrived yet, is too far from RCV.NXT to be written
    /// ahead.
    pub(super) fn is_far(&self, start: SeqNum, end: SeqNum) -> bool {
        let waits = self.out_of_order_bytes() + end.distance_from(start);
        start.gt(self.rcv_nxt) && end.distance_from(self.rcv_nxt) > waits.saturating_mul(SPARSE)
    }

    /// Takes the memory for a piece of `len` bytes that is [far](Self::is_far). False if there is
    /// none, or there may not be more pieces: each range has at least one, and more if it grew
    /// towards the hole before it.
    pub(super) fn take_far(&self, ctx: &mut Ctx<'_>, config: &ConnConfig, len: usize) -> bool {
        let most = 2 * usize::from(config.max_out_of_order_ranges);
        let full = self.waiting.as_ref().is_some_and(|waiting| waiting.far.len() >= most);
        !full && ctx.observe.budget.take(len + PIECE)
    }

    /// Before data at RCV.NXT is stored: the buffer may have to take what is kept apart. If there
    /// is no memory for that, it is dropped, and the peer sends it again (RFC 2018, section 8).
    pub(super) fn make_room_for_far(&mut self, ctx: &mut Ctx<'_>) {
        let Some(end) = self.waiting.as_ref().and_then(|waiting| waiting.far.end()) else { return };
        let reach = end.distance_from(self.rcv_nxt);
        if self.take_memory(ctx, reach) < reach {
            ctx.observe.counters.ofo_pruned += u64::from(self.prune());
        }
    }

    /// Keeps data that is [far](Self::is_far), and in a range.
    fn store_far(&mut self, start: SeqNum, payload: &Payload<'_>) {
        if let Some(waiting) = &mut self.waiting {
            waiting.far.insert(start, payload);
        }
    }

    /// The next `n` bytes are complete: those that are kept apart come into the buffer.
    fn fetch_far(&mut self, n: u32) {
        let Some(waiting) = &mut self.waiting else { return };
        // Pieces are parts of ranges, and ranges become complete as a whole.
        while let Some((start, data)) = waiting.far.take_before(self.rcv_nxt + n) {
            let at = start.distance_from(self.rcv_nxt) as usize;
            self.buf.write_at(at, &data);
        }
    }

    /// The buffer, and what waits past a hole.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (&RecvBuffer, Option<&Assembler>) {
        (&self.buf, self.waiting.as_deref())
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.buf.memory() + self.waiting.as_deref().map_or(0, Assembler::memory)
    }

    /// Drops what arrived out of order, which the peer still has (RFC 2018, section 8). True if
    /// there was some.
    pub(super) fn prune(&mut self) -> bool {
        let prunes = self.waiting.take_if(|waiting| !waiting.is_empty()).is_some();
        if prunes {
            self.buf.forget_ahead();
            self.buf.shrink();
        }
        prunes
    }

    /// The buffer reaches far ahead for little: what there was in between has been delivered.
    fn is_sparse(&self) -> bool {
        self.buf.ahead() > (SPARSE as usize).saturating_mul(self.out_of_order_bytes() as usize)
    }

    /// True if [`trim`](Self::trim) would free memory.
    pub(super) fn has_spare_memory(&self) -> bool {
        self.buf.has_spare()
            || self.is_sparse()
            || self.waiting.as_ref().is_some_and(|waiting| is_idle(waiting))
    }

    /// Frees memory that what is held does not need.
    pub(super) fn trim(&mut self) {
        if self.is_sparse() {
            self.move_apart();
        }
        self.buf.shrink();
        self.waiting.take_if(|waiting| is_idle(waiting));
    }

    /// Moves out-of-order data out of the buffer.
    fn move_apart(&mut self) {
        self.buf.hold();
        if let Some(waiting) = &mut self.waiting {
            let mut far = core::mem::replace(&mut waiting.far, Pieces::new());
            for (start, end) in waiting.iter() {
                let offset = start.distance_from(self.rcv_nxt) as usize;
                let written = self.buf.slices_ahead(offset, end.distance_from(start) as usize);
                far.insert(start, &Payload::from(written));
            }
            waiting.far = far;
        }
        self.buf.forget_ahead();
    }

    /// What was received will not be read: not as if the stream were complete.
    pub(super) fn forfeit(&mut self) {
        self.discard();
        self.fin_known = false;
    }

    /// Frees what was received, in order or not.
    pub(super) fn discard(&mut self) {
        self.buf.clear();
        self.waiting = None;
    }
}

/// Nothing is waiting past a hole, and there is nothing to report.
fn is_idle(waiting: &Assembler) -> bool {
    waiting.is_empty() && waiting.duplicate().is_none()
}
