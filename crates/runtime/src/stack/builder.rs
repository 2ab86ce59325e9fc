//! How a stack is set up.

use super::shard::{Anchor, Shard};
use super::state::Waits;
use super::{Driver, Stack};
use crate::device::Device;
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

/// Added to two round trips before a tail loss probe: a peer that waits for a processor acknowledges so much later, and on a
/// path of some microseconds each such wait would be taken for a loss.
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// Settings of a [`Stack`] that is about to start.
///
/// Without any, connections and scheduler are the defaults of [`Registry::default`], which are those of a Linux-like host.
pub struct Builder {
    device: Box<dyn Device>,
    registry: Registry,
    endpoint: EndpointConfig,
    /// As given, without the options.
    connections: Arc<ConnConfig>,
    options: Options,
    scheduler: Box<dyn EgressScheduler>,
    seed: Option<[u8; 32]>,
    pacing: Pacing,
    busy_poll: Duration,
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
    /// MTU, super-packets and checksums as the device has them; no address.
    pub(super) fn new(device: Box<dyn Device>) -> Self {
        let caps = device.caps();
        let mut endpoint = EndpointConfig::default();
        endpoint.mtu = caps.mtu;
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
        }
    }

    /// The policies that [`options`](Self::options) can name, and their defaults, which replace connections and scheduler: to be
    /// called first.
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
    /// Says what is wrong with a key or value, and what would be right.
    pub fn options(mut self, text: &str) -> Result<Self, SpecError> {
        let options = self.registry.options(text)?;
        self.endpoint = options.host(&self.endpoint)?;
        if let Some(make) = options.sched() {
            self.scheduler = make();
        }
        self.options = options.over(&self.options);
        // Settings that contradict each other are reported here, not when the stack starts.
        self.options.conn(&self.connections)?;
        Ok(self)
    }

    /// Adds an address of this host.
    #[must_use]
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        self.endpoint.addresses.push(address.into());
        self
    }

    /// Answers for every destination address, as a tunnel's end does.
    #[must_use]
    pub fn any_address(mut self) -> Self {
        self.endpoint.any_address = true;
        self
    }

    /// Changes the endpoint's settings; those that the device decides are filled in already.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        change(&mut self.endpoint);
        self
    }

    /// The settings of connections, opened and accepted. They replace what [`options`](Self::options) has set before.
    #[must_use]
    pub fn connections(mut self, config: impl Into<Arc<ConnConfig>>) -> Self {
        self.connections = config.into();
        self.options = Options::default();
        self
    }

    /// The egress scheduler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Box<dyn EgressScheduler>) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// The seed of initial sequence numbers, ports and hashes; the kernel's random numbers otherwise. A known
    /// seed lets peers guess sequence numbers.
    #[must_use]
    pub fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How the driver waits for departures that pacing or a shaper holds back; it sleeps otherwise. Sets
    /// [`EndpointConfig::departure_tick`], too, the time within which departures are not told apart: if it sleeps, what
    /// the [timer](crate::timer::Timer) resolves (50 µs on Linux, 1 ms elsewhere), 5 µs if it spins.
    #[must_use]
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self.endpoint.departure_tick = pacing.tick();
        self
    }

    /// For `limit` after the last packet that came or left, the driver does not sleep but asks the device again and
    /// again, between other tasks of the runtime. Then the packet that is waited for costs no wake-up, which takes
    /// some tens of microseconds if the processor has gone to rest, and the kernel that hands it over need not wake
    /// anybody. The processor is busy meanwhile, so the runtime's thread should have one of its own; a stack on which
    /// nothing moves for `limit` sleeps. As Linux's `SO_BUSY_POLL`, which counts from the wait instead. Zero, the
    /// default: it always sleeps.
    #[must_use]
    pub fn busy_poll(mut self, limit: std::time::Duration) -> Self {
        self.busy_poll = limit.into();
        self
    }

    /// How finely timers are served: deadlines are rounded up to multiples of `granularity`, so that one wake-up
    /// serves those that are close together. Departures held back by pacing or a shaper are not rounded. RFC 6298's
    /// G; otherwise what the [timer](crate::timer::Timer) resolves: 50 µs on Linux, 1 ms elsewhere.
    #[must_use]
    pub fn granularity(mut self, granularity: std::time::Duration) -> Self {
        self.endpoint.granularity = granularity.into();
        self
    }

    /// The stack and the future that drives it, for callers that run it themselves.
    ///
    /// # Errors
    /// If the process has no descriptor left for the timer, or the kernel no random numbers; `InvalidInput` if the
    /// [registry](Self::registry) was given something wrong.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn build(self) -> io::Result<(Stack, Driver)> {
        let Self { device, registry, endpoint, connections, options, scheduler, seed, pacing, busy_poll } =
            self;
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
        let endpoint = Endpoint::new(endpoint, scheduler, seed);
        let waits = Waits { pacing, busy_poll };
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
