//! The IPv6 header and its extension headers (RFC 8200).

use super::{Ecn, IpInfo, IpVersion, WireError};
use core::net::{IpAddr, Ipv6Addr};

/// Every IPv6 link supports this MTU (RFC 8200, section 5).
pub(crate) const MIN_MTU_V6: u32 = 1_280;

/// The fixed header's length, octets.
pub(super) const HEADER_LEN: usize = 40;

/// Maximum number of extension headers before the transport header. Each may occur once (RFC 8200,
/// section 4.1; destination options twice), so more would be an attack on the parser's time.
pub const MAX_EXTENSION_HEADERS: usize = 8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

const JUMBO_PAYLOAD: u8 = 0xc2;

/// A header, with its extensions, that passed all checks.
pub(super) struct Ipv6Header {
    pub(super) info: IpInfo,
    pub(super) src: Ipv6Addr,
    pub(super) dst: Ipv6Addr,
    pub(super) protocol: u8,
}

/// Parses the headers at the start of `head`; `available` is the length of all slices of the
/// packet.
#[inline(always)]
pub(super) fn parse(head: &[u8], available: usize) -> Result<Ipv6Header, WireError> {
    let (fixed, mut info) = check(head, available)?;
    let head = head.get(..(info.total_len as usize).min(head.len())).unwrap_or_default();
    let (protocol, header_len) = skip_extensions(fixed[6], head)?;
    info.header_len = header_len as u16;
    let (src, dst) = addresses(fixed);
    Ok(Ipv6Header { info, src, dst, protocol })
}

/// Where the fragment header of a packet is, and its fixed header. An error if it has none.
pub(super) fn fragment_at(head: &[u8], available: usize) -> Result<(usize, IpInfo), WireError> {
    let (fixed, info) = check(head, available)?;
    let head = head.get(..(info.total_len as usize).min(head.len())).unwrap_or_default();
    match walk(fixed[6], head, HEADER_LEN)? {
        (Stop::Fragment, at) => Ok((at, info)),
        (Stop::Upper(_), _) => Err(WireError::ExtensionHeaders),
    }
}

/// The fixed header at the start of `head`.
#[inline(always)]
fn check(head: &[u8], available: usize) -> Result<(&[u8; HEADER_LEN], IpInfo), WireError> {
    let fixed: &[u8; HEADER_LEN] = head.first_chunk().ok_or(WireError::Truncated)?;
    let (src, dst) = addresses(fixed);
    let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
    let traffic_class = (first >> 20) as u8;
    let total_len = HEADER_LEN + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if total_len > available {
        return Err(WireError::Truncated);
    }
    // RFC 2675, section 3: a payload length of zero with hop-by-hop options indicates a jumbogram.
    if total_len == HEADER_LEN && fixed[6] == HOP_BY_HOP {
        return Err(WireError::Jumbogram);
    }
    let info = IpInfo {
        src: IpAddr::V6(src),
        dst: IpAddr::V6(dst),
        version: IpVersion::V6,
        ttl: fixed[7],
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        flow_label: first & 0x000f_ffff,
        header_len: HEADER_LEN as u16,
        total_len: total_len as u32,
    };
    Ok((fixed, info))
}

/// As for IPv4: the parts of a quoted packet that identify its connection.
pub(super) fn parse_quoted(quote: &[u8]) -> Option<(IpAddr, IpAddr, u8, &[u8])> {
    let fixed: &[u8; HEADER_LEN] = quote.first_chunk()?;
    let (src, dst) = addresses(fixed);
    let (protocol, header_len) = skip_extensions(fixed[6], quote).ok()?;
    Some((src.into(), dst.into(), protocol, quote.get(header_len..)?))
}

/// Skips hop-by-hop options, routing, destination options and atomic fragments: the protocol number
/// and offset of the first other header. `head` starts with the fixed header and ends where the
/// packet does.
pub(crate) fn skip_extensions(next_header: u8, head: &[u8]) -> Result<(u8, usize), WireError> {
    skip_from(next_header, head, HEADER_LEN)
}

/// The same for headers that begin at the offset `start`.
pub(super) fn skip_from(next_header: u8, head: &[u8], start: usize) -> Result<(u8, usize), WireError> {
    match walk(next_header, head, start)? {
        (Stop::Upper(protocol), at) => Ok((protocol, at)),
        (Stop::Fragment, _) => Err(WireError::Fragment),
    }
}

/// A header that is not skipped.
enum Stop {
    /// That of this protocol.
    Upper(u8),
    /// A fragment header, but an atomic fragment's.
    Fragment,
}

/// Skips headers from the offset `start` on: the first that is not skipped, and its offset.
#[inline]
fn walk(next_header: u8, head: &[u8], start: usize) -> Result<(Stop, usize), WireError> {
    let mut protocol = next_header;
    let mut at = start;
    for count in 0..=MAX_EXTENSION_HEADERS {
        if !matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS) {
            return Ok((Stop::Upper(protocol), at));
        }
        if count == MAX_EXTENSION_HEADERS || (protocol == HOP_BY_HOP && count > 0) {
            return Err(WireError::ExtensionHeaders);
        }
        let rest = head.get(at..).ok_or(WireError::Truncated)?;
        let &[next, len, _, segments_left, ..] = rest.first_chunk::<8>().ok_or(WireError::Truncated)?;
        let len = if protocol == FRAGMENT { 8 } else { 8 + 8 * usize::from(len) };
        let header = rest.get(..len).ok_or(WireError::Truncated)?;
        match protocol {
            // RFC 8200, section 4.4: with no segments left, a routing header of any type is
            // ignored.
            ROUTING if segments_left > 0 => return Err(WireError::SegmentsLeft),
            ROUTING => {}
            FRAGMENT => {
                // RFC 6946, section 4: an atomic fragment (offset zero and no more fragments) is a
                // whole packet.
                let offset_and_more = u16::from_be_bytes([header[2], header[3]]) & 0xfff9;
                if offset_and_more != 0 {
                    return Ok((Stop::Fragment, at));
                }
            }
            _ => check_options(header.get(2..).unwrap_or_default())?,
        }
        protocol = next;
        at += len;
    }
    Err(WireError::ExtensionHeaders)
}

/// In a packet accepted by [`parse`], the position of the number that names the header at
/// `header_len`: in the fixed header or in the last extension header.
pub(super) fn named_at(head: &[u8], header_len: u16) -> u16 {
    const NEXT_HEADER: u16 = 6;
    let (mut named_at, mut at) = (NEXT_HEADER, HEADER_LEN as u16);
    // Extension headers are at least eight octets long, and there are at most
    // MAX_EXTENSION_HEADERS.
    while at < header_len
        && let Some(&protocol) = head.get(usize::from(named_at))
        && let Some(&len) = head.get(usize::from(at) + 1)
    {
        named_at = at;
        at = at.saturating_add(if protocol == FRAGMENT { 8 } else { 8 + 8 * u16::from(len) });
    }
    named_at
}

/// RFC 8200, section 4.2: the two highest bits of an unknown option's type tell whether the packet
/// may be processed.
fn check_options(mut options: &[u8]) -> Result<(), WireError> {
    while let Some((&kind, rest)) = options.split_first() {
        const PAD1: u8 = 0;
        if kind == PAD1 {
            options = rest;
            continue;
        }
        let (&len, rest) = rest.split_first().ok_or(WireError::BadHeaderLength)?;
        options = rest.get(usize::from(len)..).ok_or(WireError::BadHeaderLength)?;
        if kind == JUMBO_PAYLOAD {
            return Err(WireError::Jumbogram);
        }
        if kind >> 6 != 0 {
            return Err(WireError::UnrecognizedOption);
        }
    }
    Ok(())
}

/// Makes the headers of a first fragment, without the fragment header, those of a packet with this
/// length behind the fixed header; `ecn` replaces the codepoint.
pub(super) fn make_whole(headers: &mut [u8], payload_len: usize, ecn: Option<Ecn>) {
    let Some(fixed) = headers.first_chunk_mut::<HEADER_LEN>() else { return };
    fixed[4..6].copy_from_slice(&(payload_len as u16).to_be_bytes());
    if let Some(ecn) = ecn {
        fixed[1] = fixed[1] & !0x30 | ecn.bits() << 4;
    }
}

pub(super) fn addresses(fixed: &[u8; HEADER_LEN]) -> (Ipv6Addr, Ipv6Addr) {
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&fixed[8..24]);
    dst.copy_from_slice(&fixed[24..40]);
    (Ipv6Addr::from(src), Ipv6Addr::from(dst))
}

/// The contents of a header of 40 octets.
pub(super) struct Ipv6Emit {
    pub(super) src: Ipv6Addr,
    pub(super) dst: Ipv6Addr,
    pub(super) protocol: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    pub(super) flow_label: u32,
    pub(super) payload_len: u16,
}

impl Ipv6Emit {
    /// Writes the header; the flow label's upper 12 bits are dropped.
    pub(super) fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0x000f_ffff;
        out[..4].copy_from_slice(&first.to_be_bytes());
        out[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        out[6] = self.protocol;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.src.octets());
        out[24..40].copy_from_slice(&self.dst.octets());
    }
}
