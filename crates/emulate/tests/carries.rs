//! Packets through a network in real time, from device to device.

use ackline_emulate::{Emulator, Offload};
use ackline_netsim::impair::{Corrupt, DropList, Which};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::{Egress, LinkSpec, Sim, SuperPacket, serialisation};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device as _, OutgoingPacket, RxChecksum, RxPacket, TxChecksum};
use ackline_runtime::{Pacing, timer};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, Transport, TxChecksumMode, UdpHeader, emit_tcp, emit_udp, parse,
};
use ackline_tcp_core::{Duration, EndpointConfig, Instant, SeqNum};
use std::future::poll_fn;
use std::num::NonZeroU16;

const DELAY: Duration = Duration::from_millis(5);

/// An IPv4 packet of UDP from 10.0.0.1 to 10.0.0.2 that ends in `number`.
fn packet(number: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
    (bytes[8], bytes[9]) = (64, 17);
    bytes[12..16].copy_from_slice(&[10, 0, 0, 1]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    bytes[len - 1] = number;
    bytes
}

fn send(device: &mut Channel, packet: &[u8]) {
    device.try_send(&OutgoingPacket::whole(packet)).expect("room");
}

async fn receive(device: &mut Channel) -> Vec<u8> {
    loop {
        match device.try_recv() {
            Ok(packet) => return packet.head.to_vec(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                poll_fn(|cx| device.poll_readable(cx)).await.expect("the other end is there");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// 10.0.0.1 and what leads to 10.0.0.2 through a link.
fn emulator(link: LinkSpec, pacing: Pacing) -> (Emulator, Sim, Channel, Channel) {
    let mut sim = Sim::new(1);
    let left = sim.add_port(["10.0.0.1".parse().expect("right")]);
    let right = sim.add_port([]);
    sim.set_default_node(right);
    sim.add_link(left, right, link);
    let config = ChannelConfig::default().plain();
    let ((a, near), (b, far)) = (Channel::pair(config), Channel::pair(config));
    let mut emulator = Emulator::new(pacing).expect("descriptors are left");
    emulator.attach(&sim, left, Box::new(near)).expect("without offload");
    emulator.attach(&sim, right, Box::new(far)).expect("without offload");
    (emulator, sim, a, b)
}

async fn passes_in_order_and_not_early(pacing: Pacing) {
    // A packet of 1,000 bytes takes a millisecond.
    let link = LinkSpec::new(8_000_000, DELAY).with_impairment(DropList::new(Which::Nth(vec![3])));
    let (mut emulator, mut sim, mut a, mut b) = emulator(link, pacing);
    let start = timer::now();
    (0..5).for_each(|number| send(&mut a, &packet(number, 1_000)));
    let arrivals = async {
        let mut arrived = vec![];
        for _ in 0..4 {
            let packet = receive(&mut b).await;
            arrived.push((packet[999], timer::now().since(start)));
        }
        arrived
    };
    let arrived = tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        arrived = arrivals => arrived,
    };
    let numbers: Vec<u8> = arrived.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 3, 4], "the third is lost");
    for (number, after) in &arrived {
        let earliest = DELAY + Duration::from_millis(1 + u64::from(*number));
        assert!(*after >= earliest, "{number}: {after:?}");
    }
    let [left, right]: [_; 2] = emulator.ports().collect::<Vec<_>>().try_into().expect("two ports");
    assert_eq!((left.received, right.sent, right.refused, right.lateness.count()), (5, 4, 0, 4));
}

#[tokio::test]
async fn packets_pass_in_order_and_not_early_asleep() {
    passes_in_order_and_not_early(Pacing::Timer).await;
}

#[tokio::test]
async fn packets_pass_in_order_and_not_early_spinning() {
    passes_in_order_and_not_early(Pacing::spin()).await;
}

#[tokio::test]
async fn a_flood_at_one_port_keeps_nothing_out_at_another() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    (0..1_000).for_each(|_| send(&mut a, &packet(1, 40)));
    send(&mut b, &packet(2, 40));
    tokio::select! {
        biased;
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        () = std::future::ready(()) => {}
    }
    let [left, right]: [_; 2] = emulator.ports().collect::<Vec<_>>().try_into().expect("two ports");
    assert!(left.received < 1_000, "{left:?}");
    assert_eq!(right.received, 1);
}

#[tokio::test]
async fn while_it_spins_for_a_busy_link_other_tasks_run() {
    const PACKETS: u64 = 1_000;
    // A machine that stops for the 4 ms in which all of them arrive proves nothing.
    for _ in 0..10 {
        let mut sim = Sim::new(1);
        let left = sim.add_port([]);
        let right = sim.add_port(["10.0.0.2".parse().expect("right")]);
        sim.add_link(left, right, LinkSpec::new(80_000_000, Duration::from_millis(100)));
        (0..PACKETS).for_each(|_| sim.inject(left, &packet(1, 40)));
        let (mut b, far) = Channel::pair(ChannelConfig::default().plain());
        let mut emulator = Emulator::new(Pacing::spin()).expect("descriptors are left");
        emulator.attach(&sim, right, Box::new(far)).expect("without offload");
        tokio::select! {
            ended = emulator.run(&mut sim) => panic!("{ended:?}"),
            _ = receive(&mut b) => {}
        }
        let sent = emulator.ports().next().expect("one port").sent;
        if sent < PACKETS {
            return;
        }
    }
    panic!("no other task ran until the last packet had arrived");
}

#[tokio::test]
async fn it_stops_at_an_instant_and_goes_on() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    send(&mut a, &packet(7, 1_000));
    let end = Instant::ZERO + DELAY;
    emulator.run_until(&mut sim, end).await.expect("its devices work");
    assert_eq!(sim.now(), end);
    assert!(b.try_recv().is_err(), "it takes a millisecond more");
    tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        packet = receive(&mut b) => assert_eq!(packet[999], 7),
    }
}

#[tokio::test]
async fn what_is_no_packet_is_counted() {
    let (mut emulator, mut sim, mut a, mut b) = emulator(LinkSpec::new(8_000_000, DELAY), Pacing::Timer);
    send(&mut a, &[0x75; 40]);
    send(&mut a, &packet(7, 40));
    tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        packet = receive(&mut b) => assert_eq!(packet[39], 7),
    }
    assert_eq!(sim.unroutable(), 1);
}

#[tokio::test]
async fn a_device_at_a_router_is_refused() {
    let mut sim = Sim::new(1);
    let router = sim.add_router();
    let mut emulator = Emulator::new(Pacing::Timer).expect("descriptors are left");
    let (device, _other) = Channel::pair(ChannelConfig::default().plain());
    let refused = emulator.attach(&sim, router, Box::new(device)).expect_err("it is not a port");
    assert!(
        refused.to_string().ends_with("is not a port of the simulation: add one by Sim::add_port"),
        "{refused}"
    );
}

/// A super-packet of TCP of `data` octets from 10.0.0.1 to 10.0.0.2, in two parts, with what
/// remains to be done for its checksum.
fn super_packet(data: &[u8]) -> (HeaderBuf, TxChecksum) {
    let ends = ["10.0.0.1:80", "10.0.0.2:81"].map(|end| end.parse().expect("right"));
    let mut header = TcpHeader::new(ends[0], ends[1]);
    header.flags = TcpFlags::ACK | TcpFlags::PSH;
    header.seq = SeqNum(1_000);
    let mut buf = HeaderBuf::new();
    let emitted = emit_tcp(&header, [data, &[]], TxChecksumMode::Partial, &mut buf).expect("it fits");
    (buf, emitted.checksum)
}

/// Two devices with offload, and what leads from the first one to the second one.
fn with_offload(link: LinkSpec, offload: Offload) -> (Emulator, Sim, Channel, Channel) {
    let mut sim = Sim::new(1);
    let (left, right) = (sim.add_port([]), sim.add_port(["10.0.0.2".parse().expect("right")]));
    sim.add_link(left, right, link);
    let ((a, near), (b, far)) =
        (Channel::pair(ChannelConfig::default()), Channel::pair(ChannelConfig::default()));
    let mut emulator = Emulator::new(Pacing::Timer).expect("descriptors are left").with_offload(offload);
    emulator.attach(&sim, left, Box::new(near)).expect("it has offload");
    emulator.attach(&sim, right, Box::new(far)).expect("it has offload");
    (emulator, sim, a, b)
}

const SEGMENT: Option<NonZeroU16> = NonZeroU16::new(1_000);
/// Of IPv4 and TCP, without options.
const HEADERS: u64 = 40;

#[tokio::test]
async fn a_super_packet_is_split_into_packets_that_a_queue_sees() {
    // A queue of two packets, and one that is served; 1,040 bytes take 1 ms.
    let link = LinkSpec::new(8 * 1_040_000, DELAY).with_queue(Box::new(DropTail::new(Limit::Packets(2))));
    let (mut emulator, mut sim, mut a, mut b) = with_offload(link, Offload::Split);
    let data: Vec<u8> = (0..4_500_u32).map(|place| (place / 100) as u8).collect();
    let (header, checksum) = super_packet(&data);
    a.try_send(
        &OutgoingPacket::new(header.as_slice(), [&data, &[]])
            .with_segment_size(SEGMENT)
            .with_checksum(checksum),
    )
    .expect("room");
    let arrivals = async {
        let mut arrived = vec![];
        for _ in 0..3 {
            arrived.push(receive(&mut b).await);
        }
        arrived
    };
    let arrived = tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        arrived = arrivals => arrived,
    };
    for (place, packet) in arrived.iter().enumerate() {
        // Its checksums are complete.
        let datagram = parse(&RxPacket::new(packet)).expect("a packet of a wire");
        let Transport::Tcp(segment) = datagram.transport else { panic!("{datagram:?}") };
        assert_eq!(segment.seq.0, 1_000 + 1_000 * place as u32);
        assert!(segment.payload.iter().eq(data[1_000 * place..1_000 * (place + 1)].iter().copied()));
    }
    let [left, right]: [_; 2] = emulator.ports().collect::<Vec<_>>().try_into().expect("two ports");
    assert_eq!((left.received, left.super_packets, right.sent), (1, 1, 3));
    let link = sim.view().links()[0];
    assert_eq!(sim.view().stats(link).overflows, 2, "the last two found the queue full");
}

#[tokio::test]
async fn a_whole_super_packet_has_one_fate_and_the_time_of_all_its_packets() {
    let link = LinkSpec::new(8 * 1_040_000, DELAY)
        .with_queue(Box::new(DropTail::new(Limit::Packets(1))))
        .with_impairment(DropList::new(Which::Nth(vec![1])));
    let (mut emulator, mut sim, mut a, mut b) = with_offload(link, Offload::Whole);
    let data = vec![7; 4_500];
    let (header, checksum) = super_packet(&data);
    let start = timer::now();
    for _ in 0..3 {
        a.try_send(
            &OutgoingPacket::new(header.as_slice(), [&data, &[]])
                .with_segment_size(SEGMENT)
                .with_checksum(checksum),
        )
        .expect("room");
    }
    let arrival = async {
        loop {
            match b.try_recv() {
                Ok(packet) => return (packet.head.to_vec(), packet.segment_size, packet.checksum),
                Err(_) => poll_fn(|cx| b.poll_readable(cx)).await.expect("the other end is there"),
            }
        }
    };
    let (packet, segment_size, checksum) = tokio::select! {
        ended = emulator.run(&mut sim) => panic!("{ended:?}"),
        arrived = arrival => arrived,
    };
    // The first one is lost as one, the third one found the queue full; the second one waited for
    // the first one.
    let time = serialisation(8 * 1_040_000, 2 * (4_500 + 5 * HEADERS)).saturating_add(DELAY);
    assert!(timer::now().since(start) >= time);
    assert_eq!((segment_size, checksum), (SEGMENT, RxChecksum::Partial));
    let received = RxPacket::new(&packet).with_segment_size(segment_size).with_checksum(checksum);
    let Transport::Tcp(segment) = parse(&received).expect("right").transport else { panic!("TCP") };
    assert!(segment.payload.iter().eq(data.iter().copied()));
    assert_eq!(packet[..40], header.as_slice()[..40], "its headers are as they were");
    let link = sim.view().links()[0];
    let stats = sim.view().stats(link);
    assert_eq!((stats.impaired, stats.overflows, stats.delivered), (1, 1, 1));
    assert_eq!(stats.delivered_bytes, 4_500 + 5 * HEADERS);
}

#[tokio::test]
async fn a_host_of_the_simulation_takes_whole_super_packets() {
    let mut sim = Sim::new(1);
    let left = sim.add_port(["10.0.0.1".parse().expect("right")]);
    let mut config = EndpointConfig::default();
    config.addresses = vec!["10.0.0.2".parse().expect("right")];
    let host = sim.add_host(config, Box::new(Fifo::default()), Egress::Queued);
    sim.add_link(left, host, LinkSpec::new(1_000_000_000, Duration::ZERO));
    sim.run_until(Instant::ZERO);
    let data = vec![7; 4_500];
    let (header, checksum) = super_packet(&data);
    let one = SuperPacket { header_len: 40, segment_size: SEGMENT.expect("not zero"), checksum };
    sim.inject_parts(left, [header.as_slice(), &data], Some(one));
    sim.run_until(Instant::from_millis(1));
    let mut view = sim.view();
    let counters = view.endpoint(host).expect("a host").counters();
    assert_eq!(
        (counters.tcp_in_segs, counters.tcp_in_csum_errors),
        (5, 0),
        "nobody listens, and all was right"
    );
}

#[tokio::test]
async fn what_left_its_checksum_to_the_device_has_a_complete_one_on_the_wire() {
    let link = LinkSpec::new(1_000_000_000, Duration::ZERO);
    for offload in [Offload::Split, Offload::Whole] {
        let link = LinkSpec { impairments: vec![], ..LinkSpec::new(1_000_000_000, link.delay) };
        let (mut emulator, mut sim, mut a, mut b) = with_offload(link, offload);
        let ends = ["10.0.0.1:80", "10.0.0.2:81"].map(|end| end.parse().expect("right"));
        let udp = UdpHeader { src: ends[0], dst: ends[1], ttl: 64 };
        let mut buf = HeaderBuf::new();
        let emitted = emit_udp(&udp, [b"data", &[]], TxChecksumMode::Partial, &mut buf).expect("it fits");
        a.try_send(&OutgoingPacket::new(buf.as_slice(), [b"data", &[]]).with_checksum(emitted.checksum))
            .expect("room");
        let (header, checksum) = super_packet(b"data");
        a.try_send(&OutgoingPacket::new(header.as_slice(), [b"data", &[]]).with_checksum(checksum))
            .expect("room");
        let arrivals = async { [receive(&mut b).await, receive(&mut b).await] };
        let arrived = tokio::select! {
            ended = emulator.run(&mut sim) => panic!("{ended:?}"),
            arrived = arrivals => arrived,
        };
        for packet in arrived {
            assert!(parse(&RxPacket::new(&packet)).is_ok(), "{packet:?}");
        }
    }
}

#[tokio::test]
async fn whole_super_packets_need_offload_everywhere_and_links_that_do_not_corrupt() {
    let mut sim = Sim::new(1);
    let (left, right) = (sim.add_port([]), sim.add_port([]));
    let mut emulator =
        Emulator::new(Pacing::Timer).expect("descriptors are left").with_offload(Offload::Whole);
    let (plain, _other) = Channel::pair(ChannelConfig::default().plain());
    let refused = emulator.attach(&sim, left, Box::new(plain)).expect_err("it has none");
    assert!(refused.to_string().ends_with("open each with offload, or split them"), "{refused}");
    sim.add_link(left, right, LinkSpec::new(1_000, DELAY).with_impairment(Corrupt::new(0.1, 1)));
    let (device, _other) = Channel::pair(ChannelConfig::default());
    let refused = emulator.attach(&sim, left, Box::new(device)).expect_err("nobody would notice");
    assert!(refused.to_string().ends_with("split them"), "{refused}");
}
