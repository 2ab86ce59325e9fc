//! Packets in transit: the real octets that the core built, with metadata for observers.

use crate::topology::NodeId;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::sched::SegmentClass;
use ackline_tcp_core::wire::TxChecksum;
use ackline_tcp_core::{ConnId, Instant, TxId};
use std::net::IpAddr;
use std::num::NonZeroU16;

/// What makes a packet one for several of a connection, as devices with segmentation offload exchange them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPacket {
    /// Octets of its headers of IP and TCP, which each of the packets would have.
    pub header_len: usize,
    /// Octets of data in each of them, and at most as many in the last one.
    pub segment_size: NonZeroU16,
    /// What remains to be done for its checksum: [`TxChecksum::Partial`].
    pub checksum: TxChecksum,
}

impl SuperPacket {
    /// For how many packets it stands, if it has so many octets.
    #[must_use]
    pub fn packets(&self, octets: usize) -> usize {
        octets.saturating_sub(self.header_len).div_ceil(self.segment_size.get().into()).max(1)
    }
}

/// One IP packet inside the simulated network.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The packet, from the first octet of the IP header. Its hop limit is only decremented if checksums are
    /// [computed](crate::Checksums).
    pub bytes: Vec<u8>,
    /// Bytes that a link serialises for it, without framing, by the sender's pricing.
    pub price: u32,
    /// When it left its host.
    pub sent_at: Instant,
    /// When it entered its current or last queue.
    pub queued_at: Instant,
    /// Number of the packet within the simulation; duplicates have the number of their original.
    pub number: u64,
    /// The host that sent it; `None` before it reaches a link.
    pub from: Option<NodeId>,
    /// The node of its destination address, as determined by its sender; `None` if unknown, so that routers
    /// must look at the octets.
    pub to: Option<NodeId>,
    /// The sender computed the transport checksum, so the receiver verifies it.
    pub checksummed: bool,
    /// It stands for several, and passes as one.
    pub super_packet: Option<SuperPacket>,
    /// Number of routers that may still forward it.
    pub(crate) hops_left: u8,
    /// Who sent it, for recorders.
    pub origin: Origin,
}

/// Where a packet came from and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The connection at the sending host, if there is one.
    pub conn: Option<ConnId>,
    /// Its kind; of a packet that entered at a port, as far as its headers and those of the packets before it tell.
    pub class: SegmentClass,
    /// Why it was sent; `None` if that is not known, because it entered at a [port](crate::Sim::add_port).
    pub reason: Option<SendReason>,
    /// The sender's handle, for reports of departure.
    pub tx: TxId,
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// The transport does not understand ECN.
    NotEct,
    /// ECT(0), ECT(1).
    Ect,
    /// Congestion experienced.
    Ce,
}

impl Packet {
    /// Destination address; `None` if the octets are not (or no longer) an IP packet.
    #[must_use]
    pub fn destination(&self) -> Option<IpAddr> {
        match self.bytes.first()? >> 4 {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(self.bytes.get(16..20)?).ok()?)),
            6 => Some(IpAddr::from(<[u8; 16]>::try_from(self.bytes.get(24..40)?).ok()?)),
            _ => None,
        }
    }

    /// Source address; `None` if the octets are not (or no longer) an IP packet.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        match self.bytes.first()? >> 4 {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(self.bytes.get(12..16)?).ok()?)),
            6 => Some(IpAddr::from(<[u8; 16]>::try_from(self.bytes.get(8..24)?).ok()?)),
            _ => None,
        }
    }

    /// Everything after the IP header, if that is plain (IPv6 without extension headers).
    #[must_use]
    pub fn transport(&self) -> Option<&[u8]> {
        match self.bytes.first()? >> 4 {
            4 => self.bytes.get(usize::from(self.bytes[0] & 0xf) * 4..),
            6 => self.bytes.get(40..),
            _ => None,
        }
    }

    /// Source and destination port of a TCP segment.
    #[must_use]
    pub fn ports(&self) -> Option<[u16; 2]> {
        let ports = self.transport()?.get(..4)?;
        Some([u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])])
    }

    fn traffic_class(&self) -> Option<u8> {
        let bytes = &self.bytes;
        match bytes.first()? >> 4 {
            4 => bytes.get(1).copied(),
            6 => Some(bytes[0] << 4 | bytes.get(1)? >> 4),
            _ => None,
        }
    }

    /// The ECN field.
    #[must_use]
    pub fn ecn(&self) -> EcnField {
        match self.traffic_class().unwrap_or(0) & 3 {
            0 => EcnField::NotEct,
            3 => EcnField::Ce,
            _ => EcnField::Ect,
        }
    }

    /// Sets CE if the packet is ECN-capable. False if it is not.
    pub fn mark(&mut self) -> bool {
        match self.ecn() {
            EcnField::NotEct => return false,
            EcnField::Ce => return true,
            EcnField::Ect => {}
        }
        if self.bytes[0] >> 4 == 4 {
            let old = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
            self.bytes[1] |= 3;
            let new = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
            self.update_header_checksum(old, new);
        } else {
            self.bytes[1] |= 3 << 4;
        }
        true
    }

    /// Offset of the hop limit.
    fn hop_limit_at(&self) -> Option<usize> {
        match self.bytes.first()? >> 4 {
            4 => Some(8),
            6 => Some(7),
            _ => None,
        }
    }

    /// Decrements the hop limit. False if it is exhausted.
    pub fn hop(&mut self) -> bool {
        let Some(at) = self.hop_limit_at() else { return false };
        let Some(limit) = self.bytes.get(at).copied().filter(|limit| *limit > 1) else { return false };
        self.hops_left = limit - 1;
        if at == 8 {
            let old = u16::from_be_bytes([self.bytes[8], self.bytes[9]]);
            self.bytes[8] = limit - 1;
            let new = u16::from_be_bytes([self.bytes[8], self.bytes[9]]);
            self.update_header_checksum(old, new);
        } else {
            self.bytes[at] = limit - 1;
        }
        true
    }

    /// The same without touching the octets, if nobody looks at them in transit.
    pub(crate) const fn hop_unseen(&mut self) -> bool {
        self.hops_left = self.hops_left.saturating_sub(1);
        self.hops_left > 0
    }

    /// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    fn update_header_checksum(&mut self, old: u16, new: u16) {
        let Some(field) = self.bytes.get(10..12) else { return };
        let checksum = u16::from_be_bytes([field[0], field[1]]);
        let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        self.bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

/// Recycled packet buffers, so that a long run only allocates as many as were ever in transit at once.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    free: Vec<Vec<u8>>,
}

impl PacketPool {
    /// A packet with these facts, of these octets.
    pub(crate) fn make<const N: usize>(
        &mut self,
        number: u64,
        at: Instant,
        origin: Origin,
        pieces: [&[u8]; N],
    ) -> Packet {
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve(pieces.iter().map(|piece| piece.len()).sum());
        for piece in pieces {
            bytes.extend_from_slice(piece);
        }
        let mut packet = Packet {
            price: 0,
            sent_at: at,
            queued_at: at,
            number,
            from: None,
            to: None,
            checksummed: true,
            super_packet: None,
            hops_left: 0,
            origin,
            bytes,
        };
        packet.hops_left = packet.hop_limit_at().and_then(|at| packet.bytes.get(at).copied()).unwrap_or(0);
        packet
    }

    /// Recycles a packet.
    pub(crate) fn give(&mut self, packet: Packet) {
        self.free.push(packet.bytes);
    }
}

#[cfg(test)]
pub(crate) mod test_packets {
    use super::*;
    use ackline_tcp_core::policy::sched::ControlKind;

    /// An IPv4 packet of `len` bytes, ECN-capable or not.
    pub(crate) fn ipv4(number: u64, len: usize, ect: bool) -> Packet {
        let mut bytes = vec![0_u8; len.max(20)];
        bytes[0] = 0x45;
        bytes[1] = if ect { 2 } else { 0 };
        bytes[8] = 64;
        bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
        let sum: u32 =
            bytes[..20].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        bytes[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        Packet {
            price: bytes.len() as u32,
            bytes,
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            number,
            from: None,
            to: None,
            checksummed: true,
            super_packet: None,
            hops_left: 64,
            origin: Origin {
                conn: None,
                class: SegmentClass::Control(ControlKind::Other),
                reason: Some(SendReason::NewData),
                tx: TxId(number),
            },
        }
    }

    fn header_sums_to_ones(packet: &Packet) -> bool {
        let sum: u32 = packet.bytes[..20]
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn marks_only_what_is_capable_and_keeps_the_checksum() {
        let mut packet = ipv4(0, 100, true);
        assert!(header_sums_to_ones(&packet));
        assert!(packet.mark());
        assert_eq!(packet.ecn(), EcnField::Ce);
        assert!(packet.hop());
        assert!(header_sums_to_ones(&packet), "RFC 1624");
        assert!(!ipv4(0, 100, false).mark());
    }

    #[test]
    fn hop_limit_ends_a_packet() {
        let mut packet = ipv4(0, 40, false);
        assert_eq!((0..64).filter(|_| packet.hop()).count(), 63);
    }
}
