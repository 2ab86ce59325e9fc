//! Fragments of IP packets (RFC 791, section 3.2; RFC 8200, section 4.5): a checked view of one,
//! and the headers of the whole.

use super::field::be16;
use super::{Ecn, IpInfo, IpVersion, Payload, RxPacket, WireError, ipv4, ipv6, upper};

/// A fragment whose IP headers passed all checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    /// The IP header. Its length includes that of the fragment header.
    pub(crate) ip: IpInfo,
    /// What the fragments of a packet have in common, beside their addresses and the protocol.
    pub(crate) identification: u32,
    /// The protocol; over IPv6 only the first fragment's counts (RFC 8200, section 4.5).
    pub(crate) protocol: u8,
    /// Where its data belongs in that of the packet, in octets: a multiple of eight.
    pub(crate) offset: u32,
    /// It is not the last one.
    pub(crate) more: bool,
    /// The headers, with the fragment header.
    pub(crate) headers: &'a [u8],
    /// Octets of the headers that the whole packet begins with.
    pub(crate) whole_headers: u16,
    /// Where the headers name the protocol: over IPv6 the fragment header.
    pub(crate) named_at: u16,
    /// The data.
    pub(crate) payload: Payload<'a>,
}

/// Octets of the fragment header of IPv6.
const FRAGMENT_HEADER_LEN: usize = 8;

/// Parses a packet that [`parse`](super::parse) has found to be a fragment.
pub(crate) fn parse_fragment<'a>(packet: &RxPacket<'a>) -> Result<Fragment<'a>, WireError> {
    let (head, available) = (packet.head, packet.len());
    match head.first().ok_or(WireError::Truncated)? >> 4 {
        4 => {
            let (fixed, info) = ipv4::check(head, available)?;
            let field = be16::<6>(fixed);
            Ok(Fragment {
                ip: info,
                identification: be16::<4>(fixed).into(),
                protocol: fixed[usize::from(ipv4::PROTOCOL_AT)],
                offset: u32::from(field & ipv4::OFFSET) * 8,
                more: field & ipv4::MORE_FRAGMENTS != 0,
                headers: head.get(..usize::from(info.header_len)).ok_or(WireError::Truncated)?,
                whole_headers: info.header_len,
                named_at: ipv4::PROTOCOL_AT,
                payload: upper(packet, &info),
            })
        }
        6 => {
            let (at, mut info) = ipv6::fragment_at(head, available)?;
            let end = at + FRAGMENT_HEADER_LEN;
            let header: &[u8; FRAGMENT_HEADER_LEN] =
                head.get(at..).and_then(|rest| rest.first_chunk()).ok_or(WireError::Truncated)?;
            let &[protocol, _, o0, o1, i0, i1, i2, i3] = header;
            let field = u16::from_be_bytes([o0, o1]);
            info.header_len = end as u16;
            Ok(Fragment {
                ip: info,
                identification: u32::from_be_bytes([i0, i1, i2, i3]),
                protocol,
                offset: u32::from(field & 0xfff8),
                more: field & 1 != 0,
                headers: head.get(..end).ok_or(WireError::Truncated)?,
                whole_headers: at as u16,
                named_at: ipv6::named_at(head, at as u16),
                payload: upper(packet, &info),
            })
        }
        _ => Err(WireError::BadVersion),
    }
}

impl Fragment<'_> {
    /// True for a first fragment with all of the headers up to that of the transport: RFC 7112
    /// demands it of IPv6, and whoever cuts an IPv4 packet elsewhere wants to hide something (RFC
    /// 1858, RFC 3128).
    pub(crate) fn has_transport_header(&self) -> bool {
        let Some((protocol, at)) = self.transport() else { return false };
        let least = match protocol {
            super::PROTOCOL_TCP => 20,
            super::PROTOCOL_UDP | super::PROTOCOL_ICMP | super::PROTOCOL_ICMPV6 => 8,
            _ => 0,
        };
        self.payload.len() >= at + least
    }

    /// True if an ICMP error may be sent about it: not if it is a part of one itself, as far as it
    /// shows (RFC 1122, section 3.2.2; RFC 4443, section 2.4).
    pub(crate) fn may_be_answered(&self) -> bool {
        let protocol = if self.offset == 0 { self.transport() } else { Some((self.protocol, usize::MAX)) };
        let Some((protocol, at)) = protocol else { return false };
        let kind = self.payload.slices()[0].get(at);
        match protocol {
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            super::PROTOCOL_ICMP => kind.is_some_and(|kind| !matches!(kind, 3..=5 | 11 | 12)),
            // RFC 4443, section 2.1: errors are below 128.
            super::PROTOCOL_ICMPV6 => kind.is_some_and(|kind| *kind >= 128),
            _ => true,
        }
    }

    /// Of a first fragment: the transport protocol, and where its header begins in the data.
    fn transport(&self) -> Option<(u8, usize)> {
        match self.ip.version {
            IpVersion::V4 => Some((self.protocol, 0)),
            IpVersion::V6 => ipv6::skip_from(self.protocol, self.payload.slices()[0], 0).ok(),
        }
    }
}

/// Makes the headers of a first fragment those of a packet with `data` octets behind them.
/// `protocol` is named at `named_at`; `ecn` replaces the codepoint.
pub(crate) fn make_whole(headers: &mut [u8], named_at: u16, protocol: u8, data: usize, ecn: Option<Ecn>) {
    let len = headers.len();
    if let Some(field) = headers.get_mut(usize::from(named_at)) {
        *field = protocol;
    }
    match headers.first().map(|first| first >> 4) {
        Some(4) => ipv4::make_whole(headers, len + data, ecn),
        _ => ipv6::make_whole(headers, len - ipv6::HEADER_LEN.min(len) + data, ecn),
    }
}
