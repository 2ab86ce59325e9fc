//! Accepting connections.

pub mod incoming;

use crate::shard::Anchor;
use crate::shard::state::accepting::AcceptQueue;
use crate::stream::{TcpStream, ttl_of};
use ackline_tcp_core::{AcceptConfig, ConnId, Duration, EndpointConfig, ListenOn, ListenerId};
use incoming::{HeldSyn, Incoming};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// A listener of a [`Stack`](crate::Stack). Dropping it stops listening and resets the connections
/// that nobody accepted.
///
/// Its methods are those of [`tokio::net::TcpListener`], and more; [what
/// differs](crate#parity-with-tokionet).
#[derive(Debug)]
pub struct TcpListener {
    parts: Parts,
    on: ListenOn,
    /// The linger time of accepted connections.
    linger: Option<Duration>,
}

/// A listener's parts on the shards of its stack. Dropping it stops listening.
#[derive(Debug)]
pub(crate) struct Parts {
    /// At least one.
    parts: Vec<(Arc<Anchor>, ListenerId)>,
    /// The connections of all of them.
    queue: Arc<AcceptQueue>,
}

impl Parts {
    pub(crate) const fn new(queue: Arc<AcceptQueue>) -> Self {
        Self { parts: Vec::new(), queue }
    }

    pub(crate) fn add(&mut self, shard: Arc<Anchor>, id: ListenerId) {
        self.parts.push((shard, id));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Fails if all parts have ended, with the error of the first.
    fn check(&self) -> io::Result<()> {
        let mut ends = self.parts.iter().map(|(shard, id)| shard.lock().check_listener(*id));
        let first = ends.next().unwrap_or(Ok(()));
        if first.is_ok() || ends.any(|end| end.is_ok()) { Ok(()) } else { first }
    }

    /// The shard with this number.
    fn shard(&self, index: usize) -> Option<&Arc<Anchor>> {
        self.parts.iter().map(|(shard, _)| shard).find(|shard| shard.index == index)
    }

    /// Calls `act` with the settings of each part, and returns what the first one gave.
    fn settings<R>(&self, mut act: impl FnMut(&mut AcceptConfig, &EndpointConfig) -> R) -> io::Result<R> {
        let mut outcome = None;
        for (shard, id) in &self.parts {
            let mut state = shard.lock();
            let host = state.endpoint.config().clone();
            let given = state.accept_config(*id).map(|accept| act(accept, &host));
            outcome = outcome.or(Some(given));
        }
        outcome.unwrap_or_else(|| Err(crate::io_error::gone()))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for (shard, id) in &self.parts {
            shard.act(|state, now, _| state.unlisten(now, *id));
        }
    }
}

impl TcpListener {
    pub(crate) const fn new(parts: Parts, on: ListenOn) -> Self {
        Self { parts, on, linger: None }
    }

    /// Makes accepted connections [linger](TcpStream::set_linger) for that long.
    pub(crate) fn lingering(mut self, linger: Option<Duration>) -> Self {
        self.linger = linger;
        self
    }

    /// What it listens on.
    #[must_use]
    pub const fn listens_on(&self) -> ListenOn {
        self.on
    }

    /// The local address as a socket reports it: the unspecified address if it listens on all, and
    /// port 0 for every port.
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
        self.parts.settings(|accept, host| accept.conn.ttl.unwrap_or(host.default_ttl).into())
    }

    /// Sets the hop limit of connections accepted from now on, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput` for another number; `NotConnected` once the stack shuts down.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let ttl = ttl_of(ttl)?;
        self.parts.settings(|accept, _| Arc::make_mut(&mut accept.conn).ttl = Some(ttl))
    }

    /// Waits for the next established connection, or one that [fast
    /// open](crate::TcpSocket::set_fast_open) accepts with its SYN; returns it with the peer's
    /// address. If the listener accepts any address, the stream's
    /// [`local_addr`](TcpStream::local_addr) is the destination that the peer asked for.
    ///
    /// A connection that is not accepted yet counts against the
    /// [backlog](ackline_tcp_core::AcceptConfig::backlog). While the backlog is full, new SYNs are
    /// dropped, and clients retry; no established connection is reset.
    ///
    /// Several tasks may wait at once. Dropping the future loses no connection.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.arrivals().notified());
            // Registered before checking the queue, so that no arrival in between is missed.
            arrival.as_mut().enable();
            while let Some(next) = self.next(None)? {
                if let Some(accepted) = self.take(next) {
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
                Ok(Some(next)) => {
                    if let Some(accepted) = self.take(next) {
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

    /// Holds the SYNs that come from now on: nothing is answered before the program has decided. A
    /// client repeats its SYN meanwhile, and learns from the answer what it is to learn: that the
    /// far side has accepted, too, or that it has not. The program accepts each SYN, or
    /// [refuses](crate::Refusal) it with an RST, an ICMP error or silence. Connections that were
    /// established before wait in [`accept`](Self::accept) of [`Incoming::listener`].
    ///
    /// Without this, a client is connected before the program has heard of it, and if the far side
    /// refuses, all that is left is an RST. This proxy accepts when the upstream has connected:
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
    /// How many are held is bounded:
    /// [`AcceptConfig::max_held_syns`](ackline_tcp_core::AcceptConfig::max_held_syns) for this
    /// listener, [`max_held_syns`](ackline_tcp_core::EndpointConfig::max_held_syns) and
    /// [`held_syns_per_source`](ackline_tcp_core::EndpointConfig::held_syns_per_source) for the
    /// stack; and for how long:
    /// [`held_syn_timeout`](ackline_tcp_core::EndpointConfig::held_syn_timeout). Such a listener
    /// does without fast open, and without SYN cookies but for clients that it
    /// [releases](crate::HeldSyn::release).
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub fn incoming(self) -> io::Result<Incoming> {
        for (shard, id) in &self.parts.parts {
            shard.lock().hold_syns(*id)?;
        }
        Ok(Incoming::new(self))
    }

    /// Notified of what arrives.
    pub(crate) fn arrivals(&self) -> &Notify {
        &self.parts.queue.arrivals
    }

    /// The next held SYN; if there is none, registers the current task.
    pub(crate) fn next_syn(&self, cx: Option<&Context<'_>>) -> io::Result<Option<HeldSyn>> {
        let mut failed = Ok(());
        let mut alive = false;
        for (shard, id) in &self.parts.parts {
            match shard.lock().next_syn(*id, cx.map(Context::waker)) {
                Ok(Some(next)) => return Ok(Some(HeldSyn::new(shard.clone(), next, self.linger))),
                Ok(None) => alive = true,
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        if alive { Ok(None) } else { failed.map(|()| None) }
    }

    /// The next queued connection; if there is none, registers the current task.
    fn next(&self, cx: Option<&Context<'_>>) -> io::Result<Option<(usize, ConnId)>> {
        // An end that the check misses wakes the task.
        let next = self.parts.queue.pop(cx.map(Context::waker));
        if next.is_none() {
            self.parts.check()?;
        }
        Ok(next)
    }

    /// Accepts the connection in the core, too, which frees its place in the backlog. `None` if it
    /// is gone.
    fn take(&self, (shard, id): (usize, ConnId)) -> Option<(TcpStream, SocketAddr)> {
        let shard = self.parts.shard(shard)?;
        let stream = TcpStream::new(shard.clone(), id).ok()?;
        if self.linger.is_some() {
            shard.lock().set_linger(id, self.linger);
        }
        let (_, peer) = stream.addresses();
        Some((stream, peer))
    }
}

/// The connections of a listener as a [`Stream`](futures_core::Stream). An error (the device is
/// gone, the stack shuts down) is the last item.
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
