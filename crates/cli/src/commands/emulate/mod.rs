//! `ackline emulate`: a program behind a path of the simulator, in real time.

mod files;
mod network;
mod outside;
mod path;
mod plots;
mod report;
mod scenario;
mod validity;

use crate::args::emulate::{EmulateArgs, EmulateOffload};
use crate::failure::Failure;
use crate::network::names::Names;
use crate::network::program;
use crate::network::program::{Inside, IsolatedProgram};
use crate::network::tunnel;
use crate::output;
use crate::output::result_file::ResultFile;
use crate::signals::Signals;
use crate::watchers::capture::unix_ns;
use ackline::Registry;
use ackline::core::Instant;
use ackline_emulate::stage::{Devices, Hosts, RealTime, judge};
use ackline_emulate::{AttachError, Capture, Emulator, LoadWatch, Offload, Path, PathRecord};
use ackline_lab::RunError;
use files::Files;
use network::Network;
use outside::Outside;
use report::{DirectionTraffic, Summary};
use std::fs::File;
use std::io::{self, BufWriter};
use std::num::NonZeroU32;
use std::process::ExitStatus;
use tokio::runtime::{Builder, Handle};

pub(crate) fn run(args: &EmulateArgs, registry: &Registry) -> Result<(), Failure> {
    if let Some(file) = &args.scenario.file {
        return scenario::run(args, file, registry);
    }
    let network = Network::of(args, registry)?;
    if args.offload == EmulateOffload::Whole && network.path.sim.corrupts() {
        return Err(Failure::usage(format!("--offload whole: {}", AttachError::Corrupts)));
    }
    let files = Files::open(args)?;
    args.plot.as_deref().map(plots::prepare).transpose()?;
    if let Some(priority) = args.priority {
        priority.set_for_thread()?;
    }
    // While the process has one thread.
    program::prepare()?;
    // Hosts of a scenario have a thread of their own.
    let runtime = if network.hosts.is_empty() {
        tunnel::runtime()?
    } else {
        tunnel::build(Builder::new_multi_thread().worker_threads(1))?
    };
    let emulated = emulate(args, network, registry, files.pcap.as_ref());
    let Emulated { status, summary, rates } = runtime.block_on(emulated)?;
    if !args.quiet {
        output::say(summary.text().trim_end());
    }
    if let Some(json) = &files.json {
        json.write(&output::json(&summary))?;
    }
    files.finish()?;
    if let Some(folder) = &args.plot {
        plots::write(&summary, rates, folder, &args.figures.options())?;
    }
    program::outcome(status)
}

/// A run that has ended.
struct Emulated {
    status: ExitStatus,
    summary: Summary,
    /// Bits per second of both directions, if they have one.
    rates: [Option<u64>; 2],
}

/// Runs the program behind the network, to its end.
async fn emulate(
    args: &EmulateArgs,
    network: Network,
    registry: &Registry,
    pcap: Option<&ResultFile>,
) -> Result<Emulated, Failure> {
    let failed = |error: io::Error| Failure::system("emulate the path", &error);
    let Network { path: mut network, addresses, mtu, hosts, ends, interval, conditions } = network;
    let names = Names::of_machine(args.resolver.as_slice());
    names.warn("emulate");
    let kind = RealTime::from(args);
    let (outside, end) = Outside::start(addresses, names.resolvers.clone(), kind.offload, mtu[1], registry)?;
    let both = [network.up, network.down];
    let recorder = network.sim.add_observer(PathRecord::new(both));
    let capture = match pcap {
        Some(file) => Some((file, capture(args, file, &network)?)),
        None => None,
    };
    let resolv_conf = names.resolv_conf(addresses);
    let runtime = Handle::current();
    let stage = |error| Failure::from(RunError::Stage(error));
    let (mut hosts, others) = Hosts::start(kind, &runtime, hosts, ends, interval).map_err(stage)?;
    let offload = kind.offload != Offload::Off;
    let inside = Inside {
        addresses,
        // Of nested paths the outermost one leads to the machine.
        base: program::outer_base()?.unwrap_or(addresses.base),
        ipv6: false,
        routes: &[],
        resolv_conf: &resolv_conf,
        offload,
        mtu: mtu[0],
        capabilities: args.keep_capabilities,
    };
    let IsolatedProgram { program, tun, overruns } = program::start(&args.command, inside)?;
    tunnel::claim_descriptors();
    // Its time begins when all is there.
    let mut emulator = Emulator::new(kind.pacing).map_err(failed)?.with_offload(kind.offload);
    let zero = unix_ns(emulator.epoch());
    let capture = capture.map(|(file, capture)| (file, network.sim.add_observer(capture.starting_at(zero))));
    let load = LoadWatch::start();
    let mut devices: Devices = vec![(network.inside, Box::new(tun)), (network.outside, Box::new(end))];
    devices.extend(others);
    for (port, device) in devices {
        emulator.attach(&network.sim, port, device).map_err(|error| failed(io::Error::other(error)))?;
    }
    hosts.begin(&runtime, emulator.epoch()).map_err(stage)?;
    let mut signals = Signals::catch()?;
    let status = tokio::select! {
        status = program::wait(program, &mut signals) => status?,
        error = outside.run() => return Err(failed(error)),
        ended = emulator.run(&mut network.sim) => {
            ended.map_err(failed)?;
            return Err(failed(io::Error::other("its time has ended")));
        }
    };
    let (time, load) = (emulator.elapsed(), load.read());
    if let Some((file, id)) = capture
        && let Some(capture) = network.sim.take_observer::<Capture<BufWriter<File>>>(id)
    {
        capture.finish().map_err(|error| file.refused(&error))?;
    }
    let mut record = network.sim.take_observer(recorder).unwrap_or_else(|| Box::new(PathRecord::new(both)));
    record.end(Instant::ZERO + time);
    let ports: Vec<_> = emulator.ports().collect();
    // What goes up arrives at the outer port.
    let (ends, starts, overruns) = ([ports[1], ports[0]], [ports[0], ports[1]], [overruns.read(), 0]);
    let view = network.sim.view();
    let passed = [0, 1].map(|way| DirectionTraffic {
        link: view.stats(both[way]),
        record: &record.links()[way],
        super_packets: starts[way].super_packets,
        end: ends[way],
        overruns: overruns[way],
    });
    let rates = both.map(|link| Some(view.rate(link)).filter(|rate| *rate < u64::MAX));
    let mut summary = Summary::new(time, passed, &record, load, &kind);
    summary.conditions.extend(conditions);
    // Hosts beside the program.
    for reason in judge(ports[2..].iter().copied()).reasons {
        summary.distrust(reason);
    }
    Ok(Emulated { status, summary, rates })
}

/// A capture of both directions.
fn capture(
    args: &EmulateArgs,
    file: &ResultFile,
    network: &Path,
) -> Result<Capture<BufWriter<File>>, Failure> {
    let snap_length = args.snaplen.and_then(NonZeroU32::new);
    let capture = Capture::new(BufWriter::new(file.writer()?), network.capture_points(), snap_length);
    capture.map_err(|error| file.refused(&error))
}
