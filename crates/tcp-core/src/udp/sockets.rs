//! UDP sockets: what waits in them, and whom a datagram is for.

use super::flows::{Flows, Timeouts};
use crate::error::UdpError;
use crate::four_tuple::FourTuple;
use crate::id::UdpId;
use crate::share::Cx;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Errors that wait to be told to a socket that is not connected: what is lost comes again with the
/// next datagram.
const MOST_REPORTS: usize = 16;

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpReceived {
    /// Sender.
    pub from: SocketAddr,
    /// Where it was sent to: an address of this endpoint.
    pub to: SocketAddr,
    /// The data.
    pub data: Box<[u8]>,
}

impl UdpReceived {
    pub(crate) const fn new(from: SocketAddr, to: SocketAddr, data: Box<[u8]>) -> Self {
        Self { from, to, data }
    }

    /// What it counts in a queue.
    const fn cost(&self) -> usize {
        cost(self.data.len())
    }
}

/// What a datagram with this much data counts in a queue, and takes of the budget.
pub(crate) const fn cost(len: usize) -> usize {
    size_of::<UdpReceived>() + len
}

/// What has passed a UDP socket or flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UdpStats {
    /// Datagrams that the application has received.
    pub in_datagrams: u64,
    /// Their data in bytes.
    pub in_bytes: u64,
    /// Datagrams sent.
    pub out_datagrams: u64,
    /// Their data in bytes.
    pub out_bytes: u64,
    /// Datagrams dropped for lack of room or memory.
    pub dropped: u64,
}

/// Something that an application with UDP may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UdpEvent {
    /// A socket has received something, or an error; or it has room for sending again, or has
    /// ended.
    Socket(UdpId),
    /// There is a [flow](super::Datagrams::next_flow) that the application has not accepted.
    Flow,
}

/// One socket, or flow.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) local: SocketAddr,
    pub(crate) remote: Option<SocketAddr>,
    kind: Kind,
    received: VecDeque<UdpReceived>,
    /// What `received` counts.
    waiting: usize,
    /// What waits for the device counts.
    unsent: usize,
    /// What the application has not been told.
    error: Option<UdpError>,
    /// The same of an unconnected socket, with the peer, if it wants to be told.
    reports: Option<VecDeque<(SocketAddr, UdpError)>>,
    /// A send has found no room.
    blocked: bool,
    /// It is in the list of news.
    listed: bool,
    /// Largest IP packet sent so far, and largest that the path carries if ICMP has named one, in
    /// bytes.
    largest_sent: u32,
    pub(crate) path_mtu: Option<u32>,
    pub(crate) stats: UdpStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bound,
    /// A flow that the application has not accepted.
    Offered,
    /// A flow that the application has.
    Flow,
    /// A flow that has ended, and that the application still has.
    Ended,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    socket: Option<Box<Socket>>,
}

/// All sockets of an endpoint. Flows are found in O(1), bound sockets in O(log n) of what the
/// application has bound.
#[derive(Debug)]
pub(crate) struct Udp {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Those that are not flows. An unspecified address is any of its family.
    bound: BTreeMap<SocketAddr, UdpId>,
    flows: Flows,
    /// Flows that exist, ended ones included.
    flow_count: usize,
    /// Datagrams for no socket begin flows.
    takes_flows: bool,
    /// Flows to be accepted; stale entries are skipped.
    offered: VecDeque<UdpId>,
    /// A flow has been offered since the application was told.
    flow_news: bool,
    news: VecDeque<UdpId>,
    /// What waits in all sockets.
    queued: usize,
    /// Bytes held: asked for after each burst, and computed when they change.
    memory: usize,
}

/// The outcome of looking for room for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// There is room.
    pub(crate) is_there: bool,
    /// A flow had to go.
    pub(crate) evicted: bool,
}

impl Udp {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            bound: BTreeMap::new(),
            flows: Flows::new(secret),
            flow_count: 0,
            takes_flows: false,
            offered: VecDeque::new(),
            flow_news: false,
            news: VecDeque::new(),
            queued: 0,
            memory: 0,
        }
    }

    /// When the next flow has been silent for too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.flows.next_end()
    }

    /// True if no datagram can be for anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.bound.is_empty() && self.flow_count == 0 && !self.takes_flows
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    fn measure(&mut self) {
        let sockets = self.slots.len() - self.free.len();
        self.memory = self.slots.capacity() * size_of::<Slot>()
            + sockets * size_of::<Socket>()
            + (self.offered.capacity() + self.news.capacity()) * size_of::<UdpId>()
            + self.flows.memory()
            + self.queued;
    }

    pub(crate) fn get(&self, id: UdpId) -> Option<&Socket> {
        let slot = self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation);
        slot.and_then(|slot| slot.socket.as_deref())
    }

    pub(crate) fn get_mut(&mut self, id: UdpId) -> Option<&mut Socket> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation);
        slot.and_then(|slot| slot.socket.as_deref_mut())
    }

    fn insert(&mut self, local: SocketAddr, remote: Option<SocketAddr>, kind: Kind) -> UdpId {
        let socket = Socket {
            local,
            remote,
            kind,
            received: VecDeque::new(),
            waiting: 0,
            unsent: 0,
            error: None,
            reports: None,
            blocked: false,
            listed: false,
            largest_sent: 0,
            path_mtu: None,
            stats: UdpStats::default(),
        };
        let socket = Some(Box::new(socket));
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            slot.socket = socket;
            return UdpId { index, generation: slot.generation };
        }
        // The address space of ports, and the configured limit of flows, keep this far below 2^32.
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: 0, socket });
        UdpId { index, generation: 0 }
    }

    fn take(&mut self, id: UdpId) -> Option<Box<Socket>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let socket = slot.socket.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        self.queued -= socket.waiting;
        Some(socket)
    }

    /// True if a socket may be bound to `local`.
    pub(crate) fn is_free(&self, local: SocketAddr) -> bool {
        let ends = (SocketAddr::new(least(local.ip()), 0), SocketAddr::new(greatest(local.ip()), u16::MAX));
        if local.ip().is_unspecified() {
            // As in Linux, no other socket of the family may have the port.
            return !self.bound.range(ends.0..=ends.1).any(|(other, _)| other.port() == local.port());
        }
        !self.bound.contains_key(&local) && !self.bound.contains_key(&anywhere(local))
    }

    /// Adds a socket at `local`, which must be free.
    pub(crate) fn bind(&mut self, local: SocketAddr) -> UdpId {
        let id = self.insert(local, None, Kind::Bound);
        self.bound.insert(local, id);
        self.measure();
        id
    }

    /// Moves a bound socket from any address to `local`, which must be free but for itself.
    pub(crate) fn rebind(&mut self, id: UdpId, local: SocketAddr) {
        let Some(socket) = self.get_mut(id) else { return };
        let before = core::mem::replace(&mut socket.local, local);
        self.bound.remove(&before);
        self.bound.insert(local, id);
    }

    /// Closes a socket, or ends a flow that the application has had. The four-tuple of a flow can
    /// begin another one.
    pub(crate) fn close(&mut self, id: UdpId) {
        let Some(socket) = self.take(id) else { return };
        match (socket.kind, socket.tuple()) {
            (Kind::Bound, _) => {
                self.bound.remove(&socket.local);
            }
            (Kind::Ended, _) | (_, None) => self.flow_count -= 1,
            (Kind::Offered | Kind::Flow, Some(tuple)) => {
                self.flows.remove(&tuple);
                self.flow_count -= 1;
            }
        }
        self.measure();
    }

    /// Whether datagrams for no socket begin flows; without, those that were not accepted end.
    pub(crate) fn take_flows(&mut self, on: bool) -> Result<(), UdpError> {
        if on && self.takes_flows {
            return Err(UdpError::InUse);
        }
        self.takes_flows = on;
        while !on && let Some(id) = self.next_flow() {
            self.close(id);
        }
        Ok(())
    }

    pub(crate) const fn takes_flows(&self) -> bool {
        self.takes_flows
    }

    /// Flows that exist.
    pub(crate) const fn flow_count(&self) -> usize {
        self.flow_count
    }

    /// Shows their number among the counters.
    pub(crate) fn count_flows(&self, cx: &mut Cx<'_>) {
        cx.observe.counters.udp_curr_flows = self.flow_count() as u64;
    }

    /// Sockets that are not flows.
    pub(crate) fn socket_count(&self) -> usize {
        self.bound.len()
    }

    /// The next flow that the application has not accepted; it has accepted it then.
    pub(crate) fn next_flow(&mut self) -> Option<UdpId> {
        while let Some(id) = self.offered.pop_front() {
            if let Some(socket) = self.get_mut(id) {
                socket.kind = Kind::Flow;
                return Some(id);
            }
        }
        None
    }

    /// Whom a datagram to `tuple`'s local address is for: the flow, or the socket bound there or to
    /// any address, unless that is connected to another peer.
    pub(crate) fn find(&self, tuple: &FourTuple) -> Option<UdpId> {
        self.flows.find(tuple).or_else(|| {
            let (local, remote) = (tuple.local(), tuple.remote());
            let heeds = |id: &&UdpId| {
                self.get(**id).is_some_and(|socket| socket.remote.is_none_or(|peer| peer == remote))
            };
            let exact = self.bound.get(&local).filter(heeds);
            exact.or_else(|| self.bound.get(&anywhere(local)).filter(heeds)).copied()
        })
    }

    /// Makes room for a flow among `most`, if one that has no answer can go. One that the
    /// application has accepted ends, but takes its place until the application lets go of it.
    pub(crate) fn make_room(&mut self, most: usize) -> Room {
        let evicted = if self.flow_count < most { None } else { self.flows.evict() };
        if let Some(id) = evicted {
            self.end(id);
        }
        Room { is_there: self.flow_count < most, evicted: evicted.is_some() }
    }

    /// Begins a flow, for which there must be room, and offers it.
    pub(crate) fn begin_flow(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        timeouts: Timeouts,
        most: usize,
    ) -> UdpId {
        let id = self.insert(tuple.local(), Some(tuple.remote()), Kind::Offered);
        self.flows.begin(now, tuple, id, timeouts, most);
        self.flow_count += 1;
        self.flow_news = true;
        // More than half of them are stale: this is O(1) per flow.
        if self.offered.len() > 2 * self.flow_count {
            let slots = &self.slots;
            self.offered.retain(|id| {
                slots.get(id.index as usize).is_some_and(|slot| slot.generation == id.generation)
            });
        }
        self.offered.push_back(id);
        self.measure();
        id
    }

    /// A flow that is in no table any more has ended. If the application does not have it, it is
    /// forgotten.
    fn end(&mut self, id: UdpId) {
        let Some(socket) = self.get_mut(id) else { return };
        if socket.kind == Kind::Offered {
            self.take(id);
            self.flow_count -= 1;
        } else {
            socket.kind = Kind::Ended;
            self.tell(id);
        }
        self.measure();
    }

    /// Ends a flow that has been silent for too long; false if there is none.
    pub(crate) fn expire_one(&mut self, now: Instant) -> bool {
        let expired = self.flows.expire(now);
        if let Some(id) = expired {
            self.end(id);
        }
        expired.is_some()
    }

    /// A datagram has come to the flow or gone from it.
    pub(crate) fn refresh(&mut self, now: Instant, id: UdpId, sent: bool, timeouts: Timeouts, most: usize) {
        let Some(socket) = self.get(id) else { return };
        if let (Kind::Offered | Kind::Flow, Some(tuple)) = (socket.kind, socket.tuple()) {
            if sent {
                self.flows.answered(now, &tuple, timeouts, most);
                self.measure();
            } else {
                self.flows.heard(now, &tuple, timeouts);
            }
        }
    }

    /// Queues a datagram.
    pub(crate) fn deliver(&mut self, id: UdpId, datagram: UdpReceived) {
        let cost = datagram.cost();
        let Some(socket) = self.get_mut(id) else { return };
        socket.waiting += cost;
        socket.received.push_back(datagram);
        self.queued += cost;
        self.tell(id);
        self.measure();
    }

    /// Takes the next datagram.
    pub(crate) fn receive(&mut self, id: UdpId) -> Result<Option<UdpReceived>, UdpError> {
        let socket = self.get_mut(id).ok_or(UdpError::Closed)?;
        socket.heed_error()?;
        let Some(datagram) = socket.received.pop_front() else {
            return if socket.kind == Kind::Ended { Err(UdpError::Ended) } else { Ok(None) };
        };
        let cost = datagram.cost();
        socket.waiting -= cost;
        socket.stats.in_datagrams += 1;
        socket.stats.in_bytes += datagram.data.len() as u64;
        if socket.received.is_empty() {
            // An idle socket holds no queue.
            socket.received = VecDeque::new();
        }
        self.queued -= cost;
        self.measure();
        Ok(Some(datagram))
    }

    /// A datagram with `len` bytes of data has left, or will not.
    pub(crate) fn departed(&mut self, id: UdpId, len: usize, limit: usize) {
        let Some(socket) = self.get_mut(id) else { return };
        socket.unsent = socket.unsent.saturating_sub(cost(len));
        if socket.blocked && socket.unsent <= limit / 2 {
            socket.blocked = false;
            self.tell(id);
        }
    }

    /// ICMP reported `error` about a datagram of `tuple`. False if no socket is told of such.
    pub(crate) fn report(&mut self, tuple: &FourTuple, error: UdpError) -> bool {
        let Some(id) = self.told_of_errors(tuple) else { return false };
        if let Some(socket) = self.get_mut(id) {
            socket.hear(tuple.remote(), error);
        }
        self.tell(id);
        true
    }

    /// The socket that is told of errors about a datagram like this: it is connected so, or wants
    /// to be told of all.
    pub(crate) fn told_of_errors(&self, tuple: &FourTuple) -> Option<UdpId> {
        let is_told = |socket: &Socket| socket.remote.is_some() || socket.reports.is_some();
        self.find(tuple).filter(|id| self.get(*id).is_some_and(is_told))
    }

    /// The next thing that an application may wait for.
    pub(crate) fn next_event(&mut self) -> Option<UdpEvent> {
        if core::mem::take(&mut self.flow_news) {
            return Some(UdpEvent::Flow);
        }
        while let Some(id) = self.news.pop_front() {
            if let Some(socket) = self.get_mut(id) {
                socket.listed = false;
                return Some(UdpEvent::Socket(id));
            }
        }
        None
    }

    /// The application is told that something has happened to a socket that it has.
    fn tell(&mut self, id: UdpId) {
        if let Some(socket) = self.get_mut(id)
            && socket.kind != Kind::Offered
            && !core::mem::replace(&mut socket.listed, true)
        {
            self.news.push_back(id);
            self.measure();
        }
    }
}

impl Socket {
    /// Both ends, if both are known.
    pub(crate) fn tuple(&self) -> Option<FourTuple> {
        Some(FourTuple::new(self.local, self.remote?))
    }

    /// Connects it: what is known of another path does not count.
    pub(crate) const fn connect(&mut self, remote: SocketAddr) {
        self.remote = Some(remote);
        self.largest_sent = 0;
        self.path_mtu = None;
    }

    pub(crate) fn is_flow(&self) -> bool {
        self.kind != Kind::Bound
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.kind == Kind::Ended
    }

    /// Fails once with what ICMP has reported.
    pub(crate) fn heed_error(&mut self) -> Result<(), UdpError> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// True if there is something to be told or received.
    pub(crate) fn is_readable(&self) -> bool {
        let has_report = self.reports.as_ref().is_some_and(|reports| !reports.is_empty());
        !self.received.is_empty() || self.error.is_some() || has_report || self.kind == Kind::Ended
    }

    /// Whether it is told of errors without being connected.
    pub(crate) fn report_errors(&mut self, on: bool) {
        self.reports = on.then(VecDeque::new);
    }

    /// ICMP has reported `error` about a datagram to `peer`.
    fn hear(&mut self, peer: SocketAddr, error: UdpError) {
        match &mut self.reports {
            _ if self.remote.is_some() => self.error = Some(error),
            Some(reports) if reports.len() < MOST_REPORTS => reports.push_back((peer, error)),
            _ => {}
        }
    }

    /// The next such error.
    pub(crate) fn next_report(&mut self) -> Option<(SocketAddr, UdpError)> {
        self.reports.as_mut()?.pop_front()
    }

    /// True if a datagram finds room. A queue that is empty has room for any.
    pub(crate) const fn may_receive(&self, cost: usize, limit: usize) -> bool {
        self.waiting == 0 || self.waiting + cost <= limit
    }

    /// The datagram that is received next.
    pub(crate) fn peek(&self) -> Option<&UdpReceived> {
        self.received.front()
    }

    /// True if a datagram that counts `cost` finds room. Otherwise the application is told when
    /// there is some.
    pub(crate) const fn may_send(&mut self, cost: usize, limit: usize) -> bool {
        let fits = self.unsent == 0 || self.unsent + cost <= limit;
        self.blocked |= !fits;
        fits
    }

    /// A datagram of `ip_len` bytes, `len` of them data, waits for the device from now on.
    pub(crate) const fn sending(&mut self, cost: usize, ip_len: u32, len: usize) {
        self.unsent += cost;
        if self.largest_sent < ip_len {
            self.largest_sent = ip_len;
        }
        self.stats.out_datagrams += 1;
        self.stats.out_bytes += len as u64;
    }

    /// ICMP says that the path carries `mtu` bytes; true if the socket has sent more.
    pub(crate) const fn narrow(&mut self, mtu: u32) -> bool {
        // What is known of one path says nothing about those to other peers.
        let believes = self.remote.is_some() && self.largest_sent > mtu;
        if believes {
            self.path_mtu = Some(mtu);
        }
        believes
    }
}

/// The socket address with any address of the same family.
const fn anywhere(local: SocketAddr) -> SocketAddr {
    SocketAddr::new(least(local.ip()), local.port())
}

/// The unspecified address of the same family, which is its first.
const fn least(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// The last address of the same family.
const fn greatest(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::BROADCAST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
    }
}
