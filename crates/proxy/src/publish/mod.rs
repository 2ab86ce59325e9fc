//! Published ports: listeners of this machine whose connections and datagrams go to a guest, with
//! the client's own address as their source.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | what is published, as people write it |
//! | `connections` | a listener's connections, carried to the guest |
//! | `datagrams`, `udp_port` | a UDP port's flows; the socket, and the address that a datagram was for |
//! | `header` | the PROXY protocol's header |

mod connections;
mod datagrams;
mod header;
mod spec;
mod udp_port;

pub(crate) use connections::{Arrival, carry};
pub use spec::{ProxyHeader, Publish, PublishSyntax};

use crate::clients::Clients;
use crate::shared::Shared;
use crate::target::{Protocol, can_be_carried};
use ackline_runtime::Stack;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Connections that wait to be carried; further ones wait in the kernel's backlog.
const WAITING: usize = 64;

/// Why ports cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// They are already.
    #[error("{0} is published already")]
    Twice(Publish),
    /// The guest is not named.
    #[error("{0} names no guest; write [ADDR:]PORT:GUEST[:PORT]")]
    NoGuest(Publish),
    /// An address of this machine cannot be listened at.
    #[error("{address}: {error}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
    /// The proxy has ended.
    #[error("the proxy has ended")]
    Ended,
}

/// A published port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// As it was asked for, with the guest's address.
    pub publish: Publish,
    /// Where it listens, port by port.
    pub listens: Vec<SocketAddr>,
}

/// Publishes ports of this machine while a proxy runs, from any thread.
#[derive(Clone)]
pub struct Publisher(Arc<Inner>);

struct Inner {
    base: Base,
    handle: Handle,
    /// `None` once the proxy has ended.
    open: Mutex<Option<Vec<Entry>>>,
}

/// Shared state of all published ports.
#[derive(Clone)]
struct Base {
    shared: Arc<Shared>,
    stack: Stack,
    clients: Arc<Clients>,
    arrivals: mpsc::Sender<Arrival>,
}

/// One that is open; dropping it closes it.
struct Entry {
    published: Published,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publisher").field(&self.list()).finish()
    }
}

impl Publisher {
    /// Also where connections arrive.
    pub(crate) fn new(
        shared: Arc<Shared>,
        stack: Stack,
        clients: Arc<Clients>,
    ) -> (Self, mpsc::Receiver<Arrival>) {
        let (arrivals, arrived) = mpsc::channel(WAITING);
        let base = Base { shared, stack, clients, arrivals };
        let inner = Inner { base, handle: Handle::current(), open: Mutex::new(Some(vec![])) };
        (Self(Arc::new(inner)), arrived)
    }

    /// Publishes all of these ports, or none. Returns where they listen.
    ///
    /// # Errors
    /// If the guest is not named, the same is published already, an address cannot be listened at,
    /// or the proxy has ended.
    pub fn add(&self, publish: &Publish) -> Result<Vec<SocketAddr>, PublishError> {
        let Some(pairs) = publish.pairs() else { return Err(PublishError::NoGuest(publish.clone())) };
        let mut open = self.lock();
        let Some(entries) = &mut *open else { return Err(PublishError::Ended) };
        if entries.iter().any(|entry| entry.published.publish == *publish) {
            return Err(PublishError::Twice(publish.clone()));
        }
        let _entered = self.0.handle.enter();
        let (mut listens, mut tasks) = (vec![], JoinSet::new());
        for (address, guest) in pairs {
            let base = self.0.base.clone();
            let at = match publish.protocol {
                Protocol::Tcp => connections::listen(base, address, guest, publish.header, &mut tasks),
                Protocol::Udp => datagrams::listen(base, address, guest, &mut tasks),
            };
            listens.push(at.map_err(|error| PublishError::Listen { address, error })?);
        }
        let published = Published { publish: publish.clone(), listens: listens.clone() };
        entries.push(Entry { published, _tasks: tasks });
        Ok(listens)
    }

    /// Closes these ports. Their connections go on; flows of datagrams end. Returns whether they
    /// were published.
    #[must_use]
    pub fn remove(&self, publish: &Publish) -> bool {
        let mut open = self.lock();
        let Some(entries) = &mut *open else { return false };
        let before = entries.len();
        entries.retain(|entry| entry.published.publish != *publish);
        entries.len() < before
    }

    /// Ports that are published now.
    #[must_use]
    pub fn list(&self) -> Vec<Published> {
        self.lock().iter().flatten().map(|entry| entry.published.clone()).collect()
    }

    /// Closes all ports, and lets none be published any more.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Entry>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends with the proxy that it belongs to.
pub(crate) struct Guard(pub(crate) Publisher);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// As whom a client reaches a guest: as itself, or with the proxy's own address and any port if a
/// guest could not answer the client's (it is of this machine's loopback, of a link, or of the
/// other IP version). `None` if the proxy has no address of the guest's version.
fn source(shared: &Shared, client: SocketAddr, guest: SocketAddr) -> Option<SocketAddr> {
    let address = client.ip().to_canonical();
    let own = &shared.config.own;
    if address.is_ipv4() == guest.is_ipv4()
        && can_be_carried(address)
        && address != guest.ip()
        && !own.contains(&address)
    {
        return Some(SocketAddr::new(address, client.port()));
    }
    let own = own.iter().copied().find(|own: &IpAddr| own.is_ipv4() == guest.is_ipv4())?;
    Some(SocketAddr::new(own, 0))
}
