//! The data of one end as packets show it.
//!
//! Whether a packet is a retransmission, what for, and what the sender waited for before it left,
//! is inferred from sequence numbers, ACKs and times as they pass the capture. If packets say so
//! themselves in comments, that counts instead.

mod again;
mod heard;
mod wait;

use super::accurate::Feedback;
use super::positions::ORIGIN;
use super::rtt::RoundTrips;
use super::slow_start::SlowStartWatch;
use super::stated_reason::StatedReason;
use super::tally::Tally;
use super::view::SenderView;
use super::{Context, JUMBO};
use crate::segment::Segment;
use crate::story::{Cause, Direction, Marks};
use ackline_tcp_core::wire::TcpFlags;
use again::RepeatedRange;
use std::net::SocketAddr;

/// A larger jump of the sequence numbers is a hole of the capture, and no loss.
const LARGEST_GAP: u64 = 64 << 20;
/// CE in the IP header (RFC 3168).
const CE: u8 = 3;

/// The data of one end.
#[derive(Debug)]
pub(crate) struct Flow {
    tally: Tally,
    view: SenderView,
    /// Round trips from the capture to the sender, if it is away from there.
    rtt_before: RoundTrips,
    marks: Marks,
    /// What the receiver tells by accurate ECN, once that is known to be in use.
    feedback: Option<Feedback>,
    mss: u32,
    /// The SYN has passed: what comes first in the stream is known.
    opened: bool,
    /// When the last packet with data passed; whether it ended what was written.
    sent_ns: u64,
    /// The round trip as it was then.
    sent_rtt_ns: Option<u64>,
    sent_partial: bool,
    /// Mean of the waits that nothing explains, ns per octet, and how many there were in a row.
    spacing: Option<f64>,
    spaced: u32,
    highest_sacked: u64,
    duplicates: u32,
    latest_tsval: Option<u32>,
    last_window: Option<u16>,
    /// Of the last ACK that advanced: when it came, and when what it acknowledges had been sent.
    advanced: Option<(u64, u64)>,
    stated: bool,
}

impl Flow {
    /// For the data from one end of a connection that begins at `start_ns`: at most `records` of
    /// what is in flight, and `drawn` entries of what is drawn.
    pub(crate) fn new(from: SocketAddr, start_ns: u64, records: usize, drawn: usize) -> Self {
        Self {
            tally: Tally::new(from, start_ns, records, drawn, SlowStartWatch::default()),
            view: SenderView::new(records / 2),
            rtt_before: RoundTrips::default(),
            marks: Marks::default(),
            feedback: None,
            mss: 0,
            opened: false,
            sent_ns: 0,
            sent_rtt_ns: None,
            sent_partial: false,
            spacing: None,
            spaced: 0,
            highest_sacked: 0,
            duplicates: 0,
            latest_tsval: None,
            last_window: None,
            advanced: None,
            stated: false,
        }
    }

    pub(crate) const fn keep_alives(&self) -> u64 {
        self.tally.keep_alives
    }

    pub(crate) const fn fin(&self) -> (Option<u64>, bool) {
        self.tally.fin()
    }

    pub(crate) const fn is_stated(&self) -> bool {
        self.stated
    }

    /// The capture says that this packet of the sender was dropped behind it.
    pub(crate) const fn dropped(&mut self) {
        self.tally.losses.dropped += 1;
    }

    /// The sender echoed after `rtt_ns` what had passed the capture towards it.
    pub(crate) fn echoed(&mut self, rtt_ns: u64, context: &Context) {
        // One that has nothing to send echoes late.
        let busy = matches!(self.tally.ledger.last(), Some(Cause::CongestionWindow | Cause::Path));
        if busy && context.is_away() {
            self.rtt_before.add(rtt_ns, self.flight());
        }
    }

    /// A packet of the sender passed.
    pub(crate) fn sent(&mut self, segment: &Segment<'_>, context: &Context) {
        let at = segment.at_ns;
        if segment.has(TcpFlags::SYN) {
            // The SYN is at the position before the first octet.
            self.tally.positions.begin(segment.seq.wrapping_add(1));
            self.opened = true;
        }
        let first = segment.seq.wrapping_add(u32::from(segment.has(TcpFlags::SYN)));
        let start = self.tally.place(first);
        let stated = StatedReason::in_comment(segment.comment);
        self.stated |= stated.is_some();
        self.marks.capable += u64::from(segment.ecn == 1 || segment.ecn == 2 || segment.ecn == CE);
        self.marks.marked += u64::from(segment.ecn == CE);
        let syn = segment.has(TcpFlags::SYN);
        let classic = self.feedback.is_none() && !context.accurate_ecn;
        self.marks.reductions += u64::from(segment.has(TcpFlags::CWR) && !syn && classic);
        let has_fin = segment.has(TcpFlags::FIN);
        if has_fin {
            self.tally.finishes(at, start + u64::from(segment.length));
        }
        if segment.has(TcpFlags::RST) {
            return;
        }
        self.view.advance(at, self.tally.snd_nxt);
        if self.is_probe(segment, start, stated, has_fin) {
            return;
        }
        self.tally.slow_start.acknowledged(at, self.view.una(), self.tally.snd_nxt);
        let end = start + u64::from(segment.length) + u64::from(has_fin);
        if end == start {
            return;
        }
        self.tally.packet(at, segment.length);
        if segment.length <= JUMBO {
            self.mss = self.mss.max(segment.length);
        }
        let tsval = segment.options.timestamps.map(|timestamps| timestamps.val);
        let sent = self.tally.snd_nxt;
        if start < sent {
            self.repeated(&RepeatedRange { start, end: end.min(sent), at, stated }, tsval, context);
        }
        if end > sent {
            self.fresh(start.max(sent), end, at, context);
        }
        if let Some(tsval) = tsval
            && self.latest_tsval.is_none_or(|latest| is_after(tsval, latest))
        {
            self.latest_tsval = Some(tsval);
        }
        self.sent_ns = at;
        self.sent_rtt_ns = self.tally.rtt.smoothed_ns();
        let mss = context.segment_size(self.mss);
        self.sent_partial = !u64::from(segment.length).is_multiple_of(mss) || has_fin;
    }

    /// Window probes and keep-alives, which repeat the octet before the next one or have none.
    fn is_probe(
        &mut self,
        segment: &Segment<'_>,
        start: u64,
        stated: Option<StatedReason>,
        has_fin: bool,
    ) -> bool {
        let tally = &mut self.tally;
        let end = start + u64::from(segment.length);
        let idle = tally.snd_una == tally.snd_nxt && !has_fin;
        let repeats = idle && start + 1 == tally.snd_una && end <= tally.snd_una;
        let shut = tally.window.zero > 0 && self.last_window == Some(0);
        if stated == Some(StatedReason::WindowProbe)
            || shut && segment.length <= 1 && (repeats || segment.length == 1 && !has_fin)
        {
            tally.window.probes += 1;
            // RFC 9293, section 3.8.6.1: an octet of new data goes beyond the window. It is data
            // once it is acknowledged.
            if start == tally.snd_nxt {
                tally.probed = end;
            }
            return true;
        }
        if stated == Some(StatedReason::KeepAlive) || repeats && segment.length <= 1 {
            tally.keep_alives += 1;
            return true;
        }
        false
    }

    /// Octets that had not passed, nor any behind them.
    fn fresh(&mut self, start: u64, end: u64, at: u64, context: &Context) {
        let tally = &mut self.tally;
        let begins = tally.packets <= 1 && tally.bytes == 0 && !self.opened;
        if begins && tally.snd_una == ORIGIN && tally.snd_nxt == ORIGIN && start > ORIGIN {
            // What came before is not in the capture.
            (tally.snd_una, tally.snd_nxt) = (start, start);
        }
        self.account(end, at, context);
        let before = self.flight();
        let tally = &mut self.tally;
        let gap = start - tally.snd_nxt;
        if gap > LARGEST_GAP {
            tally.uncaptured += gap;
            tally.outstanding.acknowledge(start, |_| {});
            tally.snd_una = start;
        } else if gap > 0 {
            tally.record(tally.snd_nxt, start, at, 0, before + gap);
        }
        tally.record(start, end, at, 1, before + end - start);
        tally.bytes += end - start + if gap > LARGEST_GAP { 0 } else { gap };
        tally.snd_nxt = end;
        let flight = self.flight();
        self.view.sent();
        self.tally.fresh(at, start, end, flight);
        self.tally.in_flight(at, flight);
    }

    /// Octets that the sender believes to be on the path.
    fn flight(&self) -> u64 {
        self.tally.snd_nxt.saturating_sub(self.view.una().max(ORIGIN)).saturating_sub(self.view.sacked())
    }

    /// What is told of it; `start_ns` is the connection's begin.
    pub(crate) fn finish(mut self, start_ns: u64, context: &Context) -> Direction {
        self.tally.find_fin();
        // What came after the last data: its ACK.
        let stall = self.stall_ns(context);
        let cause = match self.tally.episodes.open() {
            Some(open) if open.timeout_point > 0 => Cause::Timer,
            Some(_) => Cause::Recovery,
            None => Cause::Application,
        };
        self.tally.ledger.write(cause, self.tally.last_ns, stall);
        let mss = context.segment_size(self.mss);
        Direction {
            mss: mss as u32,
            rtt_before: self.rtt_before.finish(),
            marks: Marks { accurate: self.feedback.map(|feedback| feedback.marks()), ..self.marks },
            ..self.tally.finish(start_ns, mss)
        }
    }
}

/// Timestamps and sequence numbers wrap around.
const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}
