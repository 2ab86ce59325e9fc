//! What is drawn of a direction: its time-sequence diagram (Shepard, "TCP Packet Trace Analysis",
//! MIT/LCS/TR-494, 1991), and values over time.
//!
//! Each series has a limit. When it is reached, time is divided into coarser intervals, and
//! neighbours in one interval become one: strokes that continue each other are joined, of values
//! the largest stays, of ACKs the last.

use crate::loss_detection::LossDetection;

/// What is drawn of the data of one end. Times are nanoseconds from the connection's first packet;
/// positions count octets of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Data for the first time.
    pub fresh: Vec<Stroke>,
    /// Data sent again, and how its loss was found.
    pub again: Vec<(Stroke, LossDetection)>,
    /// What SACK reported.
    pub sacked: Vec<Stroke>,
    /// ACKs.
    pub acks: Vec<Ack>,
    /// Octets in flight.
    pub flight: Vec<(u64, u64)>,
    /// The congestion window, octets, if a trace states it.
    pub cwnd: Vec<(u64, u64)>,
    /// Round trips behind the capture, ns.
    pub rtt: Vec<(u64, u64)>,
    /// Time from one packet with data to the next, ns.
    pub data_gaps: Vec<(u64, u64)>,
    /// Time from one ACK to the next, ns.
    pub ack_gaps: Vec<(u64, u64)>,
}

/// Octets at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// When.
    pub at_ns: u64,
    /// The first octet.
    pub from: u64,
    /// The one after the last.
    pub until: u64,
}

/// An ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// When it passed.
    pub at_ns: u64,
    /// Everything before has arrived.
    pub ack: u64,
    /// The end of the receiver's window; `None` if its scale is not known.
    pub edge: Option<u64>,
}

/// Draws while packets pass.
#[derive(Debug)]
pub(crate) struct Artist {
    start_ns: u64,
    /// The position of the first octet.
    origin: u64,
    fresh: Series<Stroke>,
    again: Series<(Stroke, LossDetection)>,
    sacked: Series<Stroke>,
    acks: Series<Ack>,
    flight: Series<(u64, u64)>,
    cwnd: Series<(u64, u64)>,
    rtt: Series<(u64, u64)>,
    data_gaps: Series<(u64, u64)>,
    ack_gaps: Series<(u64, u64)>,
    last_data_ns: Option<u64>,
    last_ack_ns: Option<u64>,
}

impl Artist {
    /// For a connection that begins at `start_ns`, with `limit` entries of each series.
    pub(crate) const fn new(start_ns: u64, origin: u64, limit: usize) -> Self {
        Self {
            start_ns,
            origin,
            fresh: Series::new(limit),
            again: Series::new(limit),
            sacked: Series::new(limit),
            acks: Series::new(limit),
            flight: Series::new(limit),
            cwnd: Series::new(limit),
            rtt: Series::new(limit),
            data_gaps: Series::new(limit),
            ack_gaps: Series::new(limit),
            last_data_ns: None,
            last_ack_ns: None,
        }
    }

    const fn at(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns)
    }

    const fn stroke(&self, at_ns: u64, from: u64, until: u64) -> Stroke {
        let origin = self.origin;
        Stroke {
            at_ns: self.at(at_ns),
            from: from.saturating_sub(origin),
            until: until.saturating_sub(origin),
        }
    }

    pub(crate) fn fresh(&mut self, at_ns: u64, from: u64, until: u64, flight: u64) {
        let at = self.at(at_ns);
        self.fresh.push(self.stroke(at_ns, from, until));
        self.flight.push((at, flight));
        if let Some(last) = self.last_data_ns.replace(at_ns) {
            self.data_gaps.push((at, at_ns.saturating_sub(last)));
        }
    }

    pub(crate) fn again(&mut self, at_ns: u64, from: u64, until: u64, found: LossDetection) {
        self.again.push((self.stroke(at_ns, from, until), found));
    }

    pub(crate) fn sacked(&mut self, at_ns: u64, from: u64, until: u64) {
        self.sacked.push(self.stroke(at_ns, from, until));
    }

    pub(crate) fn ack(&mut self, at_ns: u64, ack: u64, edge: Option<u64>) {
        let (at, origin) = (self.at(at_ns), self.origin);
        let edge = edge.map(|edge| edge.saturating_sub(origin));
        self.acks.push(Ack { at_ns: at, ack: ack.saturating_sub(origin), edge });
        if let Some(last) = self.last_ack_ns.replace(at_ns) {
            self.ack_gaps.push((at, at_ns.saturating_sub(last)));
        }
    }

    pub(crate) fn cwnd(&mut self, at_ns: u64, bytes: u64) {
        self.cwnd.push((self.at(at_ns), bytes));
    }

    pub(crate) fn rtt(&mut self, at_ns: u64, rtt_ns: u64) {
        self.rtt.push((self.at(at_ns), rtt_ns));
    }

    pub(crate) fn finish(self) -> Picture {
        Picture {
            fresh: self.fresh.entries,
            again: self.again.entries,
            sacked: self.sacked.entries,
            acks: self.acks.entries,
            flight: self.flight.entries,
            cwnd: self.cwnd.entries,
            rtt: self.rtt.entries,
            data_gaps: self.data_gaps.entries,
            ack_gaps: self.ack_gaps.entries,
        }
    }
}

/// Entries in the order of time.
#[derive(Debug)]
struct Series<T> {
    entries: Vec<T>,
    limit: usize,
    /// Length of the intervals in which neighbours become one, ns; zero: none do.
    interval: u64,
}

/// What neighbours in the same interval become.
trait Entry: Copy {
    fn at_ns(&self) -> u64;

    /// Takes in the next entry; false if both have to stay.
    fn join(&mut self, next: &Self) -> bool;
}

impl<T: Entry> Series<T> {
    const fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit, interval: 0 }
    }

    fn push(&mut self, entry: T) {
        self.entries.push(entry);
        // What cannot be joined must not make each entry a search for neighbours.
        if self.entries.len() > self.limit * 2 {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return };
        let span = last.at_ns().saturating_sub(first.at_ns());
        let finest = (span / (self.limit as u64 * 16)).max(1);
        loop {
            let interval = self.interval.max(1);
            self.entries
                .dedup_by(|next, last| next.at_ns() / interval == last.at_ns() / interval && last.join(next));
            if self.entries.len() <= self.limit || interval > span {
                break;
            }
            self.interval = (self.interval * 2).max(finest);
        }
        // Neighbours that do not continue each other: every second one goes.
        if self.entries.len() > self.limit {
            let mut keep = false;
            self.entries.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }
}

impl Entry for Stroke {
    fn at_ns(&self) -> u64 {
        self.at_ns
    }

    fn join(&mut self, next: &Self) -> bool {
        let continues = (self.from..=self.until).contains(&next.from);
        if continues {
            self.until = self.until.max(next.until);
        }
        continues
    }
}

impl Entry for (Stroke, LossDetection) {
    fn at_ns(&self) -> u64 {
        self.0.at_ns
    }

    fn join(&mut self, next: &Self) -> bool {
        self.1 == next.1 && self.0.join(&next.0)
    }
}

impl Entry for Ack {
    fn at_ns(&self) -> u64 {
        self.at_ns
    }

    fn join(&mut self, next: &Self) -> bool {
        *self = *next;
        true
    }
}

impl Entry for (u64, u64) {
    fn at_ns(&self) -> u64 {
        self.0
    }

    fn join(&mut self, next: &Self) -> bool {
        self.1 = self.1.max(next.1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred thousand packets, each hundredth sent again.
    #[test]
    fn a_long_transfer_becomes_few_strokes_that_cover_all_of_it() {
        let mut artist = Artist::new(0, 0, 1_000);
        for place in 0..100_000_u64 {
            let (at, from) = (place * 1_000_000, place * 10);
            artist.fresh(at, from, from + 10, 500);
            artist.ack(at, from, Some(from + 5_000));
            artist.rtt(at, if place == 50_000 { 9_000 } else { 1_000 });
            if place % 100 == 0 {
                artist.again(at, from, from + 10, LossDetection::Fast);
            }
        }
        let picture = artist.finish();
        let lengths = [picture.fresh.len(), picture.acks.len(), picture.rtt.len(), picture.again.len()];
        assert!(lengths.iter().all(|length| (250..=2_000).contains(length)), "{lengths:?}");
        let covered =
            |byte: u64| picture.fresh.iter().any(|stroke| (stroke.from..stroke.until).contains(&byte));
        assert!((0..1_000_000).step_by(997).all(covered));
    }
}
