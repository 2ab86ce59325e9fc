//! The raw device against the kernel of another host, behind a router.

use ackline_runtime::device::raw::{Raw, RawConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::stats::Stats;
use ackline_runtime::testing::{isolated, skip};
use ackline_runtime::{Error, Stack};
use ackline_tcp_core::ListenOn;
use ackline_tcp_core::counters::Counters;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener as KernelListener, TcpStream as KernelStream};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const PORT: u16 = 7;
const LENGTH: usize = 2 << 20;

/// The addresses of the two hosts, of either version.
const NEAR: [&str; 2] = ["10.80.1.2", "fd80:1::2"];
const FAR: [&str; 2] = ["10.80.2.1", "fd80:2::1"];

/// This thread's namespace, a router, and a host behind it.
struct World {
    _router: Namespace,
    far: Namespace,
}

fn namespace() -> Result<Namespace, Error> {
    std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))
}

/// Gives an interface its addresses and brings it up; from it there is a way to `behind` by
/// `router`.
fn configure(name: &str, mtu: u32, own: [&str; 2], way: Option<([&str; 2], [&str; 2])>) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    netlink.set_mtu(index, mtu)?;
    for own in own {
        netlink.add_address(index, InterfaceAddress::network(own.parse().expect("a network")))?;
    }
    netlink.set_up(index)?;
    for (network, router) in way.into_iter().flat_map(|(networks, routers)| networks.into_iter().zip(routers))
    {
        let router = router.parse().expect("an address");
        netlink.add_route(index, network.parse().expect("a network"), Some(router))?;
    }
    Ok(())
}

impl World {
    /// The link behind the router carries packets of so many bytes.
    fn new(mtu: u32) -> Result<Self, Error> {
        let (router, far) = (namespace()?, namespace()?);
        Netlink::open()?.add_veth("near0", "left0", &router)?;
        router.run(|| {
            Netlink::open()?.add_veth("right0", "far0", &far)?;
            configure("left0", 1_500, ["10.80.1.1/24", "fd80:1::1/64"], None)?;
            configure("right0", mtu, ["10.80.2.2/24", "fd80:2::2/64"], None)?;
            for path in ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"] {
                std::fs::write(path, "1").expect("the namespace's own setting");
            }
            Ok::<_, Error>(())
        })??;
        let to_far = (["10.80.2.0/24", "fd80:2::/64"], ["10.80.1.1", "fd80:1::1"]);
        let to_near = (["10.80.1.0/24", "fd80:1::/64"], ["10.80.2.2", "fd80:2::2"]);
        configure("near0", 1_500, ["10.80.1.2/24", "fd80:1::2/64"], Some(to_far))?;
        far.run(|| configure("far0", mtu, ["10.80.2.1/24", "fd80:2::1/64"], Some(to_near)))??;
        let usable = |address: &str| Netlink::open()?.await_address(address.parse().expect("an address"));
        usable(NEAR[1])?;
        far.run(|| usable(FAR[1]))??;
        router.run(|| usable("fd80:1::1").and_then(|()| usable("fd80:2::2")))??;
        Ok(Self { _router: router, far })
    }
}

/// A stack with the host's addresses, a listener's port and some for connections; `None` if the
/// kernel has no tables with an owner.
fn stack(name: &str) -> Result<Option<Stack>, Error> {
    let device = match Raw::open(&RawConfig::new("near0").ports(PORT..=PORT).free_ports(4)) {
        Err(error @ Error::NoFirewall { .. }) => {
            skip(name, &error);
            return Ok(None);
        }
        opened => opened?,
    };
    let own = device.addresses().to_vec();
    assert_eq!(own.iter().map(ToString::to_string).collect::<Vec<_>>(), NEAR);
    let builder = own.into_iter().fold(Stack::builder(device), |builder, own| builder.address(own));
    Ok(Some(builder.spawn().expect("a timerfd and random numbers")))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), work).await.expect("still waiting after a minute")
    })
}

fn pattern() -> Vec<u8> {
    (0..LENGTH).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
}

/// The kernel's end: reads everything, and sends so many bytes of it back.
fn echo(mut stream: KernelStream, answer: usize) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(50)))?;
    let mut data = Vec::new();
    stream.read_to_end(&mut data)?;
    stream.write_all(&data[..answer])?;
    stream.shutdown(Shutdown::Write)
}

/// A connection in which the stack sends the pattern and receives so many bytes of it back; `None`
/// if it was skipped.
fn connect(name: &str, world: &World, to: &str, answer: usize) -> Result<Option<(Stats, Counters)>, Error> {
    let to: IpAddr = to.parse().expect("an address");
    let listener = world.far.run(|| KernelListener::bind((to, PORT)))?.expect("bound");
    block_on(async {
        let Some(stack) = stack(name)? else { return Ok(None) };
        let kernel = std::thread::spawn(move || echo(listener.accept()?.0, answer));
        let mut stream = stack.connect((to, PORT)).await.expect("connected");
        assert!(stream.local_addr().expect("open").port() >= 61_000);
        stream.write_all(&pattern()).await.expect("taken");
        stream.shutdown().await.expect("closed");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.expect("everything came");
        assert!(received == pattern()[..answer], "{} bytes, or others", received.len());
        drop(stream);
        assert!(stack.shutdown(Duration::from_secs(30)).await, "the connection had to be reset");
        kernel.join().expect("no panic").expect("the kernel's end");
        Ok(Some((stack.stats(), stack.counters())))
    })
}

#[test]
fn what_was_merged_is_received_whole() {
    const NAME: &str = "what_was_merged_is_received_whole";
    isolated(NAME, || {
        let world = World::new(1_500)?;
        for to in FAR {
            let Some((stats, counters)) = connect(NAME, &world, to, LENGTH)? else { return Ok(()) };
            assert!(stats.rx_super_packets > 10 && stats.tx_super_packets > 10, "{to}: {stats:?}");
            assert_eq!((stats.device.rx_malformed, stats.device.tx_errors), (0, 0), "{to}");
            assert_eq!(counters.tcp_in_csum_errors, 0, "{to}");
        }
        Ok(())
    });
}

#[test]
fn a_router_that_cannot_carry_a_packet_is_listened_to() {
    const NAME: &str = "a_router_that_cannot_carry_a_packet_is_listened_to";
    isolated(NAME, || {
        let world = World::new(1_300)?;
        // The far host does not know that its link is narrow: the MSS that it announces is as large
        // as elsewhere.
        world.far.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface("far0")?.index;
            netlink.set_mtu(index, 1_500)
        })??;
        for to in FAR {
            let Some((_, counters)) = connect(NAME, &world, to, 9)? else { return Ok(()) };
            assert!(counters.tcp_mtu_reduced > 0, "{to}: {counters:?}");
            assert_eq!(counters.tcp_mtu_black_holes, 0, "{to}: found by ICMP");
        }
        Ok(())
    });
}

#[test]
fn what_the_kernel_knows_of_a_path_does_not_count() {
    const NAME: &str = "what_the_kernel_knows_of_a_path_does_not_count";
    isolated(NAME, || {
        let world = World::new(1_300)?;
        world.far.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface("far0")?.index;
            netlink.set_mtu(index, 1_500)
        })??;
        for to in FAR {
            // The kernel's own TCP learns that packets of 1,500 bytes are too large.
            let far: IpAddr = to.parse().expect("an address");
            let listener = world.far.run(|| KernelListener::bind((far, PORT)))?.expect("bound");
            std::thread::scope(|scope| {
                let end = scope.spawn(|| echo(listener.accept()?.0, 9));
                let mut stream = KernelStream::connect((far, PORT)).expect("it listens");
                stream.write_all(&pattern()).expect("taken");
                stream.shutdown(Shutdown::Write).expect("closed");
                stream.read_to_end(&mut Vec::new()).expect("its answer");
                end.join().expect("no panic").expect("the far host's end");
            });
            drop(listener);
            let Some((stats, counters)) = connect(NAME, &world, to, 9)? else { return Ok(()) };
            assert!(counters.tcp_mtu_reduced > 0, "{to}: {counters:?}");
            assert_eq!(counters.tcp_mtu_black_holes, 0, "{to}: found by ICMP");
            assert_eq!(stats.device.tx_errors, 0, "{to}: the kernel refuses nothing");
        }
        Ok(())
    });
}

#[test]
fn a_port_without_a_listener_is_refused_by_icmp_or_reset() {
    const NAME: &str = "a_port_without_a_listener_is_refused_by_icmp_or_reset";
    isolated(NAME, || {
        let world = World::new(1_500)?;
        block_on(async {
            let Some(stack) = stack(NAME)? else { return Ok(()) };
            let to: IpAddr = FAR[0].parse().expect("an address");
            let refused = stack.connect((to, PORT)).await.expect_err("nobody listens");
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            // No host has this address: the router says so.
            let nobody: IpAddr = "10.80.3.1".parse().expect("an address");
            Netlink::open()?.add_route(
                Netlink::open()?.interface("near0")?.index,
                "10.80.3.0/24".parse().expect("a network"),
                Some("10.80.1.1".parse().expect("an address")),
            )?;
            let unreachable = stack.connect((nobody, PORT)).await.expect_err("nobody is there");
            assert_eq!(unreachable.kind(), std::io::ErrorKind::HostUnreachable, "{unreachable}");
            Ok(())
        })?;
        drop(world);
        Ok(())
    });
}

#[test]
fn a_neighbour_that_is_not_there_is_told_by_the_kernel() {
    const NAME: &str = "a_neighbour_that_is_not_there_is_told_by_the_kernel";
    isolated(NAME, || {
        let _world = World::new(1_500)?;
        block_on(async {
            let Some(stack) = stack(NAME)? else { return Ok(()) };
            for nobody in ["10.80.1.99", "fd80:1::99"] {
                let to: IpAddr = nobody.parse().expect("an address");
                let unreachable = stack.connect((to, PORT)).await.expect_err("nobody is there");
                assert_eq!(
                    unreachable.kind(),
                    std::io::ErrorKind::HostUnreachable,
                    "{nobody}: {unreachable}"
                );
            }
            Ok(())
        })
    });
}

#[test]
fn a_listener_takes_connections_of_the_far_host() {
    const NAME: &str = "a_listener_takes_connections_of_the_far_host";
    isolated(NAME, || {
        let world = World::new(1_500)?;
        std::thread::scope(|scope| {
            let (listening, wait) = std::sync::mpsc::channel();
            let far = &world.far;
            let client = scope.spawn(move || {
                far.run(move || {
                    // Nobody listens if the test is skipped.
                    while let Ok(to) = wait.recv() {
                        let mut stream = KernelStream::connect_timeout(&to, Duration::from_secs(30))?;
                        stream.write_all(&pattern())?;
                        echo(stream, 0)?;
                    }
                    Ok::<_, std::io::Error>(())
                })
            });
            block_on(async {
                let Some(stack) = stack(NAME)? else { return Ok(()) };
                let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
                for own in NEAR {
                    let own: IpAddr = own.parse().expect("an address");
                    listening.send((own, PORT).into()).expect("the far host waits");
                    let (mut stream, _) = listener.accept().await.expect("accepted");
                    // Nothing is sent until everything is there.
                    let mut received = vec![0; LENGTH];
                    stream.read_exact(&mut received).await.expect("everything came");
                    assert!(received == pattern(), "{own}");
                    stream.shutdown().await.expect("closed");
                    assert_eq!(stream.read(&mut [0]).await.expect("its end"), 0);
                }
                drop(listening);
                drop(listener);
                assert!(stack.shutdown(Duration::from_secs(30)).await, "a connection had to be reset");
                Ok::<_, Error>(())
            })?;
            client.join().expect("no panic")?.expect("the far host's end");
            Ok(())
        })
    });
}
