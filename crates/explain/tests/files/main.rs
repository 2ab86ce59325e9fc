//! Files of other programs: formats, link types, and what is wrong with them.

use ackline_explain::story::Anomaly;
use ackline_explain::{Explainer, Limits, ReadError, Reader, Story, text};
use etherparse::{LinuxSllPacketType, PacketBuilder};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::time::Duration;

const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [192, 0, 2, 2];

/// What a packet begins with.
#[derive(Clone, Copy, Debug)]
enum Link {
    Raw,
    Ethernet,
    Vlan,
    Cooked,
    Cooked2,
    Null,
}

impl Link {
    const fn number(self) -> u32 {
        match self {
            Self::Raw => 101,
            Self::Ethernet | Self::Vlan => 1,
            Self::Cooked => 113,
            Self::Cooked2 => 276,
            Self::Null => 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Tcp {
    from_client: bool,
    seq: u32,
    ack: u32,
    flags: &'static str,
    length: usize,
    port: u16,
}

/// A handshake, 1,000 bytes, their ACK, and both FINs: each a millisecond after the one before.
fn transfer(port: u16) -> Vec<Tcp> {
    let packet = |from_client, flags, seq, ack, length| Tcp { from_client, seq, ack, flags, length, port };
    vec![
        packet(true, "S", 99, 0, 0),
        packet(false, "SA", 499, 100, 0),
        packet(true, "A", 100, 500, 0),
        packet(true, "A", 100, 500, 1000),
        packet(false, "A", 500, 1100, 0),
        packet(true, "FA", 1100, 500, 0),
        packet(false, "FA", 500, 1101, 0),
        packet(true, "A", 1101, 501, 0),
    ]
}

fn bytes(tcp: Tcp, link: Link) -> Vec<u8> {
    let (from, to, sport, dport) =
        if tcp.from_client { (CLIENT, SERVER, tcp.port, 80) } else { (SERVER, CLIENT, 80, tcp.port) };
    let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (prefix, ip) = match link {
        Link::Raw => (vec![], PacketBuilder::ipv4(from, to, 64)),
        Link::Ethernet => (vec![], ethernet().ipv4(from, to, 64)),
        Link::Vlan => (
            vec![],
            ethernet()
                .vlan(etherparse::VlanHeader::Single(etherparse::SingleVlanHeader::default()))
                .ipv4(from, to, 64),
        ),
        Link::Cooked => {
            (vec![], PacketBuilder::linux_sll(LinuxSllPacketType::OUTGOING, 6, [0; 8]).ipv4(from, to, 64))
        }
        Link::Cooked2 => {
            let mut header = vec![0; 20];
            header[..2].copy_from_slice(&0x0800_u16.to_be_bytes());
            (header, PacketBuilder::ipv4(from, to, 64))
        }
        Link::Null => (2_u32.to_le_bytes().to_vec(), PacketBuilder::ipv4(from, to, 64)),
    };
    let mut builder = ip.tcp(sport, dport, tcp.seq, 1_000);
    for flag in tcp.flags.chars() {
        builder = match flag {
            'S' => builder.syn(),
            'F' => builder.fin(),
            'R' => builder.rst(),
            _ => builder.ack(tcp.ack),
        };
    }
    let mut packet = prefix;
    builder.write(&mut packet, &vec![0; tcp.length]).expect("memory");
    packet
}

/// A pcap of packets a millisecond apart, of which `snap` bytes are kept.
fn pcap(
    packets: &[Tcp],
    link: Link,
    resolution: TsResolution,
    endianness: Endianness,
    snap: usize,
) -> Vec<u8> {
    let header = PcapHeader {
        datalink: DataLink::from(link.number()),
        ts_resolution: resolution,
        endianness,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("memory");
    for (place, tcp) in packets.iter().enumerate() {
        let packet = bytes(*tcp, link);
        let kept = &packet[..packet.len().min(snap)];
        let at = Duration::from_millis(1_000 + place as u64);
        writer.write_packet(&PcapPacket::new(at, packet.len() as u32, kept)).expect("memory");
    }
    writer.into_writer()
}

fn plain(packets: &[Tcp]) -> Vec<u8> {
    pcap(packets, Link::Raw, TsResolution::MicroSecond, Endianness::Little, usize::MAX)
}

fn told(file: &[u8]) -> Result<Story, ReadError> {
    let mut explainer = Explainer::default();
    explainer.read(&mut Reader::new(file)?)?;
    Ok(explainer.finish())
}

fn assert_told(story: &Story, what: &str) {
    let [connection] = story.connections.as_slice() else { panic!("{what}: {story:?}") };
    assert_eq!(connection.client.to_string(), "192.0.2.1:4000", "{what}");
    assert_eq!(connection.directions[0].bytes, 1_000, "{what}");
    assert_eq!(connection.directions[1].bytes, 0, "{what}");
    assert_eq!((connection.start_ns, connection.duration_ns), (1_000_000_000, 7_000_000), "{what}");
    assert_eq!(connection.end.fin_at_ns, [Some(5_000_000), Some(6_000_000)], "{what}");
    assert_eq!(connection.end.fin_acked, [true, true], "{what}");
    let page = text::page(connection);
    assert!(page.contains("the client closed first, at 0.005 s; the server closed at 0.006 s"), "{page}");
}

#[test]
fn every_link_type_byte_order_and_resolution_gives_the_same_story() {
    let packets = transfer(4_000);
    for link in [Link::Raw, Link::Ethernet, Link::Vlan, Link::Cooked, Link::Cooked2, Link::Null] {
        for endianness in [Endianness::Little, Endianness::Big] {
            for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
                for snap in [usize::MAX, 64] {
                    let file = pcap(&packets, link, resolution, endianness, snap);
                    let story = told(&file).expect("a capture");
                    assert_told(&story, &format!("{link:?} {endianness:?} {resolution:?} {snap}"));
                }
            }
        }
    }
}

/// A block of pcapng in little-endian order.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len().next_multiple_of(4) + 12) as u32;
    let mut block = [kind.to_le_bytes(), length.to_le_bytes()].concat();
    block.extend_from_slice(body);
    block.resize(length as usize - 4, 0);
    block.extend_from_slice(&length.to_le_bytes());
    block
}

/// A pcapng whose times have this resolution, with a packet every millisecond.
fn pcapng(packets: &[Tcp], tsresol: Option<u8>, units_per_ms: u64) -> Vec<u8> {
    let mut file =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let mut interface = [&101_u16.to_le_bytes()[..], &[0; 6]].concat();
    if let Some(tsresol) = tsresol {
        interface.extend_from_slice(&[9, 0, 1, 0, tsresol, 0, 0, 0, 0, 0, 0, 0]);
    }
    file.extend(block(1, &interface));
    // What is not known is skipped.
    file.extend(block(0x0bad, &[1, 2, 3, 4]));
    for (place, tcp) in packets.iter().enumerate() {
        let packet = bytes(*tcp, Link::Raw);
        let at = (1_000 + place as u64) * units_per_ms;
        let length = (packet.len() as u32).to_le_bytes();
        let times = [((at >> 32) as u32).to_le_bytes(), (at as u32).to_le_bytes()].concat();
        file.extend(block(6, &[&[0; 4][..], &times, &length, &length, &packet].concat()));
    }
    file
}

#[test]
fn pcapng_has_microseconds_unless_an_interface_says_otherwise() {
    let packets = transfer(4_000);
    for (tsresol, units) in
        [(None, 1_000), (Some(6), 1_000), (Some(9), 1_000_000), (Some(3), 1), (Some(12), 1_000_000_000)]
    {
        let story = told(&pcapng(&packets, tsresol, units)).expect("a capture");
        assert_told(&story, &format!("{tsresol:?}"));
    }
    // 2^-10 s: not quite a millisecond. Both ends are rounded down.
    let story = told(&pcapng(&packets, Some(0x8a), 1)).expect("a capture");
    assert_eq!(story.connections[0].duration_ns, 6_835_937);
}

#[test]
fn a_file_that_is_cut_is_told_up_to_there() {
    for file in [plain(&transfer(4_000)), pcapng(&transfer(4_000), None, 1_000)] {
        for cut in [1, 5, 17, 60, 700] {
            let story = told(&file[..file.len() - cut]).expect("a capture");
            assert!(story.cut_short, "{cut}");
            assert!(text::left_out(&story).contains("ends within a packet"));
            assert_eq!(story.connections.len(), 1);
        }
        assert!(!told(&file).expect("a capture").cut_short);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let error = |file: &[u8]| told(file).expect_err("wrong").to_string();
    assert!(error(b"").contains("the file is empty"));
    assert!(error(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
    assert!(error(b"duration = 3").contains("64 75 72 61"));
    let mut file = plain(&transfer(4_000));
    file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(error(&file), "byte 40: a packet of 4294967295 bytes; at most 16777216 are read");
    let mut file = pcapng(&transfer(4_000), None, 1_000);
    file[52..56].copy_from_slice(&13_u32.to_le_bytes());
    assert!(error(&file).contains("a block of 13 bytes; lengths are multiples of 4"));
}

/// Whatever a file holds, reading it ends.
#[test]
fn broken_bytes_are_no_panic() {
    let files = [plain(&transfer(4_000)), pcapng(&transfer(4_000), None, 1_000)];
    for file in &files {
        for place in 0..file.len() {
            for value in [0, 0x80, 0xff] {
                let mut file = file.clone();
                file[place] = value;
                let _ = told(&file).map(|story| story.connections.iter().map(text::page).count());
            }
        }
    }
}

#[test]
fn connections_beyond_the_limits_are_counted_and_said() {
    let mut limits = Limits::default();
    (limits.open, limits.stories) = (8, 10);
    let mut explainer = Explainer::new(limits);
    let packets: Vec<Tcp> = (4_000..4_100).flat_map(transfer).collect();
    explainer.read(&mut Reader::new(&plain(&packets)[..]).expect("a capture")).expect("whole");
    let story = explainer.finish();
    assert_eq!(story.connections_seen, 100);
    assert_eq!((story.connections.len(), story.left_out), (10, 90));
    assert!(story.evicted > 80, "{}", story.evicted);
    let said = text::left_out(&story);
    assert!(said.contains("90 stories are left out") && said.contains("too many connections"), "{said}");
}

#[test]
fn opening_that_fails_is_named() {
    let story = |packets: &[Tcp]| told(&plain(packets)).expect("a capture").connections.remove(0);
    let all = transfer(4_000);
    assert_eq!(story(&all[..1]).anomalies, [Anomaly::NoAnswer]);
    assert_eq!(story(&all[..2]).anomalies, [Anomaly::HalfOpen]);
    let refused = Tcp { flags: "RA", seq: 0, ack: 100, ..all[1] };
    let connection = story(&[all[0], refused]);
    assert_eq!(connection.anomalies, [Anomaly::Refused]);
    assert!(connection.end.reset.is_some_and(|reset| !reset.by_client));
    // The same ports again are another connection.
    let again: Vec<Tcp> = all.iter().map(|tcp| Tcp { seq: tcp.seq + 90_000, ..*tcp }).collect();
    let again =
        again.iter().map(|tcp| if tcp.ack > 0 { Tcp { ack: tcp.ack + 90_000, ..*tcp } } else { *tcp });
    let both: Vec<Tcp> = all.iter().copied().chain(again).collect();
    assert_eq!(told(&plain(&both)).expect("a capture").connections.len(), 2);
}

#[test]
fn packets_that_the_capture_has_missed_are_no_losses() {
    let mut packets = transfer(4_000);
    packets.remove(3);
    let connection = told(&plain(&packets)).expect("a capture").connections.remove(0);
    let direction = &connection.directions[0];
    assert_eq!((direction.uncaptured, direction.losses.retransmissions), (1_000, 0));
    assert!(
        text::page(&connection)
            .contains("1.00 kB from 192.0.2.1:4000 were acknowledged, but are not in the capture")
    );
}
