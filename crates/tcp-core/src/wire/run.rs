//! Runs: segments of one connection that follow each other in a batch of packets and differ in
//! nothing but their data, so that they can be processed as one arrival. What a network card or
//! Linux's GRO does to packets is done to their descriptions; nothing is copied.
//!
//! A packet continues a run if everything in its headers is that of the packet before it, options
//! and ECN field included, except: lengths and checksums, which are verified; the identification of
//! IPv4; the sequence number, which is the next one; and PSH. Its data is not longer than that of
//! the first. So each fact about the first segment holds for all.

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

/// Clears what may differ in the TCP header at `tcp`: sequence number, PSH, checksum, and the
/// urgent pointer, which means nothing without URG.
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
    /// Octets of the first data that were copied to their place.
    stored: u32,
    /// One of them has PSH.
    psh: bool,
}

/// Memory that is filled in order, as long as each piece fits.
struct Room<'b>([&'b mut [u8]; 2]);

impl<'b> Room<'b> {
    /// Memory for the next `len` octets. If it does not suffice, none is left for others either.
    #[inline]
    fn take(&mut self, len: usize) -> Option<[&'b mut [u8]; 2]> {
        let [first, second] = core::mem::take(&mut self.0);
        if len <= first.len() {
            let (taken, rest) = first.split_at_mut(len);
            self.0 = [rest, second];
            return Some([taken, &mut []]);
        }
        let (taken, rest) = second.split_at_mut_checked(len - first.len())?;
        self.0 = [rest, &mut []];
        Some([first, taken])
    }
}

/// What continues a run.
struct Follower {
    len: usize,
    psh: bool,
}

impl<'a> Leader<'a> {
    /// The packet, parsed as `datagram`, as the first of a run; `None` if it is none: it is not
    /// plain data, a super-packet, or has IP options or extension headers.
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
            && segment.flags.difference(TcpFlags::PSH | TcpFlags::ACE) == TcpFlags::ACK
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

    /// The run of the leader, which is the first of `packets`, and those behind it that continue
    /// it, with at most `most` octets of data. The data is copied to `room` while its checksums are
    /// verified, from the first on as far as there is room; what does not belong to the run may be
    /// written behind it.
    pub(crate) fn gather(&self, packets: &'a [RxPacket<'a>], most: u32, room: [&mut [u8]; 2]) -> Run<'a> {
        let mut run = Run {
            packets: packets.get(..1).unwrap_or_default(),
            version: self.version,
            headers: self.headers,
            bytes: self.len as u32,
            last_offset: 0,
            stored: 0,
            psh: self.psh,
        };
        let mut room = Room(room);
        if let Some(place) = room.take(self.len) {
            copy(part(self.packet, self.headers, self.len), place, |from, to| to.copy_from_slice(from));
            run.stored = run.bytes;
        }
        for (count, packet) in packets.iter().enumerate().skip(1) {
            let Some(Follower { len, psh }) = self.follower(packet, self.seq + run.bytes) else { break };
            if u64::from(run.bytes) + len as u64 > u64::from(most) {
                break;
            }
            let place = room.take(len);
            let stored = if place.is_some() { len as u32 } else { 0 };
            if !self.accept(packet, len, place) {
                break;
            }
            run.stored += stored;
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

    /// Verifies the TCP checksum of a follower with `len` octets of data, and copies these to their
    /// place, if there is one.
    #[inline]
    fn accept(&self, packet: &RxPacket<'_>, len: usize, place: Option<[&mut [u8]; 2]>) -> bool {
        let data = part(packet, self.headers, len);
        if packet.checksum != RxChecksum::Verify {
            if let Some(place) = place {
                copy(data, place, |from, to| to.copy_from_slice(from));
            }
            return true;
        }
        let ip_len = match self.version {
            IpVersion::V4 => ipv4::HEADER_LEN,
            IpVersion::V6 => ipv6::HEADER_LEN,
        };
        // It is in the low 16 bits: no packet of a run is longer than its IP header can say.
        let mut sum = self.pseudo;
        sum.add_u16((self.headers - ip_len + len) as u16);
        sum.add(packet.head.get(ip_len..self.headers).unwrap_or_default());
        match place {
            Some(place) => copy(data, place, |from, to| sum.add_copied(from, to)),
            None => data.slices().into_iter().for_each(|slice| sum.add(slice)),
        }
        sum.is_valid()
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

    /// Octets of the first data that lie in the room that [`Leader::gather`] was given: those of
    /// whole segments.
    pub(crate) const fn stored(&self) -> u32 {
        self.stored
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

/// Passes the octets of `data`, and their places, which are as many, to `copy`.
#[inline(always)]
fn copy(data: Payload<'_>, [first, second]: [&mut [u8]; 2], mut copy: impl FnMut(&[u8], &mut [u8])) {
    let mut place = first;
    let mut then = Some(second);
    for mut slice in data.slices() {
        while !slice.is_empty() {
            if place.is_empty() {
                let Some(second) = then.take() else { return };
                place = second;
            }
            let (now, later) = slice.split_at(slice.len().min(place.len()));
            let (to, rest) = place.split_at_mut(now.len());
            copy(now, to);
            (slice, place) = (later, rest);
        }
    }
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
    let word = |bytes: &'_ [u8; N], at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        match (rest.first_chunk::<8>(), rest.first_chunk::<4>()) {
            (Some(word), _) => u64::from_ne_bytes(*word),
            (None, Some(word)) => u64::from(u32::from_ne_bytes(*word)),
            (None, None) => 0,
        }
    };
    const { assert!(N.is_multiple_of(4)) };
    let differ =
        (0..N).step_by(8).fold(0, |differ, at| differ | ((word(one, at) ^ word(other, at)) & word(same, at)));
    differ == 0
}
