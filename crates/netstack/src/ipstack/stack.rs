//! The stack, and what is accepted from it.

use super::config::{IpStackConfig, TcpOptions};
use super::error::{IpStackError, Result};
use super::tcp::IpStackTcpStream;
use super::udp::IpStackUdpStream;
use super::unknown::IpStackUnknownTransport;
use crate::accept::poll_connection;
use crate::io_device::IoDevice;
use crate::queue::{Receiver, queue};
use ackline_registry::Registry;
use ackline_runtime::stack::Driver;
use ackline_runtime::{IncomingUdp, Packets, Stack, TcpListener};
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// Reads of the device that are no IP packets and wait to be accepted; more are lost.
const UNKNOWN: usize = 64;

/// A stack over a device. Dropping it ends it, with all that has been accepted.
pub struct IpStack {
    /// Without it the stack could not be made.
    parts: io::Result<Parts>,
}

impl fmt::Debug for IpStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpStack").finish_non_exhaustive()
    }
}

/// Where what is accepted comes from.
struct Parts {
    listener: TcpListener,
    flows: IncomingUdp,
    packets: Arc<Packets>,
    unknown: Receiver<Vec<u8>>,
    /// Which of these is asked first, so that none keeps the others waiting.
    turn: usize,
    mtu: u16,
    tcp_timeout: Duration,
    driver: AbortHandle,
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl IpStack {
    /// Starts a stack that answers for every address, on `device`: one read is one IP packet, and
    /// so is one write. If that fails, [`accept`](Self::accept) says why.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) and time enabled.
    pub fn new<Device>(config: IpStackConfig, device: Device) -> Self
    where
        Device: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self { parts: Parts::start(&config, device) }
    }

    /// The next connection, flow or packet.
    ///
    /// # Errors
    /// [`IpStackError::AcceptError`] when the device is gone; [`IpStackError::IoError`] if the stack
    /// could not be started.
    pub async fn accept(&mut self) -> Result<IpStackStream> {
        match &mut self.parts {
            Ok(parts) => poll_fn(|cx| parts.poll_accept(cx)).await,
            Err(error) => Err(io::Error::new(error.kind(), error.to_string()).into()),
        }
    }
}

impl Parts {
    fn start<Device>(config: &IpStackConfig, device: Device) -> io::Result<Self>
    where
        Device: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, unknown) = queue(UNKNOWN);
        let device = IoDevice::new(device, config.mtu.into(), config.packet_information, sender);
        let (stack, driver) = build(config, device)?;
        Ok(Self {
            listener: stack.listen(ListenOn::Any)?,
            flows: stack.incoming_udp()?,
            packets: Arc::new(stack.packets()?),
            unknown,
            turn: 0,
            mtu: config.mtu,
            tcp_timeout: config.tcp_config.timeout,
            driver: tokio::spawn(driver).abort_handle(),
        })
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Result<IpStackStream>> {
        self.turn = self.turn.wrapping_add(1);
        for step in 0..4 {
            let next = match self.turn.wrapping_add(step) % 4 {
                0 => self.poll_connection(cx),
                1 => self.poll_flow(cx),
                2 => self.poll_packet(cx),
                _ => match self.unknown.poll_next(cx) {
                    Poll::Ready(Some(packet)) => Poll::Ready(Ok(IpStackStream::UnknownNetwork(packet))),
                    // The others say that the device is gone.
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                },
            };
            if let Poll::Ready(next) = next {
                return Poll::Ready(next.map_err(|_| IpStackError::AcceptError));
            }
        }
        Poll::Pending
    }

    fn poll_connection(&self, cx: &mut Context<'_>) -> Poll<io::Result<IpStackStream>> {
        let (stream, client, destination) = ready!(poll_connection(&self.listener, cx))?;
        let stream = IpStackTcpStream::new(stream, client, destination, self.tcp_timeout);
        Poll::Ready(Ok(IpStackStream::Tcp(stream)))
    }

    fn poll_flow(&self, cx: &mut Context<'_>) -> Poll<io::Result<IpStackStream>> {
        loop {
            let flow = ready!(self.flows.poll_accept(cx))?;
            // One that has ended meanwhile has no address any more.
            if let Ok(flow) = IpStackUdpStream::new(flow) {
                return Poll::Ready(Ok(IpStackStream::Udp(flow)));
            }
        }
    }

    fn poll_packet(&self, cx: &mut Context<'_>) -> Poll<io::Result<IpStackStream>> {
        loop {
            let packet = ready!(self.packets.poll_recv(cx))?;
            if let Some(packet) = IpStackUnknownTransport::new(packet, self.mtu, self.packets.clone()) {
                return Poll::Ready(Ok(IpStackStream::UnknownTransport(packet)));
            }
        }
    }
}

/// Makes the stack.
fn build(
    config: &IpStackConfig,
    device: impl ackline_runtime::Device + 'static,
) -> io::Result<(Stack, Driver)> {
    let udp_timeout = config.udp_timeout.into();
    let builder = Stack::builder(device).any_address().connections(connections(config)).configure(|host| {
        host.udp_flow_timeout = udp_timeout;
        host.udp_dns_timeout = udp_timeout;
    });
    let builder = builder.options(&config.tcp_config.settings);
    builder.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?.build()
}

/// The settings of connections.
fn connections(config: &IpStackConfig) -> ConnConfig {
    let tcp = &config.tcp_config;
    let mut conn = Registry::default().conn_config();
    conn.time_wait = tcp.two_msl.into();
    conn.initial_rto = tcp.rto.into();
    if tcp.max_unacked_bytes > 0 {
        conn.send_buffer = tcp.max_unacked_bytes;
    }
    if tcp.read_buffer_size > 0 {
        conn.recv_buffer = u32::try_from(tcp.read_buffer_size).unwrap_or(u32::MAX);
    }
    for option in tcp.options.iter().flatten() {
        match option {
            TcpOptions::MaximumSegmentSize(mss) => conn.mss = Some(*mss),
        }
    }
    conn
}

/// What has been accepted.
#[derive(Debug)]
pub enum IpStackStream {
    /// A connection.
    Tcp(IpStackTcpStream),
    /// The datagrams of one client to one address and port.
    Udp(IpStackUdpStream),
    /// A packet with another protocol: ICMP, or one that the stack does not know.
    UnknownTransport(IpStackUnknownTransport),
    /// What the device has read that is no IP packet.
    UnknownNetwork(Vec<u8>),
}

impl IpStackStream {
    /// The client, which is on this side of the tunnel. Without a port: port 0; without an address:
    /// 0.0.0.0.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Udp(flow) => flow.local_addr(),
            Self::UnknownTransport(packet) => SocketAddr::new(packet.src_addr(), 0),
            Self::UnknownNetwork(_) => NOWHERE,
        }
    }

    /// Where the client wants to go, likewise.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Tcp(stream) => stream.peer_addr(),
            Self::Udp(flow) => flow.peer_addr(),
            Self::UnknownTransport(packet) => SocketAddr::new(packet.dst_addr(), 0),
            Self::UnknownNetwork(_) => NOWHERE,
        }
    }
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
