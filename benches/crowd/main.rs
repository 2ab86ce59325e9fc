//! What a host does for a crowd: many busy flows, one byte beside bulk senders, small writes, many
//! clients, and clients amid forged SYNs; beside the kernel's TCP.
//!
//! ```text
//! cargo bench --bench crowd                                    # all, three rounds: some ten minutes
//! cargo bench --bench crowd -- --quick                         # one short round
//! cargo bench --bench crowd -- --only 1000 --rounds 5          # what has this in its name; --list has all names
//! cargo bench --bench crowd -- --json FILE --update docs/performance/crowds.md
//! ```
//!
//! The same program of one thread ([`program`]) runs on the kernel's TCP over a pair of veth and on
//! ackline over TUN and over a packet socket; the other end is always this program on the kernel's
//! TCP. Every measurement is a process of its own with network namespaces of its own, which the
//! kernel removes when the process ends, however it ends. A round measures every case once, so that
//! what else happens on the machine falls on all of them alike.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod board;
mod case;
mod chunks;
#[path = "../compare/command.rs"]
mod command;
#[path = "../support/descriptors.rs"]
mod descriptors;
mod flood;
mod forger;
#[path = "../support/ground.rs"]
mod ground;
#[path = "../support/machine.rs"]
mod machine;
mod measure;
mod memory;
mod metric;
#[path = "../support/no_pictures.rs"]
mod no_pictures;
mod program;
mod report;
#[path = "../compare/results.rs"]
mod results;
#[path = "../compare/rounds.rs"]
mod rounds;
#[path = "../compare/report/section.rs"]
mod section;
mod serving;
#[path = "../support/summary.rs"]
mod summary;
#[path = "../compare/report/text.rs"]
mod text;
#[expect(dead_code, reason = "of ends in one process")]
#[path = "../compare/usage.rs"]
mod usage;
#[path = "../compare/report/wanted.rs"]
mod wanted;

use case::{Case, What};
use ground::Outcome;
use results::Sample;
use std::process::ExitCode;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 2.0;

fn main() -> ExitCode {
    command::run(
        SECONDS,
        |_| (),
        |case, length| match case {
            None => measure::check_rights().map(|()| Sample::default()),
            Some(Case { who, what: What::Traffic(act) }) => measure::run(who, act, length),
            Some(Case { who, what: What::Serve }) => serving::run(who, length),
            Some(Case { who, what: What::Flood }) => flood::run(who, length),
        },
    )
}
