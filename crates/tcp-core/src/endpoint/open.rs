//! Choosing addresses and ports for new connections and listeners.

use super::Endpoint;
use super::address_table::Entry;
use super::demux::Demux;
use super::held_syns::HeldSyns;
use super::ingest::is_unicast;
use super::memory::takes_connection;
use super::ports::PortUsage;
use super::shard::Shard;
use super::slots::Slots;
use super::syn_cache::SynCache;
use super::time_wait_table::TimeWaitTable;
use crate::config::{ConnConfig, ListenOn, Target};
use crate::conn::Connection;
use crate::error::{ConnectError, ListenError};
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};

/// The four-tuples in use.
struct Tuples<'a> {
    slots: &'a Slots,
    demux: &'a Demux,
    syn_cache: &'a SynCache,
    held_syns: &'a HeldSyns,
    time_wait: &'a TimeWaitTable,
    /// The new connection may use those in TIME-WAIT again.
    reuses: bool,
}

impl Tuples<'_> {
    /// What `tuple` is to a new connection.
    fn usage(&self, now: Instant, tuple: &FourTuple) -> PortUsage {
        let at = |slot| self.slots.conn(slot).is_some_and(|conn| conn.tuple() == tuple);
        if self.demux.find(tuple, at).is_some()
            || self.syn_cache.look_up(tuple).is_some()
            || self.held_syns.look_up(tuple).is_some()
        {
            return PortUsage::Taken;
        }
        match self.time_wait.look_up(tuple) {
            None => PortUsage::Free,
            Some(name) if self.reuses && self.time_wait.is_reusable(now, name) => PortUsage::Reusable,
            Some(_) => PortUsage::Taken,
        }
    }
}

impl Endpoint {
    /// See [`Endpoint::connect`].
    pub(super) fn open(
        &mut self,
        now: Instant,
        to: &Target,
        config: Arc<ConnConfig>,
    ) -> Result<ConnId, ConnectError> {
        // RFC 9293, section 3.9.2.3: an open to a broadcast or multicast address is refused.
        if to.remote.port() == 0 || !is_unicast(to.remote.ip()) {
            return Err(ConnectError::BadRemote);
        }
        let address = self.source_address(to)?;
        // Connections that have ended free their four-tuples.
        self.settle(now);
        if !self.limits.connections.has_room(self.slots.len()) {
            self.observe.counters.connections_refused += 1;
            return Err(ConnectError::TooManyConnections);
        }
        if !takes_connection(&mut self.observe.budget) {
            self.observe.counters.memory_refusals += 1;
            return Err(ConnectError::OutOfMemory);
        }
        let taken = Tuples {
            slots: &self.slots,
            demux: &self.demux,
            syn_cache: &self.syn_cache,
            held_syns: &self.held_syns,
            time_wait: &self.time_wait,
            reuses: self.config.time_wait_reuse && config.timestamps,
        };
        let tuple = match to.local_port {
            Some(port) if port != 0 => {
                let tuple = FourTuple::new(SocketAddr::new(address, port), to.remote);
                if taken.usage(now, &tuple) == PortUsage::Taken {
                    return Err(ConnectError::InUse);
                }
                tuple
            }
            _ => {
                let at = |port| FourTuple::new(SocketAddr::new(address, port), to.remote);
                let mut probes = 0;
                let shard = self.shard.as_deref();
                let most = self.config.max_port_probes.saturating_mul(shard.map_or(1, Shard::dilution));
                let port = self.ports.select(address, to.remote, most, |port| {
                    if shard.is_some_and(|shard| !shard.owns(to.remote, port)) {
                        return PortUsage::Taken;
                    }
                    probes += 1;
                    taken.usage(now, &at(port))
                });
                self.observe.counters.port_probes += probes;
                let Some(port) = port else {
                    self.observe.counters.ports_exhausted += 1;
                    return Err(ConnectError::NoFreePort);
                };
                at(port)
            }
        };
        let floor = self.take_from_time_wait(&tuple);
        let iss = self.iss(now, &tuple, floor);
        let ts_offset = self.isn.timestamp_offset(&tuple);
        let (host, observe) = (&self.config, &mut self.observe);
        let id = self.slots.insert(|id| {
            let mut ctx = observe.ctx(now, id, host);
            Box::new(Connection::connect(&mut ctx, tuple, config, iss, ts_offset))
        });
        self.expect_pattern(id);
        self.expect_known_path(now, id);
        self.expect_fast_open(now, id);
        self.name(&tuple, id);
        self.touch(now, id.index);
        Ok(id)
    }

    /// The streams of a new connection follow the endpoint's pattern, if it has one.
    pub(super) fn expect_pattern(&mut self, id: ConnId) {
        if let (Some(pattern), Some(conn)) = (self.pattern, self.slots.conn_mut(id.index)) {
            conn.expect_pattern(pattern);
        }
    }

    /// A new connection begins with what is known of its path.
    pub(super) fn expect_known_path(&mut self, now: Instant, id: ConnId) {
        let Some(conn) = self.slots.conn_mut(id.index) else { return };
        if let Some(Entry { value: mtu, until, .. }) = self.paths.find(now, conn.tuple().remote_ip()) {
            conn.expect_path(mtu, until);
            self.observe.counters.tcp_path_mtu_reused += 1;
        }
    }

    /// The address with a port filled in, if any will do.
    pub(super) fn with_port(&mut self, on: ListenOn) -> Result<ListenOn, ListenError> {
        let is_open = match on {
            ListenOn::Address(address) => address.port() == 0,
            ListenOn::Port(port) => port == 0,
            ListenOn::Any => false,
        };
        if !is_open {
            return Ok(on);
        }
        let listeners = &self.listeners;
        let port = self.ports.select_random(|port| listeners.is_free(port)).ok_or(ListenError::NoFreePort)?;
        Ok(match on {
            ListenOn::Address(address) => ListenOn::Address(SocketAddr::new(address.ip(), port)),
            ListenOn::Port(_) | ListenOn::Any => ListenOn::Port(port),
        })
    }

    /// The local address of a connection, or of a datagram: the requested one, or the first of the
    /// peer's family.
    pub(super) fn source_address(&self, to: &Target) -> Result<IpAddr, ConnectError> {
        let fits = |address: &IpAddr| address.is_ipv4() == to.remote.is_ipv4() && is_unicast(*address);
        match to.local_address {
            Some(address) if self.is_local(address) => Some(address).filter(fits),
            Some(_) => None,
            None => {
                self.config.addresses.iter().copied().find(|address| fits(address) && self.is_local(*address))
            }
        }
        .ok_or(ConnectError::NoLocalAddress)
    }
}
