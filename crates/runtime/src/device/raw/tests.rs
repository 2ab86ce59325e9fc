//! What the device sends and refuses, seen from the other end of a veth pair.

use super::{Firewall, Raw, RawConfig};
use crate::device::interface::bpf::KEEP;
use crate::device::interface::frames::{self, Frames};
use crate::device::{Device, OutgoingPacket, TxChecksum};
use crate::error::Error;
use crate::netlink::{InterfaceAddress, Netlink};
use crate::netns::Namespace;
use crate::sys::packet as sys;
use crate::testing::isolated;
use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::time::Duration;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
/// Nobody has it.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 9);
const PORT: u16 = 7_000;
const SIZE: usize = 1_000;
const PARTIAL: TxChecksum = TxChecksum::Partial { start: 20, offset: 16 };

/// A device on `near0` of this namespace.
fn open(configure: impl FnOnce(RawConfig) -> RawConfig) -> Result<Raw, Error> {
    let config = RawConfig::new("near0").address(OWN.into()).ports(PORT..=PORT).firewall(Firewall::Installed);
    Raw::open(&configure(config))
}

/// Two namespaces with an address on the near side, and frames at the far one.
struct World {
    there: Namespace,
    far: Frames,
}

impl World {
    fn new() -> Result<Self, Error> {
        let there =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        let mut netlink = Netlink::open()?;
        netlink.add_veth("near0", "far0", &there)?;
        let near = netlink.interface("near0")?.index;
        netlink.add_address(near, InterfaceAddress::network("10.79.0.2/24".parse().expect("a network")))?;
        netlink.set_up(near)?;
        let far = there.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface("far0")?.index;
            netlink.set_up(index)?;
            let fd = frames::open(&mut [KEEP], 4 << 20)?;
            sys::bind(&fd, index).map_err(Error::on("bind a packet socket"))?;
            Ok::<_, Error>(Frames::new(fd, 16))
        })??;
        Ok(Self { there, far })
    }

    /// The next segment of TCP that arrives at the far side: its sequence number and data.
    async fn segment(&mut self) -> (u32, Vec<u8>) {
        loop {
            match self.far.receive() {
                Ok(slot) => {
                    let frame = slot.map(|slot| self.far.frame(slot)).unwrap_or_default();
                    if frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&6) {
                        let number = frame[38..42].try_into().expect("four bytes");
                        return (u32::from_be_bytes(number), frame[54..].to_vec());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|cx| self.far.waiting().poll_readable(cx)).await.expect("it lives");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The headers of a segment to nobody.
fn headers(from: Ipv4Addr, port: u16, protocol: u8, number: u32) -> [u8; 40] {
    let mut headers = [0; 40];
    (headers[0], headers[8], headers[9]) = (0x45, 64, protocol);
    headers[12..16].copy_from_slice(&from.octets());
    headers[16..20].copy_from_slice(&NOBODY.octets());
    headers[20..22].copy_from_slice(&port.to_be_bytes());
    headers[22..24].copy_from_slice(&9u16.to_be_bytes());
    headers[24..28].copy_from_slice(&number.to_be_bytes());
    (headers[32], headers[33]) = (0x50, 0x10);
    headers
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.expect("in a minute") })
}

#[test]
fn nothing_leaves_from_what_is_the_kernels() {
    isolated("device::raw::tests::nothing_leaves_from_what_is_the_kernels", || {
        let _world = World::new()?;
        let mut device = open(|config| config)?;
        let mut refused = |headers: &[u8]| {
            let outcome = device.try_send(&OutgoingPacket::whole(headers).with_checksum(PARTIAL));
            outcome.is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput)
        };
        assert!(!refused(&headers(OWN, PORT, 6, 1)), "its own");
        assert!(refused(&headers(OWN, 22, 6, 1)), "a port of the kernel's");
        assert!(refused(&headers(Ipv4Addr::new(10, 79, 0, 3), PORT, 6, 1)), "another address");
        assert!(refused(&headers(OWN, PORT, 17, 1)), "UDP");
        for short in [0, 1, 19, 21] {
            assert!(refused(&headers(OWN, PORT, 6, 1)[..short]), "{short} bytes");
        }
        assert_eq!((device.stats().tx_packets, device.stats().tx_errors), (1, 7));
        Ok(())
    });
}

#[test]
fn what_finds_no_room_leaves_in_order() {
    isolated("device::raw::tests::what_finds_no_room_leaves_in_order", || {
        let mut world = World::new()?;
        // Packets for a neighbour that is being asked for wait, for longer than this test takes.
        std::fs::write("/proc/sys/net/ipv4/neigh/near0/mcast_solicit", "200").expect("the namespace's own");
        let mut device = open(|mut config| {
            config.send_buffer = 32 << 10;
            config
        })?;
        let data: Vec<u8> = (0..40 * SIZE).map(|at| (at / 7) as u8).collect();
        let size = NonZeroU16::new(SIZE as u16);
        let mut taken = 0;
        while taken < 10 {
            let number = taken * data.len() as u32;
            match device.try_send(
                &OutgoingPacket::new(&headers(OWN, PORT, 6, number), [&data[..9_000], &data[9_000..]])
                    .with_segment_size(size)
                    .with_checksum(PARTIAL),
            ) {
                Ok(()) => taken += 1,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                    break;
                }
            }
        }
        assert!((1..10).contains(&taken), "{taken}: a part of a super-packet found room");
        let far = world.there.run(|| Netlink::open()?.interface("far0"))??;
        let mut netlink = Netlink::open()?;
        let near = netlink.interface("near0")?.index;
        netlink.add_neighbour(near, NOBODY.into(), far.mac.expect("an Ethernet"))?;
        block_on(async {
            poll_fn(|cx| device.poll_writable(cx)).await.expect("it lives");
            let mut expected = 0;
            for _ in 0..taken * 40 {
                let (number, bytes) = world.segment().await;
                assert_eq!(number, expected, "in order");
                let at = number as usize % data.len();
                assert!(bytes == data[at..at + SIZE], "segment {number}: {} bytes", bytes.len());
                expected += SIZE as u32;
            }
            // There is room again.
            let sent = device.try_send(
                &OutgoingPacket::new(&headers(OWN, PORT, 6, expected), [&data[..SIZE], &[]])
                    .with_checksum(PARTIAL),
            );
            sent.expect("sent");
            assert_eq!(world.segment().await.0, expected);
        });
        Ok(())
    });
}

#[test]
fn settings_that_cannot_be_are_refused() {
    isolated("device::raw::tests::settings_that_cannot_be_are_refused", || {
        let _world = World::new()?;
        let why = |config: RawConfig| match Raw::open(&config) {
            Err(Error::BadConfig { what, why }) => format!("{what}: {why}"),
            other => panic!("{other:?}"),
        };
        let config = || RawConfig::new("near0");
        assert!(why(config()).contains("give ranges"));
        assert!(why(config().ports(0..=5)).contains("0-5 is no range"));
        #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
        let reversed = 9..=5;
        assert!(why(config().ports(reversed)).contains("9-5 is no range"));
        assert!(why(config().ports(5..=9).ports(9..=9)).contains("5-9 and 9 have ports in common"));
        assert!(why(config().free_ports(5_000)).contains("0 to 4536"));
        assert!(why(config().ports(5_001..=5_001).mtu(60)).contains("too few"));
        let strange = config().ports(5_001..=5_001).address(NOBODY.into());
        assert!(why(strange).contains("10.79.0.9 is none of those of near0: 10.79.0.2"));
        let two = config().ports(5_001..=5_001).address(OWN.into()).address(NOBODY.into());
        assert!(why(two).contains("only one per IP version"));
        Ok(())
    });
}

#[test]
fn free_ports_are_in_a_row_and_those_of_nobody() {
    isolated("device::raw::tests::free_ports_are_in_a_row_and_those_of_nobody", || {
        let _world = World::new()?;
        let mut devices = Vec::new();
        for _ in 0..3 {
            devices.push(open(|config| RawConfig { ports: vec![], ..config }.free_ports(100))?);
        }
        let mut all: Vec<u16> = devices.iter().flat_map(|device| device.local_ports()).flatten().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 300, "none twice");
        assert!(all[0] >= 61_000);
        let too_many = open(|config| RawConfig { ports: vec![], ..config }.free_ports(4_500)).map(drop);
        assert!(matches!(too_many, Err(Error::NoFreePorts { count: 4_500, .. })), "{too_many:?}");
        // Those of the configuration are for connections if there are no others.
        let device = open(|config| config)?;
        assert_eq!(device.local_ports(), Some(PORT..=PORT));
        Ok(())
    });
}
