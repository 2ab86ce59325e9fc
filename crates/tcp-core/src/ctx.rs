//! What every event of a connection needs from its endpoint.

use crate::counters::Counters;
use crate::events::DropReason;
use crate::events::{TraceEvent, Tracer};
use crate::id::ConnId;
use crate::memory::budget::Budget;
use crate::time::{Duration, Instant};

/// The context of one event: its time, its connection, and where to count and trace it.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// The time of the event.
    pub(crate) now: Instant,
    /// The connection.
    pub(crate) id: ConnId,
    /// Granularity of the driver's clock and timers (RFC 6298's G).
    pub(crate) granularity: Duration,
    /// Added to the probe timeout of tail loss probes.
    pub(crate) probe_margin: Duration,
    /// This host takes packets from its device more slowly than they come.
    pub(crate) backlogged: bool,
    /// The endpoint's counters.
    pub(crate) counters: &'a mut Counters,
    /// The endpoint's memory.
    pub(crate) budget: &'a mut Budget,
    /// The receiver of trace events, if any.
    pub(crate) tracer: Option<&'a mut (dyn Tracer + 'static)>,
}

impl Ctx<'_> {
    /// Counts and traces a segment that is dropped for `reason`.
    pub(crate) fn dropped(&mut self, reason: DropReason) {
        reason.count(self.counters);
        self.trace(|| TraceEvent::Dropped { reason });
    }

    /// Makes a trace event if there is a tracer.
    pub(crate) fn trace(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = self.tracer.as_deref_mut() {
            tracer.trace(self.now, self.id, &event());
        }
    }
}
