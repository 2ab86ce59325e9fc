//! Segmentation in software: splits a super-packet into wire packets.
//!
//! For devices without offload, in-memory links and captures. The result is what a network card
//! would produce: sequence numbers and lengths are updated, FIN and PSH go to the last packet, CWR
//! to the first (RFC 3168, section 6.1.2: it is sent once), everything else is the same in all.

use super::checksum::Accumulator;
use super::emit::{Emitted, HeaderBuf, TxChecksum, TxChecksumMode};
use super::field::be16;
use super::tcp::{self, PROTOCOL_TCP};
use super::{EmitError, IpVersion, Payload, RxPacket, TcpFlags, ipv4, ipv6};
use core::num::NonZeroU16;

/// The wire packets of one super-packet, in order; created by [`split`].
///
/// Each call of [`next_into`](Self::next_into) writes one packet's headers and returns its payload.
/// Not an `Iterator`, because all items use the same buffer.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    headers: SegmentHeaders,
    /// The rest of the payload.
    payload: Payload<'a>,
    mode: TxChecksumMode,
    /// Sum over the pseudo-header without the length, and, for complete checksums, over the TCP
    /// header without sequence number, flags and checksum: what all packets have in common.
    common_sum: Accumulator,
}

/// Their headers alone, without checksums of TCP; created by [`split_headers`].
#[derive(Clone, Debug)]
pub struct SegmentHeaders {
    /// Those of the super-packet, which are copied for each packet.
    template: [u8; HeaderBuf::CAPACITY],
    /// Octets of them.
    len: usize,
    /// Octets of the rest of the payload.
    left: usize,
    segment_size: usize,
    version: IpVersion,
    /// Length of the IP header including options or extension headers.
    ip_len: usize,
    flags: TcpFlags,
    /// The data offset, in its place beside the flags.
    offset: u16,
    seq: u32,
    identification: u16,
    /// Sum over the IPv4 header without total length, identification and checksum, the only fields
    /// that differ.
    ip_sum: Accumulator,
    first: bool,
    done: bool,
}

/// Prepares to split the packet with these `headers` (IP and TCP, nothing after them) and this
/// payload into packets with `segment_size` octets of data, fewer in the last one. A payload that
/// fits makes one packet. Lengths and checksums in `headers` are ignored.
///
/// # Errors
/// [`EmitError::BadHeaders`] if `headers` are not those of a TCP packet;
/// [`EmitError::NotSplittable`] if there would be several packets with SYN, RST or URG;
/// [`EmitError::TooLong`] if a packet would exceed IP's maximum length.
pub fn split<'a>(
    headers: &'a [u8],
    payload: Payload<'a>,
    segment_size: NonZeroU16,
    mode: TxChecksumMode,
) -> Result<Segments<'a>, EmitError> {
    let headers = split_headers(headers, payload.len(), segment_size)?;
    let common_sum = headers.common_sum(mode).ok_or(EmitError::BadHeaders)?;
    Ok(Segments { headers, payload, mode, common_sum })
}

/// Prepares to [`split`] a received packet, at its segment size and by its own headers; one without
/// a segment size stays one packet. For whoever hands on what a device with offload has received.
///
/// # Errors
/// As [`split`], also for a packet of anything but TCP.
pub fn split_received<'a>(packet: &RxPacket<'a>, mode: TxChecksumMode) -> Result<Segments<'a>, EmitError> {
    let ip = IpHeader::read(packet.head)?;
    let offset = packet.head.get(ip.len + 12).ok_or(EmitError::BadHeaders)?;
    let headers_len = ip.len + usize::from(offset >> 4) * 4;
    let (headers, data) = packet.head.split_at_checked(headers_len).ok_or(EmitError::BadHeaders)?;
    let mut payload = Payload::new([data, packet.more[0], packet.more[1]]);
    // What follows is padding.
    payload.truncate(ip.total_len.checked_sub(headers_len).ok_or(EmitError::BadHeaders)?);
    split(headers, payload, packet.segment_size.unwrap_or(NonZeroU16::MAX), mode)
}

/// What an IP header says.
pub(super) struct IpHeader {
    version: IpVersion,
    /// What is behind it.
    pub(super) protocol: u8,
    /// Octets before the transport header: with options or extension headers.
    pub(super) len: usize,
    /// Octets of the whole packet.
    total_len: usize,
    identification: u16,
}

impl IpHeader {
    pub(super) fn read(packet: &[u8]) -> Result<Self, EmitError> {
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => {
                let fixed: &[u8; ipv4::HEADER_LEN] = packet.first_chunk().ok_or(EmitError::BadHeaders)?;
                Ok(Self {
                    version: IpVersion::V4,
                    protocol: fixed[9],
                    len: ipv4::header_len(fixed),
                    total_len: u16::from_be_bytes([fixed[2], fixed[3]]).into(),
                    identification: u16::from_be_bytes([fixed[4], fixed[5]]),
                })
            }
            Some(6) => {
                let fixed: &[u8; ipv6::HEADER_LEN] = packet.first_chunk().ok_or(EmitError::BadHeaders)?;
                let (protocol, len) =
                    ipv6::skip_extensions(fixed[6], packet).map_err(|_| EmitError::BadHeaders)?;
                let total_len = ipv6::HEADER_LEN + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
                Ok(Self { version: IpVersion::V6, protocol, len, total_len, identification: 0 })
            }
            _ => Err(EmitError::BadHeaders),
        }
    }
}

/// Prepares the headers of the packets into which [`split`] divides a packet with `payload_len`
/// octets of data.
///
/// # Errors
/// As [`split`].
pub fn split_headers(
    headers: &[u8],
    payload_len: usize,
    segment_size: NonZeroU16,
) -> Result<SegmentHeaders, EmitError> {
    let IpHeader { version, protocol, len: ip_len, identification, .. } = IpHeader::read(headers)?;
    let transport = headers.get(ip_len..).ok_or(EmitError::BadHeaders)?;
    let fixed: &[u8; tcp::HEADER_LEN] = transport.first_chunk().ok_or(EmitError::BadHeaders)?;
    let tcp_len = usize::from(fixed[12] >> 4) * 4;
    if protocol != PROTOCOL_TCP
        || ip_len < ipv4::HEADER_LEN
        || tcp_len < tcp::HEADER_LEN
        || transport.len() != tcp_len
        || headers.len() > HeaderBuf::CAPACITY
    {
        return Err(EmitError::BadHeaders);
    }
    let flags = TcpFlags::from_bits(be16::<12>(fixed));
    let mut ip_sum = Accumulator::new();
    if version == IpVersion::V4 {
        for part in [0..2, 6..10, 12..ip_len] {
            ip_sum.add(headers.get(part).unwrap_or_default());
        }
    }
    let segment_size = usize::from(segment_size.get());
    if payload_len > segment_size && flags.intersects(TcpFlags::SYN.union(TcpFlags::RST).union(TcpFlags::URG))
    {
        return Err(EmitError::NotSplittable);
    }
    let longest = headers.len() + payload_len.min(segment_size);
    let limit = usize::from(u16::MAX) + if version == IpVersion::V6 { ipv6::HEADER_LEN } else { 0 };
    if longest > limit {
        return Err(EmitError::TooLong);
    }
    let mut template = [0; HeaderBuf::CAPACITY];
    let (own, _) = template.split_at_mut_checked(headers.len()).ok_or(EmitError::BadHeaders)?;
    own.copy_from_slice(headers);
    Ok(SegmentHeaders {
        template,
        len: headers.len(),
        left: payload_len,
        segment_size,
        version,
        ip_len,
        flags,
        offset: be16::<12>(fixed) & 0xfe00,
        seq: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        identification,
        ip_sum,
        first: true,
        done: false,
    })
}

impl<'a> Segments<'a> {
    /// Number of packets left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.headers.remaining()
    }

    /// Writes the headers of the next packet into `buf` and returns its payload and what remains to
    /// be done for its checksum; `None` after the last one.
    pub fn next_into(&mut self, buf: &mut HeaderBuf) -> Option<(Emitted, Payload<'a>)> {
        let mut rest = self.payload;
        let length = self.next_headers(buf)?;
        Some((Emitted { header_len: self.headers.len, checksum: self.checksum() }, rest.split_to(length)))
    }

    /// Writes the headers of the next packet into `buf`, which is empty after the last one. Returns
    /// the octets of its payload.
    #[inline]
    pub(crate) fn next_headers(&mut self, buf: &mut HeaderBuf) -> Option<usize> {
        if self.headers.done {
            buf.len = 0;
            return None;
        }
        self.write_next(buf)
    }

    fn write_next(&mut self, buf: &mut HeaderBuf) -> Option<usize> {
        let Next { data: length, seq, offset_and_flags } = self.headers.next(buf)?;
        let data = self.payload.split_to(length);
        let tcp_at = self.headers.ip_len;
        let mut sum = self.common_sum;
        // It is in 16 bits: `split_headers` has checked the length of the packets.
        sum.add_u16((self.headers.len - tcp_at + length) as u16);
        let field = match self.mode {
            TxChecksumMode::Complete => {
                // Not read from the header: what was just written in pieces is not there yet for a
                // wide load.
                sum.add_u32(seq);
                sum.add_u16(offset_and_flags);
                for slice in data.slices() {
                    sum.add(slice);
                }
                sum.checksum()
            }
            TxChecksumMode::Partial => sum.sum(),
            TxChecksumMode::Omit => return Some(length),
        };
        tcp::set_checksum(&mut buf.bytes, tcp_at, field);
        Some(length)
    }

    /// What remains to be done for the checksum of each packet.
    pub(crate) const fn checksum(&self) -> TxChecksum {
        match self.mode {
            TxChecksumMode::Complete => TxChecksum::Complete,
            TxChecksumMode::Partial => {
                TxChecksum::Partial { start: self.headers.ip_len as u16, offset: tcp::CHECKSUM_OFFSET }
            }
            TxChecksumMode::Omit => TxChecksum::Omitted,
        }
    }
}

/// What differs in the TCP header of a packet.
struct Next {
    /// Octets of its data.
    data: usize,
    seq: u32,
    offset_and_flags: u16,
}

impl SegmentHeaders {
    /// Number of packets left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        if self.done { 0 } else { self.left.div_ceil(self.segment_size).max(1) }
    }

    /// Writes the headers of the next packet into `buf`, with a TCP checksum of zero, and returns
    /// the octets of its payload; `None` after the last one.
    pub fn next_into(&mut self, buf: &mut HeaderBuf) -> Option<usize> {
        self.next(buf).map(|next| next.data)
    }

    #[inline]
    fn next(&mut self, buf: &mut HeaderBuf) -> Option<Next> {
        if self.done {
            buf.len = 0;
            return None;
        }
        let data = self.left.min(self.segment_size);
        self.left -= data;
        let last = self.left == 0;
        let tcp_at = self.ip_len;
        // `split_headers` has checked that the headers fit the buffer and hold both fixed headers.
        copy_headers(&self.template, self.len, &mut buf.bytes);
        buf.len = self.len;
        let upper_len = self.len - tcp_at + data;
        let (ip, tcp) = buf.bytes.split_at_mut_checked(tcp_at)?;
        match self.version {
            IpVersion::V4 => self.patch_ipv4(ip, upper_len)?,
            IpVersion::V6 => patch_ipv6(ip, upper_len)?,
        }

        let fixed: &mut [u8; tcp::HEADER_LEN] = tcp.first_chunk_mut()?;
        let mut flags = self.flags;
        if !last {
            flags = flags.difference(TcpFlags::FIN | TcpFlags::PSH);
        }
        if !self.first {
            flags = flags.difference(TcpFlags::CWR);
        }
        let (seq, offset_and_flags) = (self.seq, self.offset | flags.bits());
        fixed[4..8].copy_from_slice(&seq.to_be_bytes());
        fixed[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        fixed[16..18].fill(0);

        self.seq = self.seq.wrapping_add(data as u32);
        self.identification = self.identification.wrapping_add(1);
        self.first = false;
        self.done = last;
        Some(Next { data, seq, offset_and_flags })
    }

    /// What the checksums of all packets have in common.
    fn common_sum(&self, mode: TxChecksumMode) -> Option<Accumulator> {
        let headers = self.template.get(..self.len)?;
        let mut sum = match self.version {
            IpVersion::V4 => {
                let (src, dst) = ipv4::addresses(headers.first_chunk()?);
                Accumulator::pseudo_v4(src, dst, PROTOCOL_TCP, 0)
            }
            IpVersion::V6 => {
                let (src, dst) = ipv6::addresses(headers.first_chunk()?);
                Accumulator::pseudo_v6(src, dst, PROTOCOL_TCP, 0)
            }
        };
        if mode == TxChecksumMode::Complete {
            let tcp = headers.get(self.ip_len..)?;
            for part in [0..4, 8..12, 14..16, 18..tcp.len()] {
                sum.add(tcp.get(part)?);
            }
        }
        Some(sum)
    }

    /// Writes total length, identification and header checksum.
    fn patch_ipv4(&self, ip: &mut [u8], upper_len: usize) -> Option<()> {
        let total_len = (ip.len() + upper_len) as u16;
        let fixed: &mut [u8; ipv4::HEADER_LEN] = ip.first_chunk_mut()?;
        fixed[2..4].copy_from_slice(&total_len.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.identification.to_be_bytes());
        let mut sum = self.ip_sum;
        sum.add_u16(total_len);
        sum.add_u16(self.identification);
        fixed[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        Some(())
    }
}

/// Copies the first `len` octets, and some more: as many as registers take at once.
#[inline(always)]
fn copy_headers(from: &[u8; HeaderBuf::CAPACITY], len: usize, to: &mut [u8; HeaderBuf::CAPACITY]) {
    /// IPv4 or IPv6, and TCP without options; IPv4, and TCP with timestamps.
    const USUAL: usize = 64;
    match (from.first_chunk::<USUAL>(), to.first_chunk_mut()) {
        (Some(from), Some(to)) if len <= USUAL => *to = *from,
        _ => *to = *from,
    }
}

/// Writes the payload length, including extension headers.
fn patch_ipv6(ip: &mut [u8], upper_len: usize) -> Option<()> {
    let payload_len = (ip.len() - ipv6::HEADER_LEN + upper_len) as u16;
    let fixed: &mut [u8; ipv6::HEADER_LEN] = ip.first_chunk_mut()?;
    fixed[4..6].copy_from_slice(&payload_len.to_be_bytes());
    Some(())
}
