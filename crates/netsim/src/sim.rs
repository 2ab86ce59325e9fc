//! The simulation: nodes, links, and the events that move packets between them.

use crate::app::App;
use crate::event::{EventQueue, Order};
use crate::host::{Egress, Host, Slot};
use crate::impair::{Fate, ImpairCx};
use crate::link::{Link, LinkSpec};
use crate::middlebox::{Middlebox, MiddleboxCx, Placed};
use crate::observe::{Nobody, Observer, ObserverId, PacketEvent};
use crate::packet::{Origin, Packet, PacketPool, SuperPacket};
use crate::pattern;
use crate::port::Port;
use crate::queue::{DropReason, Queue, QueueCx};
use crate::rng::SimRng;
use crate::routes::Routes;
use crate::service::Service;
use crate::topology::{LinkId, NodeId};
use crate::traces::Traces;
use crate::view::{Node, View};
use ackline_tcp_core::config::EndpointConfig;
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::wire::TxChecksumMode;
use ackline_tcp_core::{Duration, Endpoint, Instant, TxId};
use hashbrown::HashMap;
use std::any::Any;
use std::net::IpAddr;

/// A change of the network at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Changes the link's service, from the next packet on.
    Service(LinkId, Service),
    /// Changes the delay of packets whose first bit leaves from then on.
    Delay(LinkId, Duration),
    /// The link stops serialising; its queue fills, and routes stay.
    Stall(LinkId),
    /// A stalled link continues.
    Resume(LinkId),
    /// The link goes down: routes avoid it, queued packets wait.
    Down(LinkId),
    /// The link comes up again.
    Up(LinkId),
}

/// Whether hosts compute and verify transport checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// Only if it can matter: if there is a [port](Sim::add_port), an impairment
    /// [corrupts](crate::impair::Impairment::corrupts) packets, or an observer
    /// [keeps](Observer::needs_checksums) their octets. Otherwise no packet can be corrupted.
    #[default]
    Auto,
    /// Always.
    Computed,
    /// Never, so corruption reaches the applications.
    Omitted,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The link has serialised a packet.
    LinkDone(LinkId),
    /// A packet arrives at the far node of the link.
    LinkArrival(LinkId),
    /// The endpoint asked to be woken.
    HostTimer(NodeId),
    /// The middlebox asked to be called.
    MiddleboxTimer(NodeId),
    /// Applications by their index in the simulation.
    AppStart(u32),
    AppTimer(u32, u64),
    Change(usize),
    Sample,
}

/// Identifies an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AppId {
    node: NodeId,
    app: u32,
}

impl AppId {
    /// The host on which it runs.
    #[must_use]
    pub const fn node(self) -> NodeId {
        self.node
    }
}

/// A network of hosts and links in virtual time. Nothing happens outside
/// [`run_until`](Self::run_until), and the same calls with the same seed give the same octets at
/// the same nanoseconds.
#[derive(Debug)]
pub struct Sim {
    seed: u64,
    now: Instant,
    /// The position of the current event.
    current: Order,
    nodes: Vec<Node>,
    /// Applications, in the order in which they were added.
    apps: Vec<AppId>,
    links: Vec<Link>,
    /// Which links are down.
    down: Vec<bool>,
    routes: Routes,
    routes_stale: bool,
    node_of: HashMap<IpAddr, NodeId>,
    /// The node of every other address.
    default_node: Option<NodeId>,
    events: EventQueue<Event>,
    changes: Vec<Change>,
    observers: Vec<Box<dyn Observer>>,
    /// Observers or links were added or removed since the last check of who watches what.
    watched_stale: bool,
    checksums: Checksums,
    /// Checksums are computed, because the octets are looked at.
    computes: bool,
    /// Every packet has octets, and every connection keeps its data.
    wire: bool,
    sample_every: Option<Duration>,
    pool: PacketPool,
    packets: u64,
    processed: u64,
    unroutable: u64,
    dropped: Vec<(Packet, DropReason)>,
    /// Packets forwarded by a middlebox.
    passed: Vec<Packet>,
}

/// Streams of random numbers, by who draws from them.
const STREAM_ENDPOINT: u64 = 1 << 32;
const STREAM_LINK: u64 = 2 << 32;
const STREAM_APP: u64 = 3 << 32;

impl Sim {
    /// An empty network. All random numbers derive from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            current: Order { at: Instant::ZERO, serial: 0 },
            nodes: vec![],
            apps: vec![],
            links: vec![],
            down: vec![],
            routes: Routes::default(),
            routes_stale: true,
            node_of: HashMap::new(),
            default_node: None,
            events: EventQueue::default(),
            changes: vec![],
            observers: vec![],
            watched_stale: true,
            checksums: Checksums::default(),
            computes: false,
            wire: false,
            sample_every: None,
            pool: PacketPool::default(),
            packets: 0,
            processed: 0,
            unroutable: 0,
            dropped: vec![],
            passed: vec![],
        }
    }

    /// Adds a router.
    pub fn add_router(&mut self) -> NodeId {
        self.add_node(Node::Router)
    }

    /// Adds a host whose endpoint has this configuration and scheduler. `config.addresses` are the
    /// host's addresses.
    pub fn add_host(
        &mut self,
        config: EndpointConfig,
        scheduler: Box<dyn EgressScheduler>,
        egress: Egress,
    ) -> NodeId {
        let addresses = config.addresses.clone();
        let seed = SimRng::new(self.seed, STREAM_ENDPOINT + self.nodes.len() as u64).seed();
        let mut endpoint = Endpoint::new(config, scheduler, seed);
        endpoint.set_pattern((!self.wire).then(pattern::pattern));
        let host = Host::new(endpoint, egress);
        let node = self.add_node(Node::Host(Box::new(host)));
        self.node_of.extend(addresses.into_iter().map(|address| (address, node)));
        node
    }

    /// Adds a middlebox. It forwards along routes, like a router.
    pub fn add_middlebox(&mut self, middlebox: impl Middlebox) -> NodeId {
        let timer_at = Instant::FAR_FUTURE;
        self.add_node(Node::Middlebox(Box::new(Placed { middlebox: Box::new(middlebox), timer_at })))
    }

    /// Adds a port: a node for what is outside. Packets enter there by [`inject`](Self::inject).
    /// Those to `addresses` leave the simulation there, and wait, in any number, until
    /// [`arrived`](Self::arrived) takes them.
    pub fn add_port(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> NodeId {
        let node = self.add_node(Node::Port(Port::default()));
        self.node_of.extend(addresses.into_iter().map(|address| (address, node)));
        node
    }

    /// True if `node` is a port.
    #[must_use]
    pub fn is_port(&self, node: NodeId) -> bool {
        matches!(self.nodes.get(node.index()), Some(Node::Port(_)))
    }

    /// Sends packets to addresses of no node to `node`; by default they are
    /// [unroutable](Self::unroutable).
    pub const fn set_default_node(&mut self, node: NodeId) {
        self.default_node = Some(node);
    }

    fn add_node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.routes_stale = true;
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        let rng = SimRng::new(self.seed, STREAM_LINK + self.links.len() as u64);
        let mut link = Link::new(from, to, spec, rng);
        link.fed = self.host(from).is_some_and(|host| host.egress == Egress::Fed);
        self.links.push(link);
        self.down.push(false);
        self.routes_stale = true;
        self.watched_stale = true;
        let id = LinkId(self.links.len() as u32 - 1);
        if let Some(Node::Host(host)) = self.nodes.get_mut(from.index()) {
            host.links.push(id);
        }
        id
    }

    /// Adds an application that starts at `start`.
    ///
    /// # Panics
    /// If `node` is not a host.
    pub fn add_app(&mut self, node: NodeId, start: Instant, app: impl App) -> AppId {
        let seed = self.seed;
        let Node::Host(host) = &mut self.nodes[node.index()] else {
            panic!("{node:?} is a router, and applications run on hosts");
        };
        let number = host.apps.len() as u32;
        let rng = SimRng::new(seed, STREAM_APP + (u64::from(node.0) << 16) + u64::from(number));
        let id = AppId { node, app: number };
        let place = self.apps.len() as u32;
        host.apps.push(Slot { app: Box::new(app), rng, place });
        self.apps.push(id);
        self.events.schedule(start, Event::AppStart(place));
        id
    }

    /// Changes the network at `at`.
    pub fn add_change(&mut self, at: Instant, change: Change) {
        self.changes.push(change);
        self.events.schedule(at, Event::Change(self.changes.len() - 1));
    }

    /// Adds an observer.
    pub fn add_observer(&mut self, observer: impl Observer) -> ObserverId {
        self.observers.push(Box::new(observer));
        self.watched_stale = true;
        ObserverId(self.observers.len() - 1)
    }

    /// The observer, if it is a `T`.
    #[must_use]
    pub fn observer<T: Observer>(&self, id: ObserverId) -> Option<&T> {
        let observer: &dyn Any = self.observers.get(id.0)?.as_ref();
        observer.downcast_ref()
    }

    /// Removes an observer and returns it with its data; `None` if it is not a `T`, or was already
    /// removed.
    pub fn take_observer<T: Observer>(&mut self, id: ObserverId) -> Option<Box<T>> {
        self.observer::<T>(id)?;
        self.watched_stale = true;
        let place = self.observers.get_mut(id.0)?;
        let nobody: Box<dyn Observer> = Box::new(Nobody);
        let observer = core::mem::replace(place, nobody) as Box<dyn Any>;
        observer.downcast().ok()
    }

    /// Sets whether hosts compute and verify transport checksums; the default is
    /// [`Checksums::Auto`].
    pub const fn set_checksums(&mut self, checksums: Checksums) {
        self.checksums = checksums;
    }

    /// Sets whether every packet has octets from its sender to its receiver, and every connection
    /// keeps its data. By default only packets that are captured, damaged or leave at a
    /// [port](Self::add_port) have octets, and connections keep the length of data that is of the
    /// [pattern](crate::pattern). The results are the same, at a higher cost. Applies to
    /// connections made from now on, and to packets from the next [run](Self::run_until) on.
    pub fn set_wire(&mut self, wire: bool) {
        self.wire = wire;
        for node in &mut self.nodes {
            if let Node::Host(host) = node {
                host.endpoint.set_pattern((!wire).then(pattern::pattern));
            }
        }
    }

    /// Calls [`Observer::sample`] every `interval`, starting at `first`.
    pub fn sample_every(&mut self, first: Instant, interval: Duration) {
        self.sample_every = Some(interval);
        self.events.schedule(first, Event::Sample);
    }

    /// The time up to which the simulation has run.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Number of packets sent by hosts.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Number of events processed.
    #[must_use]
    pub const fn processed(&self) -> u64 {
        self.processed
    }

    /// Number of packets without a route.
    #[must_use]
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// The application, if it is a `T`.
    #[must_use]
    pub fn app<T: App>(&self, id: AppId) -> Option<&T> {
        let app: &dyn Any = self.host(id.node)?.apps.get(id.app as usize)?.app.as_ref();
        app.downcast_ref()
    }

    /// The application, of whatever type.
    #[must_use]
    pub fn any_app(&self, id: AppId) -> Option<&dyn App> {
        Some(self.host(id.node)?.apps.get(id.app as usize)?.app.as_ref())
    }

    /// The middlebox, if it is a `T`.
    #[must_use]
    pub fn middlebox<T: Middlebox>(&self, node: NodeId) -> Option<&T> {
        let Node::Middlebox(placed) = self.nodes.get(node.index())? else { return None };
        let middlebox: &dyn Any = placed.middlebox.as_ref();
        middlebox.downcast_ref()
    }

    /// A view for inspection from outside.
    pub fn view(&mut self) -> View<'_> {
        View { now: self.now, nodes: &mut self.nodes, links: &self.links }
    }

    /// A packet enters at a port, now. Its transport checksum is complete. What is not an IP packet
    /// is [unroutable](Self::unroutable).
    ///
    /// # Panics
    /// If `port` is not a port.
    pub fn inject(&mut self, port: NodeId, bytes: &[u8]) {
        self.inject_parts(port, [bytes, &[]], None);
    }

    /// As [`inject`](Self::inject), of a packet in two parts, of which the first one has all
    /// headers. A super-packet passes the network as one packet: it takes a queue's place of one,
    /// the time of all packets for which it stands, and one fate.
    ///
    /// # Panics
    /// If `port` is not a port.
    pub fn inject_parts(&mut self, port: NodeId, parts: [&[u8]; 2], super_packet: Option<SuperPacket>) {
        let Some(Node::Port(state)) = self.nodes.get_mut(port.index()) else {
            panic!("{port:?} is not a port");
        };
        let class = state.class(parts);
        self.update_routes();
        // What is due by now has happened before.
        self.current = self.events.reserve(self.now);
        let origin = Origin { conn: None, class, reason: None, tx: TxId(self.packets) };
        let mut packet = self.pool.make(self.packets, self.now, origin, parts);
        self.packets += 1;
        let octets = packet.len();
        let headers = super_packet.map_or(0, |one| (one.packets(octets) - 1) * one.header_len);
        packet.price = u32::try_from(octets + headers).unwrap_or(u32::MAX);
        packet.super_packet = super_packet;
        packet.from = Some(port);
        self.route(port, packet);
    }

    /// Takes the packet that arrived first of those that wait at a port: `take` is given the time
    /// of its arrival, and the packet. `None` if none waits there.
    pub fn arrived<R>(&mut self, port: NodeId, take: impl FnOnce(Instant, &Packet) -> R) -> Option<R> {
        let Some(Node::Port(port)) = self.nodes.get_mut(port.index()) else { return None };
        let (at, packet) = port.arrived.pop_front()?;
        let taken = take(at, &packet);
        self.pool.give(packet);
        Some(taken)
    }

    /// The links on the way from one node to another, in order; none if there is no way.
    pub fn way(&mut self, from: NodeId, to: NodeId) -> Vec<LinkId> {
        self.update_routes();
        let (mut at, mut way) = (from, vec![]);
        // No way comes to a link twice.
        while at != to && way.len() < self.links.len() {
            let Some(link) = self.routes.next(at, to) else { return vec![] };
            way.push(link);
            at = self.links[link.index()].to;
        }
        way
    }

    /// True if a link corrupts packets: whoever receives one must then verify its checksum.
    #[must_use]
    pub fn corrupts(&self) -> bool {
        let mut impairments = self.links.iter().flat_map(|link| &link.spec.impairments);
        impairments.any(|impairment| impairment.corrupts())
    }

    /// When the next event is due; `None` if nothing will happen.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// Runs all events up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.update_routes();
        self.update_checksums();
        self.update_tracers();
        self.update_watched();
        while let Some((order, event)) = self.events.pop_by(end) {
            debug_assert!(order.at >= self.now, "time goes forward");
            (self.now, self.current) = (order.at, order);
            self.processed += 1;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::LinkDone(link) => self.link_done(link),
            Event::LinkArrival(link) => self.link_arrival(link),
            Event::HostTimer(node) => self.host_timer(node),
            Event::MiddleboxTimer(node) => self.middlebox_timer(node),
            Event::AppStart(app) => self.call_app(app, |app, cx| app.start(cx)),
            Event::AppTimer(app, number) => self.call_app(app, |app, cx| app.timer(cx, number)),
            Event::Change(index) => self.change(index),
            Event::Sample => self.sample(),
        }
    }

    fn host(&self, node: NodeId) -> Option<&Host> {
        match self.nodes.get(node.index())? {
            Node::Host(host) => Some(host),
            Node::Router | Node::Middlebox(_) | Node::Port(_) => None,
        }
    }

    fn call_app(&mut self, app: u32, f: impl FnOnce(&mut dyn App, &mut crate::app::AppCx<'_>)) {
        let AppId { node, app } = self.apps[app as usize];
        if let Some(Node::Host(host)) = self.nodes.get_mut(node.index()) {
            host.call(self.now, app, f);
        }
        self.settle(node);
    }

    fn host_timer(&mut self, node: NodeId) {
        let now = self.now;
        let Some(Node::Host(host)) = self.nodes.get_mut(node.index()) else { return };
        if host.timer_at != now {
            // It was moved; another event is scheduled for it.
            return;
        }
        host.timer_at = Instant::FAR_FUTURE;
        match host.endpoint.timeout_at() {
            Some(at) if at <= now => {
                host.endpoint.handle_timeout(now);
                tell_traces(&mut self.observers, now, node, host);
                self.settle(node);
            }
            // The deadline was moved, and nothing else happened.
            Some(at) => {
                host.timer_at = at;
                self.events.schedule(at, Event::HostTimer(node));
            }
            None => {}
        }
    }

    fn middlebox_timer(&mut self, node: NodeId) {
        let now = self.now;
        let Some(Node::Middlebox(placed)) = self.nodes.get_mut(node.index()) else { return };
        if placed.timer_at == now {
            placed.timer_at = Instant::FAR_FUTURE;
            self.call_middlebox(node, |middlebox, cx| middlebox.timeout(cx));
        }
    }

    /// Calls a middlebox, and forwards its packets.
    fn call_middlebox(&mut self, node: NodeId, call: impl FnOnce(&mut dyn Middlebox, &mut MiddleboxCx<'_>)) {
        let now = self.now;
        let Some(Node::Middlebox(placed)) = self.nodes.get_mut(node.index()) else { return };
        let mut cx = MiddleboxCx { now, seed: self.seed, out: &mut self.passed, dropped: &mut self.dropped };
        call(placed.middlebox.as_mut(), &mut cx);
        if let Some(at) = placed.middlebox.next_timeout().filter(|at| *at < placed.timer_at) {
            placed.timer_at = at.max(now);
            self.events.schedule(placed.timer_at, Event::MiddleboxTimer(node));
        }
        let mut dropped = core::mem::take(&mut self.dropped);
        for (packet, reason) in dropped.drain(..) {
            match packet.to.and_then(|to| self.routes.next(node, to)) {
                Some(link) => {
                    let stats = &mut self.links[link.index()].stats;
                    stats.offered += 1;
                    stats.count_drop(reason);
                    notify(&mut self.observers, now, link, PacketEvent::Dropped(reason), &packet);
                }
                None => self.unroutable += 1,
            }
            self.pool.give(packet);
        }
        self.dropped = dropped;
        let mut passed = core::mem::take(&mut self.passed);
        for packet in passed.drain(..) {
            self.pass_on(node, packet);
        }
        self.passed = passed;
    }

    /// A router or middlebox forwards a packet, if its hop limit allows it.
    fn pass_on(&mut self, node: NodeId, mut packet: Packet) {
        // If octets are recorded or corrupted, the packet's own hop limit counts.
        let passes = if self.computes { packet.hop() } else { packet.hop_unseen() };
        if passes {
            self.route(node, packet);
        } else {
            self.unroutable += 1;
            self.pool.give(packet);
        }
    }

    /// After an input to the host: applications and TCP react, packets go to their links, timers
    /// are set.
    fn settle(&mut self, node: NodeId) {
        let now = self.now;
        let Some(Node::Host(host)) = self.nodes.get_mut(node.index()) else { return };
        let room = match host.egress {
            Egress::Queued => usize::MAX,
            Egress::Fed => {
                let mut links = host.links.iter().map(|link| &self.links[link.index()]);
                usize::from(links.any(|link| link.in_service.is_none() && !link.stopped))
            }
        };
        host.settle(now, room, &mut self.pool, &mut self.packets);
        tell_traces(&mut self.observers, now, node, host);
        for (at, app, number) in host.timers.drain(..) {
            let place = host.apps[app as usize].place;
            self.events.schedule(at.max(now), Event::AppTimer(place, number));
        }
        let timeout = host.endpoint.timeout_at();
        debug_assert_eq!(timeout, host.endpoint.poll_timeout().map(|wakeup| wakeup.at), "one deadline");
        if let Some(at) = timeout {
            let at = at.max(now);
            // A later deadline waits for the scheduled event, which then finds the new deadline.
            if at < host.timer_at {
                host.timer_at = at;
                self.events.schedule(at, Event::HostTimer(node));
            }
        }
        if host.outbox.is_empty() {
            return;
        }
        let mut outbox = core::mem::take(&mut host.outbox);
        for mut packet in outbox.drain(..) {
            packet.from = Some(node);
            self.route(node, packet);
        }
        if let Some(Node::Host(host)) = self.nodes.get_mut(node.index()) {
            host.outbox = outbox;
        }
    }

    fn route(&mut self, at: NodeId, mut packet: Packet) {
        if packet.to.is_none() {
            packet.to = packet
                .destination()
                .and_then(|address| self.node_of.get(&address).copied().or(self.default_node));
        }
        match packet.to.and_then(|to| self.routes.next(at, to)) {
            Some(link) => self.offer(link, packet),
            None => {
                self.unroutable += 1;
                self.pool.give(packet);
            }
        }
    }

    fn offer(&mut self, id: LinkId, mut packet: Packet) {
        let now = self.now;
        let link = &mut self.links[id.index()];
        link.stats.offered += 1;
        (packet.queued_at, packet.l4s_queue) = (now, false);
        notify(&mut self.observers, now, id, PacketEvent::Offered, &packet);
        if link.fed {
            self.serve(id, packet);
            return;
        }
        if link.waiting > 0 || link.stopped || link.is_busy(self.current) {
            with_queue(link, now, &mut self.dropped, |queue, cx| queue.enqueue(cx, packet));
            self.after_queue(id);
            self.serve_next(id);
            return;
        }
        let next = with_queue(link, now, &mut self.dropped, |queue, cx| queue.pass(cx, packet));
        self.after_queue(id);
        if let Some(packet) = next {
            self.serve(id, packet);
        }
    }

    /// Removes packets dropped by the queue from the simulation.
    #[inline]
    fn after_queue(&mut self, id: LinkId) {
        if !self.dropped.is_empty() {
            self.remove_dropped(id);
        }
    }

    fn remove_dropped(&mut self, id: LinkId) {
        for (packet, reason) in self.dropped.drain(..) {
            self.links[id.index()].stats.count_drop(reason);
            notify(&mut self.observers, self.now, id, PacketEvent::Dropped(reason), &packet);
            self.pool.give(packet);
        }
    }

    /// An idle link takes the next packet of its queue.
    fn serve_next(&mut self, id: LinkId) {
        let link = &mut self.links[id.index()];
        if link.stopped || link.waiting == 0 {
            return;
        }
        if link.is_busy(self.current) {
            if !core::mem::replace(&mut link.done_scheduled, true) {
                self.events.schedule_in_order(link.done, Event::LinkDone(id));
            }
            return;
        }
        let next = with_queue(link, self.now, &mut self.dropped, |queue, cx| queue.dequeue(cx));
        self.after_queue(id);
        if let Some(packet) = next {
            self.serve(id, packet);
        }
    }

    #[inline]
    fn serve(&mut self, id: LinkId, packet: Packet) {
        let link = &mut self.links[id.index()];
        let done = self.now + link.time_for(self.now, &packet);
        link.stats.busy = link.stats.busy.saturating_add(done.since(self.now));
        link.delay = link.spec.delay;
        link.done = self.events.reserve(done);
        notify(&mut self.observers, self.now, id, PacketEvent::Started, &packet);
        let is_plain = link.is_plain();
        let arrives = is_plain.then(|| self.events.reserve(link.arrival(done, Duration::ZERO, false)));
        // If the departure of the last bit is not watched and nothing waits for it, no event is
        // needed.
        link.done_scheduled = !is_plain || link.watched || link.waiting > 0;
        if link.done_scheduled {
            self.events.schedule_in_order(link.done, Event::LinkDone(id));
        }
        match arrives.filter(|_| !link.watched) {
            Some(order) => take_off(link, &mut self.events, id, order, packet),
            None => (link.arrives, link.in_service) = (arrives, Some(packet)),
        }
    }

    fn link_done(&mut self, id: LinkId) {
        let now = self.now;
        let link = &mut self.links[id.index()];
        link.done_scheduled = false;
        let Some(mut packet) = link.in_service.take() else {
            self.serve_next(id);
            return;
        };
        notify(&mut self.observers, now, id, PacketEvent::Left, &packet);
        if let Some(order) = link.arrives.take() {
            take_off(link, &mut self.events, id, order, packet);
            self.serve_next(id);
            return;
        }
        let (tx, from, fed) = (packet.origin.tx, link.from, link.fed);

        let mut fate = Fate::default();
        for impairment in &mut link.spec.impairments {
            impairment.apply(&mut ImpairCx { now, rng: &mut link.rng }, &mut packet, &mut fate);
            if fate.lost {
                break;
            }
        }
        if fate.lost {
            link.stats.impaired += 1;
            notify(&mut self.observers, now, id, PacketEvent::Dropped(DropReason::Impairment), &packet);
            self.pool.give(packet);
        } else {
            for _ in 0..fate.copies {
                link.stats.duplicated += 1;
                let copy = packet.clone();
                fly(link, &mut self.events, now, id, fate, copy);
            }
            fly(link, &mut self.events, now, id, fate, packet);
        }

        if fed {
            if let Some(Node::Host(host)) = self.nodes.get_mut(from.index()) {
                host.departed(now, tx);
            }
            self.settle(from);
        } else {
            self.serve_next(id);
        }
    }

    fn link_arrival(&mut self, id: LinkId) {
        let now = self.now;
        let link = &mut self.links[id.index()];
        let Some(packet) = link.land(now) else { return };
        if let Some(order) = link.next_arrival() {
            self.events.schedule_in_order(order, Event::LinkArrival(id));
        }
        link.stats.delivered += 1;
        link.stats.delivered_bytes += link.cost(&packet);
        let at = link.to;
        let node = &mut self.nodes[at.index()];
        if let Node::Host(host) = node {
            host.ingest(now, &packet);
            tell_traces(&mut self.observers, now, at, host);
        }
        notify(&mut self.observers, now, id, PacketEvent::Delivered, &packet);
        match node {
            Node::Host(_) => {
                self.pool.give(packet);
                self.settle(at);
            }
            Node::Router => self.pass_on(at, packet),
            Node::Port(port) => port.arrived.push_back((now, packet)),
            Node::Middlebox(_) => self.call_middlebox(at, |middlebox, cx| middlebox.arrive(cx, packet)),
        }
    }

    fn change(&mut self, index: usize) {
        let (id, restarted) = match self.changes[index].clone() {
            Change::Service(id, service) => {
                self.links[id.index()].set_service(service);
                (id, false)
            }
            Change::Delay(id, delay) => {
                self.links[id.index()].spec.delay = delay;
                (id, false)
            }
            Change::Stall(id) | Change::Down(id) => {
                self.links[id.index()].stopped = true;
                (id, false)
            }
            Change::Resume(id) | Change::Up(id) => {
                self.links[id.index()].stopped = false;
                (id, true)
            }
        };
        if let Change::Down(_) | Change::Up(_) = self.changes[index] {
            self.down[id.index()] = !restarted;
            self.routes_stale = true;
            self.update_routes();
        }
        if restarted {
            let (from, fed) = (self.links[id.index()].from, self.links[id.index()].fed);
            if fed {
                self.settle(from);
            } else {
                self.serve_next(id);
            }
        }
    }

    fn update_routes(&mut self) {
        if !core::mem::take(&mut self.routes_stale) {
            return;
        }
        let ends: Vec<_> = self
            .links
            .iter()
            .zip(&self.down)
            .map(|(link, down)| (!down).then_some((link.from, link.to)))
            .collect();
        let routers: Vec<_> =
            self.nodes.iter().map(|node| !matches!(node, Node::Host(_) | Node::Port(_))).collect();
        self.routes = Routes::compute(&routers, &ends);
    }

    fn update_watched(&mut self) {
        if !core::mem::take(&mut self.watched_stale) {
            return;
        }
        for (number, link) in self.links.iter_mut().enumerate() {
            let id = LinkId(number as u32);
            link.watched = self.observers.iter().any(|observer| observer.watches_departures(id));
        }
    }

    fn update_checksums(&mut self) {
        let compute = match self.checksums {
            Checksums::Computed => true,
            Checksums::Omitted => false,
            Checksums::Auto => {
                let ports = self.nodes.iter().any(|node| matches!(node, Node::Port(_)));
                ports || self.corrupts() || self.observers.iter().any(|observer| observer.needs_checksums())
            }
        };
        self.computes = compute;
        let mode = if compute { TxChecksumMode::Complete } else { TxChecksumMode::Omit };
        for node in &mut self.nodes {
            if let Node::Host(host) = node {
                host.endpoint.set_tx_checksum(mode);
                host.takes_fields = !self.wire && !compute;
            }
        }
    }

    fn update_tracers(&mut self) {
        let wanted = self.observers.iter().any(|observer| observer.needs_traces());
        for node in &mut self.nodes {
            let Node::Host(host) = node else { continue };
            if wanted && host.traces.is_none() {
                let traces = Traces::default();
                host.endpoint.set_tracer(Some(Box::new(traces.clone())));
                host.traces = Some(traces);
            } else if !wanted && host.traces.take().is_some() {
                host.endpoint.set_tracer(None);
            }
        }
    }

    fn sample(&mut self) {
        let mut view = View { now: self.now, nodes: &mut self.nodes, links: &self.links };
        for observer in &mut self.observers {
            observer.sample(self.now, &mut view);
        }
        if let Some(interval) = self.sample_every {
            self.events.schedule(self.now + interval, Event::Sample);
        }
    }
}

fn notify(
    observers: &mut [Box<dyn Observer>],
    now: Instant,
    link: LinkId,
    event: PacketEvent,
    packet: &Packet,
) {
    for observer in observers {
        observer.packet(now, link, event, packet);
    }
}

/// Passes trace events of the host's connections to the observers.
#[inline]
fn tell_traces(observers: &mut [Box<dyn Observer>], now: Instant, node: NodeId, host: &Host) {
    if let Some(traces) = &host.traces {
        tell(observers, now, node, traces);
    }
}

fn tell(observers: &mut [Box<dyn Observer>], now: Instant, node: NodeId, traces: &Traces) {
    for (conn, event) in traces.take() {
        for observer in &mut *observers {
            observer.trace(now, node, conn, &event);
        }
    }
}

#[inline(always)]
fn with_queue<R>(
    link: &mut Link,
    now: Instant,
    dropped: &mut Vec<(Packet, DropReason)>,
    f: impl FnOnce(&mut dyn Queue, &mut QueueCx<'_>) -> R,
) -> R {
    let mut cx = QueueCx {
        now,
        rate: link.spec.service.rate(),
        framing: link.spec.framing,
        rng: &mut link.rng,
        dropped,
        marked: &mut link.stats.marked,
    };
    let result = f(link.spec.queue.as_mut(), &mut cx);
    link.waiting = link.spec.queue.packets();
    result
}

/// Starts the propagation of a packet that arrives at `order`.
#[inline]
fn take_off(link: &mut Link, events: &mut EventQueue<Event>, id: LinkId, order: Order, packet: Packet) {
    if link.fly(order, packet) {
        events.schedule_in_order(order, Event::LinkArrival(id));
    }
}

/// The same for one that an impairment has let pass `now`.
fn fly(
    link: &mut Link,
    events: &mut EventQueue<Event>,
    now: Instant,
    id: LinkId,
    fate: Fate,
    packet: Packet,
) {
    let order = events.reserve(link.arrival(now, fate.delay, fate.reorders));
    take_off(link, events, id, order, packet);
}
