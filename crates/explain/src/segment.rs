//! From a captured packet to a TCP segment. Checksums are not looked at: where offload computes
//! them, captures have wrong ones.

use crate::capture::Frame;
use ackline_tcp_core::wire::{FastOpenCookie, OptionIter, PROTOCOL_TCP, TcpFlags, TcpOption, TcpOptions};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};

/// A TCP segment as it passed the capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) at_ns: u64,
    /// The interface of the file, and that of LINUX_SLL2.
    pub(crate) interface: (u32, u32),
    pub(crate) outbound: Option<bool>,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// Of the IPv4 header; zero: it has none.
    pub(crate) id: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    /// As in the header, unscaled.
    pub(crate) window: u16,
    pub(crate) options: TcpOptions,
    /// The fast-open option of a SYN.
    pub(crate) fast_open: Option<FastOpenCookie>,
    /// Octets of data, also those that were not captured.
    pub(crate) length: u32,
    /// ECN's two bits in the IP header.
    pub(crate) ecn: u8,
    pub(crate) comment: &'a str,
}

impl Segment<'_> {
    pub(crate) const fn has(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }
}

/// Packets that no story is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkippedPackets {
    /// Neither IPv4 nor IPv6: ARP and others.
    pub not_ip: u64,
    /// UDP, ICMP and others.
    pub not_tcp: u64,
    /// IP fragments but the first.
    pub fragments: u64,
    /// The snap length cut them within the TCP header.
    pub cut: u64,
    /// The link type is not known.
    pub link_type: u64,
}

/// The first bits of TCP's header that are always needed.
const HEADER: usize = 20;

const LINKTYPE_NULL: u16 = 0;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_LOOP: u16 = 108;
const LINKTYPE_LINUX_SLL: u16 = 113;
const LINKTYPE_IPV4: u16 = 228;
const LINKTYPE_IPV6: u16 = 229;
const LINKTYPE_LINUX_SLL2: u16 = 276;
/// LINKTYPE_RAW, and the numbers that BSD and OpenBSD have written for it.
const LINKTYPE_RAW: [u16; 3] = [101, 12, 14];

/// The segment in `frame`; `None` counts why there is none.
pub(crate) fn parse<'a>(frame: &Frame<'a>, skipped: &mut SkippedPackets) -> Option<Segment<'a>> {
    let mut device = 0;
    let data = frame.data;
    let sliced = match frame.link_type {
        LINKTYPE_ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        LINKTYPE_NULL | LINKTYPE_LOOP => data.get(4..).and_then(|rest| LaxSlicedPacket::from_ip(rest).ok()),
        LINKTYPE_LINUX_SLL => cooked(data, 14, 16),
        LINKTYPE_LINUX_SLL2 => {
            device = data.get(4..8).and_then(|d| d.first_chunk()).map_or(0, |d| u32::from_be_bytes(*d));
            cooked(data, 0, 20)
        }
        LINKTYPE_IPV4 | LINKTYPE_IPV6 => LaxSlicedPacket::from_ip(data).ok(),
        raw if LINKTYPE_RAW.contains(&raw) => LaxSlicedPacket::from_ip(data).ok(),
        _ => {
            skipped.link_type += 1;
            return None;
        }
    };
    let Some(net) = sliced.and_then(|sliced| sliced.net) else {
        skipped.not_ip += 1;
        return None;
    };
    // What the IP header says of the length; zero where offload has yet to fill it in (BIG TCP, RFC
    // 2675).
    let (source, destination, ecn, id, payload, header, stated, later) = match &net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let later = header.fragments_offset().value() > 0;
            let (source, destination) = (header.source_addr().into(), header.destination_addr().into());
            (
                source,
                destination,
                header.ecn(),
                header.identification(),
                ip.payload(),
                header.slice(),
                usize::from(header.total_len()),
                later,
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (source, destination) = (header.source_addr().into(), header.destination_addr().into());
            let stated = match usize::from(header.payload_length()) {
                0 => 0,
                length => length + header.slice().len(),
            };
            (source, destination, header.ecn(), 0, ip.payload(), header.slice(), stated, false)
        }
        LaxNetSlice::Arp(_) => {
            skipped.not_ip += 1;
            return None;
        }
    };
    if later {
        skipped.fragments += 1;
        return None;
    }
    if payload.ip_number.0 != PROTOCOL_TCP {
        skipped.not_tcp += 1;
        return None;
    }
    // Both slices lie within the frame.
    let before_ip = header.as_ptr() as usize - data.as_ptr() as usize;
    let before_tcp = payload.payload.as_ptr() as usize - data.as_ptr() as usize;
    let end = if stated > 0 { before_ip + stated } else { frame.original as usize };
    let endpoints: (IpAddr, IpAddr) = (source, destination);
    let segment = tcp(frame, data.get(before_tcp..)?, end.saturating_sub(before_tcp), endpoints);
    let Some(segment) = segment else {
        skipped.cut += 1;
        return None;
    };
    Some(Segment { interface: (frame.interface, device), id, ecn: ecn.into(), ..segment })
}

/// A packet behind a header of Linux's "any" device, whose protocol stands at `protocol`.
fn cooked(data: &[u8], protocol: usize, header: usize) -> Option<LaxSlicedPacket<'_>> {
    let number = u16::from_be_bytes(*data.get(protocol..)?.first_chunk()?);
    Some(LaxSlicedPacket::from_ether_type(EtherType(number), data.get(header..)?))
}

/// The segment at the start of `bytes`, which were `length` on the wire. `None` if the fixed header
/// is not all there.
fn tcp<'a>(
    frame: &Frame<'a>,
    bytes: &[u8],
    length: usize,
    (from, to): (IpAddr, IpAddr),
) -> Option<Segment<'a>> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let u32_at = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let offset = usize::from(header[12] >> 4) * 4;
    if offset < HEADER {
        return None;
    }
    // The snap length may have cut the last options.
    let raw = &bytes[HEADER..offset.min(bytes.len())];
    let flags = TcpFlags::from_bits(u16_at(12));
    let fast_open = OptionIter::new(raw).find_map(|option| match option {
        TcpOption::FastOpen(cookie) if flags.contains(TcpFlags::SYN) => Some(cookie),
        _ => None,
    });
    Some(Segment {
        at_ns: frame.at_ns,
        interface: (0, 0),
        outbound: frame.outbound,
        from: SocketAddr::new(from, u16_at(0)),
        to: SocketAddr::new(to, u16_at(2)),
        id: 0,
        seq: u32_at(4),
        ack: u32_at(8),
        flags,
        window: u16_at(14),
        options: TcpOptions::parse(raw).0,
        fast_open,
        length: u32::try_from(length.saturating_sub(offset)).unwrap_or(u32::MAX),
        ecn: 0,
        comment: frame.comment,
    })
}
