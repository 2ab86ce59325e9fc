//! Packet sizes from the smallest that IPv4 hosts must take to jumbo frames.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, Opens, Setup, World};

const LEN: u64 = 4 << 20;

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

against_kernel! {
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
