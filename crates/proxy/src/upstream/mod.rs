//! Upstreams: servers that carry connections and flows on.

mod http;
mod socks5;
mod url;

pub use url::{Server, UrlError, without_credentials};

use crate::dns::framed::Framed;
use crate::outside::{Inward, Origin, Socket, Stream, WayOut};
use crate::target::{Protocol, Target};
use rustix::io::Errno;
use socks5::Association;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::timeout;

/// Carries connections and flows to their destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Sockets of the kernel, straight to the address.
    Direct,
    /// A server of SOCKS5 (RFC 1928): connections, and flows by UDP ASSOCIATE.
    Socks5(Server),
    /// An HTTP proxy: connections by CONNECT (RFC 9110, section 9.3.6). It carries no flows.
    Http(Server),
}

/// Room for what an upstream puts before a datagram.
pub(crate) const HEADER: usize = 300;

/// A connection to the destination.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    /// Data that the destination has sent already.
    pub(crate) early: Vec<u8>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The port is closed.
    #[error("the destination refused")]
    Refused,
    /// No way leads there, or none that is allowed.
    #[error("the destination cannot be reached")]
    Unreachable,
    #[error("the destination did not answer in time")]
    TimedOut,
    /// This process, or this machine, has none left of what a connection takes.
    #[error("{0}")]
    Exhausted(io::Error),
    /// The upstream's own server.
    #[error("{0}")]
    Server(String),
}

impl ConnectError {
    /// What a connection to the destination itself failed with.
    pub(crate) fn of_destination(error: io::Error) -> Self {
        match error.kind() {
            _ if is_exhausted(&error) => Self::Exhausted(error),
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::Refused,
            ErrorKind::TimedOut => Self::TimedOut,
            // Not the destination's: what all leaves by.
            ErrorKind::NetworkDown | ErrorKind::NotConnected => Self::Server(error.to_string()),
            // What is forbidden here is so for good, as is what has no route.
            _ => Self::Unreachable,
        }
    }

    /// What the upstream's server failed with.
    fn of_server(error: io::Error) -> Self {
        if is_exhausted(&error) { Self::Exhausted(error) } else { Self::Server(error.to_string()) }
    }
}

/// Descriptors, ports or memory are used up: what may be otherwise soon.
fn is_exhausted(error: &io::Error) -> bool {
    let used_up =
        [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| used_up.contains(&errno))
}

impl Upstream {
    /// Connects to `target`. The upstream's own server has `limit` to be ready for that.
    pub(crate) async fn connect(
        &self,
        out: &WayOut,
        target: &Target,
        limit: Duration,
    ) -> Result<Connected, ConnectError> {
        let connected = match self {
            Self::Direct => {
                let stream = out.connect(target.address).await;
                Connected { stream: stream.map_err(ConnectError::of_destination)?, early: vec![] }
            }
            Self::Socks5(server) => {
                let mut stream = within(limit, socks5::greet(out, server)).await?;
                socks5::connect(&mut stream, target).await?;
                Connected { stream, early: vec![] }
            }
            Self::Http(server) => {
                let mut stream = within(limit, server.connect(out)).await?;
                let early = http::connect(&mut stream, server, target).await?;
                Connected { stream, early }
            }
        };
        Ok(connected)
    }

    /// A way for datagrams to anybody, of one socket of a client's. The upstream's own server has
    /// `limit` to make it.
    pub(crate) async fn associate(
        &self,
        out: &WayOut,
        from: Origin,
        limit: Duration,
    ) -> Result<Outlet, ConnectError> {
        match self {
            Self::Direct => {
                let socket = out.socket_for_all(from).await.map_err(ConnectError::of_destination)?;
                Ok(Outlet::Direct(socket))
            }
            Self::Socks5(server) => within(limit, Association::new(out, server)).await.map(Outlet::Socks5),
            Self::Http(_) => Err(ConnectError::Unreachable),
        }
    }

    /// A way for questions to a resolver, and for its answers, of which `room` bytes matter.
    pub(crate) async fn ask(
        &self,
        out: &WayOut,
        resolver: SocketAddr,
        by: Protocol,
        room: usize,
        limit: Duration,
    ) -> Result<ToResolver, ConnectError> {
        if by == Protocol::Tcp {
            let Connected { stream, early } = self.connect(out, &resolver.into(), limit).await?;
            return Ok(ToResolver::Framed(Framed::new(stream, early)));
        }
        // One byte more tells which answers are longer.
        let buffer = vec![0; room + HEADER + 1];
        match self {
            // Connected, so that the kernel passes its answers alone, and says if it refuses.
            Self::Direct => {
                let socket = out.socket(resolver).await.map_err(ConnectError::of_destination)?;
                Ok(ToResolver::Socket { socket, buffer })
            }
            Self::Socks5(server) => {
                let association = within(limit, Association::new(out, server)).await?;
                Ok(ToResolver::Socks5 { association, to: resolver, buffer })
            }
            Self::Http(_) => Err(ConnectError::Unreachable),
        }
    }
}

/// What an upstream's own server does, which has `limit` for it.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let silent = || Err(ConnectError::Server(format!("it does not answer within {limit:?}")));
    timeout(limit, work).await.unwrap_or_else(|_| silent())
}

/// A way for datagrams to anybody.
#[derive(Debug)]
pub(crate) enum Outlet {
    Direct(Socket),
    Socks5(Association),
}

impl Outlet {
    /// Header of a datagram to `to`.
    pub(crate) fn header(&self, to: SocketAddr) -> Vec<u8> {
        match self {
            Self::Direct(_) => vec![],
            Self::Socks5(_) => socks5::header(to),
        }
    }

    /// Its port, if it is a stack's.
    pub(crate) fn port_of_stack(&self) -> Option<u16> {
        match self {
            Self::Direct(Socket::Stack(socket)) => socket.local_addr().ok().map(|local| local.port()),
            Self::Direct(Socket::Kernel(_)) | Self::Socks5(_) => None,
        }
    }

    /// Sends `packet`, a datagram behind its [header](Self::header).
    pub(crate) async fn send(&self, packet: &[u8], to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Direct(socket) => socket.send_to(packet, to).await,
            Self::Socks5(association) => match association.send(packet).await {
                // What ICMP says of an earlier datagram: this one has not left yet.
                Err(_) => association.send(packet).await,
                Ok(()) => Ok(()),
            },
        }
    }

    /// Waits for what comes. Dropping the future loses none. One task at a time waits.
    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<Inward> {
        match self {
            Self::Direct(socket) => socket.recv_from(buffer).await,
            Self::Socks5(association) => loop {
                match association.recv(buffer).await {
                    Ok((at, from)) => return Ok(Inward::Datagram(at, from)),
                    // ICMP says that nobody listens at the relay's port. It ends no mapping
                    // (RFC 4787, REQ-12): the server does, by the connection that asked for it.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            },
        }
    }
}

/// A way for questions to one resolver.
#[derive(Debug)]
pub(crate) enum ToResolver {
    Socket { socket: Socket, buffer: Vec<u8> },
    Socks5 { association: Association, to: SocketAddr, buffer: Vec<u8> },
    Framed(Framed<Stream>),
}

impl ToResolver {
    pub(crate) const fn is_of_datagrams(&self) -> bool {
        !matches!(self, Self::Framed(_))
    }

    /// Sends a question.
    pub(crate) async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Socket { socket, .. } => socket.send(message).await,
            Self::Socks5 { association, to, .. } => {
                association.send(&[&socks5::header(*to), message].concat()).await
            }
            Self::Framed(stream) => {
                stream.send(message);
                Ok(())
            }
        }
    }

    /// Waits for a message of the resolver. Dropping the future loses none.
    pub(crate) async fn recv(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Socket { socket, buffer } => {
                let length = socket.recv(buffer).await?;
                Ok(buffer[..length].to_vec())
            }
            Self::Socks5 { association, to, buffer } => loop {
                let (at, from) = association.recv(buffer).await?;
                if from == Some(*to) {
                    return Ok(buffer[at].to_vec());
                }
            },
            Self::Framed(stream) => stream.recv().await,
        }
    }
}

impl FromStr for Upstream {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        match text.split_once("://") {
            _ if text == "direct" => Ok(Self::Direct),
            Some(("socks5" | "socks5h", rest)) => Server::parse(rest, 1_080).map(Self::Socks5),
            Some(("http", rest)) => Server::parse(rest, 8_080).map(Self::Http),
            _ => Err(UrlError::Scheme),
        }
    }
}

/// Without user and password.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct"),
            Self::Socks5(server) => write!(f, "socks5://{server}"),
            Self::Http(server) => write!(f, "http://{server}"),
        }
    }
}
