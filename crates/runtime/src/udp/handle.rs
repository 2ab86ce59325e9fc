//! Common parts of sockets and flows: sending, receiving, waiting.

use super::UdpArrival;
use crate::io_error;
use crate::shard::Anchor;
use crate::shard::turns::Side;
use ackline_tcp_core::UdpId;
use ackline_tcp_core::endpoint::{UdpReceived, UdpStats};
use ackline_tcp_core::error::UdpError;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// Data in the largest datagram that may wait for the device: writable means that there is room for
/// it.
const LARGEST: usize = 65_507;

/// A UDP socket or flow, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    shard: Arc<Anchor>,
    id: UdpId,
    /// Notified when the socket can do something that it could not.
    news: Arc<Notify>,
}

impl Handle {
    pub(crate) fn new(shard: Arc<Anchor>, id: UdpId, news: Arc<Notify>) -> Self {
        Self { shard, id, news }
    }

    pub(super) fn addresses(&self) -> io::Result<(SocketAddr, Option<SocketAddr>)> {
        let addresses = self.shard.lock().endpoint.udp().addresses(self.id);
        addresses.ok_or_else(|| io_error::udp(UdpError::Closed))
    }

    pub(super) fn peer(&self) -> io::Result<SocketAddr> {
        let (_, peer) = self.addresses()?;
        peer.ok_or_else(|| io_error::udp(UdpError::NotConnected))
    }

    pub(super) fn stats(&self) -> UdpStats {
        self.shard.lock().endpoint.udp().stats(self.id).unwrap_or_default()
    }

    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.shard.lock().endpoint.udp().take_error(self.id).map(io_error::udp)
    }

    pub(super) fn connect(&self, to: SocketAddr) -> io::Result<()> {
        self.shard.act(|state, now, _| {
            state.check_device()?;
            state.endpoint.udp().connect(now, self.id, to).map_err(io_error::udp)
        })
    }

    /// Sends from another address than the flow's.
    pub(super) fn try_send_from(&self, from: SocketAddr, data: &[u8]) -> io::Result<usize> {
        self.shard.act(|state, now, _| {
            state.check_device()?;
            let sent = state.endpoint.udp().send_from(now, self.id, from, data);
            sent.map(|()| data.len()).map_err(io_error::udp)
        })
    }

    pub(super) fn report_errors(&self, on: bool) -> io::Result<()> {
        self.shard.lock().endpoint.udp().report_errors(self.id, on).map_err(io_error::udp)
    }

    /// Waits for a datagram, or an error about one.
    pub(super) async fn recv_or_report(&self, buf: &mut [u8]) -> io::Result<UdpArrival> {
        consume_budget().await;
        self.when(|| {
            if let Some((to, error)) = self.shard.lock().endpoint.udp().next_report(self.id) {
                return Ok(UdpArrival::Error { to, error: io_error::udp(error) });
            }
            self.try_recv(buf).map(|(len, from)| UdpArrival::Datagram { len, from })
        })
        .await
    }

    /// Tells a flow's peer that nobody listens.
    pub(super) fn tell_refused(&self) {
        self.shard.act(|state, now, _| state.endpoint.udp().tell_refused(now, self.id));
    }

    /// Ends a flow, and tells its peer.
    pub(super) fn refuse(&self) {
        self.shard.act(|state, now, _| state.endpoint.udp().refuse(now, self.id));
    }

    pub(super) fn try_send(&self, to: Option<SocketAddr>, data: &[u8]) -> io::Result<usize> {
        self.send_or_wait(to, data, None)
    }

    /// Sends, or registers the current task.
    fn send_or_wait(
        &self,
        to: Option<SocketAddr>,
        data: &[u8],
        cx: Option<&Context<'_>>,
    ) -> io::Result<usize> {
        self.shard.act(|state, now, _| {
            state.check_device()?;
            let sent = state.endpoint.udp().send(now, self.id, to, data);
            if let (Err(UdpError::NoRoom), Some(cx)) = (sent, cx) {
                state.udp.wait(self.id, Side::Write, cx.waker());
            }
            sent.map(|()| data.len()).map_err(io_error::udp)
        })
    }

    pub(super) async fn send(&self, to: Option<SocketAddr>, data: &[u8]) -> io::Result<usize> {
        consume_budget().await;
        self.when(|| self.try_send(to, data)).await
    }

    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        to: Option<SocketAddr>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let budget = ready!(poll_proceed(cx));
        match self.send_or_wait(to, data, Some(cx)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            sent => {
                budget.made_progress();
                Poll::Ready(sent)
            }
        }
    }

    /// Takes the next datagram, or registers the current task.
    fn receive(&self, cx: Option<&Context<'_>>) -> io::Result<UdpReceived> {
        let mut state = self.shard.lock();
        if let Some(datagram) = state.endpoint.udp().recv(self.id).map_err(io_error::udp)? {
            return Ok(datagram);
        }
        state.check_device()?;
        if let Some(cx) = cx {
            state.udp.wait(self.id, Side::Read, cx.waker());
        }
        Err(ErrorKind::WouldBlock.into())
    }

    pub(super) fn try_recv(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(None).map(|datagram| (copy(&datagram.data, buf), datagram.from))
    }

    pub(super) async fn recv(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        consume_budget().await;
        self.when(|| self.try_recv(buf)).await
    }

    pub(super) async fn recv_buf(&self, buf: &mut Vec<u8>) -> io::Result<usize> {
        consume_budget().await;
        self.when(|| {
            let datagram = self.receive(None)?;
            buf.extend_from_slice(&datagram.data);
            Ok(datagram.data.len())
        })
        .await
    }

    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let budget = ready!(poll_proceed(cx));
        let received = match self.receive(Some(cx)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            received => received,
        };
        budget.made_progress();
        Poll::Ready(received.map(|datagram| {
            buf.put_slice(&datagram.data[..datagram.data.len().min(buf.remaining())]);
            datagram.from
        }))
    }

    pub(super) async fn peek(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.when(|| {
            let mut state = self.shard.lock();
            if let Some(datagram) = state.endpoint.udp().peek(self.id) {
                return Ok((copy(&datagram.data, buf), datagram.from));
            }
            if state.endpoint.udp().is_readable(self.id) {
                // An error, or the end.
                state.endpoint.udp().recv(self.id).map_err(io_error::udp)?;
            }
            state.check_device()?;
            Err(ErrorKind::WouldBlock.into())
        })
        .await
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.when(|| {
            let mut state = self.shard.lock();
            if state.endpoint.udp().is_readable(self.id) {
                return Ok(());
            }
            state.check_device()?;
            Err(ErrorKind::WouldBlock.into())
        })
        .await
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.when(|| {
            let mut state = self.shard.lock();
            state.check_device()?;
            let is = state.endpoint.udp().is_writable(self.id, LARGEST);
            if is { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
        })
        .await
    }

    /// Tries until the outcome is another one than `WouldBlock`.
    async fn when<R>(&self, mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        loop {
            let mut news = pin!(self.news.notified());
            // Before the attempt, so that nothing in between is missed.
            news.as_mut().enable();
            match attempt() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => news.await,
                outcome => return outcome,
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.close_udp(now, self.id));
    }
}

/// The first address of a name.
pub(super) async fn first_of(target: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    lookup_host(target).await?.next().ok_or_else(io_error::no_address)
}

/// Copies what fits, and returns its length.
fn copy(data: &[u8], buf: &mut [u8]) -> usize {
    let len = data.len().min(buf.len());
    buf[..len].copy_from_slice(&data[..len]);
    len
}
