//! The UDP header (RFC 768).

use super::checksum::Accumulator;
use super::emit::{Emitted, HeaderBuf, TxChecksum, TxChecksumMode};
use super::ipv4::{self, Ipv4Emit};
use super::ipv6::{self, Ipv6Emit};
use super::tcp::upper_is_intact;
use super::{EmitError, IpInfo, IpVersion, Payload, RxChecksum, WireError};
use core::net::{IpAddr, SocketAddr};

/// The protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const HEADER_LEN: usize = 8;

/// Offset of the checksum in the header.
const CHECKSUM_OFFSET: u16 = 6;

/// A received UDP datagram that passed all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpDatagram<'a> {
    /// Source port; 0 if the sender wants no answer.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The data.
    pub payload: Payload<'a>,
}

impl<'a> UdpDatagram<'a> {
    /// Parses the datagram in `upper`.
    pub(super) fn parse(ip: &IpInfo, upper: Payload<'a>, checksum: RxChecksum) -> Result<Self, WireError> {
        let [head, ..] = upper.slices();
        let &[s0, s1, d0, d1, l0, l1, c0, c1] =
            head.first_chunk::<HEADER_LEN>().ok_or(WireError::UdpHeader)?;
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if len < HEADER_LEN || len > upper.len() {
            return Err(WireError::UdpHeader);
        }
        // Octets after the datagram are neither covered by the checksum nor part of the data.
        let mut payload = upper;
        payload.truncate(len);
        let unchecked = u16::from_be_bytes([c0, c1]) == 0;
        // RFC 8200, section 8.1: over IPv6 every datagram has a checksum.
        let intact = match ip.version {
            IpVersion::V4 if unchecked => true,
            IpVersion::V6 if unchecked => false,
            _ => {
                checksum != RxChecksum::Verify
                    || upper_is_intact(payload.slices(), pseudo(ip.src, ip.dst, len))
            }
        };
        if !intact {
            return Err(WireError::UdpChecksum);
        }
        payload.advance(HEADER_LEN);
        let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        Ok(Self { src_port, dst_port, payload })
    }
}

/// The contents of a datagram's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpHeader {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port, of the same IP version.
    pub dst: SocketAddr,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
}

impl UdpHeader {
    /// Octets of the IP and UDP headers.
    #[must_use]
    pub const fn len(&self) -> usize {
        HEADER_LEN + if self.dst.is_ipv4() { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN }
    }

    /// Always false.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Writes the IP and UDP headers of a datagram whose data is `payload`, one slice after the other.
/// It must not be fragmented (DF), so its identification means nothing (RFC 6864). It has a
/// checksum even if `mode` omits those, since an IPv6 receiver drops a datagram without (RFC 8200,
/// section 8.1).
///
/// # Errors
/// [`EmitError`]; `buf` is empty then.
pub fn emit_udp(
    header: &UdpHeader,
    payload: [&[u8]; 2],
    mode: TxChecksumMode,
    buf: &mut HeaderBuf,
) -> Result<Emitted, EmitError> {
    buf.len = 0;
    let [first, second] = payload;
    let upper_len = first.len().saturating_add(second.len()).saturating_add(HEADER_LEN);
    let upper_field = u16::try_from(upper_len).map_err(|_| EmitError::TooLong)?;
    let ip_len = match (header.src.ip(), header.dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total_len = upper_len + ipv4::HEADER_LEN;
            let emit = Ipv4Emit {
                src,
                dst,
                protocol: PROTOCOL_UDP,
                ttl: header.ttl,
                tos: 0,
                identification: 0,
                may_fragment: false,
                total_len: u16::try_from(total_len).map_err(|_| EmitError::TooLong)?,
            };
            if let Some(out) = buf.bytes.first_chunk_mut() {
                emit.emit(out);
            }
            ipv4::HEADER_LEN
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let emit = Ipv6Emit {
                src,
                dst,
                protocol: PROTOCOL_UDP,
                hop_limit: header.ttl,
                traffic_class: 0,
                flow_label: 0,
                payload_len: upper_field,
            };
            if let Some(out) = buf.bytes.first_chunk_mut() {
                emit.emit(out);
            }
            ipv6::HEADER_LEN
        }
        _ => return Err(EmitError::MixedVersions),
    };
    let ([s0, s1], [d0, d1]) = (header.src.port().to_be_bytes(), header.dst.port().to_be_bytes());
    let [l0, l1] = upper_field.to_be_bytes();
    let mut udp = [s0, s1, d0, d1, l0, l1, 0, 0];
    let mut sum = pseudo(header.src.ip(), header.dst.ip(), upper_len);
    let (field, checksum) = match mode {
        TxChecksumMode::Complete | TxChecksumMode::Omit => {
            sum.add(&udp);
            sum.add(first);
            sum.add(second);
            // RFC 768: zero means that there is none, and is written as all ones.
            (if sum.checksum() == 0 { 0xffff } else { sum.checksum() }, TxChecksum::Complete)
        }
        TxChecksumMode::Partial => {
            (sum.sum(), TxChecksum::Partial { start: ip_len as u16, offset: CHECKSUM_OFFSET })
        }
    };
    udp[6..].copy_from_slice(&field.to_be_bytes());
    let header_len = ip_len + HEADER_LEN;
    if let Some(out) = buf.bytes.get_mut(ip_len..header_len) {
        out.copy_from_slice(&udp);
    }
    buf.len = header_len;
    Ok(Emitted { header_len, checksum })
}

/// The sum over the pseudo-header; `len` is header plus data.
fn pseudo(src: IpAddr, dst: IpAddr, len: usize) -> Accumulator {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Accumulator::pseudo_v4(src, dst, PROTOCOL_UDP, len),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Accumulator::pseudo_v6(src, dst, PROTOCOL_UDP, len),
        // Both are of the packet's IP version.
        _ => Accumulator::new(),
    }
}
