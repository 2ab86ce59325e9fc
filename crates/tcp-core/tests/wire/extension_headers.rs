//! IPv6 extension headers: skipped, or a reason to refuse the packet.

use crate::decoders;
use crate::strategies::{Segment, addresses_of, segment_between};
use ackline_tcp_core::wire::{
    HeaderBuf, MAX_EXTENSION_HEADERS, RxPacket, TcpFlags, TcpHeader, TcpOptions, Transport, TxChecksumMode,
    WireError, gso, parse,
};
use core::num::NonZeroU16;
use proptest::collection::vec;
use proptest::prelude::*;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// An extension header and what RFC 8200 says about it.
#[derive(Clone, Debug)]
struct Extension {
    protocol: u8,
    /// Everything; the first octet will be the next header's number.
    octets: Vec<u8>,
    refused: Option<WireError>,
}

/// Pads options with Pad1 or PadN to a whole number of eight octets.
fn with_options(protocol: u8, options: &[u8], refused: Option<WireError>) -> Extension {
    let mut octets = vec![0, 0];
    octets.extend(options);
    match 8 - octets.len() % 8 {
        8 => {}
        1 => octets.push(0),
        pad => {
            octets.extend([1, pad as u8 - 2]);
            octets.resize(octets.len() + pad - 2, 0);
        }
    }
    octets[1] = (octets.len() / 8 - 1) as u8;
    Extension { protocol, octets, refused }
}

/// Options that a node may ignore: their two highest bits are zero (RFC 8200, section 4.2).
fn harmless_options(protocol: u8) -> impl Strategy<Value = Extension> {
    let option = prop_oneof![
        Just(vec![0]),
        (1u8..0x40, vec(any::<u8>(), 0..20))
            .prop_map(|(kind, data)| { [&[kind, data.len() as u8], &data[..]].concat() })
    ];
    vec(option, 0..4).prop_map(move |options| with_options(protocol, &options.concat(), None))
}

fn routing() -> impl Strategy<Value = Extension> {
    let header = (any::<u8>(), prop_oneof![3 => Just(0u8), 1 => 1u8..4, 1 => any::<u8>()], 0usize..4);
    header.prop_flat_map(|(kind, segments_left, words)| {
        vec(any::<u8>(), 4 + 8 * words).prop_map(move |data| Extension {
            protocol: ROUTING,
            octets: [&[0, words as u8, kind, segments_left], &data[..]].concat(),
            refused: (segments_left > 0).then_some(WireError::SegmentsLeft),
        })
    })
}

fn fragment() -> impl Strategy<Value = Extension> {
    let header =
        (prop_oneof![3 => Just(0u16), 1 => 0u16..=0x1fff], prop_oneof![3 => Just(false), 1 => any::<bool>()]);
    (header, any::<(u8, u32, u8)>()).prop_map(|((offset, more), (reserved, id, bits))| {
        let field = offset << 3 | u16::from(bits & 3) << 1 | u16::from(more);
        Extension {
            protocol: FRAGMENT,
            octets: [&[0, reserved][..], &field.to_be_bytes(), &id.to_be_bytes()].concat(),
            refused: (offset > 0 || more).then_some(WireError::Fragment),
        }
    })
}

/// Extension headers in any order and number, hop-by-hop options anywhere.
fn chain() -> impl Strategy<Value = Vec<Extension>> {
    let any_place = prop_oneof![
        4 => harmless_options(DESTINATION),
        2 => routing(),
        2 => fragment(),
        1 => harmless_options(HOP_BY_HOP),
    ];
    let first = proptest::option::of(harmless_options(HOP_BY_HOP));
    (first, vec(any_place, 0..MAX_EXTENSION_HEADERS + 2))
        .prop_map(|(first, rest)| first.into_iter().chain(rest).collect())
}

/// Puts extension headers in front of the TCP header.
fn insert(packet: &[u8], chain: &[Extension]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let tcp = packet.split_off(40);
    let mut next_at = 6;
    for extension in chain {
        packet[next_at] = extension.protocol;
        next_at = packet.len();
        packet.extend(&extension.octets);
    }
    packet[next_at] = 6;
    packet.extend(tcp);
    let payload_len = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
    packet
}

/// The first reason to refuse the packet.
fn expected(chain: &[Extension]) -> Result<(), WireError> {
    for (index, extension) in chain.iter().enumerate() {
        if index == MAX_EXTENSION_HEADERS || (index > 0 && extension.protocol == HOP_BY_HOP) {
            return Err(WireError::ExtensionHeaders);
        }
        extension.refused.map_or(Ok(()), Err)?;
    }
    Ok(())
}

fn v6_segment(max_payload: usize) -> impl Strategy<Value = Segment<'static>> {
    segment_between(addresses_of(true), max_payload)
}

proptest! {
    #[test]
    fn chains_are_skipped_or_refused(segment in v6_segment(200), chain in chain()) {
        let packet = insert(&segment.packet(), &chain);
        let result = parse(&RxPacket::new(&packet));
        prop_assert_eq!(result.map(|_| ()), expected(&chain));
        if let Ok(datagram) = result {
            let Transport::Tcp(tcp) = datagram.transport else { panic!() };
            prop_assert!(tcp.payload.iter().eq(segment.payload.iter().copied()));
            let skipped: usize = chain.iter().map(|extension| extension.octets.len()).sum();
            prop_assert_eq!(usize::from(datagram.ip.header_len), 40 + skipped);
            // etherparse knows one order of extension headers; if it finds the segment, it is the
            // same.
            if let Some((theirs, intact)) = decoders::etherparse_unverified(&packet) {
                prop_assert!(intact);
                prop_assert_eq!(theirs, decoders::ours(&packet));
            }
        }
    }

    #[test]
    fn the_usual_order_is_read_as_etherparse_reads_it(
        segment in v6_segment(200),
        extensions in (harmless_options(HOP_BY_HOP), harmless_options(DESTINATION), routing(), fragment()),
        with: [bool; 4],
    ) {
        let (hop_by_hop, destination, routing, fragment) = extensions;
        let all = [hop_by_hop, destination, routing, fragment].into_iter().zip(with);
        let chain: Vec<_> = all.filter(|(it, with)| *with && it.refused.is_none()).map(|(it, _)| it).collect();
        let packet = insert(&segment.packet(), &chain);
        prop_assert_eq!(decoders::ours(&packet), decoders::etherparse(&packet));
    }

    #[test]
    fn an_end_anywhere_is_noticed(segment in v6_segment(60), chain in chain()) {
        let packet = insert(&segment.packet(), &chain);
        let headers = packet.len() - segment.payload.len();
        for len in 0..packet.len() {
            prop_assert!(parse(&RxPacket::new(&packet[..len])).is_err());
            // The same, if the length says so too; after the headers that is another packet.
            if (40..headers).contains(&len) {
                let mut short = packet[..len].to_vec();
                short[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
                prop_assert!(parse(&RxPacket::new(&short)).is_err());
            }
        }
    }

    #[test]
    fn options_that_forbid_processing_are_obeyed(
        segment in v6_segment(20),
        protocol in prop_oneof![Just(HOP_BY_HOP), Just(DESTINATION)],
        before in vec(Just(0u8), 0..3),
        kind in 0x40u8..=0xff,
        data in vec(any::<u8>(), 0..20),
    ) {
        let option = [&before[..], &[kind, data.len() as u8], &data].concat();
        let packet = insert(&segment.packet(), &[with_options(protocol, &option, None)]);
        let error = if kind == 0xc2 { WireError::Jumbogram } else { WireError::UnrecognizedOption };
        prop_assert_eq!(parse(&RxPacket::new(&packet)).unwrap_err(), error);
    }

    #[test]
    fn split_packets_keep_their_extension_headers(segment in v6_segment(900), chain in chain()) {
        let (mut segment, mut chain) = (segment, chain);
        segment.header.flags = TcpFlags::ACK;
        segment.header.options = TcpOptions::NONE;
        // As many as fit the buffer of those that are no reason to refuse.
        let mut room = HeaderBuf::CAPACITY - 60;
        chain.retain(|extension| {
            let keep = extension.refused.is_none() && extension.protocol != HOP_BY_HOP && extension.octets.len() <= room;
            room -= if keep { extension.octets.len() } else { 0 };
            keep
        });
        let packet = insert(&segment.packet(), &chain);
        let header_len = packet.len() - segment.payload.len();
        let size = NonZeroU16::new(400).unwrap();
        let mode = TxChecksumMode::Complete;
        let mut segments = gso::split(&packet[..header_len], segment.payload[..].into(), size, mode).unwrap();
        let (mut buf, mut stream) = (HeaderBuf::new(), Vec::new());
        while let Some((_, data)) = segments.next_into(&mut buf) {
            let mut single = buf.as_slice().to_vec();
            single.extend(data.iter());
            stream.extend(decoders::ours(&single).payload);
            prop_assert_eq!(single.len(), header_len + data.len());
        }
        prop_assert_eq!(stream, segment.payload);
    }
}

#[test]
fn options_that_reach_beyond_their_header_are_refused() {
    let header = TcpHeader::new("[2001:db8::1]:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
    let packet = Segment { header, payload: vec![], cut: 0 }.packet();
    for options in [[5, 5, 0, 0, 0, 0], [1, 2, 0, 0, 5, 1], [0, 0, 0, 0, 0, 5], [1, 255, 0, 0, 0, 0]] {
        let octets = [&[0, 0], &options[..]].concat();
        let packet = insert(&packet, &[Extension { protocol: DESTINATION, octets, refused: None }]);
        assert_eq!(parse(&RxPacket::new(&packet)).unwrap_err(), WireError::BadHeaderLength, "{options:?}");
    }
}

#[test]
fn what_is_no_extension_header_is_another_protocol() {
    // Authentication header, ESP, no next header, mobility.
    for protocol in [51, 50, 59, 135] {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, protocol, 64];
        packet.extend([0; 40]);
        let transport = parse(&RxPacket::new(&packet)).unwrap().transport;
        assert!(matches!(transport, Transport::Other { protocol: found, named_at: 6 } if found == protocol));
    }
}

#[test]
fn jumbograms_are_refused() {
    // RFC 2675, section 2: payload length zero, hop-by-hop options with the jumbo payload option.
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, HOP_BY_HOP, 64];
    packet.extend([0; 32]);
    packet.extend([6, 0, 0xc2, 4, 0, 1, 0, 0]);
    packet.resize(40 + 65_536, 0);
    assert_eq!(parse(&RxPacket::new(&packet)).unwrap_err(), WireError::Jumbogram);
}
