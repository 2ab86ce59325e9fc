//! What a path did over time: queues, waits, deliveries and drops of its links, in memory that does
//! not grow with the run.

use ackline_netsim::queue::DropReason;
use ackline_netsim::{LinkId, Observer, Packet, PacketEvent};
use ackline_runtime::stats::Distribution;
use ackline_tcp_core::{Duration, Instant};

/// Spans of a record: from half as many up to as many as this, once a run is long enough.
const SPANS: usize = 1_024;

/// The length of the first spans.
const FINEST: Duration = Duration::from_millis(10);

/// A link in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Most packets in the queue, without the one that is being serialised.
    pub queue_packets: u64,
    /// Most bytes in the queue, those of IP.
    pub queue_bytes: u64,
    /// Longest wait in the queue, of packets whose first bit left.
    pub longest_wait: Duration,
    /// Packets delivered.
    pub packets: u64,
    /// Their bytes, those of IP.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub overflows: u64,
    /// Packets dropped by the AQM.
    pub aqm_drops: u64,
    /// Packets lost by an impairment.
    pub lost: u64,
}

impl Span {
    /// Packets that did not arrive.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.overflows + self.aqm_drops + self.lost
    }

    /// Both together.
    fn joined(self, next: Self) -> Self {
        Self {
            queue_packets: self.queue_packets.max(next.queue_packets),
            queue_bytes: self.queue_bytes.max(next.queue_bytes),
            longest_wait: self.longest_wait.max(next.longest_wait),
            packets: self.packets + next.packets,
            bytes: self.bytes + next.bytes,
            overflows: self.overflows + next.overflows,
            aqm_drops: self.aqm_drops + next.aqm_drops,
            lost: self.lost + next.lost,
        }
    }
}

/// One link over time.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    link: LinkId,
    spans: Vec<Span>,
    waits: Distribution,
    /// The queue, and since when it is so.
    packets: u64,
    bytes: u64,
    since: Instant,
}

impl LinkRecord {
    fn new(link: LinkId) -> Self {
        Self {
            link,
            spans: vec![],
            waits: Distribution::default(),
            packets: 0,
            bytes: 0,
            since: Instant::ZERO,
        }
    }

    /// Spans of equal [length](PathRecord::length), from the start on.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Waits in the queue, of all packets whose first bit left.
    #[must_use]
    pub const fn waits(&self) -> &Distribution {
        &self.waits
    }

    /// The queue has been as it is until the instant `now`, in the span at `place`. A packet that
    /// is served or dropped at once has been in no queue.
    fn settle(&mut self, now: Instant, length: Duration) {
        let place = |at: Instant| (at.as_nanos() / length.as_nanos()) as usize;
        let (first, last) = (place(self.since), place(now));
        if self.spans.len() <= last {
            self.spans.resize(last + 1, Span::default());
        }
        if self.since < now {
            for span in &mut self.spans[first..=last] {
                span.queue_packets = span.queue_packets.max(self.packets);
                span.queue_bytes = span.queue_bytes.max(self.bytes);
            }
            self.since = now;
        }
    }

    fn packet(&mut self, now: Instant, event: PacketEvent, packet: &Packet, length: Duration) {
        self.settle(now, length);
        let Some(span) = self.spans.last_mut() else { return };
        let bytes = packet.len() as u64;
        let leaves_queue = match event {
            PacketEvent::Offered => {
                self.packets += 1;
                self.bytes += bytes;
                false
            }
            PacketEvent::Started => {
                let wait = now.since(packet.queued_at);
                self.waits.record(wait);
                span.longest_wait = span.longest_wait.max(wait);
                true
            }
            PacketEvent::Left => false,
            PacketEvent::Delivered => {
                span.packets += 1;
                span.bytes += bytes;
                false
            }
            PacketEvent::Dropped(DropReason::Overflow) => {
                span.overflows += 1;
                true
            }
            PacketEvent::Dropped(DropReason::Aqm) => {
                span.aqm_drops += 1;
                true
            }
            PacketEvent::Dropped(_) => {
                span.lost += 1;
                false
            }
        };
        if leaves_queue {
            self.packets = self.packets.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }

    /// Each span takes in the one behind it.
    fn join(&mut self) {
        let joined = self.spans.chunks(2).map(|pair| pair[1..].iter().fold(pair[0], |a, b| a.joined(*b)));
        self.spans = joined.collect();
    }
}

/// Records links over time, as an observer of the simulation. Its spans become longer as the run
/// does.
#[derive(Clone, Debug)]
pub struct PathRecord {
    length: Duration,
    links: Vec<LinkRecord>,
}

impl PathRecord {
    /// Of these links, from the start of the simulation on.
    #[must_use]
    pub fn new(links: impl IntoIterator<Item = LinkId>) -> Self {
        Self { length: FINEST, links: links.into_iter().map(LinkRecord::new).collect() }
    }

    /// The length of a span.
    #[must_use]
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// The links, in the order in which they were named.
    #[must_use]
    pub fn links(&self) -> &[LinkRecord] {
        &self.links
    }

    /// Nothing has happened since the last packet, until `now`.
    pub fn end(&mut self, now: Instant) {
        self.make_room(now);
        for link in &mut self.links {
            link.settle(now, self.length);
        }
    }

    /// Makes spans longer until they reach `now`.
    fn make_room(&mut self, now: Instant) {
        while now.as_nanos() / self.length.as_nanos() >= SPANS as u64 {
            self.length = self.length.saturating_mul(2);
            self.links.iter_mut().for_each(LinkRecord::join);
        }
    }
}

impl Observer for PathRecord {
    fn watches_departures(&self, _link: LinkId) -> bool {
        false
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        self.make_room(now);
        if let Some(record) = self.links.iter_mut().find(|record| record.link == link) {
            record.packet(now, event, packet, self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;
    use ackline_netsim::LinkSpec;
    use ackline_netsim::queue::{DropTail, Limit};

    /// An IPv4 packet of 1,000 bytes to 10.0.0.2.
    fn packet() -> Vec<u8> {
        let mut bytes = vec![0; 1_000];
        (bytes[0], bytes[2], bytes[3], bytes[8], bytes[9]) = (0x45, 3, 0xe8, 64, 17);
        bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
        bytes
    }

    /// A queue of three packets before a millisecond for each: at 0 ms six packets come, at 100 ms
    /// one.
    fn recorded(until: Instant) -> PathRecord {
        let link = || {
            let queue = Box::new(DropTail::new(Limit::Packets(3)));
            LinkSpec::new(8_000_000, Duration::from_millis(30)).with_queue(queue)
        };
        let mut path = Path::new([], link(), link(), 1);
        let id = path.sim.add_observer(PathRecord::new([path.up, path.down]));
        path.sim.run_until(Instant::ZERO);
        (0..6).for_each(|_| path.sim.inject(path.inside, &packet()));
        path.sim.run_until(Instant::from_millis(100));
        path.sim.inject(path.inside, &packet());
        path.sim.run_until(until);
        let mut record = path.sim.take_observer::<PathRecord>(id).expect("it was added");
        record.end(until);
        *record
    }

    #[test]
    fn spans_tell_queue_waits_deliveries_and_drops() {
        let record = recorded(Instant::from_millis(205));
        let [up, down] = record.links() else { panic!("two links") };
        assert_eq!((record.length(), up.spans().len()), (FINEST, 21));
        let busy = Span {
            queue_packets: 3,
            queue_bytes: 3_000,
            longest_wait: Duration::from_millis(3),
            overflows: 2,
            ..Span::default()
        };
        assert_eq!(up.spans()[0], busy, "one is served, three wait, and two find the queue full");
        // After a millisecond each, and 30 ms of delay.
        assert_eq!(up.spans()[3], Span { packets: 4, bytes: 4_000, ..Span::default() });
        // Served at once, it was in no queue.
        assert_eq!(up.spans()[10], Span::default());
        assert_eq!((up.spans()[13].packets, up.waits().count()), (1, 5));
        assert!(down.spans().iter().all(|span| *span == Span::default()));
    }

    #[test]
    fn a_long_run_has_as_many_spans_that_are_longer() {
        let record = recorded(Instant::from_secs(3_600));
        let spans = record.links()[0].spans();
        assert!((SPANS / 2..=SPANS).contains(&spans.len()), "{}", spans.len());
        assert!(record.length().saturating_mul(spans.len() as u64) >= Duration::from_secs(3_600));
        let total = spans.iter().fold(Span::default(), |sum, span| sum.joined(*span));
        assert_eq!((total.packets, total.overflows, total.queue_packets), (5, 2, 3));
    }

    #[test]
    fn a_queue_that_stands_still_is_not_empty() {
        let link = || LinkSpec::new(8, Duration::ZERO);
        let mut path = Path::new([], link(), link(), 1);
        let id = path.sim.add_observer(PathRecord::new([path.up]));
        path.sim.run_until(Instant::ZERO);
        (0..2).for_each(|_| path.sim.inject(path.inside, &packet()));
        path.sim.run_until(Instant::from_millis(95));
        let mut record = path.sim.take_observer::<PathRecord>(id).expect("it was added");
        record.end(Instant::from_millis(95));
        let queued: Vec<u64> = record.links()[0].spans().iter().map(|span| span.queue_packets).collect();
        assert_eq!(queued, [1; 10]);
    }
}
