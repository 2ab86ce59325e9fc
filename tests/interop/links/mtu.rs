//! Packet sizes from the smallest that IPv4 hosts must take to jumbo frames.

use crate::support::stream::{read_all, read_to_end, write_all, write_while};
use crate::support::{Ip, Opens, Setup, World};
use std::cell::Cell;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LEN: u64 = 4 << 20;
/// Moves before a change of the MTU, and half as much after it.
const PART: u64 = 12 << 20;

pub(super) async fn transfer(world: World, mtu: u32, ip: Ip) {
    for opens in [Opens::Kernel, Opens::Stack] {
        let (mut kernel, mut stack) = world.connection(opens, ip).await;
        tokio::join!(write_all(&mut kernel, 1, LEN), read_all(&mut stack, 1, LEN));
        tokio::join!(write_all(&mut stack, 2, LEN), read_all(&mut kernel, 2, LEN));
        // 12 octets of timestamps come out of every segment (RFC 6691, section 2).
        let headers = if ip == Ip::V4 { 40 } else { 60 };
        assert_eq!(stack.info().expect("known").snd_mss, mtu - headers - 12);
    }
    // The device refuses packets that are larger than its MTU.
    world.check_device();
}

/// Waits until the stack sends packets of `mtu` bytes.
async fn noticed(world: &World, mtu: u32) {
    let since = Instant::now();
    while world.stack.mtu() != mtu {
        assert!(since.elapsed() < Duration::from_secs(5), "the stack did not notice");
        sleep(Duration::from_millis(1)).await;
    }
}

/// From 9,000 bytes to 1,280 and back while data moves, which it does until `done`. `follows`:
/// segments have the size that fits. A larger one is probed first, which takes some round trips.
async fn down_and_up(world: &World, follows: impl Fn(u32) -> Result<(), String>, done: &Cell<bool>) {
    for mtu in [1_280, 9_000] {
        world.moves(PART).await;
        world.set_mtu(mtu);
        noticed(world, mtu).await;
        world.moves(PART / 2).await;
        let since = Instant::now();
        while let Err(why) = follows(mtu) {
            let counters = world.stack.counters();
            assert!(since.elapsed() < Duration::from_secs(5), "segments do not follow: {why}, {counters:?}");
            sleep(Duration::from_millis(1)).await;
        }
    }
    done.set(true);
}

/// The MTU changes while the stack sends, and while it receives.
pub(super) async fn changes(world: World, ip: Ip) {
    let (mut kernel, stack) = world.connection(Opens::Stack, ip).await;
    let headers = if ip == Ip::V4 { 40 + 12 } else { 60 + 12 };
    let (mut read, mut write) = stack.into_split();
    let follows = |mtu| {
        let info = read.as_ref().info().expect("known");
        if info.snd_mss == mtu - headers { Ok(()) } else { Err(format!("{info:?}")) }
    };
    let done = Cell::new(false);
    tokio::join!(
        write_while(&mut write, 1, || !done.get()),
        read_to_end(&mut kernel, 1),
        down_and_up(&world, follows, &done)
    );
    done.set(false);
    tokio::join!(
        write_while(&mut kernel, 2, || !done.get()),
        read_to_end(&mut read, 2),
        down_and_up(&world, |_| Ok(()), &done)
    );
    // New connections as well.
    world.set_mtu(1_400);
    let (_kernel, stack) = world.connection(Opens::Kernel, ip).await;
    assert_eq!(stack.info().expect("known").snd_mss, 1_400 - headers);
    let stats = world.stack.stats();
    assert_eq!((stats.mtu, stats.counters.mtu_changes), (1_400, 5));
    // Nothing was lost. A busy machine may let a probe or two leave.
    assert!(stats.counters.tcp_retrans_segs < 20, "{} segments again", stats.counters.tcp_retrans_segs);
    world.check_device();
}

/// Nothing moves, and the configuration permits less than the device does.
async fn changes_while_idle(world: World) {
    for (device, stack) in [(1_280, 1_280), (9_000, 2_000), (1_999, 1_999), (2_001, 2_000)] {
        world.set_mtu(device);
        noticed(&world, stack).await;
    }
    let runs = world.stack.stats().driver_runs;
    sleep(Duration::from_millis(300)).await;
    assert!(world.stack.stats().driver_runs - runs < 20, "the driver sleeps");
}

against_kernel! {
    fn an_idle_tun_changes(world) from Setup::offload().mtu(9000).host(|host| host.mtu = 2_000); {
        changes_while_idle(world).await;
    }
    fn a_tun_changes_over_ipv4(world) from Setup::offload().mtu(9000); { changes(world, Ip::V4).await; }
    fn a_tun_changes_over_ipv6(world) from Setup::offload().mtu(9000); { changes(world, Ip::V6).await; }
    fn a_plain_tun_changes(world) from Setup::plain().mtu(9000); { changes(world, Ip::V4).await; }
    fn ipv4_576(world) from Setup::offload().mtu(576); { transfer(world, 576, Ip::V4).await; }
    fn ipv4_576_plain(world) from Setup::plain().mtu(576); { transfer(world, 576, Ip::V4).await; }
    fn ipv6_1280(world) from Setup::offload().mtu(1280); { transfer(world, 1280, Ip::V6).await; }
    fn ipv6_1280_plain(world) from Setup::plain().mtu(1280); { transfer(world, 1280, Ip::V6).await; }
    fn ipv4_1500(world) from Setup::offload(); { transfer(world, 1500, Ip::V4).await; }
    fn ipv4_9000(world) from Setup::offload().mtu(9000); { transfer(world, 9000, Ip::V4).await; }
    fn ipv4_9000_plain(world) from Setup::plain().mtu(9000); { transfer(world, 9000, Ip::V4).await; }
    fn ipv6_9000(world) from Setup::offload().mtu(9000); { transfer(world, 9000, Ip::V6).await; }
    fn ipv4_65535_plain(world) from Setup::plain().mtu(65_535); { transfer(world, 65_535, Ip::V4).await; }
}
