//! A router between the stack and its peer, with a link behind it that takes smaller packets than
//! either knows: path MTU discovery (RFC 1191, RFC 8201).

use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, Setup, World};
use ackline_runtime::Error;
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use std::net::{IpAddr, SocketAddr};
use tokio::net;

const LEN: u64 = 4 << 20;
/// Of the link behind the router.
const NARROW: u32 = 1400;

/// The peer's address.
fn peer(ip: Ip) -> IpAddr {
    match ip {
        Ip::V4 => "10.80.0.2".parse(),
        Ip::V6 => "fd80::2".parse(),
    }
    .expect("an address")
}

fn set_up(name: &str, networks: [&str; 2], mtu: u32) -> Result<u32, Error> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    netlink.set_mtu(index, mtu)?;
    for network in networks {
        let network = network.parse().expect("a network");
        netlink.add_address(index, InterfaceAddress::network(network))?;
    }
    netlink.set_up(index)?;
    Ok(index)
}

/// Sets an option of this namespace's kernel.
fn set_option(file: &str, value: &str) -> Result<(), Error> {
    std::fs::write(format!("/proc/sys/net/{file}"), value)
        .map_err(|source| Error::System { action: "set an option of the kernel", source })
}

/// Makes this namespace's kernel a router, with a second namespace behind it.
fn build_network() -> Result<Namespace, Error> {
    let there = std::thread::scope(|scope| {
        let thread = scope.spawn(Namespace::new_for_thread);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Netlink::open()?.add_veth("near0", "far0", &there)?;
    // The far end would take more than the near one sends, so that it announces a larger MSS.
    set_up("near0", ["10.80.0.1/24", "fd80::1/64"], NARROW)?;
    there.run(|| {
        let index = set_up("far0", ["10.80.0.2/24", "fd80::2/64"], 1500)?;
        let mut netlink = Netlink::open()?;
        let router = |text: &str| Some(text.parse().expect("an address"));
        netlink.add_route(index, "10.79.0.0/24".parse().expect("a network"), router("10.80.0.1"))?;
        netlink.add_route(index, "fd79::/64".parse().expect("a network"), router("fd80::1"))?;
        netlink.await_address(peer(Ip::V6))?;
        // The near end drops without a word what is larger than its own MTU, unless it is a
        // super-packet. The far end sends a single full segment after a loss, and must find out by
        // itself that it is too large (RFC 4821).
        set_option("ipv4/tcp_mtu_probing", "1")
    })??;
    set_option("ipv4/ip_forward", "1")?;
    set_option("ipv6/conf/all/forwarding", "1")?;
    Netlink::open()?.await_address("fd80::1".parse().expect("an address"))?;
    Ok(there)
}

async fn finds_the_narrow_link(world: World, ip: Ip) {
    let there = build_network().expect("a network");
    let to = SocketAddr::new(peer(ip), 7);
    let listener = there.run(|| std::net::TcpListener::bind(to)).expect("entered").expect("bound");
    listener.set_nonblocking(true).expect("set");
    let listener = net::TcpListener::from_std(listener).expect("registered");
    let (accepted, stack) = tokio::join!(listener.accept(), world.connect(to));
    let (mut kernel, mut stack) = (accepted.expect("accepted").0, stack.expect("connected"));
    let headers = if ip == Ip::V4 { 40 + 12 } else { 60 + 12 };
    assert_eq!(stack.info().expect("connected").snd_mss, 1500 - headers);
    tokio::join!(write_all(&mut stack, 1, LEN), read_all(&mut kernel, 1, LEN));
    assert_eq!(stack.info().expect("connected").snd_mss, NARROW - headers);
    assert_eq!(world.stack.counters().tcp_mtu_reduced, 1);
    tokio::join!(write_all(&mut kernel, 2, LEN), read_all(&mut stack, 2, LEN));
    // The next connection may have to learn it again, and gets through as well.
    let (accepted, stack) = tokio::join!(listener.accept(), world.connect(to));
    let (mut kernel, mut stack) = (accepted.expect("accepted").0, stack.expect("connected"));
    tokio::join!(write_all(&mut stack, 3, LEN), read_all(&mut kernel, 3, LEN));
}

against_kernel! {
    fn ipv4(world) from Setup::offload(); { finds_the_narrow_link(world, Ip::V4).await; }
    #[ignore = "slow"]
    fn ipv6(world) from Setup::offload(); { finds_the_narrow_link(world, Ip::V6).await; }
    fn ipv4_plain(world) from Setup::plain(); { finds_the_narrow_link(world, Ip::V4).await; }
    #[ignore = "slow"]
    fn ipv6_plain(world) from Setup::plain(); { finds_the_narrow_link(world, Ip::V6).await; }
}
