//! Many connections on one host: the type that a driver drives.
//!
//! [`Endpoint`] is what a driver calls. Its parts are below: connections in `table`, the way out in
//! `egress`, then `ip`, `opens` and `udp`. Here is what concerns several of them.
//!
//! | file | holds |
//! |---|---|
//! | `sums.rs` | deadlines, memory and numbers of the parts in sum |
//! | `senders.rs` | whose packets without a connection the egress sends |
//! | `ingest.rs`, `batch.rs` | received packets: whom they are for |
//! | `settle.rs` | what follows an event: notices, timers, and the end of connections |
//! | `memory.rs` | the memory budget: what is charged, and who goes if it is used up |
//! | `shard.rs` | one endpoint of several of a host |
//! | `mtu.rs` | the MTU of the device has changed |
//! | `handle.rs`, `settings.rs` | the application's side of a connection, and settings it changes at run time |
//!
//! A packet or a timer costs O(1), whatever the number of connections: only [`Endpoint::unlisten`]
//! walks over all of them.

mod batch;
mod handle;
mod ingest;
mod memory;
mod mtu;
mod senders;
mod settings;
mod settle;
mod shard;
mod sums;

pub use crate::ip::RawPackets;
pub use crate::opens::{IncomingSyn, IncomingSyns, Refusal, SynEvent, SynId};
pub use crate::share::Ingested;
pub use crate::udp::{Datagrams, UdpEvent, UdpReceived, UdpStats};
pub use handle::Conn;
pub use shard::Host;

use crate::config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
use crate::conn::{Connection, Notices};
use crate::counters::Counters;
use crate::egress::{Egress, trace_blocked};
use crate::error::{ConnError, ConnectError, ListenError};
use crate::events::{Event, Tracer, Wakeup};
use crate::id::{ConnId, ListenerId, TxId};
use crate::ip::Ip;
use crate::opens::{Below, Opens};
use crate::packet::{TxBudget, TxPacket, TxReport};
use crate::pattern::Pattern;
use crate::policy::sched::Scope;
use crate::policy::{EgressScheduler, Metric, Metrics};
use crate::queueing::EgressStats;
use crate::share::{Context, Cx, Keys};
use crate::state::State;
use crate::table::{Flags, Table};
use crate::time::Instant;
use crate::udp::Udp;
use crate::wire::{IpInfo, MIN_MTU, RxPacket, TcpSegment, TxChecksumMode};
use alloc::boxed::Box;
use alloc::sync::Arc;
use memory::Hand;
use senders::Senders;
use shard::Shard;

/// A host's TCP, with all its connections, listeners and timers, and its UDP.
///
/// **Give inputs, all stamped with the same instant; then drain [`transmit`](Self::transmit), then
/// [`poll_event`](Self::poll_event); then sleep until [`poll_timeout`](Self::poll_timeout) or the
/// next input.**
#[derive(Debug)]
pub struct Endpoint {
    context: Context,
    owners: Owners,
}

/// The parts of an endpoint. Each call enters them with a [`Cx`], so that settings, counters and
/// budget are lent to whoever handles the call.
#[derive(Debug)]
struct Owners {
    table: Table,
    egress: Egress,
    ip: Ip,
    opens: Opens,
    udp: Udp,
    /// Present if it is one of several endpoints of its host.
    shard: Option<Box<Shard>>,
    /// Connection to look at next if memory is short.
    hand: Hand,
    /// Other endpoints of the host have to make room.
    calls_others: bool,
    /// When they may be asked again.
    next_call: Instant,
    /// Bytes that wait for this endpoint outside of it.
    waiting: usize,
}

/// No IP packet is longer: its length has 16 bits.
const MAX_PACKET: u32 = 65_535;

impl Endpoint {
    /// An endpoint without connections. `seed` feeds initial sequence numbers, ports and hashes: it
    /// must be random if peers are not trusted, and fixed if a run must be repeatable.
    #[must_use]
    pub fn new(config: EndpointConfig, scheduler: Box<dyn EgressScheduler>, seed: [u8; 32]) -> Self {
        let mut config = config;
        config.mtu = config.mtu.clamp(MIN_MTU, MAX_PACKET);
        config.max_super_packet = config.max_super_packet.min(MAX_PACKET);
        let owners = Owners::new(&config, scheduler, &Keys::from_seed(seed));
        Self { context: Context::new(config), owners }
    }

    /// A call at `now` enters the endpoint.
    fn enter(&mut self, now: Instant) -> (&mut Owners, Cx<'_>) {
        (&mut self.owners, self.context.at(now))
    }

    /// UDP sockets and flows.
    pub const fn udp(&mut self) -> Datagrams<'_> {
        let Owners { udp, ip, egress, table, .. } = &mut self.owners;
        Datagrams { udp, ip, egress, ports: &mut table.ports, context: &mut self.context }
    }

    /// The SYNs of listeners that [hold](AcceptConfig::hold_syns) them.
    pub const fn syns(&mut self) -> IncomingSyns<'_> {
        let (opens, below) = self.owners.opening();
        IncomingSyns { opens, below, context: &mut self.context }
    }

    /// The packets that the stack does not use itself, and those that the program sends.
    pub const fn packets(&mut self) -> RawPackets<'_> {
        RawPackets::new(&mut self.owners.ip, &mut self.owners.egress, &mut self.context)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.context.config
    }

    /// Sets who computes transport checksums, from the next packet on.
    pub fn set_tx_checksum(&mut self, mode: TxChecksumMode) {
        self.context.config.tx_checksum = mode;
    }

    /// Says what the streams of connections made from now on consist of, in both directions: for
    /// simulations. A connection keeps the length of its data instead of the data for as long as
    /// what it is given is exactly that, and behaves in every respect as if it kept them,
    /// [`Info::memory`](crate::info::Info::memory) included. Octets that are not the pattern's are
    /// stored, and so is what a connection receives once a packet brought it 16 KiB or more.
    pub fn set_pattern(&mut self, pattern: Option<Pattern>) {
        self.owners.table.pattern = pattern;
    }

    /// Starts listening. Port 0 picks a free [ephemeral port](EndpointConfig::ephemeral_ports),
    /// which [`listens_on`](Self::listens_on) returns.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn listen(
        &mut self,
        now: Instant,
        on: ListenOn,
        accept: AcceptConfig,
    ) -> Result<ListenerId, ListenError> {
        let (owners, cx) = self.enter(now);
        if let ListenOn::Address(address) = on
            && !address.ip().is_unspecified()
            && !cx.is_local(address.ip())
        {
            return Err(ListenError::NotLocal);
        }
        let on = owners.opens.with_port(&mut owners.table, on)?;
        owners.opens.listeners.add(on, accept)
    }

    /// The address and port of a listener, with the port chosen for port 0; `None` if it is gone.
    #[must_use]
    pub fn listens_on(&self, listener: ListenerId) -> Option<ListenOn> {
        self.owners.opens.listeners.place_of(listener)
    }

    /// The settings of a listener; changes apply to connections accepted from now on. `None` if it
    /// is gone.
    pub fn accept_config(&mut self, listener: ListenerId) -> Option<&mut AcceptConfig> {
        self.owners.opens.listeners.accept_config(listener)
    }

    /// Stops listening. Resets connections that the application has not accepted yet, and refuses
    /// held SYNs.
    pub fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        let (owners, mut cx) = self.enter(now);
        let Some(number) = owners.opens.listeners.remove(listener) else { return };
        let (opens, mut below) = owners.opening();
        opens.reset_half_open(below.egress, &mut cx, number);
        opens.reset_held_syns(&mut below, &mut cx, number);
        for index in owners.table.slots.indices_where(|slot| slot.listener() == Some(number)) {
            let id = owners.table.slots.id(index);
            let Some(slot) = owners.table.slots.slot_mut(index) else { continue };
            slot.take_listener();
            slot.notices = Notices::default();
            slot.flags.set(Flags::RELEASED);
            if let Some(conn) = slot.conn.as_deref_mut() {
                conn.abort(&mut cx.conn(id), ConnError::Aborted);
            }
            owners.touch(&mut cx, index);
        }
    }

    /// Opens a connection. With [`ConnConfig::fast_open`], what is written before the next
    /// [`transmit`](Self::transmit) goes with the SYN, if the server has given this host a cookie
    /// before.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        to: Target,
        config: Arc<ConnConfig>,
    ) -> Result<ConnId, ConnectError> {
        let (owners, mut cx) = self.enter(now);
        // Connections that have ended free their four-tuples.
        owners.settle(&mut cx);
        let Owners { table, egress, ip, opens, shard, .. } = owners;
        let shard = shard.as_deref();
        let owns = |port| shard.is_none_or(|shard| shard.owns(to.remote, port));
        let mut below = Below { table, egress, ip };
        opens.connect(&mut below, &mut cx, &to, config, shard.map_or(1, Shard::dilution), owns)
    }

    /// Processes one IP packet, or one super-packet, from the device.
    pub fn ingest(&mut self, now: Instant, packet: RxPacket<'_>) -> Ingested {
        let (owners, mut cx) = self.enter(now);
        owners.take_packet(&mut cx, &packet)
    }

    /// Processes a segment whose headers are fields already, as if
    /// [`wire::parse`](crate::wire::parse) had just made them of a packet: from another endpoint of
    /// this process that [has not made octets of them](TxBudget::taking_fields). It must be no SYN,
    /// because fast open options are read from the octets.
    pub fn ingest_segment(&mut self, now: Instant, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        let (owners, mut cx) = self.enter(now);
        owners.take_fields(&mut cx, ip, segment)
    }

    /// Processes packets that arrived together, in their order: as [`ingest`](Self::ingest) for
    /// each, but segments of one connection that follow each other, and bring nothing but the data
    /// that is expected next, are one arrival. What the application, the peer and an ACK policy see
    /// is the same, unless the policy [agrees](crate::policy::AckPolicy::takes_runs) to be told of
    /// such a run in one call. With a [tracer](Self::set_tracer) nothing is merged.
    pub fn ingest_batch(&mut self, now: Instant, packets: &[RxPacket<'_>]) {
        let (owners, mut cx) = self.enter(now);
        owners.take_batch(&mut cx, packets);
    }

    /// Handles every deadline up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let (owners, mut cx) = self.enter(now);
        owners.serve_timers(&mut cx);
    }

    /// The last bit of a packet has left. Only for drivers that report departures
    /// ([`TxBudget::with_departures`]); for others `Ok` from `emit` counts as the departure.
    pub fn departed(&mut self, now: Instant, packet: TxId) {
        let (owners, _) = self.enter(now);
        owners.egress.departed(now, packet);
    }

    /// Sends what may be sent. State is only committed if `emit` returns `Ok`; a packet that it
    /// refuses is held and goes first next time.
    ///
    /// # Errors
    /// The first error of `emit`.
    pub fn transmit<E>(
        &mut self,
        now: Instant,
        budget: TxBudget,
        emit: impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<TxReport, E> {
        let (owners, mut cx) = self.enter(now);
        let Owners { table, egress, opens, udp, .. } = owners;
        let report = egress.transmit(table, &mut cx, &mut Senders { opens, udp }, budget, emit);
        if cx.observe.tracer.is_some() {
            trace_blocked(table, &mut cx);
        }
        owners.settle(&mut cx);
        report
    }

    /// The next event; `None` if there are no more.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.owners.settle(&mut self.context.at_latest());
        self.owners.table.next_event()
    }

    /// The same, at less cost, for a driver that calls [`transmit`](Self::transmit) before anything
    /// but its applications' calls and this: what does not concern applications is left to it.
    #[inline]
    pub fn poll_event_before_transmit(&mut self) -> Option<Event> {
        let table = &self.owners.table;
        if table.touched.is_empty() && table.events.is_empty() { None } else { self.take_event() }
    }

    fn take_event(&mut self) -> Option<Event> {
        let mut cx = self.context.at_latest();
        let table = &mut self.owners.table;
        if !table.touched.is_empty() {
            let can_wait = cx.observe.budget.is_plentiful() && table.take_notices();
            if !can_wait {
                self.owners.settle(&mut cx);
            }
        }
        self.owners.table.next_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`transmit`](Self::transmit) next.
    /// A time that has passed means at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Wakeup> {
        self.owners.deadline(&self.context.config)
    }

    /// When [`poll_timeout`](Self::poll_timeout) is due: the same without what for, at less cost.
    #[must_use]
    pub fn timeout_at(&self) -> Option<Instant> {
        self.owners.deadline_at(&self.context.config)
    }

    /// The application's side of a connection; `None` if it is gone. The first call for a
    /// listener's connection accepts it, which frees its place in the
    /// [backlog](AcceptConfig::backlog).
    pub fn conn(&mut self, id: ConnId) -> Option<Conn<'_>> {
        let slot = self.owners.table.slots.get_mut(id)?;
        if slot.flags.has(Flags::RELEASED) {
            return None;
        }
        if slot.flags.has(Flags::OFFERED)
            && let Some(listener) = slot.take_listener()
        {
            self.owners.opens.listeners.leave(listener);
        }
        Some(Conn::new(self, id))
    }

    /// Handles of connections, in the order of their [indices](ConnId::index) and from this index
    /// on; with those that the application has released.
    pub fn conn_ids(&self, from: usize) -> impl Iterator<Item = ConnId> + '_ {
        self.owners.table.slots.ids(from)
    }

    /// A connection for a tool that looks at it, or changes its settings: as [`conn`](Self::conn),
    /// but it accepts nothing, and sees connections that the application has released.
    pub fn inspect(&mut self, id: ConnId) -> Option<Conn<'_>> {
        self.owners.table.slots.get_mut(id)?;
        Some(Conn::new(self, id))
    }

    /// Releases a connection: it closes in the background (or is reset, if unread data is lost: RFC
    /// 9293, section 3.6.1) and is forgotten when it has ended. Meanwhile it is an orphan, and the
    /// endpoint bounds how many there are and how long each waits ([`EndpointConfig::max_orphans`],
    /// [`EndpointConfig::orphan_timeout`]).
    pub fn release(&mut self, now: Instant, id: ConnId) {
        let (owners, mut cx) = self.enter(now);
        owners.let_go(&mut cx, id);
    }

    /// The state of a connection, even if it has been released; `None` once it is forgotten. A
    /// released connection is forgotten in TIME-WAIT, of which only [a
    /// record](Self::time_wait_records) remains.
    #[must_use]
    pub fn state(&self, id: ConnId) -> Option<State> {
        let slots = &self.owners.table.slots;
        slots.conn(id.index).filter(|_| slots.id(id.index) == id).map(Connection::state)
    }

    /// Resets a connection, even a released one: for example when its time to close in the
    /// background is over.
    pub fn abort(&mut self, now: Instant, id: ConnId) {
        let (owners, mut cx) = self.enter(now);
        let Some(slot) = owners.table.slots.get_mut(id) else { return };
        if let Some(conn) = slot.conn.as_deref_mut() {
            conn.abort(&mut cx.conn(id), ConnError::Aborted);
        }
        owners.touch(&mut cx, id.index);
    }

    /// Tells whether this host takes packets from its device more slowly than they come, so that
    /// they wait there. While it does, receive windows do not grow, and those that have grown
    /// shrink towards three super-packets (196,605 bytes), without taking back what was promised:
    /// with larger ones, more packets would wait, and the last of them would find no room. A driver
    /// says so when it has not found the device empty for a millisecond or so. O(1).
    pub const fn set_backlogged(&mut self, backlogged: bool) {
        self.context.observe.backlogged = backlogged;
    }

    /// Tells how many bytes of packets wait for this endpoint outside of it: what other shards'
    /// drivers have handed over. They count as [`memory`](Self::memory) from the next settlement on.
    /// O(1).
    pub const fn set_waiting_memory(&mut self, bytes: usize) {
        self.owners.waiting = bytes;
    }

    /// The driver found that packets can pass again (an interface came up): whatever waits for a
    /// retransmission timer that has backed off becomes due now, instead of up to
    /// [`max_rto`](crate::ConnConfig::max_rto) later. Call it before `handle_timeout`. O(number of
    /// connections).
    pub fn path_restored(&mut self, now: Instant) {
        let (owners, mut cx) = self.enter(now);
        let waiting = owners.table.slots.indices_where(|slot| {
            slot.conn.as_deref().is_some_and(crate::conn::Connection::waits_for_a_backed_off_timer)
        });
        for index in waiting {
            if let Some(conn) = owners.table.slots.conn_mut(index) {
                conn.end_back_off(now);
            }
            owners.touch(&mut cx, index);
        }
        owners.opens.end_back_off(&mut owners.egress, &mut cx);
        owners.settle(&mut cx);
    }

    /// Number of connections, in any state; without [`half_open`](Self::half_open) ones and
    /// [`time_wait_records`](Self::time_wait_records).
    #[must_use]
    pub fn connections(&self) -> usize {
        self.owners.table.slots.len()
    }

    /// Number of half-open connections: passive opens whose SYN-ACK is not acknowledged yet. At
    /// most [`max_half_open`](EndpointConfig::max_half_open).
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.owners.opens.syn_cache.len()
    }

    /// Number of held SYNs: at most [`max_held_syns`](EndpointConfig::max_held_syns).
    #[must_use]
    pub fn held_syns(&self) -> usize {
        self.owners.opens.held_syns.len()
    }

    /// Number of UDP sockets that are not flows.
    #[must_use]
    pub fn udp_sockets(&self) -> usize {
        self.owners.udp.socket_count()
    }

    /// Number of UDP flows, those included that have ended and that the application still has.
    #[must_use]
    pub fn udp_flows(&self) -> usize {
        self.owners.udp.flow_count()
    }

    /// Sets the secret keys of fast open cookies (RFC 7413, section 4.1.2), so that several hosts
    /// behind one address accept the same; a change of keys is up to the caller from now on.
    /// Cookies made with `previous` are accepted and renewed. Without a call the endpoint has a key
    /// of its own for each [`fast_open_key_lifetime`](EndpointConfig::fast_open_key_lifetime).
    pub fn set_fast_open_keys(&mut self, current: [u8; 16], previous: Option<[u8; 16]>) {
        self.owners.opens.fast_opens.set_keys(current, previous);
    }

    /// Number of connections accepted with their SYN, because it brought a valid fast open cookie,
    /// whose handshake is not complete yet. At most
    /// [`fast_open_queue`](EndpointConfig::fast_open_queue).
    #[must_use]
    pub fn fast_open_pending(&self) -> usize {
        self.owners.opens.fast_opens.pending() as usize
    }

    /// Number of servers whose fast open cookie, or refusal of fast open, is remembered: at most
    /// [`max_fast_open_entries`](EndpointConfig::max_fast_open_entries).
    #[must_use]
    pub fn fast_open_entries(&self) -> usize {
        self.owners.opens.fast_opens.servers()
    }

    /// Number of orphans: connections that the application has released and that still have
    /// something to deliver, or wait for the peer's FIN.
    #[must_use]
    pub fn orphans(&self) -> usize {
        self.owners.table.orphans.len()
    }

    /// Number of connections in TIME-WAIT that are only records, because the application has
    /// released them: at most [`max_time_wait`](EndpointConfig::max_time_wait).
    #[must_use]
    pub fn time_wait_records(&self) -> usize {
        self.owners.table.time_wait.len()
    }

    /// Bytes held for connections and tables, as of the last event: at most about
    /// [`max_memory`](EndpointConfig::max_memory), by all endpoints of a [host](Host) together.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.context.observe.budget.held()
    }

    /// True from when [`memory`](Self::memory), of the host, is above
    /// [`memory_pressure`](EndpointConfig::memory_pressure) until it is at or below
    /// [`memory_low`](EndpointConfig::memory_low).
    #[must_use]
    pub fn is_under_memory_pressure(&self) -> bool {
        self.context.observe.budget.is_under_pressure()
    }

    /// Number of destinations whose path is known to carry less than the device, or was until a
    /// while ago: at most [`max_path_entries`](EndpointConfig::max_path_entries).
    #[must_use]
    pub fn path_entries(&self) -> usize {
        self.owners.ip.paths.len()
    }

    /// Number of packets of which some fragments have come, and not all.
    #[must_use]
    pub fn incomplete_packets(&self) -> usize {
        self.owners.ip.incomplete_packets()
    }

    /// True if a packet waits: in the egress scheduler, because the device has refused it, behind
    /// such packets, or (an ACK) for data to go along with ([`TxBudget::keeping_acks`]).
    #[must_use]
    pub fn has_packets_waiting(&self) -> bool {
        let egress = &self.owners.egress;
        egress.held.is_some()
            || !egress.ready.is_empty()
            || !egress.kept.is_empty()
            || egress.scheduler().backlog(Scope::All).packets > 0
    }

    /// The scheduler's name.
    #[must_use]
    pub fn scheduler_name(&self) -> &'static str {
        self.owners.egress.scheduler().name()
    }

    /// Calls `visit` with each variable that the scheduler shows.
    pub fn scheduler_metrics(&self, visit: &mut dyn FnMut(Metric)) {
        self.owners.egress.scheduler().metrics(&mut Metrics::new(visit));
    }

    /// The scheduler, for `configure`.
    pub fn scheduler(&mut self) -> &mut dyn EgressScheduler {
        self.owners.egress.scheduler_mut()
    }

    /// What was sent, by kind of packet, and how long it waited in the scheduler's queue.
    #[must_use]
    pub fn egress_stats(&self) -> EgressStats {
        self.owners.egress.accounts.stats()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.context.observe.counters
    }

    /// Sends trace events to `tracer` from now on; `None` stops tracing.
    pub fn set_tracer(&mut self, tracer: Option<Box<dyn Tracer>>) {
        self.context.observe.tracer = tracer;
    }
}

impl Owners {
    /// Nothing yet.
    fn new(config: &EndpointConfig, scheduler: Box<dyn EgressScheduler>, keys: &Keys) -> Self {
        Self {
            table: Table::new(config, keys),
            egress: Egress::new(scheduler, config),
            ip: Ip::new(config, keys),
            opens: Opens::new(config, keys),
            udp: Udp::new(keys.udp_flows),
            shard: None,
            hand: Hand::default(),
            calls_others: false,
            next_call: Instant::ZERO,
            waiting: 0,
        }
    }

    /// The opening side, and the layers that it works on.
    const fn opening(&mut self) -> (&mut Opens, Below<'_>) {
        let below = Below { table: &mut self.table, egress: &mut self.egress, ip: &mut self.ip };
        (&mut self.opens, below)
    }

    /// Something happened to the connection at `index`: it may have something to send, to report,
    /// or to wait for.
    #[inline]
    fn touch(&mut self, cx: &mut Cx<'_>, index: u32) {
        self.egress.touch(&mut self.table, cx, index);
    }
}
