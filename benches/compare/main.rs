//! How fast the stack is, beside the kernel's TCP, smoltcp, and loops that show what each device can carry.
//!
//! ```text
//! cargo bench --bench compare                                    # all, five rounds of one second each: some seven minutes
//! cargo bench --bench compare -- --only round-trip --rounds 3    # what has this in its name; --list has all names
//! cargo bench --bench compare -- --json FILE --update docs/performance.md
//! cargo bench --bench compare -- --from FILE --update docs/performance.md
//! ```
//!
//! Every measurement is a process of its own ([`measure`]) with network namespaces of its own, which the kernel removes
//! when the process ends, however it ends. A round measures every case once ([`rounds`]), so that what else happens on
//! the machine falls on all of them alike; [`report`] compares medians over the rounds.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod case;
mod command;
mod ends;
mod measure;
mod metric;
mod net;
mod report;
mod results;
mod rounds;
mod usage;

use results::Sample;
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 1.0;

fn main() -> ExitCode {
    command::run(SECONDS, |case, length| match case {
        None => measure::check_rights().map(|()| Sample::default()),
        Some(case) => measure::run(case, length),
    })
}
