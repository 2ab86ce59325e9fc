//! A script from its first event to its last: time, the dialogue, and calls that block.

use crate::expect::{self, Expectation, NoSegment, Segment};
use crate::flow::Flow;
use crate::host::{Attempt, Host, OpenCall, Progress};
use crate::inbound;
use crate::outcome::{Failure, Outcome, Report};
use crate::python::{self, Block};
use crate::report;
use crate::script::{
    Action, Call, Direction, Event, Expr, OptionLine, PacketLine, Payload, Script, ScriptError, ScriptTime,
    TcpLine,
};
use crate::settings::Environment;
use crate::settings::{Options, Profile, Settings};
use crate::stack::Stack;
use ackline_tcp_core::wire::TcpFlags;
use std::net::SocketAddr;

/// How long after its time a packet that does not come is waited for.
const PATIENCE: u64 = 2_000_000;
/// How much later than expected a pure ACK may come if ACKs are relaxed: the longest delay that RFC
/// 1122, section 4.2.3.2, permits, and the tolerance.
const LATEST_ACK: u64 = 510_000;
/// How long a call is waited for that blocks although nothing can end it any more.
const LONGEST_CALL: u64 = 3_600_000_000;
/// The first port of the script's end for connections to a listener.
const FIRST_PORT: u16 = 49_152;

/// Runs a script against the stack. What its Python says is for [`judge`].
#[must_use]
pub fn run(text: &str, options: &Options) -> Report {
    run_prepared(text, options, |_, settings| Ok(Stack::new(settings.clone(), options.registry.clone())))
}

/// Runs a script against another host, which `open` makes for what the script asks of its
/// surroundings. An error of `open` makes the script unsupported.
pub fn run_on<H: Host>(
    text: &str,
    options: &Options,
    open: impl FnOnce(&Script, &Environment) -> Result<H, String>,
) -> Report {
    run_prepared(text, options, |script, settings| open(script, &settings.environment()))
}

fn run_prepared<H: Host>(
    text: &str,
    options: &Options,
    open: impl FnOnce(&Script, &Settings) -> Result<H, String>,
) -> Report {
    let mut report = Report {
        outcome: Outcome::Passed,
        profile: options.profile.unwrap_or(Profile::Rfc),
        relax: options.relax,
        blocks: vec![],
        packets: vec![],
    };
    let prepared = Script::parse(text, &options.defines)
        .and_then(|script| Settings::of(&script, options).map(|settings| (script, settings)));
    let (script, settings) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            report.outcome = refused(&error);
            return report;
        }
    };
    report.profile = settings.profile;
    let host = match open(&script, &settings) {
        Ok(host) => host,
        Err(reason) => {
            report.outcome = Outcome::Unsupported { line: 1, reason };
            return report;
        }
    };
    let mut runner = Runner::new(&script, settings, options, host);
    let wrong = script.events.iter().find_map(|event| runner.event(event).err());
    let wrong = wrong.or_else(|| runner.finish_call().err());
    report.outcome = match wrong {
        None => Outcome::Passed,
        Some(Stop::Unsupported { line, reason }) => Outcome::Unsupported { line, reason },
        Some(Stop::Failed(failure)) => Outcome::Failed(*failure),
    };
    report.packets = runner.host.passed();
    report.blocks = runner.blocks;
    report
}

fn refused(error: &ScriptError) -> Outcome {
    let problem = error.problem.clone();
    if error.unsupported {
        Outcome::Unsupported { line: error.place.line, reason: problem }
    } else {
        Outcome::Unreadable { line: error.place.line, column: error.place.column, problem }
    }
}

/// Has the Python of all runs that passed say whether it agrees, in one interpreter. Without one,
/// scripts with Python are unsupported.
pub fn judge(reports: &mut [Report], texts: &[&str]) {
    let asked: Vec<usize> = (0..reports.len())
        .filter(|at| reports.get(*at).is_some_and(|r| r.outcome == Outcome::Passed && !r.blocks.is_empty()))
        .collect();
    let programs: Vec<&[Block]> = asked.iter().map(|at| reports[*at].blocks.as_slice()).collect();
    let answers = python::check(&programs);
    match answers {
        Ok(answers) => {
            for (at, complaint) in asked.into_iter().zip(answers) {
                let Some(complaint) = complaint else { continue };
                let (line, reason) = (complaint.line, complaint.problem);
                let context = report::context(texts.get(at).copied().unwrap_or_default(), line);
                reports[at].outcome = if complaint.unsupported {
                    Outcome::Unsupported { line, reason: format!("tcp_info: {reason}") }
                } else {
                    let known = reports[at].blocks.iter().rfind(|block| block.line == line);
                    let concluded = known.map(report::known).unwrap_or_default();
                    Outcome::Failed(Failure { line, reason, context, concluded, ..Failure::default() })
                };
            }
        }
        Err(reason) => {
            for at in asked {
                let line = reports[at].blocks.first().map_or(1, |block| block.line);
                reports[at].outcome = Outcome::Unsupported { line, reason: reason.clone() };
            }
        }
    }
}

/// Why a run ends before its last event.
enum Stop {
    Failed(Box<Failure>),
    Unsupported { line: u32, reason: String },
}

/// A call that has not returned.
struct PendingCall<'a> {
    call: &'a Call,
    line: u32,
    progress: Progress,
    /// When it is expected to return, and how far off that may be, in microseconds.
    until: u64,
    tolerance: u64,
}

/// The stack under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestSubject {
    Nobody,
    /// The first SYN makes a connection.
    Listener,
    /// The flow at this index.
    Flow(usize),
}

struct Runner<'a, H> {
    script: &'a Script,
    settings: Settings,
    options: &'a Options,
    host: H,
    flows: Vec<Flow>,
    under_test: TestSubject,
    /// Where connections are listened for.
    listening: Option<SocketAddr>,
    next_port: u16,
    /// When the event before finished, and was due, in microseconds.
    finished: u64,
    due: u64,
    /// The event before was a packet into the stack.
    after_inbound: bool,
    pending: Option<PendingCall<'a>>,
    blocks: Vec<Block>,
    line: u32,
}

impl<'a, H: Host> Runner<'a, H> {
    fn new(script: &'a Script, settings: Settings, options: &'a Options, host: H) -> Self {
        Self {
            script,
            settings,
            options,
            host,
            flows: vec![],
            under_test: TestSubject::Nobody,
            listening: None,
            next_port: FIRST_PORT,
            finished: 0,
            due: 0,
            after_inbound: false,
            pending: None,
            blocks: vec![],
            line: 1,
        }
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Stop> {
        self.line = event.place.line;
        let base = self.finished;
        // Packets into the stack are as far apart as the script says, whatever came between.
        let is_inbound = matches!(&event.action, Action::Packet(PacketLine { direction: Direction::In, .. }));
        let base_inbound = if self.after_inbound && is_inbound { self.due } else { base };
        let window = match event.when {
            ScriptTime::At(at) => Some((at, at)),
            ScriptTime::After(after) => Some((base_inbound + after, base_inbound + after)),
            ScriptTime::Between(first, last) => Some((first, last)),
            ScriptTime::BetweenAfter(first, last) => Some((base + first, base + last)),
            ScriptTime::Any => None,
        };
        let at = window.map_or(base, |(first, _)| first);
        match &event.action {
            Action::Packet(line) if line.is_outbound() => self.expect(line, window)?,
            Action::Packet(line) => {
                self.advance(at);
                self.inject(line)?;
            }
            Action::Call { call, until } => {
                self.finish_call()?;
                self.advance(at);
                let relative = matches!(event.when, ScriptTime::After(_));
                let until = until.map(|until| if relative { base + until } else { until });
                self.call(call, until)?;
            }
            Action::Shell(shell) => {
                self.advance(at);
                let changed = self.host.shell(shell);
                changed.map_err(|problem| self.unsupported(problem))?;
            }
            Action::Python(code) => {
                self.advance(at);
                self.snapshot(code)?;
            }
        }
        self.finished = self.host.now();
        self.due = at;
        self.after_inbound = is_inbound;
        Ok(())
    }

    // Time.

    /// Time passes up to `limit`, and everything until then happens.
    fn advance(&mut self, limit: u64) {
        self.after_change();
        while self.step(limit) {}
    }

    /// The next thing happens that is due until `limit`; `false`: nothing is, and it is `limit`.
    fn step(&mut self, limit: u64) -> bool {
        let waiting = self.pending.as_ref().filter(|pending| pending.progress.done.is_none());
        let waits = waiting.is_some();
        let deadline = waiting.and_then(|pending| pending.progress.deadline).filter(|at| *at < limit);
        let went_on = self.host.step(deadline.unwrap_or(limit), waits);
        self.after_change();
        went_on || deadline.is_some()
    }

    /// Something has happened: a call that waits may go on.
    fn after_change(&mut self) {
        let Some(pending) = &mut self.pending else { return };
        if pending.progress.done.is_some() {
            return;
        }
        let attempt = self.host.attempt(pending.call, &mut pending.progress);
        if attempt != Attempt::Blocks {
            pending.progress.done = Some((self.host.now(), attempt));
        }
        self.note_opened();
    }

    // Calls.

    fn call(&mut self, call: &'a Call, until: Option<u64>) -> Result<(), Stop> {
        let mut progress = Progress::default();
        let attempt = self.host.attempt(call, &mut progress);
        self.note_opened();
        let now = self.host.now();
        let Some(until) = until else {
            return match attempt {
                Attempt::Blocks => Err(self.failed(format!("{} blocks", call.name))),
                done => self.returned(call, &done),
            };
        };
        if attempt != Attempt::Blocks {
            progress.done = Some((now, attempt));
        }
        let length = until.saturating_sub(now);
        let tolerance = self.settings.tolerance_usecs.max(self.share(length)) + self.host.slack();
        self.pending = Some(PendingCall { call, line: self.line, progress, until, tolerance });
        Ok(())
    }

    /// Waits for the call that blocks: there is one at a time.
    fn finish_call(&mut self) -> Result<(), Stop> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let limit = pending.until + LONGEST_CALL;
        while self.pending.as_ref().is_some_and(|pending| pending.progress.done.is_none()) {
            if !self.step(limit) {
                break;
            }
        }
        let Some(PendingCall { call, line, progress, until, tolerance }) = self.pending.take() else {
            return Ok(());
        };
        let here = std::mem::replace(&mut self.line, line);
        let Some((at, attempt)) = progress.done else {
            return Err(self.failed(format!("{} does not return", call.name)));
        };
        self.returned(call, &attempt)?;
        if at.abs_diff(until) > tolerance {
            let (expected, at) = (report::seconds(until), report::seconds(at));
            return Err(self.failed(format!("{} returns at {at}, not at {expected}", call.name)));
        }
        self.line = here;
        Ok(())
    }

    /// Compares what a call has returned.
    fn returned(&mut self, call: &Call, attempt: &Attempt) -> Result<(), Stop> {
        let expected = match (&call.errno, &call.result) {
            (Some(errno), _) => Some(format!("-1 {errno}")),
            (None, Expr::Ellipsis) => None,
            (None, result) => Some(
                crate::symbols::value(result)
                    .map_err(|what| self.unsupported(format!("a result that is {what}")))?
                    .to_string(),
            ),
        };
        let same = |errno: &str| if errno == "EWOULDBLOCK" { "EAGAIN".to_owned() } else { errno.to_owned() };
        let (got, agrees) = match attempt {
            Attempt::Unsupported(reason) => return Err(self.unsupported(reason.clone())),
            Attempt::Differs(what) => return Err(self.failed(what.clone())),
            Attempt::Blocks => return Err(self.failed(format!("{} blocks", call.name))),
            Attempt::Returned(value) => {
                (value.to_string(), expected.as_ref().is_none_or(|expected| *expected == value.to_string()))
            }
            Attempt::Failed(errno) => {
                let agrees = call.errno.as_deref().is_some_and(|expected| same(expected) == *errno)
                    || call.errno.is_none() && expected.as_deref() == Some("-1");
                (format!("-1 {errno}"), agrees)
            }
        };
        if agrees {
            return Ok(());
        }
        let expected = expected.unwrap_or_default();
        Err(Self::stop(Failure {
            expected: Some(format!("{}(...) = {expected}", call.name)),
            got: Some(format!("{}(...) = {got}", call.name)),
            ..self.failure(format!("{} returns something else", call.name))
        }))
    }

    /// Calls may have made a connection, or a listener, that is under test from now on.
    fn note_opened(&mut self) {
        for opened in self.host.opened() {
            match opened {
                OpenCall::Listening(on) => {
                    self.listening = Some(on);
                    self.under_test = TestSubject::Listener;
                }
                OpenCall::Connecting(local, remote) => {
                    self.flows.push(Flow::new(local, remote));
                    self.under_test = TestSubject::Flow(self.flows.len() - 1);
                }
            }
        }
    }

    // Packets into the stack.

    fn inject(&mut self, line: &PacketLine) -> Result<(), Stop> {
        let at = self.flow_for(line);
        if let Payload::Tcp(tcp) = &line.payload {
            let stamps = tcp.options.iter().filter_map(|option| match option {
                OptionLine::Timestamps { val, .. } => Some(*val),
                _ => None,
            });
            self.flows[at].given.extend(stamps);
        }
        self.look_for_new_numbers(at, line);
        if let Payload::Tcp(tcp) = &line.payload {
            self.flows[at].observe(tcp, false);
        }
        let (octets, tcp) = match &line.payload {
            Payload::Tcp(tcp) => {
                let tcp = self.with_cookie(at, tcp)?;
                (inbound::segment(&self.flows[at], &line.ip, &tcp), Some(tcp))
            }
            Payload::Icmp(icmp) => (inbound::icmp(&self.flows[at], &line.ip, icmp), None),
        };
        let octets = octets.map_err(|problem| self.failed(problem))?;
        self.host.inject(octets, tcp.as_ref());
        self.after_change();
        Ok(())
    }

    /// A SYN for a connection that has ended may begin another one with numbers of its own.
    fn look_for_new_numbers(&mut self, at: usize, line: &PacketLine) {
        let Payload::Tcp(tcp) = &line.payload else { return };
        if !tcp.flags.contains(TcpFlags::SYN) || tcp.flags.contains(TcpFlags::ACK) {
            return;
        }
        let (local, remote) = self.ends(at);
        if self.host.may_begin_anew(local, remote) {
            self.flows[at].may_begin_anew();
        }
    }

    /// The two ends of a flow, the host's first.
    fn ends(&self, at: usize) -> (SocketAddr, SocketAddr) {
        (self.flows[at].local, self.flows[at].remote)
    }

    /// The line with the cookie of the host in place of `TFO_COOKIE`.
    fn with_cookie(&mut self, at: usize, tcp: &TcpLine) -> Result<TcpLine, Stop> {
        let (local, remote) = self.ends(at);
        let mut tcp = tcp.clone();
        for option in &mut tcp.options {
            if let OptionLine::FastOpen { cookie: cookie @ None, .. } = option {
                let known = self.host.cookie(local, remote);
                *cookie = Some(known.map_err(|problem| self.unsupported(problem))?);
            }
        }
        Ok(tcp)
    }

    /// The flow that a packet into the stack belongs to.
    fn flow_for(&mut self, line: &PacketLine) -> usize {
        let is_syn = match &line.payload {
            Payload::Tcp(tcp) => tcp.flags.contains(TcpFlags::SYN) && !tcp.flags.contains(TcpFlags::ACK),
            Payload::Icmp(_) => false,
        };
        if let Some((remote, local)) = line.ports
            && let Some(known) = self.flows.iter().position(|flow| flow.named_ports == Some((local, remote)))
        {
            self.under_test = TestSubject::Flow(known);
            return known;
        }
        if let TestSubject::Flow(at) = self.under_test
            && line.ports.is_none()
            && !(is_syn && self.is_over(at))
        {
            return at;
        }
        let local = self.listening.unwrap_or(self.settings.local);
        let remote = SocketAddr::new(self.settings.remote.ip(), self.next_port);
        self.next_port += 1;
        let mut flow = Flow::new(local, remote);
        flow.named_ports = line.ports.map(|(remote, local)| (local, remote));
        self.flows.push(flow);
        self.under_test = TestSubject::Flow(self.flows.len() - 1);
        self.flows.len() - 1
    }

    /// Nothing is left of a connection, and another can come to the listener.
    fn is_over(&mut self, at: usize) -> bool {
        let (local, remote) = self.ends(at);
        self.listening.is_some() && self.host.is_over(local, remote)
    }

    // Packets from the stack.

    fn expect(&mut self, line: &PacketLine, window: Option<(u64, u64)>) -> Result<(), Stop> {
        let Payload::Tcp(tcp) = &line.payload else {
            return Err(self.unsupported("ICMP messages from the stack".to_owned()));
        };
        let now = self.host.now();
        let last = window.map_or(now, |(_, last)| last.max(now));
        let limit = last + PATIENCE;
        let at = match (line.ports, self.under_test) {
            (Some((local, remote)), _) => {
                let named = self.flows.iter().position(|flow| flow.named_ports == Some((local, remote)));
                named.or_else(|| self.name_ports(local, remote))
            }
            (None, TestSubject::Flow(at)) => Some(at),
            (None, _) => None,
        };
        let Some(at) = at else {
            return Err(self.failed("there is no connection that could send this".to_owned()));
        };
        self.flows[at].observe(tcp, true);
        let relax = self.options.relax;
        let is_pure_ack = |line: &TcpLine| line.len == 0 && line.flags == TcpFlags::ACK;
        let (segment, merged) = loop {
            let Some(first) = self.next_segment(at, limit)? else {
                let until = report::seconds(self.host.now());
                return Err(Self::stop(Failure {
                    expected: Some(line.to_string()),
                    got: Some(format!("nothing until {until}")),
                    ..self.failure("no packet comes".to_owned())
                }));
            };
            let (segment, merged) = self.merge(at, tcp, first, limit)?;
            let segment = self.learn(at, tcp, segment);
            let expected = self.expected(line, tcp);
            let Some(difference) = expected.difference(&segment, merged) else { break (segment, merged) };
            if relax.ack && is_pure_ack(&segment.line) {
                continue;
            }
            let mut shown = segment.line.clone();
            if tcp.window.is_none() {
                shown.window = None;
            }
            return Err(Self::stop(Failure {
                expected: Some(line.to_string()),
                got: Some(format!("> {shown}")),
                ..self.failure(difference)
            }));
        };
        self.check_stamp(at, tcp, &segment)?;
        let Some((first, last)) = window else { return Ok(()) };
        let tolerance = self.settings.tolerance_usecs.max(self.share(first.saturating_sub(self.finished)))
            + self.host.slack();
        let late = if relax.ack && is_pure_ack(tcp) { LATEST_ACK.max(tolerance) } else { tolerance };
        let came = segment.at;
        if came + tolerance < first || came > last + late {
            let span = if first == last {
                report::seconds(first)
            } else {
                format!("between {} and {}", report::seconds(first), report::seconds(last))
            };
            let which = if merged { "the last piece comes" } else { "it comes" };
            return Err(Self::stop(Failure {
                expected: Some(format!("{line}, at {span}")),
                ..self.failure(format!("{which} at {}", report::seconds(came)))
            }));
        }
        Ok(())
    }

    /// A connection whose ports a line names for the first time: the one under test.
    fn name_ports(&mut self, local: u16, remote: u16) -> Option<usize> {
        let TestSubject::Flow(at) = self.under_test else { return None };
        let flow = self.flows.get_mut(at)?;
        flow.named_ports.get_or_insert((local, remote));
        Some(at)
    }

    fn expected<'l>(&self, line: &'l PacketLine, tcp: &'l TcpLine) -> Expectation<'l> {
        Expectation {
            ip: &line.ip,
            line: tcp,
            relax: self.options.relax,
            exact_echoes: self.settings.profile == Profile::Rfc,
        }
    }

    /// The next segment of a flow that leaves until `limit`.
    fn next_segment(&mut self, at: usize, limit: u64) -> Result<Option<Segment>, Stop> {
        let segment = self.peek_segment(at, limit)?;
        if segment.is_some() {
            self.host.sent().pop_front();
        }
        Ok(segment)
    }

    /// Joins segments of equal size that follow each other until there are as many bytes as the
    /// line has: it was written for a stack that leaves cutting to its device.
    fn merge(
        &mut self,
        at: usize,
        line: &TcpLine,
        first: Segment,
        limit: u64,
    ) -> Result<(Segment, bool), Stop> {
        let mut whole = first;
        if self.settings.strict_segments || whole.line.len == 0 || line.seq != whole.line.seq {
            return Ok((whole, false));
        }
        let size = whole.line.len;
        let mut merged = false;
        while whole.line.len < line.len && whole.line.len.is_multiple_of(size) {
            // A piece that comes later than any timer of this dialogue is no piece.
            let Some(next) = self.peek_segment(at, limit)? else { break };
            if !expect::continues(&whole.line, whole.line.len, &next.line)
                || next.line.len > size
                || whole.line.len + next.line.len > line.len
            {
                break;
            }
            self.host.sent().pop_front();
            whole.line.len += next.line.len;
            whole.line.flags = next.line.flags;
            whole.line.options.clone_from(&next.line.options);
            whole.live_stamps = next.live_stamps;
            whole.at = next.at;
            whole.fault = whole.fault.or(next.fault);
            merged = true;
        }
        Ok((whole, merged))
    }

    /// The next segment of a flow, which stays first in the queue.
    fn peek_segment(&mut self, at: usize, limit: u64) -> Result<Option<Segment>, Stop> {
        loop {
            while let Some(sent) = self.host.sent().front() {
                match expect::segment(&self.flows[at], sent.at, &sent.octets) {
                    Ok(segment) => return Ok(Some(segment)),
                    Err(NoSegment::Other) => {
                        self.host.sent().pop_front();
                    }
                    Err(NoSegment::Malformed(error)) => {
                        return Err(self.failed(format!("the stack sends a malformed packet: {error}")));
                    }
                }
            }
            if !self.step(limit) && self.host.sent().is_empty() {
                return Ok(None);
            }
        }
    }

    /// The first line that names a number of the stack tells what it is called in the script.
    fn learn(&mut self, at: usize, line: &TcpLine, mut segment: Segment) -> Segment {
        let flow = &mut self.flows[at];
        if line.flags.contains(TcpFlags::SYN) && segment.line.flags.contains(TcpFlags::SYN) {
            flow.learn_isn(segment.live_seq.0, line.seq);
            segment.line.seq = line.seq.wrapping_add(flow.distance_from_isn(segment.live_seq.0));
        }
        let named = line.options.iter().find_map(|option| match option {
            OptionLine::Timestamps { val, .. } => Some(*val),
            _ => None,
        });
        if let (Some(named), Some((live, _))) = (named, segment.live_stamps) {
            flow.learn_stamp(named, live);
            for option in &mut segment.line.options {
                if let OptionLine::Timestamps { val, .. } = option {
                    *val = named;
                }
            }
        }
        segment
    }

    /// With `--tcp_ts_tick_usecs`, timestamps are as far from the first one as the script's are.
    fn check_stamp(&mut self, at: usize, line: &TcpLine, segment: &Segment) -> Result<(), Stop> {
        let tick = self.settings.ts_tick_usecs;
        let named = line.options.iter().find_map(|option| match option {
            OptionLine::Timestamps { val, .. } => Some(*val),
            _ => None,
        });
        let (Some(named), Some((live, _)), Some((first, first_live))) =
            (named, segment.live_stamps, self.flows[at].first_stamp())
        else {
            return Ok(());
        };
        if tick == 0 {
            return Ok(());
        }
        let (expected, actual) = (named.wrapping_sub(first), live.wrapping_sub(first_live));
        let slack = (self.settings.tolerance_usecs / tick + 1) as u32;
        if expected.abs_diff(actual) <= slack {
            return Ok(());
        }
        Err(self.failed(format!("TS val is {actual} ticks after the first one; the line says {expected}")))
    }

    // Python.

    fn snapshot(&mut self, code: &str) -> Result<(), Stop> {
        let ends = match self.under_test {
            TestSubject::Flow(at) => Some(self.ends(at)),
            _ => None,
        };
        let known = self.host.snapshot(ends).map_err(|problem| self.unsupported(problem))?;
        self.blocks.push(Block { line: self.line, known, code: code.to_owned() });
        Ok(())
    }

    // Ends.

    /// The part of a time that it may be off.
    fn share(&self, micros: u64) -> u64 {
        (micros as f64 * self.settings.tolerance_percent / 100.0) as u64
    }

    fn unsupported(&self, reason: String) -> Stop {
        Stop::Unsupported { line: self.line, reason }
    }

    fn failure(&mut self, reason: String) -> Failure {
        let flow = match self.under_test {
            TestSubject::Flow(at) => self.flows.get(at),
            _ => None,
        };
        Failure {
            line: self.line,
            reason,
            context: report::context(&self.script.text, self.line),
            around: report::around(&self.host.passed(), flow),
            concluded: self.host.concluded(),
            ..Failure::default()
        }
    }

    fn stop(failure: Failure) -> Stop {
        Stop::Failed(Box::new(failure))
    }

    fn failed(&mut self, reason: String) -> Stop {
        Self::stop(self.failure(reason))
    }
}
