//! Setting up a stack.

use super::backlog::DEFAULT_BACKLOG_TIME;
use super::shard::{Anchor, Shard};
use super::state::Waits;
use super::turns::DEFAULT_TURN;
use super::{Driver, Stack};
use crate::device::Device;
use crate::memory;
use crate::pacing::Pacing;
use crate::random;
use crate::timer::{self, Timer};
use ackline_registry::{Options, Registry};
use ackline_tcp_core::policy::{EgressScheduler, SpecError};
use ackline_tcp_core::wire::TxChecksumMode;
use ackline_tcp_core::{ConnConfig, Duration, Endpoint, EndpointConfig};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// Added to the two round trips before a tail loss probe: a peer that waits for a processor delays its ACKs
/// by this much, and on a path of a few microseconds each such delay would be taken for a loss.
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// Settings of a [`Stack`] before it starts.
///
/// By default, connections and scheduler are those of [`Registry::default`]: a Linux-like host.
pub struct Builder {
    device: Box<dyn Device>,
    registry: Registry,
    endpoint: EndpointConfig,
    /// As given, before options are applied.
    connections: Arc<ConnConfig>,
    options: Options,
    scheduler: Box<dyn EgressScheduler>,
    seed: Option<[u8; 32]>,
    pacing: Pacing,
    busy_poll: Duration,
    turn: usize,
    backlog_time: Duration,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("endpoint", &self.endpoint)
            .field("connections", &self.connections)
            .field("options", &self.options)
            .field("scheduler", &self.scheduler)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// MTU, super-packets and checksums from the device, a memory budget from the machine; no address.
    pub(super) fn new(device: Box<dyn Device>) -> Self {
        let caps = device.caps();
        let mut endpoint = EndpointConfig::default();
        endpoint.mtu = caps.mtu;
        endpoint.max_memory = memory::budget().or(endpoint.max_memory);
        endpoint.granularity = timer::RESOLUTION;
        endpoint.departure_tick = Pacing::default().tick();
        endpoint.probe_margin = PROBE_MARGIN;
        if caps.tx_checksum_offload {
            endpoint.tx_checksum = TxChecksumMode::Partial;
            endpoint.max_super_packet = caps.max_super_packet;
        }
        let registry = Registry::default();
        Self {
            device,
            endpoint,
            connections: Arc::new(registry.conn_config()),
            options: Options::default(),
            scheduler: registry.scheduler()(),
            registry,
            seed: None,
            pacing: Pacing::default(),
            busy_poll: Duration::ZERO,
            turn: DEFAULT_TURN,
            backlog_time: DEFAULT_BACKLOG_TIME,
        }
    }

    /// Sets the policies that [`options`](Self::options) can name, and their defaults, which replace
    /// connections and scheduler: call this first.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.scheduler = registry.scheduler()();
        self = self.connections(registry.conn_config());
        self.registry = registry;
        self
    }

    /// Changes settings of connections and host by name: `cc=cubic:beta=0.8,sack=off,ttl=32`. The keys are those of
    /// [`Registry::options`]; `ackline list conn` and `ackline list host` print them.
    ///
    /// # Errors
    /// What is wrong with a key or value, and what would be right.
    pub fn options(mut self, text: &str) -> Result<Self, SpecError> {
        let options = self.registry.options(text)?;
        self.endpoint = options.host(&self.endpoint)?;
        if let Some(make) = options.sched() {
            self.scheduler = make();
        }
        self.options = options.over(&self.options);
        // Reports contradictory settings here, not when the stack starts.
        self.options.conn(&self.connections)?;
        Ok(self)
    }

    /// Adds an address of this host.
    #[must_use]
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        self.endpoint.addresses.push(address.into());
        self
    }

    /// Accepts every destination address, like a tunnel endpoint.
    #[must_use]
    pub fn any_address(mut self) -> Self {
        self.endpoint.any_address = true;
        self
    }

    /// Changes the endpoint's settings; those determined by the device are already filled in.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        change(&mut self.endpoint);
        self
    }

    /// Sets the settings of opened and accepted connections. They replace earlier [`options`](Self::options).
    #[must_use]
    pub fn connections(mut self, config: impl Into<Arc<ConnConfig>>) -> Self {
        self.connections = config.into();
        self.options = Options::default();
        self
    }

    /// Sets the egress scheduler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Box<dyn EgressScheduler>) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// Sets the seed of initial sequence numbers, ports and hashes; default: random numbers from the kernel.
    /// A known seed lets peers guess sequence numbers.
    #[must_use]
    pub fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how the driver waits for departures held back by pacing or a shaper; default: it sleeps. Also
    /// sets [`EndpointConfig::departure_tick`], within which departures are treated as one: the resolution of
    /// the [timer](crate::timer::Timer) if it sleeps (50 µs on Linux, 1 ms elsewhere), 5 µs if it spins.
    #[must_use]
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self.endpoint.departure_tick = pacing.tick();
        self
    }

    /// Busy polling: for `limit` after the last packet sent or received, the driver polls the device between
    /// other tasks of the runtime instead of sleeping. The next packet then costs no wake-up, which takes
    /// some tens of microseconds if the processor is idle, and the kernel does not have to wake anyone to
    /// deliver it. The processor is busy meanwhile, so give the runtime's thread one of its own; an idle
    /// stack sleeps after `limit`. Like Linux's `SO_BUSY_POLL`, which counts from the start of the wait
    /// instead. Zero, the default: always sleep.
    #[must_use]
    pub fn busy_poll(mut self, limit: std::time::Duration) -> Self {
        self.busy_poll = limit.into();
        self
    }

    /// Sets how many bytes applications may write and read before the driver runs again: the connections that are busy
    /// share them, and each has at least 64 KiB of them, or `bytes` if that is less. An operation of a connection whose
    /// share is used up waits for a later turn of the driver ([`turn_waits`](crate::stats::Stats::turn_waits)), so that
    /// packets are received and other tasks run meanwhile. [`try_read`](crate::TcpStream::try_read) and
    /// [`try_write`](crate::TcpStream::try_write) never wait, but the readiness that is awaited before them does.
    /// Default: 1 MiB. At least 1; `usize::MAX`: no limit but tokio's, of 128 operations.
    #[must_use]
    pub fn turn(mut self, bytes: usize) -> Self {
        self.turn = bytes.max(1);
        self
    }

    /// Sets how long the driver must not have found the device empty for what waits there to count as a backlog
    /// ([`device_backlogs`](crate::stats::Stats::device_backlogs)). Then this host is the bottleneck, and receive windows do
    /// not grow but shrink towards three super-packets (196,605 bytes): larger ones would lengthen the device's queue until it overflows, and
    /// the connections that lost packets would wait for their timers while others go on. Buffers that the application
    /// has set stay. Default: 1 ms. The longest duration: never.
    #[must_use]
    pub fn backlog_time(mut self, time: std::time::Duration) -> Self {
        self.backlog_time = time.into();
        self
    }

    /// Sets the timer granularity (G of RFC 6298): deadlines are rounded up to multiples of `granularity`, so
    /// that one wake-up serves several. Departures held back by pacing or a shaper are not rounded. Default:
    /// the resolution of the [timer](crate::timer::Timer), 50 µs on Linux, 1 ms elsewhere.
    #[must_use]
    pub fn granularity(mut self, granularity: std::time::Duration) -> Self {
        self.endpoint.granularity = granularity.into();
        self
    }

    /// Returns the stack and the future that drives it, for callers that run it themselves.
    ///
    /// # Errors
    /// If the process has no descriptor left for the timer, or the kernel no random numbers; `InvalidInput`
    /// if an entry of the [registry](Self::registry) is invalid.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn build(self) -> io::Result<(Stack, Driver)> {
        let Self {
            device,
            registry,
            mut endpoint,
            connections,
            options,
            scheduler,
            seed,
            pacing,
            busy_poll,
            turn,
            backlog_time,
        } = self;
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        registry.check().map_err(wrong)?;
        let connections = if options.is_empty() {
            connections
        } else {
            Arc::new(options.conn(&connections).map_err(wrong)?)
        };
        let seed = match seed {
            Some(seed) => seed,
            None => random::seed()?,
        };
        if let Some(ports) = device.local_ports() {
            endpoint.ephemeral_ports = ports;
        }
        let endpoint = Endpoint::new(endpoint, scheduler, seed);
        let waits = Waits { pacing, busy_poll, turn, backlog_time };
        let shard = Arc::new(Shard::new(endpoint, device, Timer::new()?, waits));
        let stack = Stack::new(Arc::new(Anchor::new(shard.clone())), connections);
        Ok((stack, Driver::new(shard)))
    }

    /// Starts the stack on the current tokio runtime.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn spawn(self) -> io::Result<Stack> {
        let (stack, driver) = self.build()?;
        tokio::spawn(driver);
        Ok(stack)
    }
}
