//! What carries connections and flows on.

mod framed;
mod http;
mod socks5;
mod url;

pub use url::{Server, UrlError, without_credentials};

use crate::outside::{Socket, Stream, WayOut};
use crate::target::{Protocol, Target};
use framed::Framed;
use rustix::io::Errno;
use socks5::Association;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;
use tokio::time::timeout;

/// Who carries connections and flows on to their destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Sockets of the kernel, straight to the address.
    Direct,
    /// A server of SOCKS5 (RFC 1928): connections, and flows by UDP ASSOCIATE.
    Socks5(Server),
    /// An HTTP proxy: connections by CONNECT (RFC 9110, section 9.3.6). It carries no flows.
    Http(Server),
}

/// A connection to the destination.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    /// What the destination has sent already.
    pub(crate) early: Vec<u8>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// Nobody listens there.
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
    fn of_destination(error: io::Error) -> Self {
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

    /// A way for datagrams to `target` and back. The upstream's own server has `limit` to make it.
    pub(crate) async fn associate(
        &self,
        out: &WayOut,
        target: &Target,
        limit: Duration,
    ) -> Result<Datagrams, ConnectError> {
        match self {
            Self::Direct => {
                let socket = out.socket(target.address).await.map_err(ConnectError::of_destination)?;
                Ok(Datagrams::Direct(socket))
            }
            Self::Socks5(server) => {
                within(limit, Association::new(out, server, target)).await.map(Datagrams::Socks5)
            }
            Self::Http(_) => Err(ConnectError::Unreachable),
        }
    }
}

impl Upstream {
    /// A way for questions to a resolver, and for its answers.
    pub(crate) async fn ask(
        &self,
        out: &WayOut,
        resolver: SocketAddr,
        by: Protocol,
        limit: Duration,
    ) -> Result<Datagrams, ConnectError> {
        match by {
            Protocol::Udp => self.associate(out, &resolver.into(), limit).await,
            Protocol::Tcp => self
                .connect(out, &resolver.into(), limit)
                .await
                .map(|connected| Datagrams::Framed(Framed::new(connected))),
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

/// A way for datagrams.
#[derive(Debug)]
pub(crate) enum Datagrams {
    Direct(Socket),
    Socks5(Association),
    /// Messages of DNS.
    Framed(Framed),
}

impl Datagrams {
    /// How much room a datagram needs in front of it.
    pub(crate) fn headroom(&self) -> usize {
        match self {
            Self::Direct(_) | Self::Framed(_) => 0,
            Self::Socks5(association) => association.header().len(),
        }
    }

    /// Sends the datagram behind the [headroom](Self::headroom) of `packet`.
    pub(crate) async fn send(&mut self, packet: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Direct(socket) => socket.send(packet).await,
            Self::Socks5(association) => association.send(packet).await,
            Self::Framed(stream) => stream.send(packet).await,
        }
    }

    /// Waits for a datagram of the destination: where in `buffer` it is. Dropping the future loses none.
    pub(crate) async fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Range<usize>> {
        match self {
            Self::Direct(socket) => socket.recv(buffer).await.map(|length| 0..length),
            Self::Socks5(association) => association.recv(buffer).await,
            Self::Framed(stream) => stream.recv(buffer).await,
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
