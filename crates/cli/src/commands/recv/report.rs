//! What `recv` says about its transfers, to people and to programs.

use crate::args::json::Json;
use crate::args::values::ListenAt;
use crate::args::{RecvArgs, StackOutputArgs};
use crate::failure::Failure;
use crate::output::{self, numbers};
use crate::report::egress::EgressReport;
use crate::report::error::ErrorReport;
use crate::report::json_stream::{self, Interval, Intervals};
use crate::report::policies::ConnPolicies;
use crate::report::timing::Timing;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::Figures;
use ackline_lab::wrap;
use serde::Serialize;
use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A transfer that has ended.
pub(super) struct Transfer {
    pub(super) peer: Option<SocketAddr>,
    pub(super) local: Option<SocketAddr>,
    pub(super) bytes: u64,
    pub(super) time: Duration,
    /// Of the connection at its end.
    pub(super) policies: ConnPolicies,
    /// CPU time of the process; unknown if several transfers share it.
    pub(super) cpu: Option<Duration>,
    /// Of the stack; unknown if several transfers share it.
    pub(super) timing: Option<Timing>,
    /// What the stack sent; not told if several transfers share it.
    pub(super) egress: Option<EgressReport>,
    /// The peer was given up before it had sent a byte: nothing was lost.
    pub(super) silent: bool,
    /// The file, if there is one, or why there is none.
    pub(super) outcome: Result<Option<PathBuf>, Failure>,
}

/// Counts of all transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) complete: u64,
    pub(super) aborted: u64,
    pub(super) silent: u64,
    pub(super) bytes: u64,
}

impl Totals {
    pub(super) fn count(&mut self, transfer: &Transfer) {
        match transfer.outcome {
            Ok(_) => self.complete += 1,
            Err(_) if transfer.silent => self.silent += 1,
            Err(_) => self.aborted += 1,
        }
        self.bytes += transfer.bytes;
    }
}

#[derive(Serialize)]
struct TransferReport {
    ok: bool,
    command: &'static str,
    event: &'static str,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    file: Option<String>,
    #[serde(flatten)]
    figures: Figures,
    #[serde(flatten)]
    policies: ConnPolicies,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    egress: Option<EgressReport>,
    error: Option<ErrorReport>,
}

#[derive(Serialize)]
struct SummaryReport {
    ok: bool,
    command: &'static str,
    event: &'static str,
    complete: u64,
    aborted: u64,
    silent: u64,
    #[serde(flatten)]
    figures: Figures,
    cpu_s: f64,
    timing: Option<Timing>,
    egress: Option<EgressReport>,
    error: Option<ErrorReport>,
}

/// What is known when data may begin to flow.
#[derive(Serialize)]
struct StartReport {
    command: &'static str,
    listen: String,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
}

/// Says things in the way that the command line asks for.
pub(super) struct Reporter {
    options: StackOutputArgs,
    json: Option<Json>,
    listen: ListenAt,
    /// There may be several transfers.
    keep: bool,
    /// Time between intervals.
    every: Option<Duration>,
    intervals: Cell<Intervals>,
    /// Standard output belongs to the data.
    data_on_stdout: bool,
}

impl Reporter {
    pub(super) fn new(args: &RecvArgs, data_on_stdout: bool) -> Self {
        Self {
            options: args.output,
            json: args.stream.json(&args.output),
            listen: args.listen,
            keep: args.keep,
            every: args.stream.intervals(),
            intervals: Cell::default(),
            data_on_stdout,
        }
    }

    /// Notes for people are wanted, and disturb no program.
    pub(super) fn speaks(&self) -> bool {
        !(self.options.common.quiet || self.json.is_some() && self.data_on_stdout)
    }

    /// Data may flow: of this peer, or of many.
    pub(super) fn start(&self, peer: Option<SocketAddr>, local: Option<SocketAddr>) -> Result<(), Failure> {
        if self.json != Some(Json::Stream) {
            return Ok(());
        }
        self.print("start", &StartReport { command: "recv", listen: self.listen.to_string(), peer, local })
    }

    /// Prints intervals, if they are asked for, of the time and the bytes that `so_far` tells. Ends
    /// only if that fails.
    pub(super) async fn say_intervals(&self, so_far: impl Fn() -> (Duration, u64)) -> Failure {
        let next = || {
            let (time, bytes) = so_far();
            self.interval(time, bytes)
        };
        json_stream::say_intervals(self.every, self.data_on_stdout, next).await
    }

    fn interval(&self, time: Duration, bytes: u64) -> Option<Interval> {
        let mut intervals = self.intervals.get();
        let interval = intervals.next(time, bytes);
        self.intervals.set(intervals);
        interval
    }

    /// The last lines: what moved since the last interval, the end, and why it came too early.
    fn end(
        &self,
        (time, bytes): (Duration, u64),
        document: &impl Serialize,
        failure: Option<&Failure>,
    ) -> Result<(), Failure> {
        if let Some(interval) = self.interval(time, bytes) {
            self.print("interval", &interval)?;
        }
        self.print("end", document)?;
        failure.map_or(Ok(()), |failure| self.error(failure))
    }

    fn error(&self, failure: &Failure) -> Result<(), Failure> {
        self.print("error", &ErrorReport::from(failure))
    }

    /// One transfer, whole or not.
    pub(super) fn transfer(&self, progress: &Progress, transfer: &Transfer) -> Result<(), Failure> {
        let Transfer { peer, local, bytes, time, policies, cpu, timing, egress, silent: _, outcome } =
            transfer;
        if let Some(json) = self.json {
            let file = outcome.as_ref().ok().and_then(Option::as_ref);
            let report = TransferReport {
                ok: outcome.is_ok(),
                command: "recv",
                event: "transfer",
                peer: *peer,
                local: *local,
                file: file.map(|file| file.to_string_lossy().into_owned()),
                figures: Figures::new(*bytes, *time),
                policies: policies.clone(),
                cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
                timing: timing.clone(),
                egress: egress.clone(),
                error: outcome.as_ref().err().map(ErrorReport::from),
            };
            return match json {
                Json::Stream if !self.keep && peer.is_none() => {
                    outcome.as_ref().map_or_else(|failure| self.error(failure), |_| Ok(()))
                }
                Json::Stream if !self.keep => self.end((*time, *bytes), &report, outcome.as_ref().err()),
                _ => self.print("transfer", &report),
            };
        }
        if let (Ok(file), true, Some(peer)) = (outcome, self.speaks(), peer) {
            let into = file.as_ref().map_or_else(String::new, |file| format!(" into {}", file.display()));
            let received = format!(
                "received {} from {peer}{into} in {}, {}",
                numbers::bytes(*bytes),
                numbers::seconds(*time),
                numbers::rate(*bytes, *time),
            );
            progress.say(&wrap(&received, 2));
            self.say_of_stack(progress, timing.as_ref(), egress.as_ref());
            for line in policies.lines().iter().filter(|_| self.options.verbose) {
                progress.say(line);
            }
        }
        Ok(())
    }

    /// It did not come to a transfer. For programs only: people are told by the failure.
    pub(super) fn nothing(&self, progress: &Progress, failure: &Failure) -> Result<(), Failure> {
        match self.json {
            None => return Ok(()),
            Some(Json::Stream) => return self.error(failure),
            Some(Json::Document) => {}
        }
        let outcome = Err(failure.clone());
        let (bytes, time) = (0, Duration::ZERO);
        if self.keep {
            return self.summary(progress, Totals::default(), (time, time), None, &outcome);
        }
        let outcome = outcome.map(|()| None);
        self.transfer(
            progress,
            &Transfer {
                peer: None,
                local: None,
                bytes,
                time,
                policies: ConnPolicies::default(),
                cpu: None,
                timing: None,
                egress: None,
                silent: false,
                outcome,
            },
        )
    }

    /// An aborted transfer among others, which goes on standard error whatever is asked for.
    pub(super) fn aborted(&self, progress: &Progress, failure: &Failure) {
        progress.say(&format!("ackline: {failure}; nothing of it was kept"));
    }

    /// All transfers together; `time` and CPU time.
    pub(super) fn summary(
        &self,
        progress: &Progress,
        totals: Totals,
        (time, cpu): (Duration, Duration),
        of_stack: Option<(Timing, EgressReport)>,
        outcome: &Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Totals { complete, aborted, silent, bytes } = totals;
        let (timing, egress) = of_stack.unzip();
        if let Some(json) = self.json {
            let report = SummaryReport {
                ok: outcome.is_ok(),
                command: "recv",
                event: "summary",
                complete,
                aborted,
                silent,
                figures: Figures::new(bytes, time),
                cpu_s: cpu.as_secs_f64(),
                timing,
                egress,
                error: outcome.as_ref().err().map(ErrorReport::from),
            };
            return match json {
                Json::Stream => self.end((time, bytes), &report, outcome.as_ref().err()),
                Json::Document => self.print("summary", &report),
            };
        }
        if self.speaks() {
            let silent = if silent == 0 { String::new() } else { format!(", {silent} silent") };
            progress
                .say(&format!("{complete} complete, {aborted} aborted{silent}, {}", numbers::bytes(bytes)));
            self.say_of_stack(progress, timing.as_ref(), egress.as_ref());
        }
        Ok(())
    }

    /// What the stack did with its packets, and with `-v` what it measured of itself.
    fn say_of_stack(&self, progress: &Progress, timing: Option<&Timing>, egress: Option<&EgressReport>) {
        for line in egress.into_iter().flat_map(EgressReport::lines) {
            progress.say(&line);
        }
        if self.options.verbose {
            let scheduler = egress.into_iter().flat_map(EgressReport::scheduler_lines);
            for line in timing.into_iter().flat_map(Timing::lines).chain(scheduler) {
                progress.say(&line);
            }
        }
    }

    /// Prints a document, or as an event of the stream.
    fn print(&self, event: &'static str, document: &impl Serialize) -> Result<(), Failure> {
        let line = match self.json {
            Some(Json::Stream) => json_stream::line(event, document),
            _ => output::json_line(document),
        };
        json_stream::print(&line, self.data_on_stdout)
    }
}
