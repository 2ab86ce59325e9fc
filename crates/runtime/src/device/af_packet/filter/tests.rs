//! The program in the kernel, on a socket pair whose messages are frames.

use super::program;
use crate::mac::MacAddress;
use crate::sys::filter::attach_filter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::net::UnixDatagram;

const OWN: MacAddress = MacAddress([0x02, 0, 0, 0, 0x12, 0x34]);
const OTHER: MacAddress = MacAddress([0x02, 0, 0, 0, 0x12, 0x35]);
const GROUP: MacAddress = MacAddress([0x33, 0x33, 0xff, 0, 0, 1]);

struct Filtered {
    near: UnixDatagram,
    far: UnixDatagram,
}

impl Filtered {
    fn new(addresses: Option<&[IpAddr]>) -> Self {
        let (near, far) = UnixDatagram::pair().expect("a pair");
        near.set_nonblocking(true).expect("non-blocking");
        attach_filter(&near, &mut program(OWN, addresses)).expect("a program that the kernel accepts");
        Self { near, far }
    }

    fn takes(&self, frame: &[u8]) -> bool {
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

fn frame(to: MacAddress, kind: u16, packet: &[u8]) -> Vec<u8> {
    [&to.0, &OTHER.0, &kind.to_be_bytes()[..], packet].concat()
}

fn v4(to: MacAddress, protocol: u8, destination: &str) -> Vec<u8> {
    let mut packet = [0; 60];
    (packet[0], packet[9]) = (0x45, protocol);
    packet[16..20].copy_from_slice(&destination.parse::<Ipv4Addr>().expect("an address").octets());
    frame(to, 0x0800, &packet)
}

fn v6(to: MacAddress, next_header: u8, destination: &str) -> Vec<u8> {
    let mut packet = [0; 80];
    (packet[0], packet[6]) = (0x60, next_header);
    packet[24..40].copy_from_slice(&destination.parse::<Ipv6Addr>().expect("an address").octets());
    frame(to, 0x86dd, &packet)
}

fn addresses() -> Vec<IpAddr> {
    ["192.0.2.5", "2001:db8::5", "192.0.2.6", "2001:db8::1:0:0:6"]
        .map(|text| text.parse().expect("an address"))
        .into()
}

#[test]
fn own_packets_pass() {
    let filtered = Filtered::new(Some(&addresses()));
    for protocol in [6, 1, 17, 132] {
        assert!(filtered.takes(&v4(OWN, protocol, "192.0.2.5")), "{protocol}");
        assert!(filtered.takes(&v4(OWN, protocol, "192.0.2.6")), "{protocol}");
    }
    for next_header in [6, 58, 0, 43, 44, 60, 17, 132] {
        assert!(filtered.takes(&v6(OWN, next_header, "2001:db8::5")), "{next_header}");
        assert!(filtered.takes(&v6(OWN, next_header, "2001:db8::1:0:0:6")), "{next_header}");
    }
}

#[test]
fn neighbour_resolution_passes() {
    let filtered = Filtered::new(Some(&addresses()));
    assert!(filtered.takes(&frame(OWN, 0x0806, &[0; 46])));
    assert!(filtered.takes(&frame(MacAddress::BROADCAST, 0x0806, &[0; 46])));
    assert!(!filtered.takes(&frame(OTHER, 0x0806, &[0; 46])));
    assert!(filtered.takes(&v6(GROUP, 58, "ff02::1:ff00:5")));
    assert!(!filtered.takes(&v6(GROUP, 17, "ff02::fb")));
}

#[test]
fn what_is_for_others_is_dropped() {
    let filtered = Filtered::new(Some(&addresses()));
    assert!(!filtered.takes(&v4(OTHER, 6, "192.0.2.5")), "another station");
    assert!(!filtered.takes(&v4(MacAddress::BROADCAST, 6, "192.0.2.5")), "all stations");
    assert!(!filtered.takes(&v4(OWN, 6, "192.0.2.7")), "another address");
    assert!(!filtered.takes(&v4(OWN, 17, "192.0.2.7")), "UDP for another address");
    assert!(!filtered.takes(&v6(OTHER, 6, "2001:db8::5")), "another station");
    assert!(!filtered.takes(&v6(OWN, 17, "2001:db8::7")), "UDP for another address");
    for near in ["2001:db8::4", "2001:db8:1::5", "2001:db9::5", "2001:db8:0:0:1::5", "2001:db8::1:5"] {
        assert!(!filtered.takes(&v6(OWN, 6, near)), "{near}");
    }
    assert!(!filtered.takes(&frame(OWN, 0x8100, &[0; 60])), "a tag inside the frame");
    assert!(!filtered.takes(&frame(OWN, 0x88cc, &[0; 60])), "LLDP");
    for short in [&[][..], &OWN.0, &v4(OWN, 6, "192.0.2.5")[..33]] {
        assert!(!filtered.takes(short), "{} bytes", short.len());
    }
}

#[test]
fn any_address_passes_where_asked_for() {
    let filtered = Filtered::new(None);
    assert!(filtered.takes(&v4(OWN, 6, "198.51.100.9")));
    assert!(filtered.takes(&v6(OWN, 6, "2001:db8:7::9")));
    assert!(!filtered.takes(&v4(OTHER, 6, "198.51.100.9")));
    assert!(!filtered.takes(&v4(OWN, 17, "198.51.100.9")), "that may be the kernel's");
    assert!(!filtered.takes(&v6(OWN, 17, "2001:db8:7::9")), "that may be the kernel's");
}

#[test]
fn many_addresses_are_left_to_the_stack() {
    let many = |count: u32| -> Vec<IpAddr> {
        (0..count).map(|n| Ipv6Addr::from_bits(1 << 120 | u128::from(n)).into()).collect()
    };
    let filtered = Filtered::new(Some(&many(32)));
    assert!(filtered.takes(&v6(OWN, 6, "100::1f")));
    assert!(!filtered.takes(&v6(OWN, 6, "100::20")));
    let filtered = Filtered::new(Some(&many(33)));
    assert!(filtered.takes(&v6(OWN, 6, "100::20")) && filtered.takes(&v6(OWN, 6, "100::21")));
    assert!(!filtered.takes(&v6(OTHER, 6, "100::20")), "another station");
}
