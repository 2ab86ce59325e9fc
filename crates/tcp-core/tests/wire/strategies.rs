//! Random segments.

use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    AccEcnOption, AccEcnOrder, Emitted, HeaderBuf, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
    TxChecksumMode, emit_tcp,
};
use core::net::{IpAddr, SocketAddr};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a packet is made from.
#[derive(Clone, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) header: TcpHeader<'a>,
    pub(crate) payload: Vec<u8>,
    /// Where the payload is cut in two.
    pub(crate) cut: usize,
}

impl Segment<'_> {
    /// The whole packet in one piece.
    pub(crate) fn emit(&self, mode: TxChecksumMode) -> (Vec<u8>, Emitted) {
        let mut buf = HeaderBuf::new();
        let (first, second) = self.payload.split_at(self.cut);
        let emitted = emit_tcp(&self.header, [first, second], mode, &mut buf).expect("a packet");
        assert_eq!(emitted.header_len, buf.len());
        ([buf.as_slice(), &self.payload].concat(), emitted)
    }

    /// The same with a complete checksum.
    pub(crate) fn packet(&self) -> Vec<u8> {
        self.emit(TxChecksumMode::Complete).0
    }

    pub(crate) fn ip_header_len(&self) -> usize {
        if self.header.src.is_ipv4() { 20 } else { 40 }
    }
}

/// Any segment with at most `max_payload` octets of data.
pub(crate) fn segment(max_payload: usize) -> impl Strategy<Value = Segment<'static>> {
    segment_between(addresses(), max_payload)
}

/// The same between these ends.
pub(crate) fn segment_between(
    ends: impl Strategy<Value = (SocketAddr, SocketAddr)>,
    max_payload: usize,
) -> impl Strategy<Value = Segment<'static>> {
    let header = (ends, any::<(u8, u8, u16, u32)>(), any::<(u32, u32, u16, u16)>(), flags(), options());
    let header = header.prop_map(|((src, dst), ip, tcp, flags, options)| {
        let mut header = TcpHeader::new(src, dst);
        (header.ttl, header.tos, header.identification, header.flow_label) = ip;
        (header.seq, header.ack, header.window, header.urgent) = (SeqNum(tcp.0), SeqNum(tcp.1), tcp.2, tcp.3);
        header.flags = flags;
        header.options = options;
        header
    });
    (header, payload(max_payload)).prop_flat_map(|(header, payload)| {
        (0..=payload.len()).prop_map(move |cut| Segment { header, payload: payload.clone(), cut })
    })
}

/// Empty, short, or up to the limit.
pub(crate) fn payload(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), vec(any::<u8>(), 0..=max.min(64)), vec(any::<u8>(), 0..=max)]
}

/// Two ends of one version of IP.
pub(crate) fn addresses() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    any::<bool>().prop_flat_map(addresses_of)
}

/// Two ends of IPv6 or IPv4.
pub(crate) fn addresses_of(v6: bool) -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    any::<([u8; 16], [u8; 16], u16, u16)>().prop_map(move |(src, dst, src_port, dst_port)| {
        let address = |octets: [u8; 16]| match v6 {
            true => IpAddr::from(octets),
            false => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
        };
        (SocketAddr::new(address(src), src_port), SocketAddr::new(address(dst), dst_port))
    })
}

/// Any set of the nine bits.
pub(crate) fn flags() -> impl Strategy<Value = TcpFlags> {
    (0u16..=0x1ff).prop_map(TcpFlags::from_bits)
}

/// Any options, also more than fit.
pub(crate) fn options() -> impl Strategy<Value = TcpOptions> {
    let timestamps = proptest::option::of(any::<(u32, u32)>());
    // On a SYN they fill the option area with the others.
    let counters = proptest::option::of((any::<bool>(), 0..=AccEcnOption::MAX, any::<[u64; 3]>()));
    (any::<(Option<u16>, Option<u8>, bool)>(), timestamps, counters, sack_blocks(0)).prop_map(
        |((mss, window_scale, sack_permitted), timestamps, counters, sack)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(val, ecr)| Timestamps { val, ecr }),
            accecn: counters.map(|(first, fields, [ect0, ce, ect1])| {
                let order = if first { AccEcnOrder::Ect0First } else { AccEcnOrder::Ect1First };
                AccEcnOption::new(order, fields, ect0, ce, ect1)
            }),
            sack,
        },
    )
}

/// From `least` to four blocks with any edges.
pub(crate) fn sack_blocks(least: usize) -> impl Strategy<Value = SackBlocks> {
    let blocks = vec(any::<(u32, u32)>(), least..=SackBlocks::MAX);
    blocks.prop_map(|blocks| blocks.iter().map(|(start, end)| (SeqNum(*start), SeqNum(*end))).collect())
}
