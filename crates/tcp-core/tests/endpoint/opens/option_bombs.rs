//! Forty octets of options that mean nothing, say something twice, or have lengths that cannot be.

use crate::net::{A, host_config, socket};
use crate::opens::half_open::{ACK, Bench, IRS, Segment, bytes, peer, reply, syn};
use ackline_tcp_core::wire::{RxChecksum, RxPacket, TcpFlags, TcpOptions, Timestamps};
use ackline_tcp_core::{AcceptConfig, Ingested, State};

/// Octets of options in each segment.
const AREA: usize = 40;
/// Headers of IPv4 and TCP, without options.
const HEADERS: usize = 40;
/// The upper half of this octet is the data offset.
const DATA_OFFSET: usize = 20 + 12;

const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// `option`, as often as it fits, and zeros.
fn repeated(option: &[u8]) -> [u8; AREA] {
    let mut area = [0; AREA];
    for chunk in area.chunks_exact_mut(option.len()) {
        chunk.copy_from_slice(option);
    }
    area
}

fn bombs() -> Vec<[u8; AREA]> {
    let mut bombs = vec![
        [NOP; AREA],
        [0xff; AREA],
        repeated(&[254, 2]),
        // Lengths that are too small, too large for what is left, and wrong for the kind.
        repeated(&[253, 0]),
        repeated(&[253, 1]),
        repeated(&[253, 41]),
        repeated(&[MSS, 3, 0]),
        repeated(&[SACK, 9, 1, 2, 3, 4, 5, 6, 7]),
        repeated(&[TIMESTAMPS, 4, 0, 0]),
        // Values at their ends, time and again.
        repeated(&[MSS, 4, 0, 0]),
        repeated(&[MSS, 4, 0, 1]),
        repeated(&[MSS, 4, 0xff, 0xff]),
        repeated(&[WINDOW_SCALE, 3, 255]),
        repeated(&[SACK, 10, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        repeated(&[TIMESTAMPS, 10, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    ];
    // Each kind with each length, in front of octets that look like options.
    for kind in 2..=36 {
        bombs.extend([2, 3, 4, 6, 10, 18, 34, 40].map(|length| {
            let mut area = repeated(&[MSS, 4, 0, 7]);
            (area[0], area[1]) = (kind, length);
            area
        }));
    }
    bombs
}

/// The segment with `area` as its options.
fn armed(segment: &Segment<'_>, area: &[u8; AREA]) -> Vec<u8> {
    let data = [area, segment.data].concat();
    let mut packet = bytes(socket(A, 80), &Segment { options: TcpOptions::NONE, data: &data, ..*segment });
    assert_eq!(packet.len(), HEADERS + data.len());
    packet[DATA_OFFSET] = 15 << 4;
    packet
}

fn ingest(bench: &mut Bench, packet: &[u8]) -> Ingested {
    // What was moved across the end of the header leaves the sum of the data offset.
    bench.endpoint.ingest(bench.now, RxPacket::new(packet).with_checksum(RxChecksum::Trusted))
}

#[test]
fn any_options_of_a_syn_lead_to_a_usable_connection() {
    let mut bench = Bench::with(host_config(A), AcceptConfig::default());
    for (number, area) in (1..).zip(bombs()) {
        assert_eq!(ingest(&mut bench, &armed(&syn(peer(number)), &area)), Ingested::HalfOpen, "{area:?}");
        let sent = bench.drain();
        assert_eq!((sent.len(), sent[0].flags), (1, TcpFlags::SYN.union(ACK)), "{area:?}");
        let mut answer = reply(&sent[0], ACK, &[]);
        // The peer's clock goes on from what the SYN says.
        let timestamps = sent[0].options.timestamps;
        answer.options.timestamps =
            timestamps.map(|ts| Timestamps { val: ts.ecr.wrapping_add(1), ecr: ts.val });
        let (ingested, _) = bench.arrive(&answer);
        let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?} after {area:?}") };
        let info = bench.endpoint.conn(conn).unwrap().info();
        assert!(info.snd_mss >= 36, "segments of {} octets after {area:?}", info.snd_mss);
        assert!(info.wscale.is_none_or(|(peer, _)| peer <= 14), "{:?} after {area:?}", info.wscale);
    }
}

#[test]
fn any_options_of_data_cost_nothing_and_hide_nothing() {
    let mut bench = Bench::with(host_config(A), AcceptConfig::default());
    // Without timestamps, which would have to be on every segment (RFC 7323, section 3.2).
    let plain = TcpOptions { sack_permitted: true, ..TcpOptions::NONE };
    let (_, sent) = bench.arrive(&Segment { options: plain, ..syn(peer(1)) });
    let (ingested, _) = bench.arrive(&reply(&sent[0], ACK, &[]));
    let Ingested::Accepted(conn) = ingested else { panic!("{ingested:?}") };
    let before = bench.endpoint.conn(conn).unwrap().info();
    let bombs = bombs();
    for round in 0..10 {
        for (at, area) in (0..).zip(&bombs) {
            let seq = IRS + 1 + round * bombs.len() as u32 + at;
            let data = [at as u8];
            ingest(&mut bench, &armed(&Segment { seq, ..reply(&sent[0], ACK, &data) }, area));
            bench.drain();
            let mut byte = [0; 2];
            let read = bench.endpoint.conn(conn).unwrap().read(bench.now, &mut byte);
            assert_eq!((read, byte[0]), (Ok(1), data[0]), "{area:?}");
        }
    }
    let info = bench.endpoint.conn(conn).unwrap().info();
    assert_eq!((info.state, info.snd_mss, info.wscale), (State::Established, before.snd_mss, before.wscale));
    assert_eq!((info.sacked, info.ooo_bytes, info.unacked), (0, 0, 0));
    // The receive buffer that the data needed, and no more.
    assert!(info.memory <= before.memory + 512, "{} and then {} bytes", before.memory, info.memory);
}
