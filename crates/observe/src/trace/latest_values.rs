//! What was last said of each connection, so that a trace says only what has changed.

use super::event::Event;
use super::metrics::Metrics;
use ackline_tcp_core::ConnId;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::info::Blocked;

/// By the connection's index: as many as are open at once.
#[derive(Debug, Default)]
pub(super) struct LatestValues(Vec<ConnRecord>);

/// Of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct ConnRecord {
    generation: u32,
    metrics: Metrics,
    blocked: Option<Blocked>,
}

impl LatestValues {
    /// The record of `event`; `None` if it says nothing new.
    pub(super) fn record(&mut self, conn: ConnId, event: &TraceEvent) -> Option<Event> {
        match (event, Event::of(event)?) {
            (_, Event::MetricsUpdated(metrics)) => {
                let last = &mut self.of(conn).metrics;
                let changes = metrics.since(last)?;
                last.update(&changes);
                Some(Event::MetricsUpdated(changes))
            }
            // Each burst ends with one.
            (TraceEvent::Blocked { cause }, record) => {
                (self.of(conn).blocked.replace(*cause) != Some(*cause)).then_some(record)
            }
            (_, record) => Some(record),
        }
    }

    fn of(&mut self, conn: ConnId) -> &mut ConnRecord {
        if self.0.len() <= conn.index() {
            self.0.resize(conn.index() + 1, ConnRecord::default());
        }
        let said = &mut self.0[conn.index()];
        if said.generation != conn.generation() {
            *said = ConnRecord { generation: conn.generation(), ..ConnRecord::default() };
        }
        said
    }
}
