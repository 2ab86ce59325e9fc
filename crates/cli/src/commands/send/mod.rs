//! `ackline send`: a file or standard input to a TCP receiver.

mod beyond;
mod exchange;
mod source;

use crate::args::SendArgs;
use crate::args::json::Json;
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::network::tunnel::{self, PortsFor};
use crate::output::{self, numbers};
use crate::report::egress::EgressReport;
use crate::report::error::ErrorReport;
use crate::report::json_stream::{self, Interval, Intervals, line};
use crate::report::policies::ConnPolicies;
use crate::report::timing::Timing;
use crate::signals::{EndSignal, Signals};
use crate::transfer::progress::Progress;
use crate::transfer::traffic::{Figures, PathFigures, PathSampler, Stopwatch};
use ackline::Registry;
use ackline::runtime::stream::WriteHalf;
use ackline::runtime::{Device as _, Info, Stack, TcpStream, timer};
use ackline_lab::wrap;
use beyond::Beyond;
use exchange::{Answer, Trouble, exchange};
use serde::Serialize;
use source::Source;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ports for a stack that has only some of the host's: one for a connection, and for each that was
/// tried before it.
const PORTS: u16 = 8;

/// What is known when data begins to flow, in JSON.
#[derive(Serialize)]
struct Start<'a> {
    command: &'static str,
    file: &'a str,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    offload: Option<bool>,
}

/// The summary of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    #[serde(flatten)]
    start: Start<'a>,
    #[serde(flatten)]
    figures: Figures,
    received_bytes: u64,
    cpu_s: f64,
    #[serde(flatten)]
    path: PathFigures,
    #[serde(flatten)]
    policies: ConnPolicies,
    timing: Option<Timing>,
    egress: Option<EgressReport>,
    error: Option<ErrorReport>,
}

/// What became known on the way, for the report of a failure as well as of a success.
struct Facts {
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    offload: Option<bool>,
    timing: Option<Timing>,
    egress: Option<EgressReport>,
}

impl Facts {
    const fn start<'a>(&self, file: &'a str) -> Start<'a> {
        let Self { peer, local, offload, .. } = *self;
        Start { command: "send", file, peer, local, offload }
    }
}

/// How far a transfer is.
struct Tally {
    /// Bytes that the peer has acknowledged.
    acknowledged: Progress,
    /// Bytes of the peer's answer.
    answered: Progress,
    /// From the end of the handshake, once there was one.
    watch: Cell<Stopwatch>,
    /// When everything had been acknowledged.
    took: Cell<Option<Duration>>,
    path: RefCell<PathSampler>,
    /// The policies, as last seen.
    policies: RefCell<ConnPolicies>,
    intervals: Cell<Intervals>,
}

impl Tally {
    fn new(acknowledged: Progress) -> Self {
        Self {
            acknowledged,
            answered: Progress::silent(),
            watch: Cell::new(Stopwatch::of_process()),
            took: Cell::new(None),
            path: RefCell::default(),
            policies: RefCell::default(),
            intervals: Cell::default(),
        }
    }

    /// What was acknowledged since the last interval, if there is anything to say of it.
    fn interval(&self) -> Option<Interval> {
        let mut intervals = self.intervals.get();
        let interval = intervals.next(self.time(), self.acknowledged.bytes());
        self.intervals.set(intervals);
        interval
    }

    /// Looks at the connection, if it is time to.
    fn look(&self, stream: &WriteHalf<'_>) {
        if self.path.borrow().is_due(timer::now())
            && let Ok(info) = stream.info()
        {
            self.learn(&info);
        }
    }

    fn learn(&self, info: &Info) {
        self.acknowledged.set(info.bytes_acked);
        self.path.borrow_mut().take_info(timer::now(), info);
        self.policies.replace(info.into());
    }

    fn all_acknowledged(&self) {
        self.took.set(Some(self.watch.get().elapsed()));
    }

    /// Time until everything was acknowledged, or until now.
    fn time(&self) -> Duration {
        self.took.get().unwrap_or_else(|| self.watch.get().elapsed())
    }
}

pub(crate) fn run(args: &SendArgs, registry: &Registry) -> Result<(), Failure> {
    let settings = args.policies.resolve(registry)?;
    let tunnel = args.tunnel.plan(None, PortsFor::Connections(PORTS))?;
    let speaks = args.output.speaks() && args.stream.json(&args.output).is_none();
    let watch = args.watch.plan("send", speaks)?;
    let source = Source::open(&args.file)?;
    // Standard input stands for a conversation, whose other half goes to standard output.
    let converses = args.file == Path::new("-");
    let answer = if converses {
        let file = output::file()?;
        Answer::Into(Arc::new(file))
    } else {
        Answer::Dropped
    };
    let name = source.name().to_owned();
    let progress = if converses && io::stdin().is_terminal() {
        // It would be drawn over what a person types.
        Progress::silent()
    } else {
        Progress::new(&format!("sending {name}"), source.size(), args.output.common)
    };
    let tally = Tally::new(progress);
    let mut facts = Facts { peer: None, local: None, offload: None, timing: None, egress: None };

    let runtime = tunnel::runtime()?;
    let outcome = tunnel.resolve(&args.to).and_then(|targets| {
        runtime.block_on(async {
            let mut signals = Signals::catch()?;
            let recording = watch.begin(tunnel.link(), &settings)?;
            let device = tunnel.open()?;
            facts.offload = Some(device.caps().max_super_packet > 0);
            let stack = tunnel.start(device, &settings, |connections| {
                // An answer may be waited for without end, and a peer that vanishes says nothing.
                connections.keep_alive = converses.then_some(tunnel::PROBES);
            })?;
            let watchers = recording.watch(&stack, &settings)?;
            let beyond = Beyond::of(&tunnel, &targets);
            if let Some(warning) = beyond.as_ref().and_then(Beyond::warning) {
                tell(args, &tally.acknowledged, &warning);
            }
            let targets = (&targets[..], beyond.as_ref());
            let outcome = tokio::select! {
                sent = transfer(&stack, args, targets, (source, answer), &tally, &mut signals, &mut facts) => {
                    sent.map_err(|failure| args.tunnel.blame(&stack, failure))
                }
                never = tunnel.watch(&stack, |line| tell(args, &tally.acknowledged, line)) => match never {},
            };
            facts.timing = Some((&stack.stats()).into());
            // A reset has left by the time that its stream is dropped; this is for what closes in
            // good order.
            stack.shutdown(Duration::from_millis(500)).await;
            facts.egress = Some(EgressReport::of(&stack));
            tally.acknowledged.clear();
            watchers.end();
            outcome
        })
    });
    // A read from a terminal or pipe may be under way, and nobody needs its result.
    runtime.shutdown_background();
    tally.acknowledged.clear();
    report(args, &name, converses, &tally, facts, &outcome)?;
    outcome
}

fn report(
    args: &SendArgs,
    name: &str,
    converses: bool,
    tally: &Tally,
    facts: Facts,
    outcome: &Result<(), Failure>,
) -> Result<(), Failure> {
    let (bytes, answered, time) = (tally.acknowledged.bytes(), tally.answered.bytes(), tally.time());
    let path = tally.path.borrow().path();
    let policies = tally.policies.take();
    if let Some(json) = args.stream.json(&args.output) {
        let report = Report {
            ok: outcome.is_ok(),
            start: facts.start(name),
            figures: Figures::new(bytes, time),
            received_bytes: answered,
            cpu_s: tally.watch.get().cpu().as_secs_f64(),
            path: path.into(),
            policies,
            timing: facts.timing,
            egress: facts.egress,
            error: outcome.as_ref().err().map(ErrorReport::from),
        };
        let text = match json {
            Json::Document => output::json(&report),
            Json::Stream => {
                let interval = tally.interval().map(|interval| line("interval", &interval));
                let end = report.start.peer.map(|_| line("end", &report));
                let error = report.error.as_ref().map(|error| line("error", error));
                [interval.filter(|_| end.is_some()), end, error].into_iter().flatten().collect()
            }
        };
        return json_stream::print(&text, converses);
    }
    if outcome.is_ok() && !args.output.common.quiet {
        let answered =
            if answered > 0 { format!("; received {}", numbers::bytes(answered)) } else { String::new() };
        let sent = format!(
            "sent {} in {}, {}{answered}; {} retransmissions, round trip {} (least {})",
            numbers::bytes(bytes),
            numbers::seconds(time),
            numbers::rate(bytes, time),
            path.retransmits,
            numbers::round_trip(path.rtt_mean),
            numbers::round_trip(path.rtt_min),
        );
        output::say(&wrap(&sent, 2));
        for line in facts.egress.iter().flat_map(EgressReport::lines) {
            output::say(&line);
        }
        if args.output.verbose {
            let scheduler = facts.egress.iter().flat_map(EgressReport::scheduler_lines);
            let timing = facts.timing.iter().flat_map(Timing::lines);
            for line in timing.chain(policies.lines()).chain(scheduler) {
                output::say(&line);
            }
        }
    }
    Ok(())
}

/// Says something on the way.
fn tell(args: &SendArgs, progress: &Progress, line: &str) {
    if !args.output.common.quiet {
        progress.say(line);
    }
}

/// What ended an exchange before both sides did.
enum Early {
    Trouble(Trouble),
    Stalled,
    Signal(EndSignal),
    /// An interval could not be printed.
    Mute(Failure),
}

/// Connects and exchanges everything. If this is dropped or fails, the receiver gets a reset: it
/// must not take a part for the whole.
async fn transfer(
    stack: &Stack,
    args: &SendArgs,
    (targets, beyond): (&[SocketAddr], Option<&Beyond>),
    (source, answer): (Source, Answer),
    tally: &Tally,
    signals: &mut Signals,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let total = source.size();
    let limit = args.timeout.unwrap_or_default();
    let mut stream = tokio::select! {
        connected = connect(stack, args, targets) => connected?,
        never = doubt(args, beyond, &tally.acknowledged) => match never {},
        () = tally.acknowledged.stalled(args.timeout) => {
            let limit = limit.as_secs_f64();
            return Err(Failure::new(Exit::Network, format!("cannot reach {}: no answer for {limit} s", args.to)));
        }
        signal = signals.next() => return Err(signal.failure("stopped before there was a connection")),
    };
    let (local, peer) = stream.addresses();
    tally.watch.set(Stopwatch::of_process());
    facts.peer = Some(peer);
    facts.local = Some(local);
    let _ = stream.set_zero_linger();
    let converses = matches!(answer, Answer::Into(_));
    if args.stream.json(&args.output) == Some(Json::Stream) {
        json_stream::print(&line("start", &facts.start(source.name())), converses)?;
    }
    let early = tokio::select! {
        done = exchange(&mut stream, source, answer, tally) => done.err().map(Early::Trouble),
        () = tally.acknowledged.stalled_sending(args.timeout, stack, &tally.answered) => Some(Early::Stalled),
        signal = signals.next() => Some(Early::Signal(signal)),
        failure = json_stream::say_intervals(args.stream.intervals(), converses, || tally.interval()) => {
            Some(Early::Mute(failure))
        }
    };
    // Also of a connection that has failed: how far it came.
    if let Ok(info) = stream.info() {
        tally.learn(&info);
    }
    let far = tally.acknowledged.bytes();
    match early {
        None => {
            let _ = stream.set_linger(None);
            Ok(())
        }
        Some(Early::Trouble(trouble)) => Err(trouble.failure(peer, total, tally)),
        Some(Early::Mute(failure)) => Err(failure),
        Some(Early::Stalled) => Err(peer::stalled(peer, far, total, limit)),
        Some(Early::Signal(signal)) => {
            Err(signal.failure(&format!("stopped {}; the connection was reset", peer::after(far, total))))
        }
    }
}

/// Says once what may be wrong with the way to a peer that does not answer.
async fn doubt(args: &SendArgs, beyond: Option<&Beyond>, progress: &Progress) -> Infallible {
    tokio::time::sleep(beyond::DOUBT).await;
    if let Some(doubt) = beyond.and_then(Beyond::doubt) {
        tell(args, progress, &doubt);
    }
    std::future::pending().await
}

/// The first of the addresses that accepts; if none does, why the first one did not.
async fn connect(stack: &Stack, args: &SendArgs, targets: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let mut first_error = None;
    for &target in targets {
        match stack.connect(target).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let failure = peer::unreachable(&args.to, args.to.port, &error);
                first_error.get_or_insert(failure);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| Failure::new(Exit::Network, format!("{} has no address", args.to))))
}
