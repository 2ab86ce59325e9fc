//! The data of one end: what passed, what came back for it, and what its sender waited for.
//!
//! Whether a packet is a retransmission, what for, and what the sender waited for before it left, is inferred from sequence numbers, ACKs
//! and times as they pass the capture. If packets say so themselves in comments, that counts instead.

mod context;
mod episodes;
mod outstanding;
mod positions;
mod received;
mod rtt;
mod segment_size;
mod sender;
mod slow_start;
mod stated;
mod time;
mod view;

use crate::picture::Artist;
use crate::segment::Segment;
use crate::story::{Acks, Cause, Direction, Found, Losses, Marks, SlowStartEnd, Window};
use ackline_tcp_core::wire::{TcpFlags, Timestamps};
use episodes::{Episodes, Retransmission};
use outstanding::{Outstanding, Record};
use positions::{ORIGIN, Positions};
use rtt::RoundTrips;
use slow_start::SlowStartWatch;
use stated::Stated;
use std::net::SocketAddr;
use time::Ledger;
use view::SenderView;

pub(crate) use context::Context;
pub(crate) use received::Received;
pub(crate) use sender::Sender;

/// A larger jump of the sequence numbers is a hole of the capture, and no loss.
const LARGEST_GAP: u64 = 64 << 20;
/// RFC 7323, section 2.3.
const MAX_SCALE: u8 = 14;
/// The largest ordinary segment; what is larger was joined by offload.
const JUMBO: u32 = 9_000;
/// CE in the IP header (RFC 3168).
const CE: u8 = 3;
/// A sender's shortest retransmission timeout (Linux). RFC 6298 has 1 s.
const SHORTEST_RTO_NS: u64 = 200_000_000;
/// A shorter wait is a burst that goes on.
const BURST_NS: u64 = 60_000;
/// Longer waits are this long, where they are compared.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;
/// The shortest wait that is a stall.
const SHORTEST_STALL_NS: u64 = 100_000_000;

/// The data of one end.
#[derive(Debug)]
pub(crate) struct Flow {
    from: SocketAddr,
    positions: Positions,
    snd_nxt: u64,
    snd_una: u64,
    fin: Option<u64>,
    outstanding: Outstanding,
    view: SenderView,
    ledger: Ledger,
    slow_start: SlowStartWatch,
    episodes: Episodes,
    rtt: RoundTrips,
    /// Round trips from the capture to the sender, if it is away from there.
    rtt_before: RoundTrips,
    losses: Losses,
    acks: Acks,
    window: Window,
    marks: Marks,
    bytes: u64,
    packets: u64,
    largest: u32,
    mss: u32,
    max_flight: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    /// When the last packet with data passed; whether it ended what was written.
    sent_ns: u64,
    sent_partial: bool,
    /// Mean of the waits that nothing explains, ns per octet, and how many there were in a row.
    spacing: Option<f64>,
    spaced: u32,
    highest_sacked: u64,
    duplicates: u32,
    progress_ns: u64,
    latest_tsval: Option<u32>,
    last_window: Option<u16>,
    acked_bytes: u64,
    /// Of the last ACK that advanced: when it came, and when what it acknowledges had been sent.
    advanced: Option<(u64, u64)>,
    uncaptured: u64,
    keep_alives: u64,
    fin_ns: Option<u64>,
    fin_acked: bool,
    stated: bool,
    artist: Option<Artist>,
}

impl Flow {
    /// For the data from one end of a connection that begins at `start_ns`: at most `records` of what is in flight, and `drawn` entries of
    /// what is drawn.
    pub(crate) fn new(from: SocketAddr, start_ns: u64, records: usize, drawn: usize) -> Self {
        Self {
            from,
            positions: Positions::default(),
            snd_nxt: ORIGIN,
            snd_una: ORIGIN,
            fin: None,
            outstanding: Outstanding::new(records),
            view: SenderView::new(records / 2),
            ledger: Ledger::default(),
            slow_start: SlowStartWatch::default(),
            episodes: Episodes::default(),
            rtt: RoundTrips::default(),
            rtt_before: RoundTrips::default(),
            losses: Losses::default(),
            acks: Acks::default(),
            window: Window::default(),
            marks: Marks::default(),
            bytes: 0,
            packets: 0,
            largest: 0,
            mss: 0,
            max_flight: 0,
            first_ns: None,
            last_ns: 0,
            sent_ns: 0,
            sent_partial: false,
            spacing: None,
            spaced: 0,
            highest_sacked: 0,
            duplicates: 0,
            progress_ns: 0,
            latest_tsval: None,
            last_window: None,
            acked_bytes: 0,
            advanced: None,
            uncaptured: 0,
            keep_alives: 0,
            fin_ns: None,
            fin_acked: false,
            stated: false,
            artist: (drawn > 0).then(|| Artist::new(start_ns, ORIGIN, drawn)),
        }
    }

    pub(crate) const fn keep_alives(&self) -> u64 {
        self.keep_alives
    }

    pub(crate) const fn fin(&self) -> (Option<u64>, bool) {
        (self.fin_ns, self.fin_acked)
    }

    pub(crate) const fn is_stated(&self) -> bool {
        self.stated
    }

    fn place(&mut self, seq: u32) -> u64 {
        self.positions.of(seq, self.snd_nxt)
    }

    /// The capture says that this packet of the sender was dropped behind it.
    pub(crate) const fn dropped(&mut self) {
        self.losses.dropped += 1;
    }

    /// The sender echoed after `rtt_ns` what had passed the capture towards it.
    pub(crate) fn echoed(&mut self, rtt_ns: u64, context: &Context) {
        // One that has nothing to send echoes late.
        let busy = matches!(self.ledger.last(), Some(Cause::CongestionWindow | Cause::Path));
        if busy && context.is_away() {
            self.rtt_before.add(rtt_ns, self.flight());
        }
    }

    /// A packet of the sender passed.
    pub(crate) fn sent(&mut self, segment: &Segment<'_>, context: &Context) {
        let at = segment.at_ns;
        if segment.has(TcpFlags::SYN) {
            // The SYN is at the position before the first octet.
            self.positions.begin(segment.seq.wrapping_add(1));
        }
        let first = segment.seq.wrapping_add(u32::from(segment.has(TcpFlags::SYN)));
        let start = self.place(first);
        let stated = Stated::in_comment(segment.comment);
        self.stated |= stated.is_some();
        self.marks.capable += u64::from(segment.ecn == 1 || segment.ecn == 2 || segment.ecn == CE);
        self.marks.marked += u64::from(segment.ecn == CE);
        let syn = segment.has(TcpFlags::SYN);
        self.marks.reductions += u64::from(segment.has(TcpFlags::CWR) && !syn);
        let has_fin = segment.has(TcpFlags::FIN);
        if has_fin {
            self.fin_ns.get_or_insert(at);
            self.fin.get_or_insert(start + u64::from(segment.length));
        }
        if segment.has(TcpFlags::RST) {
            return;
        }
        self.view.advance(at, self.snd_nxt);
        self.slow_start.acknowledged(at, self.view.una(), self.snd_nxt);
        if self.is_probe(segment, start, stated, has_fin) {
            return;
        }
        let end = start + u64::from(segment.length) + u64::from(has_fin);
        if end == start {
            return;
        }
        self.packets += u64::from(segment.length > 0);
        self.largest = self.largest.max(segment.length);
        if segment.length <= JUMBO {
            self.mss = self.mss.max(segment.length);
        }
        self.first_ns.get_or_insert(at);
        self.last_ns = at;
        self.ledger.begin(at);
        let tsval = segment.options.timestamps.map(|timestamps| timestamps.val);
        if start < self.snd_nxt {
            self.repeated(start, end.min(self.snd_nxt), at, tsval, stated, context);
        }
        if end > self.snd_nxt {
            self.fresh(start.max(self.snd_nxt), end, segment, context);
        }
        if let Some(tsval) = tsval
            && self.latest_tsval.is_none_or(|latest| is_after(tsval, latest))
        {
            self.latest_tsval = Some(tsval);
        }
        self.sent_ns = at;
        let mss = context.segment_size(self.mss);
        self.sent_partial = !u64::from(segment.length).is_multiple_of(mss) || has_fin;
    }

    /// Window probes and keep-alives, which repeat the octet before the next one or have none.
    fn is_probe(&mut self, segment: &Segment<'_>, start: u64, stated: Option<Stated>, has_fin: bool) -> bool {
        let end = start + u64::from(segment.length);
        let repeats =
            start + 1 == self.snd_una && end <= self.snd_una && self.snd_una == self.snd_nxt && !has_fin;
        let shut = self.window.zero > 0 && self.last_window == Some(0);
        if stated == Some(Stated::WindowProbe)
            || shut && segment.length <= 1 && (repeats || segment.length == 1)
        {
            self.window.probes += 1;
            // With an octet of new data it is data as well.
            return end <= self.snd_nxt;
        }
        if stated == Some(Stated::KeepAlive) || repeats && segment.length <= 1 {
            self.keep_alives += 1;
            return true;
        }
        false
    }

    /// Octets that had not passed, nor any behind them.
    fn fresh(&mut self, start: u64, end: u64, segment: &Segment<'_>, context: &Context) {
        let at = segment.at_ns;
        let begins = self.packets <= 1 && self.bytes == 0;
        if begins && self.snd_una == ORIGIN && self.snd_nxt == ORIGIN && start > ORIGIN {
            // What came before is not in the capture.
            (self.snd_una, self.snd_nxt) = (start, start);
        }
        self.account(end, at, context);
        let gap = start - self.snd_nxt;
        if gap > LARGEST_GAP {
            self.uncaptured += gap;
            self.outstanding.acknowledge(start, |_| {});
            self.snd_una = start;
        } else if gap > 0 {
            self.record(self.snd_nxt, start, at, 0);
        }
        self.record(start, end, at, 1);
        self.bytes += end - start + if gap > LARGEST_GAP { 0 } else { gap };
        self.snd_nxt = end;
        let flight = self.flight();
        self.max_flight = self.max_flight.max(flight);
        self.view.sent();
        self.slow_start.sent(flight, end);
        if let Some(artist) = &mut self.artist {
            artist.fresh(at, start, end, flight);
        }
        self.episodes.flight(at, flight);
    }

    fn record(&mut self, start: u64, end: u64, at: u64, times: u32) {
        let flight = self.flight() + end - start;
        self.outstanding.push(Record {
            start,
            end,
            first_ns: at,
            last_ns: at,
            times,
            flight,
            again_tsval: None,
            sacked: false,
            overtaken_ns: None,
        });
    }

    /// Octets that the sender believes to be on the path.
    fn flight(&self) -> u64 {
        self.snd_nxt.saturating_sub(self.view.una().max(ORIGIN)).saturating_sub(self.view.sacked())
    }

    /// Octets before the highest that has passed.
    fn repeated(
        &mut self,
        start: u64,
        end: u64,
        at: u64,
        tsval: Option<u32>,
        stated: Option<Stated>,
        context: &Context,
    ) {
        let rtt = self.rtt.smoothed_ns().unwrap_or(context.to_receiver_ns);
        let path = rtt + context.to_sender_ns;
        let is_older = tsval.zip(self.latest_tsval).map(|(tsval, latest)| is_after(latest, tsval));
        let is_newer = tsval.zip(self.latest_tsval).is_some_and(|(tsval, latest)| is_after(tsval, latest));
        let (mut unseen, mut seen, mut gap_ns) = (false, false, at);
        for record in self.outstanding.range_mut(start, end) {
            if record.times == 0 {
                unseen = true;
                gap_ns = gap_ns.min(record.first_ns);
            } else {
                seen = true;
            }
        }
        let before = unseen && !seen;
        let early = since(at, gap_ns) < path / 2;
        let late = match stated {
            Some(Stated::New) => true,
            Some(_) => false,
            None => is_older == Some(true) || (early && !is_newer),
        };
        let found = if before && late { None } else { Some(self.class(start, end, at, stated, context)) };
        for record in self.outstanding.range_mut(start, end) {
            record.times = record.times.saturating_add(1);
            record.last_ns = at;
            if record.times == 1 {
                // What SACK showed then was the gap.
                (record.first_ns, record.overtaken_ns) = (at, None);
            } else if record.again_tsval.is_none() {
                record.again_tsval = tsval.filter(|_| is_newer || is_older == Some(false));
            }
            if before && found.is_some() {
                // One that repairs a loss before the capture is measured by no ACK.
                record.times = record.times.max(2);
            }
        }
        match found {
            None => self.losses.reordered_before += 1,
            Some(found) => self.again(start, end, at, found, before, stated, context),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "facts of one packet, gathered by its only caller")]
    fn again(
        &mut self,
        start: u64,
        end: u64,
        at: u64,
        found: Found,
        before: bool,
        stated: Option<Stated>,
        context: &Context,
    ) {
        let follows = self.episodes.open().is_some_and(|open| start < open.timeout_point);
        let silent = since(at, self.sent_ns.max(self.view.heard_ns()));
        let expired = found == Found::Timeout && (!follows || silent >= SHORTEST_RTO_NS / 2);
        let stated = matches!(stated, Some(Stated::Again(_)));
        if let Some(artist) = &mut self.artist {
            artist.again(at, start, end, found);
        }
        let mss = context.segment_size(self.mss);
        let losses = &mut self.losses;
        losses.retransmissions += 1;
        losses.segments += (end - start).div_ceil(mss);
        losses.bytes += end - start;
        losses.before += u64::from(before);
        losses.stated += u64::from(stated);
        losses.timeouts += u64::from(expired);
        match found {
            Found::Fast => losses.fast += 1,
            Found::Probe => losses.probes += 1,
            Found::Timeout => losses.timeout += 1,
            Found::Unclear => losses.unclear += 1,
        }
        let cause = if expired || found == Found::Probe { Cause::Timer } else { Cause::Recovery };
        self.ledger.write(cause, at, self.stall_ns(context));
        let progress_ns = self.progress_ns.max(self.first_ns.unwrap_or(at));
        self.episodes.again(&Retransmission {
            at_ns: at,
            start,
            end,
            found,
            stated,
            before,
            snd_nxt: self.snd_nxt,
            flight: self.flight(),
            progress_ns,
            timeout: expired,
        });
        // A probe of the tail that finds nothing lost is no end of growth.
        if found != Found::Probe {
            self.slow_start.end(at, SlowStartEnd::Loss);
        }
        if end <= self.snd_una {
            // What is acknowledged already was sent for nothing, unless the ACK is on its way to the sender.
            let heard = since(at, self.progress_ns) > context.to_sender_ns * 2;
            if heard && self.episodes.needless(start, end) == Some(1) {
                self.losses.spurious += 1;
                self.losses.spurious_by_time += 1;
            }
        }
    }

    /// How the loss was found that this packet repairs.
    fn class(&self, start: u64, end: u64, at: u64, stated: Option<Stated>, context: &Context) -> Found {
        if let Some(Stated::Again(found)) = stated {
            return found;
        }
        let evidence = self.highest_sacked >= end
            || self.duplicates >= 3
            || (self.duplicates > 0 && self.highest_sacked > 0);
        let silent = since(at, self.sent_ns.max(self.view.heard_ns()));
        let path = self.rtt.smoothed_ns().unwrap_or(context.to_receiver_ns) + context.to_sender_ns;
        let timeout = self.rtt.timeout_ns().unwrap_or(0).max(SHORTEST_RTO_NS) + context.to_sender_ns;
        if let Some(open) = self.episodes.open()
            && start < open.timeout_point
            && silent < timeout / 2
        {
            return Found::Timeout;
        }
        // RACK's timer is at most a round trip behind the ACK (RFC 8985, section 6.2).
        if evidence && silent <= (path + path / 2).max(5_000_000) {
            return Found::Fast;
        }
        let again = self.episodes.last_again(start, end).is_some_and(|last| last >= self.progress_ns);
        let waited = since(at, self.view.progress_ns().max(self.sent_ns));
        if silent * 10 >= timeout * 9 || (again && silent * 2 >= timeout) {
            return Found::Timeout;
        }
        if end == self.snd_nxt && !again && waited * 2 >= path {
            return Found::Probe;
        }
        if start == self.snd_una && silent > path + path / 2 {
            return Found::Timeout;
        }
        match self.episodes.open() {
            Some(open) if start < open.timeout_point => Found::Timeout,
            Some(_) => Found::Fast,
            None if evidence => Found::Fast,
            None => Found::Unclear,
        }
    }

    /// What the sender waited for before new data up to `end` left.
    fn account(&mut self, end: u64, at: u64, context: &Context) {
        let stall = self.stall_ns(context);
        if self.episodes.open().is_some() {
            self.ledger.write(Cause::Recovery, at, stall);
            return;
        }
        let rtt = self.rtt.smoothed_ns().unwrap_or(context.to_receiver_ns) + context.to_sender_ns;
        // What an ACK lets go follows at once. What is paced follows sometime between two ACKs.
        let spacing = self.view.spacing_ns() / 4;
        let prompt = spacing.min(rtt / 8).clamp(100_000, 2_000_000) + context.to_sender_ns / 4;
        // A sender waits for room for a whole segment (RFC 9293, section 3.8.6.2.1).
        let whole = self.snd_nxt + context.segment_size(self.mss);
        if let Some((raised, zero)) = self.view.held_back(end.max(whole)) {
            let cause = if zero { Cause::ZeroWindow } else { Cause::ReceiverWindow };
            self.slow_start.window_is_full();
            if raised <= self.sent_ns || since(at, raised) <= prompt {
                self.ledger.write(cause, at, stall);
                return;
            }
            self.ledger.write(cause, raised, stall);
        }
        let waited = since(at, self.sent_ns);
        if let Some(drained) = self.view.drained_ns() {
            // Everything was acknowledged, so no window held anything back; but for a flight that fills the window.
            let cause = match () {
                () if self.sent_partial => Cause::Application,
                () if since(at, drained) <= prompt => Cause::CongestionWindow,
                // A queue before the capture may hold what the application has written.
                () if context.is_away() => Cause::Path,
                () => Cause::Application,
            };
            self.pause(cause, at, stall);
            return;
        }
        if self.view.progress_ns() > self.sent_ns && since(at, self.view.progress_ns()) <= prompt {
            self.spaced = 0;
            let silent = waited > (rtt * 2).max(SHORTEST_STALL_NS);
            let cause = if silent { Cause::Silence } else { Cause::CongestionWindow };
            self.ledger.write(cause, at, stall);
            return;
        }
        if waited <= BURST_NS {
            let cause = self.ledger.last().unwrap_or(Cause::CongestionWindow);
            self.ledger.write(cause, at, stall);
            return;
        }
        let cause = self.spaced_by(waited, rtt, context);
        self.pause(cause, at, stall);
    }

    fn pause(&mut self, cause: Cause, at: u64, stall: u64) {
        if cause == Cause::Application {
            self.spaced = 0;
            self.slow_start.application_pauses();
        }
        self.ledger.write(cause, at, stall);
    }

    /// Nothing that was heard explains the wait: the application, pacing or the path.
    fn spaced_by(&mut self, waited: u64, rtt: u64, context: &Context) -> Cause {
        if self.sent_partial {
            return Cause::Application;
        }
        let wait = waited as f64;
        let mean = *self.spacing.get_or_insert(wait);
        let even = wait < 3.0 * mean;
        self.spacing = Some(mean + (wait - mean) / 8.0);
        self.spaced += 1;
        match () {
            () if context.is_away() => Cause::Path,
            () if !even && waited > (rtt / 4).max(2_000_000) => Cause::Application,
            () if waited > (rtt * 2).max(SHORTEST_STALL_NS) => Cause::Application,
            () => Cause::Pacing,
        }
    }

    fn stall_ns(&self, context: &Context) -> u64 {
        let rtt = self.rtt.smoothed_ns().unwrap_or(context.to_receiver_ns) + context.to_sender_ns;
        (rtt * 2).max(SHORTEST_STALL_NS)
    }

    /// A packet of the receiver passed.
    pub(crate) fn heard(&mut self, segment: &Segment<'_>, context: &Context) {
        if !self.positions.is_known() || !segment.has(TcpFlags::ACK) || segment.has(TcpFlags::RST) {
            return;
        }
        let at = segment.at_ns;
        let ack = self.place(segment.ack);
        let syn = segment.has(TcpFlags::SYN);
        if ack + (1 << 30) < self.snd_nxt || ack < ORIGIN {
            return;
        }
        self.marks.echoes += u64::from(segment.has(TcpFlags::ECE) && !syn);
        if segment.has(TcpFlags::ECE) && !syn {
            self.slow_start.end(at, SlowStartEnd::Mark);
        }
        let edge = self.note_window(segment, ack, context);
        if ack > self.snd_nxt {
            // The ACK proves what the capture has missed.
            self.uncaptured += ack - self.snd_nxt;
            self.bytes += ack - self.snd_nxt;
            self.snd_nxt = ack;
        }
        let sacks = self.take_sack(segment, ack, at);
        let advances = ack > self.snd_una;
        if advances {
            self.advance(segment, ack, context);
        } else if segment.length == 0
            && !syn
            && !segment.has(TcpFlags::FIN)
            && self.snd_una < self.snd_nxt
            && self.last_window == Some(segment.window)
        {
            self.duplicates += 1;
            self.acks.duplicates += 1;
        }
        self.last_window = Some(segment.window);
        if let Some(artist) = &mut self.artist {
            artist.ack(at, ack, edge);
        }
        self.view.push(at.saturating_add(context.to_sender_ns), ack, edge, sacks, self.outstanding.sacked());
    }

    fn note_window(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) -> Option<u64> {
        let syn = segment.has(TcpFlags::SYN);
        let scale = if syn { 0 } else { context.scale.unwrap_or(0).min(MAX_SCALE) };
        let window = u64::from(segment.window) << scale;
        if !syn {
            self.window.unscaled = context.scale.is_none();
            let first = self.window.max == 0 && self.window.min == 0 && self.window.zero == 0;
            self.window.min = if first { window } else { self.window.min.min(window) };
            self.window.max = self.window.max.max(window);
            self.window.zero += u64::from(window == 0 && self.last_window != Some(0));
        }
        // Without the scale an edge would be wrong.
        (syn || context.scale.is_some()).then_some(ack + window)
    }

    /// True if SACK reports something new.
    fn take_sack(&mut self, segment: &Segment<'_>, ack: u64, at: u64) -> bool {
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (start, end) in segment.options.sack.iter() {
            let (start, end) = (self.place(start.0), self.place(end.0));
            if start < end && end <= self.snd_nxt {
                blocks[count] = (start, end);
                count += 1;
            }
        }
        let mut blocks = &blocks[..count];
        if let [(start, end), rest @ ..] = blocks {
            // RFC 2883, section 4: below the cumulative ACK, or within the second block.
            let within = rest.first().is_some_and(|(from, until)| from <= start && end <= until);
            if *end <= ack || within {
                self.take_dsack(*start, *end);
                blocks = rest;
            }
        }
        let mut sample = None;
        let mut sacks = false;
        for (start, end) in blocks.iter().filter(|(_, end)| *end > ack) {
            let artist = &mut self.artist;
            self.outstanding.sack(*start, *end, |record| {
                if let Some(artist) = artist {
                    artist.sacked(at, record.start, record.end);
                }
                sacks = true;
                if record.times == 1 {
                    sample = Some((record.first_ns, record.flight));
                }
            });
            if *end > self.highest_sacked {
                self.highest_sacked = *end;
            }
            self.outstanding.overtake(ack, *start, at);
        }
        if let Some((sent, flight)) = sample {
            self.measured(at, since(at, sent), flight);
        }
        sacks
    }

    fn take_dsack(&mut self, start: u64, end: u64) {
        match self.episodes.needless(start, end) {
            None => self.losses.duplicated += 1,
            Some(news) => {
                self.losses.spurious += news;
                self.losses.spurious_by_dsack += news;
            }
        }
    }

    /// The cumulative ACK advances.
    fn advance(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) {
        let at = segment.at_ns;
        let shortest = self.rtt.min_ns().unwrap_or(0);
        let echo = segment.options.timestamps.map(|Timestamps { ecr, .. }| ecr);
        let (mut sample, mut late, mut missing) = (None, 0, 0);
        let mut needless: Vec<(u64, u64, bool)> = vec![];
        self.outstanding.acknowledge(ack, |record| match record.times {
            0 => missing += record.end - record.start,
            1 => {
                if !record.sacked {
                    sample = Some((record.first_ns, record.flight));
                    late += u64::from(record.overtaken_ns.is_some());
                }
            }
            _ => {
                let older = echo.zip(record.again_tsval).is_some_and(|(echo, again)| is_after(again, echo));
                let soon = shortest > 100_000 && since(at, record.last_ns) * 2 < shortest;
                if !record.sacked && (older || soon) {
                    needless.push((record.start, record.end, older));
                }
            }
        });
        for (start, end, older) in needless {
            let news = self.episodes.needless(start, end).unwrap_or(0);
            self.losses.spurious += news;
            *(if older {
                &mut self.losses.spurious_by_timestamp
            } else {
                &mut self.losses.spurious_by_time
            }) += news;
        }
        self.uncaptured += missing;
        self.losses.reordered_after += late;
        if let Some((sent, flight)) = sample {
            self.compression(at, sent);
            self.measured(at, since(at, sent), flight);
        }
        let progress = self.progress_ns.max(self.first_ns.unwrap_or(at));
        self.acked_bytes += ack - self.snd_una;
        self.acks.advancing += u64::from(segment.length == 0);
        self.snd_una = ack;
        self.duplicates = 0;
        self.fin_acked |= self.fin.is_some_and(|fin| ack > fin);
        if self.first_ns.is_some() {
            self.last_ns = self.last_ns.max(at);
        }
        let rtt = self.rtt.smoothed_ns().unwrap_or(0);
        self.episodes.acknowledged(at, ack, since(at, progress), rtt + context.to_sender_ns);
        self.progress_ns = at;
    }

    fn measured(&mut self, at: u64, rtt: u64, flight: u64) {
        self.rtt.add(rtt, flight);
        if let Some(artist) = &mut self.artist {
            artist.rtt(at, rtt);
        }
    }

    /// ACKs that come faster than what they acknowledge was sent (Mogul 1992).
    fn compression(&mut self, at: u64, sent: u64) {
        if let Some((before, sent_before)) = self.advanced.replace((at, sent)) {
            let took = since(sent, sent_before);
            self.acks.compressed += u64::from(took > 1_000_000 && since(at, before) * 10 < took);
        }
    }

    /// What is told of it; `start_ns` is the connection's begin.
    pub(crate) fn finish(mut self, start_ns: u64, context: &Context) -> Direction {
        // What came after the last data: its ACK.
        let stall = self.stall_ns(context);
        if let Some(open) = self.episodes.open() {
            let cause = if open.timeout_point > 0 { Cause::Timer } else { Cause::Recovery };
            self.ledger.write(cause, self.last_ns, stall);
        } else {
            self.ledger.write(Cause::Application, self.last_ns, stall);
        }
        let mss = context.segment_size(self.mss);
        let segments = self.acked_bytes as f64 / mss as f64;
        let per_ack = if self.acks.advancing > 0 { segments / self.acks.advancing as f64 } else { 0.0 };
        let fin = u64::from(self.fin.is_some());
        let (episodes, episodes_left_out) = self.episodes.finish(start_ns, self.last_ns);
        let first_ns = self.first_ns.unwrap_or(start_ns);
        Direction {
            from: self.from,
            bytes: self.bytes.saturating_sub(fin),
            packets: self.packets,
            largest: self.largest,
            mss: mss as u32,
            first_at_ns: first_ns.saturating_sub(start_ns),
            last_at_ns: self.last_ns.max(first_ns).saturating_sub(start_ns),
            max_flight: self.max_flight,
            slow_start: self.slow_start.finish(start_ns, self.last_ns),
            time: self.ledger.shares(),
            intervals: self.ledger.intervals(start_ns),
            interval_grain_ns: self.ledger.grain_ns(),
            stalls: self.ledger.stalls(start_ns),
            losses: self.losses,
            episodes,
            episodes_left_out,
            rtt: self.rtt.finish(),
            rtt_before: self.rtt_before.finish(),
            acks: Acks { segments_per_ack: per_ack, ..self.acks },
            window: Some(self.window),
            congestion: None,
            received: None,
            marks: self.marks,
            uncaptured: self.uncaptured,
            unacknowledged: self.outstanding.passed().saturating_sub(if self.fin_acked { 0 } else { fin }),
            merged: self.outstanding.is_merged(),
            picture: self.artist.map(Artist::finish),
        }
    }
}

/// From `then` to `at_ns`: at most an hour, so that no clock of a broken file makes a sum overflow.
fn since(at_ns: u64, then: u64) -> u64 {
    at_ns.saturating_sub(then).min(LONGEST_NS)
}

/// Timestamps and sequence numbers wrap around.
const fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}
