//! What is emitted is what others read.

use crate::decoders::{self, Decoded};
use crate::strategies::{Segment, segment};
use ackline_tcp_core::wire::{
    EmitError, HeaderBuf, OptionLayout, TcpFlags, TcpHeader, TcpOption, TxChecksumMode, emit_tcp,
};
use proptest::prelude::*;
use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

/// What `segment` must look like, options apart.
fn expected(segment: &Segment<'_>, options: Vec<u8>) -> Decoded {
    let header = &segment.header;
    Decoded {
        src: header.src,
        dst: header.dst,
        ttl: header.ttl,
        tos: header.tos,
        total_len: segment.ip_header_len() + 20 + options.len() + segment.payload.len(),
        seq: header.seq.0,
        ack: header.ack.0,
        flags: header.flags.bits(),
        window: header.window,
        urgent: header.urgent,
        options,
        payload: segment.payload.clone(),
    }
}

proptest! {
    #[test]
    fn all_decoders_read_what_was_written(segment in segment(3_000)) {
        let packet = segment.packet();
        let ours = decoders::ours(&packet);
        prop_assert_eq!(&ours, &expected(&segment, ours.options.clone()));
        prop_assert_eq!(&ours, &decoders::smoltcp(&packet));
        prop_assert_eq!(&ours, &decoders::etherparse(&packet));
        prop_assert_eq!(&ours, &decoders::pnet(&packet));
        prop_assert_eq!(ours.total_len, packet.len());
        prop_assert_eq!(ours.options.len(), segment.header.options.encoded_len());

        if segment.header.src.is_ipv4() {
            let ip = Ipv4Packet::new_checked(&packet[..]).expect("IPv4");
            prop_assert!(ip.dont_frag() && !ip.more_frags() && ip.frag_offset() == 0);
            prop_assert_eq!((ip.ident(), ip.header_len()), (segment.header.identification, 20));
        } else {
            let ip = Ipv6Packet::new_checked(&packet[..]).expect("IPv6");
            prop_assert_eq!(ip.flow_label(), segment.header.flow_label & 0xf_ffff);
        }
    }

    #[test]
    fn a_buffer_can_be_used_again(first in segment(200), second in segment(200)) {
        let mut buf = HeaderBuf::new();
        for segment in [&first, &second, &first] {
            emit_tcp(&segment.header, [&segment.payload, &[]], TxChecksumMode::Complete, &mut buf).expect("a packet");
            prop_assert_eq!([buf.as_slice(), &segment.payload].concat(), segment.packet());
        }
    }
}

#[test]
fn reserved_bits_are_never_sent() {
    let mut header = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
    header.flags = TcpFlags::from_bits(0xffff);
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [&[], &[]], TxChecksumMode::Complete, &mut buf).unwrap();
    assert_eq!(buf.as_slice()[32..34], [0x51, 0xff], "data offset 5, AE; the other eight");
}

#[test]
fn longest_packets_can_be_written_and_longer_ones_not() {
    let v4 = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
    let v6 = TcpHeader::new("[2001:db8::1]:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
    for (header, longest) in [(v4, 65_535 - 40), (v6, 65_535 - 20)] {
        let payload = vec![7; longest + 1];
        let segment = Segment { header, payload: payload[..longest].to_vec(), cut: 40_000 };
        let packet = segment.packet();
        assert_eq!(decoders::ours(&packet).payload.len(), longest);
        assert_eq!(decoders::smoltcp(&packet).payload.len(), longest);
        let mut buf = HeaderBuf::new();
        let too_long = emit_tcp(&header, [&payload, &[]], TxChecksumMode::Complete, &mut buf);
        assert_eq!(too_long, Err(EmitError::TooLong));
        let too_long = emit_tcp(&header, [&payload[..9], &payload[9..]], TxChecksumMode::Omit, &mut buf);
        assert_eq!(too_long, Err(EmitError::TooLong));
        assert!(buf.is_empty(), "nothing that could be sent by mistake");
    }
}

#[test]
fn mistakes_of_the_caller_are_errors_and_leave_no_headers() {
    let mut header = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
    let mut buf = HeaderBuf::new();
    let mut emit = |header: &TcpHeader<'_>| {
        let valid = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
        emit_tcp(&valid, [&[], &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        let result = emit_tcp(header, [&[], &[]], TxChecksumMode::Complete, &mut buf);
        assert!(buf.is_empty());
        result.unwrap_err()
    };
    assert_eq!(emit(&header), EmitError::MixedVersions);
    header.dst = "192.0.2.2:2".parse().unwrap();
    let options = [TcpOption::Nop; 41];
    header.layout = OptionLayout::Listed(&options);
    assert_eq!(emit(&header), EmitError::OptionsTooLong);
}
