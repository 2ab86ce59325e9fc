//! Captures, read by programs that are not ours.

use crate::common::{link, pair, sink, transfer};
use ackline_netsim::Sim;
use ackline_netsim::app::Amount;
use ackline_netsim::impair::{DropList, Which};
use ackline_netsim::pcapng::{Capture, CapturePoint, Point};
use ackline_netsim::topologies::Duplex;
use ackline_tcp_core::Instant;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::num::NonZeroU32;

#[derive(Debug)]
struct CapturedPacket {
    interface: u32,
    at_ns: u64,
    seq: u32,
    payload: usize,
    comment: String,
}

/// Reads a capture, and verifies every checksum.
fn read(file: &[u8]) -> (Vec<String>, Vec<CapturedPacket>) {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut names = vec![];
    let mut packets = vec![];
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::IPV4);
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                names.extend(interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                assert_eq!(packet.original_len as usize, packet.data.len());
                let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
                let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("{sliced:?}") };
                let header = ip.header().to_header();
                assert_eq!(header.calc_header_checksum(), header.header_checksum);
                let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("{sliced:?}") };
                assert_eq!(tcp.calc_checksum_ipv4(header.source, header.destination), Ok(tcp.checksum()));
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(comment) => Some(comment.to_string()),
                    _ => None,
                });
                packets.push(CapturedPacket {
                    interface: packet.interface_id,
                    at_ns: packet.timestamp.as_nanos() as u64,
                    seq: tcp.sequence_number(),
                    payload: tcp.payload().len(),
                    comment: comment.unwrap(),
                });
            }
            other => panic!("{other:?}"),
        }
    }
    (names, packets)
}

#[test]
fn independent_readers_agree_about_a_capture() {
    let mut sim = Sim::new(1);
    let there = link(10_000_000, 10).with_impairment(DropList::new(Which::NthData(vec![3])));
    let pair = pair(&mut sim, Duplex { there, back: link(10_000_000, 10) });
    sink(&mut sim, &pair.receiver);
    transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Bytes(100_000));
    let points = [Point::Offered, Point::Delivered, Point::Dropped].map(|point| CapturePoint {
        link: pair.sender.access.there,
        point,
        name: "sender".to_owned(),
    });
    let capture = sim.add_observer(Capture::new(Vec::new(), points.to_vec(), None).unwrap());
    sim.run_until(Instant::from_secs(5));
    let capture = sim.take_observer::<Capture<Vec<u8>>>(capture).unwrap();
    let written = capture.packets();
    let (names, packets) = read(&capture.finish().unwrap());

    // In the order of their first packets.
    assert_eq!(names, ["sender (offered)", "sender (delivered)", "sender (dropped)"]);
    assert_eq!(packets.len() as u64, written);
    let at = |interface| packets.iter().filter(move |packet| packet.interface == interface);
    // The SYN of 60 bytes takes 48 us and 10 ms.
    let syn: Vec<_> = packets.iter().filter(|packet| packet.comment.contains("sent: syn;")).collect();
    assert_eq!([syn[0].at_ns, syn[1].at_ns], [1_000_000, 1_000_000 + 48_000 + 10_000_000]);
    assert_eq!(syn[0].comment, "sent: syn; class: syn; packet: 1; connection: 0");

    let dropped: Vec<_> = at(2).collect();
    assert_eq!(dropped.len(), 1);
    assert!(dropped[0].comment.starts_with("dropped: impairment; sent: new-data; class: data;"));
    let again: Vec<_> = at(0).filter(|packet| packet.comment.contains("sent: fast-retransmit;")).collect();
    assert_eq!((again.len(), again[0].seq), (1, dropped[0].seq));
    // 100,000 bytes came through, each once.
    assert_eq!(at(1).map(|packet| packet.payload).sum::<usize>(), 100_000);
    assert_eq!(at(0).count(), at(1).count() + at(2).count());
}

#[test]
fn packets_from_outside_have_a_class_and_no_reason() {
    let mut sim = Sim::new(1);
    let (left, right) = (sim.add_port([]), sim.add_port([[10, 0, 0, 2].into()]));
    let there = sim.add_link(
        left,
        right,
        link(10_000_000, 10).with_impairment(DropList::new(Which::NthData(vec![2]))),
    );
    let points = [Point::Offered, Point::Dropped].map(|point| CapturePoint {
        link: there,
        point,
        name: "outside".to_owned(),
    });
    let capture = sim.add_observer(Capture::new(Vec::new(), points.to_vec(), None).unwrap());
    let tcp = || PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(80, 5_000, 1, 65_535).ack(1);
    let rst = || PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(80, 5_000, 1, 65_535).rst();
    for (segment, length) in
        [(tcp().syn(), 0), (tcp(), 0), (tcp(), 9), (tcp(), 9), (tcp().fin(), 0), (rst(), 0)]
    {
        let mut packet = vec![];
        segment.write(&mut packet, &vec![3; length]).unwrap();
        sim.inject(left, &packet);
    }
    sim.run_until(Instant::from_secs(1));
    let capture = sim.take_observer::<Capture<Vec<u8>>>(capture).unwrap();
    let (_, packets) = read(&capture.finish().unwrap());
    let comments: Vec<_> = packets.iter().map(|packet| &*packet.comment).collect();
    let dropped = "dropped: impairment; class: retransmit; packet: 3";
    let mut expected = ["syn", "pure-ack", "data", "retransmit", "fin", "rst"]
        .iter()
        .enumerate()
        .map(|(number, class)| format!("class: {class}; packet: {number}"))
        .collect::<Vec<_>>();
    expected.push(dropped.to_owned());
    assert_eq!(comments, expected);
}

#[test]
fn a_snap_length_cuts_packets_and_keeps_their_lengths() {
    let mut sim = Sim::new(1);
    let pair = pair(&mut sim, Duplex::symmetric(|| link(10_000_000, 10)));
    sink(&mut sim, &pair.receiver);
    transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Bytes(20_000));
    let point =
        CapturePoint { link: pair.sender.access.there, point: Point::Left, name: "sender".to_owned() };
    let capture = Capture::new(Vec::new(), vec![point], NonZeroU32::new(64)).unwrap();
    let capture = sim.add_observer(capture);
    sim.run_until(Instant::from_secs(5));
    let file = sim.take_observer::<Capture<Vec<u8>>>(capture).unwrap().finish().unwrap();
    let mut reader = PcapNgReader::new(file.as_slice()).unwrap();
    let mut lengths = vec![];
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => assert_eq!(interface.snaplen, 64),
            Block::EnhancedPacket(packet) => lengths.push((packet.original_len, packet.data.len())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(lengths[0], (60, 60), "the SYN is whole");
    assert_eq!(lengths[1], (52, 52));
    // The first full segment: 1,500 bytes.
    assert!(lengths.contains(&(1_500, 64)), "{lengths:?}");
    assert_eq!(lengths.iter().map(|(original, _)| original).max(), Some(&1_500));
}

#[test]
fn a_full_disk_is_reported() {
    #[derive(Debug)]
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            if octets.len() > self.0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            self.0 -= octets.len();
            Ok(octets.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut sim = Sim::new(1);
    let pair = pair(&mut sim, Duplex::symmetric(|| link(10_000_000, 10)));
    sink(&mut sim, &pair.receiver);
    transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Bytes(20_000));
    let point =
        CapturePoint { link: pair.sender.access.there, point: Point::Left, name: "sender".to_owned() };
    let capture = sim.add_observer(Capture::new(Full(5_000), vec![point], None).unwrap());
    sim.run_until(Instant::from_secs(5));
    let capture = sim.take_observer::<Capture<Full>>(capture).unwrap();
    assert_eq!(capture.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}
