//! The TCP header (RFC 9293, section 3.1): a checked view of a received segment, and the emitter.

pub(in crate::wire) mod accecn;
pub(in crate::wire) mod fast_open;
pub(in crate::wire) mod flags;
pub(in crate::wire) mod options;

use super::checksum::Accumulator;
use super::emit::{Emitted, HeaderBuf, TxChecksum, TxChecksumMode};
use super::field::{be16, be32};
use super::ipv4::{self, Ipv4Emit};
use super::ipv6::{self, Ipv6Emit};
use super::{EmitError, Payload, RxChecksum, TcpFlags, WireError};
use crate::SeqNum;
use core::net::SocketAddr;
use core::num::NonZeroU16;
use fast_open::FastOpenCookie;
use options::{MAX_OPTIONS_LEN, OptionIter, TcpOption, TcpOptions, Timestamps, emit_option_list};

/// The protocol number of TCP in the IP header.
pub const PROTOCOL_TCP: u8 = 6;

/// The fixed header's length, octets.
pub(super) const HEADER_LEN: usize = 20;

pub(super) const CHECKSUM_OFFSET: u16 = 16;

/// A received segment that passed the checks of lengths and checksum.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    /// Source port; may be zero.
    pub src_port: u16,
    /// Destination port; may be zero.
    pub dst_port: u16,
    /// SEG.SEQ: the first sequence number of the segment.
    pub seq: SeqNum,
    /// SEG.ACK: only valid with the ACK bit.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: TcpFlags,
    /// SEG.WND as in the header, unscaled.
    pub window: u16,
    /// SEG.UP: offset of the urgent octet from `seq`; only valid with the URG bit.
    pub urgent: u16,
    /// The options that a connection uses.
    pub options: TcpOptions,
    /// True if the option list ended at an invalid length; the options before it count.
    pub options_malformed: bool,
    /// The raw option area, 0 to 40 octets; parse it with [`option_iter`](Self::option_iter).
    pub raw_options: &'a [u8],
    /// The data.
    pub payload: Payload<'a>,
    /// Number of wire segments: more than one if the device merged them.
    pub wire_segments: u32,
}

impl<'a> TcpSegment<'a> {
    /// SEG.LEN: octets of data, and one each for SYN and FIN (RFC 9293, section 3.4).
    #[must_use]
    pub fn seg_len(&self) -> u32 {
        self.payload.len() as u32 + self.flags.sequence_len()
    }

    /// All options, known and unknown, in order.
    #[must_use]
    pub const fn option_iter(&self) -> OptionIter<'a> {
        OptionIter::new(self.raw_options)
    }

    /// The fast open option of a SYN or SYN-ACK (RFC 7413, section 4.1.1), if it is well-formed.
    #[must_use]
    pub fn fast_open(&self) -> Option<FastOpenCookie> {
        self.option_iter().find_map(|option| match option {
            TcpOption::FastOpen(cookie) => Some(cookie),
            _ => None,
        })
    }
}

/// A segment whose options have not been parsed yet.
pub(super) struct Parts<'a> {
    fixed: &'a [u8; HEADER_LEN],
    pub(super) raw_options: &'a [u8],
    payload: Payload<'a>,
    wire_segments: u32,
}

impl<'a> Parts<'a> {
    /// Parses the segment in `upper`; `pseudo` is the pseudo-header's sum.
    #[inline(always)]
    pub(super) fn parse(
        upper: Payload<'a>,
        pseudo: Accumulator,
        checksum: RxChecksum,
        segment_size: Option<NonZeroU16>,
    ) -> Result<Self, WireError> {
        let [head, second, third] = upper.slices();
        let fixed: &[u8; HEADER_LEN] = head.first_chunk().ok_or(WireError::TcpHeader)?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(WireError::TcpHeader);
        }
        let (header, first) = head.split_at_checked(header_len).ok_or(WireError::TcpHeader)?;
        // A payload of its own: `upper` stays in registers where nothing is verified.
        if checksum == RxChecksum::Verify && !upper_is_intact([head, second, third], pseudo) {
            return Err(WireError::TcpChecksum);
        }
        let payload = Payload::new([first, second, third]).in_memory(upper.memory());
        let wire_segments = match segment_size {
            Some(size) => (payload.len() as u32).div_ceil(u32::from(size.get())).max(1),
            None => 1,
        };
        let raw_options = header.get(HEADER_LEN..).unwrap_or_default();
        Ok(Self { fixed, raw_options, payload, wire_segments })
    }

    #[inline(always)]
    pub(super) fn with_options(self, options: TcpOptions, options_malformed: bool) -> TcpSegment<'a> {
        let Self { fixed, raw_options, payload, wire_segments } = self;
        TcpSegment {
            src_port: be16::<0>(fixed),
            dst_port: be16::<2>(fixed),
            seq: SeqNum(be32::<4>(fixed)),
            ack: SeqNum(be32::<8>(fixed)),
            flags: TcpFlags::from_bits(be16::<12>(fixed)),
            window: be16::<14>(fixed),
            urgent: be16::<18>(fixed),
            options,
            options_malformed,
            raw_options,
            payload,
            wire_segments,
        }
    }
}

/// True if the sum over pseudo-header and everything above IP is all ones.
pub(super) fn upper_is_intact(upper: [&[u8]; 3], mut sum: Accumulator) -> bool {
    for slice in upper {
        sum.add(slice);
    }
    sum.is_valid()
}

/// How the options of an emitted segment are arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OptionLayout<'a> {
    /// [`TcpHeader::options`], every option aligned: MSS, SACK-permitted, timestamps, window scale,
    /// SACK.
    #[default]
    Standard,
    /// The same, and a fast open option behind them.
    FastOpen(FastOpenCookie),
    /// These instead of [`TcpHeader::options`], in this order, octet for octet, padded to a
    /// multiple of four.
    Listed(&'a [TcpOption<'a>]),
}

/// The contents of a segment's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader<'a> {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port, of the same IP version; IPv6 scope and flow information are
    /// ignored.
    pub dst: SocketAddr,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 type of service, or IPv6 traffic class: the DSCP in the upper six bits, ECN in the
    /// lower two.
    pub tos: u8,
    /// IPv4 identification. With DF it need not be unique (RFC 6864, section 4.1).
    pub identification: u16,
    /// Routers may fragment the packet: DF of IPv4 is clear.
    pub may_fragment: bool,
    /// IPv6 flow label, 20 bits; higher ones are dropped.
    pub flow_label: u32,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK; written even without the ACK bit.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: TcpFlags,
    /// SEG.WND as in the header, already scaled.
    pub window: u16,
    /// SEG.UP.
    pub urgent: u16,
    /// The options, if `layout` does not list them.
    pub options: TcpOptions,
    /// How the options are arranged.
    pub layout: OptionLayout<'a>,
}

impl TcpHeader<'_> {
    /// A header with TTL 64, no options, and zero elsewhere.
    #[must_use]
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self {
            src,
            dst,
            ttl: 64,
            tos: 0,
            identification: 0,
            may_fragment: false,
            flow_label: 0,
            seq: SeqNum(0),
            ack: SeqNum(0),
            flags: TcpFlags::NONE,
            window: 0,
            urgent: 0,
            options: TcpOptions::NONE,
            layout: OptionLayout::Standard,
        }
    }

    /// Writes the TCP header with its checksum field zero; returns its length.
    fn emit(&self, out: &mut [u8; HEADER_LEN + MAX_OPTIONS_LEN]) -> Result<usize, EmitError> {
        let Some((fixed, options)) = out.split_first_chunk_mut::<HEADER_LEN>() else {
            return Err(EmitError::OptionsTooLong);
        };
        let Some(options) = options.first_chunk_mut::<MAX_OPTIONS_LEN>() else {
            return Err(EmitError::OptionsTooLong);
        };
        let options_len = match self.layout {
            OptionLayout::Standard => self.options.emit(options),
            OptionLayout::FastOpen(cookie) => self.options.emit_with_cookie(&cookie, options)?,
            OptionLayout::Listed(list) => emit_option_list(list, options)?,
        };
        let len = HEADER_LEN + options_len;
        let [sp0, sp1] = self.src.port().to_be_bytes();
        let [dp0, dp1] = self.dst.port().to_be_bytes();
        let [s0, s1, s2, s3] = self.seq.0.to_be_bytes();
        let [a0, a1, a2, a3] = self.ack.0.to_be_bytes();
        let [offset, bits] = ((len as u16 / 4) << 12 | self.flags.bits()).to_be_bytes();
        let [w0, w1] = self.window.to_be_bytes();
        let [u0, u1] = self.urgent.to_be_bytes();
        *fixed = [sp0, sp1, dp0, dp1, s0, s1, s2, s3, a0, a1, a2, a3, offset, bits, w0, w1, 0, 0, u0, u1];
        Ok(len)
    }
}

/// Writes the IP and TCP headers of a segment whose data is `payload`, one slice after the other. A
/// payload longer than one segment makes a super-packet: one header for all, to be split by the
/// device or [`gso`](super::gso).
///
/// # Errors
/// [`EmitError`]; `buf` is empty then.
pub fn emit_tcp(
    header: &TcpHeader<'_>,
    payload: [&[u8]; 2],
    mode: TxChecksumMode,
    buf: &mut HeaderBuf,
) -> Result<Emitted, EmitError> {
    buf.len = 0;
    let [first, second] = payload;
    let payload_len = first.len().saturating_add(second.len());
    let (ip_len, tcp_len, mut sum) = match (header.src, header.dst) {
        (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
            let (ip, tcp) = split_buf::<{ ipv4::HEADER_LEN }>(&mut buf.bytes);
            let tcp_len = header.emit(tcp)?;
            let total_len = payload_len.saturating_add(ipv4::HEADER_LEN + tcp_len);
            let (src, dst) = (*src.ip(), *dst.ip());
            Ipv4Emit {
                src,
                dst,
                protocol: PROTOCOL_TCP,
                ttl: header.ttl,
                tos: header.tos,
                identification: header.identification,
                may_fragment: header.may_fragment,
                total_len: u16::try_from(total_len).map_err(|_| EmitError::TooLong)?,
            }
            .emit(ip);
            let pseudo = Accumulator::pseudo_v4(src, dst, PROTOCOL_TCP, total_len - ipv4::HEADER_LEN);
            (ipv4::HEADER_LEN, tcp_len, pseudo)
        }
        (SocketAddr::V6(src), SocketAddr::V6(dst)) => {
            let (ip, tcp) = split_buf::<{ ipv6::HEADER_LEN }>(&mut buf.bytes);
            let tcp_len = header.emit(tcp)?;
            let upper_len = payload_len.saturating_add(tcp_len);
            let (src, dst) = (*src.ip(), *dst.ip());
            Ipv6Emit {
                src,
                dst,
                protocol: PROTOCOL_TCP,
                hop_limit: header.ttl,
                traffic_class: header.tos,
                flow_label: header.flow_label,
                payload_len: u16::try_from(upper_len).map_err(|_| EmitError::TooLong)?,
            }
            .emit(ip);
            let pseudo = Accumulator::pseudo_v6(src, dst, PROTOCOL_TCP, upper_len);
            (ipv6::HEADER_LEN, tcp_len, pseudo)
        }
        _ => return Err(EmitError::MixedVersions),
    };
    let header_len = ip_len + tcp_len;
    let (field, checksum) = match mode {
        TxChecksumMode::Complete => {
            sum.add(buf.bytes.get(ip_len..header_len).unwrap_or_default());
            sum.add(first);
            sum.add(second);
            (sum.checksum(), TxChecksum::Complete)
        }
        TxChecksumMode::Partial => {
            (sum.sum(), TxChecksum::Partial { start: ip_len as u16, offset: CHECKSUM_OFFSET })
        }
        TxChecksumMode::Omit => (0, TxChecksum::Omitted),
    };
    set_checksum(&mut buf.bytes, ip_len, field);
    buf.len = header_len;
    Ok(Emitted { header_len, checksum })
}

/// Stores the checksum of the TCP header at `tcp_at`.
pub(super) fn set_checksum(bytes: &mut [u8; HeaderBuf::CAPACITY], tcp_at: usize, field: u16) {
    let at = tcp_at + usize::from(CHECKSUM_OFFSET);
    if let Some(out) = bytes.get_mut(at..at + 2) {
        out.copy_from_slice(&field.to_be_bytes());
    }
}

/// The parts of the buffer for the IP header and the TCP header.
fn split_buf<const IP: usize>(
    bytes: &mut [u8; HeaderBuf::CAPACITY],
) -> (&mut [u8; IP], &mut [u8; HEADER_LEN + MAX_OPTIONS_LEN]) {
    const { assert!(IP + HEADER_LEN + MAX_OPTIONS_LEN <= HeaderBuf::CAPACITY) };
    let (ip, rest) = bytes.split_at_mut(IP);
    let tcp = &mut rest[..HEADER_LEN + MAX_OPTIONS_LEN];
    match (ip.try_into(), tcp.try_into()) {
        (Ok(ip), Ok(tcp)) => (ip, tcp),
        _ => unreachable!("both were cut to their length"),
    }
}

/// For the options of an established connection.
impl From<Timestamps> for TcpOptions {
    fn from(timestamps: Timestamps) -> Self {
        Self { timestamps: Some(timestamps), ..Self::NONE }
    }
}
