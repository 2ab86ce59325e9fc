//! Setting up a stack.

use super::{Driver, Shards, Stack};
use crate::device::Device;
use crate::pacing::Pacing;
use crate::platform::memory;
use crate::platform::random;
use crate::shard::backlog::DEFAULT_BACKLOG_TIME;
use crate::shard::hub::{Hub, HubPort};
use crate::shard::state::Waits;
use crate::shard::turns::DEFAULT_TURN;
use crate::shard::{Host, Shard, egress};
use crate::timer::{self, Timer};
use ackline_registry::{Options, Registry};
use ackline_tcp_core::policy::sched::Bypass;
use ackline_tcp_core::policy::{EgressScheduler, NewEgressScheduler, SpecError};
use ackline_tcp_core::steering::{MAX_SHARDS, Steering};
use ackline_tcp_core::wire::TxChecksumMode;
use ackline_tcp_core::{ConnConfig, Duration, Endpoint, EndpointConfig, endpoint};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

/// Added to the two round trips before a tail loss probe: a peer that waits for a processor delays
/// its ACKs by this much, and on a path of a few microseconds each such delay would be taken for a
/// loss.
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// Settings of a [`Stack`] before it starts.
///
/// By default, connections and scheduler are those of [`Registry::default`]: a Linux-like host.
pub struct Builder {
    device: Box<dyn Device>,
    /// Further queues of it.
    queues: Vec<Box<dyn Device>>,
    shards: Shards,
    /// Where the drivers of the shards run.
    runtimes: Vec<Handle>,
    registry: Registry,
    endpoint: EndpointConfig,
    /// As given, before options are applied.
    connections: Arc<ConnConfig>,
    options: Options,
    scheduler: Scheduler,
    seed: Option<[u8; 32]>,
    pacing: Pacing,
    busy_poll: Duration,
    turn: usize,
    backlog_time: Duration,
}

/// Where the egress schedulers come from.
enum Scheduler {
    /// It makes one for each shard, or one for all.
    Made(Arc<NewEgressScheduler>),
    /// The only one.
    Given(Box<dyn EgressScheduler>),
}

impl Scheduler {
    /// Each shard's.
    fn for_shards(self, shards: usize, hub: Option<&Arc<Hub>>) -> Vec<Box<dyn EgressScheduler>> {
        let one = match self {
            Self::Given(one) => one,
            Self::Made(make) => match make() {
                // It has a rate, or a queue, for the host.
                one if one.properties().bypass == Bypass::Never => one,
                first => return std::iter::once(first).chain((1..shards).map(|_| make())).collect(),
            },
        };
        match hub {
            Some(hub) => egress::for_all(one, hub),
            None => vec![one],
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("endpoint", &self.endpoint)
            .field("connections", &self.connections)
            .field("options", &self.options)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// MTU, super-packets and checksums from the device, a memory budget from the machine; no
    /// address.
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
            queues: Vec::new(),
            shards: Shards::One,
            runtimes: Vec::new(),
            endpoint,
            connections: Arc::new(registry.conn_config()),
            options: Options::default(),
            scheduler: Scheduler::Made(registry.scheduler()),
            registry,
            seed: None,
            pacing: Pacing::default(),
            busy_poll: Duration::ZERO,
            turn: DEFAULT_TURN,
            backlog_time: DEFAULT_BACKLOG_TIME,
        }
    }

    /// Sets the policies that [`options`](Self::options) can name, and their defaults, which
    /// replace connections and scheduler: call this first.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.scheduler = Scheduler::Made(registry.scheduler());
        self = self.connections(registry.conn_config());
        self.registry = registry;
        self
    }

    /// Changes settings of connections and host by name: `cc=cubic:beta=0.8,sack=off,ttl=32`. The
    /// keys are those of [`Registry::options`]; `ackline list conn` and `ackline list host` print
    /// them.
    ///
    /// # Errors
    /// What is wrong with a key or value, and what would be right.
    pub fn options(mut self, text: &str) -> Result<Self, SpecError> {
        let options = self.registry.options(text)?;
        self.endpoint = options.host(&self.endpoint)?;
        if let Some(make) = options.sched() {
            self.scheduler = Scheduler::Made(make.clone());
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

    /// Sets the settings of opened and accepted connections. They replace earlier
    /// [`options`](Self::options).
    #[must_use]
    pub fn connections(mut self, config: impl Into<Arc<ConnConfig>>) -> Self {
        self.connections = config.into();
        self.options = Options::default();
        self
    }

    /// Sets the egress scheduler; with several [`shards`](Self::shards), that of all.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Box<dyn EgressScheduler>) -> Self {
        self.scheduler = Scheduler::Given(scheduler);
        self
    }

    /// Sets what makes the egress scheduler of each [shard](Self::shards).
    #[must_use]
    pub fn schedulers(mut self, make: Arc<NewEgressScheduler>) -> Self {
        self.scheduler = Scheduler::Made(make);
        self
    }

    /// Divides the stack into shards: each is an endpoint with a driver, and a queue of the device,
    /// of its own, so that several processors work at once. A connection lives on one shard, which
    /// a hash of its addresses and ports decides. Packets that come to another shard's queue are
    /// handed over. Listeners, limits, counters and addresses are those of the stack.
    ///
    /// The device opens its further queues ([`Device::open_queue`]), unless they are given by
    /// [`queue`](Self::queue): a TUN device that was made with `multi_queue`, or an Ethernet
    /// device. UDP, pings and other protocols are the first shard's. `max_connections`,
    /// `max_memory` and the other limits of [`EndpointConfig`] hold for all shards
    /// [together](ackline_tcp_core::endpoint::Host); what one source may have, and tables of what
    /// is known of other hosts, are divided ([`EndpointConfig::share`]).
    ///
    /// An egress scheduler with a rate, or one that is [given](Self::scheduler), is one for all
    /// shards: its rate, its queue and its order hold for the host. The shards take turns at its
    /// lock, for each packet. Otherwise each shard has one, in front of its own queue of the
    /// device.
    ///
    /// [`spawn`](Self::spawn) runs the first shard's driver on the current runtime, and the others
    /// on threads of their own, unless [`runtimes`](Self::runtimes) says where. Default: one shard.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ackline_runtime::Stack;
    /// use ackline_runtime::device::tun::{Tun, TunConfig};
    /// use ackline_runtime::stack::Shards;
    /// use ackline_tcp_core::ListenOn;
    ///
    /// let tun = Tun::create(&TunConfig::new().multi_queue())?;
    /// let stack = Stack::builder(tun).address([10, 0, 0, 2]).shards(Shards::Auto).spawn()?;
    /// let listener = stack.listen(ListenOn::Port(80))?;
    /// loop {
    ///     let (stream, _) = listener.accept().await?;
    ///     // Beside the connection's driver, so that nothing crosses threads.
    ///     stream.runtime().clone().spawn(async move { /* serve it */ drop(stream) });
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn shards(mut self, shards: impl Into<Shards>) -> Self {
        self.shards = shards.into();
        self
    }

    /// Adds a queue of the device, for a shard of its own. All queues lead to the same network, and
    /// have the same capabilities. It must have been opened within the runtime that drives it.
    #[must_use]
    pub fn queue(mut self, device: impl Device + 'static) -> Self {
        self.queues.push(Box::new(device));
        self
    }

    /// Sets where the drivers of the shards run: the first shard's on the first of `runtimes`, and
    /// so on, beginning anew if there are fewer. A runtime of one thread serves a shard best, and
    /// what the connections of the shard exchange with the program is cheapest on the
    /// [same](crate::TcpStream::runtime).
    #[must_use]
    pub fn runtimes(mut self, runtimes: impl IntoIterator<Item = Handle>) -> Self {
        self.runtimes = runtimes.into_iter().collect();
        self
    }

    /// Sets the seed of initial sequence numbers, ports and hashes; default: random numbers from
    /// the kernel. A known seed lets peers guess sequence numbers.
    #[must_use]
    pub fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how the driver waits for departures held back by pacing or a shaper; default: it
    /// sleeps. Also sets [`EndpointConfig::departure_tick`], within which departures are treated as
    /// one: the resolution of the [timer](crate::timer::Timer) if it sleeps (50 µs on Linux, 1 ms
    /// elsewhere), 5 µs if it spins.
    #[must_use]
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self.endpoint.departure_tick = pacing.tick();
        self
    }

    /// Busy polling: for `limit` after the last packet sent or received, the driver polls the
    /// device between other tasks of the runtime instead of sleeping. The next packet then costs no
    /// wake-up, which takes some tens of microseconds if the processor is idle, and the kernel does
    /// not have to wake anyone to deliver it. The processor is busy meanwhile, so give the
    /// runtime's thread one of its own; an idle stack sleeps after `limit`. Like Linux's
    /// `SO_BUSY_POLL`, which counts from the start of the wait instead. Zero, the default: always
    /// sleep.
    #[must_use]
    pub fn busy_poll(mut self, limit: std::time::Duration) -> Self {
        self.busy_poll = limit.into();
        self
    }

    /// Sets how many bytes applications may write and read before the driver runs again: the
    /// connections that are busy share them, and each has at least 64 KiB of them, or `bytes` if
    /// that is less. An operation of a connection whose share is used up waits for a later turn of
    /// the driver ([`turn_waits`](crate::stats::Stats::turn_waits)), so that packets are received
    /// and other tasks run meanwhile. [`try_read`](crate::TcpStream::try_read) and
    /// [`try_write`](crate::TcpStream::try_write) never wait, but the readiness that is awaited
    /// before them does. Default: 1 MiB. At least 1; `usize::MAX`: no limit but tokio's, of 128
    /// operations.
    #[must_use]
    pub fn turn(mut self, bytes: usize) -> Self {
        self.turn = bytes.max(1);
        self
    }

    /// Sets how long the driver must not have found the device empty for what waits there to count
    /// as a backlog ([`device_backlogs`](crate::stats::Stats::device_backlogs)). Then this host is
    /// the bottleneck, and receive windows do not grow but shrink towards three super-packets
    /// (196,605 bytes): larger ones would lengthen the device's queue until it overflows, and the
    /// connections that lost packets would wait for their timers while others go on. Buffers that
    /// the application has set stay. Default: 1 ms. The longest duration: never.
    #[must_use]
    pub fn backlog_time(mut self, time: std::time::Duration) -> Self {
        self.backlog_time = time.into();
        self
    }

    /// Sets the timer granularity (G of RFC 6298): deadlines are rounded up to multiples of
    /// `granularity`, so that one wake-up serves several. Departures held back by pacing or a
    /// shaper are not rounded. Default: the resolution of the [timer](crate::timer::Timer), 50 µs
    /// on Linux, 1 ms elsewhere.
    #[must_use]
    pub fn granularity(mut self, granularity: std::time::Duration) -> Self {
        self.endpoint.granularity = granularity.into();
        self
    }

    /// Returns the stack and the future that drives it, for callers that run it themselves.
    ///
    /// # Errors
    /// If the process has no descriptor left for the timer, or the kernel no random numbers;
    /// `InvalidInput` if an entry of the [registry](Self::registry) is invalid, or there are
    /// several [shards](Self::shards).
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn build(self) -> io::Result<(Stack, Driver)> {
        let (stack, mut drivers) = self.build_shards()?;
        match (drivers.pop(), drivers.is_empty()) {
            (Some(driver), true) => Ok((stack, driver)),
            _ => Err(invalid("several shards have several drivers: build_shards returns them")),
        }
    }

    /// Returns the stack and the futures that drive it, one for each shard, for callers that run
    /// them themselves. Each has to be polled until it ends, on the runtime that
    /// [`runtimes`](Self::runtimes) names, or else on this one.
    ///
    /// # Errors
    /// If the process has no descriptor left for a timer or queue, or the kernel no random numbers;
    /// `Unsupported` if the device has too few queues; `InvalidInput` if an entry of the
    /// [registry](Self::registry) is invalid, or [`shards`](Self::shards) cannot be.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn build_shards(mut self) -> io::Result<(Stack, Vec<Driver>)> {
        if self.runtimes.is_empty() {
            self.runtimes.push(Handle::current());
        }
        let (stack, drivers, _) = self.assemble()?;
        Ok((stack, drivers.into_iter().map(|(driver, ..)| driver).collect()))
    }

    /// Starts the stack: on the [given](Self::runtimes) runtimes, or else on the current one and,
    /// for further [shards](Self::shards), threads of their own. These end when the last handle of
    /// the stack is dropped and its connections have closed.
    ///
    /// # Errors
    /// As [`build_shards`](Self::build_shards); or if a thread cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn spawn(self) -> io::Result<Stack> {
        let (stack, drivers, end) = self.assemble()?;
        for (index, (driver, runtime, own)) in drivers.into_iter().enumerate() {
            let task = runtime.spawn(driver);
            if let Some(own) = own {
                let mut end = end.clone();
                let work = move || {
                    own.run(async {
                        // However it ended: it has told all handles. Then the program's tasks on
                        // this thread may go on until they have dropped theirs.
                        let _ = task.await;
                        while end.changed().await.is_ok() {}
                    });
                };
                thread::Builder::new().name(format!("ackline-{index}")).spawn(work)?;
            }
        }
        Ok(stack)
    }

    /// How many shards there will be; opens the missing queues. Each with where it runs.
    fn open_queues(&mut self) -> io::Result<Vec<Option<OwnRuntime>>> {
        let given = 1 + self.queues.len();
        let wanted = match self.shards {
            Shards::Fixed(0) => return Err(invalid("a stack needs at least one shard")),
            Shards::Fixed(shards) => shards.max(given),
            Shards::One => given,
            Shards::Auto => thread::available_parallelism().map_or(1, usize::from).min(MAX_SHARDS).max(given),
        };
        if wanted > MAX_SHARDS {
            return Err(invalid(format!("{wanted} shards are too many: at most {MAX_SHARDS}")));
        }
        let mut own = vec![None];
        for index in 1..wanted {
            let runtime = if self.runtimes.is_empty() { Some(OwnRuntime::new()?) } else { None };
            if index >= given {
                let handle =
                    runtime.as_ref().map_or_else(|| self.runtime_of(index), |own| own.handle.clone());
                let _within = handle.enter();
                match self.device.open_queue() {
                    Ok(queue) => self.queues.push(queue),
                    Err(error)
                        if error.kind() == io::ErrorKind::Unsupported && self.shards == Shards::Auto =>
                    {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            own.push(runtime);
        }
        Ok(own)
    }

    /// The runtime that drives a shard, unless it has a thread of its own.
    fn runtime_of(&self, shard: usize) -> Handle {
        let given = self.runtimes.len().max(1);
        self.runtimes.get(shard % given).cloned().unwrap_or_else(Handle::current)
    }

    /// Makes the shards, each with its driver and where that runs; and what tells when the last
    /// handle is dropped.
    #[expect(clippy::type_complexity, reason = "of two callers")]
    fn assemble(
        mut self,
    ) -> io::Result<(Stack, Vec<(Driver, Handle, Option<OwnRuntime>)>, watch::Receiver<()>)> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        self.registry.check().map_err(wrong)?;
        let connections = if self.options.is_empty() {
            self.connections.clone()
        } else {
            Arc::new(self.options.conn(&self.connections).map_err(wrong)?)
        };
        let seed = match self.seed {
            Some(seed) => seed,
            None => random::seed()?,
        };
        let owned = self.open_queues()?;
        let count = owned.len();
        let mut places = Vec::with_capacity(count);
        for (index, own) in owned.into_iter().enumerate() {
            let runtime = own.as_ref().map_or_else(|| self.runtime_of(index), |own| own.handle.clone());
            let _within = runtime.enter();
            places.push((Timer::new()?, runtime.clone(), own));
        }
        let Self {
            mut device, queues, mut endpoint, scheduler, pacing, busy_poll, turn, backlog_time, ..
        } = self;
        if let Some(ports) = device.local_ports() {
            endpoint.ephemeral_ports = ports;
        }
        let steering = Steering::new(count, &seed);
        if count > 1 {
            device.steer(&steering)?;
        }
        let hub = (count > 1).then(|| Arc::new(Hub::new(steering)));
        let schedulers = scheduler.for_shards(count, hub.as_ref());
        let waits = Waits { pacing, busy_poll, turn, backlog_time };
        let config = Arc::new(endpoint);
        let host = endpoint::Host::new(&config, steering);
        let (mut shards, mut runtimes, mut drivers) = (Vec::new(), Vec::new(), Vec::new());
        let devices = std::iter::once(device).chain(queues);
        for (index, (((timer, runtime, own), device), scheduler)) in
            places.into_iter().zip(devices).zip(schedulers).enumerate()
        {
            let limits = if count > 1 { config.share(count) } else { (*config).clone() };
            let mut endpoint = Endpoint::new(limits, scheduler, seed);
            let hub_port = hub.clone().map(|hub| HubPort::new(hub, index));
            if hub_port.is_some() {
                endpoint.join(&host, index);
            }
            let shard = Arc::new(Shard::new(endpoint, device, timer, waits, hub_port));
            shards.push(shard.clone());
            runtimes.push(runtime.clone());
            drivers.push((Driver::new(shard), runtime, own));
        }
        let (end, ended) = watch::channel(());
        let anchors = Host::anchors(shards, runtimes, end);
        Ok((Stack::new(anchors.into(), hub, connections), drivers, ended))
    }
}

/// The runtime of a shard's own thread.
struct OwnRuntime {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Runs `work`, and what has been spawned, on this thread.
    fn run(mut self, work: impl Future<Output = ()>) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(work);
        }
    }
}

impl Drop for OwnRuntime {
    /// A stack that was not started is dropped within another runtime, where nobody may wait.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}
