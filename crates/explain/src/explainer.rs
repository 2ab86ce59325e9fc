//! From packets to stories, in bounded memory.

use crate::capture::{Frame, ReadError, Reader};
use crate::conn::Conn;
use crate::segment::{self, Segment, Skipped};
use crate::story::{Connection, Story};
use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;

/// What bounds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections whose packets are followed at once; beyond it, the story of those silent for the longest time ends.
    pub open: usize,
    /// Stories that are kept: those that lost and waited most.
    pub stories: usize,
    /// Records of packets in flight, of all connections together. With many connections each has fewer, and neighbours
    /// become one record.
    pub records: usize,
    /// Entries of each series that is drawn, per direction; zero: nothing is drawn.
    pub drawn: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open: 10_000, stories: 1_000, records: 1 << 20, drawn: 0 }
    }
}

/// Records of a direction, whatever the number of connections.
const RECORDS: std::ops::RangeInclusive<usize> = 64..=8_192;

/// Follows the connections of a capture.
#[derive(Debug, Default)]
pub struct Explainer {
    limits: Limits,
    /// By both ends, the smaller first.
    open: HashMap<(SocketAddr, SocketAddr), Conn>,
    told: Vec<Connection>,
    skipped: Skipped,
    story: Story,
    first_ns: Option<u64>,
    last_ns: u64,
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
        self.first_ns = Some(self.first_ns.map_or(frame.at_ns, |first| first.min(frame.at_ns)));
        self.last_ns = self.last_ns.max(frame.at_ns);
        if let Some(segment) = segment::parse(frame, &mut self.skipped) {
            self.story.tcp_packets += 1;
            self.segment(&segment);
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        if self.open.get(&key).is_some_and(|conn| conn.is_succeeded_by(segment))
            && let Some(conn) = self.open.remove(&key)
        {
            self.tell(conn, false);
        }
        if self.open.len() >= self.limits.open && !self.open.contains_key(&key) {
            self.evict();
        }
        let records = (self.limits.records / (self.open.len() + 1)).clamp(*RECORDS.start(), *RECORDS.end());
        let drawn = self.limits.drawn;
        let seen = &mut self.story.connections_seen;
        let conn = self.open.entry(key).or_insert_with(|| {
            *seen += 1;
            Conn::new(*seen, segment, records, drawn)
        });
        conn.take(segment);
    }

    /// Ends the stories of a quarter of the connections, so that this is rare.
    fn evict(&mut self) {
        let mut last: Vec<u64> = self.open.values().map(Conn::last_ns).collect();
        let quarter = last.len() / 4;
        let (_, limit, _) = last.select_nth_unstable(quarter);
        let limit = *limit;
        let silent: Vec<Conn> =
            self.open.extract_if(|_, conn| conn.last_ns() <= limit).map(|(_, conn)| conn).collect();
        for conn in silent {
            self.story.evicted += 1;
            self.tell(conn, true);
        }
    }

    fn tell(&mut self, conn: Conn, evicted: bool) {
        self.told.push(conn.finish(evicted));
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
            self.tell(conn, false);
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
