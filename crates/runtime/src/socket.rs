//! A connection or listener before it is opened.

use crate::listener::TcpListener;
use crate::stack::Stack;
use crate::stream::{TcpStream, check_family, check_keepalive, dscp_of_tos, ttl_of};
use ackline_tcp_core::config::{FastOpen, KeepAlive, MAX_BUFFER, MIN_BUFFER, Nagle};
use ackline_tcp_core::{AcceptConfig, ConnConfig, ListenOn, Target};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A socket of a [`Stack`] that has not connected or listened yet: set options and addresses, then
/// [`connect`](Self::connect) or [`listen`](Self::listen). It starts with the stack's default
/// settings.
///
/// Its methods are those of [`tokio::net::TcpSocket`], and more; [what
/// differs](crate#parity-with-tokionet).
///
/// ```no_run
/// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
/// use ackline_runtime::TcpSocket;
///
/// let socket = TcpSocket::new_v4(stack)?;
/// socket.set_nodelay(true)?;
/// socket.set_recv_buffer_size(16 << 20)?;
/// socket.bind("10.0.0.2:0".parse().unwrap())?;
/// let stream = socket.connect("10.0.0.1:80".parse().unwrap()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    stack: Stack,
    ipv4: bool,
    setup: Mutex<Setup>,
}

#[derive(Debug)]
struct Setup {
    conn: ConnConfig,
    linger: Option<Duration>,
    /// The bound address.
    local: Option<SocketAddr>,
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    /// None.
    pub fn new_v4(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, true))
    }

    /// A socket for IPv6.
    ///
    /// # Errors
    /// None.
    pub fn new_v6(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, false))
    }

    fn new(stack: &Stack, ipv4: bool) -> Self {
        let conn = (**stack.connections()).clone();
        Self { stack: stack.clone(), ipv4, setup: Mutex::new(Setup { conn, linger: None, local: None }) }
    }

    fn setup(&self) -> MutexGuard<'_, Setup> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes any setting of the connection.
    pub fn configure(&self, change: impl FnOnce(&mut ConnConfig)) {
        change(&mut self.setup().conn);
    }

    /// As [`TcpStream::nodelay`].
    ///
    /// # Errors
    /// None.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.setup().conn.nagle == Nagle::Off)
    }

    /// As [`TcpStream::set_nodelay`].
    ///
    /// # Errors
    /// None.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        if on != self.nodelay()? {
            self.setup().conn.nagle = if on { Nagle::Off } else { Nagle::default() };
        }
        Ok(())
    }

    /// As [`TcpStream::keepalive`].
    ///
    /// # Errors
    /// None.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.setup().conn.keep_alive.is_some())
    }

    /// As [`TcpStream::set_keepalive`].
    ///
    /// # Errors
    /// None.
    pub fn set_keepalive(&self, on: bool) -> io::Result<()> {
        let times = &mut self.setup().conn.keep_alive;
        *times = on.then(|| times.unwrap_or_default());
        Ok(())
    }

    /// As [`TcpStream::tcp_keepalive`].
    ///
    /// # Errors
    /// None.
    pub fn tcp_keepalive(&self) -> io::Result<Option<KeepAlive>> {
        Ok(self.setup().conn.keep_alive)
    }

    /// As [`TcpStream::set_tcp_keepalive`].
    ///
    /// # Errors
    /// `InvalidInput` if one of the times is zero.
    pub fn set_tcp_keepalive(&self, times: &KeepAlive) -> io::Result<()> {
        check_keepalive(times)?;
        self.setup().conn.keep_alive = Some(*times);
        Ok(())
    }

    /// As [`TcpStream::tcp_user_timeout`].
    ///
    /// # Errors
    /// None.
    pub fn tcp_user_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.setup().conn.user_timeout.map(Duration::from))
    }

    /// As [`TcpStream::set_tcp_user_timeout`].
    ///
    /// # Errors
    /// None.
    pub fn set_tcp_user_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.setup().conn.user_timeout = limit.map(Into::into);
        Ok(())
    }

    /// The limit of the send buffer in bytes: `SO_SNDBUF`.
    ///
    /// # Errors
    /// None.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(self.setup().conn.send_buffer)
    }

    /// Sets the limit of the send buffer in bytes, from 2,048 to 2^30. As in the kernel, a size
    /// that is set does not follow the congestion window.
    ///
    /// # Errors
    /// None.
    pub fn set_send_buffer_size(&self, bytes: u32) -> io::Result<()> {
        let conn = &mut self.setup().conn;
        conn.send_buffer = bytes.clamp(MIN_BUFFER, MAX_BUFFER);
        conn.min_send_buffer = None;
        Ok(())
    }

    /// As [`TcpStream::notsent_lowat`].
    ///
    /// # Errors
    /// None.
    pub fn notsent_lowat(&self) -> io::Result<Option<u32>> {
        Ok(self.setup().conn.notsent_lowat)
    }

    /// As [`TcpStream::set_notsent_lowat`].
    ///
    /// # Errors
    /// None.
    pub fn set_notsent_lowat(&self, bytes: Option<u32>) -> io::Result<()> {
        self.setup().conn.notsent_lowat = bytes;
        Ok(())
    }

    /// The limit of the receive buffer in bytes: `SO_RCVBUF`.
    ///
    /// # Errors
    /// None.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(self.setup().conn.recv_buffer)
    }

    /// Sets the limit of the receive buffer in bytes, from 2,048 to 2^30. As in the kernel, a size
    /// that is set is not auto-tuned: the whole buffer is offered as window from the start.
    ///
    /// # Errors
    /// None.
    pub fn set_recv_buffer_size(&self, bytes: u32) -> io::Result<()> {
        let conn = &mut self.setup().conn;
        conn.recv_buffer = bytes.clamp(MIN_BUFFER, MAX_BUFFER);
        conn.initial_recv_window = None;
        Ok(())
    }

    /// As [`TcpStream::linger`].
    ///
    /// # Errors
    /// None.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.setup().linger)
    }

    /// As [`TcpStream::set_linger`], for the connection or for all accepted connections.
    ///
    /// # Errors
    /// None.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.setup().linger = linger;
        Ok(())
    }

    /// As [`TcpStream::set_zero_linger`].
    ///
    /// # Errors
    /// None.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// As [`TcpStream::ttl`].
    ///
    /// # Errors
    /// None.
    pub fn ttl(&self) -> io::Result<u32> {
        let own = self.setup().conn.ttl;
        Ok(own.unwrap_or_else(|| self.stack.config().default_ttl).into())
    }

    /// As [`TcpStream::set_ttl`].
    ///
    /// # Errors
    /// `InvalidInput` for a number that is not from 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.setup().conn.ttl = Some(ttl_of(ttl)?);
        Ok(())
    }

    /// As [`TcpStream::tos_v4`].
    ///
    /// # Errors
    /// `Unsupported` over IPv6.
    pub fn tos_v4(&self) -> io::Result<u32> {
        check_family(self.ipv4, true)?;
        Ok(u32::from(self.setup().conn.dscp) << 2)
    }

    /// As [`TcpStream::set_tos_v4`].
    ///
    /// # Errors
    /// `InvalidInput` above 255; `Unsupported` over IPv6.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        check_family(self.ipv4, true)?;
        self.setup().conn.dscp = dscp_of_tos(tos)?;
        Ok(())
    }

    /// As [`TcpStream::tclass_v6`].
    ///
    /// # Errors
    /// `Unsupported` over IPv4.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        check_family(self.ipv4, false)?;
        Ok(u32::from(self.setup().conn.dscp) << 2)
    }

    /// As [`TcpStream::set_tclass_v6`].
    ///
    /// # Errors
    /// `InvalidInput` above 255; `Unsupported` over IPv4.
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        check_family(self.ipv4, false)?;
        self.setup().conn.dscp = dscp_of_tos(tclass)?;
        Ok(())
    }

    /// Always true: connections that have ended never block a listener.
    ///
    /// # Errors
    /// None.
    pub const fn reuseaddr(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// `SO_REUSEADDR` is always on.
    ///
    /// # Errors
    /// `Unsupported` for `false`.
    pub fn set_reuseaddr(&self, on: bool) -> io::Result<()> {
        if on { Ok(()) } else { Err(io::Error::new(ErrorKind::Unsupported, "addresses are always reused")) }
    }

    /// Sets the local address. It is only taken when the socket connects or listens; port 0 is
    /// resolved then, too.
    ///
    /// # Errors
    /// `InvalidInput` if the socket is already bound, or for an address of the other IP version;
    /// `AddrNotAvailable` if the stack does not have the address.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        if addr.is_ipv4() != self.ipv4 {
            return Err(io::Error::new(ErrorKind::InvalidInput, "an address of the other IP version"));
        }
        if !addr.ip().is_unspecified() && !self.stack.has_address(addr.ip()) {
            return Err(io::Error::new(ErrorKind::AddrNotAvailable, "the address is not one of the stack's"));
        }
        let local = &mut self.setup().local;
        if local.is_some() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the socket is bound already"));
        }
        *local = Some(addr);
        Ok(())
    }

    /// The bound address; the unspecified address before that.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.setup().local.unwrap_or_else(|| self.anywhere()))
    }

    /// Always `None`: no error can have occurred yet.
    ///
    /// # Errors
    /// None.
    pub const fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Use of TCP Fast Open.
    ///
    /// # Errors
    /// None.
    pub fn fast_open(&self) -> io::Result<FastOpen> {
        Ok(self.setup().conn.fast_open)
    }

    /// Sets what is done with TCP Fast Open (RFC 7413): `Client` for
    /// [`connect_with_data`](Self::connect_with_data), `Server` for [`listen`](Self::listen), which
    /// then accepts connections whose handshake is not complete, with the data of their SYN.
    /// `TCP_FASTOPEN_CONNECT` and `TCP_FASTOPEN`.
    ///
    /// # Errors
    /// None.
    pub fn set_fast_open(&self, mode: FastOpen) -> io::Result<()> {
        self.setup().conn.fast_open = mode;
        Ok(())
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`Stack::connect`].
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        self.connect_with_data(addr, &[]).await
    }

    /// Connects and sends all of `data`, as [`Stack::connect_to_with_data`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect_with_data(self, addr: SocketAddr, data: &[u8]) -> io::Result<TcpStream> {
        let Self { stack, setup, .. } = self;
        let Setup { conn, linger, local } = setup.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut to = Target::new(addr);
        if let Some(local) = local {
            to.local_address = Some(local.ip()).filter(|address| !address.is_unspecified());
            to.local_port = Some(local.port()).filter(|port| *port != 0);
        }
        let stream = stack.connect_to_with_data(to, Arc::new(conn), data).await?;
        stream.set_linger(linger)?;
        Ok(stream)
    }

    /// Listens, with a backlog of at most `backlog` connections.
    ///
    /// # Errors
    /// As [`Stack::listen`].
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let on = ListenOn::Address(self.local_addr()?);
        let Self { stack, setup, .. } = self;
        let Setup { conn, linger, .. } = setup.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut accept = AcceptConfig::new(Arc::new(conn));
        accept.backlog = backlog.max(1);
        Ok(stack.listen_with(on, accept)?.lingering(linger.map(Into::into)))
    }

    /// The unspecified address.
    fn anywhere(&self) -> SocketAddr {
        let address =
            if self.ipv4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        SocketAddr::new(address, 0)
    }
}
