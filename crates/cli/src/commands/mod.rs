//! One module for each command; what several of them need is beside this folder.

mod bench;
mod completions;
mod demo;
mod drill;
mod emulate;
mod evaluate;
mod explain;
mod list;
mod new;
mod nstat;
mod plot;
mod proxy;
mod publish;
mod recv;
mod reproduce;
mod send;
mod set;
mod sim;
mod ss;
mod top;

use crate::args::Command;
use crate::failure::Failure;
use ackline::Registry;

/// Runs the command with the policies of `registry`.
pub(crate) fn run(command: &Command, registry: &Registry) -> Result<(), Failure> {
    // The demo enters a user namespace, which a process can do as long as it has one thread.
    match command {
        Command::Demo(args) => demo::run(args, registry),
        Command::Send(args) => send::run(args, registry),
        Command::Recv(args) => recv::run(args, registry),
        Command::Bench(args) => bench::run(args, registry),
        Command::Emulate(args) => emulate::run(args, registry),
        Command::Proxy(args) => proxy::run(args, registry),
        Command::Ss(args) => ss::run(args),
        Command::Nstat(args) => nstat::run(args),
        Command::Top(args) => top::run(args),
        Command::Set(args) => set::run(args, registry),
        Command::Publish(args) => publish::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Drill(args) => drill::run(args, registry),
        Command::Sim(args) => sim::run(args, registry),
        Command::Merge(args) => sim::merge::run(args, registry),
        Command::Plot(args) => plot::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Evaluate(args) => evaluate::run(args, registry),
        Command::List(args) => list::run(args, registry),
        Command::New(args) => new::run(args, registry),
        Command::Completions(args) => completions::run(args.shell, registry),
    }
}
