//! The corpus that fuzzing begins with, `fuzz/corpus/TARGET/seed-NAME`: it is run here, and written
//! anew from here.
//!
//! `ACKLINE_WRITE_CORPUS=1 cargo test --test scripted corpus` writes it: scripts for the target
//! `endpoint` from the table below, and for `parse` the first small packet of each kind that these
//! scripts send, with packets beside TCP that nobody here sends.

use crate::{packet, script};
use ackline::core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, RxChecksum, TcpFlags, Unreachable, emit_icmp,
};
use script::Kind;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

/// Longest input, octets: that of the command in CONTRIBUTING.md.
const MAX_LEN: usize = 600;

type Seeds = BTreeMap<String, Vec<u8>>;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The seeds of a target, by name.
fn checked_in(target: &str) -> Seeds {
    let files = fs::read_dir(folder(target)).expect("a corpus").map(|file| file.expect("readable"));
    let seeds = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?.strip_prefix("seed-")?.to_owned();
        Some((name, fs::read(file.path()).expect("readable")))
    });
    seeds.collect()
}

fn write(target: &str, seeds: &Seeds) {
    fs::create_dir_all(folder(target)).expect("a folder");
    for name in checked_in(target).keys() {
        fs::remove_file(folder(target).join(format!("seed-{name}"))).expect("removed");
    }
    for (name, octets) in seeds {
        fs::write(folder(target).join(format!("seed-{name}")), octets).expect("written");
    }
}

/// The scripts' seeds do what scripts are for, and what they send is what the packets' seeds are.
#[test]
fn the_corpus_reaches_what_it_is_meant_to() {
    if std::env::var_os("ACKLINE_WRITE_CORPUS").is_some() {
        let scripts = scripts();
        write("parse", &packets(&scripts));
        write("endpoint", &scripts);
    }
    let (scripts, packets) = (checked_in("endpoint"), checked_in("parse"));
    assert!(scripts.values().chain(packets.values()).all(|octets| octets.len() <= MAX_LEN));

    let mut kinds = Vec::new();
    let (mut delivering, mut several, mut slow) = (0, 0, 0);
    for octets in scripts.values() {
        let outcome = script::run(octets);
        delivering += usize::from(outcome.read > 0);
        several += usize::from(outcome.streams > 2);
        slow += usize::from(outcome.time.as_millis() >= 200);
        kinds.extend(outcome.packets.into_keys());
    }
    assert!(delivering * 4 > scripts.len() * 3, "{delivering} of {} deliver", scripts.len());
    assert!(several > 0 && slow > scripts.len() / 3, "{several} {slow}");
    let sent = |what: &dyn Fn(&Kind) -> bool| kinds.iter().any(what);
    for v6 in [false, true] {
        for flags in [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST, TcpFlags::ACK] {
            assert!(sent(&|kind| kind.v6 == v6 && kind.flags & flags.bits() != 0), "{v6} {flags:?}");
        }
    }
    assert!(sent(&|kind| kind.sack_blocks > 1) && sent(&|kind| kind.options == 0 && kind.has_data));

    let segments = packets.values().filter(|octets| packet::run(octets)).count();
    assert!(segments > 30 && segments + 10 <= packets.len(), "{segments} of {}", packets.len());
}

/// The first small packets that `scripts` send, of each kind, and others.
fn packets(scripts: &Seeds) -> Seeds {
    let mut kinds = BTreeMap::new();
    for octets in scripts.values() {
        for (kind, packet) in script::run(octets).packets {
            kinds.entry(kind).or_insert(packet);
        }
    }
    let syn = kinds.iter().find(|(kind, _)| kind.flags == TcpFlags::SYN.bits()).expect("a SYN");
    let syn = syn.1.0.clone();
    let mut seeds = Seeds::new();
    for (kind, (octets, checksum)) in kinds {
        let Kind { v6, flags, options, sack_blocks, has_data } = kind;
        let version = if v6 { 6 } else { 4 };
        let data = if has_data { "-data" } else { "" };
        let how = match checksum {
            RxChecksum::Verify => VERIFY,
            RxChecksum::Partial => 1,
            _ => TRUST,
        };
        let name = format!("v{version}-flags{flags:02x}-options{options}-sack{sack_blocks}{data}");
        seeds.insert(name, [&[how, octets.len() as u8 / 2], &octets[..]].concat());
    }
    seeds.extend(other_packets(&syn));
    seeds
}

/// What the first octet of an input for `parse` says: verify checksums, or trust them; make the
/// IPv4 header's right.
const VERIFY: u8 = 0;
const TRUST: u8 = 2;
const MEND: u8 = 4;

/// ICMP, UDP, fragments, extension headers, odd options.
fn other_packets(syn: &[u8]) -> Seeds {
    let mut seeds = Seeds::new();
    let mut add = |name: &str, how: u8, octets: &[u8]| {
        seeds.insert(name.to_owned(), [&[how, 24], octets].concat());
    };
    let v4: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    let v6 = [1, 2].map(|last| IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]));
    for (version, [src, dst]) in [("v4", v4), ("v6", v6)] {
        let kinds = [
            ("ping", IcmpEmit::EchoRequest { ident: 7, seq: 1 }),
            ("pong", IcmpEmit::EchoReply { ident: 7, seq: 1 }),
            ("too-big", IcmpEmit::Error(IcmpErrorKind::PacketTooBig { mtu: 1_280 })),
            ("time-exceeded", IcmpEmit::Error(IcmpErrorKind::TimeExceeded { code: 0 })),
            ("parameter", IcmpEmit::Error(IcmpErrorKind::ParameterProblem { code: 0, pointer: 6 })),
            (
                "unreachable",
                IcmpEmit::Error(IcmpErrorKind::DestinationUnreachable {
                    reason: Unreachable::Other,
                    code: 3,
                }),
            ),
        ];
        for (name, message) in kinds {
            let mut buf = HeaderBuf::new();
            let header = IcmpHeader { src, dst, ttl: 64, message };
            emit_icmp(&header, [syn, &[]], &mut buf).expect("two addresses of one version");
            add(&format!("{version}-icmp-{name}"), VERIFY, &[buf.as_slice(), syn].concat());
        }
    }
    let ipv4 = |protocol: u8, fragment: [u8; 2], options: &[u8], upper: &[u8]| {
        let first = 0x45 + options.len() as u8 / 4;
        let len = (20 + options.len() + upper.len()) as u8;
        let fixed =
            [first, 0, 0, len, 0, 1, fragment[0], fragment[1], 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&fixed, options, upper].concat()
    };
    let ipv6 = |next: u8, upper: &[u8]| {
        let mut header = vec![0x60, 0, 0, 0, 0, upper.len() as u8, next, 64];
        header.extend(
            [1, 2].into_iter().flat_map(|last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
        );
        [&header, upper].concat()
    };
    let tcp = |options: &[u8]| {
        let mut header = vec![0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
        header[12] += (options.len() as u8 / 4) << 4;
        [&header, options, b"data"].concat()
    };
    let (none, udp) = (tcp(&[]), [0, 80, 0, 81, 0, 12, 0, 0, 1, 2, 3, 4]);
    add("v4-udp", TRUST | MEND, &ipv4(17, [0, 0], &[], &udp));
    add("v6-udp", TRUST, &ipv6(17, &udp));
    add("v4-other-protocol", TRUST | MEND, &ipv4(132, [0, 0], &[], &udp));
    add("v4-fragment", TRUST | MEND, &ipv4(6, [0x20, 0], &[], &none));
    add("v4-last-fragment", TRUST | MEND, &ipv4(6, [0, 7], &[], &none));
    add("v4-ip-options", TRUST | MEND, &ipv4(6, [0x40, 0], &[1, 7, 7, 4, 0, 0, 0, 0], &none));
    // Hop-by-hop options, destination options, a routing header without segments left; a fragment.
    let extended =
        [&[60, 0, 1, 4, 0, 0, 0, 0], &[43, 0, 1, 4, 0, 0, 0, 0], &[6, 0, 0, 0, 0, 0, 0, 0], &none[..]];
    add("v6-extension-headers", TRUST, &ipv6(0, &extended.concat()));
    add("v6-fragment", TRUST, &ipv6(44, &[&[6, 0, 0, 1, 0, 0, 0, 9], &none[..]].concat()));
    // Unknown options, a length that cannot be, the end of the list before the end.
    for (name, options) in [
        ("unknown", &[254, 4, 1, 2, 253, 2, 1, 1][..]),
        ("malformed", &[8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 1]),
        ("ended", &[0, 8, 10, 1]),
        ("twice", &[2, 4, 5, 180, 2, 4, 2, 0]),
    ] {
        add(&format!("v4-options-{name}"), TRUST | MEND, &ipv4(6, [0x40, 0], &[], &tcp(options)));
    }
    let mut urgent = tcp(&[]);
    (urgent[13], urgent[19]) = (0x38, 2);
    add("v4-urgent", TRUST | MEND, &ipv4(6, [0x40, 0], &[], &urgent));
    seeds
}

/// Instructions, as [`script`] reads them.
mod asm {
    /// Of the other host: set in any instruction.
    pub(super) const THERE: u8 = 128;
    pub(super) const CONNECT: u8 = 0;
    pub(super) const DELIVER: u8 = 40;
    pub(super) const TIMEOUT: u8 = 100;
    pub(super) const LISTENER: u8 = 38;

    /// All three packets of a handshake.
    pub(super) const OPEN: [u8; 4] = [CONNECT, DELIVER, DELIVER, DELIVER];
    /// Data and ACKs to and fro.
    pub(super) const EXCHANGE: [u8; 6] = [DELIVER; 6];

    /// Sizes: an exponent of 2 in a size's octet.
    pub(super) const KIB: u8 = 10;
    pub(super) const SMALL: u8 = 7;
    pub(super) const LARGE: u8 = 16;

    pub(super) fn write(conn: u8, size: u8) -> [u8; 3] {
        [4, conn, size]
    }
    pub(super) fn write_there(conn: u8, size: u8) -> [u8; 3] {
        [THERE | 4, conn, size]
    }
    pub(super) fn read(conn: u8, size: u8) -> [u8; 3] {
        [20, conn, size]
    }
    pub(super) fn read_there(conn: u8, size: u8) -> [u8; 3] {
        [THERE | 20, conn, size]
    }
    pub(super) fn shut_down(conn: u8) -> [u8; 2] {
        [32, conn]
    }
    pub(super) fn shut_down_there(conn: u8) -> [u8; 2] {
        [THERE | 32, conn]
    }
    pub(super) fn deliver_one(packet: u8) -> [u8; 2] {
        [64, packet]
    }
    pub(super) fn lose(packet: u8) -> [u8; 2] {
        [80, packet]
    }
    pub(super) fn repeat(packet: u8) -> [u8; 2] {
        [84, packet]
    }
    pub(super) fn split(packet: u8) -> [u8; 2] {
        [88, packet]
    }
    pub(super) fn pass_ms(exponent: u8) -> [u8; 2] {
        [96, exponent]
    }
}

/// Names and scripts for the target `endpoint`.
fn scripts() -> Seeds {
    use asm::*;
    // IPv4 or IPv6; then, for each host: link, options of TCP, buffers, policies.
    let [v4, v6] = [1, 0].map(|version| [version, 0, 0, 0, 0, 0, 0, 0, 0]);
    let with = |link: u8, options: u8, buffers: u8, policies: u8| {
        [1, link, options, buffers, policies, link, options, buffers, policies]
    };
    let mut seeds = Seeds::new();
    let mut add = |name: &str, settings: [u8; 9], parts: &[&[u8]]| {
        seeds.insert(name.to_owned(), [&settings, &parts.concat()[..]].concat());
    };
    let both_write = [write(0, SMALL), write_there(0, KIB)].concat();
    let both_close = [&shut_down(0)[..], &EXCHANGE, &shut_down_there(0), &EXCHANGE, &[TIMEOUT; 4]].concat();
    let lossy = [
        &OPEN[..],
        &write(0, LARGE),
        &lose(3),
        &lose(5),
        &EXCHANGE,
        &[TIMEOUT, TIMEOUT],
        &lose(0),
        &EXCHANGE,
        &[TIMEOUT],
        &both_close,
    ]
    .concat();

    add("plain-v4", v4, &[&OPEN, &both_write, &EXCHANGE, &both_close]);
    add("plain-v6", v6, &[&OPEN, &both_write, &EXCHANGE, &both_close]);
    add("plain-without-options", with(0, 7, 0, 0), &[&OPEN, &both_write, &EXCHANGE, &both_close]);
    add("abort-v6", v6, &[&OPEN, &both_write, &EXCHANGE, &[34, 0], &EXCHANGE]);
    add(
        "bulk",
        v4,
        &[&OPEN, &write(0, LARGE), &write_there(0, LARGE), &EXCHANGE, &read_there(0, LARGE), &both_close],
    );
    add(
        "super-packets",
        with(4 | 16, 0, 0, 0),
        &[&OPEN, &write(0, LARGE), &split(0), &EXCHANGE, &split(1), &both_close],
    );
    add("partial-checksums", with(4, 0, 0, 0), &[&OPEN, &both_write, &EXCHANGE, &both_close]);
    add("no-checksums", with(8, 0, 0, 0), &[&OPEN, &both_write, &EXCHANGE, &both_close]);
    add("lost-syn", v4, &[&[CONNECT], &lose(0), &[TIMEOUT], &OPEN[1..], &both_write, &EXCHANGE]);
    add(
        "lost-flight",
        v4,
        &[&OPEN, &write(0, LARGE), &lose(0).repeat(12), &[TIMEOUT; 3], &lose(0), &[TIMEOUT], &EXCHANGE],
    );
    add(
        "lost-ends",
        v4,
        &[
            &OPEN,
            &both_write,
            &shut_down(0),
            &lose(1),
            &[TIMEOUT],
            &shut_down_there(0),
            &lose(0),
            &[TIMEOUT; 6],
        ],
    );
    add(
        "reordered",
        v4,
        &[&OPEN, &write(0, LARGE), &deliver_one(7).repeat(5), &EXCHANGE, &deliver_one(3), &EXCHANGE],
    );
    add(
        "repeated",
        v4,
        &[&OPEN, &write(0, LARGE), &repeat(0).repeat(4), &EXCHANGE, &repeat(1), &EXCHANGE, &both_close],
    );
    for (name, options) in [
        ("no-sack", 1),
        ("no-timestamps", 2),
        ("no-window-scale", 4),
        ("nothing", 7),
        ("dupack", 128),
        ("dupack-bare", 131),
        ("few-ranges", 64),
        ("bare", 0xff),
    ] {
        add(&format!("lossy-{name}"), with(0, options, 0, 0), &[&lossy]);
    }
    for policies in (0..12).map(|number| number * 21) {
        add(&format!("lossy-policies-{policies:03}"), with(0, 0, 0, policies), &[&lossy]);
    }
    let small = with(0, 0, 2 | 2 << 2, 0);
    let zero_window = [
        &OPEN[..],
        &write(0, LARGE),
        &EXCHANGE,
        &[TIMEOUT; 3],
        &read_there(0, SMALL),
        &EXCHANGE,
        &[TIMEOUT, TIMEOUT],
    ];
    add("zero-window", small, &[&zero_window.concat(), &read_there(0, LARGE), &EXCHANGE, &both_close]);
    add(
        "zero-window-closed",
        small,
        &[&zero_window.concat(), &shut_down(0), &EXCHANGE, &read_there(0, LARGE), &EXCHANGE],
    );
    add(
        "half-closed",
        v4,
        &[
            &OPEN,
            &shut_down(0),
            &EXCHANGE,
            &write_there(0, LARGE),
            &EXCHANGE,
            &read(0, LARGE),
            &shut_down_there(0),
            &EXCHANGE,
        ],
    );
    add("closed-at-once", v4, &[&OPEN, &shut_down(0), &shut_down_there(0), &EXCHANGE, &[TIMEOUT; 5]]);
    add("released-unread", v4, &[&OPEN, &write_there(0, KIB), &EXCHANGE, &[35, 0], &EXCHANGE]);
    add("nobody-listens", v4, &[&[LISTENER], &[LISTENER | THERE], &OPEN, &[THERE], &EXCHANGE]);
    add(
        "listens-again",
        v4,
        &[
            &[CONNECT, DELIVER, LISTENER | THERE, DELIVER],
            &EXCHANGE,
            &[LISTENER | THERE],
            &OPEN,
            &both_write,
            &EXCHANGE,
        ],
    );
    add(
        "cork",
        v4,
        &[
            &OPEN,
            &[37, 0, 0, 1],
            &both_write,
            &EXCHANGE,
            &[TIMEOUT],
            &[37, 0, 1, 1],
            &[37, 0, 0, 0],
            &both_write,
            &EXCHANGE,
        ],
    );
    add(
        "full-device",
        v4,
        &[&OPEN, &[112, 0, LARGE, 2], &EXCHANGE, &[113, 0, KIB, 0], &EXCHANGE, &both_close],
    );
    add(
        "other-policies",
        v4,
        &[&OPEN, &write(0, LARGE), &[DELIVER], &[39, 0, 77], &EXCHANGE, &[39, 0, 150], &lose(0), &EXCHANGE],
    );
    add(
        "shaped",
        with(0, 0, 0, 200),
        &[&OPEN, &write(0, LARGE), &[DELIVER, TIMEOUT, DELIVER, TIMEOUT], &EXCHANGE, &both_close],
    );
    add(
        "idle",
        v4,
        &[
            &OPEN,
            &both_write,
            &EXCHANGE,
            &pass_ms(13),
            &both_write,
            &EXCHANGE,
            &pass_ms(16),
            &write(0, LARGE),
            &EXCHANGE,
        ],
    );
    let four = [&OPEN[..], &OPEN, &[CONNECT | THERE, DELIVER, DELIVER], &OPEN].concat();
    let all_write: Vec<u8> =
        (0..4).flat_map(|conn| [write(conn, KIB), write_there(conn, SMALL)].concat()).collect();
    add("four-connections", v4, &[&four, &all_write, &EXCHANGE, &lose(2), &EXCHANGE, &both_close]);
    // Sequence number, acknowledgment, flags, window, options: one octet of a packet under way is
    // another.
    for (name, place) in [("seq", 4), ("ack", 8), ("flags", 13), ("window", 14), ("options", 22)] {
        let forged = [&[116, 0, 0, place, 2, 0][..], &EXCHANGE, &[117, 1, 0, place, 64, 1]].concat();
        add(&format!("forged-{name}"), v4, &[&OPEN, &write(0, KIB), &forged, &EXCHANGE, &both_close]);
    }
    for (name, parts) in [
        ("too-big", [0, 0, 10]),
        ("time-exceeded", [0, 1, 0]),
        ("parameter", [0, 2, 0]),
        ("unreachable", [3, 3, 0]),
    ] {
        add(
            &format!("icmp-{name}"),
            v4,
            &[&OPEN, &write(0, LARGE), &[120, 0], &parts, &EXCHANGE, &both_close],
        );
    }
    add("icmp-for-a-syn", v4, &[&[CONNECT], &[120, 0, 3, 3], &OPEN[1..], &both_write, &EXCHANGE]);
    let noise: Vec<u8> = (0..60).map(|n: u8| n.wrapping_mul(37)).collect();
    add("noise", v4, &[&OPEN, &[121, 60], &noise, &both_write, &[122, 0, 4], &EXCHANGE, &both_close]);
    seeds
}
