//! A path that stands still from time to time and loses nothing: a response to a timeout has nothing to repair.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, Opens, Setup, World};
use ackline::policies;
use ackline_runtime::device::impair::{ImpairConfig, Impairment, Stall};
use ackline_tcp_core::Duration;
use ackline_tcp_core::info::Info;

const MIB: u64 = 1 << 20;

/// 20 ms of round trip; it moves for 100 ms and stands for 500 ms, which is longer than the shortest RTO of 200 ms and
/// its first doubling.
fn stalls(rto: &'static str) -> Setup {
    let impairment = Impairment {
        delay: Duration::from_millis(10),
        stall: Stall { every: Duration::from_millis(100), lasts: Duration::from_millis(500) },
        ..Impairment::default()
    };
    Setup::offload().impair(ImpairConfig::both(impairment, 0xd0)).connections(|config| {
        config.policies.rto = policies::rto_response(rto).expect("a name from the tables");
    })
}

/// Sends to the kernel over the path, and reports on the connection when every byte has come.
async fn send(world: &World, len: u64) -> Info {
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    tokio::join!(write_all(&mut stack, 1, len), read_all(&mut kernel, 1, len));
    let info = stack.info().expect("connected");
    let path = world.path.as_ref().expect("a bad path").outgoing();
    eprintln!(
        "{}: {} timeouts, {} retransmissions; {path:?}",
        info.rto_response, info.timeouts, info.total_retrans
    );
    assert!(path.stalled > 0, "the path never stood: {path:?}");
    assert_eq!(path.lost, 0);
    info
}

against_kernel! {
    fn dclor_sends_nothing_again_but_its_probe(world) from stalls("dclor"); {
        let info = send(&world, 4 * MIB).await;
        let counters = world.stack.counters();
        assert!(info.timeouts > 0, "no timeout: {info:?}");
        // A timeout sends one segment; a tail loss probe comes before it where one is due.
        let probes = info.timeouts + counters.tcp_loss_probes;
        assert!(info.total_retrans <= probes, "{} retransmissions of {probes} probes", info.total_retrans);
        assert!(counters.tcp_spurious_rtos > 0 && counters.tcp_stale_acks > 0, "{counters:?}");
        // The kernel sends as well, with its own response; its stalled data arrives here.
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V6).await;
        tokio::join!(write_all(&mut kernel, 2, MIB), read_all(&mut stack, 2, MIB));
    }

    fn the_others_deliver_everything(world) from stalls("linux"); {
        let mut world = world;
        for rto in ["linux", "go-back-n", "frto", "eifel:restore=full", "dclor:profile=paper,stale_policy=revert"] {
            let mut config = policies::conn_config();
            config.policies.rto = policies::rto_response(rto).expect("a name from the tables");
            world.use_connections(config);
            send(&world, MIB).await;
        }
    }
}
