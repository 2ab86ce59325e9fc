//! From packets and events to stories, in bounded memory.

use crate::capture::{Frame, ReadError, Reader};
use crate::conn::{Conn, STEP_BACK_NS};
use crate::segment::{self, Segment, SkippedPackets};
use crate::story::{Connection, Story};
use crate::traced::{ConnectionStart, TracedConnection};
use ackline_observe::trace;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, BufRead, Read};
use std::net::SocketAddr;

/// What bounds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections whose packets are followed at once; beyond it, the story of those silent for the
    /// longest time ends.
    pub open: usize,
    /// Stories that are kept: those that lost and waited most.
    pub stories: usize,
    /// Records of packets in flight, of all connections together. With many connections each has
    /// fewer, and neighbours become one record.
    pub records: usize,
    /// Entries of each series that is drawn, per direction; zero: nothing is drawn. With more than
    /// twelve connections at once those that begin later have fewer.
    pub drawn: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open: 10_000, stories: 1_000, records: 1 << 20, drawn: 0 }
    }
}

/// Records of a direction, whatever the number of connections.
const RECORDS: std::ops::RangeInclusive<usize> = 64..=8_192;

/// Connections that are drawn with all entries, and the fewest entries of others.
const DRAWN_WHOLE: usize = 12;
const DRAWN_LEAST: usize = 100;

/// Follows the connections of captures and traces.
#[derive(Debug, Default)]
pub struct Explainer {
    limits: Limits,
    /// By both ends, the smaller first.
    open: HashMap<(SocketAddr, SocketAddr), Conn>,
    /// Those of the trace that is read, by index: their generation beside them.
    traced: HashMap<u32, (u32, TracedConnection)>,
    told: Vec<Connection>,
    skipped: SkippedPackets,
    story: Story,
    first_ns: Option<u64>,
    last_ns: u64,
    /// When the packet before was captured, in the file that is read.
    before_ns: u64,
}

impl Explainer {
    /// An explainer with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes in all packets of a file.
    ///
    /// # Errors
    /// Those of the reader. What came before is told all the same.
    pub fn read<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), ReadError> {
        self.before_ns = 0;
        let outcome = loop {
            match reader.next_frame() {
                Ok(Some(frame)) => self.packet(&frame),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.story.cut_short |= reader.is_cut_short();
        self.story.missed += reader.missed();
        outcome
    }

    /// Takes in a packet.
    pub fn packet(&mut self, frame: &Frame<'_>) {
        self.story.packets += 1;
        self.passes(frame.at_ns);
        let back = std::mem::replace(&mut self.before_ns, frame.at_ns).saturating_sub(frame.at_ns);
        if back >= STEP_BACK_NS {
            self.story.steps_back += 1;
            self.story.longest_step_back_ns = self.story.longest_step_back_ns.max(back);
        }
        if let Some(segment) = segment::parse(frame, &mut self.skipped) {
            self.story.tcp_packets += 1;
            self.segment(&segment);
        }
    }

    fn passes(&mut self, at_ns: u64) {
        self.first_ns = Some(self.first_ns.map_or(at_ns, |first| first.min(at_ns)));
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Records of a direction, if so many other connections are open.
    fn records(&self, others: usize) -> usize {
        (self.limits.records / (others + 1)).clamp(*RECORDS.start(), *RECORDS.end())
    }

    /// Entries of each series that is drawn of a direction, if so many other connections are open.
    fn drawn(&self, others: usize) -> usize {
        let most = self.limits.drawn;
        (most * DRAWN_WHOLE / (others + 1)).clamp(DRAWN_LEAST.min(most), most)
    }

    /// Takes in all events of a trace: what a stack of ackline said of itself. Its connections end
    /// with it.
    ///
    /// # Errors
    /// Those of its source. What came before is told all the same.
    pub fn read_trace<R: BufRead>(&mut self, reader: &mut trace::Reader<R>) -> io::Result<()> {
        let outcome = reader.by_ref().try_for_each(|record| record.map(|record| self.event(&record)));
        let traces = &mut self.story.traces;
        traces.unknown += reader.unknown();
        traces.damaged += reader.damaged();
        self.story.cut_short |= reader.is_truncated();
        let mut open: Vec<TracedConnection> =
            std::mem::take(&mut self.traced).into_values().map(|(_, conn)| conn).collect();
        open.sort_by_key(TracedConnection::number);
        for conn in open {
            self.tell(conn.finish(false));
        }
        outcome
    }

    fn event(&mut self, record: &trace::Record) {
        let traces = &mut self.story.traces;
        match &record.event {
            trace::Event::EventsDropped { count } => traces.missed += count,
            trace::Event::TraceEnded { cut_short: Some(why), .. } => traces.cut_short = Some(why.clone()),
            _ => {}
        }
        let Some(group) = record.group else { return };
        traces.events += 1;
        let at = record.at.as_nanos();
        self.passes(at);
        if let Some(opened) = ConnectionStart::of(&record.event) {
            self.begin_traced(at, group, &opened);
        } else if let Some((_, conn)) =
            self.traced.get_mut(&group.index).filter(|(generation, _)| *generation == group.generation)
        {
            self.story.tcp_packets += u64::from(matches!(
                record.event,
                trace::Event::SegmentSent { .. } | trace::Event::SegmentReceived { .. }
            ));
            conn.take(at, &record.event);
        } else {
            self.story.traces.unopened += 1;
        }
    }

    fn begin_traced(&mut self, at: u64, group: trace::Group, opened: &ConnectionStart) {
        if let Some((_, before)) = self.traced.remove(&group.index) {
            self.tell(before.finish(false));
        }
        if self.traced.len() >= self.limits.open {
            for (_, conn) in evict(&mut self.traced, |(_, conn)| conn.last_ns(), |(_, conn)| conn.number()) {
                self.story.evicted += 1;
                self.tell(conn.finish(true));
            }
        }
        self.story.connections_seen += 1;
        let records = self.records(self.traced.len());
        let drawn = self.drawn(self.traced.len());
        let conn = TracedConnection::new(self.story.connections_seen, at, opened, records, drawn);
        self.traced.insert(group.index, (group.generation, conn));
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        if self.open.get(&key).is_some_and(|conn| conn.is_succeeded_by(segment))
            && let Some(conn) = self.open.remove(&key)
        {
            self.tell(conn.finish(false));
        }
        if self.open.len() >= self.limits.open && !self.open.contains_key(&key) {
            for conn in evict(&mut self.open, Conn::last_ns, Conn::number) {
                self.story.evicted += 1;
                self.tell(conn.finish(true));
            }
        }
        let records = self.records(self.open.len());
        let drawn = self.drawn(self.open.len());
        let seen = &mut self.story.connections_seen;
        let conn = self.open.entry(key).or_insert_with(|| {
            *seen += 1;
            Conn::new(*seen, segment, records, drawn)
        });
        conn.take(segment);
    }

    fn tell(&mut self, connection: Connection) {
        self.told.push(connection);
        if self.told.len() >= self.limits.stories * 2 {
            self.forget();
        }
    }

    /// Keeps the stories that are worth most.
    fn forget(&mut self) {
        if self.told.len() > self.limits.stories {
            self.told.sort_by_key(|told| std::cmp::Reverse(told.badness()));
            self.story.left_out += (self.told.len() - self.limits.stories) as u64;
            self.told.truncate(self.limits.stories);
        }
    }

    /// Ends all stories, and returns them.
    #[must_use]
    pub fn finish(mut self) -> Story {
        let mut open: Vec<Conn> = std::mem::take(&mut self.open).into_values().collect();
        // A table has no order; stories that are worth the same shall stay in that of time.
        open.sort_by_key(Conn::number);
        for conn in open {
            self.tell(conn.finish(false));
        }
        self.forget();
        self.told.sort_by_key(|told| told.number);
        Story {
            duration_ns: self.first_ns.map_or(0, |first| self.last_ns - first),
            skipped: self.skipped,
            connections: self.told,
            ..self.story
        }
    }
}

/// Takes out a quarter of the connections, so that this is rare: those that have been silent for
/// longest, in the order of their numbers. A table has none, and stories that are worth the same
/// shall stay in that of time.
fn evict<K: Eq + Hash, C>(
    open: &mut HashMap<K, C>,
    last_ns: impl Fn(&C) -> u64,
    number: impl Fn(&C) -> u64,
) -> Vec<C> {
    let mut last: Vec<u64> = open.values().map(&last_ns).collect();
    let quarter = last.len() / 4;
    let (_, limit, _) = last.select_nth_unstable(quarter);
    let limit = *limit;
    let evicted = open.extract_if(|_, conn| last_ns(conn) <= limit);
    let mut evicted: Vec<C> = evicted.map(|(_, conn)| conn).collect();
    evicted.sort_by_key(number);
    evicted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 500 connections have together less than 80 that are drawn whole would.
    #[test]
    fn what_is_drawn_of_many_connections_is_bounded() {
        let drawing = |drawn| Explainer::new(Limits { drawn, ..Limits::default() });
        let explainer = drawing(1_500);
        assert_eq!([0, 11, 499].map(|others| explainer.drawn(others)), [1_500, 1_500, DRAWN_LEAST]);
        let all: usize = (0..500).map(|others| explainer.drawn(others)).sum();
        assert!(all < 80 * 1_500, "{all}");
        assert_eq!((drawing(0).drawn(9), drawing(50).drawn(499)), (0, 50));
    }

    /// Ten connections of one SYN each, captured at the same time: of those that are worth the same
    /// the first ones stay, each time.
    #[test]
    fn which_stories_are_kept_does_not_depend_on_the_table() {
        for _ in 0..20 {
            let mut explainer = Explainer::new(Limits { open: 4, stories: 2, ..Limits::default() });
            for port in 0..10 {
                let mut data = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
                data.extend([0xc0, port, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
                explainer.packet(&Frame {
                    at_ns: 0,
                    link_type: 101,
                    interface: 0,
                    outbound: None,
                    original: 40,
                    data: &data,
                    comment: "",
                });
            }
            let story = explainer.finish();
            let kept: Vec<u64> = story.connections.iter().map(|told| told.number).collect();
            assert_eq!((kept, story.left_out), (vec![1, 2], 8));
        }
    }
}
