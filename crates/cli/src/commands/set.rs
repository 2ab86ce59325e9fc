//! `ackline set`: options of live connections.

use crate::args::control::SetArgs;
use crate::failure::Failure;
use crate::output;
use crate::watchers::control::client;
use crate::watchers::control::protocol::Request;
use crate::watchers::filter::Filter;
use ackline::Registry;
use ackline::registry::Change;

pub(crate) fn run(args: &SetArgs, registry: &Registry) -> Result<(), Failure> {
    // What is wrong with it is wrong without a stack, too.
    Change::parse(registry, &args.options).map_err(|error| Failure::usage(error.to_string()))?;
    if args.filter.is_empty() && !args.all {
        return Err(Failure::usage(
            "no filter; write one, such as dst 10.0.0.2, or --all for all connections",
        ));
    }
    let filter = if args.all { vec!["state connected".to_owned()] } else { args.filter.clone() };
    Filter::parse(&filter).map_err(Failure::usage)?;
    let request = Request::Set { options: args.options.clone(), filter };
    let mut changed = 0;
    for reply in client::ask(&args.at, &request)? {
        changed += reply.done;
    }
    let plural = if changed == 1 { "" } else { "s" };
    output::print(&format!("changed {changed} connection{plural}\n"))
}
