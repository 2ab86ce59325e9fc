//! UDP flows: all datagrams of one four-tuple, whatever address they are for.

use super::UdpStats;
use super::handle::Handle;
use crate::shard::Anchor;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// The flows of a [`Stack`](crate::Stack): see [`incoming_udp`](crate::Stack::incoming_udp).
/// Dropping it leaves the accepted ones as they are, and ends the others.
#[derive(Debug)]
pub struct IncomingUdp {
    shard: Arc<Anchor>,
    /// Notified of each flow, and of the end.
    arrivals: Arc<Notify>,
}

impl IncomingUdp {
    pub(crate) fn new(shard: Arc<Anchor>, arrivals: Arc<Notify>) -> Self {
        Self { shard, arrivals }
    }

    /// Waits for the next flow, which has the datagram that began it. Several tasks may wait at
    /// once; dropping the future loses no flow.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone, `NotConnected` once the stack shuts down.
    pub async fn accept(&self) -> io::Result<UdpFlow> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.arrivals.notified());
            // Before the queue is looked at, so that no flow in between is missed.
            arrival.as_mut().enable();
            if let Some(flow) = self.next(None)? {
                return Ok(flow);
            }
            arrival.await;
        }
    }

    /// Like [`accept`](Self::accept), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<UdpFlow>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = match self.next(Some(cx)) {
            Ok(Some(flow)) => Ok(flow),
            Ok(None) => return Poll::Pending,
            Err(error) => Err(error),
        };
        budget.made_progress();
        Poll::Ready(outcome)
    }

    /// The next flow; if there is none, registers the current task.
    fn next(&self, cx: Option<&Context<'_>>) -> io::Result<Option<UdpFlow>> {
        let accepted = self.shard.lock().accept_flow(cx.map(Context::waker))?;
        Ok(accepted.map(|(id, news)| UdpFlow { handle: Handle::new(self.shard.clone(), id, news) }))
    }
}

impl Drop for IncomingUdp {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.stop_flows(now));
    }
}

/// The datagrams of one peer to one address and port, and the answers, which come from there.
/// Dropping it ends it: the next datagram begins another one.
///
/// It ends by itself if nothing has passed for
/// [`udp_flow_timeout`](ackline_tcp_core::EndpointConfig::udp_flow_timeout) (5 min), or for
/// [`udp_dns_timeout`](ackline_tcp_core::EndpointConfig::udp_dns_timeout) (10 s) to port 53; and if
/// there are [`max_udp_flows`](ackline_tcp_core::EndpointConfig::max_udp_flows) and nothing has
/// been sent to its peer. Then operations fail with `TimedOut`, after what has come before has been
/// received. Several tasks may use it at once.
#[derive(Debug)]
pub struct UdpFlow {
    handle: Handle,
}

impl UdpFlow {
    /// The address that the peer sends to.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.addresses().map(|(local, _)| local)
    }

    /// The peer.
    ///
    /// # Errors
    /// None.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.handle.peer()
    }

    /// Waits for a datagram of the peer, and returns its length. What does not fit into `buf` is
    /// lost.
    ///
    /// # Errors
    /// `TimedOut` when the flow has ended; `ConnectionRefused` and others that ICMP has reported;
    /// `NetworkDown` if the device is gone.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.recv(buf).await.map(|(len, _)| len)
    }

    /// As [`recv`](Self::recv), but appends all of the datagram to `buf`. It may have come in
    /// fragments, and be longer than the device's MTU. Dropping the future loses none.
    ///
    /// # Errors
    /// As there.
    pub async fn recv_buf(&self, buf: &mut Vec<u8>) -> io::Result<usize> {
        self.handle.recv_buf(buf).await
    }

    /// Takes a datagram if there is one.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`recv`](Self::recv).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.try_recv(buf).map(|(len, _)| len)
    }

    /// As [`recv`](Self::recv), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.handle.poll_recv(cx, buf).map_ok(drop)
    }

    /// Sends a datagram to the peer; waits while too much waits for the device. Returns its length.
    ///
    /// # Errors
    /// `InvalidInput` if it is longer than the path carries, or the peer has port 0 and wants no
    /// answer; `OutOfMemory`; otherwise as [`recv`](Self::recv).
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.handle.send(None, buf).await
    }

    /// Sends a datagram if there is room.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`send`](Self::send).
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.handle.try_send(None, buf)
    }

    /// As [`send`](Self::send), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.handle.poll_send(cx, None, buf)
    }

    /// Waits until a receive would not wait.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub async fn readable(&self) -> io::Result<()> {
        self.handle.readable().await
    }

    /// Waits until there is room for a datagram of the largest size.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub async fn writable(&self) -> io::Result<()> {
        self.handle.writable().await
    }

    /// Sends a datagram to the peer that comes from `from`, whom the peer may never have sent to,
    /// instead of from the flow's own address. What the peer answers is another flow.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `AddrNotAvailable` if `from` is no address that the stack
    /// answers for, or of the other family; otherwise as [`send`](Self::send).
    pub fn try_send_from(&self, buf: &[u8], from: SocketAddr) -> io::Result<usize> {
        self.handle.try_send_from(from, buf)
    }

    /// Tells the peer by ICMP that nobody listens there. The flow goes on.
    pub fn tell_refused(&self) {
        self.handle.tell_refused();
    }

    /// Ends the flow, and tells the peer by ICMP that nobody listens there.
    pub fn refuse(self) {
        self.handle.refuse();
    }

    /// Traffic of the flow.
    #[must_use]
    pub fn stats(&self) -> UdpStats {
        self.handle.stats()
    }
}
