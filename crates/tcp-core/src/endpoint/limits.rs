//! How many of each kind there may be: of this endpoint alone, or of its host, if that has several.

use crate::config::EndpointConfig;
use crate::pool::{Limit, Pool};
use alloc::sync::Arc;

/// Something for each kind of record.
#[derive(Debug)]
pub(super) struct Each<T> {
    pub(super) connections: T,
    pub(super) half_open: T,
    pub(super) held_syns: T,
    pub(super) orphans: T,
    pub(super) time_wait: T,
    pub(super) fast_open: T,
}

/// What each kind of record is bounded by.
pub(super) type Limits = Each<Limit>;

/// The same of a host, for its endpoints to take from.
pub(super) type Pools = Each<Arc<Pool>>;

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
    pub(super) fn new(host: &EndpointConfig, endpoints: usize) -> Self {
        Each::configured(host).map(|most| Arc::new(Pool::new(*most, endpoints)))
    }
}

impl Limits {
    /// Of an endpoint alone.
    pub(super) fn own(config: &EndpointConfig) -> Self {
        Each::configured(config).map(|most| Limit::own(*most))
    }

    /// Of an endpoint that has stopped.
    pub(super) fn stopped() -> Self {
        Each::STOPPED.map(|most| Limit::own(*most))
    }

    /// Of one of a host's endpoints.
    pub(super) fn of_host(pools: &Pools) -> Self {
        pools.map(|pool| Limit::of_host(pool.clone()))
    }
}
