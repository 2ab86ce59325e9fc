//! The ready-made networks carry data between all their ends.

use crate::common::{link, sink, transfer};
use ackline_netsim::app::{Amount, Sink};
use ackline_netsim::impair::Corrupt;
use ackline_netsim::topologies::{self, Duplex, Edge, HostSpec};
use ackline_netsim::{Checksums, LinkSpec, Observer, Packet, PacketEvent, Sim};
use ackline_tcp_core::{Duration, Instant};

/// Fast access links, and default hosts.
macro_rules! edge {
    () => {
        &mut Edge {
            host: &mut |_| HostSpec::default(),
            access: &mut |_| Duplex::symmetric(|| link(1_000_000_000, 0)),
        }
    };
}

#[test]
fn every_pair_of_a_parking_lot_reaches_its_receiver() {
    let mut sim = Sim::new(1);
    let hops = (0..3).map(|_| Duplex::symmetric(|| link(10_000_000, 5))).collect();
    let lot = topologies::parking_lot(&mut sim, 2, 1, hops, edge!());
    let mut sinks = vec![];
    let pairs = lot.long.senders.iter().zip(&lot.long.receivers);
    let cross = lot.cross_senders.iter().flatten().zip(lot.cross_receivers.iter().flatten());
    for (sender, receiver) in pairs.chain(cross) {
        sinks.push(sink(&mut sim, receiver));
        transfer(&mut sim, sender, receiver, Amount::Bytes(100_000));
    }
    assert_eq!(sinks.len(), 2 + 3);
    sim.run_until(Instant::from_secs(20));
    for sink in sinks {
        assert_eq!(sim.app::<Sink>(sink).unwrap().complete(), 1);
    }
    assert_eq!(sim.unroutable(), 0);
}

#[test]
fn star_and_pair_connect_their_hosts() {
    let mut sim = Sim::new(1);
    let star = topologies::star(&mut sim, 4, edge!());
    let to = sink(&mut sim, &star.hosts[0]);
    for from in &star.hosts[1..] {
        transfer(&mut sim, from, &star.hosts[0], Amount::Bytes(50_000));
    }
    sim.run_until(Instant::from_secs(5));
    assert_eq!(sim.app::<Sink>(to).unwrap().complete(), 3);

    let mut sim = Sim::new(1);
    let narrow = Duplex { there: link(10_000_000, 10), back: link(64_000, 10) };
    let pair = topologies::pair(&mut sim, HostSpec::default(), HostSpec::default(), narrow);
    let to = sink(&mut sim, &pair.receiver);
    transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Bytes(500_000));
    sim.run_until(Instant::from_secs(30));
    assert_eq!(sim.app::<Sink>(to).unwrap().complete(), 1);
}

/// Counts packets with and without a checksum in their TCP header.
#[derive(Debug, Default)]
struct Sums {
    zero: u64,
    computed: u64,
}

impl Observer for Sums {
    fn packet(&mut self, _: Instant, _: ackline_netsim::LinkId, event: PacketEvent, packet: &Packet) {
        if event == PacketEvent::Offered {
            let octets = packet.octets();
            let sum = u16::from_be_bytes([octets[36], octets[37]]);
            *(if sum == 0 { &mut self.zero } else { &mut self.computed }) += 1;
        }
    }
}

#[test]
fn checksums_are_computed_only_where_something_may_be_damaged() {
    let run = |spec: fn() -> LinkSpec, checksums| {
        let mut sim = Sim::new(3);
        sim.set_checksums(checksums);
        let sums = sim.add_observer(Sums::default());
        let pair = topologies::pair(
            &mut sim,
            HostSpec::default(),
            HostSpec::default(),
            Duplex { there: spec(), back: link(10_000_000, 5) },
        );
        let to = sink(&mut sim, &pair.receiver);
        transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Bytes(500_000));
        sim.run_until(Instant::from_secs(30));
        let wrong = sim.app::<Sink>(to).unwrap().wrong();
        let sums = sim.take_observer::<Sums>(sums).unwrap();
        (sums.zero > 0, sums.computed > 0, wrong > 0)
    };
    let clean = || link(10_000_000, 5);
    let damaging = || link(10_000_000, 5).with_impairment(Corrupt::new(0.02, 1));
    assert_eq!(run(clean, Checksums::Auto), (true, false, false));
    assert_eq!(run(clean, Checksums::Computed), (false, true, false));
    assert_eq!(run(damaging, Checksums::Auto), (false, true, false));
    let (zero, _, wrong) = run(damaging, Checksums::Omitted);
    assert!(zero && wrong, "damage reaches the application");
}

#[test]
fn links_take_the_time_that_their_length_says() {
    // Four hops of 5 ms; 60 bytes of SYN take 48 us on each, and 480 ns on the two access links.
    #[derive(Debug, Default)]
    struct Last(Vec<Instant>);
    impl Observer for Last {
        fn packet(&mut self, now: Instant, _: ackline_netsim::LinkId, event: PacketEvent, packet: &Packet) {
            if event == PacketEvent::Delivered && packet.number == 1 {
                self.0.push(now);
            }
        }
    }
    let mut sim = Sim::new(1);
    let hops = (0..4).map(|_| Duplex::symmetric(|| link(10_000_000, 5))).collect();
    let chain = topologies::chain(&mut sim, 1, hops, edge!());
    let last = sim.add_observer(Last::default());
    sink(&mut sim, &chain.receivers[0]);
    transfer(&mut sim, &chain.senders[0], &chain.receivers[0], Amount::Bytes(1));
    sim.run_until(Instant::from_secs(1));
    let arrivals = &sim.observer::<Last>(last).unwrap().0;
    let hop = Duration::from_micros(5_048);
    let access = Duration::from_nanos(480);
    let start = Instant::from_millis(1);
    let mut expected = vec![start + access];
    (0..4).for_each(|_| expected.push(expected[expected.len() - 1] + hop));
    expected.push(expected[4] + access);
    assert_eq!(*arrivals, expected);
}
