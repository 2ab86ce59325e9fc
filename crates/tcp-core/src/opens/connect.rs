//! Choosing addresses and ports for new connections and listeners.

use super::{Below, Opens};
use crate::config::{ConnConfig, ListenOn, Target};
use crate::conn::Connection;
use crate::error::{ConnectError, ListenError};
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::share::{AddressEntry, Cx, is_unicast};
use crate::table::{PortUsage, Table, takes_connection};
use alloc::sync::Arc;
use core::net::SocketAddr;

impl Opens {
    /// See [`Endpoint::connect`](crate::Endpoint::connect). `dilution` ports have to be tried on
    /// average to find one that `owns` this endpoint's connections.
    pub(crate) fn connect(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        to: &Target,
        config: Arc<ConnConfig>,
        dilution: u32,
        owns: impl Fn(u16) -> bool,
    ) -> Result<ConnId, ConnectError> {
        // RFC 9293, section 3.9.2.3: an open to a broadcast or multicast address is refused.
        if to.remote.port() == 0 || !is_unicast(to.remote.ip()) {
            return Err(ConnectError::BadRemote);
        }
        let address = cx.source_address(to)?;
        if !cx.limits.connections.has_room(below.table.slots.len()) {
            cx.observe.counters.connections_refused += 1;
            return Err(ConnectError::TooManyConnections);
        }
        if !takes_connection(&mut cx.observe.budget) {
            cx.observe.counters.memory_refusals += 1;
            return Err(ConnectError::OutOfMemory);
        }
        let reuses = cx.config.time_wait_reuse && config.timestamps;
        let (ports, tuples) = below.table.ports_and_tuples();
        let usage = |tuple: &FourTuple| {
            if self.syn_cache.look_up(tuple).is_some() || self.held_syns.look_up(tuple).is_some() {
                return PortUsage::Taken;
            }
            tuples.usage(cx.now, tuple, reuses)
        };
        let tuple = match to.local_port {
            Some(port) if port != 0 => {
                let tuple = FourTuple::new(SocketAddr::new(address, port), to.remote);
                if usage(&tuple) == PortUsage::Taken {
                    return Err(ConnectError::InUse);
                }
                tuple
            }
            _ => {
                let at = |port| FourTuple::new(SocketAddr::new(address, port), to.remote);
                let mut probes = 0;
                let most = cx.config.max_port_probes.saturating_mul(dilution);
                let port = ports.select(address, to.remote, most, |port| {
                    if !owns(port) {
                        return PortUsage::Taken;
                    }
                    probes += 1;
                    usage(&at(port))
                });
                cx.observe.counters.port_probes += probes;
                let Some(port) = port else {
                    cx.observe.counters.ports_exhausted += 1;
                    return Err(ConnectError::NoFreePort);
                };
                at(port)
            }
        };
        let floor = below.table.take_from_time_wait(cx, &tuple);
        let iss = below.table.iss(cx.now, &tuple, floor);
        let ts_offset = below.table.isn.timestamp_offset(&tuple);
        let id =
            below.table.insert(cx, &tuple, |ctx| Connection::connect(ctx, tuple, config, iss, ts_offset));
        below.expect_known_path(cx, id);
        self.expect_fast_open(below.table, cx, id);
        below.egress.touch(below.table, cx, id.index);
        Ok(id)
    }

    /// The address with a port filled in, if any will do.
    pub(crate) fn with_port(&self, table: &mut Table, on: ListenOn) -> Result<ListenOn, ListenError> {
        let is_open = match on {
            ListenOn::Address(address) => address.port() == 0,
            ListenOn::Port(port) => port == 0,
            ListenOn::Any => false,
        };
        if !is_open {
            return Ok(on);
        }
        let listeners = &self.listeners;
        let port =
            table.ports.select_random(|port| listeners.is_free(port)).ok_or(ListenError::NoFreePort)?;
        Ok(match on {
            ListenOn::Address(address) => ListenOn::Address(SocketAddr::new(address.ip(), port)),
            ListenOn::Port(_) | ListenOn::Any => ListenOn::Port(port),
        })
    }
}

impl Below<'_> {
    /// A new connection begins with what is known of its path.
    pub(crate) fn expect_known_path(&mut self, cx: &mut Cx<'_>, id: ConnId) {
        let Some(conn) = self.table.slots.conn_mut(id.index) else { return };
        if let Some(AddressEntry { value: mtu, until, .. }) =
            self.ip.paths.find(cx.now, conn.tuple().remote_ip())
        {
            conn.expect_path(mtu, until);
            cx.observe.counters.tcp_path_mtu_reused += 1;
        }
    }
}
