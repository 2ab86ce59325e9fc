//! Bytes from one end to the other: sizes, IP versions, who opens, who sends, with and without
//! offload.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, Opens, Setup, World};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// `len` bytes from the kernel to the stack and as many back, one way after the other.
async fn one_way_after_the_other(world: &World, opens: Opens, ip: Ip, len: u64) {
    let (mut kernel, mut stack) = world.connection(opens, ip).await;
    tokio::join!(write_all(&mut kernel, 1, len), read_all(&mut stack, 1, len));
    tokio::join!(write_all(&mut stack, 2, len), read_all(&mut kernel, 2, len));
    stack.flushed().await.expect("acknowledged");
}

/// `len` bytes each way at once.
pub(super) async fn both_ways_at_once(world: &World, opens: Opens, ip: Ip, len: u64) {
    let (mut kernel, mut stack) = world.connection(opens, ip).await;
    let (mut kernel_reads, mut kernel_writes) = kernel.split();
    let (mut stack_reads, mut stack_writes) = stack.split();
    tokio::join!(
        write_all(&mut kernel_writes, 1, len),
        write_all(&mut stack_writes, 2, len),
        read_all(&mut kernel_reads, 2, len),
        read_all(&mut stack_reads, 1, len),
    );
}

pub(super) async fn sizes(world: &World, opens: Opens, ip: Ip) {
    for len in [0, 1, KIB, MIB] {
        one_way_after_the_other(world, opens, ip, len).await;
        both_ways_at_once(world, opens, ip, len).await;
    }
    world.check_device();
}

async fn large(world: &World, opens: Opens, len: u64) {
    one_way_after_the_other(world, opens, Ip::V4, len).await;
    world.check_device();
    let device = world.stack.stats().device;
    let packets = device.tx_packets + device.rx_packets;
    let segments = 2 * len / 1448;
    if world.offload {
        assert!(
            packets < segments / 2,
            "{packets} packets for {segments} segments of data: no super-packets"
        );
    } else {
        assert!(packets > segments, "{packets} packets for {segments} segments of data");
    }
}

against_kernel! {
    fn kernel_opens_ipv4(world) from Setup::offload(); { sizes(&world, Opens::Kernel, Ip::V4).await; }
    fn kernel_opens_ipv6(world) from Setup::offload(); { sizes(&world, Opens::Kernel, Ip::V6).await; }
    fn stack_opens_ipv4(world) from Setup::offload(); { sizes(&world, Opens::Stack, Ip::V4).await; }
    fn stack_opens_ipv6(world) from Setup::offload(); { sizes(&world, Opens::Stack, Ip::V6).await; }
    fn kernel_opens_ipv4_plain(world) from Setup::plain(); { sizes(&world, Opens::Kernel, Ip::V4).await; }
    fn kernel_opens_ipv6_plain(world) from Setup::plain(); { sizes(&world, Opens::Kernel, Ip::V6).await; }
    fn stack_opens_ipv4_plain(world) from Setup::plain(); { sizes(&world, Opens::Stack, Ip::V4).await; }
    fn stack_opens_ipv6_plain(world) from Setup::plain(); { sizes(&world, Opens::Stack, Ip::V6).await; }

    fn kernel_opens_64_mib(world) from Setup::offload(); { large(&world, Opens::Kernel, 64 * MIB).await; }
    fn stack_opens_64_mib(world) from Setup::offload(); { large(&world, Opens::Stack, 64 * MIB).await; }
    fn kernel_opens_64_mib_plain(world) from Setup::plain(); { large(&world, Opens::Kernel, 64 * MIB).await; }
    fn stack_opens_64_mib_plain(world) from Setup::plain(); { large(&world, Opens::Stack, 64 * MIB).await; }

    fn kernel_opens_1_gib(world) from Setup::offload(); { large(&world, Opens::Kernel, 1024 * MIB).await; }
    fn stack_opens_1_gib(world) from Setup::offload(); { large(&world, Opens::Stack, 1024 * MIB).await; }

    fn both_ways_at_once_64_mib(world) from Setup::offload(); {
        both_ways_at_once(&world, Opens::Kernel, Ip::V6, 64 * MIB).await;
        world.check_device();
    }
}
