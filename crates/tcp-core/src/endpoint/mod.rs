//! Many connections on one host: the type that a driver drives.
//!
//! | file | holds |
//! |---|---|
//! | `ingest.rs` | received packets: to the connection, the listener, or the answer |
//! | `fragments.rs`, `reassembly.rs` | fragments: their rules, and those that wait for the rest of their packets |
//! | `icmp.rs`, `refuse.rs` | pings, received ICMP errors, and errors sent about datagrams that nobody accepts |
//! | `datagrams.rs`, `udp_sockets.rs`, `udp_flows.rs` | UDP: rules, sockets, and flows by four-tuple and idle time |
//! | `packets.rs` | packets that the stack does not use itself, and those that the program has made |
//! | `listen.rs`, `open.rs` | listeners, and active opens |
//! | `half_open.rs`, `syn_cache.rs` | passive opens before they are connections: their rules, and their entries |
//! | `syn_cookies.rs` | passive opens without an entry |
//! | `incoming.rs`, `held_syns.rs` | SYNs that wait for the application's answer: their rules, and their records |
//! | `transmit.rs` | sending: what to send next, and what its departure commits |
//! | `send_trace.rs` | what a tracer is told of sending |
//! | `egress.rs`, `ready.rs`, `stray.rs` | the way out: queues and the scheduler, whose turn it is, packets without a connection |
//! | `service.rs` | timers, events, and the end of connections |
//! | `memory.rs` | the memory budget: what is charged, and who goes if it is used up |
//! | `shard.rs`, `limits.rs` | one endpoint of several of a host; what it may have, alone or with the others |
//! | `mtu.rs` | the MTU of the device has changed |
//! | `fast_open.rs`, `fast_open_cookies.rs` | TCP Fast Open on both sides: who may, and the server's cookies |
//! | `address_table.rs` | what is known by destination: what paths carry, and fast open cookies |
//! | `orphans.rs` | limits on connections that the application has released |
//! | `handle.rs`, `settings.rs` | the application's side of a connection, and settings it changes at run time |
//! | `time_wait.rs`, `time_wait_table.rs` | TIME-WAIT without a connection: its rules, and its records |
//! | `slots.rs`, `demux.rs`, `wheel.rs` | storage of connections: by handle, by four-tuple, by deadline |
//! | `deadline_table.rs`, `shares.rs` | storage of records that wait for a time; how many come from each source |
//! | `isn.rs`, `ports.rs`, `rng.rs` | values that must not be guessable |
//!
//! A packet or a timer costs O(1), whatever the number of connections: only [`Endpoint::unlisten`]
//! walks over all of them.

mod address_table;
mod batch;
mod datagrams;
mod deadline_table;
mod demux;
mod egress;
mod fast_open;
mod fast_open_cookies;
mod fragments;
mod half_open;
mod handle;
mod held_syns;
mod icmp;
mod incoming;
mod ingest;
mod isn;
mod limits;
mod listen;
mod memory;
mod mtu;
mod observe;
mod open;
mod orphans;
mod packets;
mod ports;
mod ready;
mod reassembly;
mod refuse;
mod rng;
mod send_trace;
mod service;
mod settings;
mod shard;
mod shares;
mod slots;
mod stray;
mod syn_cache;
mod syn_cookies;
mod time_wait;
mod time_wait_table;
mod transmit;
mod udp_flows;
mod udp_sockets;
mod wheel;

pub use handle::Conn;
pub use held_syns::{IncomingSyn, SynEvent, SynId};
pub use incoming::Refusal;
pub use shard::Host;
pub use udp_sockets::{UdpEvent, UdpReceived, UdpStats};

use crate::State;
use crate::config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
use crate::conn::{Connection, Notices};
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::error::{ConnError, ConnectError, ListenError};
use crate::events::{Event, Tracer, WakeReason, Wakeup};
use crate::id::{ConnId, ListenerId, TxId, UdpId};
use crate::packet::{TxBudget, TxPacket, TxReport};
use crate::pattern::Pattern;
use crate::policy::sched::Scope;
use crate::policy::{EgressScheduler, Metric, Metrics};
use crate::queueing::EgressStats;
use crate::rate_limit::RateLimit;
use crate::time::{Duration, Instant};
use crate::wire::{IpInfo, MIN_MTU, RxPacket, TcpSegment, TxChecksumMode};
use address_table::PathCache;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use demux::Demux;
use egress::Egress;
use fast_open::FastOpens;
use held_syns::HeldSyns;
use isn::IsnGenerator;
use limits::Limits;
use listen::Listeners;
use memory::Hand;
use observe::Observe;
use orphans::Orphans;
use packets::Packets;
use ports::PortSelector;
use reassembly::Reassembly;
use rng::Keys;
use shard::Shard;
use slots::{Flags, Slots};
use syn_cache::SynCache;
use syn_cookies::SynCookies;
use time_wait_table::TimeWaitTable;
use udp_sockets::Udp;
use wheel::TimingWheel;

/// A host's TCP, with all its connections, listeners and timers, and its UDP.
///
/// **Give inputs, all stamped with the same instant; then drain [`transmit`](Self::transmit), then
/// [`poll_event`](Self::poll_event); then sleep until [`poll_timeout`](Self::poll_timeout) or the
/// next input.**
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    limits: Limits,
    slots: Slots,
    /// Connections by their addresses and ports.
    demux: Demux,
    /// The connection of the last segment was at this index; it may be gone.
    latest: u32,
    listeners: Listeners,
    /// Passive opens whose handshake is not complete.
    syn_cache: SynCache,
    cookies: SynCookies,
    /// SYNs that wait for the application's answer.
    held_syns: HeldSyns,
    fast_opens: FastOpens,
    /// Connections in TIME-WAIT that nobody holds.
    time_wait: TimeWaitTable,
    /// The earliest deadline of each connection, by its index.
    wheel: TimingWheel,
    egress: Egress,
    orphans: Orphans,
    /// UDP sockets and flows.
    udp: Udp,
    /// Fragments of packets that are not complete.
    reassembly: Reassembly,
    /// Packets for the program.
    packets: Packets,
    paths: PathCache,
    /// Present if it is one of several endpoints of its host.
    shard: Option<Box<Shard>>,
    /// Connections with events for the application. [`Flags::EVENTS`] marks those in this queue.
    events: VecDeque<u32>,
    /// Connections touched since they were last settled. [`Flags::TOUCHED`] marks those in this
    /// list.
    touched: Vec<u32>,
    /// Connections of which only the notices were taken since then. [`Flags::NOTICED`] marks those
    /// to be settled.
    noticed: Vec<u32>,
    /// Something has happened that touches no connection, and may have changed what the tables
    /// hold.
    unsettled: bool,
    /// Bytes that these tables held when they were last settled.
    strangers: usize,
    /// Whom to look at next if memory is short.
    hand: Hand,
    /// Other endpoints of the host have to make room.
    calls_others: bool,
    /// When they may be asked again.
    next_call: Instant,
    /// What streams are made of.
    pattern: Option<Pattern>,
    /// The latest instant given by the driver.
    now: Instant,
    observe: Observe,
    isn: IsnGenerator,
    ports: PortSelector,
    /// RSTs without a connection.
    resets: RateLimit,
    /// Challenge ACKs of all connections.
    challenges: RateLimit,
    /// Echo replies.
    pings: RateLimit,
    /// ICMP errors.
    icmp_errors: RateLimit,
}

/// The interval of the limits per second.
const SECOND: Duration = Duration::from_secs(1);
/// No IP packet is longer: its length has 16 bits.
const MAX_PACKET: u32 = 65_535;

/// What [`Endpoint::ingest`] did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ingested {
    /// It belonged to a connection.
    Conn(ConnId),
    /// A SYN for a listener, which a SYN-ACK answers.
    HalfOpen,
    /// A SYN for a listener that [holds](AcceptConfig::hold_syns) them, which waits for the
    /// application's answer.
    HeldSyn,
    /// It completed a handshake, or is a SYN with a valid fast open cookie: a listener has a new
    /// connection.
    Accepted(ConnId),
    /// It waits in a UDP socket.
    Datagram(UdpId),
    /// It waits for a program that [takes](Endpoint::take_packets) what is neither TCP nor UDP.
    Packet,
    /// A fragment: it waits for the rest of its packet, or repeats one that does.
    Fragment,
    /// It was handled without a connection (ping, RST for an unknown port, ICMP error).
    Handled,
    /// It was dropped.
    Dropped(DropReason),
}

impl Endpoint {
    /// An endpoint without connections. `seed` feeds initial sequence numbers, ports and hashes: it
    /// must be random if peers are not trusted, and fixed if a run must be repeatable.
    #[must_use]
    pub fn new(config: EndpointConfig, scheduler: Box<dyn EgressScheduler>, seed: [u8; 32]) -> Self {
        let mut config = config;
        config.mtu = config.mtu.clamp(MIN_MTU, MAX_PACKET);
        config.max_super_packet = config.max_super_packet.min(MAX_PACKET);
        let keys = Keys::from_seed(seed);
        Self {
            limits: Limits::own(&config),
            slots: Slots::default(),
            demux: Demux::new(keys.demux),
            latest: 0,
            listeners: Listeners::default(),
            syn_cache: SynCache::new(keys.syn_cache),
            cookies: SynCookies::new(keys.syn_cookies),
            held_syns: HeldSyns::new(keys.held_syns),
            fast_opens: FastOpens::new(keys.fast_open_cookies, keys.fast_open_servers),
            time_wait: TimeWaitTable::new(keys.time_wait),
            wheel: TimingWheel::new(),
            egress: Egress::new(scheduler, &config),
            orphans: Orphans::default(),
            udp: Udp::new(keys.udp_flows),
            reassembly: Reassembly::new(keys.reassembly),
            packets: Packets::default(),
            paths: PathCache::new(keys.paths),
            shard: None,
            events: VecDeque::new(),
            touched: Vec::new(),
            noticed: Vec::new(),
            unsettled: true,
            strangers: 0,
            hand: Hand::default(),
            calls_others: false,
            next_call: Instant::ZERO,
            pattern: None,
            now: Instant::ZERO,
            observe: Observe::new(&config),
            isn: IsnGenerator::new(keys.isn),
            ports: PortSelector::new(keys.ports, config.ephemeral_ports.clone()),
            resets: RateLimit::concealed(config.resets_per_second, SECOND, keys.reset_limit),
            challenges: RateLimit::concealed(config.challenge_acks_per_second, SECOND, keys.rate_limit),
            pings: RateLimit::new(config.pings_per_second, SECOND),
            icmp_errors: RateLimit::concealed(config.icmp_errors_per_second, SECOND, keys.icmp_limit),
            config,
        }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Sets who computes transport checksums, from the next packet on.
    pub fn set_tx_checksum(&mut self, mode: TxChecksumMode) {
        self.config.tx_checksum = mode;
    }

    /// Says what the streams of connections made from now on consist of, in both directions: for
    /// simulations. A connection keeps the length of its data instead of the data for as long as
    /// what it is given is exactly that, and behaves in every respect as if it kept them,
    /// [`Info::memory`](crate::info::Info::memory) included. Octets that are not the pattern's are
    /// stored, and so is what a connection receives once a packet brought it 16 KiB or more.
    pub fn set_pattern(&mut self, pattern: Option<Pattern>) {
        self.pattern = pattern;
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
        self.now = self.now.max(now);
        if let ListenOn::Address(address) = on
            && !address.ip().is_unspecified()
            && !self.is_local(address.ip())
        {
            return Err(ListenError::NotLocal);
        }
        let on = self.with_port(on)?;
        self.listeners.add(on, accept)
    }

    /// The address and port of a listener, with the port chosen for port 0; `None` if it is gone.
    #[must_use]
    pub fn listens_on(&self, listener: ListenerId) -> Option<ListenOn> {
        self.listeners.place_of(listener)
    }

    /// The settings of a listener; changes apply to connections accepted from now on. `None` if it
    /// is gone.
    pub fn accept_config(&mut self, listener: ListenerId) -> Option<&mut AcceptConfig> {
        self.listeners.accept_config(listener)
    }

    /// Stops listening. Resets connections that the application has not accepted yet, and refuses
    /// held SYNs.
    pub fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        self.now = self.now.max(now);
        let Some(number) = self.listeners.remove(listener) else { return };
        self.unsettled = true;
        self.reset_half_open(now, number);
        self.reset_held_syns(now, number);
        for index in self.slots.indices_where(|slot| slot.listener() == Some(number)) {
            let id = self.slots.id(index);
            let Some(slot) = self.slots.slot_mut(index) else { continue };
            slot.take_listener();
            slot.notices = Notices::default();
            slot.flags.set(Flags::RELEASED);
            if let Some(conn) = slot.conn.as_deref_mut() {
                conn.abort(&mut self.observe.ctx(now, id, &self.config), ConnError::Aborted);
            }
            self.touch(now, index);
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
        self.now = self.now.max(now);
        self.unsettled = true;
        self.open(now, &to, config)
    }

    /// Processes one IP packet, or one super-packet, from the device.
    pub fn ingest(&mut self, now: Instant, packet: RxPacket<'_>) -> Ingested {
        self.now = self.now.max(now);
        self.take_packet(now, &packet)
    }

    /// Processes a segment whose headers are fields already, as if
    /// [`wire::parse`](crate::wire::parse) had just made them of a packet: from another endpoint of
    /// this process that [has not made octets of them](TxBudget::taking_fields). It must be no SYN,
    /// because fast open options are read from the octets.
    pub fn ingest_segment(&mut self, now: Instant, ip: &IpInfo, segment: &TcpSegment<'_>) -> Ingested {
        self.now = self.now.max(now);
        self.take_fields(now, ip, segment)
    }

    /// Processes packets that arrived together, in their order: as [`ingest`](Self::ingest) for
    /// each, but segments of one connection that follow each other, and bring nothing but the data
    /// that is expected next, are one arrival. What the application, the peer and an ACK policy see
    /// is the same, unless the policy [agrees](crate::policy::AckPolicy::takes_runs) to be told of
    /// such a run in one call. With a [tracer](Self::set_tracer) nothing is merged.
    pub fn ingest_batch(&mut self, now: Instant, packets: &[RxPacket<'_>]) {
        self.now = self.now.max(now);
        self.take_batch(now, packets);
    }

    /// Handles every deadline up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.serve_timers(now);
    }

    /// The last bit of a packet has left. Only for drivers that report departures
    /// ([`TxBudget::with_departures`]); for others `Ok` from `emit` counts as the departure.
    pub fn departed(&mut self, now: Instant, packet: TxId) {
        self.now = self.now.max(now);
        self.unsettled = true;
        self.egress.departed(now, packet);
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
        self.now = self.now.max(now);
        self.unsettled |= self.egress.has_entries();
        let report = self.transmit_all(now, budget, emit);
        self.unsettled |= self.egress.has_entries();
        if self.observe.tracer.is_some() {
            self.trace_blocked(now);
        }
        self.settle(now);
        report
    }

    /// The next event; `None` if there are no more.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.settle(self.now);
        self.next_event()
    }

    /// The same, at less cost, for a driver that calls [`transmit`](Self::transmit) before anything
    /// but its applications' calls and this: what does not concern applications is left to it.
    pub fn poll_event_before_transmit(&mut self) -> Option<Event> {
        if !self.touched.is_empty() && !self.settle_notices() {
            self.settle(self.now);
        }
        self.next_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`transmit`](Self::transmit) next.
    /// A time that has passed means at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Wakeup> {
        let timer = self.wheel.next().map(|(at, index)| {
            let reason = self.slots.conn(index).and_then(|conn| conn.next_deadline());
            // A timer is only armed for a deadline.
            let reason = reason.map_or(WakeReason::Policy, |(_, reason)| reason);
            Wakeup::new(at, reason, Some(self.slots.id(index)))
        });
        let time_wait = self.time_wait.next_end().map(|at| Wakeup::new(at, WakeReason::TimeWait, None));
        let shaper = self.egress.wake_up_at().map(|at| Wakeup::new(at, WakeReason::Shaper, None));
        let half_open = self.syn_cache.next_deadline().map(|at| Wakeup::new(at, WakeReason::Rto, None));
        let held_syn = self.held_syns.next_end().map(|at| Wakeup::new(at, WakeReason::HeldSyn, None));
        let reassembly = self.reassembly.next_end().map(|at| Wakeup::new(at, WakeReason::Reassembly, None));
        let flow = self.udp.next_end().map(|at| Wakeup::new(at, WakeReason::UdpFlow, None));
        // The first of those that are equally early.
        [timer, half_open, time_wait, self.orphan_deadline(), shaper, flow, held_syn, reassembly]
            .into_iter()
            .flatten()
            .min_by_key(|wakeup| wakeup.at)
    }

    /// When [`poll_timeout`](Self::poll_timeout) is due: the same without what for, at less cost.
    #[must_use]
    pub fn timeout_at(&self) -> Option<Instant> {
        let conns = self.wheel.next().map(|(at, _)| at);
        // Mostly there is nothing but connections.
        let records =
            self.syn_cache.len() + self.time_wait.len() + self.held_syns.len() + self.reassembly.len();
        if records + self.orphans.len() == 0 && self.egress.is_idle() && self.udp.is_empty() {
            return conns;
        }
        let own = [
            conns,
            self.syn_cache.next_deadline(),
            self.time_wait.next_end(),
            self.orphan_deadline().map(|wakeup| wakeup.at),
            self.egress.wake_up_at(),
            self.udp.next_end(),
            self.held_syns.next_end(),
            self.reassembly.next_end(),
        ];
        own.into_iter().flatten().min()
    }

    /// The application's side of a connection; `None` if it is gone. The first call for a
    /// listener's connection accepts it, which frees its place in the
    /// [backlog](AcceptConfig::backlog).
    pub fn conn(&mut self, id: ConnId) -> Option<Conn<'_>> {
        let slot = self.slots.get_mut(id)?;
        if slot.flags.has(Flags::RELEASED) {
            return None;
        }
        if slot.flags.has(Flags::OFFERED)
            && let Some(listener) = slot.take_listener()
        {
            self.listeners.leave(listener);
        }
        Some(Conn::new(self, id))
    }

    /// Handles of connections, in the order of their [indices](ConnId::index) and from this index
    /// on; with those that the application has released.
    pub fn conn_ids(&self, from: usize) -> impl Iterator<Item = ConnId> + '_ {
        self.slots.ids(from)
    }

    /// A connection for a tool that looks at it, or changes its settings: as [`conn`](Self::conn),
    /// but it accepts nothing, and sees connections that the application has released.
    pub fn inspect(&mut self, id: ConnId) -> Option<Conn<'_>> {
        self.slots.get_mut(id)?;
        Some(Conn::new(self, id))
    }

    /// Releases a connection: it closes in the background (or is reset, if unread data is lost: RFC
    /// 9293, section 3.6.1) and is forgotten when it has ended. Meanwhile it is an orphan, and the
    /// endpoint bounds how many there are and how long each waits ([`EndpointConfig::max_orphans`],
    /// [`EndpointConfig::orphan_timeout`]).
    pub fn release(&mut self, now: Instant, id: ConnId) {
        self.now = self.now.max(now);
        self.let_go(now, id);
    }

    /// The state of a connection, even if it has been released; `None` once it is forgotten. A
    /// released connection is forgotten in TIME-WAIT, of which only [a
    /// record](Self::time_wait_records) remains.
    #[must_use]
    pub fn state(&self, id: ConnId) -> Option<State> {
        self.slots.conn(id.index).filter(|_| self.slots.id(id.index) == id).map(Connection::state)
    }

    /// Resets a connection, even a released one: for example when its time to close in the
    /// background is over.
    pub fn abort(&mut self, now: Instant, id: ConnId) {
        self.now = self.now.max(now);
        let Some(slot) = self.slots.get_mut(id) else { return };
        if let Some(conn) = slot.conn.as_deref_mut() {
            conn.abort(&mut self.observe.ctx(now, id, &self.config), ConnError::Aborted);
        }
        self.touch(now, id.index);
    }

    /// Tells whether this host takes packets from its device more slowly than they come, so that
    /// they wait there. While it does, receive windows do not grow, and those that have grown
    /// shrink towards three super-packets (196,605 bytes), without taking back what was promised:
    /// with larger ones, more packets would wait, and the last of them would find no room. A driver
    /// says so when it has not found the device empty for a millisecond or so. O(1).
    pub const fn set_backlogged(&mut self, backlogged: bool) {
        self.observe.backlogged = backlogged;
    }

    /// The driver found that packets can pass again (an interface came up): whatever waits for a
    /// retransmission timer that has backed off becomes due now, instead of up to
    /// [`max_rto`](crate::ConnConfig::max_rto) later. Call it before `handle_timeout`. O(number of
    /// connections).
    pub fn path_restored(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let waiting = self.slots.indices_where(|slot| {
            slot.conn.as_deref().is_some_and(crate::conn::Connection::waits_for_a_backed_off_timer)
        });
        for index in waiting {
            if let Some(conn) = self.slots.conn_mut(index) {
                conn.end_back_off(now);
            }
            self.touch(now, index);
        }
        self.unsettled = true;
        self.end_back_off_of_half_open(now);
        self.settle(now);
    }

    /// Number of connections, in any state; without [`half_open`](Self::half_open) ones and
    /// [`time_wait_records`](Self::time_wait_records).
    #[must_use]
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// Number of half-open connections: passive opens whose SYN-ACK is not acknowledged yet. At
    /// most [`max_half_open`](EndpointConfig::max_half_open).
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.syn_cache.len()
    }

    /// Sets the secret keys of fast open cookies (RFC 7413, section 4.1.2), so that several hosts
    /// behind one address accept the same; a change of keys is up to the caller from now on.
    /// Cookies made with `previous` are accepted and renewed. Without a call the endpoint has a key
    /// of its own for each [`fast_open_key_lifetime`](EndpointConfig::fast_open_key_lifetime).
    pub fn set_fast_open_keys(&mut self, current: [u8; 16], previous: Option<[u8; 16]>) {
        self.fast_opens.set_keys(current, previous);
    }

    /// Number of connections accepted with their SYN, because it brought a valid fast open cookie,
    /// whose handshake is not complete yet. At most
    /// [`fast_open_queue`](EndpointConfig::fast_open_queue).
    #[must_use]
    pub fn fast_open_pending(&self) -> usize {
        self.fast_opens.pending() as usize
    }

    /// Number of servers whose fast open cookie, or refusal of fast open, is remembered: at most
    /// [`max_fast_open_entries`](EndpointConfig::max_fast_open_entries).
    #[must_use]
    pub fn fast_open_entries(&self) -> usize {
        self.fast_opens.servers()
    }

    /// Number of orphans: connections that the application has released and that still have
    /// something to deliver, or wait for the peer's FIN.
    #[must_use]
    pub fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// Number of connections in TIME-WAIT that are only records, because the application has
    /// released them: at most [`max_time_wait`](EndpointConfig::max_time_wait).
    #[must_use]
    pub fn time_wait_records(&self) -> usize {
        self.time_wait.len()
    }

    /// Bytes held for connections and tables, as of the last event: at most about
    /// [`max_memory`](EndpointConfig::max_memory), by all endpoints of a [host](Host) together.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.observe.budget.held()
    }

    /// True from when [`memory`](Self::memory), of the host, is above
    /// [`memory_pressure`](EndpointConfig::memory_pressure) until it is at or below
    /// [`memory_low`](EndpointConfig::memory_low).
    #[must_use]
    pub fn is_under_memory_pressure(&self) -> bool {
        self.observe.budget.is_under_pressure()
    }

    /// Number of destinations whose path is known to carry less than the device, or was until a
    /// while ago: at most [`max_path_entries`](EndpointConfig::max_path_entries).
    #[must_use]
    pub fn path_entries(&self) -> usize {
        self.paths.len()
    }

    /// Number of packets of which some fragments have come, and not all.
    #[must_use]
    pub fn incomplete_packets(&self) -> usize {
        self.reassembly.len()
    }

    /// True if a packet waits: in the egress scheduler, because the device has refused it, behind
    /// such packets, or (an ACK) for data to go along with ([`TxBudget::keeping_acks`]).
    #[must_use]
    pub fn has_packets_waiting(&self) -> bool {
        self.egress.held.is_some()
            || !self.egress.ready.is_empty()
            || !self.egress.kept.is_empty()
            || self.egress.scheduler().backlog(Scope::All).packets > 0
    }

    /// The scheduler's name.
    #[must_use]
    pub fn scheduler_name(&self) -> &'static str {
        self.egress.scheduler().name()
    }

    /// Calls `visit` with each variable that the scheduler shows.
    pub fn scheduler_metrics(&self, visit: &mut dyn FnMut(Metric)) {
        self.egress.scheduler().metrics(&mut Metrics::new(visit));
    }

    /// The scheduler, for `configure`.
    pub fn scheduler(&mut self) -> &mut dyn EgressScheduler {
        self.egress.scheduler_mut()
    }

    /// What was sent, by kind of packet, and how long it waited in the scheduler's queue.
    #[must_use]
    pub fn egress_stats(&self) -> EgressStats {
        self.egress.accounts.stats()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.observe.counters
    }

    /// Sends trace events to `tracer` from now on; `None` stops tracing.
    pub fn set_tracer(&mut self, tracer: Option<Box<dyn Tracer>>) {
        self.observe.tracer = tracer;
    }
}
