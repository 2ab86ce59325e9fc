//! What endpoints trace, on the way to the observers.

use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, Instant};
use std::sync::{Arc, Mutex};

/// Trace events of an endpoint, until the simulation passes them to its observers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces(Arc<Mutex<Vec<(ConnId, TraceEvent)>>>);

impl Traces {
    /// Takes the pending events.
    pub(crate) fn take(&self) -> Vec<(ConnId, TraceEvent)> {
        // Nothing that runs under the lock can panic.
        self.0.lock().map_or_else(|_| Vec::new(), |mut traces| std::mem::take(&mut *traces))
    }
}

impl Tracer for Traces {
    fn trace(&mut self, _now: Instant, conn: ConnId, event: &TraceEvent) {
        if let Ok(mut traces) = self.0.lock() {
            traces.push((conn, *event));
        }
    }
}
