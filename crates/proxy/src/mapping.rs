//! The outside of a client's UDP socket: one port for all its destinations (RFC 4787, REQ-1), as
//! long as one of its flows lives.
//!
//! ```text
//!   client's socket ─┬─ flow to A ─┐            ┌── A
//!                    └─ flow to B ─┴── mapping ─┼── B
//!                                               └── C: passes if the filter lets it, and comes from C's address
//! ```

use crate::filtering::Filtering;
use crate::outside::{Inward, Origin};
use crate::shared::Shared;
use crate::target::can_be_carried;
use crate::upstream::{ConnectError, HEADER, Outlet, Upstream};
use ackline_runtime::UdpFlow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, OnceCell, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Key of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    client: SocketAddr,
    /// Which upstream, by where it is stored; a mapping keeps it there.
    upstream: usize,
    /// The proxy's own address that stands for this machine's loopback.
    stands_for_loopback: Option<IpAddr>,
}

/// All open mappings.
pub(crate) struct Mappings {
    pub(crate) shared: Arc<Shared>,
    open: Mutex<HashMap<Key, Weak<Slot>>>,
}

/// A mapping, open or being opened.
struct Slot {
    key: Key,
    upstream: Arc<Upstream>,
    mappings: Arc<Mappings>,
    outside: OnceCell<ExternalSocket>,
}

/// The socket of a mapping on the outside.
struct ExternalSocket {
    outlet: Arc<Outlet>,
    flows: Arc<Flows>,
    reader: JoinHandle<()>,
    /// Fails once the way back is gone.
    alive: watch::Receiver<()>,
}

/// Flows of one client's socket, by their destination as it is outside.
#[derive(Debug, Default)]
struct Flows(Mutex<BTreeMap<SocketAddr, Arc<Flow>>>);

/// A client's socket and one destination.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) inside: UdpFlow,
    /// The destination's address as the client has it.
    wanted: SocketAddr,
    answers: AtomicU64,
    /// Notified of each answer, and of the end.
    news: Notify,
    /// Takes what comes back, if that waits for its turn at a rate.
    waiting: Option<mpsc::Sender<Held>>,
}

/// Datagrams of one flow that may wait for their turn.
const MOST_HELD: usize = 16;

/// A datagram for a client that waits for its turn.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) datagram: Vec<u8>,
    /// Whom the client sees it come from, if that is not whom it has sent to.
    shown: Option<SocketAddr>,
}

impl Flow {
    /// Datagrams that have come back.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Waits for another one.
    pub(crate) async fn next_answer(&self) {
        self.news.notified().await;
    }

    /// Gives the client a datagram that has waited.
    pub(crate) fn release(&self, shared: &Shared, held: &Held) {
        self.give(shared, &held.datagram, held.shown);
    }

    /// Gives the client a datagram, at its turn.
    fn deliver(&self, shared: &Shared, datagram: &[u8], shown: Option<SocketAddr>) {
        let Some(waiting) = &self.waiting else { return self.give(shared, datagram, shown) };
        match waiting.try_reserve() {
            Ok(place) => place.send(Held { datagram: datagram.to_vec(), shown }),
            Err(_) => shared.counters.rate_lost.one(),
        }
    }

    fn give(&self, shared: &Shared, datagram: &[u8], shown: Option<SocketAddr>) {
        let counters = &shared.counters;
        let sent = match shown {
            None => self.inside.try_send(datagram),
            Some(from) => self.inside.try_send_from(datagram, from),
        };
        match sent.map_err(|error| error.kind()) {
            Ok(_) => {
                counters.datagrams_down.one();
                self.answers.fetch_add(1, Ordering::Relaxed);
                self.news.notify_one();
            }
            // It is longer than the device carries.
            Err(ErrorKind::InvalidInput) => counters.datagrams_too_long.one(),
            // The device is full, and this is a router. What has ended, its own task sees.
            Err(_) => counters.datagrams_lost.one(),
        }
    }
}

/// A flow's part of a mapping, which lives as long as its last one.
pub(crate) struct Mapped {
    slot: Arc<Slot>,
    flow: Arc<Flow>,
    to: SocketAddr,
    header: Vec<u8>,
    /// It is for another client's port outside, which sees it come from here (RFC 4787, REQ-9).
    comes_back: Option<SocketAddr>,
    alive: watch::Receiver<()>,
    /// What has come back and waits for its turn, if there is a rate.
    pub(crate) held: Option<mpsc::Receiver<Held>>,
}

impl Mappings {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(self: &Arc<Self>, key: Key, upstream: &Arc<Upstream>) -> Arc<Slot> {
        let mut slots = self.lock();
        // Whoever drops the last handle of a slot must not hold the lock.
        let found = slots.get(&key).and_then(Weak::upgrade);
        if let Some(living) = found.as_ref().filter(|slot| !slot.has_ended()).cloned() {
            drop(slots);
            return living;
        }
        self.shared.counters.mappings.one();
        let (upstream, mappings) = (upstream.clone(), self.clone());
        let slot = Arc::new(Slot { key, upstream, mappings, outside: OnceCell::new() });
        slots.insert(key, Arc::downgrade(&slot));
        drop(slots);
        slot
    }

    /// The mapping of a stack that has this port outside.
    fn at_port(&self, is_v4: bool, port: u16) -> Option<Arc<Slot>> {
        let slots: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        let has_it = |slot: &Arc<Slot>| {
            let outside = slot.outside.get();
            slot.key.client.is_ipv4() == is_v4
                && outside.is_some_and(|outside| outside.outlet.port_of_stack() == Some(port))
        };
        slots.into_iter().find(has_it)
    }

    /// Adds a flow to `to`, which the client reaches as `inside` says, to its socket's mapping.
    /// Without one, it is made. Without a way for datagrams the flow is given back. If
    /// `holds_back`, what comes back waits in the flow's part of it.
    pub(crate) async fn join(
        self: &Arc<Self>,
        inside: UdpFlow,
        client: SocketAddr,
        wanted: SocketAddr,
        upstream: &Arc<Upstream>,
        to: SocketAddr,
        holds_back: bool,
    ) -> Result<Mapped, (UdpFlow, ConnectError)> {
        let shared = &self.shared;
        let to = plain(to);
        let stands_for_loopback = to.ip().is_loopback().then_some(wanted.ip());
        let key = Key { client, upstream: Arc::as_ptr(upstream).addr(), stands_for_loopback };
        // An upstream's server has its own routes.
        if **upstream == Upstream::Direct
            && let Err(error) = shared.out.check_leaves(to.ip())
        {
            return Err((inside, ConnectError::of_destination(error)));
        }
        let slot = self.slot(key, upstream);
        let limit = shared.config.connect_timeout;
        let made = timeout(limit, slot.outside.get_or_try_init(|| slot.make())).await;
        let outside = match made.unwrap_or(Err(ConnectError::TimedOut)) {
            Ok(outside) => outside,
            Err(error) => return Err((inside, error)),
        };
        let (waiting, held) = holds_back.then(|| mpsc::channel(MOST_HELD)).unzip();
        let flow = Flow { inside, wanted, answers: AtomicU64::new(0), news: Notify::new(), waiting };
        let flow = Arc::new(flow);
        let (header, alive) = (outside.outlet.header(to), outside.alive.clone());
        // The kernel takes what is for an address of its own back by itself.
        let port = outside.outlet.port_of_stack().filter(|_| shared.out.is_of_stack(to.ip()));
        let comes_back = port.map(|port| SocketAddr::new(to.ip(), port));
        outside.flows.lock().insert(to, flow.clone());
        Ok(Mapped { slot, flow, to, header, comes_back, alive, held })
    }
}

impl Slot {
    async fn make(&self) -> Result<ExternalSocket, ConnectError> {
        let is_v4 = self.key.client.is_ipv4();
        let origin = match (self.key.stands_for_loopback, is_v4) {
            (Some(_), true) => Origin::LoopbackV4,
            (Some(_), false) => Origin::LoopbackV6,
            (None, true) => Origin::V4,
            (None, false) => Origin::V6,
        };
        let shared = &self.mappings.shared;
        let config = &shared.config;
        let outlet = Arc::new(self.upstream.associate(&shared.out, origin, config.server_timeout).await?);
        let flows = Arc::<Flows>::default();
        let (living, alive) = watch::channel(());
        let stands_for_loopback = self.key.stands_for_loopback.is_some();
        let reading = read(shared.clone(), outlet.clone(), flows.clone(), stands_for_loopback, living);
        Ok(ExternalSocket { outlet, flows, reader: tokio::spawn(reading), alive })
    }

    fn has_ended(&self) -> bool {
        self.outside.get().is_some_and(|outside| outside.reader.is_finished())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(outside) = self.outside.get() {
            outside.reader.abort();
        }
        let mut slots = self.mappings.lock();
        // Another one may have taken its place.
        if slots.get(&self.key).is_some_and(|slot| slot.strong_count() == 0) {
            slots.remove(&self.key);
        }
    }
}

impl Mapped {
    pub(crate) fn flow(&self) -> Arc<Flow> {
        self.flow.clone()
    }

    /// How much room a datagram needs in front of it.
    pub(crate) fn headroom(&self) -> usize {
        self.header.len()
    }

    /// Sends the datagram behind the [headroom](Self::headroom) of `packet`.
    pub(crate) async fn send(&self, packet: &mut [u8]) -> io::Result<()> {
        let Some(outside) = self.slot.outside.get() else { return Ok(()) };
        if let Some(from) = self.comes_back {
            let other = self.slot.mappings.at_port(self.to.is_ipv4(), self.to.port());
            if let Some(there) = other.as_ref().and_then(|slot| slot.outside.get()) {
                there.flows.deliver(&self.slot.mappings.shared, Some(from), packet, false);
            }
            return Ok(());
        }
        packet[..self.header.len()].copy_from_slice(&self.header);
        outside.outlet.send(packet, self.to).await
    }

    /// Waits until nothing comes back any more.
    pub(crate) async fn end(&mut self) {
        // Nothing is ever sent there.
        while self.alive.changed().await.is_ok() {}
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let Some(outside) = self.slot.outside.get() else { return };
        let mut flows = outside.flows.lock();
        // The client's socket may have begun the same flow again.
        if flows.get(&self.to).is_some_and(|flow| Arc::ptr_eq(flow, &self.flow)) {
            flows.remove(&self.to);
        }
    }
}

impl Flows {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Arc<Flow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, to: SocketAddr) -> Option<Arc<Flow>> {
        self.lock().get(&to).cloned()
    }

    /// The flow by which a datagram of `from` reaches the client, and whom it is shown from, if
    /// that is not whom the client has sent to.
    fn reached(
        &self,
        filtering: Filtering,
        from: SocketAddr,
        stands_for_loopback: bool,
    ) -> Option<(Arc<Flow>, Option<SocketAddr>)> {
        let flows = self.lock();
        if let Some(flow) = flows.get(&from) {
            return Some((flow.clone(), None));
        }
        let of_host = SocketAddr::new(from.ip(), 0)..=SocketAddr::new(from.ip(), u16::MAX);
        let of_host = flows.range(of_host).next();
        let (flow, shown) = match (filtering, of_host) {
            (Filtering::AddressAndPortDependent, _) => return None,
            (_, Some((_, flow))) => (flow, SocketAddr::new(flow.wanted.ip(), from.port())),
            // Others of the loopback have no address that a client could see.
            (Filtering::EndpointIndependent, None) if !stands_for_loopback && can_be_carried(from.ip()) => {
                (flows.first_key_value()?.1, from)
            }
            _ => return None,
        };
        Some((flow.clone(), Some(shown)))
    }
}

impl Flows {
    /// Gives the client a datagram that has come from outside, if the filter lets it.
    fn deliver(&self, shared: &Shared, from: Option<SocketAddr>, datagram: &[u8], stands_for_loopback: bool) {
        let reached = from.and_then(|from| self.reached(shared.config.filtering, from, stands_for_loopback));
        let Some((flow, shown)) = reached else {
            shared.counters.datagrams_filtered.one();
            return;
        };
        flow.deliver(shared, datagram, shown);
    }
}

/// Without scope and flow label.
const fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

/// Gives the client what comes back, until the way is gone.
async fn read(
    shared: Arc<Shared>,
    outlet: Arc<Outlet>,
    flows: Arc<Flows>,
    stands_for_loopback: bool,
    living: watch::Sender<()>,
) {
    let counters = &shared.counters;
    let _open = counters.open_mappings.enter();
    // A longer datagram would not pass the device, and is lost. One byte more tells which those
    // are.
    let mut buffer = vec![0; shared.config.mtu as usize + HEADER];
    while let Ok(inward) = outlet.recv(&mut buffer).await {
        let (at, from) = match inward {
            Inward::Datagram(at, from) => (at, from.map(plain)),
            Inward::Refused(to) => {
                if let Some(flow) = flows.get(plain(to)) {
                    counters.upstream_refused.one();
                    flow.inside.tell_refused();
                }
                continue;
            }
        };
        flows.deliver(&shared, from, &buffer[at], stands_for_loopback);
    }
    drop(living);
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("key", &self.key).finish_non_exhaustive()
    }
}
