//! Why a received packet was rejected, and why a packet could not be written.

use thiserror::Error;

/// Why a received packet was rejected. Nothing of it was used. For counters, see
/// [`index`](Self::index).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// It ends before its headers do, or before their stated length.
    #[error("truncated packet")]
    Truncated,
    /// The version is neither 4 nor 6.
    #[error("IP version neither 4 nor 6")]
    BadVersion,
    /// Invalid length in an IP header: an IHL below 5, a total length inside the header, an option
    /// beyond its header.
    #[error("impossible header length")]
    BadHeaderLength,
    /// The checksum of the IPv4 header is wrong.
    #[error("bad IPv4 header checksum")]
    IpChecksum,
    /// Invalid TCP header: truncated, or a data offset below 5 or beyond the end.
    #[error("malformed TCP header")]
    TcpHeader,
    /// The TCP checksum is wrong.
    #[error("bad TCP checksum")]
    TcpChecksum,
    /// The ICMP message is shorter than its header.
    #[error("malformed ICMP header")]
    IcmpHeader,
    /// The checksum of ICMP or ICMPv6 is wrong.
    #[error("bad ICMP checksum")]
    IcmpChecksum,
    /// Invalid UDP header: truncated, or a length inside the header or beyond the end.
    #[error("malformed UDP header")]
    UdpHeader,
    /// The UDP checksum is wrong, or missing over IPv6.
    #[error("bad UDP checksum")]
    UdpChecksum,
    /// A fragment. What waits for the rest of it is not the parser's: an endpoint does.
    #[error("IP fragment")]
    Fragment,
    /// An IPv6 jumbogram (RFC 2675).
    #[error("IPv6 jumbogram")]
    Jumbogram,
    /// More IPv6 extension headers than [`MAX_EXTENSION_HEADERS`](super::MAX_EXTENSION_HEADERS), or
    /// hop-by-hop options that are not first (RFC 8200, section 4.1).
    #[error("too many or misplaced IPv6 extension headers")]
    ExtensionHeaders,
    /// An unknown IPv6 option whose type says that the packet must be discarded (RFC 8200, section
    /// 4.2).
    #[error("unrecognized IPv6 option that forbids processing")]
    UnrecognizedOption,
    /// A routing header with segments left: this host is not the final destination, and does not
    /// forward (RFC 8200, section 4.4).
    #[error("IPv6 routing header with segments left")]
    SegmentsLeft,
    /// An ICMP error that quotes less than the first eight octets of the transport header.
    #[error("unusable quotation in an ICMP error")]
    Quotation,
}

impl WireError {
    /// All variants, in the order of [`index`](Self::index).
    pub const ALL: [Self; 16] = [
        Self::Truncated,
        Self::BadVersion,
        Self::BadHeaderLength,
        Self::IpChecksum,
        Self::TcpHeader,
        Self::TcpChecksum,
        Self::IcmpHeader,
        Self::IcmpChecksum,
        Self::UdpHeader,
        Self::UdpChecksum,
        Self::Fragment,
        Self::Jumbogram,
        Self::ExtensionHeaders,
        Self::UnrecognizedOption,
        Self::SegmentsLeft,
        Self::Quotation,
    ];

    /// An index for an array of counters, from 0 to `ALL.len() - 1`.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Why a packet could not be written. Always a mistake of the caller, never of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// One address is IPv4, the other IPv6.
    #[error("source and destination are of different IP versions")]
    MixedVersions,
    /// The packet would exceed what the IP header can state: 65,535 octets of total length (IPv4)
    /// or payload (IPv6).
    #[error("packet longer than 65535 octets")]
    TooLong,
    /// The options take more than 40 octets.
    #[error("TCP options longer than 40 octets")]
    OptionsTooLong,
    /// The headers to segment are not those of exactly one TCP packet, or are longer than
    /// [`HeaderBuf::CAPACITY`](super::HeaderBuf::CAPACITY).
    #[error("not the headers of a TCP packet")]
    BadHeaders,
    /// A segment with SYN, RST or URG cannot be split.
    #[error("a segment with SYN, RST or URG cannot be split")]
    NotSplittable,
}
