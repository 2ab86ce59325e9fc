//! Real endpoints across simulated links: closed forms, conservation, integrity.

use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::impair::{Corrupt, Duplicate, GilbertElliott, Jitter, Loss, Reorder};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::{AppId, Egress, LinkId, LinkSpec, NodeId, Observer, Packet, PacketEvent, Sim};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

fn host(sim: &mut Sim, last: u8, egress: Egress) -> (NodeId, IpAddr) {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    let mut config = EndpointConfig::default();
    config.addresses = vec![address];
    (sim.add_host(config, Box::new(Fifo::default()), egress), address)
}

/// Client, two routers, server; the bottleneck is between the routers.
struct Dumbbell {
    sim: Sim,
    client: NodeId,
    server: NodeId,
    server_address: IpAddr,
    there: LinkId,
}

const ACCESS: u64 = 1_000_000_000;

impl Dumbbell {
    fn new(seed: u64, there: LinkSpec, back: LinkSpec, egress: Egress) -> Self {
        let mut sim = Sim::new(seed);
        let (client, _) = host(&mut sim, 1, egress);
        let (server, server_address) = host(&mut sim, 2, egress);
        let (left, right) = (sim.add_router(), sim.add_router());
        let access = || LinkSpec::new(ACCESS, Duration::from_micros(1));
        for (a, b) in [(client, left), (left, client), (server, right), (right, server)] {
            sim.add_link(a, b, access());
        }
        let there = sim.add_link(left, right, there);
        sim.add_link(right, left, back);
        Self { sim, client, server, server_address, there }
    }

    fn transfer(&mut self, amount: Amount) -> (AppId, AppId) {
        let config = Arc::new(ConnConfig::default());
        let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
        let to = Target::new(SocketAddr::new(self.server_address, 80));
        let sink = self.sim.add_app(self.server, Instant::ZERO, sink);
        let bulk = self.sim.add_app(self.client, Instant::from_millis(1), Bulk::new(to, config, amount));
        (bulk, sink)
    }
}

fn clean(rate: u64, delay_ms: u64, buffer: u64) -> LinkSpec {
    LinkSpec::new(rate, Duration::from_millis(delay_ms))
        .with_queue(Box::new(DropTail::new(Limit::Bytes(buffer))))
}

#[derive(Clone, Debug, Default)]
struct FirstArrivals(Arc<Mutex<Vec<(LinkId, Instant)>>>);

impl Observer for FirstArrivals {
    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, _: &Packet) {
        if event == PacketEvent::Delivered {
            self.0.lock().unwrap().push((link, now));
        }
    }
}

#[test]
fn a_packet_takes_serialisation_plus_delay_on_each_link() {
    let mut net =
        Dumbbell::new(1, clean(10_000_000, 10, 100_000), clean(10_000_000, 10, 100_000), Egress::Queued);
    let arrivals = FirstArrivals::default();
    net.sim.add_observer(arrivals.clone());
    net.transfer(Amount::Bytes(1));
    net.sim.run_until(Instant::from_millis(20));
    // A SYN with MSS, SACK, timestamps and window scale has 60 bytes: 480 ns at 1 Gbit/s, 48 us at
    // 10 Mbit/s.
    let times: Vec<_> = arrivals.0.lock().unwrap().iter().map(|(_, at)| at.as_nanos()).take(3).collect();
    let first = 1_000_000 + 480 + 1_000;
    let second = first + 48_000 + 10_000_000;
    assert_eq!(times, [first, second, second + 480 + 1_000]);
}

#[test]
#[ignore = "slow"]
fn a_long_transfer_fills_the_link() {
    for egress in [Egress::Queued, Egress::Fed] {
        let mut net =
            Dumbbell::new(1, clean(100_000_000, 10, 250_000), clean(100_000_000, 10, 250_000), egress);
        let (_, sink) = net.transfer(Amount::Endless);
        net.sim.run_until(Instant::from_secs(20));
        let received = net.sim.app::<Sink>(sink).unwrap().received();
        // 1,448 of 1,500 bytes are payload.
        let capacity = 100e6 / 8.0 * 20.0 * 1_448.0 / 1_500.0;
        let share = received as f64 / capacity;
        assert!((0.9..=1.0).contains(&share), "{egress:?}: {share}");
    }
}

#[test]
fn every_octet_survives_everything_at_once() {
    for seed in 0..20 {
        let bad = |delay| {
            clean(20_000_000, delay, 60_000)
                .with_impairment(Loss::new(0.01))
                .with_impairment(GilbertElliott::new(0.002, 0.3, 0.0, 0.5))
                // One bit: two may cancel out in the checksum of RFC 1071.
                .with_impairment(Corrupt::new(0.005, 1))
                .with_impairment(Duplicate::new(0.01))
                .with_impairment(Reorder::new(0.01, Duration::from_millis(3)))
                .with_impairment(Jitter::new(Duration::from_micros(200), true))
        };
        let mut net = Dumbbell::new(seed, bad(5), bad(5), Egress::Queued);
        let (bulk, sink) = net.transfer(Amount::Bytes(2_000_000));
        net.sim.run_until(Instant::from_secs(300));
        let sink = net.sim.app::<Sink>(sink).unwrap();
        assert_eq!((sink.received(), sink.wrong(), sink.complete()), (2_000_000, 0, 1), "seed {seed}");
        assert!(net.sim.app::<Bulk>(bulk).unwrap().completion_time().is_some(), "seed {seed}");
        let view = net.sim.view();
        for link in view.links() {
            let stats = view.stats(link);
            assert_eq!(
                stats.offered + stats.duplicated,
                stats.delivered + stats.dropped() + view.inside(link) as u64,
                "seed {seed}, {link:?}: {stats:?}"
            );
        }
        let stats = view.stats(net.there);
        assert!(stats.impaired > 0 && stats.duplicated > 0, "seed {seed}: {stats:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let lossy = || clean(50_000_000, 10, 100_000).with_impairment(Loss::new(0.005));
        let mut net = Dumbbell::new(seed, lossy(), lossy(), Egress::Queued);
        let arrivals = FirstArrivals::default();
        net.sim.add_observer(arrivals.clone());
        net.transfer(Amount::Bytes(3_000_000));
        net.sim.run_until(Instant::from_secs(60));
        let arrivals = arrivals.0.lock().unwrap().clone();
        (net.sim.processed(), arrivals)
    };
    assert!(run(7) == run(7));
    assert!(run(7) != run(8));
}
