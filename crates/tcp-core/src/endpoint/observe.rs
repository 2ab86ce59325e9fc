//! Counters and tracing of an endpoint.

use crate::config::EndpointConfig;
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::events::Tracer;
use crate::id::ConnId;
use crate::time::Instant;
use alloc::boxed::Box;

/// The counters and the tracer.
#[derive(Debug, Default)]
pub(super) struct Observe {
    pub(super) counters: Counters,
    pub(super) tracer: Option<Box<dyn Tracer>>,
}

impl Observe {
    /// The context of an event of the connection `id`.
    pub(super) fn ctx(&mut self, now: Instant, id: ConnId, host: &EndpointConfig) -> Ctx<'_> {
        Ctx {
            now,
            id,
            granularity: host.granularity,
            probe_margin: host.probe_margin,
            counters: &mut self.counters,
            tracer: self.tracer.as_deref_mut(),
        }
    }
}
