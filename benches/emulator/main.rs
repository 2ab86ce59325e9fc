//! How exactly `ackline-emulate` keeps the times of a path between two TUN devices, and what it
//! loses itself.
//!
//! ```text
//! cargo bench --bench emulator                                  # all, five rounds of ten seconds each: some four minutes
//! cargo bench --bench emulator -- --quick                       # one short round
//! cargo bench --bench emulator -- --only spinning --rounds 3    # what has this in its name; --list has all names
//! cargo bench --bench emulator -- --json FILE --update docs/performance/emulator.md
//! ```
//!
//! Two network namespaces are joined by a path of 1 Gbit/s and 10 ms each way. UDP packets of 1500
//! bytes come from both sides: either a bit more than the path carries, so that its queue is never
//! empty; or a thousand a second, each of which finds the path empty. *Delay* is the time from the
//! call that sends a packet to the call that hands it to the other device, less what the path
//! takes. *Late* is a packet after its instant in the simulation. What the devices drop is lost by
//! the emulator, not by the path. Every measurement is a process of its own; a round measures every
//! case once.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod case;
#[path = "../compare/command.rs"]
mod command;
mod end;
#[path = "../support/machine.rs"]
mod machine;
mod measure;
mod metric;
#[path = "../support/no_pictures.rs"]
mod no_pictures;
mod report;
#[path = "../compare/results.rs"]
mod results;
#[path = "../compare/rounds.rs"]
mod rounds;
#[path = "../compare/report/section.rs"]
mod section;
#[path = "../support/summary.rs"]
mod summary;
#[path = "../compare/report/text.rs"]
mod text;
#[path = "../pacing/usage.rs"]
mod usage;
#[path = "../compare/report/wanted.rs"]
mod wanted;

use results::Sample;
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 10.0;

fn main() -> ExitCode {
    command::run(
        SECONDS,
        |_| (),
        |case, length| {
            // If the command is killed, its measurements are not to outlive it.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            match case {
                None => end::check_rights().map(|()| Sample::default()),
                Some(case) => measure::run(case, length.into()),
            }
        },
    )
}
