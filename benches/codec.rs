//! Parse and emit of single packets, beside smoltcp's: nanoseconds per packet.
//!
//! Two packets of IPv4: a segment with 1,460 octets of data and timestamps, and a pure ACK with
//! timestamps and three SACK blocks. `verified` and `complete` compute the TCP checksum, `trusted`
//! and `omitted` leave it to a device; the IPv4 header's is computed everywhere.
//!
//! `emit` makes one contiguous packet, because smoltcp can do nothing else; `emit-headers` is what
//! goes to a device that gathers slices: the payload stays where it is.

use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    HeaderBuf, RxChecksum, RxPacket, SackBlocks, TcpFlags, TcpHeader, Timestamps, TxChecksumMode, emit_tcp,
    parse,
};
use core::hint::black_box;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use smoltcp::phy::{Checksum, ChecksumCapabilities};
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
    TcpTimestampRepr,
};

const SRC: Ipv4Address = Ipv4Address::new(192, 0, 2, 1);
const DST: Ipv4Address = Ipv4Address::new(198, 51, 100, 7);
const BLOCKS: [(u32, u32); 3] = [(1_000, 2_460), (6_840, 9_760), (20_000, 21_460)];

/// A packet as both libraries describe it.
struct Case {
    name: &'static str,
    header: TcpHeader<'static>,
    repr: TcpRepr<'static>,
    payload: &'static [u8],
}

fn cases() -> [Case; 2] {
    static DATA: [u8; 1460] = {
        let mut data = [0; 1460];
        let mut at = 0;
        while at < data.len() {
            data[at] = (at * 31 % 251) as u8;
            at += 1;
        }
        data
    };
    let case = |name, payload: &'static [u8], blocks: &[(u32, u32)]| {
        let mut header = TcpHeader::new((SRC, 443).into(), (DST, 50_000).into());
        header.seq = SeqNum(0x1234_5678);
        header.ack = SeqNum(0x9abc_def0);
        header.flags = if payload.is_empty() { TcpFlags::ACK } else { TcpFlags::ACK | TcpFlags::PSH };
        header.window = 501;
        header.options.timestamps = Some(Timestamps { val: 77, ecr: 99 });
        header.options.sack = blocks.iter().map(|(start, end)| (SeqNum(*start), SeqNum(*end))).collect();
        let repr = TcpRepr {
            src_port: 443,
            dst_port: 50_000,
            control: if payload.is_empty() { TcpControl::None } else { TcpControl::Psh },
            seq_number: TcpSeqNumber(0x1234_5678),
            ack_number: Some(TcpSeqNumber(0x9abc_def0u32 as i32)),
            window_len: 501,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: core::array::from_fn(|index| blocks.get(index).copied()),
            timestamp: Some(TcpTimestampRepr::new(77, 99)),
            payload,
        };
        Case { name, header, repr, payload }
    };
    [case("data-1460", &DATA, &[]), case("ack-ts-sack3", &[], &BLOCKS)]
}

fn capabilities(tcp: Checksum) -> ChecksumCapabilities {
    let mut capabilities = ChecksumCapabilities::default();
    capabilities.tcp = tcp;
    capabilities
}

/// Headers and payload in one piece; the packet's length.
fn ours(case: &Case, mode: TxChecksumMode, buf: &mut HeaderBuf, out: &mut [u8; 2048]) -> usize {
    let emitted = emit_tcp(&case.header, [case.payload, &[]], mode, buf).expect("a packet");
    let end = emitted.header_len + case.payload.len();
    out[..emitted.header_len].copy_from_slice(buf.as_slice());
    out[emitted.header_len..end].copy_from_slice(case.payload);
    end
}

fn smoltcps(case: &Case, capabilities: &ChecksumCapabilities, out: &mut [u8; 2048]) -> usize {
    let ip = Ipv4Repr {
        src_addr: SRC,
        dst_addr: DST,
        next_header: IpProtocol::Tcp,
        payload_len: case.repr.buffer_len(),
        hop_limit: 64,
    };
    let end = ip.buffer_len() + case.repr.buffer_len();
    let mut packet = Ipv4Packet::new_unchecked(&mut out[..end]);
    ip.emit(&mut packet, capabilities);
    let mut tcp = TcpPacket::new_unchecked(packet.payload_mut());
    case.repr.emit(&mut tcp, &IpAddress::Ipv4(SRC), &IpAddress::Ipv4(DST), capabilities);
    end
}

fn parse_smoltcp<'a>(packet: &'a [u8], capabilities: &ChecksumCapabilities) -> (Ipv4Repr, TcpRepr<'a>) {
    let ip = Ipv4Packet::new_checked(packet).expect("an IPv4 packet");
    let repr = Ipv4Repr::parse(&ip, capabilities).expect("an IPv4 header");
    let tcp = TcpPacket::new_checked(ip.payload()).expect("a TCP segment");
    let (src, dst) = (IpAddress::Ipv4(repr.src_addr), IpAddress::Ipv4(repr.dst_addr));
    (repr, TcpRepr::parse(&tcp, &src, &dst, capabilities).expect("a TCP header"))
}

fn parsing(criterion: &mut Criterion) {
    for case in cases() {
        let mut bytes = [0; 2048];
        let len = ours(&case, TxChecksumMode::Complete, &mut HeaderBuf::new(), &mut bytes);
        let bytes = &bytes[..len];
        let expected: SackBlocks = case.header.options.sack;
        let mut group = criterion.benchmark_group(format!("parse/{}", case.name));
        group.throughput(Throughput::Elements(1));
        for (name, checksum, tcp) in [
            ("verified", RxChecksum::Verify, Checksum::Both),
            ("trusted", RxChecksum::Trusted, Checksum::None),
        ] {
            let capabilities = capabilities(tcp);
            let theirs = parse_smoltcp(bytes, &capabilities).1;
            assert_eq!(theirs.payload, case.payload);
            assert_eq!(theirs.sack_ranges.iter().flatten().count(), expected.len());
            let packet = RxPacket::new(bytes).with_checksum(checksum);
            group.bench_function(format!("{name}/ackline"), |bencher| {
                bencher.iter(|| parse(black_box(&packet)).expect("a segment"));
            });
            group.bench_function(format!("{name}/smoltcp"), |bencher| {
                bencher.iter(|| parse_smoltcp(black_box(bytes), &capabilities));
            });
        }
    }
}

fn emitting(criterion: &mut Criterion) {
    for case in cases() {
        let (mut buf, mut out) = (HeaderBuf::new(), [0; 2048]);
        for (name, mode, tcp) in [
            ("complete", TxChecksumMode::Complete, Checksum::Both),
            ("omitted", TxChecksumMode::Omit, Checksum::None),
        ] {
            let capabilities = capabilities(tcp);
            let mut group = criterion.benchmark_group(format!("emit/{}", case.name));
            group.throughput(Throughput::Elements(1));
            group.bench_function(format!("{name}/ackline"), |bencher| {
                bencher.iter(|| ours(black_box(&case), mode, &mut buf, black_box(&mut out)));
            });
            group.bench_function(format!("{name}/smoltcp"), |bencher| {
                bencher.iter(|| smoltcps(black_box(&case), &capabilities, black_box(&mut out)));
            });
            group.finish();
            let mut group = criterion.benchmark_group(format!("emit-headers/{}", case.name));
            group.throughput(Throughput::Elements(1));
            group.bench_function(format!("{name}/ackline"), |bencher| {
                bencher.iter(|| {
                    let case = black_box(&case);
                    emit_tcp(&case.header, [case.payload, &[]], mode, black_box(&mut buf))
                });
            });
        }
    }
}

criterion_group!(benches, parsing, emitting);
criterion_main!(benches);
