//! What came back: ACKs, SACK, windows.

use super::{Flow, is_after};
use crate::direction::accurate::Feedback;
use crate::direction::positions::ORIGIN;
use crate::direction::{Context, since};
use crate::segment::Segment;
use crate::story::SlowStartEnd;
use ackline_tcp_core::wire::{TcpFlags, Timestamps};

/// RFC 7323, section 2.3.
const MAX_SCALE: u8 = 14;

impl Flow {
    /// A packet of the receiver passed.
    pub(crate) fn heard(&mut self, segment: &Segment<'_>, context: &Context) {
        if !self.tally.positions.is_known() || !segment.has(TcpFlags::ACK) || segment.has(TcpFlags::RST) {
            return;
        }
        let at = segment.at_ns;
        let ack = self.tally.place(segment.ack);
        let syn = segment.has(TcpFlags::SYN);
        if ack + (1 << 30) < self.tally.snd_nxt || ack < ORIGIN {
            return;
        }
        if self.tells_of_mark(segment, ack, context) {
            self.tally.slow_start.end(at, SlowStartEnd::Mark);
        }
        let edge = self.note_window(segment, ack, context);
        self.tally.proves(ack);
        let sacks = self.take_sack(segment, ack, context);
        let advances = ack > self.tally.snd_una;
        if advances {
            self.advance(segment, ack, context);
        } else if segment.length == 0
            && !syn
            && !segment.has(TcpFlags::FIN)
            && self.tally.snd_una < self.tally.snd_nxt
            && self.last_window == Some(segment.window)
        {
            self.duplicates += 1;
            self.tally.acks.duplicates += 1;
        }
        self.last_window = Some(segment.window);
        if let Some(artist) = &mut self.tally.artist {
            artist.ack(at, ack, edge);
        }
        self.view.push(
            at.saturating_add(context.to_sender_ns),
            ack,
            edge,
            sacks,
            self.tally.outstanding.sacked(),
        );
    }

    /// True if a segment of the receiver tells of a mark.
    fn tells_of_mark(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) -> bool {
        if segment.has(TcpFlags::SYN) {
            return false;
        }
        // Without the handshake the option shows it.
        if self.feedback.is_none() && (context.accurate_ecn || segment.options.accecn.is_some()) {
            self.feedback = Some(Feedback::default());
        }
        let Some(feedback) = &mut self.feedback else {
            self.marks.echoes += u64::from(segment.has(TcpFlags::ECE));
            return segment.has(TcpFlags::ECE);
        };
        // RFC 9768, section 3.2.2.1: the ACK of a SYN-ACK tells how that arrived. An older segment
        // tells older counts.
        let is_code = ack == ORIGIN && segment.length == 0;
        !is_code && ack >= self.tally.snd_una && feedback.hear(segment)
    }

    fn note_window(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) -> Option<u64> {
        let syn = segment.has(TcpFlags::SYN);
        let scale = if syn { 0 } else { context.scale.unwrap_or(0).min(MAX_SCALE) };
        let window = u64::from(segment.window) << scale;
        if !syn {
            self.tally.window.unscaled = context.scale.is_none();
            let first =
                self.tally.window.max == 0 && self.tally.window.min == 0 && self.tally.window.zero == 0;
            self.tally.window.min = if first { window } else { self.tally.window.min.min(window) };
            self.tally.window.max = self.tally.window.max.max(window);
            self.tally.window.zero += u64::from(window == 0 && self.last_window != Some(0));
        }
        // Without the scale an edge would be wrong.
        (syn || context.scale.is_some()).then_some(ack + window)
    }

    /// True if SACK reports something new.
    fn take_sack(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) -> bool {
        let at = segment.at_ns;
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (start, end) in segment.options.sack.iter() {
            let (start, end) = (self.tally.place(start.0), self.tally.place(end.0));
            if start < end && end <= self.tally.snd_nxt {
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
            let artist = &mut self.tally.artist;
            self.tally.outstanding.sack(*start, *end, |record| {
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
            self.tally.outstanding.overtake(ack, *start, at);
        }
        if let Some((sent, flight)) = sample {
            self.tally.measured(at, since(at, sent), flight, context.segment_size(self.mss));
        }
        sacks
    }

    fn take_dsack(&mut self, start: u64, end: u64) {
        match self.tally.episodes.needless(start, end) {
            None => self.tally.losses.duplicated += 1,
            Some(news) => {
                self.tally.losses.spurious += news;
                self.tally.losses.spurious_by_dsack += news;
            }
        }
    }

    /// The cumulative ACK advances.
    fn advance(&mut self, segment: &Segment<'_>, ack: u64, context: &Context) {
        let at = segment.at_ns;
        let una = self.tally.snd_una;
        // Round trips so far may all have waited in a queue; echoes of timestamps also measure what
        // was sent again.
        let distance = Some(context.to_receiver_ns).filter(|distance| *distance > 0);
        let shortest = self.tally.rtt.min_ns().into_iter().chain(distance).min().unwrap_or(0);
        let echo = segment.options.timestamps.map(|Timestamps { ecr, .. }| ecr);
        let (mut sample, mut late, mut missing) = (None, 0, 0);
        let mut needless: Vec<(u64, u64, bool)> = vec![];
        self.tally.outstanding.acknowledge(ack, |record| match record.times {
            0 => missing += record.end - record.start,
            1 => {
                if !record.sacked {
                    sample = Some((record.first_ns, record.flight));
                    late += u64::from(record.overtaken_ns.is_some());
                }
            }
            _ => {
                // An ACK of several segments echoes the first one's timestamp (RFC 7323, section
                // 4.3).
                let echoed = echo.filter(|_| record.start == una);
                let older = echoed.zip(record.again_tsval).is_some_and(|(echo, again)| is_after(again, echo));
                let soon = shortest > 100_000 && since(at, record.last_ns) * 2 < shortest;
                if !record.sacked && (older || soon) {
                    needless.push((record.start, record.end, older));
                }
            }
        });
        for (start, end, older) in needless {
            let news = self.tally.episodes.needless(start, end).unwrap_or(0);
            self.tally.losses.spurious += news;
            *(if older {
                &mut self.tally.losses.spurious_by_timestamp
            } else {
                &mut self.tally.losses.spurious_by_time
            }) += news;
        }
        self.tally.uncaptured += missing;
        self.tally.losses.reordered_after += late;
        if let Some((sent, flight)) = sample {
            self.compression(at, sent);
            self.tally.measured(at, since(at, sent), flight, context.segment_size(self.mss));
        }
        self.duplicates = 0;
        let rtt = self.tally.rtt.smoothed_ns().unwrap_or(0) + context.to_sender_ns;
        self.tally.advance(at, ack, segment.length == 0, rtt);
    }

    /// ACKs that come faster than what they acknowledge was sent (Mogul 1992).
    fn compression(&mut self, at: u64, sent: u64) {
        if let Some((before, sent_before)) = self.advanced.replace((at, sent)) {
            let took = since(sent, sent_before);
            self.tally.acks.compressed += u64::from(took > 1_000_000 && since(at, before) * 10 < took);
        }
    }
}
