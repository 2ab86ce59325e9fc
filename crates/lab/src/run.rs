//! One run: build the network, let its time pass, read the meters.

pub(crate) mod goodput;
mod meter;
pub(crate) mod network;
mod policy_metrics;
pub(crate) mod scene;
pub(crate) mod sequence;
mod stream;
mod transfers;

use crate::error::{RunError, ScenarioError};
use crate::results::{FlowResult, HostResult, PolicyMetrics, QueueResult, RunResult, Waits};
use crate::scenario::setup::{FlowSetup, NodeSetup, Setup};
use crate::scenario::{End, Ends, Scenario};
use crate::stage::{Stages, Virtual, World, cc_name};
use crate::stats::{Spread, jain};
use ackline_netsim::pcapng::{Capture, CapturePoint, Point};
use ackline_netsim::record::{ConnRecord, Record, RecordOptions, Recorder, Select, TraceOptions};
use ackline_netsim::{LinkStats, Sim};
use ackline_tcp_core::policy::ack::AckInit;
use ackline_tcp_core::{Duration, Instant};
use goodput::{Destination, GoodputMeter, GoodputSeries};
use meter::Meter;
use network::Network;
use scene::Scene;
use sequence::{SequenceRecorder, TimeSequence};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;
use transfers::{FlowPath, Transfers};

/// A run and all that was recorded of it.
#[derive(Debug)]
pub struct Outcome {
    /// The numbers.
    pub result: RunResult,
    /// Time series and packets.
    pub record: Record,
    /// For each connection of the record, the place of its flow among [`RunResult::flows`].
    pub flow_of: Vec<Option<usize>>,
    /// For each queue of the record, the name of its link.
    pub link_names: Vec<String>,
    /// What each flow delivered when.
    pub goodput: GoodputSeries,
    /// The first flow's first connection, byte by byte, if plots are drawn and either this is the
    /// only flow or the scenario asks for a trace of packets.
    pub sequence: Option<TimeSequence>,
    /// What stays the same throughout the run.
    pub scene: Scene,
}

impl Outcome {
    /// The name of the link at a place among all links; empty if its queue is not measured.
    #[must_use]
    pub fn name_of(&self, link: usize) -> &str {
        let place = self.record.queues.iter().position(|queue| queue.link == link);
        place.and_then(|place| self.link_names.get(place)).map_or("", String::as_str)
    }
}

/// Runs one point with one seed. Everything that the run gives follows from the arguments.
///
/// # Errors
/// Those of the scenario at this point, which [`Scenario::parse`] has found before.
pub fn run_one(scenario: &Scenario, point: usize, repetition: u32) -> Result<Outcome, RunError> {
    run_one_on(&Virtual, scenario, point, repetition)
}

/// The same on another stage.
///
/// # Errors
/// Also those of the stage.
pub fn run_one_on(
    stages: &dyn Stages,
    scenario: &Scenario,
    point: usize,
    repetition: u32,
) -> Result<Outcome, RunError> {
    perform(stages, scenario, point, repetition, RunOutputs::default()).map(|(outcome, _)| outcome)
}

/// The network of one point with one seed, before its time begins: for observers and measurements
/// of your own. Hosts have the order of the scenario, and their addresses; `sim.run_until` lets
/// time pass.
///
/// # Errors
/// Those of the scenario at this point, which [`Scenario::parse`] has found before.
pub fn simulation(scenario: &Scenario, point: usize, repetition: u32) -> Result<Sim, ScenarioError> {
    Ok(Network::virtual_only(&scenario.setup(point)?, scenario.seed(repetition)).sim)
}

/// What a run is to leave beside its record.
#[derive(Default)]
pub(crate) struct RunOutputs {
    pub(crate) capture: Option<CaptureFile>,
    /// The time-sequence diagram, of scenarios that have one.
    pub(crate) sequence: bool,
    /// Every packet has octets.
    pub(crate) wire: bool,
    /// End with [`RunError::Flood`] once hosts have sent more packets. Looked at at the end of each
    /// bin. `None`: no limit.
    pub(crate) most_packets: Option<u64>,
}

/// Where a capture goes.
pub(crate) struct CaptureFile {
    pub(crate) file: Box<dyn Write + Send>,
    /// Bytes kept of each packet; `None`: all.
    pub(crate) snap_length: Option<NonZeroU32>,
}

/// The error of a capture file, if it could not be written.
pub(crate) type Captured = std::io::Result<()>;

/// The same; what passes the measured links, in both directions, goes to a capture as pcapng.
pub(crate) fn perform(
    stages: &dyn Stages,
    scenario: &Scenario,
    point: usize,
    repetition: u32,
    wanted: RunOutputs,
) -> Result<(Outcome, Captured), RunError> {
    let setup = scenario.setup(point)?;
    let seed = scenario.seed(repetition);
    let (mut net, outside) = Network::build(&setup, seed, stages.stage()?);
    net.sim.set_wire(wanted.wire);
    let window = (Instant::ZERO + setup.measure.from, Instant::ZERO + setup.measure.until);

    let recorder = net.sim.add_observer(Recorder::new(options(&setup, &net, window)));
    net.sim.sample_every(Instant::ZERO, setup.measure.interval);
    let first = setup.links.iter().map(|link| setup.nodes[link.from].host.is_some()).collect();
    let ports: Vec<u16> = net.flows.iter().map(|flow| flow.port).collect();
    let measured = |place| setup.measure.queues.contains(&place);
    let framing: Vec<Option<u32>> = setup
        .links
        .iter()
        .enumerate()
        .map(|(place, link)| measured(place).then_some(link.path.framing))
        .collect();
    let meter = net.sim.add_observer(Meter::new(window.0, window.1, first, &framing, &ports));
    let transfers =
        setup.measure.transfers.then(|| net.sim.add_observer(watch_transfers(&setup, &net, window)));
    let goodput = net.sim.add_observer(watch_goodput(&setup, &net));
    let sequence = wanted.sequence.then(|| watch_sequence(&setup, &net)).flatten();
    let sequence = sequence.map(|recorder| net.sim.add_observer(recorder));
    let mut captured = Ok(());
    let begin = |CaptureFile { file, snap_length }| {
        Capture::new(BufWriter::new(file), points(&setup, &net), snap_length)
    };
    let capture = match wanted.capture.map(begin) {
        Some(Ok(capture)) => Some(net.sim.add_observer(capture)),
        Some(Err(error)) => {
            captured = Err(error);
            None
        }
        None => None,
    };

    net.begin(outside, setup.measure.interval)?;
    let mut bins = Bins::new(&setup, wanted.most_packets);
    bins.run_until(&mut net, window.0)?;
    let before = Snapshot::take(&setup, &mut net);
    bins.run_until(&mut net, window.1)?;
    let after = Snapshot::take(&setup, &mut net);
    let hosts = hosts(&setup, &mut net);
    let shown = policy_metrics::of_flows(&mut net);
    bins.run_until(&mut net, Instant::ZERO + setup.duration)?;
    let end = Snapshot::take(&setup, &mut net);

    if let Some(id) = capture
        && let Some(capture) = net.sim.take_observer::<Capture<BufWriter<Box<dyn Write + Send>>>>(id)
    {
        captured = capture.finish().map(drop);
    }
    let mut record =
        net.sim.take_observer::<Recorder>(recorder).map(|recorder| recorder.record()).unwrap_or_default();
    let (outside, validity) = net.finish();
    record.connections.extend(outside);
    let meter = net.sim.take_observer::<Meter>(meter);
    let transfers = transfers.and_then(|id| net.sim.take_observer::<Transfers>(id));
    let goodput = net.sim.take_observer::<GoodputMeter>(goodput).map(|meter| meter.into_series());
    let sequence = sequence.and_then(|id| net.sim.take_observer::<SequenceRecorder>(id));
    let sequence = sequence.map(|recorder| recorder.into_sequence());
    let bins = bins.received;
    let reading = Reading {
        setup: &setup,
        net: &net,
        window,
        before: &before,
        after: &after,
        end: &end,
        bins: &bins,
        shown: &shown,
    };
    let flow_of = reading.flow_of(&record);
    let link_names = record.queues.iter().map(|queue| setup.links[queue.link].name.clone()).collect();
    let flows = reading.flows(&record, &flow_of, meter.as_deref(), transfers.as_deref());
    let greedy: Vec<f64> = flows.iter().filter(|flow| flow.greedy).map(|flow| flow.goodput_bps).collect();
    let result = RunResult {
        scenario: scenario.name().to_owned(),
        point,
        repetition,
        seed,
        params: scenario.params(point),
        window_s: (setup.measure.from.as_secs_f64(), setup.measure.until.as_secs_f64()),
        interval_s: setup.measure.interval.as_secs_f64(),
        bin_s: setup.measure.bins.map(Duration::as_secs_f64),
        flows,
        queues: reading.queues(&record, meter.as_deref()),
        hosts,
        jain: jain(&greedy),
        packets: net.sim.packets(),
        unroutable: net.sim.unroutable(),
        validity,
    };
    let goodput = goodput.unwrap_or_default();
    let measured: Vec<usize> = record.queues.iter().map(|queue| queue.link).collect();
    let scene = Scene::of(&setup, &measured);
    Ok((Outcome { result, record, flow_of, link_names, goodput, sequence, scene }, captured))
}

fn watch_transfers(setup: &Setup, net: &Network, window: (Instant, Instant)) -> Transfers {
    let flows = net.flows.iter().map(|flow| {
        let sender = flow.sender.0;
        FlowPath { port: flow.port, sender, receiver: flow.receiver.0 }
    });
    let ends = setup.links.iter().map(|link| (net.nodes[link.from], net.nodes[link.to]));
    Transfers::new(window, flows.collect(), ends.collect())
}

fn watch_sequence(setup: &Setup, net: &Network) -> Option<SequenceRecorder> {
    let flow = net.flows.first().filter(|_| net.flows.len() == 1 || setup.measure.trace.is_some())?;
    let ends = setup.links.iter().map(|link| (net.nodes[link.from], net.nodes[link.to]));
    Some(SequenceRecorder::new(flow.port, flow.sender.0, ends, setup.duration))
}

fn watch_goodput(setup: &Setup, net: &Network) -> GoodputMeter {
    let flows = net.flows.iter().take(setup.measure.flows);
    let flows = flows.map(|flow| Destination { port: flow.port, receiver: flow.receiver.0 });
    let ends = setup.links.iter().map(|link| net.nodes[link.to]);
    GoodputMeter::new(setup.duration, setup.measure.interval, flows.collect(), ends)
}

fn options(setup: &Setup, net: &Network, (from, until): (Instant, Instant)) -> RecordOptions {
    let mut hosts = vec![];
    for flow in net.flows.iter().take(setup.measure.flows) {
        if !hosts.contains(&flow.sender.0) {
            hosts.push(flow.sender.0);
        }
    }
    let links: Vec<_> = setup.measure.queues.iter().map(|place| net.links[*place]).collect();
    let trace = setup.measure.trace.or(setup.measure.drops).map(|limit| TraceOptions {
        links: Select::Only(links.clone()),
        limit,
        only_drops: setup.measure.trace.is_none(),
        ..TraceOptions::default()
    });
    RecordOptions {
        hosts: Select::Only(hosts),
        links: Select::Only(links),
        max_points: 20_000,
        // Both ends if a host both sends and receives.
        max_connections: setup.measure.flows.saturating_mul(2),
        from,
        until,
        exact_delays: 0,
        trace,
    }
}

/// Both directions of each measured link: it, and what leads back between the same nodes.
fn points(setup: &Setup, net: &Network) -> Vec<CapturePoint> {
    let mut places: Vec<usize> = vec![];
    for measured in &setup.measure.queues {
        let ends = |place: usize| (setup.links[place].from, setup.links[place].to);
        let (from, to) = ends(*measured);
        let back = (0..setup.links.len()).filter(|place| ends(*place) == (to, from));
        for place in std::iter::once(*measured).chain(back) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    let points = places.iter().flat_map(|place| {
        [Point::Left, Point::Dropped].map(|point| CapturePoint {
            link: net.links[*place],
            point,
            name: setup.links[*place].name.clone(),
        })
    });
    points.collect()
}

/// Lets time pass and counts what each flow's receiver has read by the end of each bin.
struct Bins<'a> {
    setup: &'a Setup,
    /// The length of a bin, and the end of the one that has begun.
    next: Option<(Duration, Instant)>,
    /// Of each flow, in each bin that has ended.
    received: Vec<Vec<u64>>,
    /// Of each flow, up to the last bin's end.
    total: Vec<u64>,
    most_packets: Option<u64>,
}

impl<'a> Bins<'a> {
    fn new(setup: &'a Setup, most_packets: Option<u64>) -> Self {
        let flows = setup.flows.len();
        let next = setup.measure.bins.map(|bins| (bins, Instant::ZERO + bins));
        Self { setup, next, received: vec![vec![]; flows], total: vec![0; flows], most_packets }
    }

    fn run_until(&mut self, net: &mut Network, until: Instant) -> Result<(), RunError> {
        while let Some((length, end)) = self.next.filter(|(_, end)| *end <= until) {
            net.run_until(end)?;
            let packets = net.sim.packets();
            if self.most_packets.is_some_and(|most| packets > most) {
                return Err(RunError::Flood { packets });
            }
            let total = received_by_flow(self.setup, net);
            for ((bins, before), total) in self.received.iter_mut().zip(&mut self.total).zip(total) {
                bins.push(total - *before);
                *before = total;
            }
            self.next = Some((length, end + length));
        }
        Ok(net.run_until(until)?)
    }
}

fn received_by_flow(setup: &Setup, net: &Network) -> Vec<u64> {
    let flows = setup.flows.iter().zip(&net.flows);
    flows.map(|(flow, place)| received(net, flow, place.ends)).collect()
}

/// Totals at one instant.
struct Snapshot {
    /// Bytes that each flow's receiver has read.
    received: Vec<u64>,
    /// Each measured link.
    links: Vec<LinkStats>,
}

impl Snapshot {
    fn take(setup: &Setup, net: &mut Network) -> Self {
        let received = received_by_flow(setup, net);
        let view = net.sim.view();
        let links = setup.measure.queues.iter().map(|place| view.stats(net.links[*place])).collect();
        Self { received, links }
    }
}

/// The schedulers of all hosts.
fn hosts(setup: &Setup, net: &mut Network) -> Vec<HostResult> {
    let mut hosts = vec![];
    for node in net.sim.view().hosts() {
        let mut view = net.sim.view();
        let Some(endpoint) = view.endpoint(node) else { continue };
        let stats = endpoint.egress_stats();
        let waits = stats.iter().filter(|(_, class)| class.queued > 0).map(|(name, class)| {
            let [p50, p90, p99, max] = [class.delay_p50, class.delay_p90, class.delay_p99, class.delay_max]
                .map(Duration::as_secs_f64);
            (name.to_owned(), Waits { queued: class.queued, p50, p90, p99, max })
        });
        let waits: BTreeMap<String, Waits> = waits.collect();
        let mut metrics = BTreeMap::new();
        endpoint.scheduler_metrics(&mut |metric| policy_metrics::insert(&mut metrics, metric));
        hosts.push(HostResult {
            host: setup.nodes[node.index()].name.clone(),
            scheduler: endpoint.scheduler_name().to_owned(),
            waits,
            metrics,
        });
    }
    hosts
}

fn received(net: &Network, flow: &FlowSetup, ends: Ends) -> u64 {
    let reader = net.metrics(if flow.kind.pulls() { ends.opener } else { ends.acceptor });
    let number = |name: &str| reader.get(name).copied().unwrap_or(0.0) as u64;
    match flow.kind.answer() {
        Some(answer) => number("answered") * answer,
        None => number("received_bytes"),
    }
}

/// Times that an application measured and that ended in the window, in seconds.
fn times(net: &Network, end: End, (from, until): (Instant, Instant)) -> Vec<f64> {
    let inside = net.times(end).into_iter().filter(|(at, _)| (from..=until).contains(at));
    inside.map(|(_, time)| time.as_secs_f64()).collect()
}

/// Names of the policies that handle a flow's data.
struct PolicyNames {
    cc: String,
    ack: String,
    rto: String,
    sched: String,
}

impl PolicyNames {
    /// Of a flow that `sender` sends from the world `from` to the world `to`. A policy has its name
    /// from its maker: a flow that never opened a connection has policies, too.
    fn of(flow: &FlowSetup, from: World, to: World, sender: &NodeSetup) -> Self {
        let (sends, receives) =
            if flow.kind.pulls() { (&flow.accept, &flow.conn) } else { (&flow.conn, &flow.accept) };
        let ack = (receives.policies.ack)(&AckInit::new(Instant::ZERO, 1_460, None));
        let rto = (sends.policies.rto)();
        let sched = sender.host.as_ref().map(|host| (host.scheduler)());
        let kernel = || World::Kernel.name().to_owned();
        let mut names = Self {
            cc: cc_name(sends),
            ack: ack.name().to_owned(),
            rto: rto.name().to_owned(),
            sched: sched.map(|sched| sched.name().to_owned()).unwrap_or_default(),
        };
        if from == World::Kernel {
            let own =
                sender.host.as_ref().and_then(|host| host.kernel.cc.as_ref().map(|cc| cc.value.as_str()));
            names.cc = format!("kernel {}", own.unwrap_or(&names.cc));
            (names.rto, names.sched) = (kernel(), kernel());
        }
        if to == World::Kernel {
            names.ack = kernel();
        }
        names
    }
}

/// What results are read from.
struct Reading<'a> {
    setup: &'a Setup,
    net: &'a Network,
    window: (Instant, Instant),
    before: &'a Snapshot,
    after: &'a Snapshot,
    end: &'a Snapshot,
    /// What each flow's receiver read in each bin.
    bins: &'a [Vec<u64>],
    /// What each flow's policies showed at the end of the window.
    shown: &'a [Option<PolicyMetrics>],
}

impl Reading<'_> {
    /// Where the host at a place ran.
    fn world(&self, node: usize) -> World {
        let outside = self.net.outside[node].and(self.setup.nodes[node].host.as_ref());
        outside.map_or(World::Virtual, |host| host.world)
    }

    fn seconds(&self) -> f64 {
        self.window.1.since(self.window.0).as_secs_f64()
    }

    fn flow_of(&self, record: &Record) -> Vec<Option<usize>> {
        let flows = self.net.flows.iter().enumerate();
        let places: HashMap<(usize, u32), usize> =
            flows.map(|(flow, place)| ((place.sender.0.index(), place.sender.1), flow)).collect();
        record.connections.iter().map(|conn| places.get(&(conn.node, conn.app)).copied()).collect()
    }

    fn flows(
        &self,
        record: &Record,
        flow_of: &[Option<usize>],
        meter: Option<&Meter>,
        transfers: Option<&Transfers>,
    ) -> Vec<FlowResult> {
        let mut conns: Vec<Vec<&ConnRecord>> = vec![vec![]; self.net.flows.len()];
        for (conn, flow) in record.connections.iter().zip(flow_of) {
            if let Some(flow) = flow {
                conns[*flow].push(conn);
            }
        }
        let read = |flow: usize| self.after.received[flow] - self.before.received[flow];
        let total: u64 = (0..conns.len()).map(read).sum();
        let flows = self.setup.flows.iter().zip(&self.net.flows).enumerate();
        flows
            .map(|(place, (flow, at))| {
                let mut metrics = self.net.metrics(at.ends.opener);
                let mut wrong = metrics.remove("wrong_reads").unwrap_or(0.0);
                for (name, value) in self.net.metrics(at.ends.acceptor) {
                    if name == "wrong_reads" {
                        wrong += value;
                    } else {
                        metrics.entry(format!("peer_{name}")).or_insert(value);
                    }
                }
                let samples = || {
                    let all = conns[place].iter().flat_map(|conn| &conn.samples);
                    let (from, until) = (self.window.0.as_nanos(), self.window.1.as_nanos());
                    all.filter(move |sample| (from..=until).contains(&sample.at_ns))
                };
                let srtt = samples().filter_map(|sample| sample.srtt_ns).map(|nanos| nanos as f64 / 1e9);
                let sent = meter.map(|meter| meter.sent(place)).unwrap_or_default();
                let times_s = times(self.net, at.ends.opener, self.window);
                let (from, to) = if flow.kind.pulls() { (flow.to, flow.from) } else { (flow.from, flow.to) };
                let policies =
                    PolicyNames::of(flow, self.world(from), self.world(to), &self.setup.nodes[from]);
                let bytes = read(place);
                FlowResult {
                    name: flow.name.clone(),
                    app: flow.app.clone(),
                    sender: self.setup.nodes[from].name.clone(),
                    receiver: self.setup.nodes[to].name.clone(),
                    cc: policies.cc,
                    ack: policies.ack,
                    rto: policies.rto,
                    sched: policies.sched,
                    start_s: at.start.as_nanos() as f64 / 1e9,
                    greedy: flow.kind.is_greedy() && at.start < self.window.1 && times_s.is_empty(),
                    goodput_bps: bytes as f64 * 8.0 / self.seconds(),
                    share: if total == 0 { 0.0 } else { bytes as f64 / total as f64 },
                    received_bytes: self.end.received[place],
                    received_bins: self.bins[place].clone(),
                    data_packets: sent.data,
                    retransmits: sent.again,
                    srtt_s: Spread::of(srtt.collect()),
                    cwnd_bytes: Spread::of(samples().map(|sample| sample.cwnd as f64).collect()),
                    cwnd_end_bytes: samples()
                        .next_back()
                        .map(|sample| sample.cwnd)
                        .filter(|_| self.setup.measure.cwnd),
                    times_s,
                    transfers: transfers.map(|transfers| transfers.of_flow(place)).unwrap_or_default(),
                    wrong_reads: wrong as u64,
                    app_metrics: metrics,
                    metrics: self.shown[place].clone(),
                }
            })
            .collect()
    }

    fn queues(&self, record: &Record, meter: Option<&Meter>) -> Vec<QueueResult> {
        let queues = self.setup.measure.queues.iter().enumerate();
        queues
            .map(|(number, place)| {
                let (before, after) = (&self.before.links[number], &self.after.links[number]);
                let link = self.net.links[*place].index();
                let queue = record.queues.iter().find(|queue| queue.link == link);
                let dual = queue.and_then(|queue| queue.dual.as_ref());
                QueueResult {
                    link: self.setup.links[*place].name.clone(),
                    queue: queue.map(|queue| queue.queue.clone()).unwrap_or_default(),
                    rate_bps: queue.and_then(|queue| queue.rate_bps),
                    delay_s: queue.and_then(|queue| Spread::of_delays(&queue.delay)),
                    l4s_delay_s: dual.and_then(|dual| Spread::of_delays(&dual.l4s)),
                    classic_delay_s: dual.and_then(|dual| Spread::of_delays(&dual.classic)),
                    utilisation: (after.busy - before.busy).as_secs_f64() / self.seconds(),
                    throughput_bps: (after.delivered_bytes - before.delivered_bytes) as f64 * 8.0
                        / self.seconds(),
                    offered: after.offered - before.offered,
                    delivered: after.delivered - before.delivered,
                    overflows: after.overflows - before.overflows,
                    aqm_drops: after.aqm_drops - before.aqm_drops,
                    impaired: after.impaired - before.impaired,
                    marked: after.marked - before.marked,
                    classes: meter.map(|meter| meter.left(self.net.links[*place])).unwrap_or_default(),
                }
            })
            .collect()
    }
}
