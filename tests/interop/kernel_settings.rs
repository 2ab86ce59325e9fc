//! Kernels that are set up differently: congestion controls, and options switched off.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, Opens, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_runtime::kernel::KernelTcpInfo;
use ackline_tcp_core::Duration;
use ackline_tcp_core::config::Ecn;
use rustix::net::sockopt::set_tcp_congestion;

const MIB: u64 = 1 << 20;

async fn both_ways(world: &World, len: u64) {
    for opens in [Opens::Kernel, Opens::Stack] {
        let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
        tokio::join!(write_all(&mut kernel, 1, len), read_all(&mut stack, 1, len));
        tokio::join!(write_all(&mut stack, 2, len), read_all(&mut kernel, 2, len));
    }
}

/// The kernel sends with one of its congestion controls.
async fn sends_with(world: World, name: &str, len: u64) {
    let mut missing = None;
    let (mut kernel, mut stack) = world
        .connection_with(Opens::Stack, Ip::V4, |socket| missing = set_tcp_congestion(socket, name).err())
        .await;
    if let Some(error) = missing {
        return ackline_runtime::testing::skip(&format!("the kernel's {name}"), &error);
    }
    tokio::join!(write_all(&mut kernel, 1, len), read_all(&mut stack, 1, len));
    // A bad path drops packets on purpose.
    if world.path.is_none() {
        world.check_device();
    }
}

fn with_ecn(setup: Setup, kernel: &'static str) -> Setup {
    setup.sysctl("tcp_ecn", kernel).connections(|config| config.ecn = Ecn::Classic)
}

/// Both ends agree on ECN whoever opens, and each takes the other's data as ECN-capable.
async fn marks_are_heard(world: &World) {
    for ip in [Ip::V4, Ip::V6] {
        for opens in [Opens::Kernel, Opens::Stack] {
            let (mut kernel, mut stack) = world.connection(opens, ip).await;
            tokio::join!(write_all(&mut kernel, 1, MIB), read_all(&mut stack, 1, MIB));
            tokio::join!(write_all(&mut stack, 2, MIB), read_all(&mut kernel, 2, MIB));
            assert_eq!(stack.info().expect("it lives").ecn, Ecn::Classic, "{opens:?}");
            let options = KernelTcpInfo::of(&kernel).expect("a TCP socket").options;
            assert_eq!(options & 24, 24, "agreed on, and ECN-capable data was received: {opens:?}");
        }
    }
    // The kernel's data came with ECT(0).
    assert!(world.stack.stats().counters.ip_in_ect0_pkts > 0);
    world.check_device();
}

/// A path of 10 ms with a loss of 1 % of what the kernel sends.
fn lossy() -> Setup {
    let delay = Duration::from_millis(5);
    let mut config = ImpairConfig::both(Impairment { delay, ..Impairment::default() }, 0xcc);
    config.incoming.loss = 1.0;
    Setup::offload().impair(config)
}

against_kernel! {
    fn kernel_sends_with_reno(world) from Setup::offload(); { sends_with(world, "reno", 32 * MIB).await; }
    fn kernel_sends_with_cubic(world) from Setup::offload(); { sends_with(world, "cubic", 32 * MIB).await; }
    fn kernel_sends_with_bbr(world) from Setup::offload(); { sends_with(world, "bbr", 32 * MIB).await; }
    fn kernel_sends_with_reno_over_a_lossy_path(world) from lossy(); { sends_with(world, "reno", 2 * MIB).await; }
    fn kernel_sends_with_cubic_over_a_lossy_path(world) from lossy(); { sends_with(world, "cubic", 2 * MIB).await; }
    fn kernel_sends_with_bbr_over_a_lossy_path(world) from lossy(); { sends_with(world, "bbr", 4 * MIB).await; }

    fn kernel_without_timestamps(world) from Setup::offload().sysctl("tcp_timestamps", "0"); {
        both_ways(&world, 8 * MIB).await;
    }
    fn kernel_without_sack(world) from Setup::offload().sysctl("tcp_sack", "0"); {
        both_ways(&world, 8 * MIB).await;
    }
    fn kernel_without_window_scaling(world) from Setup::offload().sysctl("tcp_window_scaling", "0"); {
        both_ways(&world, 8 * MIB).await;
    }
    fn kernel_without_any_option(world) from Setup::plain()
        .sysctl("tcp_timestamps", "0")
        .sysctl("tcp_sack", "0")
        .sysctl("tcp_window_scaling", "0"); {
        both_ways(&world, 8 * MIB).await;
    }
    fn kernel_that_wants_ecn(world) from Setup::offload().sysctl("tcp_ecn", "1"); {
        both_ways(&world, 8 * MIB).await;
    }
    fn ecn_with_a_kernel_that_wants_it(world) from with_ecn(Setup::offload(), "1"); { marks_are_heard(&world).await; }
    fn ecn_without_super_packets(world) from with_ecn(Setup::plain(), "1"); { marks_are_heard(&world).await; }
    fn ecn_with_a_kernel_that_refuses(world) from with_ecn(Setup::offload(), "0"); {
        for opens in [Opens::Kernel, Opens::Stack] {
            let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
            tokio::join!(write_all(&mut stack, 2, MIB), read_all(&mut kernel, 2, MIB));
            assert_eq!(stack.info().expect("it lives").ecn, Ecn::Off, "{opens:?}");
        }
    }

    fn stack_without_options(world) from Setup::offload().connections(|config| {
        config.timestamps = false;
        config.sack = false;
        config.window_scale = false;
    }); {
        both_ways(&world, 8 * MIB).await;
    }
}
