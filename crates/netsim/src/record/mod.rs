//! Records a simulation as plain data that can be serialised: connections and queues over time,
//! queueing delays, packets.
//!
//! Memory is bounded whatever the length of a run. A series that reaches its limit drops every
//! second point and is sampled half as often from then on; delays go into a histogram; anything
//! that exceeds a limit is counted.

mod conn;
mod delay;
mod queue;
mod series;
mod trace;

pub use conn::{ConnRecord, ConnSample};
pub use delay::DelayRecord;
pub use queue::{Bin, Counters, DualDelays, QueueRecord, QueueSample, Window};
pub use series::Metric;
pub use trace::{PacketTrace, TraceOptions, TraceRow};

use crate::observe::{Observer, PacketEvent};
use crate::packet::Packet;
use crate::topology::{LinkId, NodeId};
use crate::view::View;
use ackline_tcp_core::{ConnId, Instant};
use hashbrown::HashMap;
use queue::QueueRecorder;
use serde::{Deserialize, Serialize};
use trace::Tracer;

/// A selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Select<T> {
    /// Each.
    #[default]
    All,
    /// These.
    Only(Vec<T>),
    /// None.
    None,
}

impl<T: PartialEq> Select<T> {
    /// True if `item` is one of them.
    #[must_use]
    pub fn has(&self, item: &T) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.contains(item),
            Self::None => false,
        }
    }
}

/// What to record, and how much.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Hosts whose connections are recorded.
    pub hosts: Select<NodeId>,
    /// Links whose queues are recorded.
    pub links: Select<LinkId>,
    /// Points per series, at least 2.
    pub max_points: usize,
    /// Maximum connections recorded; further ones are [counted](Record::unrecorded_connections).
    pub max_connections: usize,
    /// Start of the statistics window: anything before it (a warm-up) is in the series, but not in
    /// the statistics.
    pub from: Instant,
    /// End of the window.
    pub until: Instant,
    /// Maximum individual delays per queue, in addition to the histogram; further ones are
    /// [counted](DelayRecord::omitted).
    pub exact_delays: usize,
    /// Which packets to record individually, if any.
    pub trace: Option<TraceOptions>,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            hosts: Select::All,
            links: Select::All,
            max_points: 10_000,
            max_connections: 1_000,
            from: Instant::ZERO,
            until: Instant::FAR_FUTURE,
            exact_delays: 0,
            trace: None,
        }
    }
}

/// Everything recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Connections alive at a sampling instant, in the order in which they were first seen.
    pub connections: Vec<ConnRecord>,
    /// Connections beyond the limit.
    pub unrecorded_connections: u64,
    /// Queues, in the order of their links.
    pub queues: Vec<QueueRecord>,
    /// Packets.
    pub trace: Option<PacketTrace>,
}

/// Records a simulation, sampling at the instants of
/// [`Sim::sample_every`](crate::Sim::sample_every).
#[derive(Debug)]
pub struct Recorder {
    options: RecordOptions,
    connections: Vec<conn::ConnRecorder>,
    /// Indices in `connections`; `None` if beyond the limit.
    place_of: HashMap<(NodeId, ConnId), Option<usize>>,
    unrecorded: u64,
    /// By the link's index.
    queues: Vec<Option<QueueRecorder>>,
    trace: Option<Tracer>,
}

impl Recorder {
    /// Nothing recorded yet.
    #[must_use]
    pub fn new(options: RecordOptions) -> Self {
        let trace = options.trace.clone().map(Tracer::new);
        Self { options, connections: vec![], place_of: HashMap::new(), unrecorded: 0, queues: vec![], trace }
    }

    /// The record so far.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            connections: self.connections.iter().map(|conn| conn.record().clone()).collect(),
            unrecorded_connections: self.unrecorded,
            queues: self.queues.iter().flatten().map(QueueRecorder::record).collect(),
            trace: self.trace.as_ref().map(|tracer| tracer.trace().clone()),
        }
    }

    fn sample_connections(&mut self, now: Instant, view: &mut View<'_>) {
        for node in view.hosts() {
            if !self.options.hosts.has(&node) {
                continue;
            }
            for (id, app) in view.conns(node) {
                let Self { connections, place_of, unrecorded, options, .. } = self;
                let place = *place_of.entry((node, id)).or_insert_with(|| {
                    if connections.len() >= options.max_connections {
                        *unrecorded += 1;
                        return None;
                    }
                    connections.push(conn::ConnRecorder::new(node, app, id, options.max_points));
                    Some(connections.len() - 1)
                });
                if let Some(place) = place
                    && let Some(conn) = view.endpoint(node).and_then(|endpoint| endpoint.conn(id))
                {
                    connections[place].sample(now, &conn);
                }
            }
        }
    }

    fn queue(&mut self, link: LinkId) -> Option<&mut QueueRecorder> {
        if !self.options.links.has(&link) {
            return None;
        }
        if self.queues.len() <= link.index() {
            self.queues.resize_with(link.index() + 1, || None);
        }
        let options = &self.options;
        Some(self.queues[link.index()].get_or_insert_with(|| QueueRecorder::new(link, options)))
    }
}

impl Observer for Recorder {
    fn watches_departures(&self, link: LinkId) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.watches_departures(link))
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        if event == PacketEvent::Started
            && (self.options.from..self.options.until).contains(&now)
            && let Some(queue) = self.queue(link)
        {
            queue.waited(now, now.since(packet.queued_at), packet.l4s_queue);
        }
        if let Some(tracer) = &mut self.trace {
            tracer.packet(now, link, event, packet);
        }
    }

    fn sample(&mut self, now: Instant, view: &mut View<'_>) {
        self.sample_connections(now, view);
        let in_window = (self.options.from..=self.options.until).contains(&now);
        for link in view.links() {
            if let Some(queue) = self.queue(link) {
                queue.sample(now, link, view, in_window);
            }
        }
    }
}
