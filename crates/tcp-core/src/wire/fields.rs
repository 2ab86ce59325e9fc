//! Segments whose headers stay fields: for endpoints in one process, which need no octets between
//! them.
//!
//! A driver may take headers as [`TcpHeader`] and give them to another endpoint as if they had been
//! parsed. SYNs and packets without a connection stay octets. Tests compare the fields with what
//! the parser makes of the octets, and netsim's both ways on random networks.

use super::tcp::{OptionLayout, TcpHeader, TcpSegment};
use super::{Ecn, EmitError, IpInfo, IpVersion, Payload, TcpFlags, ipv4, ipv6, tcp};
use core::net::SocketAddr;
use core::num::NonZeroU16;

impl TcpHeader<'_> {
    /// Octets of both headers, IP and TCP, with the options in the standard layout.
    #[inline]
    #[must_use]
    pub const fn standard_len(&self) -> usize {
        let ip = match self.src {
            SocketAddr::V4(_) => ipv4::HEADER_LEN,
            SocketAddr::V6(_) => ipv6::HEADER_LEN,
        };
        ip + tcp::HEADER_LEN + self.options.encoded_len()
    }

    /// What [`parse`](super::parse) makes of the octets that [`emit_tcp`](super::emit_tcp) makes of
    /// this header and `payload`, without [`raw_options`](TcpSegment::raw_options). `None` if the
    /// options are not in the standard layout, the addresses are of two versions, or the packet
    /// would be too long.
    #[inline]
    #[must_use]
    pub fn as_received<'a>(&self, payload: Payload<'a>) -> Option<(IpInfo, TcpSegment<'a>)> {
        let total_len = self.standard_len() + payload.len();
        let (version, header_len, limit, flow_label) = match (self.src, self.dst) {
            (SocketAddr::V4(_), SocketAddr::V4(_)) => (IpVersion::V4, ipv4::HEADER_LEN, 0, 0),
            (SocketAddr::V6(_), SocketAddr::V6(_)) => {
                (IpVersion::V6, ipv6::HEADER_LEN, ipv6::HEADER_LEN, self.flow_label & 0x000f_ffff)
            }
            _ => return None,
        };
        if self.layout != OptionLayout::Standard || total_len > limit + usize::from(u16::MAX) {
            return None;
        }
        let ip = IpInfo {
            src: self.src.ip(),
            dst: self.dst.ip(),
            version,
            ttl: self.ttl,
            dscp: self.tos >> 2,
            ecn: Ecn::from_bits(self.tos),
            flow_label,
            header_len: header_len as u16,
            total_len: total_len as u32,
        };
        let segment = TcpSegment {
            src_port: self.src.port(),
            dst_port: self.dst.port(),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: self.urgent,
            options: self.options.as_written(),
            options_malformed: false,
            raw_options: &[],
            payload,
            wire_segments: 1,
        };
        Some((ip, segment))
    }
}

/// The segments into which [`split_fields`] divides one, in order.
#[derive(Debug)]
pub(crate) struct FieldSegments<'f, 'h, 'a> {
    /// The header of the latest segment, or of the whole before the first.
    header: &'f mut TcpHeader<'h>,
    /// The flags of the whole.
    flags: TcpFlags,
    payload: Payload<'a>,
    segment_size: usize,
    /// Octets of data of the latest segment; `None` before the first.
    latest: Option<u32>,
    done: bool,
}

/// Divides a segment as [`gso::split`](super::gso::split) does its packet. Its header becomes that
/// of each segment in turn.
///
/// # Errors
/// [`EmitError::NotSplittable`] if there would be several segments with SYN, RST or URG.
pub(crate) fn split_fields<'f, 'h, 'a>(
    header: &'f mut TcpHeader<'h>,
    payload: Payload<'a>,
    segment_size: NonZeroU16,
) -> Result<FieldSegments<'f, 'h, 'a>, EmitError> {
    let segment_size = usize::from(segment_size.get());
    let indivisible = TcpFlags::SYN.union(TcpFlags::RST).union(TcpFlags::URG);
    if payload.len() > segment_size && header.flags.intersects(indivisible) {
        return Err(EmitError::NotSplittable);
    }
    let flags = header.flags;
    Ok(FieldSegments { header, flags, payload, segment_size, latest: None, done: false })
}

impl<'h, 'a> FieldSegments<'_, 'h, 'a> {
    /// The header and payload of the next segment.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(&TcpHeader<'h>, Payload<'a>)> {
        if self.done {
            return None;
        }
        let data = self.payload.split_to(self.segment_size);
        self.done = self.payload.is_empty();
        let mut flags = self.flags;
        if !self.done {
            flags = flags.difference(TcpFlags::FIN | TcpFlags::PSH);
        }
        if let Some(before) = self.latest.replace(data.len() as u32) {
            flags = flags.difference(TcpFlags::CWR);
            self.header.seq += before;
            self.header.identification = self.header.identification.wrapping_add(1);
        }
        self.header.flags = flags;
        Some((self.header, data))
    }
}

#[cfg(test)]
mod tests {
    use super::super::gso;
    use super::super::{HeaderBuf, RxChecksum, RxPacket, SackBlocks, TcpOptions, Timestamps, Transport};
    use super::super::{TxChecksumMode, emit_tcp, parse};
    use super::*;
    use crate::SeqNum;
    use core::net::IpAddr;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn header() -> impl Strategy<Value = TcpHeader<'static>> {
        let addresses = prop_oneof![
            any::<([u8; 4], [u8; 4])>().prop_map(|(src, dst)| (IpAddr::from(src), IpAddr::from(dst))),
            any::<([u8; 16], [u8; 16])>().prop_map(|(src, dst)| (IpAddr::from(src), IpAddr::from(dst))),
        ];
        let options = (
            any::<(Option<u16>, Option<u8>, bool, Option<(u32, u32)>)>(),
            prop::collection::vec(any::<(u32, u32)>(), 0..5),
        );
        (addresses, options, any::<(u16, u16, u8, u8, u16, bool, u32)>(), any::<(u32, u32, u16, u16, u16)>())
            .prop_map(|((src, dst), ((mss, window_scale, sack_permitted, stamps), sack), ip, tcp)| {
                let mut header = TcpHeader::new((src, ip.0).into(), (dst, ip.1).into());
                (header.ttl, header.tos, header.identification, header.may_fragment) =
                    (ip.2, ip.3, ip.4, ip.5);
                header.flow_label = ip.6;
                (header.seq, header.ack, header.window) = (SeqNum(tcp.0), SeqNum(tcp.1), tcp.3);
                (header.flags, header.urgent) = (TcpFlags::from_bits(tcp.2), tcp.4);
                let timestamps = stamps.map(|(val, ecr)| Timestamps { val, ecr });
                let sack: SackBlocks =
                    sack.into_iter().map(|(from, to)| (SeqNum(from), SeqNum(to))).collect();
                header.options =
                    TcpOptions { mss, window_scale, sack_permitted, timestamps, accecn: None, sack };
                header
            })
    }

    proptest! {
        #[test]
        fn fields_say_what_octets_would(header in header(), data in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut buf = HeaderBuf::new();
            let emitted = emit_tcp(&header, [&data, &[]], TxChecksumMode::Omit, &mut buf).unwrap();
            prop_assert_eq!(header.standard_len(), emitted.header_len);
            let packet = RxPacket::new(buf.as_slice()).with_more([&data, &[]]).with_checksum(RxChecksum::Trusted);
            let parsed = parse(&packet).unwrap();
            let Transport::Tcp(mut segment) = parsed.transport else { panic!("{parsed:?}") };
            let (ip, fields) = header.as_received(Payload::from(data.as_slice())).unwrap();
            prop_assert_eq!(parsed.ip, ip);
            prop_assert_eq!(segment.payload.iter().collect::<Vec<_>>(), data.clone());
            (segment.raw_options, segment.payload) = (&[], fields.payload);
            prop_assert_eq!(std::format!("{segment:?}"), std::format!("{fields:?}"));
        }

        #[test]
        fn fields_are_divided_as_octets_are(
            header in header(),
            data in prop::collection::vec(any::<u8>(), 0..3_000),
            cut in 0usize..3_000,
            size in 1u16..1_500,
        ) {
            let (first, second) = data.split_at(cut.min(data.len()));
            let mut buf = HeaderBuf::new();
            emit_tcp(&header, [first, second], TxChecksumMode::Omit, &mut buf).unwrap();
            let size = NonZeroU16::new(size).unwrap();
            let payload = Payload::from([first, second]);
            let octets = gso::split(buf.as_slice(), payload, size, TxChecksumMode::Complete);
            let mut whole = header;
            let fields = split_fields(&mut whole, payload, size);
            prop_assert_eq!(octets.as_ref().err(), fields.as_ref().err());
            if let (Ok(mut octets), Ok(mut fields)) = (octets, fields) {
                let (mut one, mut other) = (HeaderBuf::new(), HeaderBuf::new());
                while let Some((_, data)) = octets.next_into(&mut one) {
                    let (header, payload) = fields.next().unwrap();
                    prop_assert_eq!(payload, data);
                    let [first, second, _] = payload.slices();
                    emit_tcp(header, [first, second], TxChecksumMode::Complete, &mut other).unwrap();
                    prop_assert_eq!(one.as_slice(), other.as_slice());
                }
                prop_assert!(fields.next().is_none());
            }
        }
    }
}
