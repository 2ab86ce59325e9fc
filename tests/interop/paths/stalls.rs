//! A path that stands still from time to time and loses nothing: a response to a timeout has
//! nothing to repair, and what it sends again is sent in vain.

use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, Opens, Setup, World};
use ackline::Registry;
use ackline_runtime::Info;
use ackline_runtime::device::impair::{ImpairConfig, Impairment, Stall};
use ackline_tcp_core::{ConnConfig, Duration, Rate};

const MIB: u64 = 1 << 20;

/// 20 Mbit/s and 20 ms of round trip, with up to 60 ms of queue; it moves for 400 ms and stands for
/// 700 ms, which is longer than an RTO.
fn stalls(rto: &'static str) -> Setup {
    let impairment = Impairment {
        delay: Duration::from_millis(10),
        rate: Some(Rate::from_bits_per_second(20_000_000)),
        stall: Stall { every: Duration::from_millis(400), lasts: Duration::from_millis(700) },
        ..Impairment::default()
    };
    Setup::offload().impair(ImpairConfig::both(impairment, 0xd0)).connections(|config| tune(config, rto))
}

fn tune(config: &mut ConnConfig, rto: &str) {
    config.policies.rto = Registry::default().rto(rto).expect("a name from the tables");
    config.cwnd_cap = Some(200_000);
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
        let info = send(&world, 2 * MIB).await;
        let counters = world.stack.counters();
        assert!(info.timeouts > 0, "no timeout: {info:?}");
        // A timeout sends one segment; a tail loss probe comes before it if one is due.
        let probes = info.timeouts + counters.tcp_loss_probes;
        assert!(info.total_retrans <= probes, "{} retransmissions of {probes} probes", info.total_retrans);
        assert!(counters.tcp_spurious_rtos > 0 && counters.tcp_stale_acks > 0, "{counters:?}");
        // The kernel sends as well, with its own response; its stalled data arrives here.
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V6).await;
        tokio::join!(write_all(&mut kernel, 2, MIB), read_all(&mut stack, 2, MIB));
    }

    fn go_back_n_sends_a_window_again(world) from stalls("go-back-n"); {
        let info = send(&world, 2 * MIB).await;
        let probes = info.timeouts + world.stack.counters().tcp_loss_probes;
        assert!(info.total_retrans > probes + 20, "{} retransmissions, {probes} probes", info.total_retrans);
    }

    fn the_others_deliver_everything(world) from stalls("linux"); {
        let mut world = world;
        for rto in ["linux", "frto", "eifel:restore=full", "dclor:profile=paper,stale_policy=revert"] {
            let mut config = Registry::default().conn_config();
            tune(&mut config, rto);
            world.use_connections(config);
            send(&world, MIB).await;
        }
    }
}
