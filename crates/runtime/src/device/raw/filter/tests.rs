//! The program in the kernel, on a socket pair whose messages are frames.

use super::programs;
use crate::sys::filter::{Instruction, attach_filter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixDatagram;

const OWN4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);
const OWN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);
const PEER4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 9);

const PORTS: [RangeInclusive<u16>; 2] = [80..=80, 5001..=5003];

struct Filtered {
    near: UnixDatagram,
    far: UnixDatagram,
}

impl Filtered {
    /// For the ports 80 and 5001 to 5003.
    fn new() -> Self {
        Self::with(programs(&[OWN4.into(), OWN6.into()], &PORTS).0)
    }

    fn with(mut program: Vec<Instruction>) -> Self {
        let (near, far) = UnixDatagram::pair().expect("a pair");
        near.set_nonblocking(true).expect("non-blocking");
        attach_filter(&near, &mut program).expect("a program that the kernel accepts");
        Self { near, far }
    }

    fn takes(&self, packet: &[u8]) -> bool {
        let kind: u16 = if packet.first().is_some_and(|octet| octet >> 4 == 6) { 0x86dd } else { 0x0800 };
        self.takes_frame(&[&[2; 12], &kind.to_be_bytes()[..], packet].concat())
    }

    fn takes_frame(&self, frame: &[u8]) -> bool {
        self.far.send(frame).expect("sent");
        let mut received = [0; 2048];
        match self.near.recv(&mut received) {
            Ok(length) => {
                assert_eq!(&received[..length], frame, "nothing is cut off");
                true
            }
            Err(_) => false,
        }
    }
}

/// An IPv4 packet whose header has so many words of options.
fn v4(options: u8, from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 20 + 4 * usize::from(options)];
    (header[0], header[9]) = (0x45 + options, protocol);
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    [&header[..], payload].concat()
}

fn v6(from: Ipv6Addr, to: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; 40];
    (header[0], header[6]) = (0x60, next_header);
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    [&header[..], payload].concat()
}

fn tcp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 16]].concat()
}

fn in_fragment(mut packet: Vec<u8>, offset: u16) -> Vec<u8> {
    // More fragments follow.
    packet[6..8].copy_from_slice(&(0x2000 | offset).to_be_bytes());
    packet
}

#[test]
fn segments_for_own_ports_pass() {
    let filtered = Filtered::new();
    for (port, own) in [
        (80, true),
        (79, false),
        (81, false),
        (5000, false),
        (5001, true),
        (5002, true),
        (5003, true),
        (5004, false),
    ] {
        for options in [0, 1, 10] {
            let packet = v4(options, PEER4, OWN4, 6, &tcp(9, port));
            assert_eq!(filtered.takes(&packet), own, "{port}, {options} words of options");
        }
        assert_eq!(filtered.takes(&v6(PEER6, OWN6, 6, &tcp(9, port))), own, "{port}");
        assert!(!filtered.takes(&v4(0, PEER4, OWN4, 6, &tcp(port, 9))), "the source port does not count");
    }
}

#[test]
fn other_traffic_of_the_host_is_left_to_the_kernel() {
    let filtered = Filtered::new();
    let other4 = Ipv4Addr::new(192, 0, 2, 6);
    let other6 = Ipv6Addr::from_bits(OWN6.to_bits() ^ 1 << 64);
    assert!(!filtered.takes(&v4(0, PEER4, other4, 6, &tcp(9, 80))), "another address");
    assert!(!filtered.takes(&v6(PEER6, other6, 6, &tcp(9, 80))), "another address");
    assert!(!filtered.takes(&v4(0, PEER4, OWN4, 17, &tcp(9, 80))), "UDP");
    assert!(!filtered.takes(&v6(PEER6, OWN6, 17, &tcp(9, 80))), "UDP");
    assert!(!filtered.takes(&v4(0, PEER4, OWN4, 1, &[8, 0, 0, 0, 0, 1, 0, 1])), "a ping");
    assert!(!filtered.takes(&v6(PEER6, OWN6, 58, &[128, 0, 0, 0, 0, 1, 0, 1])), "a ping");
    assert!(!filtered.takes(&v6(PEER6, OWN6, 58, &[135; 32])), "a solicitation");
    assert!(!filtered.takes_frame(&[&[2; 12], &[0x08, 0x06][..], &[0; 46]].concat()), "ARP");
    let whole = v4(0, PEER4, OWN4, 6, &tcp(9, 80));
    for short in [0, 1, 19, 23] {
        assert!(!filtered.takes(&whole[..short]), "{short} bytes");
    }
}

#[test]
fn of_fragments_the_first_has_the_ports() {
    let filtered = Filtered::new();
    assert!(filtered.takes(&in_fragment(v4(0, PEER4, OWN4, 6, &tcp(9, 80)), 0)));
    assert!(!filtered.takes(&in_fragment(v4(0, PEER4, OWN4, 6, &tcp(9, 22)), 0)));
    assert!(filtered.takes(&in_fragment(v4(0, PEER4, OWN4, 6, &tcp(9, 22)), 185)), "data, not ports");
    let fragment = |next_header: u8, offset: u16, payload: &[u8]| {
        let [high, low] = (offset << 3 | 1).to_be_bytes();
        v6(PEER6, OWN6, 44, &[&[next_header, 0, high, low, 0, 0, 0, 7], payload].concat())
    };
    assert!(filtered.takes(&fragment(6, 0, &tcp(9, 80))));
    assert!(!filtered.takes(&fragment(6, 0, &tcp(9, 22))));
    assert!(filtered.takes(&fragment(6, 185, &tcp(9, 22))), "data, not ports");
    assert!(!filtered.takes(&fragment(17, 0, &tcp(9, 80))), "UDP");
}

#[test]
fn icmp_errors_pass_that_quote_own_segments() {
    let filtered = Filtered::new();
    let error4 =
        |kind: u8, quoted: &[u8]| v4(1, PEER4, OWN4, 1, &[&[kind, 4, 0, 0, 0, 0, 5, 0], quoted].concat());
    for kind in [3, 11, 12] {
        for options in [0, 3] {
            assert!(filtered.takes(&error4(kind, &v4(options, OWN4, PEER4, 6, &tcp(80, 9)))), "type {kind}");
            assert!(
                !filtered.takes(&error4(kind, &v4(options, OWN4, PEER4, 6, &tcp(22, 80)))),
                "type {kind}"
            );
        }
    }
    assert!(!filtered.takes(&error4(5, &v4(0, OWN4, PEER4, 6, &tcp(80, 9)))), "a redirect");
    assert!(!filtered.takes(&error4(3, &v4(0, OWN4, PEER4, 17, &tcp(80, 9)))), "about UDP");
    assert!(!filtered.takes(&error4(3, &v4(0, PEER4, OWN4, 6, &tcp(80, 9)))), "about another host's");
    assert!(!filtered.takes(&error4(3, &v4(0, OWN4, PEER4, 6, &[]))), "without ports");
    let error6 =
        |kind: u8, quoted: &[u8]| v6(PEER6, OWN6, 58, &[&[kind, 0, 0, 0, 0, 0, 5, 0], quoted].concat());
    for kind in [1, 2, 3, 4] {
        assert!(filtered.takes(&error6(kind, &v6(OWN6, PEER6, 6, &tcp(5002, 9)))), "type {kind}");
        assert!(!filtered.takes(&error6(kind, &v6(OWN6, PEER6, 6, &tcp(22, 9)))), "type {kind}");
    }
    assert!(!filtered.takes(&error6(2, &v6(OWN6, PEER6, 17, &tcp(80, 9)))), "about UDP");
    assert!(!filtered.takes(&error6(2, &v6(PEER6, OWN6, 6, &tcp(80, 9)))), "about another host's");
}

#[test]
fn over_loopback_nothing_passes_but_errors() {
    let filtered = Filtered::with(programs(&[OWN4.into(), OWN6.into()], &PORTS).1);
    assert!(!filtered.takes(&v4(0, PEER4, OWN4, 6, &tcp(9, 80))));
    assert!(!filtered.takes(&v6(PEER6, OWN6, 6, &tcp(9, 80))));
    assert!(!filtered.takes(&v6(PEER6, OWN6, 60, &[0; 40])));
    let quoted = v4(0, OWN4, PEER4, 6, &tcp(80, 9));
    assert!(filtered.takes(&v4(0, OWN4, OWN4, 1, &[&[3, 1, 0, 0, 0, 0, 0, 0], &quoted[..]].concat())));
    let quoted = v6(OWN6, PEER6, 6, &tcp(80, 9));
    assert!(filtered.takes(&v6(OWN6, OWN6, 58, &[&[1, 3, 0, 0, 0, 0, 0, 0], &quoted[..]].concat())));
}

#[test]
fn extension_headers_are_left_to_the_stack() {
    let filtered = Filtered::new();
    for header in [0, 43, 60] {
        assert!(filtered.takes(&v6(PEER6, OWN6, header, &[0; 40])), "{header}");
    }
}

#[test]
fn the_kernel_takes_the_longest_program() {
    let ports: Vec<_> = (0..32).map(|n| 1_000 + 2 * n..=1_000 + 2 * n).collect();
    let own: [IpAddr; 2] = [OWN4.into(), OWN6.into()];
    let (near, _far) = UnixDatagram::pair().expect("a pair");
    attach_filter(&near, &mut programs(&own, &ports).0).expect("a program that the kernel accepts");
}
