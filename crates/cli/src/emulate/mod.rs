//! `ackline emulate`: a program behind a path of the simulator, in real time.

mod files;
mod outside;
mod path;
mod program;
mod report;
mod scenario;

use crate::args::emulate::EmulateArgs;
use crate::capture::unix_ns;
use crate::failure::Failure;
use crate::{interfaces, output, tunnel};
use ackline::Registry;
use ackline::runtime::{Device, timer};
use ackline_emulate::{Capture, Emulator, LinkSpec, Path};
use files::{Files, ResultFile};
use outside::Outside;
use program::Addresses;
use report::Summary;
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
    // While the process has one thread.
    program::prepare()?;
    let emulated = emulate(args, links, addresses, registry, files.pcap.as_ref());
    let (status, summary) = tunnel::runtime()?.block_on(emulated)?;
    if !args.quiet {
        output::say(summary.text().trim_end());
    }
    if let Some(json) = &files.json {
        json.write(&output::json(&summary))?;
    }
    files.finish()?;
    program::outcome(status)
}

/// Runs the program behind the path, to its end.
async fn emulate(
    args: &EmulateArgs,
    [up, down]: [LinkSpec; 2],
    addresses: Addresses,
    registry: &Registry,
    pcap: Option<&ResultFile>,
) -> Result<(ExitStatus, Summary), Failure> {
    let failed = |error: io::Error| Failure::system("emulate the path", &error);
    let mut network = Path::new([addresses.program.into()], up, down, args.seed.unwrap_or(1));
    let (outside, end) = Outside::start(addresses, args.mtu, registry)?;
    let capture = match pcap {
        Some(file) => Some((file, network.sim.add_observer(capture(args, file, &network)?))),
        None => None,
    };
    let mut emulator = Emulator::new(args.pacing.into()).map_err(failed)?;
    let (child, tun) = program::start(&args.command, addresses, args.mtu)?;
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
    let time = emulator.elapsed();
    if let Some((file, id)) = capture
        && let Some(capture) = network.sim.take_observer::<Capture<BufWriter<File>>>(id)
    {
        capture.finish().map_err(|error| file.refused(&error))?;
    }
    let links = [network.up, network.down].map(|link| network.sim.view().stats(link));
    let ports: Vec<_> = emulator.ports().collect();
    // What goes up arrives at the outer port.
    Ok((status, Summary::new(time, links, [ports[1], ports[0]])))
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
