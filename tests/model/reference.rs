//! What TCP promises, without any of the stack's code: two streams of bytes, what each end may say
//! of them given what has reached it, and which states go together.

use crate::wire::{Segment, distance};
use ackline::core::State;
use std::collections::BTreeMap;

/// The byte of a stream at an offset; `end` has written it.
pub(crate) fn byte(end: usize, offset: u64) -> u8 {
    let mixed = (offset ^ (end as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// What is known of one end from what its application did, what it sent, and what reached it.
#[derive(Clone, Debug, Default)]
struct End {
    /// The application: bytes written and read.
    written: u64,
    read: u64,
    /// It has closed its side, and after which byte.
    closes_at: Option<u64>,
    /// The number of its SYN.
    isn: Option<u32>,
    /// The shift of the windows that it advertises, once both SYNs had one.
    offers_shift: Option<u8>,
    /// The largest right edge that it has advertised, and the largest number that it has
    /// acknowledged.
    edge: Option<u32>,
    acked: Option<u32>,
    /// What has reached it of the other's stream: start and end of each range, in offsets from the
    /// other's SYN.
    reached: BTreeMap<i64, i64>,
    /// The other's SYN, FIN (its number's offset) and the largest edge that have reached it.
    syn_reached: bool,
    fin_reached: Option<i64>,
    edge_reached: Option<u32>,
    /// An RST has reached it: an old SYN that comes again opens another connection (RFC 9293,
    /// section 3.5.1), with numbers of its own.
    reset: bool,
}

/// Both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    ends: [End; 2],
}

impl Reference {
    pub(crate) fn wrote(&mut self, end: usize, bytes: usize) -> Result<(), String> {
        self.ends[end].written += bytes as u64;
        if self.ends[end].closes_at.is_some() && bytes > 0 {
            return Err("a write after the end of the stream was taken".to_owned());
        }
        Ok(())
    }

    pub(crate) fn written(&self, end: usize) -> u64 {
        self.ends[end].written
    }

    pub(crate) fn closed(&mut self, end: usize) {
        let written = self.ends[end].written;
        self.ends[end].closes_at.get_or_insert(written);
    }

    /// Everything that the other end wrote before it closed was read.
    pub(crate) fn has_read_all(&self, end: usize) -> bool {
        self.ends[1 - end].closes_at == Some(self.ends[end].read)
    }

    /// Everything that this end wrote, and its FIN, has reached the other.
    pub(crate) fn is_delivered(&self, end: usize) -> Result<(), String> {
        let (here, there) = (&self.ends[end], &self.ends[1 - end]);
        let fin = here.closes_at.map(|bytes| bytes as i64 + 1);
        if fin.is_some() && there.fin_reached == fin && self.prefix(1 - end) == fin.unwrap_or(0) {
            return Ok(());
        }
        let (prefix, written) = (self.prefix(1 - end) - 1, here.written);
        Err(format!("{prefix} of {written} bytes have arrived, FIN {:?}", there.fin_reached))
    }

    /// The application has read `data`: each byte once, in order, and none that did not reach it.
    pub(crate) fn read(&mut self, end: usize, data: &[u8]) -> Result<(), String> {
        let start = self.ends[end].read;
        for (at, octet) in data.iter().enumerate() {
            let offset = start + at as u64;
            if *octet != byte(1 - end, offset) {
                return Err(format!("byte {offset} of the stream is {octet:#x}"));
            }
        }
        self.ends[end].read += data.len() as u64;
        let (read, prefix) = (self.ends[end].read as i64, self.prefix(end));
        if read + 1 > prefix {
            return Err(format!("{read} bytes were read, {} have arrived in order", prefix - 1));
        }
        Ok(())
    }

    /// The application was told that the stream ended.
    pub(crate) fn ended(&self, end: usize) -> Result<(), String> {
        let there = &self.ends[1 - end];
        if there.closes_at != Some(self.ends[end].read) {
            return Err(format!(
                "the stream ends after {} bytes, the other end closed at {:?}",
                self.ends[end].read, there.closes_at
            ));
        }
        Ok(())
    }

    /// Up to which offset from the other's SYN everything has reached this end; its SYN is 0.
    fn prefix(&self, end: usize) -> i64 {
        self.ends[end].reached.first_key_value().filter(|(start, _)| **start <= 1).map_or(1, |(_, end)| *end)
    }

    /// A segment leaves `end`: what it says must be true.
    pub(crate) fn sends(&mut self, end: usize, segment: &Segment) -> Result<(), String> {
        let prefix = self.prefix(end);
        let fin_reached = self.ends[end].fin_reached;
        let their_isn = self.ends[1 - end].isn;
        let here = &mut self.ends[end];
        if segment.rst {
            return Ok(());
        }
        if segment.syn {
            if std::mem::take(&mut here.reset) {
                (here.edge, here.acked, here.edge_reached) = (None, None, None);
            } else if here.isn.is_some_and(|isn| isn != segment.seq) {
                return Err("the SYN has another number than before".to_owned());
            }
            here.isn = Some(segment.seq);
            here.offers_shift = segment.wscale;
        }
        let Some(isn) = here.isn else { return Err("a segment before the SYN".to_owned()) };

        // The bytes are those that were written.
        let offset = distance(segment.seq, isn) - 1 + i64::from(segment.syn);
        for (at, octet) in segment.data.iter().enumerate() {
            let place = offset + at as i64;
            if place < 0 || place as u64 >= here.written || *octet != byte(end, place as u64) {
                return Err(format!("byte {place} of the segment is not what was written"));
            }
        }
        if segment.fin && here.closes_at != Some((offset + segment.data.len() as i64) as u64) {
            return Err("a FIN where the application did not close".to_owned());
        }

        // Nothing new goes beyond what the peer permits. A FIN may.
        let last = segment.seq.wrapping_add(segment.len() - u32::from(segment.fin));
        if let Some(edge) = here.edge_reached
            && !segment.syn
            && !segment.data.is_empty()
            && distance(last, edge) > 0
        {
            return Err(format!("data {} beyond the peer's window", distance(last, edge)));
        }

        let Some(ack) = segment.ack else { return Ok(()) };
        let Some(their_isn) = their_isn else { return Err("an ACK of nothing".to_owned()) };
        // RFC 9293, section 3.4: it acknowledges what has come, and never less than before.
        let fin = fin_reached.filter(|fin| *fin <= prefix).map_or(0, |_| 1);
        if distance(ack, their_isn) > prefix + fin {
            return Err(format!("ack {} of {} that have arrived", distance(ack, their_isn), prefix + fin));
        }
        if here.acked.is_some_and(|before| distance(ack, before) < 0) {
            return Err("the acknowledgment number went back".to_owned());
        }
        here.acked = Some(ack);
        // RFC 9293, section 3.8.6 (SHLD-14): the right edge stays or moves right, but for what the
        // scale cannot say (RFC 7323, section 2.4).
        let shift = if segment.syn || !self.scales() { 0 } else { self.ends[end].offers_shift.unwrap_or(0) };
        let here = &mut self.ends[end];
        let edge = ack.wrapping_add(u32::from(segment.window) << shift);
        if here.edge.is_some_and(|before| distance(edge, before) <= -(1 << shift)) {
            return Err(format!("the window was taken back by {}", -distance(edge, here.edge.unwrap_or(0))));
        }
        here.edge = here.edge.filter(|before| distance(edge, *before) < 0).or(Some(edge));
        // RFC 2018, section 4: blocks are data that have arrived. They might cover a FIN, and the
        // stack's do not.
        for (from, to) in &segment.sack {
            let (from, to) = (distance(*from, their_isn), distance(*to, their_isn));
            let arrived = here.reached.range(..=from).next_back().is_some_and(|(_, end)| to <= *end);
            if from >= to || !arrived {
                return Err(format!("SACK of {from}..{to}, which has not arrived"));
            }
        }
        Ok(())
    }

    /// Both SYNs had a window scale.
    fn scales(&self) -> bool {
        self.ends.iter().all(|end| end.offers_shift.is_some())
    }

    /// An intact segment of the other end reaches `end`.
    pub(crate) fn reaches(&mut self, end: usize, segment: &Segment) {
        let Some(their_isn) = self.ends[1 - end].isn else { return };
        let shift =
            if segment.syn || !self.scales() { 0 } else { self.ends[1 - end].offers_shift.unwrap_or(0) };
        let here = &mut self.ends[end];
        here.syn_reached |= segment.syn;
        here.reset |= segment.rst;
        let start = distance(segment.seq, their_isn) + i64::from(segment.syn);
        let stop = start + segment.data.len() as i64;
        if segment.fin {
            here.fin_reached = Some(stop);
        }
        if start < stop {
            insert(&mut here.reached, start, stop);
        }
        if let Some(ack) = segment.ack.filter(|_| !segment.rst) {
            let edge = ack.wrapping_add(u32::from(segment.window) << shift);
            if here.edge_reached.is_none_or(|before| distance(edge, before) > 0) {
                here.edge_reached = Some(edge);
            }
        }
    }

    /// What each end's state says of the other's is true, however packets were lost.
    pub(crate) fn states(&self, states: [State; 2]) -> Result<(), String> {
        for (end, state) in states.into_iter().enumerate() {
            let here = &self.ends[end];
            let wrong =
                |what: &str| Err(format!("{state} at {end}, {} at the other: {what}", states[1 - end]));
            let there = states[1 - end];
            use State::{
                CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived,
                SynSent, TimeWait,
            };
            // A handshake is over on one side only if the other has at least sent its SYN.
            let synchronized = !matches!(state, Closed | Listen | SynSent | SynReceived);
            if synchronized && (matches!(there, Listen | SynSent) || !here.syn_reached) {
                return wrong("no SYN has come");
            }
            // A FIN that was received was sent, and arrived with everything before it.
            let got_fin = matches!(state, CloseWait | LastAck | Closing | TimeWait);
            let sends_fin = matches!(there, FinWait1 | FinWait2 | Closing | TimeWait | LastAck | Closed);
            if got_fin && (!sends_fin || here.fin_reached.is_none_or(|fin| fin > self.prefix(end))) {
                return wrong("the FIN was not sent, or is not complete");
            }
            // A FIN that was acknowledged was received.
            let fin_is_acked = matches!(state, FinWait2 | TimeWait);
            let they_got_it = matches!(there, CloseWait | LastAck | Closing | TimeWait | Closed);
            if fin_is_acked && !they_got_it {
                return wrong("the FIN is acknowledged, and was not received");
            }
            // Who has closed has asked for it.
            let closed_here = matches!(state, FinWait1 | FinWait2 | Closing | TimeWait | LastAck);
            if closed_here && here.closes_at.is_none() {
                return wrong("the application has not closed");
            }
            if matches!(state, Established | CloseWait) && here.closes_at.is_some() {
                // Closed while the handshake was on: it follows at once.
                return wrong("the application has closed");
            }
        }
        Ok(())
    }
}

/// RFC 9293, figure 5, and an end by reset, error or give-up from anywhere. What one event does in
/// two steps is two changes.
pub(crate) fn may_follow(from: State, to: State) -> bool {
    use State::{
        CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent,
        TimeWait,
    };
    matches!(
        (from, to),
        (_, Closed)
            | (Closed, Listen | SynSent | SynReceived)
            | (Listen, SynReceived | SynSent)
            | (SynSent, SynReceived | Established)
            | (SynReceived, Established | FinWait1 | CloseWait | Listen)
            | (Established, FinWait1 | CloseWait)
            | (FinWait1, FinWait2 | Closing | TimeWait)
            | (FinWait2 | Closing, TimeWait)
            | (CloseWait, LastAck)
    )
}

fn insert(ranges: &mut BTreeMap<i64, i64>, start: i64, end: i64) {
    let (mut start, mut end) = (start, end);
    let touched: Vec<i64> =
        ranges.range(..=end).filter(|(_, stop)| **stop >= start).map(|(from, _)| *from).collect();
    for from in touched {
        if let Some(stop) = ranges.remove(&from) {
            start = start.min(from);
            end = end.max(stop);
        }
    }
    ranges.insert(start, end);
}
