//! Packets waiting for their next hop's address, and the ICMP errors made from them if it does not
//! answer.
//!
//! RFC 1122, section 2.3.2.2, asks to keep at least the latest packet. This keeps as many as fit
//! into a number of bytes, as Linux does, because a dropped packet costs its connection a
//! retransmission timeout.

use super::frame::addresses;
use crate::device::OutgoingPacket;
use ackline_tcp_core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, TxChecksum, Unreachable as Reason, emit_icmp,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU16;

/// Memory per packet beyond its bytes: the queue's entry and the allocator's overhead.
const OVERHEAD: usize = 64;
/// Octets of the packet that an error quotes: enough for the IP and TCP headers with all options.
const QUOTED: usize = 128;

/// A copy of an [`OutgoingPacket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldPacket {
    bytes: Box<[u8]>,
    header_len: usize,
    segment_size: Option<NonZeroU16>,
    checksum: TxChecksum,
}

impl HeldPacket {
    fn copy(packet: &OutgoingPacket<'_>) -> Self {
        let &OutgoingPacket { header, segment_size, checksum, .. } = packet;
        let bytes = packet.to_vec().into_boxed_slice();
        Self { bytes, header_len: header.len(), segment_size, checksum }
    }

    pub(super) fn packet(&self) -> OutgoingPacket<'_> {
        let (header, payload) = self.bytes.split_at(self.header_len.min(self.bytes.len()));
        let Self { segment_size, checksum, .. } = *self;
        OutgoingPacket::new(header, [payload, &[]]).with_segment_size(segment_size).with_checksum(checksum)
    }

    const fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// The packets, by next hop.
#[derive(Debug)]
pub(super) struct HoldQueues {
    queues: BTreeMap<IpAddr, HopQueue>,
    /// Sum of all costs.
    total: usize,
    max_each: usize,
    max_total: usize,
}

#[derive(Debug, Default)]
struct HopQueue {
    packets: VecDeque<HeldPacket>,
    cost: usize,
}

impl HoldQueues {
    pub(super) const fn new(max_each: usize, max_total: usize) -> Self {
        Self { queues: BTreeMap::new(), total: 0, max_each, max_total }
    }

    /// Keeps a packet for the neighbour `hop`. If there is no room, the oldest packets for `hop`
    /// are dropped, and if that is not enough, this one is. Returns the number of dropped packets.
    pub(super) fn push(&mut self, hop: IpAddr, packet: &OutgoingPacket<'_>) -> u64 {
        let held = HeldPacket::copy(packet);
        let cost = held.cost();
        let queue = self.queues.entry(hop).or_default();
        let mut dropped = 0;
        while queue.cost + cost > self.max_each || self.total + cost > self.max_total {
            let Some(oldest) = queue.packets.pop_front() else {
                self.queues.remove(&hop);
                return dropped + 1;
            };
            queue.cost -= oldest.cost();
            self.total -= oldest.cost();
            dropped += 1;
        }
        queue.cost += cost;
        self.total += cost;
        queue.packets.push_back(held);
        dropped
    }

    /// Takes the packets that waited for the neighbour, in order.
    pub(super) fn take(&mut self, hop: IpAddr) -> VecDeque<HeldPacket> {
        let HopQueue { packets, cost } = self.queues.remove(&hop).unwrap_or_default();
        self.total -= cost;
        packets
    }

    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.total
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The neighbour did not answer.
    NoAnswer,
    /// There is no way to the destination.
    NoRoute,
}

/// The ICMP error for a packet that could not be sent, from this host to itself, as the kernel
/// makes it: destination unreachable with code host (1) or network (0) of RFC 792, or address (3)
/// or no route (0) of RFC 4443, section 3.1. `None` if it is not an IP packet.
pub(super) fn unreachable(packet: &OutgoingPacket<'_>, why: GivenUp) -> Option<Box<[u8]>> {
    let (source, _) = addresses(packet.header)?;
    let (reason, code) = match (why, source) {
        (GivenUp::NoRoute, _) => (Reason::Network, 0),
        (GivenUp::NoAnswer, IpAddr::V4(_)) => (Reason::Host, 1),
        (GivenUp::NoAnswer, IpAddr::V6(_)) => (Reason::Host, 3),
    };
    let message = IcmpEmit::Error(IcmpErrorKind::DestinationUnreachable { reason, code });
    let header = IcmpHeader { src: source, dst: source, ttl: 64, message };
    let quote = packet.header.get(..QUOTED).unwrap_or(packet.header);
    let mut buf = HeaderBuf::new();
    emit_icmp(&header, [quote, &[]], &mut buf).ok()?;
    Some([buf.as_slice(), quote].concat().into_boxed_slice())
}
