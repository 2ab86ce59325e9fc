//! One endpoint of several of a host: each has its part of the connections.
//!
//! The driver gives each endpoint the packets that [`Steering`] says are its own. The endpoint
//! chooses local ports so that it owns the connections that it opens. What has come in fragments it
//! can tell only when it is put together, so it gives it back then.

use super::{Endpoint, Owners};
use crate::config::EndpointConfig;
use crate::reserve::{HostMemory, HostRate, MemoryPart};
use crate::share::{Ingested, Limits, Pools};
use crate::steering::Steering;
use crate::wire::RxPacket;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::SocketAddr;

/// Maximum number of packets that wait to be given back; the driver takes them after each batch.
const MOST_FOREIGN: usize = 64;

/// What the endpoints of one host have in common: which of them has a connection, and the limits
/// that hold for all of them together.
///
/// ```
/// use ackline_tcp_core::endpoint::Host;
/// use ackline_tcp_core::policy::builtin::Fifo;
/// use ackline_tcp_core::steering::Steering;
/// use ackline_tcp_core::{Endpoint, EndpointConfig};
///
/// let (seed, config) = ([7; 32], EndpointConfig::default());
/// let host = Host::new(&config, Steering::new(2, &seed));
/// let endpoints = [0, 1].map(|index| {
///     let mut endpoint = Endpoint::new(config.share(2), Box::new(Fifo::default()), seed);
///     endpoint.join(&host, index);
///     endpoint
/// });
/// # assert_eq!(endpoints.len(), 2);
/// ```
///
/// The endpoints may be on different threads. None takes a lock, and none writes what others read
/// for a packet, or a connection, of its own: each takes parts of the limits in advance, and gives
/// back what it does not need. So the sum never exceeds a limit, and one endpoint may have nearly
/// all of it while the others have nothing to do; these keep at most a thirty-second of it.
///
/// | limit | an endpoint that finds nothing left, and needs some |
/// |---|---|
/// | [`max_connections`](EndpointConfig::max_connections), a listener's [`backlog`](crate::AcceptConfig::backlog) | refuses, as an endpoint alone |
/// | [`max_half_open`](EndpointConfig::max_half_open) | answers with SYN cookies; without them, its own oldest makes room, and if it has none it drops the SYN |
/// | [`max_held_syns`](EndpointConfig::max_held_syns), also a [listener's](crate::AcceptConfig::max_held_syns) | drops the SYN, as an endpoint alone |
/// | [`max_orphans`](EndpointConfig::max_orphans) | resets its own orphan that has made no progress for longest, which may be the new one |
/// | [`max_time_wait`](EndpointConfig::max_time_wait) | forgets its own record closest to its end; if it has none, the new connection does not wait |
/// | [`fast_open_queue`](EndpointConfig::fast_open_queue) | begins an ordinary handshake, as an endpoint alone |
///
/// [`max_memory`](EndpointConfig::max_memory) is the host's in the same way: what one takes is
/// reserved first, and levels and equal shares are those of all connections, counted to within five
/// percent. If memory is short, an endpoint that holds less than its part frees nothing; one that
/// holds more does what an endpoint alone does. A part is that of its connections, where each
/// endpoint counts for one more: so there always is one that holds more than its part.
///
/// So is what may be sent per second: challenge ACKs, RSTs and ICMP errors. Each second has one
/// limit, drawn as by an endpoint alone, for whoever comes first; what is refused writes nothing.
///
/// One that has less than an equal part of a number is not left with nothing for as long as others
/// are busy: these then give back what they do not use, and an endpoint with more than an equal
/// part that is at its limit gives up another place whenever it replaces something.
#[derive(Clone, Debug)]
pub struct Host {
    steering: Steering,
    pools: Arc<Pools>,
    /// `None`: no limit.
    memory: Option<Arc<HostMemory>>,
    resets: Arc<HostRate>,
    challenges: Arc<HostRate>,
    icmp_errors: Arc<HostRate>,
}

impl Host {
    /// A host with these limits, whose connections `steering` spreads.
    #[must_use]
    pub fn new(config: &EndpointConfig, steering: Steering) -> Self {
        let endpoints = steering.shards();
        let memory = config.max_memory.map(|bytes| Arc::new(HostMemory::new(bytes, endpoints)));
        let rate = || Arc::new(HostRate::new());
        Self {
            steering,
            pools: Arc::new(Pools::new(config, endpoints)),
            memory,
            resets: rate(),
            challenges: rate(),
            icmp_errors: rate(),
        }
    }
}

/// Which of the host's endpoints this is.
#[derive(Debug)]
pub(super) struct Shard {
    steering: Steering,
    index: usize,
    /// Packets of others that came in fragments.
    foreign: VecDeque<Box<[u8]>>,
    /// What they hold, in bytes.
    held: usize,
}

impl Shard {
    /// The connection would be this endpoint's.
    pub(super) fn owns(&self, remote: SocketAddr, local: u16) -> bool {
        self.steering.shard_of(remote, local) == self.index
    }

    /// Bytes that wait to be given back.
    pub(super) const fn memory(&self) -> usize {
        self.held
    }

    /// How many ports have to be tried on average to find an own one.
    pub(super) fn dilution(&self) -> u32 {
        self.steering.shards() as u32
    }
}

impl Endpoint {
    /// Makes this the endpoint number `index` of `host`. All of them need the same addresses, and
    /// the same seed: then they choose initial sequence numbers, and accept fast open cookies, as
    /// one host. Before the first connection.
    pub fn join(&mut self, host: &Host, index: usize) {
        self.context.limits = Limits::of_host(&host.pools);
        if let Some(memory) = &host.memory {
            self.context.observe.budget.join(MemoryPart::new(memory.clone()));
        }
        self.owners.opens.resets.join(host.resets.clone());
        self.owners.opens.challenges.join(host.challenges.clone());
        self.owners.ip.errors.join(host.icmp_errors.clone());
        self.owners.shard =
            Some(Box::new(Shard { steering: host.steering, index, foreign: VecDeque::new(), held: 0 }));
    }

    /// This endpoint has stopped, maybe because something panicked, and takes no connections any
    /// more: the places that it had among the host's are the others'. Memory that it holds still
    /// counts until it is dropped.
    pub fn leave(&mut self) {
        self.context.limits = Limits::stopped();
        self.owners.opens.listeners.leave_host();
        self.owners.opens.held_syns.leave_host();
    }

    /// True, once, if memory of the host is short and other endpoints hold more than their part:
    /// then their drivers should call [`transmit`](Self::transmit), because endpoints whose
    /// connections stand still would not notice. Ask after `transmit`.
    pub fn calls_others(&mut self) -> bool {
        core::mem::take(&mut self.owners.calls_others)
    }

    /// The next packet that came in fragments and belongs to another endpoint of the host.
    pub fn next_foreign(&mut self) -> Option<Box<[u8]>> {
        let shard = self.owners.shard.as_deref_mut()?;
        let packet = shard.foreign.pop_front()?;
        shard.held -= packet.len();
        Some(packet)
    }
}

impl Owners {
    /// Keeps a packet for its owner, if that is another endpoint.
    pub(super) fn give_back(&mut self, packet: &[u8]) -> Option<Ingested> {
        let shard = self.shard.as_deref_mut()?;
        if shard.steering.shard_for(&RxPacket::new(packet)) == shard.index {
            return None;
        }
        if shard.foreign.len() < MOST_FOREIGN {
            shard.foreign.push_back(packet.into());
            shard.held += packet.len();
        }
        Some(Ingested::Handled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConnConfig, Target};
    use crate::policy::builtin::Fifo;
    use crate::time::Instant;
    use alloc::sync::Arc;

    fn endpoint(shards: usize, index: usize) -> (Endpoint, Steering) {
        let mut config = EndpointConfig::default();
        config.addresses.push([10, 0, 0, 1].into());
        let steering = Steering::new(shards, &[3; 32]);
        let host = Host::new(&config, steering);
        let mut endpoint = Endpoint::new(config, Box::new(Fifo::default()), [3; 32]);
        endpoint.join(&host, index);
        (endpoint, steering)
    }

    #[test]
    fn a_shard_opens_connections_that_it_owns() {
        for index in 0..5 {
            let (mut endpoint, steering) = endpoint(5, index);
            let to = SocketAddr::from(([10, 0, 0, 2], 80));
            for _ in 0..200 {
                let conn = endpoint.connect(Instant::ZERO, Target::new(to), Arc::new(ConnConfig::default()));
                let conn = endpoint.conn(conn.expect("a free port")).expect("it is there");
                let (local, remote) = conn.addresses();
                assert_eq!(steering.shard_of(remote, local.port()), index);
            }
        }
    }

    #[test]
    fn a_packet_of_another_shard_is_given_back() {
        let (mut endpoint, steering) = endpoint(2, 0);
        let mut packet = [0; 40];
        (packet[0], packet[9]) = (0x45, 6);
        let mut foreign = 0;
        for port in 0..100 {
            packet[21] = port;
            let own = steering.shard_for(&RxPacket::new(&packet)) == 0;
            assert_eq!(endpoint.owners.give_back(&packet).is_none(), own);
            if !own {
                foreign += 1;
                assert_eq!(endpoint.next_foreign().as_deref(), Some(&packet[..]));
            }
        }
        assert!(foreign > 20);
        for _ in 0..2 * MOST_FOREIGN {
            packet[21] = packet[21].wrapping_add(1);
            endpoint.owners.give_back(&packet);
        }
        assert!(core::iter::from_fn(|| endpoint.next_foreign()).count() <= MOST_FOREIGN);
    }
}
