//! The stack as a stream and a sink of packets.

use super::AnyIpPktFrame;
use super::filter::IpFilters;
use super::packet::{Kind, classify};
use super::udp::UdpMsg;
use crate::queue::{NotSent, Receiver, Sender};
use crate::queue_device::gone;
use futures_core::Stream;
use futures_sink::Sink;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Where packets from the program go.
pub(super) struct Inlets {
    pub(super) stack: Sender<AnyIpPktFrame>,
    pub(super) udp: Option<Sender<UdpMsg>>,
    pub(super) tcp: bool,
    pub(super) icmp: bool,
}

/// Takes the packets of a network, as a sink, and gives those that are for it, as a stream. Made by
/// a [`StackBuilder`](super::StackBuilder). Dropping it ends the stack.
pub struct Stack {
    ip_filters: IpFilters<'static>,
    inlets: Inlets,
    /// What had no room.
    held: Option<HeldInput>,
    from_stack: Receiver<AnyIpPktFrame>,
}

enum HeldInput {
    Packet(AnyIpPktFrame),
    Datagram(UdpMsg),
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("ip_filters", &self.ip_filters).finish_non_exhaustive()
    }
}

impl Stack {
    pub(super) const fn new(
        ip_filters: IpFilters<'static>,
        inlets: Inlets,
        from_stack: Receiver<AnyIpPktFrame>,
    ) -> Self {
        Self { ip_filters, inlets, held: None, from_stack }
    }

    /// Hands over `item`, or holds it.
    fn give(&mut self, item: HeldInput) -> io::Result<()> {
        self.held = match item {
            HeldInput::Packet(packet) => match self.inlets.stack.try_send(packet) {
                Ok(()) => None,
                Err(NotSent::Full(packet)) => Some(HeldInput::Packet(packet)),
                Err(NotSent::Closed) => return Err(gone()),
            },
            HeldInput::Datagram(datagram) => {
                match self.inlets.udp.as_ref().map(|udp| udp.try_send(datagram)) {
                    Some(Err(NotSent::Full(datagram))) => Some(HeldInput::Datagram(datagram)),
                    // Without a reader they are dropped: the rest of the stack goes on.
                    Some(Ok(()) | Err(NotSent::Closed)) | None => None,
                }
            }
        };
        Ok(())
    }

    /// Hands over what is held.
    fn poll_give(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        while let Some(item) = &self.held {
            ready!(match (item, &self.inlets.udp) {
                (HeldInput::Datagram(_), Some(udp)) => udp.poll_room(cx),
                _ => self.inlets.stack.poll_room(cx),
            });
            if let Some(item) = self.held.take() {
                self.give(item)?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Packets for the network.
impl Stream for Stack {
    type Item = io::Result<AnyIpPktFrame>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.from_stack.poll_next(cx).map(|packet| packet.map(Ok))
    }
}

/// Packets from the network. A sink that is not ready waits for the stack, or for the reader of the
/// UDP socket. An error in a packet concerns that packet alone.
impl Sink<AnyIpPktFrame> for Stack {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_give(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, packet: AnyIpPktFrame) -> Result<(), Self::Error> {
        if packet.is_empty() {
            return Ok(());
        }
        let (from, to, kind) = classify(&packet)?;
        if !self.ip_filters.is_allowed(&from, &to) {
            return Ok(());
        }
        let Inlets { tcp, icmp, .. } = self.inlets;
        match kind {
            Kind::Tcp | Kind::IcmpError if tcp => self.give(HeldInput::Packet(packet)),
            Kind::Icmp if icmp => self.give(HeldInput::Packet(packet)),
            Kind::Unclear => self.give(HeldInput::Packet(packet)),
            Kind::Udp(datagram) => self.give(HeldInput::Datagram(datagram)),
            Kind::Tcp | Kind::IcmpError | Kind::Icmp | Kind::Ignored => Ok(()),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_give(cx)
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.from_stack.close();
        Poll::Ready(Ok(()))
    }
}
