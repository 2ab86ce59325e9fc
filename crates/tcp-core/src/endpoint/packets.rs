//! IP packets that the stack does not use itself, for a program that asks for them: pings for
//! addresses that it answers for in the name of others, other ICMP messages, and protocols other
//! than TCP and UDP. And packets of the program's own, sent beside the stack's.
//!
//! What would be refused with an ICMP error goes to the program instead, whole, with its IP header.
//! The queue is bounded in bytes; what finds no room is dropped and counted. Nothing of TCP and UDP
//! passes here in either direction, so no program can disturb a connection.

use super::ingest::is_unicast;
use super::stray::Stray;
use super::{Endpoint, Ingested};
use crate::drop_reason::DropReason;
use crate::error::PacketError;
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
pub(super) struct Packets {
    /// Somebody takes them.
    taken: bool,
    queue: VecDeque<Box<[u8]>>,
    /// What the queue counts, in bytes.
    waiting: usize,
    /// One has come since the program was told.
    news: bool,
}

impl Packets {
    pub(super) const fn are_taken(&self) -> bool {
        self.taken
    }

    /// Bytes held.
    pub(super) const fn memory(&self) -> usize {
        self.waiting
    }
}

impl Endpoint {
    /// With `on`, packets that the stack does not use itself wait for
    /// [`next_packet`](Self::next_packet), instead of being dropped or refused: pings and other
    /// ICMP messages for addresses that are not among
    /// [`addresses`](crate::EndpointConfig::addresses); ICMP messages that concern neither TCP nor
    /// UDP, for any address, but for pings; and other protocols. All of them are for addresses that
    /// the endpoint answers for. Without, what waits is dropped.
    ///
    /// # Errors
    /// [`PacketError::InUse`] if they are taken already.
    pub fn take_packets(&mut self, now: Instant, on: bool) -> Result<(), PacketError> {
        self.now = self.now.max(now);
        self.unsettled = true;
        if on && self.packets.taken {
            return Err(PacketError::InUse);
        }
        self.packets = Packets { taken: on, ..Packets::default() };
        Ok(())
    }

    /// The next packet, from the first octet of its IP header on; its header, length and transport
    /// checksum have been checked as far as the protocol is known. O(1).
    pub fn next_packet(&mut self) -> Option<Box<[u8]>> {
        let packet = self.packets.queue.pop_front()?;
        self.unsettled = true;
        self.packets.waiting -= packet.len() + OVERHEAD;
        self.observe.counters.packets_taken += 1;
        Some(packet)
    }

    /// True once after packets have come. Drain it as [`poll_event`](Self::poll_event).
    pub fn poll_packet_event(&mut self) -> bool {
        core::mem::take(&mut self.packets.news)
    }

    /// Sends an IP packet, from the first octet of its header on: any protocol but TCP and UDP,
    /// which are the stack's. Header and checksums must be right, and the source an address that
    /// the endpoint answers for. It waits in the egress scheduler until the next
    /// [`transmit`](Self::transmit), and is not fragmented.
    ///
    /// # Errors
    /// [`PacketError::Malformed`], [`PacketError::Protocol`], [`PacketError::NotLocal`],
    /// [`PacketError::BadRemote`], [`PacketError::TooLong`]; [`PacketError::NoRoom`] if too many
    /// wait for the device; [`PacketError::OutOfMemory`].
    pub fn send_packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), PacketError> {
        self.now = self.now.max(now);
        let datagram = wire::parse(&RxPacket::new(packet)).map_err(|_| PacketError::Malformed)?;
        let ip = datagram.ip;
        match datagram.transport {
            Transport::Tcp(_) | Transport::Udp(_) => return Err(PacketError::Protocol),
            Transport::Icmp(_) | Transport::Other { .. } => {}
        }
        if ip.total_len as usize != packet.len() {
            return Err(PacketError::Malformed);
        }
        if !is_unicast(ip.src) || !self.is_local(ip.src) {
            return Err(PacketError::NotLocal);
        }
        if !is_unicast(ip.dst) {
            return Err(PacketError::BadRemote);
        }
        if ip.total_len > self.config.mtu {
            return Err(PacketError::TooLong);
        }
        if self.egress.strays.packets() >= MAX_UNSENT {
            return Err(PacketError::NoRoom);
        }
        if !self.observe.budget.take(packet.len()) {
            return Err(PacketError::OutOfMemory);
        }
        self.unsettled = true;
        // If the scheduler has no room, it is lost, like one that a router drops.
        self.push_stray(now, Stray::Packet { data: packet.into() });
        Ok(())
    }

    /// True if an ICMP message is the program's, not the stack's.
    pub(super) fn is_for_program(&self, ip: &IpInfo, message: &IcmpMessage<'_>) -> bool {
        self.packets.are_taken()
            && match message {
                IcmpMessage::EchoRequest(_) => !self.config.addresses.contains(&ip.dst),
                IcmpMessage::EchoReply(_) | IcmpMessage::Other { .. } => true,
                IcmpMessage::Error(error) => !matches!(error.quoted.protocol, PROTOCOL_TCP | PROTOCOL_UDP),
            }
    }

    /// A packet waits for the program.
    pub(super) fn give_to_program(&mut self, ip: &IpInfo, packet: &RxPacket<'_>) -> Ingested {
        let mut octets = Payload::new([packet.head, packet.more[0], packet.more[1]]);
        octets.truncate(ip.total_len as usize);
        let cost = octets.len() + OVERHEAD;
        let fits = self.packets.queue.is_empty()
            || self.packets.waiting + cost <= self.config.packet_buffer as usize;
        if !fits || !self.observe.budget.take(cost) {
            return self.drop_packet(DropReason::PacketQueueFull);
        }
        let mut data = vec![0; octets.len()];
        octets.copy_to(&mut data);
        self.packets.waiting += cost;
        self.packets.queue.push_back(data.into());
        self.packets.news = true;
        Ingested::Packet
    }
}
