//! A stack and its sockets, in safe Rust: the implementation of the functions that C calls.
//!
//! **Events** are taken from the endpoint after it has sent, in `poll`, and when the program asks
//! for events. The endpoint's ids of connections, listeners and UDP sockets are mapped to the
//! program's handles.

mod streams;
mod syns;
mod udp;

use crate::boundary::Transmitter;
use crate::error::{ACKLINE_EIO, ACKLINE_EOPNOTSUPP, Failure};
use crate::sockets::{Name, Socket, Sockets};
use crate::types::{ACKLINE_ENDED, ACKLINE_FLUSHED, ACKLINE_READABLE, ACKLINE_WRITABLE, ackline_socket};
use crate::wake::Wake;
use ackline_registry::Registry;
use ackline_tcp_core::config::options::{self, HOST};
use ackline_tcp_core::endpoint::Refusal;
use ackline_tcp_core::policy::spec::PolicyKind;
use ackline_tcp_core::wire::TxChecksumMode;
use ackline_tcp_core::{
    ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenerId, RxPacket, TxBudget,
};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Deadline after the callback had no room for a packet. The refused packet is overdue, so without
/// this bound the deadline would lie in the past and the program would spin.
const RECHECK: Duration = Duration::from_millis(10);

/// First time that is refused, 292 years. A later one is a mistake of the caller, and the clock
/// could not go back from it.
const END_OF_TIME: u64 = 1 << 63;

/// A stack.
#[derive(Debug)]
pub(crate) struct Host {
    endpoint: Endpoint,
    registry: Registry,
    /// Default settings of connections.
    conns: Arc<ConnConfig>,
    sockets: Sockets,
    /// Connections not accepted yet, by listener. The endpoint bounds their number.
    arrived: HashMap<ListenerId, VecDeque<ConnId>>,
    transmitter: Transmitter,
    /// Header and payload of a packet, joined for the callback.
    packet: Vec<u8>,
    /// The latest time passed in.
    now: Instant,
    wake: Wake,
}

impl Host {
    pub(crate) fn new(text: &str, transmitter: Transmitter, seed: Option<[u8; 32]>) -> Result<Self, Failure> {
        let registry = Registry::default();
        let options = registry.options(text)?;
        let config = options.host(&EndpointConfig::default())?;
        if config.addresses.is_empty() && !config.any_address {
            return Err(Failure::invalid(
                "a stack needs an address: addresses=10.0.0.2, or any_address=on for all of them",
            ));
        }
        if config.max_super_packet != 0 || config.tx_checksum != TxChecksumMode::Complete {
            return Err(Failure::invalid(
                "the callback takes single packets with complete checksums: leave out max_super_packet and tx_checksum",
            ));
        }
        let conns = Arc::new(options.conn(&registry.conn_config())?);
        let scheduler = options.sched().map_or_else(|| registry.scheduler()(), |make| make());
        let seed = match seed {
            Some(seed) => seed,
            None => random()?,
        };
        Ok(Self {
            endpoint: Endpoint::new(config, scheduler, seed),
            registry,
            conns,
            sockets: Sockets::default(),
            arrived: HashMap::new(),
            transmitter,
            packet: Vec::new(),
            now: Instant::ZERO,
            wake: Wake::default(),
        })
    }

    /// The instant of a call. Time does not go back: an earlier time counts as the latest one.
    pub(crate) fn at(&mut self, nanos: u64) -> Result<Instant, Failure> {
        if nanos >= END_OF_TIME {
            return Err(Failure::invalid(format!(
                "the time {nanos} ns is too large: the limit is 2^63 ns, 292 years"
            )));
        }
        self.now = self.now.max(Instant::from_nanos(nanos));
        Ok(self.now)
    }

    pub(crate) fn input(&mut self, packet: &[u8], now: u64) -> Result<i32, Failure> {
        let now = self.at(now)?;
        self.endpoint.ingest(now, RxPacket::new(packet));
        Ok(0)
    }

    /// Runs timers and sends. Returns the next deadline, and whether the callback had no room.
    pub(crate) fn poll(&mut self, now: u64) -> Result<(u64, bool), Failure> {
        let now = self.at(now)?;
        self.endpoint.handle_timeout(now);
        let blocked = self.transmit(now);
        self.collect();
        let next = self.endpoint.poll_timeout().map(|wakeup| wakeup.at);
        let deadline = if blocked {
            Some(next.filter(|at| *at > now).map_or(now + RECHECK, |at| at.min(now + RECHECK)))
        } else {
            next
        };
        Ok((deadline.map_or(u64::MAX, Instant::as_nanos), blocked))
    }

    /// True if the callback had no room.
    fn transmit(&mut self, now: Instant) -> bool {
        let Self { endpoint, transmitter, packet: whole, .. } = self;
        let outcome = endpoint.transmit(now, TxBudget::UNLIMITED, |packet| {
            whole.clear();
            whole.extend_from_slice(packet.header);
            whole.extend_from_slice(packet.payload[0]);
            whole.extend_from_slice(packet.payload[1]);
            if transmitter.send(whole) { Ok(()) } else { Err(()) }
        });
        outcome.is_err()
    }

    /// Collects the endpoint's events.
    fn collect(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            let events = match event {
                Event::Accepted { listener, conn } => {
                    self.arrived.entry(listener).or_default().push_back(conn);
                    self.tell(Name::Listener(listener), ACKLINE_READABLE);
                    continue;
                }
                Event::Connected(_) | Event::Writable(_) => ACKLINE_WRITABLE,
                Event::Readable(_) => ACKLINE_READABLE,
                Event::Flushed(_) => ACKLINE_FLUSHED,
                Event::Closed { .. } => ACKLINE_ENDED,
                _ => continue,
            };
            // A connection not accepted yet has no handle. `catch_up` reports its state once it has
            // one.
            self.tell(Name::Conn(event.conn()), events);
        }
        self.collect_syns();
        self.collect_datagrams();
        self.wake.set(self.sockets.has_events());
    }

    fn tell(&mut self, name: Name, events: u32) {
        if let Some(socket) = self.sockets.called(name) {
            self.sockets.tell(socket, events);
        }
    }

    /// The next socket with events, and its events.
    pub(crate) fn next_event(&mut self) -> Option<(ackline_socket, u32)> {
        self.sockets.take_events()
    }

    /// Collects events that occurred since the last poll.
    pub(crate) fn begin_events(&mut self) {
        self.collect();
    }

    /// Updates the descriptor after the program has taken events.
    pub(crate) fn end_events(&mut self) {
        self.wake.set(self.sockets.has_events());
    }

    pub(crate) fn fd(&mut self) -> Result<i32, Failure> {
        self.wake.fd()
    }

    pub(crate) fn connections(&self) -> usize {
        self.endpoint.connections()
    }

    /// The value of a counter.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, Failure> {
        let found = self.endpoint.counters().iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).ok_or_else(|| {
            Failure::invalid(format!("there is no counter {name:?}; ackline_counter_name lists them"))
        })
    }

    /// The default settings, overridden by `text`.
    fn settings(&self, text: Option<&str>) -> Result<Arc<ConnConfig>, Failure> {
        let Some(text) = text else { return Ok(self.conns.clone()) };
        let options = self.registry.options(text)?;
        let of_host = |key: &str| key == PolicyKind::Sched.keyword() || options::find(HOST, key).is_some();
        if let Some((key, _)) = options.iter().find(|(key, _)| of_host(key)) {
            return Err(Failure::invalid(format!("{key} is a setting of the stack, not of a connection")));
        }
        Ok(Arc::new(options.conn(&self.conns)?))
    }

    /// Closes a socket of any kind.
    pub(crate) fn close(&mut self, socket: ackline_socket, now: u64) -> Result<i32, Failure> {
        self.sockets.get(socket)?;
        let now = self.at(now)?;
        match self.sockets.remove(socket)? {
            Socket::Conn(id) => self.endpoint.release(now, id),
            Socket::Listener(id) => {
                self.arrived.remove(&id);
                self.endpoint.unlisten(now, id);
            }
            Socket::Udp(id) => self.endpoint.udp().close(now, id),
            // Nobody serves the client.
            Socket::Syn(id, _) => self.endpoint.syns().refuse(now, id, Refusal::Rst),
            Socket::Failed(_) => {}
        }
        Ok(0)
    }
}

/// The socket is of another kind than `wanted`.
fn wrong_kind(wanted: &str) -> Failure {
    Failure::new(ACKLINE_EOPNOTSUPP, format!("the socket is not {wanted}"))
}

fn random() -> Result<[u8; 32], Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::new(ACKLINE_EIO, format!("the system has no random numbers: {error}")))?;
    Ok(seed)
}
