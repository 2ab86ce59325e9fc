//! How many of each kind there may be: of this endpoint alone, or of its host, if that has several.

use crate::config::EndpointConfig;
use crate::pool::{Limit, Pool};
use alloc::sync::Arc;

/// What each kind of record is bounded by.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) connections: Limit,
    pub(super) half_open: Limit,
    pub(super) held_syns: Limit,
    pub(super) orphans: Limit,
    pub(super) time_wait: Limit,
    pub(super) fast_open: Limit,
}

/// The same of a host, for its endpoints to take from.
#[derive(Debug)]
pub(super) struct Pools {
    connections: Arc<Pool>,
    half_open: Arc<Pool>,
    held_syns: Arc<Pool>,
    orphans: Arc<Pool>,
    time_wait: Arc<Pool>,
    fast_open: Arc<Pool>,
}

impl Pools {
    pub(super) fn new(host: &EndpointConfig, endpoints: usize) -> Self {
        let pool = |most| Arc::new(Pool::new(most, endpoints));
        Self {
            connections: pool(host.max_connections),
            half_open: pool(host.max_half_open),
            held_syns: pool(host.max_held_syns),
            orphans: pool(host.max_orphans),
            time_wait: pool(host.max_time_wait),
            fast_open: pool(host.fast_open_queue),
        }
    }
}

impl Limits {
    /// Of an endpoint alone.
    pub(super) const fn own(config: &EndpointConfig) -> Self {
        Self {
            connections: Limit::own(config.max_connections),
            half_open: Limit::own(config.max_half_open),
            held_syns: Limit::own(config.max_held_syns),
            orphans: Limit::own(config.max_orphans),
            time_wait: Limit::own(config.max_time_wait),
            fast_open: Limit::own(config.fast_open_queue),
        }
    }

    /// Of an endpoint that has stopped: nothing begins, and what is there has no use for limits.
    pub(super) const fn stopped() -> Self {
        Self {
            connections: Limit::own(0),
            half_open: Limit::own(0),
            held_syns: Limit::own(0),
            orphans: Limit::own(u32::MAX),
            time_wait: Limit::own(u32::MAX),
            fast_open: Limit::own(0),
        }
    }

    /// Of one of a host's endpoints.
    pub(super) fn of_host(pools: &Pools) -> Self {
        let limit = |pool: &Arc<Pool>| Limit::of_host(pool.clone());
        Self {
            connections: limit(&pools.connections),
            half_open: limit(&pools.half_open),
            held_syns: limit(&pools.held_syns),
            orphans: limit(&pools.orphans),
            time_wait: limit(&pools.time_wait),
            fast_open: limit(&pools.fast_open),
        }
    }
}
