//! Accepting connections.

use crate::incoming::{HeldSyn, Incoming};
use crate::stack::Stack;
use crate::stack::shard::Anchor;
use crate::stream::{TcpStream, ttl_of};
use ackline_tcp_core::{ConnId, Duration, ListenOn, ListenerId};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// A listener of a [`Stack`]. Dropping it stops listening and resets the connections that nobody accepted.
///
/// Its methods are those of [`tokio::net::TcpListener`], and more; [what differs](crate#parity-with-tokionet).
#[derive(Debug)]
pub struct TcpListener {
    shard: Arc<Anchor>,
    id: ListenerId,
    on: ListenOn,
    /// Notified of each queued connection, and of the end.
    arrivals: Arc<Notify>,
    /// The linger time of accepted connections.
    linger: Option<Duration>,
}

impl TcpListener {
    pub(crate) fn new(shard: Arc<Anchor>, id: ListenerId, on: ListenOn, arrivals: Arc<Notify>) -> Self {
        Self { shard, id, on, arrivals, linger: None }
    }

    /// Makes accepted connections [linger](TcpStream::set_linger) for that long.
    pub(crate) fn lingering(mut self, linger: Option<Duration>) -> Self {
        self.linger = linger;
        self
    }

    /// Listens on the first of the addresses that is free, with the stack's default settings. An unspecified
    /// address means all of the stack's addresses; port 0 picks a free port. Names are resolved by the
    /// system's resolver.
    ///
    /// # Errors
    /// As [`Stack::listen`], for the last address.
    pub async fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            match stack.listen(ListenOn::Address(addr)) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(crate::io_error::no_address))
    }

    /// What it listens on.
    #[must_use]
    pub const fn listens_on(&self) -> ListenOn {
        self.on
    }

    /// The local address as a socket reports it: the unspecified address if it listens on all, and port 0 for
    /// every port.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let all = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        Ok(match self.on {
            ListenOn::Address(address) => address,
            ListenOn::Port(port) => all(port),
            ListenOn::Any => all(0),
        })
    }

    /// The hop limit of accepted connections.
    ///
    /// # Errors
    /// `NotConnected` once the stack shuts down.
    pub fn ttl(&self) -> io::Result<u32> {
        let mut state = self.shard.lock();
        let own = state.accept_config(self.id)?.conn.ttl;
        Ok(own.unwrap_or(state.endpoint.config().default_ttl).into())
    }

    /// Sets the hop limit of connections accepted from now on, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput` for another number; `NotConnected` once the stack shuts down.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let ttl = ttl_of(ttl)?;
        Arc::make_mut(&mut self.shard.lock().accept_config(self.id)?.conn).ttl = Some(ttl);
        Ok(())
    }

    /// Waits for the next established connection, or one that [fast open](crate::TcpSocket::set_fast_open) accepts with its
    /// SYN; returns it with the peer's address. If the listener accepts any address, the stream's
    /// [`local_addr`](TcpStream::local_addr) is the destination that the peer asked for.
    ///
    /// A connection that is not accepted yet counts against the
    /// [backlog](ackline_tcp_core::AcceptConfig::backlog). While the backlog is full, new SYNs are dropped,
    /// and clients retry; no established connection is reset.
    ///
    /// Several tasks may wait at once. Dropping the future loses no connection.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.arrivals.notified());
            // Registered before checking the queue, so that no arrival in between is missed.
            arrival.as_mut().enable();
            while let Some(id) = self.next(None)? {
                if let Some(accepted) = self.take(id) {
                    return Ok(accepted);
                }
            }
            arrival.await;
        }
    }

    /// Like [`accept`](Self::accept), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = loop {
            match self.next(Some(cx)) {
                Ok(Some(id)) => {
                    if let Some(accepted) = self.take(id) {
                        break Ok(accepted);
                    }
                }
                Ok(None) => return Poll::Pending,
                Err(error) => break Err(error),
            }
        };
        budget.made_progress();
        Poll::Ready(outcome)
    }

    /// Holds the SYNs that come from now on: nothing is answered before the program has decided. A client repeats its SYN meanwhile, and
    /// learns from the answer what it is to learn: that the far side has accepted, too, or that it has not. The program accepts each SYN, or
    /// [refuses](crate::Refusal) it with an RST, an ICMP error or silence. Connections that were established before wait in
    /// [`accept`](Self::accept) of [`Incoming::listener`].
    ///
    /// Without this, a client is connected before the program has heard of it, and if the far side refuses, all that is left
    /// is an RST. This proxy accepts when the upstream has connected:
    ///
    /// ```no_run
    /// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
    /// use ackline_runtime::Refusal;
    /// use ackline_tcp_core::ListenOn;
    /// use tokio::net::TcpStream;
    ///
    /// let incoming = stack.listen(ListenOn::Any)?.incoming()?;
    /// loop {
    ///     let syn = incoming.next().await?;
    ///     tokio::spawn(async move {
    ///         // Ends early if the client has gone.
    ///         match syn.hold(TcpStream::connect(syn.local_addr())).await? {
    ///             Ok(mut outside) => {
    ///                 let mut inside = syn.accept().await?;
    ///                 tokio::io::copy_bidirectional(&mut inside, &mut outside).await?;
    ///             }
    ///             Err(_) => syn.refuse(Refusal::Unreachable),
    ///         }
    ///         std::io::Result::Ok(())
    ///     });
    /// }
    /// # }
    /// ```
    ///
    /// How many are held is bounded: [`AcceptConfig::max_held_syns`](ackline_tcp_core::AcceptConfig::max_held_syns) for this listener,
    /// [`max_held_syns`](ackline_tcp_core::EndpointConfig::max_held_syns) and
    /// [`held_syns_per_source`](ackline_tcp_core::EndpointConfig::held_syns_per_source) for the stack; and for how long:
    /// [`held_syn_timeout`](ackline_tcp_core::EndpointConfig::held_syn_timeout). Such a listener does without fast open and SYN
    /// cookies.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub fn incoming(self) -> io::Result<Incoming> {
        self.shard.lock().hold_syns(self.id)?;
        Ok(Incoming::new(self))
    }

    /// Notified of what arrives.
    pub(crate) fn arrivals(&self) -> &Notify {
        &self.arrivals
    }

    /// The next held SYN; if there is none, registers the current task.
    pub(crate) fn next_syn(&self, cx: Option<&Context<'_>>) -> io::Result<Option<HeldSyn>> {
        let next = self.shard.lock().next_syn(self.id, cx.map(Context::waker))?;
        Ok(next.map(|next| HeldSyn::new(self.shard.clone(), next, self.linger)))
    }

    /// The next queued connection; if there is none, registers the current task.
    fn next(&self, cx: Option<&Context<'_>>) -> io::Result<Option<ConnId>> {
        let mut state = self.shard.lock();
        let next = state.accept(self.id)?;
        if let (None, Some(cx)) = (next, cx) {
            state.await_arrival(self.id, cx.waker());
        }
        Ok(next)
    }

    /// Accepts the connection in the core, too, which frees its place in the backlog. `None` if it is gone.
    fn take(&self, id: ConnId) -> Option<(TcpStream, SocketAddr)> {
        let stream = TcpStream::new(self.shard.clone(), id).ok()?;
        if self.linger.is_some() {
            self.shard.lock().set_linger(id, self.linger);
        }
        let (_, peer) = stream.addresses();
        Some((stream, peer))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.unlisten(now, self.id));
    }
}

/// The connections of a listener as a [`Stream`](futures_core::Stream). An error (the device is gone, the
/// stack shuts down) is the last item.
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
#[derive(Debug)]
pub struct TcpListenerStream {
    inner: TcpListener,
    ended: bool,
}

#[cfg(feature = "stream")]
impl TcpListenerStream {
    /// Streams the connections that `listener` accepts from now on.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self { inner: listener, ended: false }
    }

    /// The listener.
    #[must_use]
    pub fn into_inner(self) -> TcpListener {
        self.inner
    }
}

#[cfg(feature = "stream")]
impl AsRef<TcpListener> for TcpListenerStream {
    fn as_ref(&self) -> &TcpListener {
        &self.inner
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for TcpListenerStream {
    type Item = io::Result<TcpStream>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let accepted = ready!(self.inner.poll_accept(cx));
        self.ended = accepted.is_err();
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}
