//! What it costs to terminate the TCP connections that come out of a TUN device and to carry them
//! on, as VPNs, tunnels and sandboxes do: `ackline proxy` beside other stacks in userspace.
//!
//! ```text
//! cargo bench --bench tunnels                                    # all, five rounds: some forty minutes
//! cargo bench --bench tunnels -- --quick                         # one short round
//! cargo bench --bench tunnels -- --only upload --rounds 3        # what has this in its name; --list has all names
//! cargo bench --bench tunnels -- --json docs/beside-tunnels.json --update docs/beside-tunnels.md
//! cargo bench --bench tunnels -- --from docs/beside-tunnels.json --check docs/beside-tunnels.md
//! ```
//!
//! ```text
//!   clients ── kernel's TCP ── TUN ══ terminator ── kernel's TCP ── loopback ── kernel's TCP ── servers
//!   namespace of the clients          namespace of the servers
//! ```
//!
//! Clients and servers are the same for all, and so is the device: [`net`]. A terminator is a
//! process of its own that inherits the device's descriptor ([`terminator`]): the released command,
//! and for each of the others a program that is set up as its documentation shows
//! ([`rivals`](../rivals/src/lib.rs), [`gvisor`](../gvisor/main.go), [`lwip`](../lwip/main.c)).
//! Every measurement has network namespaces of its own, which the kernel removes when its process
//! ends, however it ends. A round measures every case once, so that what else happens on the
//! machine falls on all of them alike. What a contestant fails at is counted, not skipped.
//!
//! Needs the right to make network namespaces and TUN devices, and for the crowds more than 10,000
//! descriptors (`ulimit -Hn`): root. A contestant that cannot be built is left out: gVisor's
//! netstack if there is no Go, lwIP without Debian's package liblwip-dev.

mod act;
mod board;
mod build;
mod case;
mod client;
#[path = "../compare/command.rs"]
mod command;
#[path = "../support/descriptors.rs"]
mod descriptors;
mod ending;
#[path = "../support/machine.rs"]
mod machine;
mod measure;
mod metric;
mod net;
#[path = "../support/no_pictures.rs"]
mod no_pictures;
mod processor;
mod report;
#[path = "../compare/results.rs"]
mod results;
#[path = "../support/rights.rs"]
mod rights;
#[path = "../compare/rounds.rs"]
mod rounds;
#[path = "../compare/report/section.rs"]
mod section;
mod service;
#[path = "../support/summary.rs"]
mod summary;
mod terminator;
#[path = "../compare/report/text.rs"]
mod text;
#[path = "../compare/report/wanted.rs"]
mod wanted;

use results::Sample;
use rights::Outcome;
use std::process::ExitCode;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 2.0;

fn main() -> ExitCode {
    if let Some(failure) = terminator::become_one() {
        return failure;
    }
    command::run(SECONDS, build::leave_out_what_is_missing, |case, length| match case {
        None => measure::check_rights().map(|()| Sample::default()),
        Some(case) => measure::run(case, length),
    })
}
