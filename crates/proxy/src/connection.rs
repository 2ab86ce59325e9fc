//! One connection: the client waits until its destination has answered, or has proved its address
//! and waits connected.

use crate::clients::EarlyPermit;
use crate::dns;
use crate::outside::Stream;
use crate::proxy::{Config, Shared, Way};
use crate::relay::relay;
use crate::target::{Protocol, Target};
use crate::upstream::{ConnectError, Connected, Upstream};
use ackline_runtime::{HeldSyn, Refusal, TcpStream};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::Interest;
use tokio::time::timeout;

/// A client whose connection is to be relayed.
pub(crate) enum Client {
    /// Nothing has been answered. Anybody may have forged its SYN.
    Held(Box<HeldSyn>, EarlyPermit),
    /// It has completed its handshake.
    Proved(Box<TcpStream>),
}

/// Answers the client as its destination does, and carries the connection on to its end.
pub(crate) async fn carry(shared: &Shared, client: Client) {
    let Some((from, to)) = client.addresses() else { return shared.counters.abandoned.one() };
    let (upstream, target) = match shared.way(from, to, Protocol::Tcp) {
        Way::Through(upstream, target) => (upstream, target),
        Way::Resolvers(ways) => {
            return Box::pin(dns::serve_connection(shared, client, from, ways)).await;
        }
        Way::Refuse => return client.refuse(Refusal::Rst),
        Way::Drop => return client.refuse(Refusal::Drop),
    };
    // What opening takes is large, and gone before the connection idles: a box of its own keeps it
    // out of the task.
    let Some(open) = Box::pin(open(shared, client, &upstream, &target)).await else { return };
    let Open { mut inside, mut outside, early } = open;
    let counters = &shared.counters;
    let _open = counters.open_connections.enter();
    let outcome = relay(&mut inside.stream, &mut outside.stream, early, shared).await;
    (inside.is_over, outside.is_over) = (outcome.is_ok(), outcome.is_ok());
    if outcome.is_ok() { counters.finished.one() } else { counters.reset.one() }
}

/// A connection whose both ends are open.
struct Open {
    inside: StackStream,
    outside: OutsideStream,
    /// Data that the destination has sent already.
    early: Vec<u8>,
}

/// Connects to the destination, and answers the client. Without a connection it has been counted,
/// and the client told.
async fn open(shared: &Shared, client: Client, upstream: &Upstream, target: &Target) -> Option<Open> {
    let outcome = match client.hold(connect(shared, upstream, target)).await {
        Ok(Ok(connected)) => {
            // If this fails the client has gone, and the destination is told.
            let outside = OutsideStream { stream: connected.stream, is_over: false };
            client.accept().await.map(|inside| (inside, outside, connected.early))
        }
        Ok(Err(refusal)) => {
            client.refuse(refusal);
            return None;
        }
        Err(gone) => Err(gone),
    };
    let Ok((inside, outside, early)) = outcome else {
        shared.counters.abandoned.one();
        return None;
    };
    Some(Open { inside, outside, early })
}

/// A connection to the destination, or what the client is told.
async fn connect(shared: &Shared, upstream: &Upstream, target: &Target) -> Result<Connected, Refusal> {
    let Config { connect_timeout, server_timeout, .. } = shared.config;
    let connected = timeout(connect_timeout, upstream.connect(&shared.out, target, server_timeout)).await;
    connected.unwrap_or(Err(ConnectError::TimedOut)).map_err(|error| shared.refusal(upstream, &error))
}

impl Client {
    /// The client's address, and where it wants to go; `None` if it has gone.
    fn addresses(&self) -> Option<(IpAddr, SocketAddr)> {
        match self {
            Self::Held(syn, _) => Some((syn.peer_addr().ip(), syn.local_addr())),
            Self::Proved(stream) => Some((stream.peer_addr().ok()?.ip(), stream.local_addr().ok()?)),
        }
    }

    /// Waits for `work`, while the client waits.
    ///
    /// # Errors
    /// If the client goes away before.
    pub(crate) async fn hold<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        match self {
            Self::Held(syn, _) => syn.hold(work).await,
            Self::Proved(stream) => tokio::select! {
                outcome = work => Ok(outcome),
                failed = stream.ready(Interest::ERROR) => {
                    failed.and(Err(io::ErrorKind::ConnectionReset.into()))
                }
            },
        }
    }

    /// The client's end of the connection.
    ///
    /// # Errors
    /// If it has gone.
    pub(crate) async fn accept(self) -> io::Result<StackStream> {
        let stream = match self {
            // The destination has its connection for an unproved client until then.
            Self::Held(syn, early) => {
                let stream = syn.accept().await;
                drop(early);
                stream?
            }
            Self::Proved(stream) => *stream,
        };
        Ok(StackStream { stream, is_over: false })
    }

    /// Refuses the client. One that is already connected gets a reset.
    pub(crate) fn refuse(self, how: Refusal) {
        match self {
            Self::Held(syn, _) => syn.refuse(how),
            Self::Proved(stream) => stream.abort(),
        }
    }
}

/// The end at the stack: the client's, or that of a published port's guest. Reset on drop, unless
/// everything has been passed on.
pub(crate) struct StackStream {
    pub(crate) stream: TcpStream,
    pub(crate) is_over: bool,
}

impl Drop for StackStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}

/// The end outside: the destination's, or that of a published port's client. Reset on drop, unless
/// everything has been passed on.
pub(crate) struct OutsideStream {
    pub(crate) stream: Stream,
    pub(crate) is_over: bool,
}

impl Drop for OutsideStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}

impl Shared {
    /// Counts why a connection or flow could not be carried on, says what concerns who runs the
    /// proxy, and returns what a client is told.
    pub(crate) fn refusal(&self, upstream: &impl std::fmt::Display, error: &ConnectError) -> Refusal {
        let counters = &self.counters;
        let (counter, refusal) = match error {
            ConnectError::Refused => (&counters.upstream_refused, Refusal::Rst),
            ConnectError::Unreachable => (&counters.upstream_unreachable, Refusal::Unreachable),
            ConnectError::TimedOut => (&counters.upstream_timeouts, Refusal::Drop),
            ConnectError::Exhausted(error) => {
                self.notices.trouble(
                    "sockets",
                    format_args!("{error}; connections and flows wait until some have ended"),
                );
                (&counters.no_descriptor, Refusal::Drop)
            }
            ConnectError::Server(what) => {
                self.notices.trouble(&upstream.to_string(), what);
                (&counters.upstream_failed, Refusal::Unreachable)
            }
        };
        counter.one();
        refusal
    }
}
