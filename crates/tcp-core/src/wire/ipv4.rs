//! The IPv4 header (RFC 791, RFC 1122 section 3.2.1).

use super::checksum;
use super::field::{be16, be32};
use super::{Ecn, IpInfo, IpVersion, WireError};
use core::net::{IpAddr, Ipv4Addr};

/// Every IPv4 link supports this MTU (RFC 791, section 3.2).
pub(crate) const MIN_MTU: u32 = 68;

/// The fixed header's length, octets.
pub(super) const HEADER_LEN: usize = 20;

/// Offset of the protocol number in the header.
pub(super) const PROTOCOL_AT: u16 = 9;

const DONT_FRAGMENT: u16 = 0x4000;
pub(super) const MORE_FRAGMENTS: u16 = 0x2000;
pub(super) const OFFSET: u16 = 0x1fff;

/// A header that passed all checks.
pub(super) struct Ipv4Header {
    pub(super) info: IpInfo,
    pub(super) src: Ipv4Addr,
    pub(super) dst: Ipv4Addr,
    pub(super) protocol: u8,
}

/// Parses the header at the start of `head`; `available` is the length of all slices of the packet.
#[inline(always)]
pub(super) fn parse(head: &[u8], available: usize) -> Result<Ipv4Header, WireError> {
    let (fixed, info) = check(head, available)?;
    if be16::<6>(fixed) & (MORE_FRAGMENTS | OFFSET) != 0 {
        return Err(WireError::Fragment);
    }
    let (src, dst) = addresses(fixed);
    Ok(Ipv4Header { info, src, dst, protocol: fixed[9] })
}

/// The header at the start of `head`, which may be a fragment's.
#[inline(always)]
pub(super) fn check(head: &[u8], available: usize) -> Result<(&[u8; HEADER_LEN], IpInfo), WireError> {
    let fixed: &[u8; HEADER_LEN] = head.first_chunk().ok_or(WireError::Truncated)?;
    let header_len = header_len(fixed);
    if header_len < HEADER_LEN {
        return Err(WireError::BadHeaderLength);
    }
    // RFC 1122, section 3.2.1.2: silently discard on a wrong header checksum.
    let intact = if header_len == HEADER_LEN {
        checksum::sum_20(fixed) == 0xffff
    } else {
        checksum::checksum(head.get(..header_len).ok_or(WireError::Truncated)?) == 0
    };
    if !intact {
        return Err(WireError::IpChecksum);
    }
    let total_len = usize::from(be16::<2>(fixed));
    if total_len < header_len {
        return Err(WireError::BadHeaderLength);
    }
    if total_len > available {
        return Err(WireError::Truncated);
    }
    let (src, dst) = addresses(fixed);
    let tos = fixed[1];
    let info = IpInfo {
        src: IpAddr::V4(src),
        dst: IpAddr::V4(dst),
        version: IpVersion::V4,
        ttl: fixed[8],
        dscp: tos >> 2,
        ecn: Ecn::from_bits(tos),
        flow_label: 0,
        header_len: header_len as u16,
        total_len: total_len as u32,
    };
    Ok((fixed, info))
}

/// Source, destination, protocol and the rest after the header of a packet quoted by an ICMP error:
/// it may be truncated and its checksum may be stale. `None` if it is not a first fragment.
pub(super) fn parse_quoted(quote: &[u8]) -> Option<(IpAddr, IpAddr, u8, &[u8])> {
    let fixed: &[u8; HEADER_LEN] = quote.first_chunk()?;
    let header_len = header_len(fixed);
    if header_len < HEADER_LEN || be16::<6>(fixed) & OFFSET != 0 {
        return None;
    }
    let (src, dst) = addresses(fixed);
    Some((src.into(), dst.into(), fixed[9], quote.get(header_len..)?))
}

/// The header's length from its first octet, 0 to 60.
pub(super) fn header_len(fixed: &[u8; HEADER_LEN]) -> usize {
    usize::from(fixed[0] & 0x0f) * 4
}

/// Source and destination.
pub(super) fn addresses(fixed: &[u8; HEADER_LEN]) -> (Ipv4Addr, Ipv4Addr) {
    (be32::<12>(fixed).into(), be32::<16>(fixed).into())
}

/// The contents of a header of 20 octets.
pub(super) struct Ipv4Emit {
    pub(super) src: Ipv4Addr,
    pub(super) dst: Ipv4Addr,
    pub(super) protocol: u8,
    pub(super) ttl: u8,
    pub(super) tos: u8,
    pub(super) identification: u16,
    /// Routers may fragment it: DF is clear. RFC 8899 and RFC 1191 need it set.
    pub(super) may_fragment: bool,
    pub(super) total_len: u16,
}

impl Ipv4Emit {
    /// Writes the header with its checksum.
    pub(super) fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let [l0, l1] = self.total_len.to_be_bytes();
        let [i0, i1] = self.identification.to_be_bytes();
        let [f0, f1] = if self.may_fragment { [0, 0] } else { DONT_FRAGMENT.to_be_bytes() };
        let [s0, s1, s2, s3] = self.src.octets();
        let [d0, d1, d2, d3] = self.dst.octets();
        *out = [
            0x45,
            self.tos,
            l0,
            l1,
            i0,
            i1,
            f0,
            f1,
            self.ttl,
            self.protocol,
            0,
            0,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ];
        set_checksum(out);
    }
}

/// Makes the header of a first fragment that of a packet with this length; `ecn` replaces the
/// codepoint.
pub(super) fn make_whole(header: &mut [u8], total_len: usize, ecn: Option<Ecn>) {
    let Some(fixed) = header.first_chunk_mut::<HEADER_LEN>() else { return };
    if let Some(ecn) = ecn {
        fixed[1] = fixed[1] & !3 | ecn.bits();
    }
    fixed[2..4].copy_from_slice(&(total_len as u16).to_be_bytes());
    // Neither flags nor offset.
    fixed[6..8].fill(0);
    fixed[10..12].fill(0);
    let sum = checksum::checksum(header);
    if let Some(field) = header.get_mut(10..12) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

fn set_checksum(header: &mut [u8; HEADER_LEN]) {
    let [c0, c1] = (!checksum::sum_20(header)).to_ne_bytes();
    header[10] = c0;
    header[11] = c1;
}
