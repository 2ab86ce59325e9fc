//! Departures that a congestion control paces, as the stack's own histogram of gaps shows them.

use super::support::stream::{read_all, write_all};
use super::support::{Ip, Opens, Setup, World};
use ackline::Registry;
use ackline_runtime::device::impair::{ImpairConfig, Impairment, SuperPackets};
use ackline_tcp_core::{ConnConfig, Duration};

const MIB: u64 = 1 << 20;

/// A path of 10 ms that loses every 200th packet on the way out, so that windows are some tens of
/// segments.
fn path(cc: &str) -> Setup {
    let way = Impairment { delay: Duration::from_millis(5), ..Impairment::default() };
    let mut config = ImpairConfig::both(way, 0x701);
    config.outgoing.loss = 0.5;
    config.super_packets = SuperPackets::Cut;
    let named = Registry::default()
        .named(cc, ackline::registry::DEFAULT_ACK, ackline::registry::DEFAULT_RTO)
        .expect("a name");
    Setup::plain().impair(config).connections(|connections| connections.policies = named)
}

fn paced(connections: &mut ConnConfig) {
    connections.policies = Registry::default()
        .named("cubic:pacing=on", ackline::registry::DEFAULT_ACK, ackline::registry::DEFAULT_RTO)
        .expect("a name");
}

/// Gaps between departures of data, as shares of their mean: of the shortest tenth, and of the
/// shorter half.
async fn shares(world: World) -> (f64, f64) {
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    let len = 2 * MIB;
    tokio::join!(write_all(&mut stack, 1, len), read_all(&mut kernel, 1, len));
    let info = stack.info().expect("connected");
    let gaps = world.stack.stats().data_gaps;
    eprintln!("{:?} at {:?}: {:?} {:?}", info.rtt, info.pacing_rate, gaps.quantile(0.1), gaps.quantile(0.5));
    assert!(gaps.count() >= len / 1500, "{} gaps", gaps.count());
    let mean = gaps.mean().as_secs_f64();
    (gaps.quantile(0.1).as_secs_f64() / mean, gaps.quantile(0.5).as_secs_f64() / mean)
}

against_kernel! {
    fn what_acwap_paces_leaves_apart(world) from path("acwap:inner=hstcp"); {
        let (tenth, half) = shares(world).await;
        assert!(tenth > 0.05, "a tenth of all gaps is shorter than {tenth} of the mean");
        assert!((0.25..2.0).contains(&half), "half of all gaps is shorter than {half} of the mean");
    }

    fn without_pacing_it_leaves_in_bursts(world) from path("acwap:inner=hstcp,pacing=off"); {
        let (tenth, _) = shares(world).await;
        assert!(tenth < 0.05, "a tenth of all gaps is shorter than {tenth} of the mean");
    }

    // The kernel acknowledges inside the call that carries a packet.
    fn an_answer_comes_later_than_what_it_answers(world) from Setup::plain().connections(paced); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        tokio::join!(write_all(&mut stack, 1, 2 * MIB), read_all(&mut kernel, 1, 2 * MIB));
        assert!(world.stack.stats().departure_lateness.count() > 0, "nothing was paced");
        let least = stack.info().expect("connected").min_rtt.expect("data was acknowledged");
        assert!(least >= Duration::from_micros(1), "a write to the device took {least:?}");
    }
}
