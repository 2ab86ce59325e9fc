//! Datagrams, as a stream and a sink.

use super::runner::TTL;
use crate::queue::{NotSent, Receiver, Sender};
use crate::queue_device::gone;
use ackline_runtime::{IncomingUdp, UdpFlow};
use ackline_tcp_core::wire::{self, HeaderBuf, TxChecksumMode, UdpHeader};
use futures_core::Stream;
use futures_sink::Sink;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A datagram: its data, where it comes from, and where it goes.
pub type UdpMsg = (Vec<u8>, SocketAddr, SocketAddr);

/// Receives the datagrams to any address and port, and sends some from any.
pub struct UdpSocket {
    reader: ReadHalf,
    writer: WriteHalf,
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket").finish_non_exhaustive()
    }
}

impl UdpSocket {
    pub(super) const fn new(
        received: Receiver<UdpMsg>,
        incoming: IncomingUdp,
        outgoing: Sender<Vec<u8>>,
    ) -> Self {
        let reader = ReadHalf { received, incoming: Some(incoming), flow: None };
        Self { reader, writer: WriteHalf { outgoing, unsent: None } }
    }

    /// A stream of received datagrams, and a sink for others.
    #[must_use]
    pub fn split(self) -> (ReadHalf, WriteHalf) {
        (self.reader, self.writer)
    }
}

/// The stream of received datagrams, each with its sender and its destination.
pub struct ReadHalf {
    received: Receiver<UdpMsg>,
    /// Those that came in fragments, and were put together by the stack.
    incoming: Option<IncomingUdp>,
    /// Where such come from, as long as some wait.
    flow: Option<UdpFlow>,
}

impl fmt::Debug for ReadHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadHalf").finish_non_exhaustive()
    }
}

impl Stream for ReadHalf {
    type Item = UdpMsg;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = self.received.poll_next(cx) {
            return Poll::Ready(next);
        }
        loop {
            if let Some(datagram) = self.flow.as_ref().and_then(next_of) {
                return Poll::Ready(Some(datagram));
            }
            // The next one begins another flow.
            self.flow = None;
            let Some(incoming) = &self.incoming else { return Poll::Pending };
            match ready!(incoming.poll_accept(cx)) {
                Ok(flow) => self.flow = Some(flow),
                // The stack has ended; what has been received comes still.
                Err(_) => self.incoming = None,
            }
        }
    }
}

/// The next datagram of a flow, if one waits.
fn next_of(flow: &UdpFlow) -> Option<UdpMsg> {
    let (from, to) = (flow.peer_addr().ok()?, flow.local_addr().ok()?);
    let mut data = vec![0; LONGEST];
    let length = flow.try_recv(&mut data).ok()?;
    data.truncate(length);
    data.shrink_to_fit();
    Some((data, from, to))
}

/// Most data in a datagram.
const LONGEST: usize = 65_535;

/// The sink for datagrams. Each may come from any address and port, and is one packet, whatever the
/// MTU is: TUN devices take it.
pub struct WriteHalf {
    outgoing: Sender<Vec<u8>>,
    /// What had no room.
    unsent: Option<Vec<u8>>,
}

impl fmt::Debug for WriteHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteHalf").finish_non_exhaustive()
    }
}

impl WriteHalf {
    fn give(&mut self, packet: Vec<u8>) -> io::Result<()> {
        self.unsent = match self.outgoing.try_send(packet) {
            Ok(()) => None,
            Err(NotSent::Full(packet)) => Some(packet),
            Err(NotSent::Closed) => return Err(gone()),
        };
        Ok(())
    }

    fn poll_give(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        while self.unsent.is_some() {
            ready!(self.outgoing.poll_room(cx));
            if let Some(packet) = self.unsent.take() {
                self.give(packet)?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Sink<UdpMsg> for WriteHalf {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_give(cx)
    }

    /// # Errors
    /// `InvalidInput` if the addresses are of different families, or the data is too long for a
    /// packet; `BrokenPipe` if the stack is gone.
    fn start_send(mut self: Pin<&mut Self>, (data, src, dst): UdpMsg) -> Result<(), Self::Error> {
        let mut headers = HeaderBuf::new();
        wire::emit_udp(
            &UdpHeader { src, dst, ttl: TTL },
            [&data, &[]],
            TxChecksumMode::Complete,
            &mut headers,
        )
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.give([headers.as_slice(), &data].concat())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_give(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_give(cx)
    }
}
