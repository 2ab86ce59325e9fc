//! IP packets other than TCP and UDP: pings for any address, and protocols that the stack does not
//! know.

use crate::io_error;
use crate::shard::Anchor;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Notify;
use tokio::task::coop::{consume_budget, poll_proceed};

/// The packets of a [`Stack`](crate::Stack) that it does not use itself: see
/// [`packets`](crate::Stack::packets). Dropping it drops what waits, and such packets are refused
/// again.
#[derive(Debug)]
pub struct Packets {
    shard: Arc<Anchor>,
    /// Notified of packets, and of the end.
    arrivals: Arc<Notify>,
}

impl Packets {
    pub(crate) fn new(shard: Arc<Anchor>, arrivals: Arc<Notify>) -> Self {
        Self { shard, arrivals }
    }

    /// Waits for the next packet, which begins with its IP header. Several tasks may wait at once;
    /// dropping the future loses no packet.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone and no packet is left; `NotConnected` once the stack
    /// shuts down.
    pub async fn recv(&self) -> io::Result<Box<[u8]>> {
        consume_budget().await;
        loop {
            let mut arrival = pin!(self.arrivals.notified());
            // Before the queue is looked at, so that no packet in between is missed.
            arrival.as_mut().enable();
            if let Some(packet) = self.next(None)? {
                return Ok(packet);
            }
            arrival.await;
        }
    }

    /// Takes a packet if there is one.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`recv`](Self::recv).
    pub fn try_recv(&self) -> io::Result<Box<[u8]>> {
        self.next(None)?.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// As [`recv`](Self::recv), but only the task of the latest call is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Box<[u8]>>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = match self.next(Some(cx)) {
            Ok(Some(packet)) => Ok(packet),
            Ok(None) => return Poll::Pending,
            Err(error) => Err(error),
        };
        budget.made_progress();
        Poll::Ready(outcome)
    }

    /// Sends a packet, which begins with its IP header: any protocol but TCP and UDP. Its source
    /// must be an address that the stack answers for; header and checksums must be right. It passes
    /// the egress scheduler, and is not fragmented.
    ///
    /// # Errors
    /// `InvalidInput` if it is malformed, TCP, UDP, or longer than the device carries, or its
    /// destination is no host's; `AddrNotAvailable` if the stack does not have its source;
    /// `WouldBlock` if too many wait for the device; `OutOfMemory`; `NetworkDown` if the device is
    /// gone.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.shard.act(|state, now, _| {
            state.check_device()?;
            state.endpoint.packets().send(now, packet).map_err(io_error::packet)
        })
    }

    /// The next packet; if there is none, registers the current task.
    fn next(&self, cx: Option<&Context<'_>>) -> io::Result<Option<Box<[u8]>>> {
        self.shard.lock().next_packet(cx.map(Context::waker))
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.stop_packets(now));
    }
}
