//! What every event of a connection needs from its endpoint.

use crate::config::EndpointConfig;
use crate::counters::Counters;
use crate::events::DropReason;
use crate::events::{TraceEvent, Tracer};
use crate::id::ConnId;
use crate::memory::budget::Budget;
use crate::time::Instant;
use alloc::boxed::Box;

/// What events write to, whatever connection they are of: the counters, the tracer, the memory
/// budget, and whether the host keeps up.
#[derive(Debug)]
pub(crate) struct Observe {
    pub(crate) counters: Counters,
    /// The receiver of trace events, if any.
    pub(crate) tracer: Option<Box<dyn Tracer>>,
    pub(crate) budget: Budget,
    /// This host takes packets from its device more slowly than they come.
    pub(crate) backlogged: bool,
}

/// The context of one event: its time, its connection, the host's settings, and where to count and
/// trace it.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    /// The time of the event.
    pub(crate) now: Instant,
    /// The connection.
    pub(crate) id: ConnId,
    /// The settings of the endpoint.
    pub(crate) host: &'a EndpointConfig,
    pub(crate) observe: &'a mut Observe,
}

impl Ctx<'_> {
    /// Counts and traces a segment that is dropped for `reason`.
    pub(crate) fn dropped(&mut self, reason: DropReason) {
        reason.count(&mut self.observe.counters);
        self.trace(|| TraceEvent::Dropped { reason });
    }

    /// Makes a trace event if there is a tracer.
    pub(crate) fn trace(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = self.observe.tracer.as_deref_mut() {
            tracer.trace(self.now, self.id, &event());
        }
    }
}

#[cfg(test)]
impl Observe {
    /// Nothing counted, no tracer, and memory without a limit.
    pub(crate) fn for_test() -> Self {
        Self {
            counters: Counters::default(),
            tracer: None,
            budget: Budget::new(None, 50, 66),
            backlogged: false,
        }
    }
}

/// Settings of a host with an exact clock.
#[cfg(test)]
pub(crate) fn host_for_test() -> EndpointConfig {
    use crate::time::Duration;
    EndpointConfig {
        granularity: Duration::from_nanos(1),
        probe_margin: Duration::ZERO,
        ..EndpointConfig::default()
    }
}
