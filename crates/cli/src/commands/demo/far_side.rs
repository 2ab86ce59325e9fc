//! The far end of the demo: first it receives, then it sends, on a thread of its own.

use super::payload::{Checker, Payload};
use super::{Amount, FAR, FAR_PORT, NEAR, NEAR_PORT, ReceivedStream, SentStream, ackline_side};
use crate::failure::{Failure, plain};
use crate::network::tunnel;
use crate::report::policies::ConnPolicies;
use crate::settings::Settings;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::{Path, PathSampler};
use ackline::core::ListenOn;
use ackline::runtime::device::channel::Channel;
use ackline::runtime::kernel::KernelTcpInfo;
use ackline::runtime::{Stack, timer};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Bytes that one read of a kernel socket asks for.
const READ: usize = 128 << 10;

/// What the far end will say.
pub(super) struct FarSide {
    pub(super) received: oneshot::Receiver<io::Result<ReceivedStream>>,
    pub(super) sent: oneshot::Receiver<io::Result<SentStream>>,
}

/// Where the far end says it.
struct Answers {
    received: oneshot::Sender<io::Result<ReceivedStream>>,
    sent: oneshot::Sender<io::Result<SentStream>>,
}

fn answers() -> (Answers, FarSide) {
    let (received, received_there) = oneshot::channel();
    let (sent, sent_there) = oneshot::channel();
    (Answers { received, sent }, FarSide { received: received_there, sent: sent_there })
}

/// Kernel sockets in the calling thread's network namespace. They are ready when this returns.
pub(super) fn kernel(seed: u64, amount: Amount) -> Result<FarSide, Failure> {
    let listener = TcpListener::bind((FAR, FAR_PORT))
        .map_err(|error| Failure::system("listen with a kernel socket", &error))?;
    let (answers, far) = answers();
    spawn("kernel-socket", move || {
        // Nobody listens any more if the near end has failed: then the process ends.
        let _ = answers.received.send(kernel_receives(&listener));
        let _ = answers.sent.send(kernel_sends(seed, amount));
    })?;
    Ok(far)
}

/// Another ackline stack, on the other end of a device in memory.
pub(super) fn stack(
    device: Channel,
    seed: u64,
    amount: Amount,
    settings: &Settings,
) -> Result<FarSide, Failure> {
    // What is chosen and shaped is what leaves the near stack.
    let mut settings = settings.clone();
    settings.scheduler = settings.registry().scheduler();
    let (answers, far) = answers();
    let (ready, wait) = std::sync::mpsc::channel();
    spawn("far-stack", move || {
        let runtime = match tunnel::runtime() {
            Ok(runtime) => runtime,
            Err(failure) => return drop(ready.send(Err(failure))),
        };
        runtime.block_on(async {
            let started = tunnel::start(device, &[FAR.into()], &settings, |_| {}).and_then(|stack| {
                let on = ListenOn::Address(SocketAddr::from((FAR, FAR_PORT)));
                let listener = stack.listen(on).map_err(|error| Failure::system("listen", &error))?;
                Ok((stack, listener))
            });
            let (stack, listener) = match started {
                Ok(started) => started,
                Err(failure) => return drop(ready.send(Err(failure))),
            };
            let _ = ready.send(Ok(()));
            let progress = Progress::silent();
            let received = async {
                let (stream, _) = listener.accept().await?;
                ackline_side::receive(stream, &progress).await
            };
            let _ = answers.received.send(received.await);
            let _ = answers.sent.send(stack_sends(&stack, seed, amount).await);
            stack.shutdown(super::CLOSE_WAIT).await;
        });
    })?;
    match wait.recv() {
        Ok(outcome) => outcome.map(|()| far),
        Err(gone) => Err(Failure::system("start the far stack", &io::Error::other(gone))),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| Failure::system("start a thread", &error))
}

async fn stack_sends(stack: &Stack, seed: u64, amount: Amount) -> io::Result<SentStream> {
    let stream = stack.connect((NEAR, NEAR_PORT)).await?;
    let started = timer::now();
    ackline_side::send(stream, Payload::new(seed, amount, started), started, &Progress::silent()).await
}

/// For `map_err`: says what was tried.
fn on(action: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("cannot {action}: {}", plain(&error)))
}

fn kernel_receives(listener: &TcpListener) -> io::Result<ReceivedStream> {
    let (mut stream, _) = listener.accept().map_err(on("accept with a kernel socket"))?;
    let mut buffer = vec![0; READ];
    let mut checker = Checker::new();
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            count => checker.update(&buffer[..count]),
        }
    }
    Ok(ReceivedStream {
        bytes: checker.bytes(),
        digest: checker.digest(),
        finished: timer::now(),
        policies: ConnPolicies::default(),
    })
}

fn kernel_sends(seed: u64, amount: Amount) -> io::Result<SentStream> {
    let mut stream = TcpStream::connect((NEAR, NEAR_PORT)).map_err(on("connect with a kernel socket"))?;
    let started = timer::now();
    let mut payload = Payload::new(seed, amount, started);
    let mut sampler = PathSampler::default();
    loop {
        let now = timer::now();
        if payload.is_finished(now) {
            break;
        }
        let count = stream.write(payload.upcoming())?;
        payload.advance(count);
        if sampler.is_due(now) {
            sample(&mut sampler, &stream)?;
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // The other end closes when it has everything.
    while stream.read(&mut [0; 64])? > 0 {}
    sample(&mut sampler, &stream)?;
    Ok(SentStream {
        bytes: payload.sent().bytes(),
        digest: payload.sent().digest(),
        started,
        path: sampler.path(),
        policies: ConnPolicies::default(),
    })
}

fn sample(sampler: &mut PathSampler, stream: &TcpStream) -> io::Result<()> {
    let info = KernelTcpInfo::of(stream)?;
    let known = Path {
        retransmits: info.total_retrans.into(),
        rtt_min: info.min_rtt,
        rtt_mean: None,
        cwnd: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
        pacing: None,
    };
    sampler.take(timer::now(), Some(info.rtt).filter(|rtt| !rtt.is_zero()), known);
    Ok(())
}
