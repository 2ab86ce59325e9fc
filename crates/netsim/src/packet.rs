//! Packets in transit: what the core sent, with metadata for observers.
//!
//! A packet has octets, or its headers are fields and its data a piece of the
//! [pattern](crate::pattern), until somebody wants octets.

use crate::pattern;
use crate::topology::NodeId;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::sched::SegmentClass;
use ackline_tcp_core::wire::{
    self, Datagram, HeaderBuf, IpInfo, Payload, RxChecksum, RxPacket, TcpHeader, TcpSegment, Transport,
    TxChecksum, TxChecksumMode, emit_tcp,
};
use ackline_tcp_core::{ConnId, Instant, TxId};
use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::ops::{Deref, DerefMut};

/// What makes a packet one for several of a connection, as devices with segmentation offload
/// exchange them.
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

/// One IP packet inside the simulated network. Small, because it is passed on often: what it says
/// is [`PacketData`].
#[derive(Clone, Debug)]
pub struct Packet(Box<PacketData>);

impl Deref for Packet {
    type Target = PacketData;

    fn deref(&self) -> &PacketData {
        &self.0
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut PacketData {
        &mut self.0
    }
}

/// What a [`Packet`] is, and what is known of it.
// Each link and router looks at what comes first: with thousands of flows it is in no near cache,
// and one line is less than three.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PacketData {
    /// Bytes that a link serialises for it, without framing, by the sender's pricing.
    pub price: u32,
    /// The sender computed the transport checksum, so the receiver verifies it.
    pub checksummed: bool,
    /// Its last queue was one for L4S traffic, beside one for everything else.
    pub l4s_queue: bool,
    /// Number of routers that may still forward it.
    pub(crate) hops_left: u8,
    /// The node of its destination address, as determined by its sender; `None` if unknown, so that
    /// routers must look at the octets.
    pub to: Option<NodeId>,
    /// When it entered its current or last queue.
    pub queued_at: Instant,
    /// The host that sent it; `None` before it reaches a link.
    pub from: Option<NodeId>,
    /// When it left its host.
    pub sent_at: Instant,
    /// Number of the packet within the simulation; duplicates have the number of their original.
    pub number: u64,
    /// Sender, for recorders.
    pub origin: Origin,
    body: Body,
    /// It stands for several, and passes as one.
    pub super_packet: Option<SuperPacket>,
}

/// The packet itself.
#[derive(Clone, Debug)]
enum Body {
    /// From the first octet of the IP header.
    Octets(Vec<u8>),
    /// What the octets would say.
    Fields(Fields),
}

/// A segment whose headers are fields, in the standard layout, and whose data is of the pattern.
#[derive(Clone, Copy, Debug)]
struct Fields {
    header: TcpHeader<'static>,
    data: [&'static [u8]; 2],
}

impl Fields {
    fn len(&self) -> usize {
        self.header.standard_len() + self.data[0].len() + self.data[1].len()
    }

    /// As a receiver takes it.
    #[inline]
    fn received(&self) -> Option<(IpInfo, TcpSegment<'static>)> {
        self.header.as_received(Payload::from(self.data))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut headers = HeaderBuf::new();
        // The core has found that it fits.
        if emit_tcp(&self.header, self.data, TxChecksumMode::Omit, &mut headers).is_ok() {
            for part in [headers.as_slice(), self.data[0], self.data[1]] {
                out.extend_from_slice(part);
            }
        }
    }
}

/// Where a packet came from and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The connection at the sending host, if there is one.
    pub conn: Option<ConnId>,
    /// Its kind; of a packet that entered at a port, as far as its headers and those of the packets
    /// before it tell.
    pub class: SegmentClass,
    /// Why it was sent; `None` if that is not known, because it entered at a
    /// [port](crate::Sim::add_port).
    pub reason: Option<SendReason>,
    /// The sender's handle, for reports of departure.
    pub tx: TxId,
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// The transport does not understand ECN.
    NotEct,
    /// ECT(0): capable of classic ECN.
    Ect0,
    /// ECT(1): capable of L4S (RFC 9331, section 4.1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl PacketData {
    /// The packet, from the first octet of the IP header. If its headers are fields, they are made
    /// for this call. Its hop limit is only decremented if checksums are
    /// [computed](crate::Checksums).
    #[must_use]
    pub fn octets(&self) -> Cow<'_, [u8]> {
        match &self.body {
            Body::Octets(octets) => Cow::Borrowed(octets),
            Body::Fields(fields) => {
                let mut octets = Vec::with_capacity(fields.len());
                fields.write(&mut octets);
                Cow::Owned(octets)
            }
        }
    }

    /// The same, to be changed: from now on the packet has octets.
    pub fn octets_mut(&mut self) -> &mut Vec<u8> {
        if let Body::Fields(_) = self.body {
            self.body = Body::Octets(self.octets().into_owned());
        }
        match &mut self.body {
            Body::Octets(octets) => octets,
            Body::Fields(_) => unreachable!("they were just made octets"),
        }
    }

    /// Number of octets.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Octets(octets) => octets.len(),
            Body::Fields(fields) => fields.len(),
        }
    }

    /// True if it has no octets, and so is no IP packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The headers of a segment that has no octets.
    #[must_use]
    pub const fn fields(&self) -> Option<&TcpHeader<'static>> {
        match &self.body {
            Body::Octets(_) => None,
            Body::Fields(fields) => Some(&fields.header),
        }
    }

    /// The TCP segment in it, whatever its checksum; `None` if there is none (any more). Without
    /// [`raw_options`](TcpSegment::raw_options) if its headers are fields.
    #[must_use]
    pub fn segment(&self) -> Option<TcpSegment<'_>> {
        match &self.body {
            Body::Octets(octets) => {
                let packet = RxPacket::new(octets).with_checksum(RxChecksum::Trusted);
                match wire::parse(&packet) {
                    Ok(Datagram { transport: Transport::Tcp(segment), .. }) => Some(segment),
                    _ => None,
                }
            }
            Body::Fields(fields) => fields.received().map(|(_, segment)| segment),
        }
    }

    /// What its receiver gets, if the headers are fields. Inlined, because it is large.
    #[inline(always)]
    pub(crate) fn received(&self) -> Option<(IpInfo, TcpSegment<'static>)> {
        match &self.body {
            Body::Octets(_) => None,
            Body::Fields(fields) => fields.received(),
        }
    }

    /// Destination address; `None` if the octets are not (or no longer) an IP packet.
    #[must_use]
    pub fn destination(&self) -> Option<IpAddr> {
        let octets = match &self.body {
            Body::Octets(octets) => octets,
            Body::Fields(fields) => return Some(fields.header.dst.ip()),
        };
        match octets.first()? >> 4 {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(octets.get(16..20)?).ok()?)),
            6 => Some(IpAddr::from(<[u8; 16]>::try_from(octets.get(24..40)?).ok()?)),
            _ => None,
        }
    }

    /// Source address; `None` if the octets are not (or no longer) an IP packet.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        let octets = match &self.body {
            Body::Octets(octets) => octets,
            Body::Fields(fields) => return Some(fields.header.src.ip()),
        };
        match octets.first()? >> 4 {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(octets.get(12..16)?).ok()?)),
            6 => Some(IpAddr::from(<[u8; 16]>::try_from(octets.get(8..24)?).ok()?)),
            _ => None,
        }
    }

    /// True if it is an IPv6 packet.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        match &self.body {
            Body::Octets(octets) => octets.first().is_some_and(|first| first >> 4 == 6),
            Body::Fields(fields) => fields.header.src.is_ipv6(),
        }
    }

    /// Everything after the IP header, if that is plain (IPv6 without extension headers).
    #[must_use]
    pub fn transport(&self) -> Option<Cow<'_, [u8]>> {
        match self.octets() {
            Cow::Borrowed(octets) => octets.get(ip_header_len(octets)?..).map(Cow::Borrowed),
            Cow::Owned(mut octets) => {
                octets.drain(..ip_header_len(&octets)?);
                Some(Cow::Owned(octets))
            }
        }
    }

    /// Source and destination port of a TCP segment.
    #[must_use]
    pub fn ports(&self) -> Option<[u16; 2]> {
        let octets = match &self.body {
            Body::Octets(octets) => octets,
            Body::Fields(fields) => return Some([fields.header.src.port(), fields.header.dst.port()]),
        };
        let start = ip_header_len(octets)?;
        let ports = octets.get(start..)?.get(..4)?;
        Some([u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])])
    }

    fn traffic_class(&self) -> Option<u8> {
        let octets = match &self.body {
            Body::Octets(octets) => octets,
            Body::Fields(fields) => return Some(fields.header.tos),
        };
        match octets.first()? >> 4 {
            4 => octets.get(1).copied(),
            6 => Some(octets[0] << 4 | octets.get(1)? >> 4),
            _ => None,
        }
    }

    /// The ECN field.
    #[must_use]
    pub fn ecn(&self) -> EcnField {
        match self.traffic_class().unwrap_or(0) & 3 {
            0 => EcnField::NotEct,
            1 => EcnField::Ect1,
            2 => EcnField::Ect0,
            _ => EcnField::Ce,
        }
    }

    /// True if a queue for L4S is to take it (RFC 9331, section 5.1): ECT(1) or CE.
    #[must_use]
    pub fn is_l4s(&self) -> bool {
        matches!(self.ecn(), EcnField::Ect1 | EcnField::Ce)
    }

    /// Sets CE if the packet is ECN-capable. False if it is not.
    pub fn mark(&mut self) -> bool {
        match self.ecn() {
            EcnField::NotEct => return false,
            EcnField::Ce => return true,
            EcnField::Ect0 | EcnField::Ect1 => {}
        }
        match &mut self.body {
            Body::Octets(octets) if octets[0] >> 4 == 4 => {
                let old = u16::from_be_bytes([octets[0], octets[1]]);
                octets[1] |= 3;
                let new = u16::from_be_bytes([octets[0], octets[1]]);
                update_header_checksum(octets, old, new);
            }
            Body::Octets(octets) => octets[1] |= 3 << 4,
            Body::Fields(fields) => fields.header.tos |= 3,
        }
        true
    }

    /// The hop limit.
    fn hop_limit(&self) -> Option<u8> {
        match &self.body {
            Body::Octets(octets) => octets.get(hop_limit_at(octets)?).copied(),
            Body::Fields(fields) => Some(fields.header.ttl),
        }
    }

    /// Decrements the hop limit. False if it is exhausted.
    pub fn hop(&mut self) -> bool {
        let Some(limit) = self.hop_limit().filter(|limit| *limit > 1) else { return false };
        self.hops_left = limit - 1;
        match &mut self.body {
            Body::Octets(octets) if octets[0] >> 4 == 4 => {
                let old = u16::from_be_bytes([octets[8], octets[9]]);
                octets[8] = limit - 1;
                let new = u16::from_be_bytes([octets[8], octets[9]]);
                update_header_checksum(octets, old, new);
            }
            Body::Octets(octets) => octets[7] = limit - 1,
            Body::Fields(fields) => fields.header.ttl = limit - 1,
        }
        true
    }

    /// The same without touching the octets, if nobody looks at them in transit.
    pub(crate) const fn hop_unseen(&mut self) -> bool {
        self.hops_left = self.hops_left.saturating_sub(1);
        self.hops_left > 0
    }
}

/// Octets of the IP header, if it is plain.
fn ip_header_len(octets: &[u8]) -> Option<usize> {
    match octets.first()? >> 4 {
        4 => Some(usize::from(octets[0] & 0xf) * 4),
        6 => Some(40),
        _ => None,
    }
}

/// Offset of the hop limit.
fn hop_limit_at(octets: &[u8]) -> Option<usize> {
    match octets.first()? >> 4 {
        4 => Some(8),
        6 => Some(7),
        _ => None,
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
fn update_header_checksum(octets: &mut [u8], old: u16, new: u16) {
    let Some(field) = octets.get(10..12) else { return };
    let checksum = u16::from_be_bytes([field[0], field[1]]);
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    octets[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Recycled packets, so that a long run only allocates as many as were ever in transit at once.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    free: Vec<Packet>,
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
        let mut packet = self.blank(number, at, origin);
        if let Body::Fields(_) = packet.body {
            packet.body = Body::Octets(vec![]);
        }
        if let Body::Octets(octets) = &mut packet.body {
            octets.clear();
            octets.reserve(pieces.iter().map(|piece| piece.len()).sum());
            for piece in pieces {
                octets.extend_from_slice(piece);
            }
        }
        packet.hops_left = packet.hop_limit().unwrap_or(0);
        packet
    }

    /// A packet with these facts, of a segment with these headers. It has octets nevertheless if
    /// `data` is not memory of the [pattern](crate::pattern).
    pub(crate) fn make_of_fields(
        &mut self,
        number: u64,
        at: Instant,
        origin: Origin,
        header: &TcpHeader<'static>,
        data: [&[u8]; 2],
    ) -> Packet {
        if let (Some(first), Some(second)) = (pattern::own(data[0]), pattern::own(data[1])) {
            let mut packet = self.blank(number, at, origin);
            packet.hops_left = header.ttl;
            packet.body = Body::Fields(Fields { header: *header, data: [first, second] });
            return packet;
        }
        let mut headers = HeaderBuf::new();
        // The core has found that it fits.
        let _ = emit_tcp(header, data, TxChecksumMode::Omit, &mut headers);
        self.make(number, at, origin, [headers.as_slice(), data[0], data[1]])
    }

    /// A packet with these facts, and any body.
    fn blank(&mut self, number: u64, at: Instant, origin: Origin) -> Packet {
        let Some(mut packet) = self.free.pop() else {
            return Packet(Box::new(PacketData {
                price: 0,
                sent_at: at,
                queued_at: at,
                number,
                from: None,
                to: None,
                checksummed: true,
                l4s_queue: false,
                super_packet: None,
                hops_left: 0,
                origin,
                body: Body::Octets(vec![]),
            }));
        };
        // All but the body, which the caller writes.
        (packet.price, packet.hops_left, packet.checksummed, packet.super_packet) = (0, 0, true, None);
        (packet.sent_at, packet.queued_at, packet.number) = (at, at, number);
        (packet.from, packet.to, packet.origin, packet.l4s_queue) = (None, None, origin, false);
        packet
    }

    /// Recycles a packet.
    pub(crate) fn give(&mut self, packet: Packet) {
        self.free.push(packet);
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
        Packet(Box::new(PacketData {
            price: bytes.len() as u32,
            body: Body::Octets(bytes),
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            number,
            from: None,
            to: None,
            checksummed: true,
            l4s_queue: false,
            super_packet: None,
            hops_left: 64,
            origin: Origin {
                conn: None,
                class: SegmentClass::Control(ControlKind::Other),
                reason: Some(SendReason::NewData),
                tx: TxId(number),
            },
        }))
    }

    fn header_sums_to_ones(packet: &Packet) -> bool {
        let sum: u32 = packet.octets()[..20]
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
