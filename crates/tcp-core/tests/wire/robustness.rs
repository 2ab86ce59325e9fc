//! Packets that nobody sends by accident: cut, damaged, or made of noise.

use crate::decoders;
use crate::strategies::{options, segment};
use ackline_tcp_core::wire::{RxChecksum, RxPacket, Transport, WireError, parse};
use core::num::NonZeroU16;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Reads everything that a parsed packet offers, and checks that its parts are all of it.
fn read(packet: &RxPacket<'_>) -> Result<(), WireError> {
    let datagram = parse(packet)?;
    let ip = datagram.ip;
    assert!(ip.total_len as usize <= packet.len() && u32::from(ip.header_len) <= ip.total_len);
    assert_eq!(ip.src.is_ipv4(), ip.dst.is_ipv4());
    if let Transport::Tcp(tcp) = datagram.transport {
        let header_len = usize::from(ip.header_len) + 20 + tcp.raw_options.len();
        assert_eq!(header_len + tcp.payload.len(), ip.total_len as usize);
        assert_eq!(tcp.payload.iter().count(), tcp.payload.len());
        assert!(tcp.option_iter().count() <= tcp.raw_options.len());
        assert!(tcp.wire_segments >= 1);
        let mut copy = vec![0; tcp.payload.len() + 1];
        assert_eq!(tcp.payload.copy_to(&mut copy), tcp.payload.len());
    }
    let _ = format!("{datagram:?}");
    Ok(())
}

/// Puts the right checksum into the IPv4 header, so that what lies behind is looked at.
fn mend_ipv4(packet: &mut [u8]) {
    if packet.first().is_some_and(|octet| octet >> 4 == 4) {
        let header_len = usize::from(packet[0] & 15) * 4;
        if header_len >= 20 && packet.len() >= header_len {
            packet[10..12].fill(0);
            let sum = pnet_packet::util::checksum(&packet[..header_len], usize::MAX);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

fn checksum() -> impl Strategy<Value = RxChecksum> {
    prop_oneof![Just(RxChecksum::Verify), Just(RxChecksum::Trusted), Just(RxChecksum::Partial)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn noise_is_survived(
        octets in vec(any::<u8>(), 0..200),
        version in prop_oneof![Just(None), (0u8..16).prop_map(Some)],
        cuts: (prop::sample::Index, prop::sample::Index),
        checksum in checksum(),
        size: u16,
        mend: bool,
    ) {
        let mut octets = octets;
        if let (Some(version), Some(first)) = (version, octets.first_mut()) {
            *first = *first & 15 | version << 4;
        }
        if mend {
            mend_ipv4(&mut octets);
        }
        let (a, b) = (cuts.0.index(octets.len() + 1), cuts.1.index(octets.len() + 1));
        let (a, b) = (a.min(b), a.max(b));
        let packet = RxPacket::new(&octets[..a]).with_more([&octets[a..b], &octets[b..]]);
        let _ = read(&packet.with_checksum(checksum).with_segment_size(NonZeroU16::new(size)));
        let _ = read(&RxPacket::new(&octets).with_checksum(checksum));
    }

    #[test]
    fn damage_is_survived_and_read_as_others_read_it(
        segment in segment(100),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_headers: bool,
    ) {
        let mut packet = segment.packet();
        let headers = packet.len() - segment.payload.len();
        for (at, octet) in damage {
            let at = at.index(if in_headers { headers } else { packet.len() });
            packet[at] = octet;
        }
        mend_ipv4(&mut packet);
        let trusted = RxPacket::new(&packet).with_checksum(RxChecksum::Trusted);
        let ours = read(&trusted);
        let theirs = decoders::etherparse_unverified(&packet);
        match (ours, theirs) {
            (Ok(()), Some((theirs, intact))) => {
                if let Transport::Tcp(tcp) = parse(&trusted).unwrap().transport {
                    prop_assert_eq!((tcp.seq.0, tcp.flags.bits()), (theirs.seq, theirs.flags));
                    prop_assert_eq!(tcp.raw_options, &theirs.options[..]);
                    prop_assert!(tcp.payload.iter().eq(theirs.payload.iter().copied()));
                    prop_assert_eq!(read(&RxPacket::new(&packet)).is_ok(), intact);
                }
            }
            // etherparse skips authentication headers, does not look at options, and takes an IPv6
            // payload length of zero for "all".
            (Ok(()), None) => prop_assert!(!matches!(parse(&trusted).unwrap().transport, Transport::Tcp(_))),
            (Err(error), Some(_)) => prop_assert!(
                matches!(
                    error,
                    WireError::UnrecognizedOption
                        | WireError::SegmentsLeft
                        | WireError::Jumbogram
                        | WireError::ExtensionHeaders
                        | WireError::BadHeaderLength
                ) || (matches!(error, WireError::Truncated | WireError::TcpHeader) && packet[4..6] == [0, 0]),
                "etherparse finds TCP, but: {}",
                error
            ),
            (Err(_), None) => {}
        }
    }
}

proptest! {
    #[test]
    fn every_truncation_is_refused(segment in segment(80), options in options()) {
        let mut segment = segment;
        segment.header.options = options;
        let packet = segment.packet();
        for len in 0..packet.len() {
            prop_assert_eq!(read(&RxPacket::new(&packet[..len])), Err(WireError::Truncated));
            let cut = RxPacket::new(&packet[..len]).with_checksum(RxChecksum::Partial);
            prop_assert_eq!(read(&cut), Err(WireError::Truncated));
        }
        prop_assert_eq!(read(&RxPacket::new(&packet)), Ok(()));
    }

    #[test]
    fn lengths_within_the_headers_are_refused(segment in segment(80)) {
        let packet = segment.packet();
        let ip_len = segment.ip_header_len();
        let headers = packet.len() - segment.payload.len();
        for total_len in 0..headers {
            let mut packet = packet.clone();
            let error = if ip_len == 20 {
                packet[2..4].copy_from_slice(&(total_len as u16).to_be_bytes());
                if total_len < 20 { WireError::BadHeaderLength } else { WireError::TcpHeader }
            } else if total_len < 40 {
                continue;
            } else {
                packet[4..6].copy_from_slice(&(total_len as u16 - 40).to_be_bytes());
                WireError::TcpHeader
            };
            mend_ipv4(&mut packet);
            prop_assert_eq!(read(&RxPacket::new(&packet)), Err(error), "total length {}", total_len);
        }
        for data_offset in 0..5u8 {
            let mut packet = packet.clone();
            packet[ip_len + 12] = packet[ip_len + 12] & 15 | data_offset << 4;
            let packet = RxPacket::new(&packet).with_checksum(RxChecksum::Trusted);
            prop_assert_eq!(read(&packet), Err(WireError::TcpHeader));
        }
        for ihl in (0..5u8).filter(|_| ip_len == 20) {
            let mut packet = packet.clone();
            packet[0] = 0x40 | ihl;
            prop_assert_eq!(read(&RxPacket::new(&packet)), Err(WireError::BadHeaderLength));
        }
    }
}

#[test]
fn reasons_have_counters_of_their_own() {
    let indices: BTreeSet<_> = WireError::ALL.iter().map(|error| error.index()).collect();
    assert_eq!(indices, (0..WireError::ALL.len()).collect());
    assert!(WireError::ALL.iter().enumerate().all(|(index, error)| error.index() == index));
    let texts: BTreeSet<_> = WireError::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), WireError::ALL.len());
}

#[test]
fn other_versions_are_refused() {
    for version in (0u8..16).filter(|version| ![4, 6].contains(version)) {
        assert_eq!(read(&RxPacket::new(&[version << 4; 60])), Err(WireError::BadVersion));
    }
    assert_eq!(read(&RxPacket::new(&[])), Err(WireError::Truncated));
}
