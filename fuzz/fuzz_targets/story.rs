//! Two connections in a capture, segment by segment.
//!
//! An input is a sequence of segments of eight octets. Each continues its direction, or repeats,
//! skips or goes back; it acknowledges what the other direction has sent, less or more; its options
//! and the time to the next follow. So the explainer sees what no target for files gets to: losses,
//! timeouts, closed windows, reordering. Every story is told, and counts the packets that there
//! were. What one connection becomes as a script of packetdrill is one.
#![cfg_attr(feature = "link", no_main)]

use ackline::core::SeqNum;
use ackline::core::wire::{
    HeaderBuf, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps, TxChecksumMode, emit_tcp,
};
use ackline_drill::{CapturedPacket, Script, record};
use ackline_explain::capture::Frame;
use ackline_explain::{Explainer, Limits, text};
use std::net::SocketAddr;

/// Raw IP: <https://www.tcpdump.org/linktypes.html>.
const LINK_TYPE: u16 = 101;
/// Segments of an input.
const MOST: usize = 200;

ackline_fuzz::target!(run);

/// One direction of a connection.
#[derive(Clone, Copy)]
struct Sender {
    at: SocketAddr,
    next: u32,
}

fn run(octets: &[u8]) {
    let ends: [SocketAddr; 3] =
        ["10.0.0.1:49152", "10.0.0.2:80", "10.0.0.2:81"].map(|end| end.parse().expect("an address"));
    let sender = |end: usize, next| Sender { at: ends[end], next };
    // Sequence numbers that soon wrap, and such that do not.
    let mut connections = [[sender(0, u32::MAX - 5_000), sender(1, 1_000)], [sender(0, 7), sender(2, 9)]];
    let (mut at_ns, mut packets) = (1_000_000, vec![]);
    for piece in octets.chunks_exact(8).take(MOST) {
        let (octets, after_ns) = segment(piece.try_into().expect("eight"), at_ns, &mut connections);
        packets.push(CapturedPacket { at_ns, octets });
        at_ns += after_ns;
    }
    for drawn in [0, 20] {
        let mut limits = Limits::default();
        (limits.drawn, limits.records) = (drawn, 100);
        let mut explainer = Explainer::new(limits);
        for (number, packet) in packets.iter().enumerate() {
            explainer.packet(&Frame {
                at_ns: packet.at_ns,
                link_type: LINK_TYPE,
                interface: 0,
                outbound: None,
                original: u32::try_from(packet.octets.len()).expect("short"),
                data: &packet.octets
                    [..packet.octets.len().min(if number % 3 == 0 { 96 } else { usize::MAX })],
                comment: "",
            });
        }
        let story = explainer.finish();
        assert_eq!((story.packets, story.tcp_packets), (packets.len() as u64, packets.len() as u64));
        assert_eq!(story.connections_seen, story.connections.len() as u64);
        assert!(!text::summary(&story).is_empty());
        for connection in &story.connections {
            assert!(!text::page(connection).is_empty());
        }
        serde_json::to_string(&story).expect("a story can be written");
    }
    if let Ok(script) = record(&packets, None) {
        Script::parse(&script, &[]).unwrap_or_else(|error| panic!("{error}\n{script}"));
    }
}

/// A packet, and nanoseconds to the next one.
fn segment(piece: [u8; 8], at_ns: u64, connections: &mut [[Sender; 2]; 2]) -> (Vec<u8>, u64) {
    let [which, flags, seq, length, ack, window, options, time] = piece;
    let from = usize::from(which & 1);
    let [one, other] = &mut connections[usize::from(which >> 1 & 1)];
    let (sender, peer) = if from == 0 { (one, *other) } else { (other, *one) };
    let mut header = TcpHeader::new(sender.at, peer.at);
    // Control bits: mostly those that segments have.
    header.flags = match flags {
        0..100 => TcpFlags::ACK,
        100..140 => TcpFlags::ACK | TcpFlags::PSH,
        140..160 => TcpFlags::SYN,
        160..180 => TcpFlags::SYN | TcpFlags::ACK,
        180..200 => TcpFlags::FIN | TcpFlags::ACK,
        200..210 => TcpFlags::RST,
        _ => TcpFlags::from_bits(u16::from(flags) << 4 | u16::from(which >> 2)),
    };
    // Whole segments, and some octets.
    let distance = |octet: u8| match octet.cast_signed() {
        small @ -8..=8 => i64::from(small) * 1_448,
        large => i64::from(large) * 97,
    };
    let moved = |from: u32, octet: u8| from.wrapping_add(distance(octet) as u32);
    header.seq = SeqNum(moved(sender.next, seq));
    header.ack = SeqNum(moved(peer.next, ack));
    header.window = if window < 8 { 0 } else { u16::from(window) << 8 };
    header.tos = which >> 6;
    let syn = header.flags.contains(TcpFlags::SYN);
    header.options = TcpOptions::NONE;
    if syn {
        header.options.mss = Some(1_460);
        header.options.window_scale = (options & 1 != 0).then_some(options >> 4);
        header.options.sack_permitted = options & 2 != 0;
    }
    if options & 4 != 0 {
        let val = (at_ns / 1_000_000) as u32;
        header.options.timestamps = Some(Timestamps { val, ecr: val.wrapping_sub(u32::from(options >> 3)) });
    }
    if !syn && options & 8 != 0 {
        let start = moved(peer.next, options >> 4);
        let block = |number: u32| {
            let start = SeqNum(start.wrapping_sub(number * 4_344));
            (start, start + (1_448 * (number + 1)))
        };
        let blocks: Vec<_> = (0..u32::from(options >> 5 & 3)).map(block).collect();
        header.options.sack = SackBlocks::from_slice(&blocks);
    }
    let payload = vec![0; if length < 128 { 0 } else { usize::from(length - 127) * 1_448 / 128 }];
    let mut buf = HeaderBuf::new();
    emit_tcp(&header, [&payload, &[]], TxChecksumMode::Complete, &mut buf).expect("a short packet");
    // What the direction continues with: the end of the segment, if that is behind what was sent.
    let control = u32::from(syn) + u32::from(header.flags.contains(TcpFlags::FIN));
    let end = header.seq.0.wrapping_add(payload.len() as u32 + control);
    if end.wrapping_sub(sender.next).cast_signed() > 0 || syn {
        sender.next = end;
    }
    // From nothing over microseconds to minutes.
    let after_ns = if time == 0 { 0 } else { u64::from(time & 15) << (10 + (time >> 4) * 2) };
    ([buf.as_slice(), &payload].concat(), after_ns)
}
