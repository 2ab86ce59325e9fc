//! `ackline demo`: real data to and from the kernel's TCP, each byte hashed at both ends.

mod ackline_side;
mod far_side;
mod network;
mod payload;
mod report;

use crate::args::DemoArgs;
use crate::args::capture::PcapLink;
use crate::failure::{Exit, Failure, plain};
use crate::network::tunnel;
use crate::report::egress::EgressReport;
use crate::report::policies::ConnPolicies;
use crate::settings::Settings;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::{Path, Stopwatch};
use crate::watchers::WatchPlan;
use ackline::Registry;
use ackline::core::{Instant, ListenOn};
use ackline::runtime::{Stack, timer};
use far_side::FarSide;
use network::Network;
use payload::{Digest, Payload};
use report::Outcome;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::oneshot;

/// The address of the stack that is shown, and the port on which it receives.
const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const NEAR_PORT: u16 = 5002;
/// The other end's.
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const FAR_PORT: u16 = 5001;

/// Bytes of each direction if the command line says nothing.
const DEFAULT_SIZE: u64 = 1 << 30;
/// Time without progress after which the demo gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for the last connection to close in good order.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Seeds of the two streams.
const UPLOAD_SEED: u64 = 0x75;
const DOWNLOAD_SEED: u64 = 0x64;

/// How much one direction sends: as many bytes, or for as long; whichever comes first.
#[derive(Clone, Copy, Debug)]
struct Amount {
    bytes: Option<u64>,
    time: Option<Duration>,
}

/// What a sender knows in the end.
#[derive(Clone, Debug)]
struct SentStream {
    bytes: u64,
    digest: Digest,
    /// When the first byte was about to be written.
    started: Instant,
    path: Path,
    /// If it is ackline's.
    policies: ConnPolicies,
}

/// What a receiver knows in the end.
#[derive(Clone, Debug)]
struct ReceivedStream {
    bytes: u64,
    digest: Digest,
    /// When the end of the stream had been read.
    finished: Instant,
    /// If it is ackline's.
    policies: ConnPolicies,
}

/// One direction, seen from both ends.
#[derive(Clone, Debug)]
struct Direction {
    sent: SentStream,
    received: ReceivedStream,
    /// CPU time of the thread with the near stack.
    cpu: Duration,
}

impl Direction {
    fn matches(&self) -> bool {
        self.sent.bytes == self.received.bytes && self.sent.digest == self.received.digest
    }

    fn time(&self) -> Duration {
        self.received.finished.since(self.sent.started).into()
    }
}

pub(crate) fn run(args: &DemoArgs, registry: &Registry) -> Result<(), Failure> {
    let settings = args.policies.resolve(registry)?;
    let amount = match (args.size, args.seconds) {
        (None, None) => Amount { bytes: Some(DEFAULT_SIZE), time: None },
        (bytes, time) => Amount { bytes, time },
    };
    // As the caller's user, and in the machine's network.
    let watch = args.watch.plan("demo", args.output.speaks())?;
    // While the process has one thread.
    let isolated = network::isolate(args.device);
    let runtime = tunnel::runtime()?;
    let outcome = runtime.block_on(async {
        let network = network::open(args, isolated)?;
        if !args.output.common.quiet && !args.output.common.json {
            let line = report::first_lines(&network.link, args.mtu);
            crate::output::print(&line)?;
        }
        exchange(args, amount, network, &settings, watch).await
    });
    match outcome {
        Ok(outcome) => {
            report::print(args, &settings.names, &outcome)?;
            outcome.verdict()
        }
        Err(failure) => {
            report::print_failure(args, &settings.names, &failure)?;
            Err(failure)
        }
    }
}

/// Both directions, one after the other.
async fn exchange(
    args: &DemoArgs,
    amount: Amount,
    network: Network,
    settings: &Settings,
    watch: WatchPlan,
) -> Result<Outcome, Failure> {
    let recording = watch.begin((network::INTERFACE, PcapLink::Raw), settings)?;
    let (link, stack, far) = network.start(amount, settings)?;
    let watchers = recording.watch(&stack, settings)?;
    let mut outcome = Outcome { link, upload: None, download: None, timing: None, egress: None, error: None };
    let FarSide { received, sent } = far;
    // Before the far end, which begins to send as soon as it has received everything, connects to
    // it.
    let listener = stack
        .listen(ListenOn::Address(SocketAddr::from((NEAR, NEAR_PORT))))
        .map_err(|error| Failure::system("listen", &error))?;

    let progress = Progress::new("upload  ", amount.bytes, args.output.common);
    let up = guarded("upload", &stack, &progress, upload(&stack, amount, received, &progress)).await;
    progress.clear();
    match up {
        Ok(direction) => outcome.upload = Some(direction),
        Err(failure) => {
            outcome.egress = Some(EgressReport::of(&stack));
            outcome.error = Some(failure);
            return Ok(outcome);
        }
    }
    let progress = Progress::new("download", amount.bytes, args.output.common);
    let down = guarded("download", &stack, &progress, async {
        let watch = Stopwatch::of_thread();
        let receive = async {
            let (stream, _) = listener.accept().await?;
            ackline_side::receive(stream, &progress).await
        };
        let (received, sent) = both(receive, sent).await?;
        Ok(Direction { sent, received, cpu: watch.cpu() })
    })
    .await;
    progress.clear();
    match down {
        Ok(direction) => outcome.download = Some(direction),
        Err(failure) => outcome.error = Some(failure),
    }
    drop(listener);
    outcome.timing = Some((&stack.stats()).into());
    stack.shutdown(CLOSE_WAIT).await;
    watchers.end();
    outcome.egress = Some(EgressReport::of(&stack));
    Ok(outcome)
}

async fn upload(
    stack: &Stack,
    amount: Amount,
    received: oneshot::Receiver<io::Result<ReceivedStream>>,
    progress: &Progress,
) -> io::Result<Direction> {
    let watch = Stopwatch::of_thread();
    let send = async {
        let stream = stack.connect((FAR, FAR_PORT)).await?;
        let started = timer::now();
        let payload = Payload::new(UPLOAD_SEED, amount, started);
        ackline_side::send(stream, payload, started, progress).await
    };
    let (sent, received) = both(send, received).await?;
    Ok(Direction { sent, received, cpu: watch.cpu() })
}

/// What both ends of a direction say. If the far end fails, that is the reason of what the near end
/// then meets.
async fn both<N, F>(
    near: impl Future<Output = io::Result<N>>,
    mut far: oneshot::Receiver<io::Result<F>>,
) -> io::Result<(N, F)> {
    let heard = |far: Result<io::Result<F>, _>| {
        far.map_err(|_: oneshot::error::RecvError| io::Error::other("the far end's thread has ended"))?
    };
    let mut near = std::pin::pin!(near);
    tokio::select! {
        biased;
        told = &mut far => {
            let far = heard(told)?;
            Ok((near.await?, far))
        }
        near = &mut near => match near {
            Ok(near) => Ok((near, heard(far.await)?)),
            Err(error) => Err(far.try_recv().ok().and_then(Result::err).unwrap_or(error)),
        }
    }
}

/// Ends a direction that makes no progress.
async fn guarded(
    name: &str,
    stack: &Stack,
    progress: &Progress,
    direction: impl Future<Output = io::Result<Direction>>,
) -> Result<Direction, Failure> {
    let nothing = Progress::silent();
    tokio::select! {
        done = direction => done.map_err(|error| {
            let so_far = crate::network::peer::after(progress.bytes(), None);
            Failure::new(Exit::Incomplete, format!("the {name} failed {so_far}: {}", plain(&error)))
        }),
        () = progress.stalled_sending(Some(PATIENCE), stack, &nothing) => {
            let so_far = crate::network::peer::after(progress.bytes(), None);
            let limit = PATIENCE.as_secs();
            Err(Failure::new(Exit::Incomplete, format!("the {name} made no progress for {limit} s {so_far}")))
        }
    }
}
