//! What a proxy has done, for people and for programs.

use crate::output::numbers;
use crate::report::egress::EgressReport;
use ackline::runtime::Stack;
use ackline_proxy::Stats;
use serde::Serialize;
use std::time::Duration;

/// The summary of a run.
#[derive(Serialize)]
pub(super) struct Summary {
    seconds: f64,
    #[serde(flatten)]
    stats: Stats,
    egress: EgressReport,
}

impl Summary {
    pub(super) fn new(time: Duration, stats: Stats, stack: &Stack) -> Self {
        Self { seconds: time.as_secs_f64(), stats, egress: EgressReport::of(stack) }
    }

    /// For people: what happened, and of trouble what there was.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { seconds, stats, egress } = self;
        let (up, down) = (numbers::bytes(stats.bytes_up), numbers::bytes(stats.bytes_down));
        let mut lines = vec![format!(
            "proxy, {seconds:.1} s: {} connections ({up} up, {down} down), {} UDP flows ({} datagrams up, {} down)",
            stats.connections, stats.flows, stats.datagrams_up, stats.datagrams_down
        )];
        let trouble: Vec<String> = [
            (stats.reset, "reset"),
            (stats.abandoned, "abandoned by the client"),
            (stats.upstream_refused, "refused by the destination"),
            (stats.upstream_unreachable, "unreachable"),
            (stats.upstream_timeouts, "without an answer"),
            (stats.upstream_failed, "failed at the upstream"),
            (stats.rule_refused + stats.rule_dropped, "refused or dropped by rules"),
            (stats.not_enforced, "that rules would have refused, dropped or held to a rate"),
            (stats.forgotten_refused, "refused because names were forgotten"),
            (stats.server_name_unreadable, "refused because the server's name was not readable"),
            (stats.server_name_late, "reset because the server's name came late"),
            (stats.rate_lost, "datagrams over the rate of a rule"),
            (stats.decisions_lost, "whose decision could not be written"),
            (stats.not_carried, "to addresses that are not carried on"),
            (stats.client_connections_limit + stats.client_flows_limit, "over the limit of a client"),
            (stats.proof_first, "that had to prove their address first"),
            (stats.no_descriptor, "without a descriptor"),
        ]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
        if !trouble.is_empty() {
            lines.push(format!("  {}", trouble.join(", ")));
        }
        lines.extend(egress.lines());
        lines
    }
}
