//! `ackline emulate`: a program behind a path of the simulator, in real time.

mod outside;
mod path;
mod program;
mod report;

use crate::args::emulate::{EmulateArgs, EmulatePacing};
use crate::failure::Failure;
use crate::{interfaces, output, tunnel};
use ackline::Registry;
use ackline::runtime::Pacing;
use ackline_emulate::{Emulator, Path};
use outside::Outside;
use program::Addresses;
use report::Summary;

pub(crate) fn run(args: &EmulateArgs, registry: &Registry) -> Result<(), Failure> {
    let [up, down] = path::links(&args.path)?;
    let taken: Vec<_> = interfaces::all()?.into_iter().flat_map(|interface| interface.addresses).collect();
    let addresses = Addresses::apart_from(&taken).ok_or_else(|| {
        Failure::usage("this machine has all of 100.64.0.0/10, of which the program needs four addresses")
    })?;
    // While the process has one thread.
    program::prepare()?;
    let runtime = tunnel::runtime()?;
    let (status, summary) = runtime.block_on(async {
        let pacing = match args.pacing {
            EmulatePacing::Timer => Pacing::Timer,
            EmulatePacing::Spin => Pacing::spin(),
        };
        let network = Path::new([addresses.program.into()], up, down, args.seed);
        let (outside, end) = Outside::start(addresses, args.mtu, registry)?;
        let failed = |error: &std::io::Error| Failure::system("emulate the path", error);
        let mut emulator = Emulator::new(network.sim, pacing).map_err(|error| failed(&error))?;
        let (child, tun) = program::start(&args.command, addresses, args.mtu)?;
        for (port, device) in [
            (network.inside, Box::new(tun) as Box<dyn ackline::runtime::Device>),
            (network.outside, Box::new(end)),
        ] {
            emulator.attach(port, device).map_err(|error| Failure::usage(error.to_string()))?;
        }
        let status = tokio::select! {
            status = program::wait(child) => status?,
            error = outside.run() => return Err(failed(&error)),
            ended = emulator.run() => match ended {
                Err(error) => return Err(failed(&error)),
                Ok(never) => match never {},
            },
        };
        let time = emulator.elapsed();
        let links = [network.up, network.down].map(|link| emulator.sim_mut().view().stats(link));
        let ports: Vec<_> = emulator.ports().collect();
        // What goes up arrives at the outer port.
        let summary = Summary::new(time.into(), links, [ports[1], ports[0]]);
        Ok((status, summary))
    })?;
    if !args.quiet {
        output::say(summary.text().trim_end());
    }
    if let Some(file) = &args.json {
        std::fs::write(file, output::json(&summary))
            .map_err(|error| Failure::file("write", file.display(), &error))?;
    }
    program::outcome(status)
}
