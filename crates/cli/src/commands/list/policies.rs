//! The policies that can be chosen, with their parameters.

use crate::output;
use ackline::Registry;
use ackline::core::policy::spec::{self, PolicyKind};
use ackline_lab::wrap;
use serde::Serialize;
use std::fmt::Write as _;

/// One policy, whatever its kind.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    name: &'static str,
    aliases: &'static [&'static str],
    default: bool,
    summary: &'static str,
    source: &'static str,
    params: Vec<ParamRow>,
}

#[derive(Serialize, PartialEq, Eq)]
struct ParamRow {
    name: &'static str,
    default: String,
    range: String,
    summary: &'static str,
}

impl From<spec::ParamRow> for ParamRow {
    fn from(row: spec::ParamRow) -> Self {
        let spec::ParamRow { name, default, range, summary, .. } = row;
        Self { name, default, range, summary }
    }
}

/// The policies of `kinds`, as text or JSON.
pub(super) fn text(registry: &Registry, kinds: &[PolicyKind], json: bool) -> String {
    if json {
        return output::json(&kinds.iter().flat_map(|kind| rows(registry, *kind)).collect::<Vec<Row>>());
    }
    kinds.iter().map(|kind| describe(registry, *kind)).collect::<Vec<_>>().join("\n")
}

fn rows(registry: &Registry, kind: PolicyKind) -> Vec<Row> {
    let policies = registry.list(kind).into_iter();
    policies
        .map(|policy| Row {
            kind: kind.keyword(),
            name: policy.name,
            aliases: policy.aliases,
            default: policy.is_default,
            summary: policy.summary,
            source: policy.source,
            params: policy.params.into_iter().map(ParamRow::from).collect(),
        })
        .collect()
}

/// A heading, and each policy with its parameters below it.
fn describe(registry: &Registry, kind: PolicyKind) -> String {
    let heading = match kind {
        PolicyKind::Cc => "Congestion control: how much to send",
        PolicyKind::Ack => "ACK policy: when to acknowledge",
        PolicyKind::Sched => "Egress scheduler: what leaves the host next",
        PolicyKind::Rto => "RTO response: what to do when the retransmission timer fires",
    };
    let rows = rows(registry, kind);
    let common = common(&rows);
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{heading} (--{})\n", kind.keyword());
    for row in &rows {
        let mut notes = Vec::new();
        if row.default {
            notes.push("default".to_owned());
        }
        if !row.aliases.is_empty() {
            notes.push(format!("also: {}", row.aliases.join(", ")));
        }
        if !row.source.is_empty() {
            notes.push(row.source.to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        // Writing to a string cannot fail.
        let line = format!("  {:names$}  {}{notes}", row.name, row.summary);
        let _ = writeln!(text, "{}", wrap(&line, names + 4));
        describe_params(&mut text, names, row.params.iter().filter(|param| !common.contains(param)));
    }
    if !common.is_empty() {
        let _ = writeln!(text, "  {:names$}  parameters of every one:", "");
        describe_params(&mut text, names, common.into_iter());
    }
    text
}

fn describe_params<'a>(text: &mut String, indent: usize, params: impl Iterator<Item = &'a ParamRow> + Clone) {
    let width = params.clone().map(|param| param.name.len()).max().unwrap_or(0);
    for param in params {
        let ParamRow { name, default, range, summary } = param;
        // What is in brackets stays on one line.
        let bracket = format!("[{range}; default: {default}]").replace(' ', "\u{a0}");
        let line = format!("  {:indent$}    {name:width$}  {summary} {bracket}", "");
        let _ = writeln!(text, "{}", wrap(&line, indent + width + 8).replace('\u{a0}', " "));
    }
}

/// The parameters that every policy of a kind has, if there are several.
fn common(rows: &[Row]) -> Vec<&ParamRow> {
    let [first, others @ ..] = rows else { return Vec::new() };
    let everywhere = |param: &&ParamRow| others.iter().all(|row| row.params.contains(param));
    first.params.iter().filter(everywhere).filter(|_| !others.is_empty()).collect()
}
