//! Neighbours that are missing, change, go and come back; gateways; addresses that others have.

use crate::world::{FAR, KERNEL4, KERNEL6, NEAR, PORT, STACK4, STACK6, World, block_on, stack};
use ackline_runtime::device::af_packet::neighbours::NeighbourConfig;
use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::isolated;
use ackline_runtime::{Error, MacAddress, Stack, TcpStream};
use ackline_tcp_core::{ConnConfig, Duration as CoreDuration};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, TcpListener as KernelListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

const NEW_MAC: MacAddress = MacAddress([0x02, 0, 0, 0, 0x99, 1]);

/// `IFA_F_DADFAILED`: `include/uapi/linux/if_addr.h`.
const DAD_FAILED: u8 = 0x08;

/// The kernel in `there` answers one connection with what it sends, until its end.
fn echo(there: &Namespace, on: IpAddr) -> Result<std::thread::JoinHandle<io::Result<()>>, Error> {
    let listener = there.run(|| KernelListener::bind((on, PORT)))?.expect("a free port");
    Ok(std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => stream.write_all(&buffer[..length])?,
            }
        }
    }))
}

/// A stack on a new device talks to the kernel's echo; one message has gone and come back when
/// `talk` begins. Everything ends in order.
fn talk(
    there: &Namespace,
    to: IpAddr,
    config: &AfPacketConfig,
    talk: impl AsyncFnOnce(&Stack, &mut TcpStream),
) -> Result<(), Error> {
    let kernel = echo(there, to)?;
    let device = AfPacket::open(config)?;
    block_on(async {
        let stack = stack(device);
        let mut stream = stack.connect((to, PORT)).await.expect("connected");
        round_trip(&mut stream).await;
        talk(&stack, &mut stream).await;
        drop(stream);
        assert!(stack.shutdown(Duration::from_secs(5)).await);
    });
    kernel.join().expect("no panic").expect("the kernel's end");
    Ok(())
}

/// One message goes and comes back; how long that took.
async fn round_trip(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(b"are you there?").await.expect("the connection lives");
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).await.expect("the connection lives");
    assert_eq!(&answer, b"are you there?");
    start.elapsed()
}

/// Writes a setting of the kernel's network in the namespace `there`.
fn set(there: &Namespace, name: &str, value: &str) -> Result<(), Error> {
    let write = || std::fs::write(format!("/proc/sys/net/{name}"), value);
    there.run(write)?.map_err(|source| Error::System { action: "write a network setting", source })
}

#[test]
fn a_missing_neighbour_ends_the_attempt_after_three_seconds() {
    isolated("neighbours::a_missing_neighbour_ends_the_attempt_after_three_seconds", || {
        let world = World::new(1500)?;
        let device = AfPacket::open(&world.config())?;
        block_on(async {
            let stack = stack(device);
            // No SYN leaves in the moment in which resolution fails: it would begin another one.
            let mut config = ConnConfig::default();
            config.initial_rto = CoreDuration::from_millis(1_300);
            let config = Arc::new(config);
            let attempt = async |to: &str| {
                let start = Instant::now();
                let to: IpAddr = to.parse().expect("an address");
                let attempt = stack.connect_with((to, PORT), config.clone());
                let error = attempt.await.expect_err("nobody is there");
                assert_eq!(error.kind(), io::ErrorKind::HostUnreachable, "{error}");
                assert_eq!(error.to_string(), "host or network unreachable");
                let took = start.elapsed();
                assert!((2_900..6_000).contains(&took.as_millis()), "{took:?}");
            };
            tokio::join!(attempt("10.78.0.77"), attempt("fd78::77"));
            let stats = stack.stats().device.neighbours;
            assert_eq!((stats.requests_sent, stats.failures), (6, 2), "three for each: {stats:?}");
            let runs = stack.stats().driver_runs;
            assert!(runs < 100, "the driver slept meanwhile, but for {runs} runs");
        });
        Ok(())
    });
}

#[test]
fn without_a_route_the_attempt_ends_at_once() {
    isolated("neighbours::without_a_route_the_attempt_ends_at_once", || {
        let world = World::new(1500)?;
        let device = AfPacket::open(&world.config())?;
        block_on(async {
            let stack = stack(device);
            for to in ["203.0.113.1", "2001:db8::1"] {
                let start = Instant::now();
                let to: IpAddr = to.parse().expect("an address");
                let error = stack.connect((to, PORT)).await.expect_err("there is no gateway");
                assert_eq!(error.kind(), io::ErrorKind::HostUnreachable, "{error}");
                assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            }
            assert_eq!(stack.stats().device.neighbours.requests_sent, 0);
        });
        Ok(())
    });
}

#[test]
fn a_gateway_leads_to_other_networks() {
    isolated("neighbours::a_gateway_leads_to_other_networks", || {
        let router = World::new(1500)?;
        let host =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        let network = |text: &str| InterfaceAddress::network(text.parse().expect("a network"));
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        set(&router.there, "ipv4/ip_forward", "1")?;
        set(&router.there, "ipv6/conf/all/forwarding", "1")?;
        router.there.run(|| {
            let mut netlink = Netlink::open()?;
            netlink.add_veth("out0", "host0", &host)?;
            let index = netlink.interface("out0")?.index;
            netlink.add_address(index, network("10.79.0.1/24"))?;
            netlink.add_address(index, network("fd79::1/64"))?;
            netlink.set_up(index)
        })??;
        host.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface("host0")?.index;
            netlink.add_address(index, network("10.79.0.9/24"))?;
            netlink.add_address(index, network("fd79::9/64"))?;
            netlink.set_up(index)?;
            netlink.await_address(ip("fd79::9"))?;
            netlink.add_route(index, "10.78.0.0/24".parse().expect("a network"), Some(ip("10.79.0.1")))?;
            netlink.add_route(index, "fd78::/64".parse().expect("a network"), Some(ip("fd79::1")))
        })??;
        let config = router.config().gateway(KERNEL4).gateway(KERNEL6);
        for to in ["10.79.0.9", "fd79::9"] {
            talk(&host, ip(to), &config, async |_, _| {})?;
        }
        Ok(())
    });
}

#[test]
fn given_neighbours_are_not_asked_for() {
    isolated("neighbours::given_neighbours_are_not_asked_for", || {
        let world = World::new(1500)?;
        let far = world.far.mac.expect("an Ethernet interface");
        let near = Netlink::open()?.interface(NEAR)?.mac.expect("an Ethernet interface");
        world.there.run(|| Netlink::open()?.add_neighbour(world.far.index, STACK4, near))??;
        talk(&world.there, KERNEL4, &world.config().neighbour(KERNEL4, far), async |stack, _| {
            let stats = stack.stats().device.neighbours;
            assert_eq!((stats.requests_sent, stats.requests_received, stats.waited), (0, 0, 0), "{stats:?}");
        })?;
        Ok(())
    });
}

#[test]
fn announcements_are_believed_at_once() {
    isolated("neighbours::announcements_are_believed_at_once", || {
        let world = World::new(1500)?;
        set(&world.there, &format!("ipv4/conf/{FAR}/arp_notify"), "1")?;
        set(&world.there, &format!("ipv6/conf/{FAR}/ndisc_notify"), "1")?;
        for (to, mac) in [(KERNEL4, NEW_MAC), (KERNEL6, world.far.mac.expect("an Ethernet interface"))] {
            talk(&world.there, to, &world.config(), async |stack, stream| {
                set_far_mac(&world, mac).expect("the kernel takes the address");
                // Far less than the half of a minute for which the old address counts as reachable.
                let took = round_trip(stream).await;
                assert!(took < Duration::from_secs(3), "{took:?}");
                assert_eq!(stack.stats().device.neighbours.changes, 1);
            })?;
        }
        Ok(())
    });
}

#[test]
fn a_silent_change_is_found_by_asking() {
    isolated("neighbours::a_silent_change_is_found_by_asking", || {
        let world = World::new(1500)?;
        let mut resolution = NeighbourConfig::default();
        resolution.reachable = CoreDuration::from_millis(500);
        resolution.delay = CoreDuration::from_millis(500);
        resolution.retransmit = CoreDuration::from_millis(100);
        for (to, mac) in [(KERNEL4, NEW_MAC), (KERNEL6, world.far.mac.expect("an Ethernet interface"))] {
            talk(&world.there, to, &world.config().resolution(resolution.clone()), async |_, stream| {
                set_far_mac(&world, mac).expect("the kernel takes the address");
                round_trip(stream).await;
            })?;
        }
        Ok(())
    });
}

#[test]
fn a_transfer_outlives_a_neighbour_that_goes_and_comes_back() {
    isolated("neighbours::a_transfer_outlives_a_neighbour_that_goes_and_comes_back", || {
        let world = World::new(1500)?;
        let mut resolution = NeighbourConfig::default();
        resolution.reachable = CoreDuration::from_millis(200);
        resolution.delay = CoreDuration::from_millis(100);
        resolution.retransmit = CoreDuration::from_millis(100);
        talk(&world.there, KERNEL4, &world.config().resolution(resolution), async |stack, stream| {
            // The kernel's delayed acknowledgement, for which it would look for the stack, and so
            // tell where it is.
            tokio::time::sleep(Duration::from_millis(300)).await;
            // Deaf to the stack: the kernel drops the frames, and answers no request.
            let_far_hear(&world, false).expect("the kernel gives the address up");
            stream.write_all(b"are you there?").await.expect("the buffer has room");
            tokio::time::sleep(Duration::from_secs(3)).await;
            let stats = stack.stats().device.neighbours;
            assert!(stats.failures >= 2, "it was asked for and did not answer: {stats:?}");
            assert!(stats.waiting_failed >= 1, "the stack was told: {stats:?}");
            let_far_hear(&world, true).expect("the kernel takes the address back");
            let mut answer = [0; 14];
            stream.read_exact(&mut answer).await.expect("the connection outlived it");
            assert_eq!(&answer, b"are you there?");
            round_trip(stream).await;
        })?;
        Ok(())
    });
}

#[test]
fn an_address_that_another_host_has_is_named() {
    isolated("neighbours::an_address_that_another_host_has_is_named", || {
        let world = World::new(1500)?;
        let mac = world.far.mac.expect("an Ethernet interface");
        for (address, own) in [(KERNEL4, "10.78.0.1/24"), (KERNEL6, "fd78::1/64")] {
            let config = world.config().address(own.parse().expect("a network"));
            let error = AfPacket::open(&config).expect_err("the kernel has it");
            let expected = format!(
                "the address {address} is in use on {NEAR}: the station {mac} has it; give another address, or take \
                 it from that host"
            );
            assert_eq!(error.to_string(), expected);
            // Who does not ask is not told.
            let mut resolution = NeighbourConfig::default();
            resolution.claim.probes = 0;
            AfPacket::open(&config.resolution(resolution))?;
        }
        Ok(())
    });
}

#[test]
fn an_address_in_use_is_defended() {
    isolated("neighbours::an_address_in_use_is_defended", || {
        let world = World::new(1500)?;
        set(&world.there, &format!("ipv4/conf/{FAR}/arp_notify"), "1")?;
        set(&world.there, &format!("ipv6/conf/{FAR}/ndisc_notify"), "1")?;
        let kernel = echo(&world.there, KERNEL4)?;
        let device = AfPacket::open(&world.config())?;
        block_on(async {
            let stack = stack(device);
            let mut stream = stack.connect((KERNEL4, PORT)).await.expect("connected");
            round_trip(&mut stream).await;
            // The kernel announces an address that it takes when the Ethernet address changes, too.
            take_stack_addresses(&world).expect("the kernel takes the addresses");
            set_far_mac(&world, NEW_MAC).expect("the kernel takes the address");
            let deadline = Instant::now() + Duration::from_secs(5);
            while stack.stats().device.neighbours.defences < 2 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let stats = stack.stats().device.neighbours;
            assert!(stats.conflicts >= 2 && stats.defences == 2, "one for each address: {stats:?}");
        });
        drop(kernel);
        Ok(())
    });
}

/// RFC 4862, section 5.4: the kernel is about to take an address that the stack has.
#[test]
fn the_kernels_duplicate_address_detection_finds_the_stack() {
    isolated("neighbours::the_kernels_duplicate_address_detection_finds_the_stack", || {
        let world = World::new(1500)?;
        // The link-local address that the kernel makes of its Ethernet address: RFC 4291, appendix
        // A.
        let [a, b, c, d, e, f] = world.far.mac.expect("an Ethernet interface").0;
        let word = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let address =
            Ipv6Addr::new(0xfe80, 0, 0, 0, word(a ^ 2, b), word(c, 0xff), word(0xfe, d), word(e, f));
        let far = |act: fn(&mut Netlink, u32) -> Result<(), Error>| {
            world.there.run(|| act(&mut Netlink::open()?, world.far.index))?
        };
        far(Netlink::set_down)?;
        let net = ipnet::IpNet::new(address.into(), 64).expect("a prefix length");
        let device = AfPacket::open(&world.config().address(net))?;
        block_on(async {
            let stack = stack(device);
            far(Netlink::set_up).expect("the interface comes up");
            let hex: String = address.octets().iter().map(|octet| format!("{octet:02x}")).collect();
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                // Address, interface, prefix length, scope, flags, name.
                let addresses = world.there.run(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6"));
                let addresses = addresses.expect("the namespace is there").expect("the kernel has IPv6");
                let line = addresses.lines().find(|line| line.starts_with(&hex));
                let flags =
                    line.and_then(|line| u8::from_str_radix(line.split_whitespace().nth(4)?, 16).ok());
                if flags.is_some_and(|flags| flags & DAD_FAILED != 0) {
                    break;
                }
                assert!(Instant::now() < deadline, "flags {flags:x?} in:\n{addresses}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(stack.stats().device.neighbours.replies_sent >= 1);
        });
        Ok(())
    });
}

/// RFC 4861, section 7.2.1: a switch that filters multicast must know who listens for
/// solicitations.
#[test]
fn the_groups_of_solicitations_are_reported_while_the_device_is_open() {
    isolated("neighbours::the_groups_of_solicitations_are_reported_while_the_device_is_open", || {
        let world = World::new(1500)?;
        let reported = || {
            let groups = std::fs::read_to_string("/proc/thread-self/net/igmp6").expect("the kernel has IPv6");
            groups
                .lines()
                .any(|line| line.contains(NEAR) && line.contains("ff0200000000000000000001ff000002"))
        };
        assert!(!reported());
        let device = AfPacket::open(&world.config())?;
        assert!(reported());
        drop(device);
        assert!(!reported());
        Ok(())
    });
}

fn set_far_mac(world: &World, mac: MacAddress) -> Result<(), Error> {
    world.there.run(|| Netlink::open()?.set_mac(world.far.index, mac))?
}

/// The kernel takes the stack's addresses, too.
fn take_stack_addresses(world: &World) -> Result<(), Error> {
    world.there.run(|| {
        let mut netlink = Netlink::open()?;
        for (address, length) in [(STACK4, 24), (STACK6, 64)] {
            let net = ipnet::IpNet::new(address, length).expect("a prefix length");
            netlink.add_address(world.far.index, InterfaceAddress::network(net))?;
        }
        Ok(())
    })?
}

/// The kernel hears nothing of the stack, or hears it again.
fn let_far_hear(world: &World, back: bool) -> Result<(), Error> {
    let state = if back { "0" } else { "8" };
    // No reply to any request for an address.
    set(&world.there, &format!("ipv4/conf/{FAR}/arp_ignore"), state)?;
    set_far_mac(world, if back { world.far.mac.expect("an Ethernet interface") } else { NEW_MAC })
}
