//! How fast the simulator is: simulated data packets per CPU second on a dumbbell, each built,
//! parsed and acknowledged by real endpoints; how the cost of a packet grows with the number of
//! flows; and what a flow needs in memory.
//!
//! `cargo bench --bench netsim` runs everything, `cargo bench --bench netsim -- dumbbell-16` one
//! line. Up to two numbers replace how many simulated seconds are measured, and how many pass
//! before. Instructions, which other work on the machine does not change, are counted of the
//! measured part alone:
//!
//! ```text
//! cargo bench --bench netsim --no-run        # says where the program is
//! valgrind --tool=callgrind --toggle-collect='*measured*' PROGRAM dumbbell-16 5
//! ```

use ackline::Registry;
use ackline::core::config::{AcceptConfig, ListenOn, Target};
use ackline::core::{Duration, Instant};
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::topologies::{self, Chain, Duplex, Edge, HostSpec};
use ackline_netsim::{LinkSpec, Sim};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts live bytes.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A dumbbell with bulk flows over it.
struct Scenario {
    name: &'static str,
    flows: usize,
    /// Bits per second of the bottleneck.
    rate: u64,
    /// Seconds before and while packets are counted.
    warm_up: Duration,
    measured: Duration,
}

/// Round-trip time without queues.
const RTT: Duration = Duration::from_millis(50);
/// Host pairs at most; further flows share them.
const PAIRS: usize = 16;
const PORT: u16 = 80;

const fn dumbbell(name: &'static str, flows: usize) -> Scenario {
    let measured = Duration::from_secs(60);
    Scenario { name, flows, rate: 100_000_000, warm_up: Duration::ZERO, measured }
}

/// About a million packets, the same path and load for any number of flows.
const fn growth(name: &'static str, flows: usize) -> Scenario {
    let rate = 10_000_000_000;
    let measured = Duration::from_millis(1_200);
    Scenario { name, flows, rate, warm_up: Duration::from_secs(3), measured }
}

const SCENARIOS: &[Scenario] = &[
    dumbbell("dumbbell-1", 1),
    dumbbell("dumbbell-16", 16),
    growth("growth-1", 1),
    growth("growth-16", 16),
    growth("growth-1000", 1_000),
    growth("growth-10000", 10_000),
];

fn build(scenario: &Scenario) -> (Sim, Chain) {
    let mut sim = Sim::new(1);
    let one_way = Duration::from_nanos(RTT.as_nanos() / 2);
    // Each flow has the same share of a buffer of one product of rate and delay.
    let buffer = scenario.rate / 8 * RTT.as_millis() / 1_000;
    let bottleneck = Duplex::symmetric(|| {
        let queue = DropTail::new(Limit::Bytes(buffer.max(30_000)));
        LinkSpec::new(scenario.rate, one_way).with_queue(Box::new(queue))
    });
    let pairs = scenario.flows.min(PAIRS);
    // Bursts of the bottleneck pass, whoever shares it.
    let access_rate = (scenario.rate * 4).max(1_000_000_000);
    let mut edge = Edge {
        host: &mut |_| HostSpec {
            scheduler: Registry::default().sched("fifo").expect("it exists")(),
            ..HostSpec::default()
        },
        access: &mut |_| Duplex::symmetric(|| LinkSpec::new(access_rate, Duration::ZERO)),
    };
    let net = topologies::dumbbell(&mut sim, pairs, bottleneck, &mut edge);
    let config = Arc::new({
        let mut config = Registry::default().conn_config();
        // Room for twice a flow's share of the path and the buffer: the window, not the
        // application, limits it.
        config.send_buffer = (4 * buffer / scenario.flows as u64).max(64 << 10) as u32;
        config.recv_buffer = config.recv_buffer.max(config.send_buffer);
        config
    });
    for host in &net.receivers {
        let accept = AcceptConfig::new(config.clone());
        sim.add_app(host.node, Instant::ZERO, Sink::new(ListenOn::Port(PORT), accept, Reading::Instant));
    }
    for flow in 0..scenario.flows {
        let to = Target::new(SocketAddr::new(net.receivers[flow % pairs].address, PORT));
        // Starts are spread over a second.
        let start = Duration::from_nanos(1_000_000_000 * flow as u64 / scenario.flows as u64);
        let bulk = Bulk::new(to, config.clone(), Amount::Endless);
        sim.add_app(net.senders[flow % pairs].node, Instant::ZERO + start, bulk);
    }
    (sim, net)
}

/// CPU time of the only thread, in seconds. Not by a system call of rustix, which valgrind's
/// auxiliary vector confuses.
fn cpu() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanos| nanos.parse().ok()).map_or(0.0, |nanos: f64| nanos / 1e9)
}

/// What is measured: a function of its own, so that a profiler can tell it from the rest.
#[inline(never)]
fn measured(sim: &mut Sim, until: Instant) {
    sim.run_until(until);
}

fn main() {
    let args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let (mut filter, mut seconds) = (vec![], vec![]);
    for arg in args {
        match arg.parse::<f64>() {
            Ok(number) => seconds.push(Duration::from_nanos((number * 1e9) as u64)),
            Err(_) => filter.push(arg),
        }
    }
    println!(
        "{:<14} {:>6} {:>9} {:>8} {:>6} {:>7} {:>6} {:>10} {:>10} {:>9}",
        "scenario",
        "flows",
        "packets",
        "dropped",
        "acks",
        "events",
        "cpu s",
        "packets/s",
        "ns/packet",
        "kB/flow"
    );
    for scenario in SCENARIOS {
        if !filter.is_empty() && !filter.iter().any(|wanted| scenario.name == wanted) {
            continue;
        }
        let before = LIVE.load(Ordering::Relaxed);
        let (mut sim, net) = build(scenario);
        let link = net.bottleneck().there;
        let start = Instant::ZERO + *seconds.get(1).unwrap_or(&scenario.warm_up);
        sim.run_until(start);
        let first = sim.view().stats(link);
        let (sent, events) = (sim.packets(), sim.processed());
        let cpu_first = cpu();
        measured(&mut sim, start + *seconds.first().unwrap_or(&scenario.measured));
        let spent = cpu() - cpu_first;
        let last = sim.view().stats(link);
        let packets = (last.delivered - first.delivered) as f64;
        // Pure ACKs, and events of the simulation, for each data packet.
        let acks = (sim.packets() - sent) as f64 / packets - 1.0;
        let events = (sim.processed() - events) as f64 / packets;
        println!(
            "{:<14} {:>6} {:>9} {:>8} {:>6.2} {:>7.1} {:>6.2} {:>10.0} {:>10.0} {:>9.1}",
            scenario.name,
            scenario.flows,
            packets,
            last.overflows - first.overflows,
            acks,
            events,
            spent,
            packets / spent,
            spent / packets * 1e9,
            (LIVE.load(Ordering::Relaxed) - before) as f64 / 1e3 / scenario.flows as f64,
        );
    }
}
