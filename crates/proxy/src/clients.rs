//! Limits of connections and flows, per client and in total.
//!
//! A client is an IPv4 address, or an IPv6 prefix of 64 bits, of which one host has all addresses
//! (RFC 8504, section 6.3). Whoever sends a SYN may have forged it, so what unproved clients cost
//! outside is bounded apart from the rest, and little of all there is.

mod limits;

pub use limits::FileLimits;

use crate::target::Protocol;
use ackline_runtime::timer;
use ackline_tcp_core::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits of connections and UDP flows, each of which has a descriptor. A client is an IPv4
/// address, or an IPv6 prefix of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of one client. Further ones are refused with an RST. Default: 4,096.
    pub client_connections: u32,
    /// UDP flows of one client. Further ones are refused with *port unreachable*. Default: 1,024.
    pub client_flows: u32,
    /// Connections and flows of one client together; further ones as above. At most half of
    /// `total`, whatever this says. Default: `u32::MAX`.
    pub client_total: u32,
    /// Connections of one client that are begun outside before it has proved its address by
    /// completing its handshake. For further ones it must do that first, so it is connected before
    /// its destination has answered. Default: 64.
    pub client_early: u32,
    /// The same for all clients: at once, and in a second. At most a quarter of `total`, whatever
    /// this says. Default: 1,024.
    pub early: u32,
    /// Connections and flows of all clients. Further ones are left without an answer, so that
    /// clients ask again. Default: `u32::MAX`; set it below the number of descriptors that the
    /// process may have.
    pub total: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_connections: 4_096,
            client_flows: 1_024,
            client_total: u32::MAX,
            client_early: 64,
            early: 1_024,
            total: u32::MAX,
        }
    }
}

/// The limit that refuses a connection or flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The client's own.
    Client,
    /// That of all clients together.
    Total,
}

/// Usage of all clients, and its limits.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: Limits,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    total: u32,
    /// Connections that are begun outside for clients that have not proved their address.
    early: u32,
    /// A second, and how many of them were begun in it.
    begun: (u64, u32),
    /// Clients with any usage.
    clients: HashMap<IpAddr, ClientUsage>,
}

/// Usage of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClientUsage {
    /// Connections and flows.
    permits: [u32; 2],
    early: u32,
}

impl Clients {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let limits = Limits {
            client_total: limits.client_total.min(limits.total / 2).max(1),
            early: limits.early.min(limits.total / 4),
            ..limits
        };
        Arc::new(Self { limits, usage: Mutex::default() })
    }

    /// A permit for a connection or flow of `client`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: IpAddr,
        protocol: Protocol,
    ) -> Result<Permit, LimitReached> {
        let client = source(client);
        let Limits { client_connections, client_flows, client_total, total, .. } = self.limits;
        let mut usage = self.lock();
        if usage.total >= total {
            return Err(LimitReached::Total);
        }
        let [connections, flows] = usage.clients.get(&client).map_or([0; 2], |own| own.permits);
        let (own, most) = match protocol {
            Protocol::Tcp => (connections, client_connections),
            Protocol::Udp => (flows, client_flows),
        };
        if own >= most || connections + flows >= client_total {
            return Err(LimitReached::Client);
        }
        usage.total += 1;
        usage.clients.entry(client).or_default().permits[protocol as usize] += 1;
        Ok(Permit { clients: self.clone(), client, protocol })
    }

    /// A permit to connect outside for `client`, which has not proved its address.
    pub(crate) fn begin_early(self: &Arc<Self>, client: IpAddr) -> Option<EarlyPermit> {
        let client = source(client);
        let second = timer::now().as_nanos() / Duration::from_secs(1).as_nanos();
        let mut usage = self.lock();
        let (latest, begun) = usage.begun;
        let begun = if latest == second { begun } else { 0 };
        let own = usage.clients.get(&client).map_or(0, |own| own.early);
        if own >= self.limits.client_early || usage.early.max(begun) >= self.limits.early {
            return None;
        }
        usage.begun = (second, begun + 1);
        usage.early += 1;
        usage.clients.entry(client).or_default().early += 1;
        Some(EarlyPermit { clients: self.clone(), client })
    }

    /// True if the total limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().total >= self.limits.total
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// Reduces the usage of a client.
    fn leave(&mut self, client: IpAddr, give_back: impl FnOnce(&mut ClientUsage)) {
        if let Some(own) = self.clients.get_mut(&client) {
            give_back(own);
            if *own == ClientUsage::default() {
                self.clients.remove(&client);
            }
        }
    }
}

/// The client that an address belongs to.
fn source(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from(v6.to_bits() >> 64 << 64).into(),
    }
}

/// Counts a connection or flow until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    clients: Arc<Clients>,
    client: IpAddr,
    protocol: Protocol,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut usage = self.clients.lock();
        usage.total -= 1;
        usage.leave(self.client, |own| own.permits[self.protocol as usize] -= 1);
    }
}

/// Counts an outside connection for a client that has not proved its address, until it is dropped.
#[derive(Debug)]
pub(crate) struct EarlyPermit {
    clients: Arc<Clients>,
    client: IpAddr,
}

impl Drop for EarlyPermit {
    fn drop(&mut self) {
        let mut usage = self.clients.lock();
        usage.early -= 1;
        usage.leave(self.client, |own| own.early -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_limits_and_nothing_stays() {
        let limits = Limits { client_connections: 2, client_flows: 1, total: 8, ..Limits::default() };
        let clients = Clients::new(limits);
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let places = [(a, Protocol::Tcp), (a, Protocol::Tcp), (a, Protocol::Udp)]
            .map(|(client, protocol)| clients.enter(client, protocol).expect("room"));
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            assert_eq!(clients.enter(a, protocol).err(), Some(LimitReached::Client));
        }
        let other = clients.enter(b, Protocol::Tcp).expect("room");
        drop(places);
        assert!(clients.enter(a, Protocol::Tcp).is_ok());
        drop(other);
        let usage = clients.lock();
        assert!(usage.total == 0 && usage.clients.is_empty(), "{usage:?}");
    }

    #[test]
    fn one_client_has_at_most_half_of_all_there_is_whatever_address_it_takes() {
        let clients =
            Clients::new(Limits { client_connections: 9, client_flows: 9, total: 8, ..Limits::default() });
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let places: Vec<_> = (1..=4)
            .zip([Protocol::Tcp, Protocol::Udp].into_iter().cycle())
            .map(|(host, protocol)| {
                clients.enter(address(&format!("2001:db8::{host}")), protocol).expect("room")
            })
            .collect();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            assert_eq!(
                clients.enter(address("2001:db8::ffff:1"), protocol).err(),
                Some(LimitReached::Client)
            );
        }
        let others: Vec<_> =
            (0..4).map(|_| clients.enter(address("2001:db8:0:1::1"), Protocol::Tcp).expect("room")).collect();
        assert!(clients.is_full());
        assert_eq!(clients.enter(address("192.0.2.1"), Protocol::Tcp).err(), Some(LimitReached::Total));
        drop((places, others));
        assert!(clients.lock().clients.is_empty() && !clients.is_full());
    }

    #[test]
    fn connections_for_unproved_clients_are_few_for_each_and_in_all() {
        let clients = Clients::new(Limits { client_early: 2, early: 5, ..Limits::default() });
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut held: Vec<_> =
            [a, a, b, b, c].map(|client| clients.begin_early(client).expect("room")).into();
        for client in [a, b, c] {
            assert!(clients.begin_early(client).is_none());
        }
        // One that has proved its address leaves room for another, within the rate of so many in a
        // second.
        drop(held.pop());
        let mut usage = clients.lock();
        assert_eq!((usage.early, usage.begun.1), (4, 5));
        usage.begun.0 -= 1;
        drop(usage);
        assert!(clients.begin_early(a).is_none());
        assert!(clients.begin_early(c).is_some());
        drop(held);
        assert!(clients.lock().clients.is_empty());
        // A quarter of all there is, at most.
        let clients = Clients::new(Limits { early: 5, total: 8, ..Limits::default() });
        let begun = [a, b, c].map(|client| clients.begin_early(client));
        assert_eq!(begun.each_ref().map(Option::is_some), [true, true, false]);
    }
}
