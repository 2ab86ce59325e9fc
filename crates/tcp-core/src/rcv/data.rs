//! Processing of a segment's data and FIN (RFC 9293, section 3.10.7.4: the first, seventh and
//! eighth check).
//!
//! Nearly every segment is the expected one, with nothing out of order: it takes the short path
//! ([`Receiver::on_expected`]). Everything else is cut to the window, inserted, and answered.

use super::echo::MarkedArrival;
use super::obligations::ArrivalFacts;
use super::{DataOutcome, Incoming, Receiver, UNKNOWN_MSS};
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::events::DropReason;
use crate::packet::SendReason;
use crate::policy::ack::{DataArrival, DataClass};
use crate::rcv::assembler::Placement;
use crate::seq::SeqNum;
use crate::wire::{Payload, Run};

/// The four cases of RFC 9293, section 3.10.7.4, first check, for RCV.NXT and RCV.WND. `len` counts
/// SYN and FIN.
///
/// One leniency: a segment without data may start at the edge itself. A peer that has used up its
/// window sends its ACKs with that number while earlier data is lost or late, and they must be
/// accepted.
pub(crate) fn acceptable(rcv_nxt: SeqNum, window: u32, seq: SeqNum, len: u32) -> bool {
    let edge = rcv_nxt + window;
    if window == 0 {
        return len == 0 && seq == rcv_nxt;
    }
    if len == 0 {
        return rcv_nxt.le(seq) && seq.le(edge);
    }
    seq.within(rcv_nxt, edge) || (seq + (len - 1)).within(rcv_nxt, edge)
}

/// True if `len` bytes from `seq` on, which are not acceptable, repeat data of a stream of which
/// `received` sequence numbers arrived, up to RCV.NXT. A segment from before the start of the
/// stream repeats nothing: DSACK must not report it. Nor does a [probe](is_keep_alive).
pub(crate) fn repeats(rcv_nxt: SeqNum, received: u64, seq: SeqNum, len: u32) -> bool {
    !is_keep_alive(rcv_nxt, seq, len)
        && (seq + len).le(rcv_nxt)
        && u64::from(rcv_nxt.distance_from(seq)) <= received
}

/// Section 3.8.4: the byte before RCV.NXT again.
fn is_keep_alive(rcv_nxt: SeqNum, seq: SeqNum, len: u32) -> bool {
    len == 1 && seq + 1 == rcv_nxt
}

impl Receiver {
    /// An unacceptable segment with `len` bytes of data: dropped and answered with an ACK.
    pub(crate) fn on_unacceptable(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, seq: SeqNum, len: u32) {
        if len == 0 {
            self.acks.oblige(SendReason::AckByObligation);
            return;
        }
        let end = seq + len;
        let old = repeats(self.rcv_nxt(), self.received(), seq, len);
        let class =
            if (self.window() == 0 && seq == self.rcv_nxt()) || is_keep_alive(self.rcv_nxt(), seq, len) {
                // Section 3.8.6.1, too: one byte past a closed window.
                DataClass::Probe
            } else if old {
                self.on_duplicate(ctx);
                self.reassembly.note_repeat(config, seq, end);
                DataClass::Duplicate
            } else {
                DataClass::Unacceptable
            };
        if seq == self.rcv_nxt() {
            ctx.observe.counters.tcp_zero_window_drop += 1;
        }
        self.acks.holds(ctx.now);
        self.tell_policy(ctx, config, &DataArrival::new(seq, end, class), ArrivalFacts::default());
    }

    /// Data or FIN of an acceptable segment.
    pub(crate) fn on_data(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &Incoming<'_>,
    ) -> DataOutcome {
        let len = seg.payload.len() as u32;
        if !seg.fin && self.expects(seg.seq, len) {
            return self.on_expected(ctx, config, seg);
        }
        if len > 0 {
            self.take_mark(ctx, seg);
        }
        self.measure(seg, len);
        self.take_other(ctx, config, seg, len)
    }

    /// Measures round trips and the peer's segment size.
    #[inline]
    fn measure(&mut self, seg: &Incoming<'_>, len: u32) {
        self.srtt = seg.srtt.unwrap_or(self.srtt);
        if len > 0 {
            self.data_segs_in += u64::from(seg.segments);
            self.estimate_peer_mss(len, seg.segments);
            if let Some(rtt) = seg.ts_rtt {
                self.window.on_rtt(rtt);
            }
        }
    }

    /// Passes the CE mark to the echo, before RCV.NXT moves.
    #[inline]
    fn take_mark(&mut self, ctx: &mut Ctx<'_>, seg: &Incoming<'_>) {
        if let Some(marks) = self.marks.as_deref_mut() {
            let Incoming { ce, cwr, segments, .. } = *seg;
            let (rcv_nxt, highest_ack) = (self.reassembly.rcv_nxt(), self.highest_ack);
            marks.on_data(
                &mut ctx.observe.counters,
                &MarkedArrival { ce, cwr, segments, rcv_nxt, highest_ack },
            );
        }
    }

    /// True if a segment with `len` bytes from `seq` on, without FIN, is the next one in order,
    /// inside the window, and nothing waits past a hole.
    #[inline]
    pub(crate) fn expects(&self, seq: SeqNum, len: u32) -> bool {
        self.reassembly.expects(seq) && len > 0 && len <= self.window()
    }

    /// The segment that is [expected](Self::expects) arrived.
    #[inline]
    pub(crate) fn on_expected(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &Incoming<'_>,
    ) -> DataOutcome {
        let len = seg.payload.len() as u32;
        self.take_mark(ctx, seg);
        self.measure(seg, len);
        if self.reassembly.take_memory(ctx, len) < len {
            return self.take_other(ctx, config, seg, len);
        }
        ctx.observe.counters.tcp_hp_hits += 1;
        self.append(ctx, config, &seg.payload);
        self.take_in_order(ctx, config, seg, len, 1);
        DataOutcome { readable: true, fin: false }
    }

    /// True if there is memory for `n` bytes past RCV.NXT.
    #[inline]
    pub(crate) fn has_memory(&self, ctx: &Ctx<'_>, n: u32) -> bool {
        self.reassembly.has_memory(ctx, n)
    }

    /// Free memory for the data of a [run](Run) of segments with up to `len` bytes each, from
    /// RCV.NXT on. What is written there counts only if [`on_run`](Self::on_run) is told of it.
    #[inline]
    pub(crate) fn room_for_run(&mut self, len: usize) -> [&mut [u8]; 2] {
        self.reassembly.free_slices(len)
    }

    /// Segments arrived together, each of which is [expected](Self::expects) when those before it
    /// have been taken, and for which there is [memory](Self::has_memory). `first` is the first of
    /// them. The result is that of [`on_expected`](Self::on_expected) for each.
    pub(crate) fn on_run(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        first: &Incoming<'_>,
        run: &Run<'_>,
    ) -> DataOutcome {
        let (bytes, segments) = (run.bytes(), run.segments());
        self.take_mark(ctx, &Incoming { segments, ..*first });
        // None is longer than the first, so it alone has a say in the peer's segment size.
        self.measure(first, first.payload.len() as u32);
        self.data_segs_in += u64::from(segments - 1);
        self.reassembly.take_memory(ctx, bytes);
        ctx.observe.counters.tcp_hp_hits += u64::from(segments);
        // If the core demands an ACK for one of the segments, it matters for which.
        let left = self.window().saturating_sub(bytes);
        let mut stored = run.stored();
        if left >= self.window.quota(u32::from(self.rmss)) && self.acks.takes_runs() {
            if stored == bytes {
                self.reassembly.commit(bytes);
            } else {
                for (payload, _) in run.segments_data() {
                    self.put(ctx, config, &payload, &mut stored);
                }
            }
            let merged = Incoming { segments, psh: run.psh(), ..*first };
            self.take_in_order(ctx, config, &merged, bytes, segments);
        } else {
            for (payload, psh) in run.segments_data() {
                self.put(ctx, config, &payload, &mut stored);
                let seg = Incoming { seq: self.rcv_nxt(), payload, psh, ..*first };
                self.take_in_order(ctx, config, &seg, payload.len() as u32, 1);
            }
        }
        DataOutcome { readable: true, fin: false }
    }

    /// Stores the next data in order; of the first `stored` bytes, which lie in their place, makes
    /// it readable.
    fn put(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, payload: &Payload<'_>, stored: &mut u32) {
        let len = payload.len() as u32;
        match stored.checked_sub(len) {
            Some(rest) => {
                self.reassembly.commit(len);
                *stored = rest;
            }
            None => self.append(ctx, config, payload),
        }
    }

    /// Stores the next data in order.
    #[inline]
    fn append(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, payload: &Payload<'_>) {
        self.reassembly.append(config, payload, &mut ctx.observe.budget.spare);
    }

    /// `len` bytes of `packets` packets are next in order, and stored.
    #[inline]
    fn take_in_order(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &Incoming<'_>,
        len: u32,
        packets: u32,
    ) {
        self.reassembly.advance(len);
        self.acks.holds(ctx.now);
        let arrival = DataArrival { packets, ..arrival(seg, seg.seq, seg.seq + len, DataClass::New) };
        let facts = ArrivalFacts { hard: self.nearly_full(), advanced: true, ..ArrivalFacts::default() };
        self.tell_policy(ctx, config, &arrival, facts);
    }

    /// Any other acceptable segment.
    fn take_other(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        seg: &Incoming<'_>,
        len: u32,
    ) -> DataOutcome {
        let (mut payload, mut fin, mut end) = (seg.payload, seg.fin, seg.seq + len);
        let before = self.rcv_nxt();
        let mut hard = seg.fin;

        // Data past the window, or past a FIN, is cut off, and with it the FIN that follows.
        let edge = self.window.edge();
        let last = self.reassembly.fin().map_or(edge, |fin| fin.min(edge));
        if end.gt(last) {
            let keep = len.min(last.saturating_distance_from(seg.seq));
            payload.truncate(keep as usize);
            end = seg.seq + keep;
            (fin, hard) = (false, true);
            if self.reassembly.fin().is_none() {
                ctx.observe.counters.tcp_cut_to_window += 1;
            }
        }
        // So is what there is no memory for (RFC 9293, section 3.8.6, lets a receiver only take
        // back what it has not promised; dropping data that was promised a place costs a
        // retransmission).
        let far = self.reassembly.is_far(seg.seq, end);
        let room = match end.saturating_distance_from(before) {
            n if far => {
                let fits = self.reassembly.take_far(ctx, config, seg.payload.len());
                if fits { n } else { 0 }
            }
            n => {
                if seg.seq.le(before) {
                    self.reassembly.make_room_for_far(ctx);
                }
                self.reassembly.take_memory(ctx, n)
            }
        };
        if end.gt(before + room) {
            end = before + room;
            payload.truncate(end.saturating_distance_from(seg.seq) as usize);
            (fin, hard) = (false, true);
            ctx.dropped(if seg.seq.gt(before) { DropReason::OutOfOrderFull } else { DropReason::NoMemory });
        }
        if fin {
            self.reassembly.learn_fin(end);
        }

        let mut facts = ArrivalFacts { hard, sack: self.has_sack(), ..ArrivalFacts::default() };
        let mut class = None;
        if seg.seq.lt(end) {
            let inserted = self.reassembly.insert(config, seg.seq, payload, far);
            match inserted.placement {
                Placement::Refused => ctx.dropped(DropReason::OutOfOrderFull),
                Placement::Duplicate => {
                    if before.le(seg.seq) {
                        self.reassembly.count_out_of_order(&mut ctx.observe.counters, seg.segments, 1);
                    }
                    self.on_duplicate(ctx);
                }
                Placement::InOrder | Placement::FillsHole => {}
                Placement::NewRange | Placement::Extended => {
                    self.reassembly.count_out_of_order(
                        &mut ctx.observe.counters,
                        seg.segments,
                        inserted.covered,
                    );
                }
            }
            facts.repeats = inserted.duplicate_bytes > 0;
            class = Some(class_of(inserted.placement));
            if inserted.advance == 0 && class == Some(DataClass::OutOfOrder) {
                facts.duplicates = seg.segments;
            }
        }
        let readable = self.rcv_nxt() != before;
        let received = DataOutcome { readable, fin: self.reassembly.take_fin() };
        facts.advanced = self.rcv_nxt() != before;
        facts.hard |= facts.advanced && self.nearly_full();
        match class {
            Some(class) => {
                self.acks.holds(ctx.now);
                self.tell_policy(ctx, config, &arrival(seg, seg.seq, end, class), facts);
            }
            // RFC 9293, section 3.10.7.4, eighth: a FIN is acknowledged at once; a segment that was
            // cut off completely is answered like an unacceptable one.
            None => self.acks.oblige(SendReason::AckByObligation),
        }
        received
    }

    /// Less than `min(RMSS, R/2)` is left of the window: the peer must be told at once.
    pub(super) fn nearly_full(&self) -> bool {
        self.window() < self.window.quota(u32::from(self.rmss))
    }

    /// A segment contained nothing new.
    fn on_duplicate(&mut self, ctx: &mut Ctx<'_>) {
        ctx.observe.counters.ack_hold_duplicates += u64::from(self.acks.is_holding());
        if let Some(marks) = self.marks.as_deref_mut() {
            marks.on_duplicate(&mut ctx.observe.counters, ctx.now);
        }
    }

    fn tell_policy(
        &mut self,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        data: &DataArrival,
        facts: ArrivalFacts,
    ) {
        let view = self.view(ctx.now, config);
        self.acks.on_data(ctx, &view, data, &facts);
    }

    /// RFC 5681, section 4.2: the receiver must estimate the size of a full segment; this uses the
    /// largest payload seen, bounded by RMSS. Segments below the default MSS are ignored: they may
    /// be small because the peer had no more to send.
    fn estimate_peer_mss(&mut self, len: u32, segments: u32) {
        if len <= u32::from(self.peer_mss) {
            return;
        }
        let each = if segments > 1 { len.div_ceil(segments) } else { len };
        let floor = UNKNOWN_MSS.min(u32::from(self.rmss));
        self.peer_mss = self.peer_mss.max(each.clamp(floor, u32::from(self.rmss)) as u16);
    }
}

fn arrival(seg: &Incoming<'_>, start: SeqNum, end: SeqNum, class: DataClass) -> DataArrival {
    DataArrival {
        start,
        end,
        class,
        segments: seg.segments,
        packets: 1,
        psh: seg.psh,
        fin: seg.fin,
        urg: seg.urg,
        ce: seg.ce,
        cwr: seg.cwr,
        ts_rtt: seg.ts_rtt,
    }
}

const fn class_of(placement: Placement) -> DataClass {
    match placement {
        Placement::InOrder => DataClass::New,
        Placement::FillsHole => DataClass::Hole,
        Placement::NewRange | Placement::Extended | Placement::Refused => DataClass::OutOfOrder,
        Placement::Duplicate => DataClass::Duplicate,
    }
}
