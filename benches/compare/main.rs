//! How fast the stack is, beside the kernel's TCP, gVisor's netstack, smoltcp, and loops that show
//! what each device can carry.
//!
//! ```text
//! cargo bench --bench compare                                    # all, five rounds of one second each: some eight minutes
//! cargo bench --bench compare -- --only round-trip --rounds 3    # what has this in its name; --list has all names
//! cargo bench --bench compare -- --json FILE --update docs/performance.md
//! cargo bench --bench compare -- --from FILE --update docs/performance.md --plot docs/images/throughput.svg
//! ```
//!
//! Every measurement is a process of its own ([`measure`]) with network namespaces of its own,
//! which the kernel removes when the process ends, however it ends. A round measures every case
//! once ([`rounds`]), so that what else happens on the machine falls on all of them alike;
//! [`report`] compares medians over the rounds.
//!
//! Needs the right to make network namespaces and TUN devices: root. gVisor's netstack is built by
//! Go and left out if there is none.

mod answer;
mod case;
mod command;
mod ends;
#[path = "../support/ground.rs"]
mod ground;
#[path = "../support/machine.rs"]
mod machine;
mod measure;
mod metric;
mod net;
mod report;
mod results;
mod rounds;
#[path = "../support/summary.rs"]
mod summary;
mod usage;

use case::{Case, Who};
use ground::Outcome;
use results::Sample;
use std::process::ExitCode;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 1.0;

fn main() -> ExitCode {
    command::run(SECONDS, leave_out_what_is_missing, |case, length| match case {
        None => measure::check_rights().map(|()| Sample::default()),
        Some(case) => measure::run(case, length),
    })
}

/// gVisor's netstack needs a program that Go builds.
fn leave_out_what_is_missing(cases: &mut Vec<Case>) {
    let gvisor = |case: &Case| case.contestant.who == Who::Gvisor;
    if !cases.iter().any(gvisor) {
        return;
    }
    if let Err(why) = ends::gvisor::build() {
        eprintln!("gVisor's netstack is left out: {why}");
        cases.retain(|case| !gvisor(case));
    }
}
