//! The codec against literal packets.

use super::*;
use proptest::prelude::*;
use std::vec::Vec;

#[test]
fn an_emitted_syn_parses_back() {
    let mut header = TcpHeader::new("192.0.2.1:4660".parse().unwrap(), "198.51.100.7:80".parse().unwrap());
    header.flags = TcpFlags::SYN;
    header.options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 1, ecr: 0 }),
        accecn: None,
        sack: SackBlocks::EMPTY,
    };
    let mut buf = HeaderBuf::new();
    let emitted = emit_tcp(&header, [b"ab", b"c"], TxChecksumMode::Complete, &mut buf).unwrap();
    assert_eq!(emitted.header_len, 60);
    let mut bytes = buf.as_slice().to_vec();
    bytes.extend_from_slice(b"abc");
    let datagram = parse(&RxPacket::new(&bytes)).unwrap();
    let Transport::Tcp(segment) = datagram.transport else { panic!("not TCP") };
    assert_eq!(segment.options, header.options);
    assert_eq!(segment.payload.iter().collect::<Vec<_>>(), b"abc");
    assert_eq!(segment.seg_len(), 4);
}

proptest! {
    #[test]
    fn what_is_summed_while_it_is_copied_is_both(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
    ) {
        let (mut sum, mut copied) = (checksum::Accumulator::new(), checksum::Accumulator::new());
        for piece in &pieces {
            let mut to = std::vec![0; piece.len()];
            sum.add(piece);
            copied.add_copied(piece, &mut to);
            prop_assert_eq!(&to, piece);
            prop_assert_eq!(copied.sum(), sum.sum());
        }
    }
}
