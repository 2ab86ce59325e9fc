//! Checksums that a device computes, checks or has to be told about; packets that come in several
//! slices.

use crate::decoders;
use crate::strategies::{addresses, segment};
use ackline_tcp_core::wire::{
    HeaderBuf, RxChecksum, RxPacket, Transport, TxChecksum, TxChecksumMode, UdpHeader, WireError, checksum,
    complete_checksum, emit_udp, parse,
};
use core::num::NonZeroU16;
use proptest::collection::vec;
use proptest::prelude::*;

/// What virtio's NEEDS_CSUM asks a device to do, by pnet's checksum.
fn finish(packet: &mut [u8], start: usize, offset: usize) {
    // `skipword` is the place of a field to leave out; this one is not there.
    let sum = pnet_packet::util::checksum(&packet[start..], usize::MAX);
    packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
}

proptest! {
    #[test]
    fn a_device_can_finish_a_partial_checksum(segment in segment(2_000)) {
        let complete = segment.packet();
        let (mut partial, emitted) = segment.emit(TxChecksumMode::Partial);
        let TxChecksum::Partial { start, offset } = emitted.checksum else { panic!("{:?}", emitted.checksum) };
        prop_assert_eq!(usize::from(start), segment.ip_header_len());

        for checksum in [RxChecksum::Partial, RxChecksum::Trusted] {
            prop_assert!(parse(&RxPacket::new(&partial).with_checksum(checksum)).is_ok());
        }
        let at = usize::from(start + offset);
        prop_assume!(partial[at..at + 2] != complete[at..at + 2]);
        prop_assert_eq!(parse(&RxPacket::new(&partial)).map(|_| ()), Err(WireError::TcpChecksum));

        let mut ours = partial.clone();
        prop_assert!(complete_checksum(&mut ours));
        prop_assert_eq!(&ours, &complete);
        finish(&mut partial, start.into(), offset.into());
        prop_assert_eq!(&partial, &complete);
        prop_assert_eq!(decoders::smoltcp(&partial).payload, segment.payload);
    }

    #[test]
    fn an_omitted_checksum_is_zero_and_needs_trust(segment in segment(500)) {
        let (packet, emitted) = segment.emit(TxChecksumMode::Omit);
        let at = segment.ip_header_len() + 16;
        prop_assert_eq!((emitted.checksum, &packet[at..at + 2]), (TxChecksum::Omitted, &[0u8, 0][..]));
        prop_assert!(parse(&RxPacket::new(&packet).with_checksum(RxChecksum::Trusted)).is_ok());
        prop_assume!(segment.packet()[at..at + 2] != [0, 0]);
        prop_assert_eq!(parse(&RxPacket::new(&packet)).map(|_| ()), Err(WireError::TcpChecksum));
    }

    #[test]
    fn every_single_bit_that_a_checksum_covers_is_noticed(segment in segment(100), bit: prop::sample::Index) {
        let mut packet = segment.packet();
        let bit = bit.index(packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        let result = parse(&RxPacket::new(&packet)).map(|_| ());
        let covered = match (segment.ip_header_len(), bit / 8) {
            (20, _) => true,
            // Of the IPv6 header, the pseudo-header has the addresses, the length and the next
            // header.
            (_, 4..=6 | 8..) => true,
            _ => false,
        };
        match bit / 8 {
            0 if bit % 8 >= 4 => prop_assert!(result.is_err()),
            // Another next header makes another protocol of it, or an extension header.
            6 if !segment.header.src.is_ipv4() => prop_assert!(
                result.is_err() || !matches!(parse(&RxPacket::new(&packet)).unwrap().transport, Transport::Tcp(_))
            ),
            _ => prop_assert_eq!(result.is_err(), covered, "{:?}", result),
        }
        if segment.header.src.is_ipv4() && bit < 160 {
            let trusted = RxPacket::new(&packet).with_checksum(RxChecksum::Trusted);
            prop_assert!(parse(&trusted).is_err(), "no device is trusted with the IPv4 header");
        }
    }

    #[test]
    fn slices_make_no_difference_where_the_headers_are_whole(
        segment in segment(3_000),
        cuts: (prop::sample::Index, prop::sample::Index),
        size in 1u16..2_000,
    ) {
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let (first, second) = (cuts.0.index(packet.len() + 1), cuts.1.index(packet.len() + 1));
        let (first, second) = (first.min(second), first.max(second));
        let slices = RxPacket::new(&packet[..first]).with_more([&packet[first..second], &packet[second..]]);
        prop_assert_eq!(slices.len(), packet.len());
        let slices = slices.with_segment_size(NonZeroU16::new(size));
        match parse(&slices) {
            Ok(datagram) => {
                prop_assert!(first >= header_len);
                prop_assert_eq!(datagram.ip, parse(&RxPacket::new(&packet)).unwrap().ip);
                let Transport::Tcp(tcp) = datagram.transport else { panic!() };
                prop_assert!(tcp.payload.iter().eq(segment.payload.iter().copied()));
                let segments = segment.payload.chunks(size.into()).count().max(1);
                prop_assert_eq!(tcp.wire_segments as usize, segments);
                let control = tcp.flags.bits() & 3;
                prop_assert_eq!(tcp.seg_len() as usize, segment.payload.len() + control.count_ones() as usize);
            }
            Err(error) => {
                prop_assert!(first < header_len);
                let in_ip = first < segment.ip_header_len();
                prop_assert_eq!(error, if in_ip { WireError::Truncated } else { WireError::TcpHeader });
            }
        }
    }

    #[test]
    fn sums_of_pieces_are_those_of_the_whole(pieces in vec(vec(any::<u8>(), 0..200), 0..8)) {
        let mut sum = checksum::Accumulator::new();
        for piece in &pieces {
            sum.add(piece);
        }
        let whole = pieces.concat();
        // pnet has another opinion about the sum of nothing.
        prop_assume!(!whole.is_empty());
        let reference = pnet_packet::util::checksum(&whole, usize::MAX);
        prop_assert_eq!(sum.checksum(), reference);
        prop_assert_eq!(checksum::checksum(&whole), reference);
    }

    #[test]
    fn changed_fields_change_the_checksum(
        words in vec(any::<u16>(), 2..40),
        at: prop::sample::Index,
        to: u32,
    ) {
        let octets = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        let reference = |words: &[u16]| pnet_packet::util::checksum(&octets(words), usize::MAX);
        let at = at.index(words.len() - 1);
        let mut changed = words.clone();
        changed[at] = (to >> 16) as u16;
        // Of all zeros the sum has two forms, and only the whole packet can tell which (RFC 1624,
        // section 3).
        prop_assume!(changed.iter().any(|word| *word != 0));
        prop_assert_eq!(checksum::update(reference(&words), words[at], changed[at]), reference(&changed));
        let from = u32::from(words[at]) << 16 | u32::from(words[at + 1]);
        changed[at + 1] = to as u16;
        prop_assume!(changed.iter().any(|word| *word != 0));
        prop_assert_eq!(checksum::update_u32(reference(&words), from, to), reference(&changed));
    }

    #[test]
    fn partial_checksums_of_datagrams_are_completed(ends in addresses(), data in vec(any::<u8>(), 0..300)) {
        let header = UdpHeader { src: ends.0, dst: ends.1, ttl: 64 };
        let emit = |mode| {
            let mut buf = HeaderBuf::new();
            emit_udp(&header, [&data, &[]], mode, &mut buf).expect("a packet");
            [buf.as_slice(), &data].concat()
        };
        let mut packet = emit(TxChecksumMode::Partial);
        prop_assert!(complete_checksum(&mut packet));
        prop_assert_eq!(&packet, &emit(TxChecksumMode::Complete));
        // Another protocol, and headers that end too soon.
        let at = if ends.0.is_ipv4() { 9 } else { 6 };
        let mut other = packet.clone();
        other[at] = 132;
        prop_assert!(!complete_checksum(&mut other));
        let end = packet.len() - data.len() - 2;
        prop_assert!(!complete_checksum(&mut packet[..end]));
    }
}
