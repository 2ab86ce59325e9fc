//! Runs: segments of one connection that follow each other in a batch of packets and differ in nothing but their data, so that they can
//! be processed as one arrival. What a network card or Linux's GRO does to packets is done to their descriptions; nothing is copied.
//!
//! A packet continues a run if everything in its headers is that of the packet before it, options and ECN field included, except:
//! lengths and checksums, which are verified; the identification of IPv4; the sequence number, which is the next one; and PSH. Its data
//! is not longer than that of the first. So each fact about the first segment holds for all.

use super::checksum::{Accumulator, sum_20};
use super::{Datagram, IpVersion, Payload, RxChecksum, RxPacket, TcpFlags, Transport, ipv4, ipv6, tcp};
use crate::seq::SeqNum;
use core::net::IpAddr;

/// Octets of the headers without options.
const V4: usize = ipv4::HEADER_LEN + tcp::HEADER_LEN;
const V6: usize = ipv6::HEADER_LEN + tcp::HEADER_LEN;
/// PSH in its octet of the TCP header.
const PSH: u8 = TcpFlags::PSH.bits() as u8;

/// The bits of the headers that are the same in a run.
const SAME_V4: [u8; V4] = {
    let mut same = [0xff; V4];
    // Total length, identification, checksum.
    (same[2], same[3], same[4], same[5], same[10], same[11]) = (0, 0, 0, 0, 0, 0);
    without_variable_tcp(same, ipv4::HEADER_LEN)
};
const SAME_V6: [u8; V6] = {
    let mut same = [0xff; V6];
    // Payload length.
    (same[4], same[5]) = (0, 0);
    without_variable_tcp(same, ipv6::HEADER_LEN)
};

/// Clears what may differ in the TCP header at `tcp`: sequence number, PSH, checksum, and the urgent pointer, which means nothing without
/// URG.
const fn without_variable_tcp<const N: usize>(mut same: [u8; N], tcp: usize) -> [u8; N] {
    (same[tcp + 4], same[tcp + 5], same[tcp + 6], same[tcp + 7]) = (0, 0, 0, 0);
    same[tcp + 13] &= !PSH;
    (same[tcp + 16], same[tcp + 17], same[tcp + 18], same[tcp + 19]) = (0, 0, 0, 0);
    same
}

/// A packet that may be the first of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leader<'a> {
    packet: &'a RxPacket<'a>,
    version: IpVersion,
    /// The sum of the pseudo-header of an empty segment.
    pseudo: Accumulator,
    /// Octets of all headers.
    headers: usize,
    seq: SeqNum,
    /// Octets of its data.
    len: usize,
    psh: bool,
}

/// Segments of which one follows the other; at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    packets: &'a [RxPacket<'a>],
    version: IpVersion,
    headers: usize,
    /// Octets of their data.
    bytes: u32,
    /// Octets of the data before the last segment's.
    last_offset: u32,
    /// One of them has PSH.
    psh: bool,
}

/// What continues a run.
struct Follower {
    len: usize,
    psh: bool,
}

impl<'a> Leader<'a> {
    /// The packet, parsed as `datagram`, as the first of a run; `None` if it is none: it is not plain data, a super-packet, or has IP options or
    /// extension headers.
    #[inline]
    pub(crate) fn new(packet: &'a RxPacket<'a>, datagram: &Datagram<'_>) -> Option<Self> {
        let Datagram { ip, transport: Transport::Tcp(segment) } = datagram else { return None };
        let (plain, pseudo) = match (ip.src, ip.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                (ipv4::HEADER_LEN, Accumulator::pseudo_v4(src, dst, tcp::PROTOCOL_TCP, 0))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                (ipv6::HEADER_LEN, Accumulator::pseudo_v6(src, dst, tcp::PROTOCOL_TCP, 0))
            }
            _ => return None,
        };
        let leads = usize::from(ip.header_len) == plain
            && segment.flags.difference(TcpFlags::PSH) == TcpFlags::ACK
            && packet.segment_size.is_none()
            && !segment.payload.is_empty();
        leads.then(|| Self {
            packet,
            version: ip.version,
            pseudo,
            headers: plain + tcp::HEADER_LEN + segment.raw_options.len(),
            seq: segment.seq,
            len: segment.payload.len(),
            psh: segment.flags.contains(TcpFlags::PSH),
        })
    }

    /// True if `next` looks as if it continued the run; its checksum is not verified.
    #[inline]
    pub(crate) fn is_followed_by(&self, next: &RxPacket<'_>) -> bool {
        self.follower(next, self.seq + self.len as u32).is_some()
    }

    /// The run of the leader, which is the first of `packets`, and those behind it that continue it, with at most `most` octets of data.
    pub(crate) fn gather(&self, packets: &'a [RxPacket<'a>], most: u32) -> Run<'a> {
        let mut run = Run {
            packets: packets.get(..1).unwrap_or_default(),
            version: self.version,
            headers: self.headers,
            bytes: self.len as u32,
            last_offset: 0,
            psh: self.psh,
        };
        for (count, packet) in packets.iter().enumerate().skip(1) {
            let Some(Follower { len, psh }) = self.follower(packet, self.seq + run.bytes) else { break };
            if u64::from(run.bytes) + len as u64 > u64::from(most) || !self.is_intact(packet, len) {
                break;
            }
            run.last_offset = run.bytes;
            run.bytes += len as u32;
            run.psh |= psh;
            run.packets = packets.get(..=count).unwrap_or_default();
        }
        run
    }

    /// What `packet` brings if its headers continue the run at `seq`.
    #[inline]
    fn follower(&self, packet: &RxPacket<'_>, seq: SeqNum) -> Option<Follower> {
        let (tcp, same, total_len) = match self.version {
            IpVersion::V4 => {
                let (own, other) = (self.packet.head.first_chunk()?, packet.head.first_chunk()?);
                let (ip, tcp) = other.split_first_chunk::<{ ipv4::HEADER_LEN }>()?;
                (tcp, are_same::<V4>(own, other, &SAME_V4) && sum_20(ip) == 0xffff, total_len_v4(ip))
            }
            IpVersion::V6 => {
                let (own, other) = (self.packet.head.first_chunk()?, packet.head.first_chunk()?);
                let (ip, tcp) = other.split_first_chunk::<{ ipv6::HEADER_LEN }>()?;
                (tcp, are_same::<V6>(own, other, &SAME_V6), total_len_v6(ip))
            }
        };
        let &[_, _, _, _, s0, s1, s2, s3, _, _, _, _, _, bits, _, _, _, _, _, _] = tcp.first_chunk()?;
        let len = total_len.checked_sub(self.headers)?;
        let follows = same
            && SeqNum(u32::from_be_bytes([s0, s1, s2, s3])) == seq
            && (1..=self.len).contains(&len)
            && packet.segment_size.is_none()
            && self.has_same_options(packet)?
            && total_len <= packet.len();
        follows.then_some(Follower { len, psh: bits & PSH != 0 })
    }

    /// The options are those of the leader, octet for octet; `None` if they are missing.
    #[inline]
    fn has_same_options(&self, packet: &RxPacket<'_>) -> Option<bool> {
        let fixed = match self.version {
            IpVersion::V4 => V4,
            IpVersion::V6 => V6,
        };
        let own = self.packet.head.get(fixed..self.headers)?;
        let other = packet.head.get(fixed..self.headers)?;
        Some(match (own.first_chunk::<12>(), other.first_chunk::<12>()) {
            // Timestamps alone, nearly always.
            (Some(first), Some(second)) if own.len() == 12 => first == second,
            _ => own == other,
        })
    }

    /// The TCP checksum of a follower with `len` octets of data.
    fn is_intact(&self, packet: &RxPacket<'_>, len: usize) -> bool {
        if packet.checksum != RxChecksum::Verify {
            return true;
        }
        let ip_len = match self.version {
            IpVersion::V4 => ipv4::HEADER_LEN,
            IpVersion::V6 => ipv6::HEADER_LEN,
        };
        let upper_len = self.headers - ip_len + len;
        // It is in the low 16 bits: no packet of a run is longer than its IP header can say.
        let mut sum = self.pseudo;
        sum.add_u16(upper_len as u16);
        let upper = part(packet, ip_len, upper_len);
        tcp::upper_is_intact(upper, sum)
    }
}

impl<'a> Run<'a> {
    /// The packets, in order.
    pub(crate) const fn packets(&self) -> &'a [RxPacket<'a>] {
        self.packets
    }

    /// Number of segments.
    pub(crate) const fn segments(&self) -> u32 {
        self.packets.len() as u32
    }

    /// Octets of data of all.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// How far the last segment begins behind the first.
    pub(crate) const fn last_offset(&self) -> u32 {
        self.last_offset
    }

    /// One of the segments has PSH.
    pub(crate) const fn psh(&self) -> bool {
        self.psh
    }

    /// The data of each segment, and whether it has PSH.
    pub(crate) fn segments_data(&self) -> impl Iterator<Item = (Payload<'a>, bool)> + '_ {
        self.packets.iter().map(|packet| {
            // The headers of each have been read.
            let (ip_len, total_len) = match self.version {
                IpVersion::V4 => (ipv4::HEADER_LEN, packet.head.first_chunk().map_or(0, total_len_v4)),
                IpVersion::V6 => (ipv6::HEADER_LEN, packet.head.first_chunk().map_or(0, total_len_v6)),
            };
            let bits = packet.head.get(ip_len + 13).copied().unwrap_or_default();
            (part(packet, self.headers, total_len.saturating_sub(self.headers)), bits & PSH != 0)
        })
    }
}

/// `len` octets of the packet, from octet `from` on, which is in its first slice.
#[inline(always)]
fn part<'a>(packet: &RxPacket<'a>, from: usize, len: usize) -> Payload<'a> {
    let rest = packet.head.get(from..).unwrap_or_default();
    if let Some(whole) = rest.get(..len) {
        return Payload::new([whole, &[], &[]]);
    }
    let [second, third] = packet.more;
    let mut payload = Payload::new([rest, second, third]);
    payload.truncate(len);
    payload
}

fn total_len_v4(ip: &[u8; ipv4::HEADER_LEN]) -> usize {
    u16::from_be_bytes([ip[2], ip[3]]).into()
}

fn total_len_v6(ip: &[u8; ipv6::HEADER_LEN]) -> usize {
    ipv6::HEADER_LEN + usize::from(u16::from_be_bytes([ip[4], ip[5]]))
}

/// True if two headers have the same bits where `same` has ones.
#[inline(always)]
fn are_same<const N: usize>(one: &[u8; N], other: &[u8; N], same: &[u8; N]) -> bool {
    let words = |bytes: &'_ [u8; N], at: usize| {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
    };
    const { assert!(N.is_multiple_of(4)) };
    let differ = (0..N)
        .step_by(4)
        .fold(0, |differ, at| differ | ((words(one, at) ^ words(other, at)) & words(same, at)));
    differ == 0
}
