//! How much of the proxy each client has.

use crate::target::Protocol;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits of connections and UDP flows, each of which has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of one client address. Further ones are refused with an RST. Default: 4,096.
    pub client_connections: u32,
    /// UDP flows of one client address. Further ones are refused with *port unreachable*. Default: 1,024.
    pub client_flows: u32,
    /// Connections and flows of all clients. Further ones are left without an answer, so that clients ask again. Default: `u32::MAX`;
    /// set it below the number of descriptors that the process may have.
    pub total: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { client_connections: 4_096, client_flows: 1_024, total: u32::MAX }
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// This client has as many as it may have.
    Client,
    /// All clients together have.
    Total,
}

/// What each client has.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: Limits,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    total: u32,
    /// Connections and flows of those that have any.
    clients: HashMap<IpAddr, [u32; 2]>,
}

impl Clients {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, usage: Mutex::default() })
    }

    /// A place for a connection or flow of `client`.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr, protocol: Protocol) -> Result<Place, Full> {
        let mut usage = self.lock();
        if usage.total >= self.limits.total {
            return Err(Full::Total);
        }
        let own = usage.clients.get(&client).map_or(0, |own| own[protocol as usize]);
        if own >= [self.limits.client_connections, self.limits.client_flows][protocol as usize] {
            return Err(Full::Client);
        }
        usage.total += 1;
        usage.clients.entry(client).or_default()[protocol as usize] += 1;
        Ok(Place { clients: self.clone(), client, protocol })
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that a connection or flow has until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    clients: Arc<Clients>,
    client: IpAddr,
    protocol: Protocol,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut usage = self.clients.lock();
        usage.total -= 1;
        if let Some(own) = usage.clients.get_mut(&self.client) {
            own[self.protocol as usize] -= 1;
            if *own == [0, 0] {
                usage.clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_limits_and_nothing_stays() {
        let limits = Limits { client_connections: 2, client_flows: 1, total: 4 };
        let clients = Clients::new(limits);
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let places = [(a, Protocol::Tcp), (a, Protocol::Tcp), (a, Protocol::Udp)]
            .map(|(client, protocol)| clients.enter(client, protocol).expect("room"));
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            assert_eq!(clients.enter(a, protocol).err(), Some(Full::Client));
        }
        let other = clients.enter(b, Protocol::Tcp).expect("room");
        assert_eq!(clients.enter(b, Protocol::Tcp).err(), Some(Full::Total));
        drop(places);
        assert!(clients.enter(a, Protocol::Tcp).is_ok());
        drop(other);
        let usage = clients.lock();
        assert!(usage.total == 0 && usage.clients.is_empty(), "{usage:?}");
    }
}
