//! `ackline emulate`: a program behind a path of the simulator, in real time.

mod outside;
mod path;
mod program;
mod report;

use crate::args::emulate::{EmulateArgs, EmulatePacing};
use crate::failure::Failure;
use crate::{interfaces, output, tunnel};
use ackline::Registry;
use ackline::runtime::{Device, Pacing};
use ackline_emulate::{Emulator, LinkSpec, Path};
use outside::Outside;
use program::Addresses;
use report::Summary;
use std::io;
use std::process::ExitStatus;

pub(crate) fn run(args: &EmulateArgs, registry: &Registry) -> Result<(), Failure> {
    let links = path::links(&args.path)?;
    let taken: Vec<_> = interfaces::all()?.into_iter().flat_map(|interface| interface.addresses).collect();
    let addresses = Addresses::apart_from(&taken).ok_or_else(|| {
        Failure::usage("this machine has all of 100.64.0.0/10, of which the program needs four addresses")
    })?;
    // While the process has one thread.
    program::prepare()?;
    let (status, summary) = tunnel::runtime()?.block_on(emulate(args, links, addresses, registry))?;
    if !args.quiet {
        output::say(summary.text().trim_end());
    }
    if let Some(file) = &args.json {
        std::fs::write(file, output::json(&summary))
            .map_err(|error| Failure::file("write", file.display(), &error))?;
    }
    program::outcome(status)
}

/// Runs the program behind the path, to its end.
async fn emulate(
    args: &EmulateArgs,
    [up, down]: [LinkSpec; 2],
    addresses: Addresses,
    registry: &Registry,
) -> Result<(ExitStatus, Summary), Failure> {
    let failed = |error: io::Error| Failure::system("emulate the path", &error);
    let pacing = match args.pacing {
        EmulatePacing::Timer => Pacing::Timer,
        EmulatePacing::Spin => Pacing::spin(),
    };
    let network = Path::new([addresses.program.into()], up, down, args.seed);
    let (outside, end) = Outside::start(addresses, args.mtu, registry)?;
    let mut emulator = Emulator::new(network.sim, pacing).map_err(failed)?;
    let (child, tun) = program::start(&args.command, addresses, args.mtu)?;
    let devices: [(_, Box<dyn Device>); 2] =
        [(network.inside, Box::new(tun)), (network.outside, Box::new(end))];
    for (port, device) in devices {
        emulator.attach(port, device).map_err(|error| failed(io::Error::other(error)))?;
    }
    let status = tokio::select! {
        status = program::wait(child) => status?,
        error = outside.run() => return Err(failed(error)),
        ended = emulator.run() => match ended {
            Err(error) => return Err(failed(error)),
            Ok(never) => match never {},
        },
    };
    let time = emulator.elapsed();
    let links = [network.up, network.down].map(|link| emulator.sim_mut().view().stats(link));
    let ports: Vec<_> = emulator.ports().collect();
    // What goes up arrives at the outer port.
    Ok((status, Summary::new(time, links, [ports[1], ports[0]])))
}
