//! What the demo says in the end.

use super::Direction;
use super::network::Link;
use crate::args::DemoArgs;
use crate::failure::{Exit, Failure};
use crate::output::numbers::round_trip;
use crate::output::{self, numbers};
use crate::report::egress::EgressReport;
use crate::report::error::ErrorReport;
use crate::report::policies::ConnPolicies;
use crate::report::timing::Timing;
use crate::settings::PolicyNames;
use crate::transfer::traffic::{Figures, PathFigures};
use ackline::runtime::info::PolicyMetrics;
use ackline_lab::wrap;
use serde::Serialize;

/// Everything that happened.
pub(super) struct Outcome {
    pub(super) link: Link,
    pub(super) upload: Option<Direction>,
    pub(super) download: Option<Direction>,
    /// Of the near stack, both directions.
    pub(super) timing: Option<Timing>,
    /// What the near stack sent.
    pub(super) egress: Option<EgressReport>,
    /// Why a direction is missing.
    pub(super) error: Option<Failure>,
}

impl Outcome {
    /// Success if both directions are complete and unharmed.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if let Some(failure) = &self.error {
            return Err(failure.clone());
        }
        for (name, direction) in [("upload", &self.upload), ("download", &self.download)] {
            match direction {
                Some(direction) if direction.matches() => {}
                Some(Direction { sent, received, .. }) => {
                    return Err(Failure::new(
                        Exit::Incomplete,
                        format!(
                            "the {name} differs: {} bytes with hash {} were sent, {} with {} received",
                            sent.bytes, sent.digest, received.bytes, received.digest
                        ),
                    ));
                }
                None => return Err(Failure::new(Exit::Incomplete, format!("there was no {name}"))),
            }
        }
        Ok(())
    }

    fn far(&self) -> &'static str {
        if self.link.in_memory.is_some() { "far stack" } else { "kernel" }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    command: &'static str,
    version: &'static str,
    device: Option<&'static str>,
    device_reason: Option<&'a str>,
    offload: Option<bool>,
    mtu: u32,
    cc: &'a str,
    ack: &'a str,
    rto: &'a str,
    sched: &'a str,
    upload: Option<DirectionReport>,
    download: Option<DirectionReport>,
    timing: Option<Timing>,
    egress: Option<&'a EgressReport>,
    error: Option<ErrorReport>,
}

#[derive(Serialize)]
struct DirectionReport {
    sender: &'static str,
    receiver: &'static str,
    #[serde(flatten)]
    figures: Figures,
    cpu_s: f64,
    #[serde(flatten)]
    path: PathFigures,
    metrics: Option<PolicyMetrics>,
    hash_match: bool,
    hash_sent: String,
    hash_received: String,
}

impl DirectionReport {
    /// `policies`: of ackline's connection.
    fn new(
        direction: &Direction,
        (sender, receiver): (&'static str, &'static str),
        policies: &ConnPolicies,
    ) -> Self {
        let Direction { sent, received, cpu } = direction;
        Self {
            sender,
            receiver,
            figures: Figures::new(received.bytes, direction.time()),
            cpu_s: cpu.as_secs_f64(),
            path: sent.path.into(),
            metrics: policies.metrics.clone(),
            hash_match: direction.matches(),
            hash_sent: sent.digest.to_string(),
            hash_received: received.digest.to_string(),
        }
    }
}

/// What is about to happen.
pub(super) fn first_lines(link: &Link, mtu: u32) -> String {
    let packets = if link.offload { "super-packets, checksum offload" } else { "plain packets" };
    let ends = match &link.in_memory {
        None => "ackline and the kernel's TCP over a TUN device in its own network namespace".to_owned(),
        Some(why) => format!("two ackline stacks over a device in memory, not the kernel over TUN ({why})"),
    };
    format!("{}\n{packets}, MTU {mtu}\n\n", wrap(&ends, 2))
}

/// Prints the results, complete or not.
pub(super) fn print(args: &DemoArgs, names: &PolicyNames, outcome: &Outcome) -> Result<(), Failure> {
    let text = if args.output.common.json {
        json(args, names, outcome)
    } else if args.output.common.quiet {
        return Ok(());
    } else {
        summary(outcome, args.output.verbose)
    };
    output::print(&text)
}

/// Says in JSON why nothing came about.
pub(super) fn print_failure(args: &DemoArgs, names: &PolicyNames, failure: &Failure) -> Result<(), Failure> {
    if !args.output.common.json {
        return Ok(());
    }
    output::print(&output::json(&Report::new(args, names, Err(failure))))
}

impl<'a> Report<'a> {
    fn new(args: &DemoArgs, names: &'a PolicyNames, link: Result<&'a Link, &Failure>) -> Self {
        Self {
            ok: false,
            command: "demo",
            version: env!("CARGO_PKG_VERSION"),
            device: link.ok().map(|link| if link.in_memory.is_some() { "channel" } else { "tun" }),
            device_reason: link.ok().and_then(|link| link.in_memory.as_deref()),
            offload: link.ok().map(|link| link.offload),
            mtu: args.mtu,
            cc: &names.cc,
            ack: &names.ack,
            rto: &names.rto,
            sched: &names.sched,
            upload: None,
            download: None,
            timing: None,
            egress: None,
            error: link.err().map(ErrorReport::from),
        }
    }
}

fn json(args: &DemoArgs, names: &PolicyNames, outcome: &Outcome) -> String {
    let verdict = outcome.verdict();
    output::json(&Report {
        ok: verdict.is_ok(),
        upload: outcome
            .upload
            .as_ref()
            .map(|d| DirectionReport::new(d, ("ackline", outcome.far()), &d.sent.policies)),
        download: outcome
            .download
            .as_ref()
            .map(|d| DirectionReport::new(d, (outcome.far(), "ackline"), &d.received.policies)),
        timing: outcome.timing.clone(),
        egress: outcome.egress.as_ref(),
        error: verdict.as_ref().err().map(ErrorReport::from),
        ..Report::new(args, names, Ok(&outcome.link))
    })
}

/// A column for each direction that came to an end, and what the stack measured of itself with
/// `verbose`.
fn summary(outcome: &Outcome, verbose: bool) -> String {
    let far = outcome.far();
    let columns = [
        column(format!("ackline -> {far}"), outcome.upload.as_ref()),
        column(format!("{far} -> ackline"), outcome.download.as_ref()),
    ];
    let heads =
        ["", "bytes", "seconds", "rate", "CPU s", "retransmits", "RTT min", "RTT mean", "cwnd", "data"];
    let rows = heads
        .iter()
        .enumerate()
        .map(|(row, head)| [(*head).to_owned(), columns[0][row].clone(), columns[1][row].clone()]);
    let mut lines = output::grid(&rows.collect::<Vec<_>>());
    lines.extend(outcome.egress.iter().flat_map(EgressReport::lines));
    if outcome.verdict().is_ok() {
        if verbose {
            lines.extend(outcome.timing.iter().flat_map(Timing::lines));
            let ends = [
                ("ackline as sender", outcome.upload.as_ref().map(|upload| &upload.sent.policies)),
                (
                    "ackline as receiver",
                    outcome.download.as_ref().map(|download| &download.received.policies),
                ),
            ];
            for (end, policies) in ends {
                lines.push(format!("{end}:"));
                lines.extend(policies.into_iter().flat_map(ConnPolicies::lines));
            }
            lines.extend(outcome.egress.iter().flat_map(EgressReport::scheduler_lines));
        }
        lines
            .push("Every byte arrived unharmed: both ends have the same xxh3-128 hash, each way.".to_owned());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The cells of a direction; empty but for its name if it did not come to an end.
fn column(name: String, direction: Option<&Direction>) -> [String; 10] {
    let Some(direction) = direction else {
        let mut cells = [const { String::new() }; 10];
        cells[0] = name;
        return cells;
    };
    let (bytes, time, path) = (direction.received.bytes, direction.time(), direction.sent.path);
    [
        name,
        numbers::bytes(bytes),
        format!("{:.3}", time.as_secs_f64()),
        numbers::rate(bytes, time),
        format!("{:.3}", direction.cpu.as_secs_f64()),
        path.retransmits.to_string(),
        round_trip(path.rtt_min),
        round_trip(path.rtt_mean),
        numbers::bytes(path.cwnd),
        (if direction.matches() { "equal" } else { "DIFFERS" }).to_owned(),
    ]
}
