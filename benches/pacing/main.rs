//! How punctually departures leave: ackline's, asleep and spinning, beside bare loops and the
//! kernel's own pacing.
//!
//! ```text
//! cargo bench --bench pacing                                    # all, five rounds of two seconds each: some four minutes
//! cargo bench --bench pacing -- --quick                         # one short round
//! cargo bench --bench pacing -- --only 100us --rounds 3         # what has this in its name; --list has all names
//! cargo bench --bench pacing -- --json FILE --update docs/performance/pacing.md
//! cargo bench --bench pacing -- --from FILE --markdown
//! ```
//!
//! One flow over TUN to the kernel's TCP, full packets 1 ms, 100 us and 12 us apart (12 and 120
//! Mbit/s, 1 Gbit/s) by a congestion control of a fixed rate. Every measurement is a process of its
//! own with a network namespace of its own; a round measures every case once, so that what else the
//! machine does falls on all alike. *Late* is a departure after the instant that the pacer permits
//! (ackline's own histogram), or a wake-up after the instant that a loop waits for. A *burst* is
//! what leaves less than a tenth of the asked gap apart.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod bare;
mod case;
#[path = "../compare/command.rs"]
mod command;
mod flow;
mod log;
#[path = "../support/machine.rs"]
mod machine;
mod metric;
#[path = "../support/no_pictures.rs"]
mod no_pictures;
mod report;
#[path = "../compare/results.rs"]
mod results;
#[path = "../compare/rounds.rs"]
mod rounds;
mod sample;
#[path = "../compare/report/section.rs"]
mod section;
#[path = "../support/summary.rs"]
mod summary;
#[path = "../compare/report/text.rs"]
mod text;
mod usage;

use ackline_runtime::Error;
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};
use ackline_tcp_core::Duration;
use case::{Case, Who};
use results::{Metric, Sample};
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Length of a measurement, in seconds.
const SECONDS: f64 = 2.0;

fn main() -> ExitCode {
    command::run(
        SECONDS,
        |_| (),
        |case, length| {
            // If the command is killed, its measurements are not to outlive it.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            gain_rights()?;
            match case {
                None => flow::device().map(|_| Sample::default()),
                Some(case) => measure(&case, length.into()),
            }
        },
    )
}

fn measure(case: &Case, length: Duration) -> Outcome<Sample> {
    match case.who {
        Who::Timer | Who::Spin => flow::send(case, length),
        Who::Kernel => flow::receive(case, length),
        Who::BareTimer | Who::BareSpin | Who::TokioSleep => wait(case, length),
    }
}

fn wait(case: &Case, length: Duration) -> Outcome<Sample> {
    let (start, cpu) = (ackline_runtime::timer::now(), usage::cpu_of_thread());
    let bare::LoopLog { late, passed } = bare::wait(case, length)?;
    let elapsed = ackline_runtime::timer::now().since(start).as_secs_f64();
    let mut sample = Sample::default();
    sample.set(Metric::Cpu, (usage::cpu_of_thread() - cpu) / elapsed);
    sample::set_latenesses(&mut sample, late);
    sample::set_flow(&mut sample, case, &passed);
    Ok(sample)
}

/// A network of this process's own: as root, or inside a user namespace.
fn gain_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_net_namespace()?),
        other => Ok(other.map(drop)?),
    }
}
