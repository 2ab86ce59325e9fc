//! Two congestion controls on the small seam, which asks for growth and decrease only: Reno and
//! Vegas, each in a file that ends with its table entry. They keep the rules of the seam, and run
//! beside the built-in `reno` over the same bottleneck in the simulator.
//!
//! `cargo run --release --example small_cc`

mod reno;
mod vegas;

use ackline::Registry;
use ackline::core::policy::{NewCongestionControl, conformance};
use ackline::core::{AcceptConfig, ConnConfig, Duration, Instant, ListenOn, Target};
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::record::{RecordOptions, Recorder};
use ackline_netsim::topologies::{self, Duplex, HostSpec};
use ackline_netsim::{LinkSpec, Sim};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

const RATE: u64 = 20_000_000;
const DELAY: Duration = Duration::from_millis(20);
/// What the bottleneck's queue holds before it drops: 100 ms.
const BUFFER: u64 = 250_000;
const SECONDS: u64 = 20;
/// When slow start is over.
const SETTLED: Instant = Instant::from_secs(5);

/// Sends under `cc`, and says what became of it.
fn run(cc: Arc<NewCongestionControl>) -> Result<String, Box<dyn Error>> {
    let mut sim = Sim::new(1);
    let link = || LinkSpec::new(RATE, DELAY).with_queue(Box::new(DropTail::new(Limit::Bytes(BUFFER))));
    let pair = topologies::pair(&mut sim, HostSpec::default(), HostSpec::default(), Duplex::symmetric(link));
    let mut config: ConnConfig = Registry::default().conn_config();
    config.policies.cc = cc;
    let config = Arc::new(config);
    let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
    sim.add_app(pair.receiver.node, Instant::ZERO, sink);
    let to = Target::new(SocketAddr::new(pair.receiver.address, 80));
    sim.add_app(pair.sender.node, Instant::ZERO, Bulk::new(to, config, Amount::Endless));
    let recorder = sim.add_observer(Recorder::new(RecordOptions::default()));
    sim.sample_every(Instant::ZERO, Duration::from_millis(10));
    sim.run_until(Instant::from_secs(SECONDS));

    let record = sim.take_observer::<Recorder>(recorder).ok_or("there is a recorder")?.record();
    let sender = record.connections.first().ok_or("there is a connection")?;
    let samples = sender.samples.iter().filter(|sample| sample.at_ns >= SETTLED.as_nanos());
    let (first, last) =
        (samples.clone().next().ok_or("it lasts")?, samples.clone().next_back().ok_or("it lasts")?);
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let rtts: Vec<f64> = samples.filter_map(|sample| sample.srtt_ns).map(|ns| ns as f64 / 1e6).collect();
    Ok(format!(
        "{:12} {:5.2} Mbit/s, round trip {:5.1} ms on average, {:3} segments again",
        sender.cc,
        (last.bytes_acked - first.bytes_acked) as f64 * 8.0 / seconds / 1e6,
        rtts.iter().sum::<f64>() / rtts.len() as f64,
        last.retransmits,
    ))
}

/// Lines that are neither empty nor comments.
fn lines_of_code(file: &str) -> usize {
    file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn main() -> Result<(), Box<dyn Error>> {
    let sizes = [lines_of_code(include_str!("reno.rs")), lines_of_code(include_str!("vegas.rs"))];
    assert!(sizes[0] <= 40 && sizes[1] <= 60, "a small seam makes small controls: {sizes:?} lines");
    println!("Reno in {} lines, Vegas in {}; 20 Mbit/s, 40 ms, a queue of 100 ms:", sizes[0], sizes[1]);

    let registry = Registry::default().with_cc(reno::ENTRY).with_cc(vegas::ENTRY);
    for name in ["small-reno", "small-vegas"] {
        let cc = registry.cc(name)?;
        for seed in 0..20 {
            conformance::congestion_control(&*cc, seed);
        }
    }
    for name in ["small-reno", "reno", "small-vegas"] {
        println!("{}", run(registry.cc(name)?)?);
    }
    Ok(())
}
