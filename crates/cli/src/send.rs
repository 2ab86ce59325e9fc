//! `ackline send`: a file or standard input to a TCP receiver.

use crate::args::SendArgs;
use crate::egress::EgressReport;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::peer;
use crate::progress::Progress;
use crate::report::ErrorReport;
use crate::signals::Signals;
use crate::source::{Chunks, Source};
use crate::timing::Timing;
use crate::traffic::{Figures, PathFigures, PathSampler, Stopwatch};
use crate::tunnel;
use ackline::runtime::stream::{ReadHalf, WriteHalf};
use ackline::runtime::{Device as _, Stack, TcpStream, timer};
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Time for the receiver to close its side after it has acknowledged everything.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// The summary of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    command: &'static str,
    file: &'a str,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    offload: Option<bool>,
    #[serde(flatten)]
    figures: Figures,
    cpu_s: f64,
    #[serde(flatten)]
    path: PathFigures,
    timing: Option<Timing>,
    egress: Option<EgressReport>,
    error: Option<ErrorReport>,
}

/// What became known on the way, for the report of a failure as well as of a success.
struct Facts {
    /// From the end of the handshake, once there was one.
    watch: Stopwatch,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    offload: Option<bool>,
    path: PathSampler,
    timing: Option<Timing>,
    egress: Option<EgressReport>,
}

pub(crate) fn run(args: &SendArgs) -> Result<(), Failure> {
    let policies = args.policies.resolve()?;
    let tunnel = args.tunnel.plan(None)?;
    let source = Source::open(&args.file)?;
    let name = source.name().to_owned();
    let progress = Progress::new(&format!("sending {name}"), source.size(), args.output);
    let mut facts = Facts {
        watch: Stopwatch::of_process(),
        peer: None,
        local: None,
        offload: None,
        path: PathSampler::default(),
        timing: None,
        egress: None,
    };

    let runtime = tunnel::runtime()?;
    let outcome = tunnel.resolve(&args.to).and_then(|targets| {
        runtime.block_on(async {
            let mut signals = Signals::catch()?;
            let device = tunnel.open()?;
            facts.offload = Some(device.caps().max_super_packet > 0);
            let stack = tunnel.start(device, &policies, |_| {})?;
            let total = source.size();
            let outcome = tokio::select! {
                sent = transfer(&stack, args, &targets, source, &progress, &mut facts) => {
                    sent.map_err(|failure| args.tunnel.blame(&stack, failure))
                }
                never = tunnel.watch(&stack, |line| tell(args, &progress, line)) => match never {},
                signal = signals.next() => {
                    let how_far = peer::after(progress.bytes(), total);
                    Err(signal.failure(&format!("stopped {how_far}; the connection was reset")))
                }
            };
            facts.timing = Some((&stack.stats()).into());
            // A reset has left by the time that its stream is dropped; this is for what closes in good order.
            stack.shutdown(Duration::from_millis(500)).await;
            facts.egress = Some(EgressReport::of(&stack));
            outcome
        })
    });
    // A read from a terminal or pipe may be under way, and nobody needs its result.
    runtime.shutdown_background();
    progress.clear();

    let (bytes, time) = (progress.bytes(), facts.watch.elapsed());
    let path = facts.path.path();
    if args.output.json {
        let report = Report {
            ok: outcome.is_ok(),
            command: "send",
            file: &name,
            peer: facts.peer,
            local: facts.local,
            offload: facts.offload,
            figures: Figures::new(bytes, time),
            cpu_s: facts.watch.cpu().as_secs_f64(),
            path: path.into(),
            timing: facts.timing,
            egress: facts.egress,
            error: outcome.as_ref().err().map(ErrorReport::from),
        };
        output::print(&output::json(&report))
            .map_err(|error| Failure::file("write to", "standard output", &error))?;
    } else if outcome.is_ok() && !args.output.quiet {
        output::say(&format!(
            "sent {} in {}, {}; {} retransmissions, round trip {} (least {})",
            output::bytes(bytes),
            output::seconds(time),
            output::rate(bytes, time),
            path.retransmits,
            output::round_trip(path.rtt_mean),
            output::round_trip(path.rtt_min),
        ));
        let timing = facts.timing.iter().flat_map(Timing::lines);
        for line in timing.chain(facts.egress.iter().flat_map(EgressReport::lines)) {
            output::say(&line);
        }
    }
    outcome
}

/// Says something on the way.
fn tell(args: &SendArgs, progress: &Progress, line: &str) {
    if !args.output.quiet {
        progress.say(line);
    }
}

/// Connects and sends everything. Where this is dropped or fails, the receiver gets a reset: it must not take a
/// part for the whole.
async fn transfer(
    stack: &Stack,
    args: &SendArgs,
    targets: &[SocketAddr],
    source: Source,
    progress: &Progress,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let total = source.size();
    let mut stream = tokio::select! {
        connected = connect(stack, args, targets) => connected?,
        () = progress.stalled(args.timeout) => {
            let limit = args.timeout.unwrap_or_default().as_secs_f64();
            return Err(Failure::new(Exit::Network, format!("cannot reach {}: no answer for {limit} s", args.to)));
        }
    };
    let peer = stream.peer_addr();
    facts.watch = Stopwatch::of_process();
    facts.peer = Some(peer);
    facts.local = Some(stream.local_addr());
    stream.set_linger(Some(Duration::ZERO));
    tokio::select! {
        sent = send_all(&mut stream, source, progress, &mut facts.path) => sent?,
        () = progress.stalled_sending(args.timeout, stack) => {
            let limit = args.timeout.unwrap_or_default();
            return Err(peer::stalled(peer, progress.bytes(), total, limit));
        }
    }
    stream.set_linger(None);
    Ok(())
}

/// The first of the addresses that accepts; where none does, why the first one did not.
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

/// Sends everything, and waits until the receiver has it.
async fn send_all(
    stream: &mut TcpStream,
    source: Source,
    progress: &Progress,
    path: &mut PathSampler,
) -> Result<(), Failure> {
    let (peer, total) = (stream.peer_addr(), source.size());
    let cut_short = |error: io::Error| peer::cut_short(peer, progress.bytes(), total, &error);
    let (mut from_peer, mut to_peer) = stream.split();
    let send = async {
        let mut chunks = Chunks::of(source);
        while let Some(chunk) = chunks.next().await? {
            let mut rest = chunk;
            while !rest.is_empty() {
                let sent = to_peer.write(rest).await.map_err(cut_short)?;
                progress.add(sent as u64);
                rest = &rest[sent..];
                sample(path, &to_peer).map_err(cut_short)?;
            }
        }
        to_peer.shutdown().await.map_err(cut_short)?;
        to_peer.flushed().await.map_err(cut_short)?;
        sample(path, &to_peer).map_err(cut_short)
    };
    // What the receiver says is of no interest here, but where nobody reads it, it may stop listening, too.
    let mut closed = std::pin::pin!(discard(&mut from_peer));
    let mut receiver_has_closed = false;
    let mut send = std::pin::pin!(send);
    loop {
        tokio::select! {
            sent = &mut send => break sent?,
            () = &mut closed, if !receiver_has_closed => receiver_has_closed = true,
        }
    }
    if !receiver_has_closed {
        // A receiver that keeps its side open has all the data nevertheless.
        let _ = tokio::time::timeout(CLOSE_WAIT, closed).await;
    }
    Ok(())
}

/// Looks at the connection's path where it is time to.
fn sample(path: &mut PathSampler, stream: &WriteHalf<'_>) -> io::Result<()> {
    let now = timer::now();
    if path.is_due(now) {
        path.take_info(now, &stream.info()?);
    }
    Ok(())
}

/// Reads until the receiver closes its side; where the connection fails, the sender meets the error.
async fn discard(from_peer: &mut ReadHalf<'_>) {
    let mut buffer = [0; 4096];
    loop {
        match from_peer.read(&mut buffer).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(_) => return std::future::pending().await,
        }
    }
}
