//! IP packets that the stack does not use itself, for a program that asks for them: pings for
//! addresses that it answers for in the name of others, other ICMP messages, and protocols other
//! than TCP and UDP. And packets of the program's own, sent beside the stack's.
//!
//! What would be refused with an ICMP error goes to the program instead, whole, with its IP header.
//! The queue is bounded in bytes; what finds no room is dropped and counted. Nothing of TCP and UDP
//! passes here in either direction, so no program can disturb a connection.

use super::Ip;
use crate::egress::{Egress, Stray};
use crate::error::PacketError;
use crate::events::DropReason;
use crate::share::{Context, Cx, Ingested, is_unicast};
use crate::time::Instant;
use crate::wire::{self, IcmpMessage, IpInfo, PROTOCOL_TCP, PROTOCOL_UDP, Payload, RxPacket, Transport};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

/// What a packet counts beside its octets.
const OVERHEAD: usize = size_of::<Box<[u8]>>();
/// Maximum packets of the program that wait for the device.
const MAX_UNSENT: usize = 256;

/// The packets that wait for the program.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    /// Somebody takes them.
    taken: bool,
    queue: VecDeque<Box<[u8]>>,
    /// What the queue counts, in bytes.
    waiting: usize,
    /// One has come since the program was told.
    news: bool,
}

impl Packets {
    pub(crate) const fn are_taken(&self) -> bool {
        self.taken
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.waiting
    }
}

/// The packets that an endpoint's stack does not use itself, for a program:
/// [`Endpoint::packets`](crate::Endpoint::packets).
#[derive(Debug)]
pub struct RawPackets<'a> {
    ip: &'a mut Ip,
    egress: &'a mut Egress,
    context: &'a mut Context,
}

impl<'a> RawPackets<'a> {
    pub(crate) const fn new(ip: &'a mut Ip, egress: &'a mut Egress, context: &'a mut Context) -> Self {
        Self { ip, egress, context }
    }
}

impl RawPackets<'_> {
    /// With `on`, packets that the stack does not use itself wait for
    /// [`recv`](Self::recv), instead of being dropped or refused: pings and other
    /// ICMP messages for addresses that are not among
    /// [`addresses`](crate::EndpointConfig::addresses); ICMP messages that concern neither TCP nor
    /// UDP, for any address, but for pings; and other protocols. All of them are for addresses that
    /// the endpoint answers for. Without, what waits is dropped.
    ///
    /// # Errors
    /// [`PacketError::InUse`] if they are taken already.
    pub fn take(&mut self, now: Instant, on: bool) -> Result<(), PacketError> {
        self.context.at(now);
        if on && self.ip.packets.taken {
            return Err(PacketError::InUse);
        }
        self.ip.packets = Packets { taken: on, ..Packets::default() };
        Ok(())
    }

    /// The next packet, from the first octet of its IP header on; its header, length and transport
    /// checksum have been checked as far as the protocol is known. O(1).
    pub fn recv(&mut self) -> Option<Box<[u8]>> {
        let packet = self.ip.packets.queue.pop_front()?;
        self.ip.packets.waiting -= packet.len() + OVERHEAD;
        self.context.observe.counters.packets_taken += 1;
        Some(packet)
    }

    /// True once after packets have come. Drain it as
    /// [`Endpoint::poll_event`](crate::Endpoint::poll_event).
    pub fn poll_event(&mut self) -> bool {
        core::mem::take(&mut self.ip.packets.news)
    }

    /// Sends an IP packet, from the first octet of its header on: any protocol but TCP and UDP,
    /// which are the stack's. Header and checksums must be right, and the source an address that
    /// the endpoint answers for. It waits in the egress scheduler until the next
    /// [`transmit`](crate::Endpoint::transmit), and is not fragmented.
    ///
    /// # Errors
    /// [`PacketError::Malformed`], [`PacketError::Protocol`], [`PacketError::NotLocal`],
    /// [`PacketError::BadRemote`], [`PacketError::TooLong`]; [`PacketError::NoRoom`] if too many
    /// wait for the device; [`PacketError::OutOfMemory`].
    pub fn send(&mut self, now: Instant, packet: &[u8]) -> Result<(), PacketError> {
        let cx = &mut self.context.at(now);
        let datagram = wire::parse(&RxPacket::new(packet)).map_err(|_| PacketError::Malformed)?;
        let ip = datagram.ip;
        match datagram.transport {
            Transport::Tcp(_) | Transport::Udp(_) => return Err(PacketError::Protocol),
            Transport::Icmp(_) | Transport::Other { .. } => {}
        }
        if ip.total_len as usize != packet.len() {
            return Err(PacketError::Malformed);
        }
        if !is_unicast(ip.src) || !cx.is_local(ip.src) {
            return Err(PacketError::NotLocal);
        }
        if !is_unicast(ip.dst) {
            return Err(PacketError::BadRemote);
        }
        if ip.total_len > cx.config.mtu {
            return Err(PacketError::TooLong);
        }
        if self.egress.strays.packets() >= MAX_UNSENT {
            return Err(PacketError::NoRoom);
        }
        if !cx.observe.budget.take(packet.len()) {
            return Err(PacketError::OutOfMemory);
        }
        // If the scheduler has no room, it is lost, like one that a router drops.
        self.egress.push_stray(cx, Stray::Packet { data: packet.into() });
        Ok(())
    }
}

impl Ip {
    /// True if an ICMP message is the program's, not the stack's.
    pub(crate) fn is_for_program(&self, cx: &Cx<'_>, ip: &IpInfo, message: &IcmpMessage<'_>) -> bool {
        self.packets.are_taken()
            && match message {
                IcmpMessage::EchoRequest(_) => !cx.config.addresses.contains(&ip.dst),
                IcmpMessage::EchoReply(_) | IcmpMessage::Other { .. } => true,
                IcmpMessage::Error(error) => !matches!(error.quoted.protocol, PROTOCOL_TCP | PROTOCOL_UDP),
            }
    }

    /// A packet waits for the program.
    pub(crate) fn give_to_program(
        &mut self,
        cx: &mut Cx<'_>,
        ip: &IpInfo,
        packet: &RxPacket<'_>,
    ) -> Ingested {
        let mut octets = Payload::new([packet.head, packet.more[0], packet.more[1]]);
        octets.truncate(ip.total_len as usize);
        let cost = octets.len() + OVERHEAD;
        let fits =
            self.packets.queue.is_empty() || self.packets.waiting + cost <= cx.config.packet_buffer as usize;
        if !fits || !cx.observe.budget.take(cost) {
            return cx.drop_packet(DropReason::PacketQueueFull);
        }
        let mut data = vec![0; octets.len()];
        octets.copy_to(&mut data);
        self.packets.waiting += cost;
        self.packets.queue.push_back(data.into());
        self.packets.news = true;
        Ingested::Packet
    }
}
