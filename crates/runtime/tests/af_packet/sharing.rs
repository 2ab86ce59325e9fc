//! An interface that the stack shares with the kernel of its own host.

use crate::transfer::transfers;
use crate::world::{NEAR, PORT, STACK4, World, block_on};
use ackline_runtime::device::Device;
use ackline_runtime::device::af_packet::AfPacket;
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::testing::isolated;
use ackline_runtime::{Error, MacAddress};
use std::future::poll_fn;
use std::io;
use std::net::TcpStream as KernelStream;
use std::time::Duration;

/// What the device receives within a quarter of a second, in which the kernel tries to open a
/// connection to the stack.
fn knock(world: &World, device: &mut AfPacket) -> Result<u64, Error> {
    let before = device.stats().rx_packets;
    std::thread::scope(|scope| {
        let knocking = scope.spawn(|| {
            world.there.run(|| {
                KernelStream::connect_timeout(&(STACK4, PORT).into(), Duration::from_millis(200)).is_ok()
            })
        });
        block_on(async {
            let receive = async {
                loop {
                    match device.try_recv() {
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            poll_fn(|cx| device.poll_readable(cx)).await.expect("the device lives");
                        }
                        Err(error) => panic!("receive: {error}"),
                    }
                }
            };
            let _: Result<(), _> = tokio::time::timeout(Duration::from_millis(250), receive).await;
        });
        assert!(!knocking.join().expect("no panic")?, "nobody answers");
        Ok(())
    })?;
    Ok(device.stats().rx_packets - before)
}

#[test]
fn a_host_that_forwards_leaves_a_station_of_ones_own_alone() {
    isolated("sharing::a_host_that_forwards_leaves_a_station_of_ones_own_alone", || {
        let world = World::new(1500)?;
        // The stack's host has an address in the same network and would send on what is not for it.
        let mut netlink = Netlink::open()?;
        let index = netlink.interface(NEAR)?.index;
        netlink.add_address(index, InterfaceAddress::network("10.78.0.3/24".parse().expect("a network")))?;
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("the namespace's own setting");
        let snmp = || forwarded(&std::fs::read_to_string("/proc/thread-self/net/snmp").expect("statistics"));
        transfers(&world, &world.config().mac(MacAddress([0x02, 0, 0, 0, 0x78, 2])))?;
        assert_eq!(snmp(), 0, "packets that the host sent on");

        // With the interface's own station it does, which is why one may have one's own.
        let mut device = AfPacket::open(&world.config())?;
        world.there.run(|| {
            Netlink::open()?.add_neighbour(
                world.far.index,
                STACK4,
                world.near.mac.expect("an Ethernet interface"),
            )
        })??;
        knock(&world, &mut device)?;
        assert!(snmp() > 0, "the test shows nothing: the host does not forward");
        Ok(())
    });
}

/// `ForwDatagrams` of the IP statistics: packets to others that the host tried to send on.
fn forwarded(snmp: &str) -> u64 {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut fields = names.zip(values);
    fields.find(|(name, _)| *name == "ForwDatagrams").and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
