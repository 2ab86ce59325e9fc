//! A TCP stack on a device: what an application starts, connects with and listens on.

mod builder;
mod inspect;
mod opening;
mod shards;
mod shared;

pub use crate::shard::driver::Driver;
pub use builder::Builder;
pub use inspect::ConnSnapshot;
pub use shards::Shards;

use crate::device::{Device, DeviceStats};
use crate::info::SchedulerInfo;
use crate::io_error;
use crate::listener::{Parts, TcpListener};
use crate::packets::Packets;
use crate::shard::Anchor;
use crate::shard::hub::Hub;
use crate::shard::state::accepting::AcceptQueue;
use crate::stats::Stats;
use crate::stream::TcpStream;
use crate::udp::{Handle, IncomingUdp, UdpSocket};
use ackline_tcp_core::counters::Counters;
use ackline_tcp_core::events::{PacketObserver, Tracer};
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::{AcceptConfig, ConnConfig, Duration, EndpointConfig, ListenOn, Target};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::AsyncWrite as _;
use tokio::net::{ToSocketAddrs, lookup_host};

/// A handle to a running TCP stack: one host with its addresses, on one device.
///
/// Cloning is cheap. The stack runs as long as a handle, a listener or a stream exists, and then
/// until its connections have closed in the background, for which the tokio runtime must keep
/// running: call [`shutdown`](Self::shutdown) before the program ends.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use ackline_runtime::Stack;
/// use ackline_runtime::device::tun::Tun;
/// use tokio::io::AsyncWriteExt as _;
///
/// let stack = Stack::builder(Tun::open_existing("tun0", true)?).address([10, 0, 0, 2]).spawn()?;
/// let mut stream = stack.connect("10.0.0.1:80").await?;
/// stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stack {
    /// At least one: endpoints, each with its queue of the device and its part of the connections.
    shards: Arc<[Arc<Anchor>]>,
    /// State that shards share, if there are several.
    hub: Option<Arc<Hub>>,
    connect: Arc<ConnConfig>,
}

impl Stack {
    /// Starts building a stack on `device`.
    pub fn builder(device: impl Device + 'static) -> Builder {
        Builder::new(Box::new(device))
    }

    fn new(shards: Arc<[Arc<Anchor>]>, hub: Option<Arc<Hub>>, connect: Arc<ConnConfig>) -> Self {
        Self { shards, hub, connect }
    }

    /// The first shard, which has all that belongs to no connection.
    fn first(&self) -> &Arc<Anchor> {
        &self.shards[0]
    }

    /// The shard to open a connection.
    fn shard_for(&self, to: &Target) -> &Arc<Anchor> {
        let index = self.hub.as_ref().map_or(0, |hub| match to.local_port {
            Some(port) if port != 0 => hub.owner(to.remote, port),
            _ => hub.next(),
        });
        self.shards.get(index).unwrap_or(self.first())
    }

    /// Number of [shards](Builder::shards).
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Connects to `addr` with the stack's default settings. Names are resolved by the system's
    /// resolver on a thread of the runtime, and the addresses are tried in order, as in tokio.
    /// Dropping the future aborts the attempt.
    ///
    /// # Errors
    /// `ConnectionRefused`, `ConnectionReset`, `TimedOut` or `HostUnreachable` if the handshake
    /// fails; `AddrNotAvailable`, `AddrInUse`, `InvalidInput` or `QuotaExceeded` if it cannot
    /// start; `NetworkDown` if the device is gone; `NotConnected` while the stack shuts down. The
    /// error of the last address, or the resolver's.
    pub async fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
        self.connect_with(addr, self.connect.clone()).await
    }

    /// Connects to `addr` with these settings.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        &self,
        addr: impl ToSocketAddrs,
        config: Arc<ConnConfig>,
    ) -> io::Result<TcpStream> {
        self.connect_to_any(addr, config, &[]).await
    }

    /// Connects to the first of the addresses that answers, and sends `data`.
    pub(crate) async fn connect_to_any(
        &self,
        addr: impl ToSocketAddrs,
        config: Arc<ConnConfig>,
        data: &[u8],
    ) -> io::Result<TcpStream> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            match self.connect_to_with_data(addr, config.clone(), data).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(io_error::no_address))
    }

    /// Connects to one address, optionally from a given local address or port.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_to(&self, to: impl Into<Target>, config: Arc<ConnConfig>) -> io::Result<TcpStream> {
        self.connect_to_with_data(to, config, &[]).await
    }

    /// Connects to one address and sends all of `data`: with the SYN as far as it fits there, if
    /// the settings have [`fast_open`](ConnConfig::fast_open) and the server has given this stack a
    /// cookie at an earlier connect (RFC 7413). Returns when the handshake is complete and the rest
    /// of `data` is in the send buffer.
    ///
    /// The server may get what the SYN carries twice, if the network repeats the SYN after the
    /// connection: see [`FastOpen`](ackline_tcp_core::config::FastOpen).
    ///
    /// ```no_run
    /// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
    /// use ackline_tcp_core::config::FastOpen;
    /// use std::net::SocketAddr;
    /// use std::sync::Arc;
    ///
    /// let mut config = (**stack.connections()).clone();
    /// config.fast_open = FastOpen::Client;
    /// let server: SocketAddr = "10.0.0.1:80".parse().unwrap();
    /// let stream = stack.connect_to_with_data(server, Arc::new(config), b"GET / HTTP/1.0\r\n\r\n").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and those of a write.
    pub async fn connect_to_with_data(
        &self,
        to: impl Into<Target>,
        config: Arc<ConnConfig>,
        data: &[u8],
    ) -> io::Result<TcpStream> {
        // In one step: the SYN leaves after it.
        let to = to.into();
        let shard = self.shard_for(&to);
        let (id, written) = shard.act(|state, now, _| state.connect(now, to, config, data))?;
        let mut stream = TcpStream::new(shard.clone(), id)?;
        poll_fn(|cx| stream.poll_connected(cx)).await?;
        let mut rest = data.get(written..).unwrap_or_default();
        while !rest.is_empty() {
            let taken = poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, rest)).await?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(stream)
    }

    /// The default settings of connections.
    #[must_use]
    pub const fn connections(&self) -> &Arc<ConnConfig> {
        &self.connect
    }

    /// Listens, with the stack's default settings for accepted connections. Port 0 picks a free
    /// port; [`TcpListener::local_addr`] returns it.
    ///
    /// # Errors
    /// `AddrInUse` if another listener has the same address and port; `AddrNotAvailable` if the
    /// stack does not have the address; `NetworkDown` if the device is gone; `NotConnected` while
    /// the stack shuts down.
    pub fn listen(&self, on: ListenOn) -> io::Result<TcpListener> {
        self.listen_with(on, AcceptConfig::new(self.connect.clone()))
    }

    /// Listens with these settings for accepted connections.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn listen_with(&self, on: ListenOn, config: AcceptConfig) -> io::Result<TcpListener> {
        let queue = Arc::new(AcceptQueue::default());
        let config = if self.shards.len() > 1 { config.share(self.shards.len()) } else { config };
        let mut parts = Parts::new(queue.clone());
        // The first shard chooses the port, and decides who comes first.
        let mut place = on;
        let mut failed = None;
        for shard in &*self.shards {
            match shard.act(|state, now, _| state.listen(now, place, config.clone(), queue.clone())) {
                Ok((id, chosen)) => {
                    place = chosen;
                    parts.add(shard.clone(), id);
                }
                // One that has stopped does not listen.
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        if let (true, Some(error)) = (parts.is_empty(), failed) {
            return Err(error);
        }
        let on = match (on, place) {
            // The request tells the IP version of "every address".
            (ListenOn::Address(address), ListenOn::Port(port)) => {
                ListenOn::Address(SocketAddr::new(address.ip(), port))
            }
            (_, place) => place,
        };
        Ok(TcpListener::new(parts, on))
    }

    /// Opens a UDP socket. An unspecified address means all of the stack's addresses of that
    /// family; port 0 picks a free port, which [`UdpSocket::local_addr`] returns.
    ///
    /// # Errors
    /// `AddrInUse` if another socket has the address and port, or no port is free;
    /// `AddrNotAvailable` if the stack does not have the address; `NetworkDown` if the device is
    /// gone; `NotConnected` while the stack shuts down.
    pub fn bind_udp(&self, addr: SocketAddr) -> io::Result<UdpSocket> {
        let (id, news) = self.first().act(|state, now, _| state.bind_udp(now, addr))?;
        Ok(UdpSocket::new(Handle::new(self.first().clone(), id, news)))
    }

    /// Takes the UDP datagrams that are for no socket, for any address that the stack answers for
    /// ([`any_address`](Builder::any_address): any at all): one [`UdpFlow`](crate::UdpFlow) per
    /// four-tuple. Their number, their queues and the time that they may be idle are bounded
    /// ([`max_udp_flows`](EndpointConfig::max_udp_flows),
    /// [`udp_recv_buffer`](EndpointConfig::udp_recv_buffer),
    /// [`udp_flow_timeout`](EndpointConfig::udp_flow_timeout)).
    ///
    /// ```no_run
    /// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
    /// let incoming = stack.incoming_udp()?;
    /// loop {
    ///     let flow = incoming.accept().await?;
    ///     tokio::spawn(async move {
    ///         let outside = tokio::net::UdpSocket::bind("0.0.0.0:0").await?;
    ///         outside.connect(flow.local_addr()?).await?;
    ///         let (mut there, mut back) = ([0; 2048], [0; 2048]);
    ///         loop {
    ///             tokio::select! {
    ///                 len = flow.recv(&mut there) => outside.send(&there[..len?]).await?,
    ///                 len = outside.recv(&mut back) => flow.send(&back[..len?]).await?,
    ///             };
    ///         }
    ///         # #[expect(unreachable_code, reason = "names the type of errors")]
    ///         # std::io::Result::Ok(())
    ///     });
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// `AddrInUse` if they are taken already; `NetworkDown` if the device is gone; `NotConnected`
    /// while the stack shuts down.
    pub fn incoming_udp(&self) -> io::Result<IncomingUdp> {
        let arrivals = self.first().act(|state, now, _| state.take_flows(now))?;
        Ok(IncomingUdp::new(self.first().clone(), arrivals))
    }

    /// Takes the packets that the stack does not use itself and would drop, or refuse with an ICMP
    /// error: pings and other ICMP messages for addresses that it answers for in the name of others
    /// ([`any_address`](Builder::any_address)), ICMP messages that concern neither TCP nor UDP, and
    /// other protocols. What waits is bounded ([`packet_buffer`](EndpointConfig::packet_buffer));
    /// the rest is dropped and counted. Its own pings the stack answers as before.
    ///
    /// ```no_run
    /// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
    /// let packets = stack.packets()?;
    /// loop {
    ///     let packet = packets.recv().await?;
    ///     println!("IPv{}, {} bytes", packet[0] >> 4, packet.len());
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// `AddrInUse` if they are taken already; `NetworkDown` if the device is gone; `NotConnected`
    /// while the stack shuts down.
    pub fn packets(&self) -> io::Result<Packets> {
        let arrivals = self.first().act(|state, now, _| state.take_packets(now))?;
        Ok(Packets::new(self.first().clone(), arrivals))
    }

    /// Stops listening and refuses new connections; waits until every connection has been closed by
    /// both sides (TIME-WAIT does not count) and their last packets have left the shaper; after
    /// `within`, resets the rest. Returns true if nothing had to be reset.
    pub async fn shutdown(&self, within: std::time::Duration) -> bool {
        let within = Duration::from(within);
        let end = crate::timer::now() + within;
        for shard in &*self.shards {
            shard.act(|state, now, wakes| state.begin_shutdown(now, within, wakes));
        }
        for shard in &*self.shards {
            poll_fn(|cx| {
                // Inside `act`, so that the alarm gets set.
                let drained = shard.act(|state, _, _| state.poll_drained(cx.waker()));
                if drained { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        crate::timer::now() < end
    }

    /// The settings that the endpoint was made with; its MTU is [that of now](Self::mtu). Of
    /// several [shards](Builder::shards), those of each, which has a [part](EndpointConfig::share)
    /// of what they do not have together.
    #[must_use]
    pub fn config(&self) -> EndpointConfig {
        self.first().lock().endpoint.config().clone()
    }

    /// Largest IP packet that the stack sends, in bytes: the device's MTU, which may change, or
    /// less if configured so.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.shards.iter().map(|shard| shard.lock().endpoint.config().mtu).min().unwrap_or(0)
    }

    /// True if it is one of this host's addresses.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        let state = self.first().lock();
        let config = state.endpoint.config();
        config.any_address || config.addresses.contains(&address)
    }

    /// The core's counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.shards.iter().for_each(|shard| sum.add(shard.lock().endpoint.counters()));
        sum
    }

    /// The device's counters.
    #[must_use]
    pub fn device_stats(&self) -> DeviceStats {
        let mut sum = DeviceStats::default();
        self.shards.iter().for_each(|shard| sum.add(&shard.lock().device.device.stats()));
        sum
    }

    /// The runtime's own measurements, of all shards together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut sum = self.first().lock().stats();
        for shard in self.shards.iter().skip(1) {
            sum.add(&shard.lock().stats());
        }
        sum
    }

    /// The measurements of each shard.
    #[must_use]
    pub fn shard_stats(&self) -> Vec<Stats> {
        self.shards.iter().map(|shard| shard.lock().stats()).collect()
    }

    /// The egress scheduler, and what it shows of itself. With several shards, the first one's.
    #[must_use]
    pub fn scheduler(&self) -> SchedulerInfo {
        SchedulerInfo::of(&self.first().lock().endpoint)
    }

    /// Sets the secret keys of fast open cookies, as
    /// [`Endpoint::set_fast_open_keys`](ackline_tcp_core::Endpoint::set_fast_open_keys).
    pub fn set_fast_open_keys(&self, current: [u8; 16], previous: Option<[u8; 16]>) {
        for shard in &*self.shards {
            shard.lock().endpoint.set_fast_open_keys(current, previous);
        }
    }

    /// Calls `act` with the egress scheduler, to configure it. The stack is locked while it runs:
    /// it must not block, nor use the stack or its streams.
    ///
    /// With several shards: that of all if it had a [rate](Builder::shards) when the stack was
    /// made, otherwise the first shard's. So a rate that is to be changed has to be there from the
    /// beginning, however high.
    pub fn with_scheduler<R>(&self, act: impl FnOnce(&mut dyn EgressScheduler) -> R) -> R {
        let outcome = self.first().act(|state, _, _| act(state.endpoint.scheduler()));
        for shard in self.shards.iter().skip(1) {
            // It asks anew what it may do on the scheduler's behalf.
            shard.act(|state, _, _| {
                state.endpoint.scheduler();
            });
        }
        outcome
    }

    /// Sends trace events to `tracer` from now on; `None` stops tracing. The tracer runs inside the
    /// stack: it must not block or call the stack.
    pub fn set_tracer(&self, tracer: Option<Box<dyn Tracer>>) {
        for (shard, tracer) in self.shards.iter().zip(shared::tracers(tracer, self.shards.len())) {
            shard.lock().endpoint.set_tracer(tracer);
        }
    }

    /// Shows every packet that the device carries to `observer` from now on; `None` stops it. The
    /// observer runs inside the stack: it must not block or call the stack.
    /// [`timer::now`](crate::timer::now) is the clock of the instants.
    pub fn set_observer(&self, observer: Option<Box<dyn PacketObserver>>) {
        for (shard, observer) in self.shards.iter().zip(shared::observers(observer, self.shards.len())) {
            shard.lock().device.observer = observer;
        }
    }
}
