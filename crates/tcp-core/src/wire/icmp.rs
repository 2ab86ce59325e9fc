//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and the errors that concern a TCP connection.
//!
//! An error quotes the packet that caused it. Anyone can send one; the caller must make the checks
//! of RFC 5927 (is the quoted sequence number outstanding?).

use super::checksum::Accumulator;
use super::emit::HeaderBuf;
use super::ipv4::{self, Ipv4Emit};
use super::ipv6::{self, Ipv6Emit};
use super::tcp::upper_is_intact;
use super::{EmitError, IpVersion, Payload, RxChecksum, WireError};
use crate::SeqNum;
use core::net::IpAddr;

/// The protocol number of ICMP in the IPv4 header.
pub const PROTOCOL_ICMP: u8 = 1;
/// The protocol number of ICMPv6 in the IPv6 header.
pub const PROTOCOL_ICMPV6: u8 = 58;

const HEADER_LEN: usize = 8;

/// A received ICMP or ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub enum IcmpMessage<'a> {
    /// A request to send the data back.
    EchoRequest(IcmpEcho<'a>),
    /// The answer to a request.
    EchoReply(IcmpEcho<'a>),
    /// An error about a packet that this host (apparently) sent.
    Error(IcmpError),
    /// Any other message; its content is not parsed.
    Other {
        /// The type field.
        kind: u8,
        /// The code field.
        code: u8,
    },
}

/// The body of an echo request or reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpEcho<'a> {
    /// Identifier: distinguishes ping programs.
    pub ident: u16,
    /// Sequence number: distinguishes their requests.
    pub seq: u16,
    /// Data to be returned unchanged.
    pub data: Payload<'a>,
}

/// A received ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// What happened.
    pub kind: IcmpErrorKind,
    /// The packet that caused it.
    pub quoted: Quoted,
}

/// What an ICMP error reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IcmpErrorKind {
    /// The destination cannot be reached.
    DestinationUnreachable {
        /// The reason, common to both IP versions.
        reason: Unreachable,
        /// The code field, whose meaning depends on the IP version.
        code: u8,
    },
    /// A router could not forward the packet whole: fragmentation needed with DF (RFC 1191), or
    /// packet too big (RFC 4443, section 3.2).
    PacketTooBig {
        /// The MTU of the next hop, octets; zero from a router older than RFC 1191. Not validated.
        mtu: u32,
    },
    /// The hop limit ran out on the way (code 0), or reassembly took too long (code 1).
    TimeExceeded {
        /// The code field.
        code: u8,
    },
    /// A header field of the packet was invalid.
    ParameterProblem {
        /// The code field.
        code: u8,
        /// Offset of the offending octet in the quoted packet.
        pointer: u32,
    },
}

/// Why a destination is unreachable; common to both IP versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unreachable {
    /// No route (IPv4 codes 0, 5, 6, 11; IPv6 codes 0, 2, 5, 6, 7).
    Network,
    /// The host does not answer on its link (IPv4 codes 1, 7, 8, 12; IPv6 code 3).
    Host,
    /// The host does not support the protocol (IPv4 code 2).
    Protocol,
    /// The port is closed (IPv4 code 3; IPv6 code 4).
    Port,
    /// Administratively prohibited (IPv4 codes 9, 10, 13 to 15; IPv6 code 1).
    Prohibited,
    /// Unassigned code.
    Other,
}

impl Unreachable {
    /// True for what RFC 1122, section 4.2.3.9 calls a hard error: protocol and port. In
    /// synchronized states RFC 5927, section 5.2 treats it as soft.
    #[must_use]
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::Protocol | Self::Port)
    }

    const fn from_code(version: IpVersion, code: u8) -> Self {
        match (version, code) {
            (IpVersion::V4, 0 | 5 | 6 | 11) | (IpVersion::V6, 0 | 2 | 5..=7) => Self::Network,
            (IpVersion::V4, 1 | 7 | 8 | 12) | (IpVersion::V6, 3) => Self::Host,
            (IpVersion::V4, 2) => Self::Protocol,
            (IpVersion::V4, 3) | (IpVersion::V6, 4) => Self::Port,
            (IpVersion::V4, 9 | 10 | 13..=15) | (IpVersion::V6, 1) => Self::Prohibited,
            _ => Self::Other,
        }
    }
}

/// The packet quoted by an ICMP error: one that this host sent, so `src` is its own address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quoted {
    /// Its source address.
    pub src: IpAddr,
    /// Its destination address.
    pub dst: IpAddr,
    /// Its transport protocol; the fields below are valid for TCP (6), the ports also for UDP.
    pub protocol: u8,
    /// Its source port.
    pub src_port: u16,
    /// Its destination port.
    pub dst_port: u16,
    /// Its sequence number.
    pub seq: SeqNum,
}

impl Quoted {
    /// Of a packet that begins with its IP header.
    pub(crate) fn of(quote: &[u8]) -> Option<Self> {
        let version = if quote.first()? >> 4 == 4 { IpVersion::V4 } else { IpVersion::V6 };
        Self::parse(version, quote)
    }

    fn parse(version: IpVersion, quote: &[u8]) -> Option<Self> {
        let (src, dst, protocol, transport) = match (version, *quote.first()? >> 4) {
            (IpVersion::V4, 4) => ipv4::parse_quoted(quote)?,
            (IpVersion::V6, 6) => ipv6::parse_quoted(quote)?,
            _ => return None,
        };
        let &[p0, p1, q0, q1, s0, s1, s2, s3] = transport.first_chunk()?;
        Some(Self {
            src,
            dst,
            protocol,
            src_port: u16::from_be_bytes([p0, p1]),
            dst_port: u16::from_be_bytes([q0, q1]),
            seq: SeqNum(u32::from_be_bytes([s0, s1, s2, s3])),
        })
    }
}

impl<'a> IcmpMessage<'a> {
    /// Parses the message in `upper`; `pseudo` is the pseudo-header's sum, empty for IPv4.
    pub(super) fn parse(
        version: IpVersion,
        upper: Payload<'a>,
        pseudo: Accumulator,
        checksum: RxChecksum,
    ) -> Result<Self, WireError> {
        let [head, second, third] = upper.slices();
        let (header, first) = head.split_first_chunk::<HEADER_LEN>().ok_or(WireError::IcmpHeader)?;
        if checksum == RxChecksum::Verify && !upper_is_intact(upper.slices(), pseudo) {
            return Err(WireError::IcmpChecksum);
        }
        let [kind, code, _, _, r0, r1, r2, r3] = *header;
        let rest = u32::from_be_bytes([r0, r1, r2, r3]);
        let error = match (version, kind, code) {
            (IpVersion::V4, 8, 0)
            | (IpVersion::V6, 128, 0)
            | (IpVersion::V4, 0, 0)
            | (IpVersion::V6, 129, 0) => {
                let echo = IcmpEcho {
                    ident: u16::from_be_bytes([r0, r1]),
                    seq: u16::from_be_bytes([r2, r3]),
                    data: Payload::new([first, second, third]),
                };
                return Ok(if matches!(kind, 8 | 128) {
                    Self::EchoRequest(echo)
                } else {
                    Self::EchoReply(echo)
                });
            }
            // RFC 1191, section 4: the MTU is in the lower half; the upper one is unused.
            (IpVersion::V4, 3, 4) => IcmpErrorKind::PacketTooBig { mtu: rest & 0xffff },
            (IpVersion::V6, 2, _) => IcmpErrorKind::PacketTooBig { mtu: rest },
            (IpVersion::V4, 3, _) | (IpVersion::V6, 1, _) => {
                IcmpErrorKind::DestinationUnreachable { reason: Unreachable::from_code(version, code), code }
            }
            (IpVersion::V4, 11, _) | (IpVersion::V6, 3, _) => IcmpErrorKind::TimeExceeded { code },
            (IpVersion::V4, 12, _) => IcmpErrorKind::ParameterProblem { code, pointer: rest >> 24 },
            (IpVersion::V6, 4, _) => IcmpErrorKind::ParameterProblem { code, pointer: rest },
            // Source quench (4) is ignored too: RFC 6633, section 3.
            _ => return Ok(Self::Other { kind, code }),
        };
        let quoted = Quoted::parse(version, first).ok_or(WireError::Quotation)?;
        Ok(Self::Error(IcmpError { kind: error, quoted }))
    }
}

/// The contents of an ICMP message's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpHeader {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same IP version.
    pub dst: IpAddr,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// The message; its data or quotation is the payload.
    pub message: IcmpEmit,
}

/// The message of an [`IcmpHeader`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpEmit {
    /// An echo request with this identifier and sequence number.
    EchoRequest {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
    },
    /// An echo reply with the request's identifier and sequence number.
    EchoReply {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
    },
    /// An error. For an unreachable destination only `code` is used.
    Error(IcmpErrorKind),
}

/// Writes the IP and ICMP headers, including the checksum, of a message whose data (for an error:
/// the start of the offending packet) is `payload`; returns the headers' length.
///
/// # Errors
/// [`EmitError`]; `buf` is empty then.
pub fn emit_icmp(header: &IcmpHeader, payload: [&[u8]; 2], buf: &mut HeaderBuf) -> Result<usize, EmitError> {
    buf.len = 0;
    let [first, second] = payload;
    let upper_len = first.len().saturating_add(second.len()).saturating_add(HEADER_LEN);
    let (ip_len, version, mut sum) = match (header.src, header.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total_len = upper_len.saturating_add(ipv4::HEADER_LEN);
            let emit = Ipv4Emit {
                src,
                dst,
                protocol: PROTOCOL_ICMP,
                ttl: header.ttl,
                tos: 0,
                identification: 0,
                may_fragment: false,
                total_len: u16::try_from(total_len).map_err(|_| EmitError::TooLong)?,
            };
            if let Some(out) = buf.bytes.first_chunk_mut() {
                emit.emit(out);
            }
            (ipv4::HEADER_LEN, IpVersion::V4, Accumulator::new())
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let emit = Ipv6Emit {
                src,
                dst,
                protocol: PROTOCOL_ICMPV6,
                hop_limit: header.ttl,
                traffic_class: 0,
                flow_label: 0,
                payload_len: u16::try_from(upper_len).map_err(|_| EmitError::TooLong)?,
            };
            if let Some(out) = buf.bytes.first_chunk_mut() {
                emit.emit(out);
            }
            (ipv6::HEADER_LEN, IpVersion::V6, Accumulator::pseudo_v6(src, dst, PROTOCOL_ICMPV6, upper_len))
        }
        _ => return Err(EmitError::MixedVersions),
    };
    let mut message = header.message.encode(version);
    sum.add(&message);
    sum.add(first);
    sum.add(second);
    message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let header_len = ip_len + HEADER_LEN;
    if let Some(out) = buf.bytes.get_mut(ip_len..header_len) {
        out.copy_from_slice(&message);
    }
    buf.len = header_len;
    Ok(header_len)
}

impl IcmpEmit {
    /// The header with its checksum field zero.
    fn encode(self, version: IpVersion) -> [u8; HEADER_LEN] {
        let v4 = version == IpVersion::V4;
        let echo = |ident: u16, seq: u16| u32::from(ident) << 16 | u32::from(seq);
        let (kind, code, rest) = match self {
            Self::EchoRequest { ident, seq } => (if v4 { 8 } else { 128 }, 0, echo(ident, seq)),
            Self::EchoReply { ident, seq } => (if v4 { 0 } else { 129 }, 0, echo(ident, seq)),
            Self::Error(IcmpErrorKind::DestinationUnreachable { code, .. }) => {
                (if v4 { 3 } else { 1 }, code, 0)
            }
            Self::Error(IcmpErrorKind::PacketTooBig { mtu }) if v4 => (3, 4, mtu.min(0xffff)),
            Self::Error(IcmpErrorKind::PacketTooBig { mtu }) => (2, 0, mtu),
            Self::Error(IcmpErrorKind::TimeExceeded { code }) => (if v4 { 11 } else { 3 }, code, 0),
            Self::Error(IcmpErrorKind::ParameterProblem { code, pointer }) if v4 => {
                (12, code, pointer.min(0xff) << 24)
            }
            Self::Error(IcmpErrorKind::ParameterProblem { code, pointer }) => (4, code, pointer),
        };
        let [r0, r1, r2, r3] = rest.to_be_bytes();
        [kind, code, 0, 0, r0, r1, r2, r3]
    }
}
