//! Accepting connections.

use crate::stack::Stack;
use crate::stack::shard::Anchor;
use crate::stream::TcpStream;
use ackline_tcp_core::{ConnId, ListenOn, ListenerId};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

/// A listener of a [`Stack`]. Dropping it stops listening and resets the connections that nobody accepted.
#[derive(Debug)]
pub struct TcpListener {
    shard: Arc<Anchor>,
    id: ListenerId,
    on: ListenOn,
    /// Told of each connection that is queued, and of the end.
    arrivals: Arc<Notify>,
}

impl TcpListener {
    pub(crate) fn new(shard: Arc<Anchor>, id: ListenerId, on: ListenOn, arrivals: Arc<Notify>) -> Self {
        Self { shard, id, on, arrivals }
    }

    /// Listens on a stack; the same as [`Stack::listen`].
    ///
    /// # Errors
    /// As there.
    pub fn bind(stack: &Stack, on: ListenOn) -> io::Result<Self> {
        stack.listen(on)
    }

    /// Where it listens.
    #[must_use]
    pub const fn listens_on(&self) -> ListenOn {
        self.on
    }

    /// The next established connection, and the peer's address. Where the listener takes any address, the
    /// stream's [`local_addr`](TcpStream::local_addr) is the destination that the peer asked for.
    ///
    /// Until then a connection counts against the [backlog](ackline_tcp_core::AcceptConfig::backlog). While that is full, new
    /// SYNs are dropped, and clients try again; no established connection is reset for it.
    ///
    /// Several tasks may wait at once. Dropping the future loses no connection.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone, `NotConnected` once the stack shuts down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.arrivals.notified());
            // Before the look at the queue, so that nothing that arrives in between is missed.
            arrival.as_mut().enable();
            while let Some(id) = self.next()? {
                // This is what accepts it to the core: it leaves the backlog.
                if let Ok(stream) = TcpStream::new(self.shard.clone(), id) {
                    let peer = stream.peer_addr();
                    return Ok((stream, peer));
                }
            }
            arrival.await;
        }
    }

    /// The next connection that waits.
    fn next(&self) -> io::Result<Option<ConnId>> {
        self.shard.lock().accept(self.id)
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.unlisten(now, self.id));
    }
}
