use super::*;
use crate::device::OutgoingPacket;
use crate::device::channel::{Channel, ChannelConfig};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{TcpFlags, TcpHeader, Transport, WireError, emit_tcp, parse};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::ErrorKind::WouldBlock;
use std::net::SocketAddr;

const SEED: u64 = 0x5eed;
const SIZE: usize = 100;

/// The byte of the stream at `seq`.
fn stream_byte(seq: u32) -> u8 {
    (seq.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// Sends `len` bytes of the stream from `seq` on; as a super-packet of `SIZE` bytes per segment if
/// there are more.
fn send_segment(device: &mut impl Device, seq: u32, len: usize) -> io::Result<()> {
    let src: SocketAddr = "10.0.0.1:1000".parse().expect("an address");
    let dst: SocketAddr = "10.0.0.2:2000".parse().expect("an address");
    let payload: Vec<u8> = (0..len).map(|at| stream_byte(seq.wrapping_add(at as u32))).collect();
    let header = TcpHeader {
        seq: SeqNum(seq),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        window: 1000,
        ..TcpHeader::new(src, dst)
    };
    let (mode, size) = if len > SIZE {
        (TxChecksumMode::Partial, NonZeroU16::new(SIZE as u16))
    } else {
        (TxChecksumMode::Complete, None)
    };
    let mut buf = HeaderBuf::new();
    let emitted = emit_tcp(&header, [&payload, &[]], mode, &mut buf).expect("fits");
    device.try_send(
        &OutgoingPacket::new(buf.as_slice(), [&payload, &[]])
            .with_segment_size(size)
            .with_checksum(emitted.checksum),
    )
}

/// What the codec says of the next packet: first sequence number and length.
fn receive_segment(device: &mut impl Device) -> Option<Result<(u32, usize), WireError>> {
    let packet = match device.try_recv() {
        Ok(packet) => packet,
        Err(error) if error.kind() == WouldBlock => return None,
        Err(error) => panic!("receive: {error}"),
    };
    let segment = parse(&packet).map(|datagram| match datagram.transport {
        Transport::Tcp(segment) => segment,
        other => panic!("not TCP: {other:?}"),
    });
    Some(segment.map(|segment| {
        for (at, byte) in segment.payload.iter().enumerate() {
            assert_eq!(byte, stream_byte(segment.seq.0.wrapping_add(at as u32)), "a byte differs");
        }
        (segment.seq.0, segment.payload.len())
    }))
}

/// Sends `packets` packets, of `SIZE` bytes each, through a path and returns what came out.
fn outcome(impairment: Impairment, packets: u32, seed: u64) -> (Vec<Result<u32, WireError>>, ImpairStats) {
    let config = ChannelConfig::default().queue(usize::MAX, usize::MAX);
    let (near, mut far) = Channel::pair(config);
    let mut near = Impaired::new(near, ImpairConfig::both(impairment, seed));
    for number in 0..packets {
        send_segment(&mut near, number * SIZE as u32, SIZE).expect("room");
    }
    let mut arrived = Vec::new();
    while let Some(segment) = receive_segment(&mut far) {
        arrived.push(segment.map(|(seq, _)| seq / SIZE as u32));
    }
    (arrived, near.monitor().outgoing())
}

#[test]
fn a_path_without_impairments_changes_nothing() {
    let (arrived, stats) = outcome(Impairment::default(), 1000, SEED);
    assert_eq!(arrived, (0..1000).map(Ok).collect::<Vec<_>>());
    assert_eq!(stats, ImpairStats { packets: 1000, ..ImpairStats::default() });
}

#[test]
fn shares_come_out_as_asked_for() {
    let impairment = Impairment { loss: 5.0, duplicate: 20.0, ..Impairment::default() };
    let (arrived, stats) = outcome(impairment, 10_000, SEED);
    let mut copies = BTreeMap::new();
    for number in arrived {
        *copies.entry(number.expect("undamaged")).or_insert(0) += 1;
    }
    let lost = 10_000 - copies.len() as u64;
    let duplicated = copies.values().filter(|&&count| count == 2).count() as u64;
    // Five standard deviations of the binomial distribution.
    assert!((391..=609).contains(&lost), "{lost} lost");
    assert!((1_700..=2_100).contains(&duplicated), "{duplicated} duplicated");
    assert_eq!((stats.lost, stats.duplicated, stats.packets), (lost, duplicated, 10_000));
}

#[test]
fn a_seed_decides_everything() {
    let impairment = Impairment { loss: 30.0, duplicate: 30.0, ..Impairment::default() };
    let first = outcome(impairment, 500, 1);
    assert_eq!(outcome(impairment, 500, 1), first);
    assert_ne!(outcome(impairment, 500, 2), first);
}

#[test]
fn damage_is_found_by_checksums_and_nothing_else_is_damaged() {
    let impairment = Impairment { corrupt: 10.0, ..Impairment::default() };
    let (arrived, stats) = outcome(impairment, 5_000, SEED);
    let damaged = arrived.iter().filter(|segment| segment.is_err()).count() as u64;
    assert_eq!(arrived.len(), 5_000);
    assert!((390..=610).contains(&damaged), "{damaged} damaged");
    assert_eq!(stats.corrupted, damaged);
}

#[test]
fn the_checksum_of_an_offloaded_packet_is_finished_before_it_is_damaged() {
    for super_packets in [SuperPackets::Cut, SuperPackets::Whole] {
        let (near, mut far) = Channel::pair(ChannelConfig::default());
        let impairment = Impairment { corrupt: 100.0, ..Impairment::default() };
        let config = ImpairConfig { super_packets, ..ImpairConfig::both(impairment, SEED) };
        let mut near = Impaired::new(near, config);
        send_segment(&mut near, 0, 10 * SIZE).expect("room");
        let arrived: Vec<_> = std::iter::from_fn(|| receive_segment(&mut far)).collect();
        let damaged = arrived.iter().filter(|segment| segment.is_err()).count();
        let expected = if super_packets == SuperPackets::Cut { 10 } else { 1 };
        assert_eq!((arrived.len(), damaged), (10, expected), "{super_packets:?}");
    }
}

#[test]
fn super_packets_are_cut_or_whole() {
    for (super_packets, expected) in [(SuperPackets::Cut, 11), (SuperPackets::Whole, 1)] {
        let (near, far) = Channel::pair(ChannelConfig::default());
        let config = ImpairConfig { super_packets, ..ImpairConfig::both(Impairment::default(), SEED) };
        let mut near = Impaired::new(near, config);
        let monitor = near.monitor();
        // The path is crossed once outwards and once inwards.
        let mut far = Impaired::new(far, config);
        send_segment(&mut near, 77, 10 * SIZE + 1).expect("room");
        let mut next = 77;
        let mut packets = 0;
        while let Some(segment) = receive_segment(&mut far) {
            let (seq, len) = segment.expect("a valid checksum");
            assert_eq!(seq, next);
            next += len as u32;
            packets += 1;
        }
        assert_eq!((packets, next), (expected, 77 + 10 * SIZE as u32 + 1), "{super_packets:?}");
        assert_eq!(monitor.outgoing().packets, expected);
    }
}

#[test]
fn what_the_device_cannot_carry_is_refused_at_once() {
    let (near, _far) = Channel::pair(ChannelConfig::default());
    let mut near = Impaired::new(near, ImpairConfig::both(Impairment::default(), SEED));
    let error = near.try_send(&OutgoingPacket::whole(&[0x45; 1501])).expect_err("too large");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

/// Waits for a segment, for at most a minute.
async fn wait_for_segment(device: &mut impl Device) -> u32 {
    let wait = async {
        loop {
            if let Some(segment) = receive_segment(device) {
                return segment.expect("undamaged").0;
            }
            poll_fn(|cx| device.poll_readable(cx)).await.expect("readable");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("no lost wake-up")
}

#[tokio::test]
async fn delayed_packets_arrive_after_the_delay_and_in_order() {
    let (mut near, far) = Channel::pair(ChannelConfig::default());
    let delay = Duration::from_millis(20);
    let impairment = Impairment { delay, ..Impairment::default() };
    let mut far = Impaired::new(far, ImpairConfig::both(impairment, SEED));
    let start = timer::now();
    for number in 0..5 {
        send_segment(&mut near, number, SIZE).expect("room");
    }
    for number in 0..5 {
        assert_eq!(wait_for_segment(&mut far).await, number);
        assert!(timer::now().since(start) >= delay);
    }
    // The other way: who sends must also be who waits, as a driver is.
    let start = timer::now();
    send_segment(&mut far, 9, SIZE).expect("room");
    let waiting = async {
        poll_fn(|cx| far.poll_readable(cx)).await.expect("readable");
    };
    tokio::select! {
        () = waiting => panic!("nothing was sent to the far end"),
        number = wait_for_segment(&mut near) => assert_eq!(number, 9),
    }
    assert!(timer::now().since(start) >= delay);
}

#[tokio::test]
async fn packets_wait_for_one_another_where_the_path_has_a_rate() {
    let (mut near, far) = Channel::pair(ChannelConfig::default());
    // 140 bytes with headers: 1.12 ms each.
    let rate = Some(Rate::from_bits_per_second(1_000_000));
    let mut far = Impaired::new(far, ImpairConfig::both(Impairment { rate, ..Impairment::default() }, SEED));
    for number in 0..20 {
        send_segment(&mut near, number, SIZE).expect("room");
    }
    let start = timer::now();
    for number in 0..20 {
        assert_eq!(wait_for_segment(&mut far).await, number);
        let earliest = Duration::from_micros(1_120).saturating_mul(u64::from(number) + 1);
        assert!(timer::now().since(start) >= earliest, "packet {number} came before {earliest:?}");
    }
}

#[tokio::test]
async fn late_packets_are_overtaken() {
    let (mut near, far) = Channel::pair(ChannelConfig::default());
    let impairment =
        Impairment { reorder: 30.0, reorder_by: Duration::from_millis(30), ..Impairment::default() };
    let mut far = Impaired::new(far, ImpairConfig::both(impairment, SEED));
    let monitor = far.monitor();
    for number in 0..100 {
        send_segment(&mut near, number, SIZE).expect("room");
    }
    let mut order = Vec::new();
    for _ in 0..100 {
        order.push(wait_for_segment(&mut far).await);
    }
    let late = monitor.incoming().reordered as usize;
    assert!((10..=50).contains(&late), "{late} of 100 late at 30 %");
    // All were there before the first was received: the late ones come last, in order.
    assert!(order[..100 - late].is_sorted() && order[100 - late..].is_sorted(), "{order:?}");
    order.sort_unstable();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_path_takes_no_packet_until_one_has_left() {
    let (near, mut far) = Channel::pair(ChannelConfig::default());
    let impairment = Impairment { delay: Duration::from_millis(20), ..Impairment::default() };
    let config = ImpairConfig { queue_packets: 3, ..ImpairConfig::both(impairment, SEED) };
    let mut near = Impaired::new(near, config);
    for number in 0..3 {
        send_segment(&mut near, number, SIZE).expect("room");
    }
    let full = send_segment(&mut near, 3, SIZE).expect_err("full");
    assert_eq!(full.kind(), WouldBlock);
    let room = poll_fn(|cx| near.poll_writable(cx));
    tokio::time::timeout(std::time::Duration::from_secs(60), room).await.expect("woken").expect("writable");
    send_segment(&mut near, 3, SIZE).expect("room");
    assert_eq!(receive_segment(&mut far).map(|segment| segment.is_ok()), Some(true));
}

#[tokio::test]
async fn packets_wait_where_the_device_is_full() {
    let (near, mut far) = Channel::pair(ChannelConfig::default().queue(1, usize::MAX));
    let mut near = Impaired::new(near, ImpairConfig::both(Impairment::default(), SEED));
    let sender = tokio::spawn(async move {
        for number in 0..100 {
            send_segment(&mut near, number, SIZE).expect("the path has room");
        }
        // Nothing comes; the wait releases what the device can take.
        poll_fn(|cx| near.poll_readable(cx)).await.expect("readable");
    });
    for number in 0..100 {
        assert_eq!(wait_for_segment(&mut far).await, number);
    }
    sender.abort();
}

#[test]
fn a_stalled_path_holds_everything_and_keeps_the_order() {
    let stall = Stall { every: Duration::from_millis(20), lasts: Duration::from_millis(50) };
    let at = |ms: u64| stall.passes(Instant::from_secs(1), Instant::from_secs(1) + Duration::from_millis(ms));
    let expected = [(0, 0), (19, 19), (20, 70), (69, 70), (70, 70), (89, 89), (90, 140)];
    for (comes, passes) in expected {
        assert_eq!(at(comes), Instant::from_secs(1) + Duration::from_millis(passes), "{comes} ms");
    }
    assert_eq!(Stall::default().passes(Instant::ZERO, Instant::from_secs(1)), Instant::from_secs(1));

    // It stands from the first packet on.
    let stall = Stall { every: Duration::ZERO, lasts: Duration::from_millis(30) };
    let (near, mut far) = Channel::pair(ChannelConfig::default().queue(usize::MAX, usize::MAX));
    let mut near =
        Impaired::new(near, ImpairConfig::both(Impairment { stall, ..Impairment::default() }, SEED));
    for number in 0..10 {
        send_segment(&mut near, number * SIZE as u32, SIZE).expect("room");
    }
    assert!(receive_segment(&mut far).is_none());
    assert_eq!(near.monitor().outgoing().stalled, 10);
    // A receive releases what is due.
    let start = timer::now();
    while timer::now().since(start) < Duration::from_millis(40) {
        assert!(receive_segment(&mut near).is_none());
        std::thread::yield_now();
    }
    for number in 0..10 {
        assert_eq!(
            receive_segment(&mut far).map(|got| got.map(|(seq, _)| seq / SIZE as u32)),
            Some(Ok(number))
        );
    }
}
