//! Frames as they come over a wire, from a packet socket at the other end of a veth pair.

use super::neighbours::NeighbourConfig;
use super::{AfPacket, AfPacketConfig};
use crate::device::ethernet::{Wire as _, frame};
use crate::device::{Device, OutgoingPacket, RxChecksum};
use crate::error::Error;
use crate::mac::MacAddress;
use crate::netlink::Netlink;
use crate::netns::Namespace;
use crate::sys::packet as sys;
use crate::testing::isolated;
use crate::timer;
use ackline_tcp_core::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use std::io;

/// The stack's address in every frame: 192.0.2.5.
const OWN: [u8; 4] = [192, 0, 2, 5];
const PEER: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0x99]);

struct Wire {
    device: AfPacket,
    /// The other end.
    far: OwnedFd,
    mac: MacAddress,
}

impl Wire {
    fn new(configure: impl FnOnce(AfPacketConfig) -> AfPacketConfig) -> Result<Self, Error> {
        let there =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        Netlink::open()?.add_veth("near0", "far0", &there)?;
        let up = |name: &str| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface(name)?.index;
            // The kernel's own multicast is not to be in the way.
            netlink.make_quiet(index)?;
            netlink.set_up(index)?;
            netlink.interface(name)
        };
        let far = there.run(|| {
            let interface = up("far0")?;
            let far = sys::open().map_err(Error::on("open a packet socket"))?;
            sys::set_option(&far, libc::PACKET_IGNORE_OUTGOING, 1)
                .map_err(Error::on("ignore what is sent"))?;
            sys::bind(&far, interface.index).map_err(Error::on("bind a packet socket"))?;
            Ok::<_, Error>(far)
        })??;
        let mac = up("near0")?.mac.expect("an Ethernet interface");
        let mut resolution = NeighbourConfig::default();
        (resolution.claim.probes, resolution.claim.announcements) = (0, 0);
        let config = AfPacketConfig::new("near0").address("192.0.2.5/24".parse().expect("a network"));
        let config = config.resolution(resolution).neighbour([192, 0, 2, 9].into(), PEER);
        // Until the kernel has noticed that both ends are up, frames get lost, one after the other.
        let mut wire = Self { device: AfPacket::open(&config)?, far, mac };
        let marker = packet(21);
        while wire.receive_within(Duration::from_millis(20)).is_none() {
            wire.send(&untagged(&marker));
        }
        while wire.receive_within(Duration::from_millis(20)).is_some() {}
        while wire.arrived().is_none() {
            wire.device.try_send(&OutgoingPacket::whole(&leaving(40))).expect("sent");
        }
        while wire.arrived().is_some() {}
        wire.device = AfPacket::open(&configure(config))?;
        Ok(wire)
    }

    /// Sends a frame to the stack whose bytes behind the two addresses are `rest`.
    fn send(&self, rest: &[u8]) {
        let frame = [&self.mac.0, &PEER.0, rest].concat();
        rustix::net::send(&self.far, &frame, SendFlags::empty()).expect("sent");
    }

    /// The next packet that the device receives within `time`. On a busy machine a veth delivers
    /// some time after the send.
    fn receive_within(&mut self, time: Duration) -> Option<Vec<u8>> {
        let end = timer::now() + time;
        while timer::now() < end {
            match self.device.try_recv() {
                Ok(packet) => {
                    assert_eq!((packet.segment_size, packet.checksum), (None, RxChecksum::Verify));
                    return Some(packet.head.to_vec());
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            self.device.ethernet.wire.wait_until(end).expect("the socket lives");
        }
        None
    }

    /// The next packet, which surely comes.
    fn receive(&mut self) -> Vec<u8> {
        self.receive_within(Duration::from_secs(10)).expect("a packet within ten seconds")
    }

    /// The next frame at the other end.
    fn arrived(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 70_000];
        let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        poll(&mut [PollFd::new(&self.far, PollFlags::IN)], Some(&wait)).expect("a socket");
        let (length, _) = rustix::net::recv(&self.far, &mut frame[..], RecvFlags::empty()).ok()?;
        frame.truncate(length);
        Some(frame)
    }
}

/// An IPv4 packet for the stack with a total length of `length`.
fn packet(length: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 9];
    packet.extend(OWN);
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.resize(usize::from(length).max(20), 0xda);
    packet
}

/// An IPv4 packet of the stack's to the peer.
fn leaving(length: u16) -> Vec<u8> {
    let mut packet = packet(length);
    packet[12..16].copy_from_slice(&OWN);
    packet[16..20].copy_from_slice(&[192, 0, 2, 9]);
    packet
}

const IPV4: [u8; 2] = [0x08, 0x00];

fn tagged(vlan: u16, inner: &[u8]) -> Vec<u8> {
    // Priority 5 above the VLAN's number.
    [&[0x81, 0x00], &(0xa000 | vlan).to_be_bytes()[..], inner].concat()
}

fn untagged(packet: &[u8]) -> Vec<u8> {
    [&IPV4, packet].concat()
}

#[test]
fn the_ethernet_headers_of_packets_can_be_seen() {
    isolated("device::af_packet::tests::the_ethernet_headers_of_packets_can_be_seen", || {
        let mut wire = Wire::new(|config| config)?;
        let own = wire.mac;
        wire.send(&untagged(&packet(100)));
        let end = timer::now() + Duration::from_secs(10);
        loop {
            match wire.device.try_recv_with_link() {
                Ok((link, received)) => {
                    assert_eq!(
                        (link, received.head),
                        (&frame::header(own, PEER, &packet(100))[..], &packet(100)[..])
                    );
                    break;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            assert!(timer::now() < end, "a packet within ten seconds");
            wire.device.ethernet.wire.wait_until(end).expect("the socket lives");
        }
        wire.device.try_send(&OutgoingPacket::whole(&leaving(100))).expect("sent");
        assert_eq!(wire.device.sent_link(), frame::header(PEER, own, &leaving(100)));
        assert_eq!(wire.arrived().expect("a frame")[..14], *wire.device.sent_link());
        // The station of this one is not known.
        let mut unknown = leaving(100);
        unknown[19] = 10;
        wire.device.try_send(&OutgoingPacket::whole(&unknown)).expect("kept");
        assert_eq!(wire.device.sent_link(), frame::header(MacAddress::default(), own, &unknown));
        Ok(())
    });
}

#[test]
fn frames_of_another_vlan_are_not_taken() {
    isolated("device::af_packet::tests::frames_of_another_vlan_are_not_taken", || {
        let mut wire = Wire::new(|config| config)?;
        let plain = untagged(&packet(100));
        for vlan in [1, 5, 4094] {
            wire.send(&tagged(vlan, &plain));
        }
        wire.send(&tagged(0, &tagged(5, &plain)));
        // A priority without a VLAN: IEEE 802.1Q, section 9.6.
        wire.send(&tagged(0, &untagged(&packet(200))));
        assert_eq!(wire.receive(), packet(200), "what came before it was dropped");
        wire.send(&plain);
        assert_eq!(wire.receive(), packet(100));
        assert_eq!(wire.device.stats().rx_packets, 2);
        assert_eq!(wire.device.stats().rx_malformed, 0);
        Ok(())
    });
}

#[test]
fn padding_is_cut_off_and_lies_are_counted() {
    isolated("device::af_packet::tests::padding_is_cut_off_and_lies_are_counted", || {
        let mut wire = Wire::new(|config| config)?;
        let padded = [untagged(&packet(40)), vec![0xee; 6]].concat();
        wire.send(&padded);
        assert_eq!(wire.receive(), packet(40));
        let mut longer = packet(100);
        longer[3] = 101;
        wire.send(&untagged(&longer));
        wire.send(&untagged(&packet(19)));
        wire.send(&untagged(&packet(100)[..60]));
        wire.send(&untagged(&packet(20)));
        assert_eq!(wire.receive(), packet(20), "the device goes on");
        assert_eq!(wire.device.stats().rx_malformed, 3);
        assert_eq!(wire.device.stats().rx_packets, 2);
        Ok(())
    });
}

#[test]
fn frames_come_in_order_in_batches_of_any_size() {
    isolated("device::af_packet::tests::frames_come_in_order_in_batches_of_any_size", || {
        for batch in [1, 2, 64] {
            let mut wire = Wire::new(|mut config| {
                config.receive_batch = batch;
                config
            })?;
            let lengths = [1500, 40, 700, 20, 1500, 1499, 41];
            for length in lengths {
                wire.send(&untagged(&packet(length)));
            }
            for length in lengths {
                let received = wire.receive();
                assert!(
                    received == packet(length),
                    "{} bytes, not {length}, in batches of {batch}",
                    received.len()
                );
            }
            Netlink::open()?.interface("near0").and_then(|near| Netlink::open()?.remove(near.index))?;
        }
        Ok(())
    });
}

#[test]
fn what_finds_no_room_in_the_kernel_is_counted() {
    isolated("device::af_packet::tests::what_finds_no_room_in_the_kernel_is_counted", || {
        let mut wire = Wire::new(|mut config| {
            config.receive_buffer = 8 << 10;
            config
        })?;
        for _ in 0..100 {
            wire.send(&untagged(&packet(1500)));
        }
        let mut received = 0;
        while wire.receive_within(Duration::from_millis(300)).is_some() {
            received += 1;
        }
        assert!(received < 100, "the buffer was to be too small");
        assert_eq!(wire.device.stats().rx_kernel_drops, 100 - received);
        assert_eq!(wire.device.stats().rx_kernel_drops, 100 - received, "asking changes nothing");
        Ok(())
    });
}

#[test]
fn a_packet_leaves_in_a_frame_to_its_neighbour() {
    isolated("device::af_packet::tests::a_packet_leaves_in_a_frame_to_its_neighbour", || {
        let mut wire = Wire::new(|config| config.qdisc_bypass())?;
        let out = leaving(60);
        let sent = wire.device.try_send(&OutgoingPacket::new(&out[..40], [&out[40..45], &out[45..]]));
        sent.expect("sent");
        let expected = [&PEER.0, &wire.mac.0, &IPV4[..], &out].concat();
        let arrived = (0..100).find_map(|_| wire.arrived());
        assert_eq!(arrived, Some(expected));
        let sent = wire.device.try_send(&OutgoingPacket::new(&out[..40], [&[0; 1461], &[]]));
        assert_eq!(sent.expect_err("larger than the MTU").kind(), io::ErrorKind::InvalidInput);
        Ok(())
    });
}
