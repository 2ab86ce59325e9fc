//! `ackline list`: the policies that can be chosen, the settings, and the interfaces.

mod policies;
mod scenario;
mod settings;

use crate::args::{ListArgs, ListKind};
use crate::failure::Failure;
use crate::network::interfaces;
use crate::output::{self, print};
use ackline::Registry;
use ackline::core::policy::spec::PolicyKind;
use ackline::registry::Scope;

pub(crate) fn run(args: &ListArgs, registry: &Registry) -> Result<(), Failure> {
    let of_settings = |scope: Scope| settings::text(registry, scope, args.json, args.markdown);
    let text = match args.kind {
        None => policies::text(
            registry,
            &[PolicyKind::Cc, PolicyKind::Ack, PolicyKind::Rto, PolicyKind::Sched],
            args.json,
        ),
        Some(ListKind::Cc) => policies::text(registry, &[PolicyKind::Cc], args.json),
        Some(ListKind::Ack) => policies::text(registry, &[PolicyKind::Ack], args.json),
        Some(ListKind::Rto) => policies::text(registry, &[PolicyKind::Rto], args.json),
        Some(ListKind::Sched) => policies::text(registry, &[PolicyKind::Sched], args.json),
        Some(ListKind::Conn) => of_settings(Scope::Conn),
        Some(ListKind::Host) => of_settings(Scope::Host),
        Some(ListKind::Scenario) => scenario::text(args.json, args.markdown),
        Some(ListKind::Interfaces) => {
            let all = interfaces::all()?;
            if args.json { output::json(&all) } else { interfaces::table(&all) }
        }
    };
    let has_page = matches!(args.kind, Some(ListKind::Conn | ListKind::Host | ListKind::Scenario));
    if args.markdown && !has_page {
        return Err(Failure::usage(
            "--markdown: only for ackline list conn, ackline list host and ackline list scenario",
        ));
    }
    print(&text)
}
