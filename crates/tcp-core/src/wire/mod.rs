//! The wire codec: IPv4, IPv6, TCP, UDP and ICMP, as checked views of received packets and emitters
//! of headers.
//!
//! [`parse`] turns an [`RxPacket`] into a [`Datagram`], which borrows from it, or returns the
//! reason why it was rejected. [`emit_tcp`] writes the headers of a segment into a [`HeaderBuf`];
//! the payload is not copied. Nothing here allocates, and no packet, however malformed, causes a
//! panic.

pub mod checksum;
mod emit;
mod error;
mod field;
mod fields;
mod fragment;
pub mod gso;
mod icmp;
mod ipv4;
mod ipv6;
pub mod mark;
mod partial;
mod payload;
mod run;
mod tcp;
mod udp;

pub use emit::{Emitted, HeaderBuf, TxChecksum, TxChecksumMode};
pub use error::{EmitError, WireError};
pub(crate) use fields::split_fields;
pub(crate) use fragment::{Fragment, make_whole, parse_fragment};
pub use icmp::{
    IcmpEcho, IcmpEmit, IcmpError, IcmpErrorKind, IcmpHeader, IcmpMessage, PROTOCOL_ICMP, PROTOCOL_ICMPV6,
    Quoted, Unreachable, emit_icmp,
};
pub(crate) use ipv4::MIN_MTU;
pub use ipv6::MAX_EXTENSION_HEADERS;
pub(crate) use ipv6::{MIN_MTU_V6, skip_extensions};
pub use partial::complete_checksum;
pub use payload::Payload;
pub(crate) use run::{Leader, Run};
pub use tcp::accecn::{AccEcnOption, AccEcnOrder};
pub use tcp::fast_open::FastOpenCookie;
pub use tcp::flags::TcpFlags;
pub use tcp::options::{
    MAX_OPTIONS_LEN, OptionIter, SackBlocks, TcpOption, TcpOptions, Timestamps, emit_option_list,
};
pub use tcp::{OptionLayout, PROTOCOL_TCP, TcpHeader, TcpSegment, emit_tcp};
pub use udp::{PROTOCOL_UDP, UdpDatagram, UdpHeader, emit_udp};

use bytes::Bytes;
use checksum::Accumulator;
use core::net::IpAddr;
use core::num::NonZeroU16;

/// One IP packet, or several segments of one connection that the device merged into a super-packet.
#[derive(Clone, Copy, Debug)]
pub struct RxPacket<'a> {
    /// The start of the packet, from the first octet of the IP header; contains all headers (for an
    /// ICMP error: also those of the quoted packet).
    pub head: &'a [u8],
    /// The rest of the payload; empty if `head` holds everything.
    pub more: [&'a [u8]; 2],
    /// Octets of data in each merged segment but the last; `None` for a single segment.
    pub segment_size: Option<NonZeroU16>,
    /// What is known about the transport checksum.
    pub checksum: RxChecksum,
    /// The memory that has the packet, if the device lends it: a connection may keep a part of it
    /// instead of a copy, until the application has read it. `None`: everything is copied. Only
    /// worth while for packets that take at least half of it.
    pub memory: Option<&'a Bytes>,
}

impl<'a> RxPacket<'a> {
    /// A single packet in one slice, whose checksum is to be verified.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { head: bytes, more: [&[], &[]], segment_size: None, checksum: RxChecksum::Verify, memory: None }
    }

    /// The same, with more payload in `more`.
    #[must_use]
    pub const fn with_more(self, more: [&'a [u8]; 2]) -> Self {
        Self { more, ..self }
    }

    /// The same, as a super-packet of segments with this many octets of data.
    #[must_use]
    pub const fn with_segment_size(self, segment_size: Option<NonZeroU16>) -> Self {
        Self { segment_size, ..self }
    }

    /// The same, with what the device reports about the checksum.
    #[must_use]
    pub const fn with_checksum(self, checksum: RxChecksum) -> Self {
        Self { checksum, ..self }
    }

    /// The same, in memory that the device lends.
    #[must_use]
    pub const fn in_memory(self, memory: Option<&'a Bytes>) -> Self {
        Self { memory, ..self }
    }

    /// The octets of all slices, including padding after the packet.
    #[must_use]
    pub const fn len(&self) -> usize {
        let [second, third] = self.more;
        Payload::new([self.head, second, third]).len()
    }

    /// True if there are no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is known about the transport checksum of a received packet. That of the IPv4 header is
/// always verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RxChecksum {
    /// Nothing: verify it.
    #[default]
    Verify,
    /// The device has verified it, or the packet never left this host's memory.
    Trusted,
    /// A sender on this host left it to the device (virtio's NEEDS_CSUM): the field only holds the
    /// pseudo-header's sum, and there was no wire to corrupt the rest.
    Partial,
}

/// A packet that passed all checks.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The IP header.
    pub ip: IpInfo,
    /// The transport header and data.
    pub transport: Transport<'a>,
}

/// The IP header, common to both versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IpInfo {
    /// Source address; may be of any kind, such as multicast or unspecified.
    pub src: IpAddr,
    /// Destination address; may be of any kind.
    pub dst: IpAddr,
    /// The version, that of both addresses.
    pub version: IpVersion,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// IPv6 flow label, 20 bits (RFC 6437); 0 in IPv4.
    pub flow_label: u32,
    /// Octets before the transport header: the IP header including options or extension headers.
    pub header_len: u16,
    /// Octets of the whole packet, including the IP header, as stated there.
    pub total_len: u32,
}

/// The version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport, `00`.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport (1), `01`: of an L4S sender (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable transport (0), `10`.
    Ect0 = 0b10,
    /// Congestion experienced, `11`.
    Ce = 0b11,
}

impl Ecn {
    /// From the two lowest bits of a TOS or traffic class octet.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The codepoint for which ACE stands in a handshake (RFC 9768, section 3.2.2.1, table 3);
    /// `None` if for none.
    #[must_use]
    pub const fn of_ace_code(ace: u8) -> Option<Self> {
        match ace {
            0b010 => Some(Self::NotEct),
            0b011 => Some(Self::Ect1),
            0b100 => Some(Self::Ect0),
            0b110 => Some(Self::Ce),
            _ => None,
        }
    }

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(TcpSegment<'a>),
    /// An ICMP message in IPv4, or an ICMPv6 one in IPv6.
    Icmp(IcmpMessage<'a>),
    /// A UDP datagram.
    Udp(UdpDatagram<'a>),
    /// Another protocol; its content is not parsed.
    Other {
        /// The protocol number, or the next header if it is not a known extension header.
        protocol: u8,
        /// Position of that number, octets from the start of the packet.
        named_at: u16,
    },
}

/// Checks a received packet: IP header, lengths, checksums, and the TCP, ICMP or UDP header. Octets
/// after the packet's stated length are padding and ignored.
///
/// # Errors
/// [`WireError`]: the first check that failed, outermost header first.
pub fn parse<'a>(packet: &RxPacket<'a>) -> Result<Datagram<'a>, WireError> {
    let available = packet.len();
    match packet.head.first().ok_or(WireError::Truncated)? >> 4 {
        4 => {
            let header = ipv4::parse(packet.head, available)?;
            let upper = upper(packet, &header.info);
            match header.protocol {
                PROTOCOL_TCP => {
                    let pseudo = Accumulator::pseudo_v4(header.src, header.dst, PROTOCOL_TCP, upper.len());
                    parse_tcp(header.info, upper, pseudo, packet)
                }
                PROTOCOL_ICMP => parse_icmp(header.info, upper, Accumulator::new(), packet),
                PROTOCOL_UDP => parse_udp(header.info, upper, packet),
                protocol => {
                    let transport = Transport::Other { protocol, named_at: ipv4::PROTOCOL_AT };
                    Ok(Datagram { ip: header.info, transport })
                }
            }
        }
        6 => {
            let header = ipv6::parse(packet.head, available)?;
            let upper = upper(packet, &header.info);
            let pseudo = Accumulator::pseudo_v6(header.src, header.dst, header.protocol, upper.len());
            match header.protocol {
                PROTOCOL_TCP => parse_tcp(header.info, upper, pseudo, packet),
                PROTOCOL_ICMPV6 => parse_icmp(header.info, upper, pseudo, packet),
                PROTOCOL_UDP => parse_udp(header.info, upper, packet),
                protocol => {
                    let named_at = ipv6::named_at(packet.head, header.info.header_len);
                    Ok(Datagram { ip: header.info, transport: Transport::Other { protocol, named_at } })
                }
            }
        }
        _ => Err(WireError::BadVersion),
    }
}

/// The common options are handled here, so that the usual segment's datagram is built in place
/// instead of being copied.
#[inline(always)]
fn parse_tcp<'a>(
    ip: IpInfo,
    upper: Payload<'a>,
    pseudo: Accumulator,
    packet: &RxPacket<'a>,
) -> Result<Datagram<'a>, WireError> {
    let parts = tcp::Parts::parse(upper, pseudo, packet.checksum, packet.segment_size)?;
    if parts.raw_options.is_empty() {
        return Ok(Datagram { ip, transport: Transport::Tcp(parts.with_options(TcpOptions::NONE, false)) });
    }
    match tcp::options::lone_timestamps(parts.raw_options) {
        Some(timestamps) => {
            let segment = parts.with_options(TcpOptions::from(timestamps), false);
            Ok(Datagram { ip, transport: Transport::Tcp(segment) })
        }
        None => {
            let (options, malformed) = TcpOptions::parse(parts.raw_options);
            Ok(Datagram { ip, transport: Transport::Tcp(parts.with_options(options, malformed)) })
        }
    }
}

#[inline(never)]
fn parse_icmp<'a>(
    ip: IpInfo,
    upper: Payload<'a>,
    pseudo: Accumulator,
    packet: &RxPacket<'a>,
) -> Result<Datagram<'a>, WireError> {
    let message = IcmpMessage::parse(ip.version, upper, pseudo, packet.checksum)?;
    Ok(Datagram { ip, transport: Transport::Icmp(message) })
}

#[inline(never)]
fn parse_udp<'a>(ip: IpInfo, upper: Payload<'a>, packet: &RxPacket<'a>) -> Result<Datagram<'a>, WireError> {
    let datagram = UdpDatagram::parse(&ip, upper, packet.checksum)?;
    Ok(Datagram { ip, transport: Transport::Udp(datagram) })
}

/// The octets after the IP headers, without padding.
#[inline(always)]
fn upper<'a>(packet: &RxPacket<'a>, info: &IpInfo) -> Payload<'a> {
    let [second, third] = packet.more;
    let header_len = usize::from(info.header_len);
    let mut upper = Payload::new([packet.head.get(header_len..).unwrap_or_default(), second, third]);
    upper.truncate(info.total_len as usize - header_len);
    upper.in_memory(packet.memory)
}

#[cfg(test)]
mod tests;
