//! Why a received packet was refused, and why one could not be written.

use thiserror::Error;

/// Why a received packet was refused. Nothing of it was used; the variant is what a counter is kept under, see
/// [`index`](Self::index).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// It ends before its headers do, or before the length that they state.
    #[error("truncated packet")]
    Truncated,
    /// The version is neither 4 nor 6.
    #[error("IP version neither 4 nor 6")]
    BadVersion,
    /// An IP header's own length cannot be: an IHL below 5, a total length within the header, an option past its header.
    #[error("impossible header length")]
    BadHeaderLength,
    /// The checksum of the IPv4 header is wrong.
    #[error("bad IPv4 header checksum")]
    IpChecksum,
    /// The TCP header cannot be: no room for it, or a data offset below 5 or past the end.
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
    /// The UDP header cannot be: no room for it, or a length within it or past the end.
    #[error("malformed UDP header")]
    UdpHeader,
    /// The UDP checksum is wrong, or missing over IPv6.
    #[error("bad UDP checksum")]
    UdpChecksum,
    /// A fragment. They are not reassembled: TCP sends none (path MTU discovery), and waiting for the rest costs memory.
    #[error("IP fragment")]
    Fragment,
    /// An IPv6 jumbogram (RFC 2675).
    #[error("IPv6 jumbogram")]
    Jumbogram,
    /// More IPv6 extension headers than [`MAX_EXTENSION_HEADERS`](super::MAX_EXTENSION_HEADERS), or hop-by-hop
    /// options elsewhere than first (RFC 8200, section 4.1).
    #[error("too many or misplaced IPv6 extension headers")]
    ExtensionHeaders,
    /// An IPv6 option whose type says that a node that does not know it must discard the packet (RFC 8200,
    /// section 4.2).
    #[error("unrecognized IPv6 option that forbids processing")]
    UnrecognizedOption,
    /// A routing header with segments left: this host is not the last stop, and does not forward (RFC 8200,
    /// section 4.4).
    #[error("IPv6 routing header with segments left")]
    SegmentsLeft,
    /// An ICMP error whose quoted packet does not reach to the first eight octets of the transport header.
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

    /// A number from 0, below `ALL.len()`, for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Why a packet could not be written. Each is a mistake of the caller, never of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// One address is of IPv4, the other of IPv6.
    #[error("source and destination are of different IP versions")]
    MixedVersions,
    /// The packet would be longer than the IP header can state: 65,535 octets of total length (IPv4) or payload
    /// (IPv6).
    #[error("packet longer than 65535 octets")]
    TooLong,
    /// The options take more than 40 octets.
    #[error("TCP options longer than 40 octets")]
    OptionsTooLong,
    /// The headers to segment are not those of exactly one TCP packet, or longer than
    /// [`HeaderBuf::CAPACITY`](super::HeaderBuf::CAPACITY).
    #[error("not the headers of a TCP packet")]
    BadHeaders,
    /// A segment with SYN, RST or URG does not stand for several.
    #[error("a segment with SYN, RST or URG cannot be split")]
    NotSplittable,
}
