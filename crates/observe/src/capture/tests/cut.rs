//! What is kept of packets: their start, the checksum of the whole, and headers of segments and of
//! the link.

use super::{CapturedPacket, HERE, Hosts, THERE, place, read};
use crate::background::queue::Queue;
use crate::background::run;
use crate::capture::observer::CopyPackets;
use crate::capture::writer::Writer;
use crate::capture::{Capture, Files, checksum, pieces};
use crate::pcapng::LinkType;
use ackline_tcp_core::Instant;
use ackline_tcp_core::events::PacketObserver as _;
use ackline_tcp_core::wire::{RxChecksum, RxPacket};
use pcap_file::DataLink;
use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

/// What is captured of data both ways, and of what ends the connection.
fn exchange(snap_length: Option<u32>, split: bool, offload: bool) -> Vec<CapturedPacket> {
    let (_folder, path, mut options) = place();
    options.snap_length = snap_length.and_then(NonZeroU32::new);
    options.split = split;
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, offload);
    hosts.send(20_001);
    let peer = hosts.there.conn_ids(0).next().expect("accepted");
    assert_eq!(hosts.there.conn(peer).expect("alive").write(hosts.now, &[3; 12_345]), Ok(12_345));
    hosts.settle();
    hosts.there.conn(peer).expect("alive").shutdown(hosts.now);
    hosts.settle();
    drop(capture);
    read(&path).packets
}

#[test]
fn what_is_cut_has_the_checksum_of_the_whole() {
    // The checksum of TCP ends at 38, the headers at 40 or, with timestamps, at 52.
    for snap_length in [38, 39, 40, 45, 52, 60, 61, 128, 1_499] {
        for (split, offload) in [(false, false), (false, true), (true, true)] {
            let whole = exchange(None, split, offload);
            let cut = exchange(Some(snap_length), split, offload);
            assert_eq!(cut.len(), whole.len());
            for (cut, whole) in cut.iter().zip(&whole) {
                whole.verified();
                let end = whole.data.len().min(snap_length as usize);
                assert_eq!(cut.data, whole.data[..end], "{snap_length}, {split}, {offload}: {cut:?}");
                assert_eq!((cut.original, &cut.comment), (whole.original, &whole.comment));
            }
        }
    }
}

/// A super-packet of 42 segments, with 40 octets of headers.
fn super_packet() -> Vec<u8> {
    let mut packet = vec![];
    let headers = etherparse::PacketBuilder::ipv4(THERE, HERE, 64).tcp(80, 5_000, 1, 65_535).ack(1);
    headers.write(&mut packet, &[3; 42 * 1_448]).expect("written");
    packet
}

#[test]
fn a_super_packet_that_is_split_takes_the_room_of_what_is_kept() {
    for (limit, packets, dropped) in [(64 << 10, 40 * 42, 0), (1 << 10, 0, 40 * 42)] {
        let (_folder, path, options) = place();
        let queue = Arc::new(Queue::new(limit));
        let mut observer =
            CopyPackets { queue: queue.clone(), snap_length: 60, split: true, link_type: LinkType::Raw };
        let packet = super_packet();
        let packet = RxPacket::new(&packet).with_segment_size(NonZeroU16::new(1_448));
        for _ in 0..40 {
            observer.received(Instant::ZERO, &[], &packet);
        }
        queue.close();
        let summary = run(Writer::new(Files::create(path, options).expect("created"), 0), &queue);
        // Segments count, as they do in the file.
        assert_eq!((summary.packets, summary.dropped), (packets, dropped));
    }
}

#[test]
fn ethernet_headers_stand_in_front_of_each_packet_and_segment() {
    let stations = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let ipv4 = [&stations[..], &[0x08, 0x00]].concat();
    let tagged = [&stations[..], &[0x81, 0, 0, 5, 0x08, 0x00]].concat();
    // What the device itself made has none.
    let made = [&[0; 12][..], &[0x08, 0x00]].concat();
    for (link, expected) in [(&ipv4[..], &ipv4), (&tagged, &tagged), (&[], &made)] {
        for (split, snap_length) in
            [(false, u32::MAX), (true, u32::MAX), (false, 60), (true, 60), (true, 70), (true, 7)]
        {
            let (_folder, path, mut options) = place();
            options.link_type = LinkType::Ethernet;
            let queue = Arc::new(Queue::new(1 << 20));
            let link_type = LinkType::Ethernet;
            let mut observer = CopyPackets { queue: queue.clone(), snap_length, split, link_type };
            let packet = super_packet();
            let checksum = RxChecksum::Partial;
            let packet =
                RxPacket::new(&packet).with_segment_size(NonZeroU16::new(1_448)).with_checksum(checksum);
            observer.received(Instant::ZERO, link, &packet);
            queue.close();
            let summary = run(Writer::new(Files::create(path.clone(), options).expect("created"), 0), &queue);
            assert_eq!(summary.packets, if split { 42 } else { 1 });
            let contents = read(&path);
            assert_eq!(contents.link, Some(DataLink::ETHERNET));
            for mut packet in contents.packets {
                assert_eq!(packet.data.len(), usize::min(snap_length as usize, packet.original as usize));
                let front = packet.data.len().min(expected.len());
                assert_eq!(packet.data.drain(..front).as_slice(), &expected[..front]);
                let data = if split { 1_448 } else { 42 * 1_448 };
                assert_eq!(packet.original as usize, expected.len() + 40 + data);
                if snap_length == u32::MAX {
                    assert_eq!(packet.verified(), data);
                }
            }
        }
    }
}

/// What a device gets of a packet, and the whole of it.
fn partial(write: impl FnOnce(&mut Vec<u8>), field: usize) -> (Vec<u8>, Vec<u8>) {
    let mut whole = vec![];
    write(&mut whole);
    let mut partial = whole.clone();
    partial[field..field + 2].copy_from_slice(&[0xab, 0xcd]);
    (partial, whole)
}

#[test]
fn checksums_of_both_protocols_and_versions_are_completed_wherever_the_packet_is_cut() {
    let data: Vec<u8> = (0..301_u16).map(|at| (at * 7) as u8).collect();
    let v4 = || etherparse::PacketBuilder::ipv4(HERE, THERE, 64);
    let v6 = || etherparse::PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64);
    let packets = [
        partial(|to| v4().tcp(1, 2, 3, 4).ack(5).write(to, &data).expect("written"), 20 + 16),
        partial(|to| v6().tcp(1, 2, 3, 4).ack(5).write(to, &data).expect("written"), 40 + 16),
        partial(|to| v4().udp(1, 2).write(to, &data).expect("written"), 20 + 6),
        partial(|to| v6().udp(1, 2).write(to, &data).expect("written"), 40 + 6),
    ];
    for (partial, whole) in packets {
        for room in 0..=whole.len() + 1 {
            let mut bytes = vec![];
            let (front, back) = partial.split_at(partial.len() / 3);
            pieces::keep(&mut bytes, [front, &[], back], room, true);
            let mut bytes = &mut bytes[..];
            let (kept, rest) = pieces::take(&mut bytes, whole.len(), room, true);
            let is_there = checksum::complete(kept, whole.len(), rest).is_some();
            let expected = if is_there { &whole } else { &partial };
            assert_eq!(*kept, expected[..room.min(whole.len())], "{room}");
            assert!(bytes.is_empty());
        }
        assert!(checksum::complete(&mut partial.clone(), whole.len(), 0).is_some());
    }
}
