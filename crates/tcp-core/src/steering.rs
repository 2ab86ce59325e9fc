//! Which of several endpoints of one host, its shards, has a connection.
//!
//! All shards compute the same hash of a connection's remote address and two ports, so each knows
//! who owns a packet without asking anybody. It is made of 32-bit operations that the kernel's
//! socket filters have, classic BPF included, so that a device can steer by it
//! ([`Steering::terms`]). The local address is left out: what a host with one address receives has
//! only one, and so a program in the kernel needs to load less.

use crate::wire::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, Quoted, RxPacket, skip_extensions};
use core::hash::Hasher as _;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use siphasher::sip::SipHasher24;

/// Maximum number of shards of one host.
pub const MAX_SHARDS: usize = 64;

/// Odd, so that multiplication loses nothing; from the 32-bit finalizer of MurmurHash3.
const MIX: [u32; 2] = [0x85eb_ca6b, 0xc2b2_ae35];

/// Bits of an IPv4 header's fourth half-word that a fragment has: more fragments, and the offset.
const FRAGMENT: u16 = 0x3fff;

/// The owner of every connection of a host with several shards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Steering {
    terms: Terms,
}

/// What the hash is made of, for a program that steers packets in the kernel.
///
/// ```text
/// h = (address ^ keys[0]) * mix[0];   h ^= h >> 15;
/// h = (h ^ ports ^ keys[1]) * mix[1]; h ^= h >> 13;
/// shard = (h * mix[0] >> 16) % shards
/// ```
///
/// `address` is the remote IPv4 address, or the exclusive or of the four words of an IPv6 address.
/// `ports` has the remote port in its upper half and the local port in the lower one, as a received
/// TCP header has them. All arithmetic wraps at 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// Number of shards, 1 to [`MAX_SHARDS`].
    pub shards: u32,
    /// Secret, so that a stranger cannot choose the shard of its connections.
    pub keys: [u32; 2],
    /// The multipliers.
    pub mix: [u32; 2],
}

impl core::fmt::Debug for Steering {
    /// Leaves out the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Steering").field("shards", &self.terms.shards).finish_non_exhaustive()
    }
}

impl Steering {
    /// Spreads connections over `shards` shards, 1 to [`MAX_SHARDS`] (others are brought into that
    /// range). All shards of a host have the same `seed`.
    #[must_use]
    pub fn new(shards: usize, seed: &[u8; 32]) -> Self {
        let (key, text) = seed.split_at(16);
        let mut hasher = SipHasher24::new_with_key(key.first_chunk().unwrap_or(&[0; 16]));
        hasher.write(text);
        let hash = hasher.finish();
        let shards = shards.clamp(1, MAX_SHARDS) as u32;
        Self { terms: Terms { shards, keys: [(hash >> 32) as u32, hash as u32], mix: MIX } }
    }

    /// Number of shards.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.terms.shards as usize
    }

    /// What the hash is made of.
    #[must_use]
    pub const fn terms(&self) -> Terms {
        self.terms
    }

    /// The owner of a connection with `remote` from the port `local`.
    #[must_use]
    pub fn shard_of(&self, remote: SocketAddr, local: u16) -> usize {
        let address = match remote.ip() {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(address) => folded(address),
        };
        self.hash(address, (u32::from(remote.port()) << 16) | u32::from(local))
    }

    /// The owner of a received packet. TCP segments, and ICMP errors about them, belong to the
    /// owner of their connection; everything else to the first shard: UDP, pings, fragments until
    /// they are put together, and what is malformed.
    #[must_use]
    #[inline]
    pub fn shard_for(&self, packet: &RxPacket<'_>) -> usize {
        self.find(packet.head).unwrap_or(0)
    }

    #[inline]
    fn find(&self, head: &[u8]) -> Option<usize> {
        let first = *head.first()?;
        match first >> 4 {
            4 => {
                let fixed: &[u8; 20] = head.first_chunk()?;
                let upper = head.get(usize::from(first & 0x0f) * 4..)?;
                if u16::from_be_bytes([fixed[6], fixed[7]]) & FRAGMENT != 0 {
                    return None;
                }
                if fixed[9] == PROTOCOL_TCP {
                    let address = u32::from_be_bytes([fixed[12], fixed[13], fixed[14], fixed[15]]);
                    return Some(self.hash(address, u32::from_be_bytes(*upper.first_chunk()?)));
                }
                if fixed[9] == PROTOCOL_ICMP { self.find_quoted(upper, 4) } else { None }
            }
            6 => {
                let fixed: &[u8; 40] = head.first_chunk()?;
                let (protocol, at) = match fixed[6] {
                    direct @ (PROTOCOL_TCP | PROTOCOL_ICMPV6) => (direct, 40),
                    other => skip_extensions(other, head).ok()?,
                };
                let upper = head.get(at..)?;
                if protocol == PROTOCOL_TCP {
                    let address = Ipv6Addr::from(*fixed.get(8..)?.first_chunk::<16>()?);
                    return Some(self.hash(folded(address), u32::from_be_bytes(*upper.first_chunk()?)));
                }
                if protocol == PROTOCOL_ICMPV6 { self.find_quoted(upper, 6) } else { None }
            }
            _ => None,
        }
    }

    /// The owner of what an ICMP error is about.
    #[cold]
    fn find_quoted(&self, message: &[u8], version: u8) -> Option<usize> {
        let (header, quote) = message.split_first_chunk::<8>()?;
        let is_error = match version {
            4 => matches!(header[0], 3 | 11 | 12),
            _ => matches!(header[0], 1..=4),
        };
        let quoted = Quoted::of(quote).filter(|_| is_error)?;
        (quoted.protocol == PROTOCOL_TCP)
            .then(|| self.shard_of(SocketAddr::new(quoted.dst, quoted.dst_port), quoted.src_port))
    }

    #[inline]
    const fn hash(&self, address: u32, ports: u32) -> usize {
        let Terms { shards, keys, mix } = self.terms;
        let mut hash = (address ^ keys[0]).wrapping_mul(mix[0]);
        hash ^= hash >> 15;
        hash = (hash ^ ports ^ keys[1]).wrapping_mul(mix[1]);
        hash ^= hash >> 13;
        ((hash.wrapping_mul(mix[0]) >> 16) % shards) as usize
    }
}

/// The exclusive or of an address's words.
fn folded(address: Ipv6Addr) -> u32 {
    let bits = address.to_bits();
    let half = (bits >> 64) as u64 ^ bits as u64;
    (half >> 32) as u32 ^ half as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, TcpHeader, TxChecksumMode, Unreachable, emit_icmp,
        emit_tcp,
    };
    use core::net::Ipv4Addr;
    use std::vec::Vec;

    fn steering(shards: usize) -> Steering {
        Steering::new(shards, &[7; 32])
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn segment(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let mut buf = HeaderBuf::new();
        emit_tcp(&TcpHeader::new(from, to), [&[], &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        buf.as_slice().to_vec()
    }

    fn error_about(packet: &[u8], src: IpAddr, dst: IpAddr) -> Vec<u8> {
        let kind = IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Port, code: 3 };
        let header = IcmpHeader { src, dst, ttl: 64, message: IcmpEmit::Error(kind) };
        let mut buf = HeaderBuf::new();
        emit_icmp(&header, [packet, &[]], &mut buf).unwrap();
        let mut bytes = buf.as_slice().to_vec();
        bytes.extend_from_slice(packet);
        bytes
    }

    fn pairs() -> Vec<(SocketAddr, SocketAddr)> {
        let mut pairs = Vec::new();
        for port in 1_000..1_200 {
            let mut add = |remote: &str, local: &str| {
                let (mut remote, local) = (at(remote), at(local));
                remote.set_port(port);
                pairs.push((remote, local));
            };
            add("10.0.0.1:0", "10.0.0.2:80");
            add("[fd00::1]:0", "[fd00::2]:443");
        }
        pairs
    }

    #[test]
    fn a_packet_goes_to_the_shard_of_its_connection() {
        let steering = steering(5);
        for (remote, local) in pairs() {
            let owner = steering.shard_of(remote, local.port());
            let received = segment(remote, local);
            assert_eq!(steering.shard_for(&RxPacket::new(&received)), owner, "{remote}");
            let quoted = error_about(&segment(local, remote), remote.ip(), local.ip());
            assert_eq!(steering.shard_for(&RxPacket::new(&quoted)), owner, "an error about {remote}");
        }
    }

    #[test]
    fn everything_else_is_the_first_shards() {
        let steering = steering(64);
        let (remote, local) = (at("10.0.0.1:1000"), at("10.0.0.2:80"));
        let packet = segment(remote, local);
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = packet.clone();
            change(&mut packet);
            steering.shard_for(&RxPacket::new(&packet))
        };
        assert_ne!(with(&|_| {}), 0, "the key is chosen so");
        assert_eq!(with(&|packet| packet[9] = 17), 0, "UDP");
        assert_eq!(with(&|packet| packet[6] |= 0x20), 0, "the first fragment");
        assert_eq!(with(&|packet| packet[7] = 1), 0, "a later fragment");
        assert_eq!(with(&|packet| packet[0] = 0x55), 0, "of no version");
        for len in 0..24 {
            assert_eq!(with(&|packet| packet.truncate(len)), 0, "{len} bytes");
        }
        let mut echo = error_about(&segment(local, remote), remote.ip(), local.ip());
        echo[20] = 8;
        assert_eq!(steering.shard_for(&RxPacket::new(&echo)), 0, "a ping");
    }

    #[test]
    fn connections_are_spread_evenly() {
        for shards in [2, 3, 4, 16] {
            let steering = steering(shards);
            // Linux's clients take ports of one parity first.
            let mut counts = std::vec![0_usize; shards];
            for port in (32_768..60_999).step_by(2) {
                counts[steering.shard_of(SocketAddr::new([10, 0, 0, 1].into(), port), 80)] += 1;
            }
            let even = 14_116 / shards;
            assert!(counts.iter().all(|count| count.abs_diff(even) < even / 8), "{counts:?}");
            let mut counts = std::vec![0_usize; shards];
            for host in 0..10_000_u32 {
                let address = Ipv4Addr::from_bits(0x0a00_0000 + host);
                counts[steering.shard_of(SocketAddr::new(address.into(), 40_000), 443)] += 1;
            }
            let even = 10_000 / shards;
            assert!(counts.iter().all(|count| count.abs_diff(even) < even / 4), "{counts:?}");
        }
    }

    #[test]
    fn the_number_of_shards_is_bounded() {
        assert_eq!(steering(0).shards(), 1);
        assert_eq!(steering(1_000).shards(), MAX_SHARDS);
    }

    proptest::proptest! {
        #[test]
        fn no_packet_is_too_odd(bytes: Vec<u8>, shards in 1_usize..=MAX_SHARDS) {
            assert!(steering(shards).shard_for(&RxPacket::new(&bytes)) < shards);
        }
    }
}
