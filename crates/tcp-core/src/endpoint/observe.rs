//! What events write to, whatever connection they are of: counters, the tracer, and the memory
//! budget.

use crate::budget::Budget;
use crate::config::EndpointConfig;
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::events::Tracer;
use crate::id::ConnId;
use crate::time::Instant;
use alloc::boxed::Box;

/// What every event of a connection has to do with: the counters, the tracer, the memory budget,
/// and whether the host keeps up.
#[derive(Debug)]
pub(super) struct Observe {
    pub(super) counters: Counters,
    pub(super) tracer: Option<Box<dyn Tracer>>,
    pub(super) budget: Budget,
    pub(super) backlogged: bool,
}

impl Observe {
    /// Nothing counted, nothing held, and no tracer.
    pub(super) fn new(host: &EndpointConfig) -> Self {
        let &EndpointConfig { max_memory, memory_low, memory_pressure, .. } = host;
        let budget = Budget::new(max_memory, memory_low, memory_pressure);
        Self { counters: Counters::default(), tracer: None, budget, backlogged: false }
    }

    /// The context of an event of the connection `id`.
    pub(super) fn ctx(&mut self, now: Instant, id: ConnId, host: &EndpointConfig) -> Ctx<'_> {
        Ctx {
            now,
            id,
            granularity: host.granularity,
            probe_margin: host.probe_margin,
            backlogged: self.backlogged,
            counters: &mut self.counters,
            budget: &mut self.budget,
            tracer: self.tracer.as_deref_mut(),
        }
    }
}
