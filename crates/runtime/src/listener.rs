//! Accepting connections.

use crate::stack::Stack;
use crate::stack::shard::Anchor;
use crate::stream::TcpStream;
use ackline_tcp_core::{ListenOn, ListenerId};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A listener of a [`Stack`]. Dropping it stops listening and resets the connections that nobody accepted.
#[derive(Debug)]
pub struct TcpListener {
    shard: Arc<Anchor>,
    id: ListenerId,
    on: ListenOn,
}

impl TcpListener {
    pub(crate) fn new(shard: Arc<Anchor>, id: ListenerId, on: ListenOn) -> Self {
        Self { shard, id, on }
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
    /// # Errors
    /// `NetworkDown` where the device is gone, `NotConnected` once the stack shuts down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// [`accept`](Self::accept) for hand-written futures. Several tasks may wait at once.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        loop {
            let accepted = self.shard.lock().accept(self.id, cx.waker())?;
            let Some(id) = accepted else { return Poll::Pending };
            budget.made_progress();
            // A connection that died and was forgotten in the queue is nobody's loss.
            if let Ok(stream) = TcpStream::new(self.shard.clone(), id) {
                let peer = stream.peer_addr();
                return Poll::Ready(Ok((stream, peer)));
            }
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.unlisten(now, self.id));
    }
}
