//! Random networks: nothing is lost without being counted, nothing wrong is delivered, and nothing
//! depends on who watches.

use crate::common::{sink, target};
use ackline_netsim::app::{Amount, Bulk, Draw, Sink};
use ackline_netsim::impair::{Corrupt, DropList, Duplicate, GilbertElliott, Jitter, Loss, Reorder, Which};
use ackline_netsim::queue::{
    Action, Adaptive, CoDel, CoDelParams, DropTail, Limit, Queue, Ramp, Red, RedParams, Step,
};
use ackline_netsim::record::{RecordOptions, Recorder, TraceOptions};
use ackline_netsim::topologies::{self, Duplex, Edge, HostAt, HostSpec};
use ackline_netsim::{AppId, Change, Egress, LinkId, LinkSpec, Sim};
use ackline_netsim::{NodeId, Observer, Packet, PacketEvent, View};
use ackline_tcp_core::config::{ConnConfig, Ecn, Nagle};
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::{ConnId, Duration, Instant};
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Pair,
    Dumbbell,
    Chain(usize),
    ParkingLot(usize),
    Star,
}

#[derive(Clone, Copy, Debug)]
enum Buffer {
    Bytes(u64),
    Packets(usize),
    Time(u64),
    Red,
    Step,
    Ramp,
    CoDel,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    Loss,
    Bursts,
    Corruption,
    Duplicates,
    Reordering,
    Jitter,
    Outage,
    Stall,
    SlowDown,
}

const HARMS: [Harm; 9] = [
    Harm::Loss,
    Harm::Bursts,
    Harm::Corruption,
    Harm::Duplicates,
    Harm::Reordering,
    Harm::Jitter,
    Harm::Outage,
    Harm::Stall,
    Harm::SlowDown,
];

#[derive(Clone, Debug)]
struct Scenario {
    seed: u64,
    shape: Shape,
    flows: usize,
    bytes: u64,
    rate: u64,
    delay_us: u64,
    framing: u32,
    buffer: Buffer,
    harms: Vec<Harm>,
    fed: bool,
    sack: bool,
    timestamps: bool,
    nagle: bool,
    send_buffer: u32,
    recv_buffer: u32,
    marks: bool,
}

fn scenario(harms: impl Strategy<Value = Vec<Harm>>) -> impl Strategy<Value = Scenario> {
    let shape = prop_oneof![
        Just(Shape::Pair),
        Just(Shape::Dumbbell),
        (1..4_usize).prop_map(Shape::Chain),
        (1..4_usize).prop_map(Shape::ParkingLot),
        Just(Shape::Star),
    ];
    let buffer = prop_oneof![
        (6_000..100_000_u64).prop_map(Buffer::Bytes),
        (4..100_usize).prop_map(Buffer::Packets),
        (20..300_u64).prop_map(Buffer::Time),
        Just(Buffer::Red),
        Just(Buffer::Step),
        Just(Buffer::Ramp),
        Just(Buffer::CoDel),
    ];
    let network = (any::<u64>(), shape, 1..4_usize, 1..80_000_u64, 500_000..100_000_000_u64);
    let link = (0..30_000_u64, 0..40_u32, buffer, harms);
    let buffers = (3_000..100_000_u32, 3_000..100_000_u32);
    let host = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), buffers, any::<bool>());
    (network, link, host).prop_map(|(network, link, host)| {
        let (seed, shape, flows, bytes, rate) = network;
        let (delay_us, framing, buffer, harms) = link;
        let (fed, sack, timestamps, nagle, (send_buffer, recv_buffer), marks) = host;
        Scenario {
            seed,
            shape,
            flows,
            bytes,
            rate,
            delay_us,
            framing,
            buffer,
            harms,
            fed,
            sack,
            timestamps,
            nagle,
            send_buffer,
            recv_buffer,
            marks,
        }
    })
}

impl Scenario {
    fn queue(&self) -> Box<dyn Queue> {
        let action = if self.marks { Action::Mark } else { Action::Drop };
        let limit = Limit::Bytes(100_000);
        match self.buffer {
            Buffer::Bytes(bytes) => Box::new(DropTail::new(Limit::Bytes(bytes))),
            Buffer::Packets(packets) => Box::new(DropTail::new(Limit::Packets(packets))),
            Buffer::Time(ms) => Box::new(DropTail::new(Limit::Time(Duration::from_millis(ms)))),
            Buffer::Step => Box::new(Step::new(limit, 30_000, action)),
            Buffer::Ramp => Box::new(Ramp::new(limit, 10_000, 60_000, action)),
            Buffer::CoDel => Box::new(CoDel::new(CoDelParams { limit, action, ..CoDelParams::default() })),
            Buffer::Red => Box::new(Red::new(RedParams {
                limit,
                min: 10_000,
                max: 50_000,
                max_p: 0.1,
                wlog: 4,
                avpkt: 1_000,
                adaptive: Some(Adaptive::default()),
                action,
            })),
        }
    }

    /// `corrupts`: if there is corruption, it is on this link. A packet crosses only one that does,
    /// because two bits, even of two links, may cancel out in the checksum of RFC 1071.
    fn link(&self, corrupts: bool) -> LinkSpec {
        let mut link =
            LinkSpec::new(self.rate, Duration::from_micros(self.delay_us)).with_queue(self.queue());
        link.framing = self.framing;
        for harm in &self.harms {
            link = match harm {
                Harm::Loss => link.with_impairment(Loss::new(0.02)),
                Harm::Bursts => link.with_impairment(GilbertElliott::new(0.005, 0.3, 0.0, 0.7)),
                Harm::Corruption if !corrupts => link,
                Harm::Corruption => link.with_impairment(Corrupt::new(0.02, 1)),
                Harm::Duplicates => link.with_impairment(Duplicate::new(0.05)),
                Harm::Reordering => link.with_impairment(Reorder::new(0.05, Duration::from_millis(7))),
                Harm::Jitter => link.with_impairment(Jitter::new(Duration::from_millis(3), true)),
                Harm::Outage => {
                    let (from, to) = (Instant::from_millis(100), Instant::from_millis(400));
                    link.with_impairment(DropList::new(Which::Between(from, to)))
                }
                Harm::Stall | Harm::SlowDown => link,
            };
        }
        link
    }

    fn host(&self) -> HostSpec {
        let egress = if self.fed { Egress::Fed } else { Egress::Queued };
        HostSpec { egress, ..HostSpec::default() }
    }

    fn build(&self) -> Built {
        let mut sim = Sim::new(self.seed);
        let first = || Duplex::symmetric(|| self.link(true));
        let mut edge = Edge {
            host: &mut |_| self.host(),
            access: &mut |_| Duplex::symmetric(|| LinkSpec::new(100_000_000, Duration::from_micros(10))),
        };
        let hops = |hops| (0..hops).map(|hop| Duplex::symmetric(|| self.link(hop == 0))).collect();
        let ways: Vec<(HostAt, HostAt)> = match self.shape {
            Shape::Pair => {
                let pair = topologies::pair(&mut sim, self.host(), self.host(), first());
                vec![(pair.sender, pair.receiver); self.flows]
            }
            Shape::Dumbbell => {
                let net = topologies::dumbbell(&mut sim, self.flows, first(), &mut edge);
                net.senders.into_iter().zip(net.receivers).collect()
            }
            Shape::Chain(length) => {
                let net = topologies::chain(&mut sim, self.flows, hops(length), &mut edge);
                net.senders.into_iter().zip(net.receivers).collect()
            }
            Shape::ParkingLot(length) => {
                let net = topologies::parking_lot(&mut sim, 1, 1, hops(length), &mut edge);
                let long = net.long.senders.into_iter().zip(net.long.receivers);
                let senders = net.cross_senders.into_iter().flatten();
                long.chain(senders.zip(net.cross_receivers.into_iter().flatten())).collect()
            }
            Shape::Star => {
                let access = || Duplex { there: self.link(true), back: self.link(false) };
                let mut edge = Edge { host: &mut |_| self.host(), access: &mut |_| access() };
                let net = topologies::star(&mut sim, self.flows + 1, &mut edge);
                net.hosts[1..].iter().map(|host| (*host, net.hosts[0])).collect()
            }
        };
        let mut config = ConnConfig::default();
        (config.sack, config.timestamps) = (self.sack, self.timestamps);
        // A burst of loss ends only with packets: it may well outlast the usual number of SYNs.
        (config.syn_retries, config.max_rto) = (60, Duration::from_secs(5));
        (config.send_buffer, config.recv_buffer) = (self.send_buffer, self.recv_buffer);
        config.ecn = if self.marks { Ecn::Classic } else { Ecn::Off };
        config.nagle = if self.nagle { Nagle::Rfc896 } else { Nagle::Off };
        let config = Arc::new(config);
        let mut receivers: Vec<HostAt> = ways.iter().map(|(_, to)| *to).collect();
        receivers.dedup_by_key(|host| host.node);
        let sinks = receivers.iter().map(|host| sink(&mut sim, host)).collect();
        let bulks = ways
            .iter()
            .map(|(from, to)| {
                let bulk = Bulk::new(target(to), config.clone(), Amount::Bytes(self.bytes));
                sim.add_app(from.node, Instant::from_millis(1), bulk.repeated(2, Draw::Uniform(0.0, 0.1)))
            })
            .collect();
        let links = sim.view().links();
        for (harm, at) in self.harms.iter().zip([60, 130, 200, 270, 340, 410, 480, 550, 620]) {
            let (at, later) = (Instant::from_millis(at), Instant::from_millis(at + 250));
            for &link in &links {
                match harm {
                    Harm::Stall => {
                        sim.add_change(at, Change::Stall(link));
                        sim.add_change(later, Change::Resume(link));
                    }
                    Harm::SlowDown => {
                        sim.add_change(at, Change::Service(link, ackline_netsim::Service::Rate(300_000)));
                        sim.add_change(at, Change::Delay(link, Duration::from_millis(1)));
                        let rate = ackline_netsim::Service::Rate(self.rate);
                        sim.add_change(later, Change::Service(link, rate));
                    }
                    _ => {}
                }
            }
        }
        Built { sim, bulks, sinks, links }
    }
}

struct Built {
    sim: Sim,
    bulks: Vec<AppId>,
    sinks: Vec<AppId>,
    links: Vec<LinkId>,
}

impl Built {
    /// Every packet is somewhere.
    fn conserves(&mut self) -> Result<(), TestCaseError> {
        let (sent, unroutable) = (self.sim.packets(), self.sim.unroutable());
        let view = self.sim.view();
        let hosts = view.hosts();
        // What came to each router and did not leave it again had no way to go.
        let mut passed = std::collections::BTreeMap::new();
        let (mut delivered, mut lost, mut copied, mut inside) = (0, 0, 0, 0);
        for &link in &self.links {
            let stats = view.stats(link);
            let on_link = view.inside(link) as u64;
            prop_assert_eq!(
                stats.offered + stats.duplicated,
                stats.delivered + stats.dropped() + on_link,
                "{:?}: {:?}",
                link,
                stats
            );
            let (from, to) = view.ends(link);
            *passed.entry(from).or_insert(0_i64) -= stats.offered as i64;
            *passed.entry(to).or_insert(0) += stats.delivered as i64;
            delivered += if hosts.contains(&to) { stats.delivered } else { 0 };
            lost += stats.dropped();
            copied += stats.duplicated;
            inside += on_link;
        }
        prop_assert_eq!(sent + copied, delivered + lost + inside + unroutable);
        let stranded = passed.iter().filter(|(node, _)| !hosts.contains(node)).map(|(_, count)| *count);
        prop_assert!(stranded.clone().all(|count| count >= 0));
        prop_assert_eq!(stranded.sum::<i64>(), unroutable as i64);
        Ok(())
    }

    /// Runs to the end of all transfers, looking at the books on the way.
    fn check(&mut self, bytes: u64) -> Result<(), TestCaseError> {
        for at in [50, 333, 2_000] {
            self.sim.run_until(Instant::from_millis(at));
            self.conserves()?;
        }
        self.sim.run_until(Instant::from_secs(1_200));
        self.conserves()?;
        for &bulk in &self.bulks {
            let bulk = self.sim.app::<Bulk>(bulk).unwrap();
            prop_assert_eq!(bulk.completions().len(), 2);
        }
        let (mut received, mut complete) = (0, 0);
        for &sink in &self.sinks {
            let sink = self.sim.app::<Sink>(sink).unwrap();
            prop_assert_eq!(sink.wrong(), 0);
            received += sink.received();
            complete += sink.complete();
        }
        let transfers = 2 * self.bulks.len() as u64;
        prop_assert_eq!((received, complete), (transfers * bytes, transfers));
        Ok(())
    }

    /// What the applications saw.
    fn outcome(&self) -> (u64, Vec<(Instant, Duration)>, Vec<Option<Instant>>) {
        let completions = self.bulks.iter().flat_map(|id| self.sim.app::<Bulk>(*id).unwrap().completions());
        let sinks = self.sinks.iter().map(|id| self.sim.app::<Sink>(*id).unwrap().last_byte());
        (self.sim.packets(), completions.copied().collect(), sinks.collect())
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn one_harm_at_a_time_damages_no_stream(
        scenario in scenario(prop::sample::select(&HARMS[..]).prop_map(|harm| vec![harm])),
    ) {
        scenario.build().check(scenario.bytes)?;
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn all_harms_together_damage_no_stream(
        scenario in scenario(prop::sample::subsequence(&HARMS[..], 0..=HARMS.len())),
    ) {
        scenario.build().check(scenario.bytes)?;
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// Without harms packets do not need an event for their last bit, and with a recorder they get
    /// one: the order of all others must stay.
    #[test]
    fn watching_changes_nothing(
        scenario in scenario(prop::sample::subsequence(&HARMS[..], 0..=2)),
    ) {
        let end = Instant::from_secs(5);
        let mut unseen = scenario.build();
        unseen.sim.run_until(end);
        let mut again = scenario.build();
        again.sim.run_until(end);
        prop_assert_eq!(unseen.sim.processed(), again.sim.processed());
        prop_assert_eq!(unseen.outcome(), again.outcome());

        let mut watched = scenario.build();
        let trace = Some(TraceOptions::default());
        watched.sim.add_observer(Recorder::new(RecordOptions { trace, ..RecordOptions::default() }));
        watched.sim.sample_every(Instant::ZERO, Duration::from_millis(100));
        watched.sim.run_until(end);
        prop_assert_eq!(unseen.outcome(), watched.outcome());
    }
}

/// Everything that can be seen of a simulation, in order.
#[derive(Debug, Default)]
struct Log {
    lines: Vec<u64>,
    /// What comes after this many lines is kept in full.
    from: usize,
    kept: Vec<String>,
}

impl Log {
    fn add(&mut self, what: impl Hash + std::fmt::Debug) {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.lines.push(hasher.finish());
        if (self.from..self.from + 10).contains(&self.lines.len()) {
            self.kept.push(format!("{what:?}"));
        }
    }
}

impl Observer for Log {
    fn watches_departures(&self, _: LinkId) -> bool {
        true
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let about = (packet.number, packet.price, packet.from, packet.to, packet.sent_at, packet.queued_at);
        let origin = format!("{event:?} {:?}", packet.origin);
        self.add((now, link, about, origin, packet.octets()));
    }

    fn needs_traces(&self) -> bool {
        true
    }

    fn trace(&mut self, now: Instant, node: NodeId, conn: ConnId, event: &TraceEvent) {
        self.add((now, node, conn.index(), format!("{event:?}")));
    }

    fn sample(&mut self, now: Instant, view: &mut View<'_>) {
        for host in view.hosts() {
            for (conn, app) in view.conns(host) {
                let endpoint = view.endpoint(host).expect("a host has one");
                let conn = endpoint.conn(conn).expect("its application has it");
                self.add((now, host, app, format!("{:?}", conn.info())));
            }
            let endpoint = view.endpoint(host).expect("a host has one");
            self.add((now, host, format!("{:?} {}", endpoint.counters(), endpoint.memory())));
        }
    }
}

impl Scenario {
    /// What is seen of the first seconds.
    fn seen(&self, wire: bool, from: usize) -> (Box<Log>, String) {
        let mut built = self.build();
        built.sim.set_wire(wire);
        let log = built.sim.add_observer(Log { from, ..Log::default() });
        built.sim.sample_every(Instant::ZERO, Duration::from_millis(10));
        // Also what is on its way when one run ends and the next begins.
        for ms in [3, 1_000, 4_000] {
            built.sim.run_until(Instant::from_millis(ms));
        }
        let mut end = format!("{:?} {}", built.outcome(), built.sim.processed());
        for &app in built.bulks.iter().chain(&built.sinks) {
            let app = built.sim.any_app(app).expect("it was added");
            app.metrics(&mut |name, value| end += &format!(" {name}={value}"));
        }
        (built.sim.take_observer::<Log>(log).expect("it was added"), end)
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// Packets without octets and connections without data are like any others: the same packets,
    /// octet for octet, at the same times, the same events of connections, the same statistics,
    /// memory included, and the same results.
    #[test]
    fn octets_make_no_difference(
        scenario in scenario(prop::sample::subsequence(&HARMS[..], 0..=HARMS.len())),
    ) {
        let (without, end) = scenario.seen(false, 0);
        let (with, wire_end) = scenario.seen(true, 0);
        if let Some(place) = (0..without.lines.len().max(with.lines.len()))
            .find(|place| without.lines.get(*place) != with.lines.get(*place))
        {
            let show = |wire| scenario.seen(wire, place).0.kept.join("\n");
            prop_assert!(false, "from line {place} on:\n{}\nand with --wire:\n{}", show(false), show(true));
        }
        prop_assert_eq!(end, wire_end);
    }
}
