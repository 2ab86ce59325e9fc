//! How many of each kind there may be: of this endpoint alone, or of its host, if that has several.

use crate::config::EndpointConfig;
use crate::reserve::{Limit, Pool};
use alloc::sync::Arc;

/// Something for each kind of record.
#[derive(Debug)]
pub(crate) struct Each<T> {
    pub(crate) connections: T,
    pub(crate) half_open: T,
    pub(crate) held_syns: T,
    pub(crate) orphans: T,
    pub(crate) time_wait: T,
    pub(crate) fast_open: T,
}

/// What each kind of record is bounded by.
pub(crate) type Limits = Each<Limit>;

/// The same of a host, for its endpoints to take from.
pub(crate) type Pools = Each<Arc<Pool>>;

impl<T> Each<T> {
    fn map<U>(&self, make: impl Fn(&T) -> U) -> Each<U> {
        Each {
            connections: make(&self.connections),
            half_open: make(&self.half_open),
            held_syns: make(&self.held_syns),
            orphans: make(&self.orphans),
            time_wait: make(&self.time_wait),
            fast_open: make(&self.fast_open),
        }
    }
}

impl Each<u32> {
    /// As configured.
    const fn configured(config: &EndpointConfig) -> Self {
        Self {
            connections: config.max_connections,
            half_open: config.max_half_open,
            held_syns: config.max_held_syns,
            orphans: config.max_orphans,
            time_wait: config.max_time_wait,
            fast_open: config.fast_open_queue,
        }
    }

    /// Of an endpoint that has stopped: nothing begins, and what is there has no use for limits.
    const STOPPED: Self = Self {
        connections: 0,
        half_open: 0,
        held_syns: 0,
        orphans: u32::MAX,
        time_wait: u32::MAX,
        fast_open: 0,
    };
}

impl Pools {
    pub(crate) fn new(host: &EndpointConfig, endpoints: usize) -> Self {
        Each::configured(host).map(|most| Arc::new(Pool::new(*most, endpoints)))
    }
}

impl Limits {
    /// Of an endpoint alone.
    pub(crate) fn own(config: &EndpointConfig) -> Self {
        Each::configured(config).map(|most| Limit::own(*most))
    }

    /// Of an endpoint that has stopped.
    pub(crate) fn stopped() -> Self {
        Each::STOPPED.map(|most| Limit::own(*most))
    }

    /// True if they are the host's, together with other endpoints.
    pub(crate) const fn are_shared(&self) -> bool {
        self.connections.is_shared()
    }

    /// What has ended makes room for others, of other endpoints as well: so many there are.
    pub(crate) fn settle(&mut self, used: &Each<usize>) {
        self.connections.settle(used.connections);
        self.half_open.settle(used.half_open);
        self.held_syns.settle(used.held_syns);
        self.orphans.settle(used.orphans);
        self.time_wait.settle(used.time_wait);
        self.fast_open.settle(used.fast_open);
    }

    /// Of one of a host's endpoints.
    pub(crate) fn of_host(pools: &Pools) -> Self {
        pools.map(|pool| Limit::of_host(pool.clone()))
    }
}
