//! `ackline emulate`: a program behind a path of the simulator, in real time.

mod files;
mod names;
mod outside;
mod path;
mod plots;
mod program;
mod report;
mod scenario;
mod validity;

use crate::args::emulate::{EmulateArgs, EmulatePacing};
use crate::capture::unix_ns;
use crate::failure::Failure;
use crate::{interfaces, output, tunnel};
use ackline::Registry;
use ackline::core::Instant;
use ackline::runtime::{Device, timer};
use ackline_emulate::{Capture, Emulator, LinkSpec, LoadWatch, Path, PathRecord};
use files::{Files, ResultFile};
use names::Names;
use outside::Outside;
pub(crate) use program::prepare;
use program::{Addresses, Started};
use report::{Passed, Summary};
use std::fs::File;
use std::io::{self, BufWriter};
use std::num::NonZeroU32;
use std::process::ExitStatus;

pub(crate) fn run(args: &EmulateArgs, registry: &Registry) -> Result<(), Failure> {
    if let Some(file) = &args.scenario.file {
        return scenario::run(args, file, registry);
    }
    let links = path::links(&args.path)?;
    let taken: Vec<_> = interfaces::all()?.into_iter().flat_map(|interface| interface.addresses).collect();
    let addresses = Addresses::apart_from(&taken).ok_or_else(|| {
        Failure::usage("this machine has all of 100.64.0.0/10, of which the program needs four addresses")
    })?;
    let files = Files::open(args)?;
    args.plot.as_deref().map(plots::prepare).transpose()?;
    // While the process has one thread.
    program::prepare()?;
    let emulated = emulate(args, links, addresses, registry, files.pcap.as_ref());
    let Emulated { status, summary, rates } = tunnel::runtime()?.block_on(emulated)?;
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

/// Runs the program behind the path, to its end.
async fn emulate(
    args: &EmulateArgs,
    [up, down]: [LinkSpec; 2],
    addresses: Addresses,
    registry: &Registry,
    pcap: Option<&ResultFile>,
) -> Result<Emulated, Failure> {
    let failed = |error: io::Error| Failure::system("emulate the path", &error);
    let mut network = Path::new([addresses.program.into()], up, down, args.seed.unwrap_or(1));
    let names = Names::of_machine(args.resolver);
    let (outside, end) = Outside::start(addresses, names.resolver, args.mtu, registry)?;
    let both = [network.up, network.down];
    let recorder = network.sim.add_observer(PathRecord::new(both));
    let capture = match pcap {
        Some(file) => Some((file, network.sim.add_observer(capture(args, file, &network)?))),
        None => None,
    };
    let mut emulator = Emulator::new(args.pacing.into()).map_err(failed)?;
    let resolv_conf = names.resolv_conf(addresses);
    let Started { child, tun, overruns } = program::start(&args.command, addresses, &resolv_conf, args.mtu)?;
    let load = LoadWatch::start();
    let devices: [(_, Box<dyn Device>); 2] =
        [(network.inside, Box::new(tun)), (network.outside, Box::new(end))];
    for (port, device) in devices {
        emulator.attach(&network.sim, port, device).map_err(|error| failed(io::Error::other(error)))?;
    }
    let status = tokio::select! {
        status = program::wait(child) => status?,
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
    let (ends, overruns) = ([ports[1], ports[0]], [overruns.read(), 0]);
    let view = network.sim.view();
    let passed = [0, 1].map(|way| Passed {
        link: view.stats(both[way]),
        record: &record.links()[way],
        end: ends[way],
        overruns: overruns[way],
    });
    let rates = both.map(|link| Some(view.rate(link)).filter(|rate| *rate < u64::MAX));
    let summary = Summary::new(time, passed, &record, load, args.pacing == EmulatePacing::Spin);
    Ok(Emulated { status, summary, rates })
}

/// A capture of both directions, which begins now.
fn capture(
    args: &EmulateArgs,
    file: &ResultFile,
    network: &Path,
) -> Result<Capture<BufWriter<File>>, Failure> {
    let snap_length = args.snaplen.and_then(NonZeroU32::new);
    let capture = Capture::new(BufWriter::new(file.writer()?), network.capture_points(), snap_length);
    Ok(capture.map_err(|error| file.refused(&error))?.starting_at(unix_ns(timer::now())))
}
