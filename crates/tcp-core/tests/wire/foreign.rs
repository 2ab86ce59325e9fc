//! What others emit is what is parsed.

use crate::decoders;
use crate::strategies::{addresses, payload};
use ackline_tcp_core::wire::{Ecn, RxPacket, TcpOptions, Timestamps, Transport, WireError, parse};
use core::net::SocketAddr;
use etherparse::{
    IpDscp, IpEcn, IpFragOffset, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions,
    Ipv6FlowLabel, Ipv6Header, PacketBuilder, TcpHeader, TcpOptionElement,
};
use proptest::collection::vec;
use proptest::prelude::*;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, IpRepr, Ipv4Repr, Ipv6Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

/// A packet by etherparse, with any options in the IPv4 header.
fn etherparse_packet(
    (src, dst): (SocketAddr, SocketAddr),
    (ttl, tos, identification, flow): (u8, u8, u16, u32),
    ip_options: &[u8],
    tcp: &TcpHeader,
    payload: &[u8],
) -> Vec<u8> {
    let ip = match (src, dst) {
        (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
            let header = Ipv4Header {
                dscp: IpDscp::try_new(tos >> 2).unwrap(),
                ecn: IpEcn::try_new(tos & 3).unwrap(),
                identification,
                dont_fragment: identification % 2 == 0,
                more_fragments: false,
                fragment_offset: IpFragOffset::ZERO,
                time_to_live: ttl,
                source: src.ip().octets(),
                destination: dst.ip().octets(),
                options: Ipv4Options::try_from(ip_options).unwrap(),
                ..Default::default()
            };
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        }
        (SocketAddr::V6(src), SocketAddr::V6(dst)) => {
            let header = Ipv6Header {
                traffic_class: tos,
                flow_label: Ipv6FlowLabel::try_new(flow & 0xf_ffff).unwrap(),
                hop_limit: ttl,
                source: src.ip().octets(),
                destination: dst.ip().octets(),
                ..Default::default()
            };
            IpHeaders::Ipv6(header, Ipv6Extensions::default())
        }
        _ => unreachable!("one version"),
    };
    let mut tcp = tcp.clone();
    (tcp.source_port, tcp.destination_port) = (src.port(), dst.port());
    let mut packet = Vec::new();
    PacketBuilder::ip(ip).tcp_header(tcp).write(&mut packet, payload).expect("a packet");
    packet
}

fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    let bits = any::<[bool; 9]>();
    let options = vec(any::<u8>(), 0..=10).prop_flat_map(|words| vec(any::<u8>(), 4 * words.len()));
    (any::<(u32, u32, u16, u16)>(), bits, options).prop_map(
        |((sequence_number, acknowledgment_number, window_size, urgent_pointer), bits, options)| {
            let [ns, fin, syn, rst, psh, ack, urg, ece, cwr] = bits;
            let mut header = TcpHeader {
                sequence_number,
                acknowledgment_number,
                window_size,
                urgent_pointer,
                ns,
                fin,
                syn,
                rst,
                psh,
                ack,
                urg,
                ece,
                cwr,
                ..Default::default()
            };
            header.set_options_raw(&options).expect("at most 40 octets");
            header
        },
    )
}

/// Padding to 32 bits: any content is allowed, only IHL counts for a host (RFC 1122, section
/// 3.2.1.8).
fn ip_options() -> impl Strategy<Value = Vec<u8>> {
    (0usize..=10).prop_flat_map(|words| vec(any::<u8>(), 4 * words))
}

proptest! {
    #[test]
    fn packets_of_etherparse(
        ends in addresses(),
        ip: (u8, u8, u16, u32),
        ip_options in ip_options(),
        tcp in tcp_header(),
        payload in payload(2_000),
        padding in vec(any::<u8>(), 0..50),
    ) {
        let packet = etherparse_packet(ends, ip, &ip_options, &tcp, &payload);
        let ours = decoders::ours(&packet);
        prop_assert_eq!(&ours, &decoders::etherparse(&packet));
        prop_assert_eq!((ours.src, ours.dst, ours.ttl, ours.tos), (ends.0, ends.1, ip.0, ip.1));
        prop_assert_eq!((ours.seq, ours.ack), (tcp.sequence_number, tcp.acknowledgment_number));
        prop_assert_eq!(&ours.payload, &payload);
        // Ethernet pads short frames: what follows the total length is not the packet's.
        let padded = [packet, padding].concat();
        prop_assert_eq!(ours, decoders::ours(&padded));
    }

    #[test]
    fn options_of_etherparse(
        ends in addresses(),
        mss: u16,
        shift: u8,
        timestamps: (u32, u32),
        blocks in vec(any::<(u32, u32)>(), 1..=4),
        with in any::<[bool; 4]>(),
    ) {
        let [with_mss, with_scale, permitted, with_timestamps] = with;
        let mut options = Vec::new();
        let mut expected = TcpOptions::NONE;
        if with_mss {
            options.push(TcpOptionElement::MaximumSegmentSize(mss));
            expected.mss = Some(mss);
        }
        if with_scale {
            options.push(TcpOptionElement::WindowScale(shift));
            expected.window_scale = Some(shift);
        }
        if permitted {
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
            expected.sack_permitted = true;
        }
        if with_timestamps {
            options.push(TcpOptionElement::Timestamp(timestamps.0, timestamps.1));
            expected.timestamps = Some(Timestamps { val: timestamps.0, ecr: timestamps.1 });
        }
        let used = options.len() * 10;
        if used + 2 + 8 * blocks.len() <= 40 {
            let more = core::array::from_fn(|index| blocks.get(index + 1).copied());
            options.push(TcpOptionElement::SelectiveAcknowledgement(blocks[0], more));
            expected.sack = blocks.iter().map(|(start, end)| {
                (ackline_tcp_core::SeqNum(*start), ackline_tcp_core::SeqNum(*end))
            }).collect();
        }
        let mut tcp = TcpHeader::default();
        prop_assume!(tcp.set_options(&options).is_ok());
        let packet = etherparse_packet(ends, (64, 0, 0, 0), &[], &tcp, b"");
        let Transport::Tcp(segment) = parse(&RxPacket::new(&packet)).unwrap().transport else { panic!() };
        prop_assert_eq!((segment.options, segment.options_malformed), (expected, false));
    }

    #[test]
    fn packets_of_smoltcp(
        ends in addresses(),
        numbers: (u32, Option<u32>, u16),
        syn: bool,
        with: (Option<u8>, Option<u16>, bool, Option<(u32, u32)>),
        blocks in vec(any::<(u32, u32)>(), 0..=3),
        payload in payload(1_500),
        hop_limit: u8,
    ) {
        let (seq, ack, window_len) = numbers;
        let (window_scale, max_seg_size, sack_permitted, timestamp) = with;
        let repr = TcpRepr {
            src_port: ends.0.port(),
            dst_port: ends.1.port(),
            control: if syn { TcpControl::Syn } else { TcpControl::Psh },
            seq_number: TcpSeqNumber(seq as i32),
            ack_number: ack.map(|ack| TcpSeqNumber(ack as i32)),
            window_len,
            // smoltcp sends the SYN's options on a SYN, and SACK blocks with an ACK.
            window_scale: window_scale.filter(|_| syn),
            max_seg_size: max_seg_size.filter(|_| syn),
            sack_permitted: sack_permitted && syn,
            sack_ranges: core::array::from_fn(|index| blocks.get(index).copied().filter(|_| !syn && ack.is_some())),
            timestamp: timestamp.map(|(val, ecr)| smoltcp::wire::TcpTimestampRepr::new(val, ecr)),
            payload: &payload,
        };
        let payload_len = repr.buffer_len();
        let next_header = smoltcp::wire::IpProtocol::Tcp;
        let (ip, src, dst) = match ends {
            (SocketAddr::V4(src), SocketAddr::V4(dst)) => {
                let (src_addr, dst_addr) = (*src.ip(), *dst.ip());
                let ip = Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit };
                (IpRepr::Ipv4(ip), IpAddress::Ipv4(src_addr), IpAddress::Ipv4(dst_addr))
            }
            (SocketAddr::V6(src), SocketAddr::V6(dst)) => {
                let (src_addr, dst_addr) = (*src.ip(), *dst.ip());
                let ip = Ipv6Repr { src_addr, dst_addr, next_header, payload_len, hop_limit };
                (IpRepr::Ipv6(ip), IpAddress::Ipv6(src_addr), IpAddress::Ipv6(dst_addr))
            }
            _ => unreachable!("one version"),
        };
        let capabilities = ChecksumCapabilities::default();
        let mut packet = vec![0; ip.buffer_len()];
        ip.emit(&mut packet[..], &capabilities);
        let at = ip.header_len();
        repr.emit(&mut TcpPacket::new_unchecked(&mut packet[at..]), &src, &dst, &capabilities);

        let ours = decoders::ours(&packet);
        prop_assert_eq!(&ours, &decoders::smoltcp(&packet));
        let Transport::Tcp(segment) = parse(&RxPacket::new(&packet)).unwrap().transport else { panic!() };
        let options = segment.options;
        prop_assert_eq!(options.mss, repr.max_seg_size);
        prop_assert_eq!(options.window_scale, repr.window_scale);
        prop_assert_eq!(options.sack_permitted, repr.sack_permitted);
        prop_assert_eq!(options.timestamps.map(|it| (it.val, it.ecr)), timestamp);
        let ranges: Vec<_> = options.sack.iter().map(|(start, end)| (start.0, end.0)).collect();
        prop_assert_eq!(ranges, repr.sack_ranges.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn fragments_of_ipv4_are_refused(payload in payload(100), offset in 0u16..=0x1fff, more: bool) {
        let header = Ipv4Header {
            more_fragments: more,
            fragment_offset: IpFragOffset::try_new(offset).unwrap(),
            time_to_live: 9,
            ..Default::default()
        };
        let mut packet = Vec::new();
        let ip = IpHeaders::Ipv4(header, Ipv4Extensions::default());
        PacketBuilder::ip(ip).tcp_header(TcpHeader::default()).write(&mut packet, &payload).expect("a packet");
        let result = parse(&RxPacket::new(&packet)).map(|_| ());
        prop_assert_eq!(result, if more || offset > 0 { Err(WireError::Fragment) } else { Ok(()) });
    }
}

#[test]
fn ecn_and_dscp_are_told_apart() {
    let ends = ("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
    for (tos, dscp, ecn) in
        [(0x00, 0, Ecn::NotEct), (0xb9, 46, Ecn::Ect1), (0x02, 0, Ecn::Ect0), (0xff, 63, Ecn::Ce)]
    {
        let packet = etherparse_packet(ends, (64, tos, 0, 0), &[], &TcpHeader::default(), &[]);
        let ip = parse(&RxPacket::new(&packet)).unwrap().ip;
        assert_eq!((ip.dscp, ip.ecn), (dscp, ecn));
    }
}

#[test]
fn literal_checksums() {
    // The example of RFC 1071, section 3: the sum is ddf2.
    let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(ackline_tcp_core::wire::checksum::checksum(&octets), !0xddf2);
    // An IPv4 header that is often printed; its checksum is b861.
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];
    assert_eq!(ackline_tcp_core::wire::checksum::checksum(&header), 0xb861);
}
