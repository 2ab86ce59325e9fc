//! Any octets as a received packet.
//!
//! The first two octets choose what is known about the checksum and where the packet is cut into
//! slices. What is accepted is read to its end, emitted again, and split; what comes of that must
//! be accepted too.

use ackline::core::wire::{
    HeaderBuf, RxChecksum, RxPacket, TcpHeader, TcpSegment, Transport, TxChecksumMode, emit_tcp, gso, parse,
};
use core::net::SocketAddr;
use core::num::NonZeroU16;

/// Takes `input` for a packet; returns whether a TCP segment came of it.
pub(crate) fn run(input: &[u8]) -> bool {
    let Some((&[how, cut], octets)) = input.split_first_chunk::<2>() else { return false };
    let mut octets = octets.to_vec();
    if how & 4 != 0 {
        mend_ipv4(&mut octets);
    }
    let cut = usize::from(cut).min(octets.len());
    let checksum = match how & 3 {
        0 => RxChecksum::Verify,
        1 => RxChecksum::Partial,
        _ => RxChecksum::Trusted,
    };
    let size = NonZeroU16::new(u16::from(how >> 3));
    let whole = RxPacket::new(&octets).with_checksum(checksum).with_segment_size(size);
    let sliced = RxPacket { head: &octets[..cut], more: [&octets[cut..], &[]], ..whole };
    let Ok(datagram) = parse(&whole) else {
        assert!(parse(&sliced).is_err());
        return false;
    };
    if let Ok(sliced) = parse(&sliced) {
        assert_eq!(datagram.ip, sliced.ip);
    }
    let ip = datagram.ip;
    assert!(ip.total_len as usize <= octets.len() && u32::from(ip.header_len) <= ip.total_len);
    let Transport::Tcp(segment) = datagram.transport else { return false };
    let header_len = usize::from(ip.header_len) + 20 + segment.raw_options.len();
    assert_eq!(header_len + segment.payload.len(), ip.total_len as usize);
    assert!(segment.option_iter().count() <= segment.raw_options.len());

    emit_again(
        &segment,
        SocketAddr::new(ip.src, segment.src_port),
        SocketAddr::new(ip.dst, segment.dst_port),
    );
    split(&octets[..header_len], &segment);
    true
}

/// What is emitted from a parsed segment is parsed alike.
fn emit_again(segment: &TcpSegment<'_>, src: SocketAddr, dst: SocketAddr) {
    let mut header = TcpHeader::new(src, dst);
    (header.seq, header.ack, header.flags) = (segment.seq, segment.ack, segment.flags);
    (header.window, header.urgent, header.options) = (segment.window, segment.urgent, segment.options);
    let payload: Vec<u8> = segment.payload.iter().collect();
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [&payload, &[]], TxChecksumMode::Complete, &mut buf).expect("far from too long");
    let packet = [buf.as_slice(), &payload].concat();
    let Transport::Tcp(again) = parse(&RxPacket::new(&packet)).expect("valid").transport else {
        panic!("TCP")
    };
    assert_eq!((again.seq, again.ack, again.flags), (segment.seq, segment.ack, segment.flags));
    assert_eq!((again.window, again.urgent), (segment.window, segment.urgent));
    // If there is not enough room, the last SACK blocks are left out.
    let blocks = again.options.sack.len();
    assert_eq!(again.options.sack.as_slice(), &segment.options.sack.as_slice()[..blocks]);
    let mut expected = segment.options;
    expected.sack = again.options.sack;
    assert_eq!(again.options, expected);
    assert!(again.payload.iter().eq(payload));
}

/// Segments of one octet each.
fn split(headers: &[u8], segment: &TcpSegment<'_>) {
    let size = NonZeroU16::MIN;
    let Ok(mut segments) = gso::split(headers, segment.payload, size, TxChecksumMode::Complete) else {
        return;
    };
    let (mut buf, mut sent) = (HeaderBuf::new(), 0);
    while let Some((_, data)) = segments.next_into(&mut buf) {
        sent += data.len();
        let [first, second, third] = data.slices();
        let packet = [buf.as_slice(), first, second, third].concat();
        assert!(parse(&RxPacket::new(&packet)).is_ok(), "a packet that was split off");
    }
    assert_eq!(sent, segment.payload.len());
}

/// Puts the right checksum into an IPv4 header, which a fuzzer cannot guess.
fn mend_ipv4(octets: &mut [u8]) {
    let header_len = octets.first().map_or(0, |first| usize::from(first & 15) * 4);
    if let Some(header) = octets.get_mut(..header_len).filter(|header| header.len() >= 20) {
        header[10..12].fill(0);
        let checksum = ackline::core::wire::checksum::checksum(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
