//! Accepting in three steps: the SYN first, then the decision, then the connection.

use super::TcpListener;
use crate::io_error;
use crate::shard::Anchor;
use crate::stream::TcpStream;
use ackline_tcp_core::Duration;
use ackline_tcp_core::endpoint::SynId;
pub use ackline_tcp_core::endpoint::{IncomingSyn, Refusal};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// The SYNs of a listener, nothing of which is answered before the program decides: see
/// [`TcpListener::incoming`]. Dropping it stops listening, and refuses what is held.
#[derive(Debug)]
pub struct Incoming {
    listener: TcpListener,
}

impl Incoming {
    pub(crate) const fn new(listener: TcpListener) -> Self {
        Self { listener }
    }

    /// The listener. Connections that were established before the listener held SYNs wait in its
    /// [`accept`](TcpListener::accept).
    #[must_use]
    pub const fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Waits for the next SYN. Several tasks may wait at once; dropping the future loses none.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub async fn next(&self) -> io::Result<HeldSyn> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.listener.arrivals().notified());
            // Before the queue is looked at, so that no SYN in between is missed.
            arrival.as_mut().enable();
            if let Some(syn) = self.listener.next_syn(None)? {
                return Ok(syn);
            }
            arrival.await;
        }
    }

    /// Like [`next`](Self::next), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<HeldSyn>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = match self.listener.next_syn(Some(cx)) {
            Ok(Some(syn)) => Ok(syn),
            Ok(None) => return Poll::Pending,
            Err(error) => Err(error),
        };
        budget.made_progress();
        Poll::Ready(outcome)
    }
}

/// A client that waits for the answer to its SYN. It repeats the SYN meanwhile, and each repetition
/// is absorbed.
///
/// Dropping it refuses the client with an RST. It is held for at most
/// [`held_syn_timeout`](ackline_tcp_core::EndpointConfig::held_syn_timeout) (60 s); then it is
/// refused as well.
#[derive(Debug)]
pub struct HeldSyn {
    shard: Arc<Anchor>,
    id: SynId,
    syn: IncomingSyn,
    /// Notified when the client has gone, or is connected.
    news: Arc<Notify>,
    /// The linger time of the connection.
    linger: Option<Duration>,
}

impl HeldSyn {
    pub(crate) fn new(
        shard: Arc<Anchor>,
        (id, syn, news): (SynId, IncomingSyn, Arc<Notify>),
        linger: Option<Duration>,
    ) -> Self {
        Self { shard, id, syn, news, linger }
    }

    /// What the client asks for: addresses, DSCP, hop limit, options. Anybody may have forged it,
    /// until the connection is accepted.
    #[must_use]
    pub const fn syn(&self) -> &IncomingSyn {
        &self.syn
    }

    /// Where the client wants to connect to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.syn.local
    }

    /// The client.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.syn.remote
    }

    /// The runtime that drives the client's shard, where [tasks that serve the
    /// connection](TcpStream::runtime) run best.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        self.shard.runtime()
    }

    /// Waits for `work`, while the client waits. Dropping the future drops `work`.
    ///
    /// # Errors
    /// What [`cancelled`](Self::cancelled) returns, if that is earlier.
    pub async fn hold<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let (mut work, mut cancelled) = (pin!(work), pin!(self.cancelled()));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
            Poll::Pending => cancelled.as_mut().poll(cx).map(Err),
        })
        .await
    }

    /// Waits until the client cannot be answered any more, and tells why: `ConnectionReset` if it
    /// has sent an RST, or begun anew; `TimedOut` if it has been held for too long; `OutOfMemory`;
    /// `ConnectionAborted` if the listener is gone; `NetworkDown` if the device is. A client that
    /// just goes away says nothing.
    pub async fn cancelled(&self) -> io::Error {
        loop {
            let mut news = pin!(self.news.notified());
            news.as_mut().enable();
            let outcome = self.shard.lock().syn_outcome(self.id);
            if let Err(error) = outcome {
                return error;
            }
            news.await;
        }
    }

    /// Answers the client, and waits until the connection is established. Dropping the future
    /// resets the client.
    ///
    /// # Errors
    /// `NotConnected` if the client could not be answered any more; `TimedOut` if it does not
    /// acknowledge the answer, `ConnectionReset` if it does not want the connection any more;
    /// `QuotaExceeded` if there are too many connections, or no memory: the client's next SYN is
    /// another request then. `ConnectionAborted` if the listener is gone; `NetworkDown` if the
    /// device is.
    pub async fn accept(self) -> io::Result<TcpStream> {
        self.shard.act(|state, now, _| {
            state.check_device()?;
            state.endpoint.syns().accept(now, self.id).map_err(io_error::accept)
        })?;
        loop {
            let mut news = pin!(self.news.notified());
            news.as_mut().enable();
            let outcome = self.shard.lock().syn_outcome(self.id)?;
            if let Some(conn) = outcome {
                let stream = TcpStream::new(self.shard.clone(), conn)?;
                // It is the stream's from now on.
                let mut state = self.shard.lock();
                state.forget_syn(self.id);
                state.set_linger(conn, self.linger);
                drop(state);
                return Ok(stream);
            }
            news.await;
        }
    }

    /// Answers the client at once, as a listener does that holds nothing, and forgets it: it has no
    /// place any more, and if there are many of its kind its SYN-ACK is a cookie. If it completes
    /// the handshake, the connection comes from [`accept`](TcpListener::accept) of
    /// [`Incoming::listener`]. For clients that must prove their address first.
    pub fn release(self) {
        self.shard.act(|state, now, _| state.release_syn(now, self.id));
    }

    /// Refuses the client.
    pub fn refuse(self, how: Refusal) {
        self.shard.act(|state, now, _| state.refuse_syn(now, self.id, how));
    }
}

impl Drop for HeldSyn {
    fn drop(&mut self) {
        // Nothing happens if it has been answered.
        self.shard.act(|state, now, _| state.refuse_syn(now, self.id, Refusal::Rst));
    }
}
