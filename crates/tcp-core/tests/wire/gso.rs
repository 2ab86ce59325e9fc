//! Super-packets: splitting one gives what emitting each segment would have given.

use crate::decoders;
use crate::strategies::{Segment, segment};
use ackline_tcp_core::wire::{
    EmitError, HeaderBuf, Payload, RxChecksum, RxPacket, TcpFlags, TcpHeader, Transport, TxChecksum,
    TxChecksumMode, WireError, gso, parse,
};
use core::num::NonZeroU16;
use proptest::prelude::*;

const NOT_SPLITTABLE: TcpFlags = TcpFlags::SYN.union(TcpFlags::RST).union(TcpFlags::URG);

/// The packets of a super-packet, each in one piece.
fn split(
    packet: &[u8],
    header_len: usize,
    size: u16,
    mode: TxChecksumMode,
) -> Result<Vec<Vec<u8>>, EmitError> {
    let (headers, payload) = packet.split_at(header_len);
    let mut segments = gso::split(headers, payload.into(), NonZeroU16::new(size).unwrap(), mode)?;
    let (mut buf, mut packets) = (HeaderBuf::new(), Vec::new());
    let announced = segments.remaining();
    while let Some((emitted, data)) = segments.next_into(&mut buf) {
        assert_eq!(emitted.header_len, buf.len());
        let mut packet = buf.as_slice().to_vec();
        packet.extend(data.iter());
        packets.push(packet);
        assert_eq!(segments.remaining(), announced - packets.len());
    }
    assert!(buf.is_empty() && segments.next_into(&mut buf).is_none(), "it stays at its end");
    Ok(packets)
}

/// A segment that may be split.
fn splittable(max_payload: usize) -> impl Strategy<Value = Segment<'static>> {
    segment(max_payload).prop_map(|mut segment| {
        segment.header.flags = segment.header.flags.difference(NOT_SPLITTABLE);
        segment
    })
}

proptest! {
    #[test]
    fn splitting_is_emitting_one_by_one(segment in splittable(65_000), size in 1u16..9_000, partial: bool) {
        // A few segments of any size rather than many of one octet.
        let size = size.max((segment.payload.len() / 50) as u16 + 1);
        let mode = if partial { TxChecksumMode::Partial } else { TxChecksumMode::Complete };
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let packets = split(&packet, header_len, size, mode).expect("splittable");

        let mut chunks: Vec<_> = segment.payload.chunks(size.into()).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        prop_assert_eq!(packets.len(), chunks.len());
        let (mut sent, last) = (0, chunks.len() - 1);
        for (index, (packet, chunk)) in packets.iter().zip(chunks).enumerate() {
            let mut header = segment.header;
            header.seq += sent as u32;
            header.identification = header.identification.wrapping_add(index as u16);
            if index != last {
                header.flags = header.flags.difference(TcpFlags::FIN | TcpFlags::PSH);
            }
            if index != 0 {
                header.flags = header.flags.difference(TcpFlags::CWR);
            }
            let single = Segment { header, payload: chunk.to_vec(), cut: 0 };
            prop_assert_eq!(packet, &single.emit(mode).0);
            sent += chunk.len();
        }
    }

    #[test]
    fn a_received_packet_is_split_by_its_own_headers(
        segment in splittable(20_000),
        size in 200u16..3_000,
        padding in 0usize..20,
        cut: prop::sample::Index,
    ) {
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let expected = split(&packet, header_len, size, TxChecksumMode::Complete).expect("splittable");
        let padded = [&packet[..], &vec![7; padding]].concat();
        let (head, more) = padded.split_at(header_len + cut.index(padded.len() - header_len + 1));
        let received = RxPacket::new(head).with_more([more, &[]]).with_segment_size(NonZeroU16::new(size));
        let mut segments = gso::split_received(&received, TxChecksumMode::Complete).expect("splittable");
        let (mut buf, mut packets) = (HeaderBuf::new(), Vec::new());
        while let Some((_, data)) = segments.next_into(&mut buf) {
            packets.push([buf.as_slice().to_vec(), data.iter().collect()].concat());
        }
        prop_assert_eq!(packets, expected);
    }

    #[test]
    fn what_is_cut_off_in_its_headers_is_not_split(segment in splittable(100), cut: prop::sample::Index) {
        let packet = segment.packet();
        let short = RxPacket::new(&packet[..cut.index(packet.len() - segment.payload.len())]);
        prop_assert!(gso::split_received(&short, TxChecksumMode::Complete).is_err());
    }

    #[test]
    fn others_read_every_packet(segment in splittable(20_000), size in 200u16..3_000) {
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let mut stream = Vec::new();
        for packet in split(&packet, header_len, size, TxChecksumMode::Complete).expect("splittable") {
            let decoded = decoders::smoltcp(&packet);
            prop_assert_eq!(decoded.seq, segment.header.seq.0.wrapping_add(stream.len() as u32));
            prop_assert_eq!(&decoded.options, &decoders::ours(&packet).options);
            stream.extend(decoded.payload);
        }
        prop_assert_eq!(stream, segment.payload);
    }

    #[test]
    fn stale_lengths_and_checksums_do_not_matter(segment in splittable(5_000), stale: [u8; 6]) {
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let fresh = split(&packet, header_len, 1_000, TxChecksumMode::Complete);
        let (mut changed, ip_len) = (packet, segment.ip_header_len());
        let length_at = if ip_len == 20 { 2 } else { 4 };
        changed[length_at..length_at + 2].copy_from_slice(&stale[..2]);
        changed[ip_len + 16..ip_len + 18].copy_from_slice(&stale[2..4]);
        if ip_len == 20 {
            changed[10..12].copy_from_slice(&stale[4..]);
        }
        prop_assert_eq!(split(&changed, header_len, 1_000, TxChecksumMode::Complete), fresh);
    }

    #[test]
    fn broken_headers_are_refused(segment in splittable(100), cut: prop::sample::Index, octet: (prop::sample::Index, u8)) {
        let packet = segment.packet();
        let header_len = packet.len() - segment.payload.len();
        let short = cut.index(header_len);
        let size = NonZeroU16::new(50).unwrap();
        let result = gso::split(&packet[..short], Payload::EMPTY, size, TxChecksumMode::Omit);
        prop_assert_eq!(result.map(|_| ()), Err(EmitError::BadHeaders));

        let mut changed = packet[..header_len].to_vec();
        changed[octet.0.index(header_len)] = octet.1;
        if let Ok(mut segments) = gso::split(&changed, segment.payload[..].into(), size, TxChecksumMode::Complete) {
            let mut buf = HeaderBuf::new();
            let mut sent = 0;
            while let Some((_, data)) = segments.next_into(&mut buf) {
                sent += data.len();
            }
            prop_assert_eq!(sent, segment.payload.len());
        }
    }
}

fn header(v6: bool) -> TcpHeader<'static> {
    let (src, dst) = if v6 { ("[2001:db8::1]:1", "[2001:db8::2]:2") } else { ("192.0.2.1:1", "192.0.2.2:2") };
    TcpHeader::new(src.parse().unwrap(), dst.parse().unwrap())
}

#[test]
fn syn_rst_and_urgent_data_are_not_split() {
    for flag in [TcpFlags::SYN, TcpFlags::RST, TcpFlags::URG] {
        let mut header = header(false);
        header.flags = TcpFlags::ACK | flag;
        let packet = Segment { header, payload: vec![1; 101], cut: 0 }.packet();
        assert_eq!(split(&packet, 40, 100, TxChecksumMode::Complete), Err(EmitError::NotSplittable));
        assert_eq!(split(&packet, 40, 101, TxChecksumMode::Complete), Ok(vec![packet.clone()]));
    }
}

#[test]
fn a_packet_of_more_than_64_kib_is_no_segment() {
    for (v6, header_len, longest) in [(false, 40, 65_495), (true, 60, 65_515)] {
        let packet = Segment { header: header(v6), payload: vec![], cut: 0 }.packet();
        let split = |size| {
            let payload = vec![0; 65_520];
            gso::split(&packet, payload[..].into(), NonZeroU16::new(size).unwrap(), TxChecksumMode::Omit)
                .map(|segments| segments.remaining())
        };
        assert_eq!(packet.len(), header_len);
        assert_eq!(split(longest), Ok(2));
        assert_eq!(split(longest + 1), Err(EmitError::TooLong));
    }
}

#[test]
fn a_super_packet_may_be_longer_than_ip_can_state() {
    // Only what leaves has to fit: the headers of the whole are a template.
    let packet = Segment { header: header(false), payload: vec![], cut: 0 }.packet();
    let payload = vec![3; 200_000];
    let size = NonZeroU16::new(1_448).unwrap();
    let mut segments =
        gso::split(&packet, payload[..].into(), size, TxChecksumMode::Partial).expect("splittable");
    let mut buf = HeaderBuf::new();
    let (mut count, mut octets) = (0, 0);
    while let Some((emitted, data)) = segments.next_into(&mut buf) {
        assert_eq!(emitted.checksum, TxChecksum::Partial { start: 20, offset: 16 });
        (count, octets) = (count + 1, octets + data.len());
    }
    assert_eq!((count, octets), (200_000_usize.div_ceil(1_448), 200_000));
}

#[test]
fn received_super_packets_count_their_segments() {
    let segment = Segment { header: header(true), payload: vec![9; 65_160], cut: 0 };
    let packet = segment.packet();
    let received = RxPacket::new(&packet).with_segment_size(NonZeroU16::new(1_448));
    let datagram = parse(&received).unwrap();
    let Transport::Tcp(tcp) = datagram.transport else { panic!() };
    assert_eq!((tcp.wire_segments, tcp.payload.len()), (45, 65_160));
    assert_eq!(datagram.ip.total_len, 65_220);
}

#[test]
fn super_packets_without_a_length_are_refused() {
    // What Linux calls BIG TCP: more than 64 KiB behind a length of zero. No device here is asked
    // for it.
    for (v6, length_at, error) in [(false, 2, WireError::BadHeaderLength), (true, 4, WireError::TcpHeader)] {
        let mut packet = Segment { header: header(v6), payload: vec![9; 1_000], cut: 0 }.packet();
        packet[length_at..length_at + 2].fill(0);
        if !v6 {
            packet[10..12].fill(0);
            let sum = pnet_packet::util::checksum(&packet[..20], usize::MAX);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet.resize(100_000, 9);
        let packet = RxPacket::new(&packet);
        let packet = packet.with_segment_size(NonZeroU16::new(1_448)).with_checksum(RxChecksum::Partial);
        assert_eq!(parse(&packet).unwrap_err(), error);
    }
}

#[test]
fn what_follows_the_stated_length_is_padding_also_in_a_super_packet() {
    let mut packet = Segment { header: header(false), payload: vec![9; 3_000], cut: 0 }.packet();
    packet.resize(90_000, 0xff);
    let received = RxPacket::new(&packet).with_segment_size(NonZeroU16::new(1_000));
    let Transport::Tcp(tcp) = parse(&received).unwrap().transport else { panic!() };
    assert_eq!((tcp.wire_segments, tcp.payload.len()), (3, 3_000));
}
