//! `recv --keep`: many connections at once, until a signal.

use super::report::{Reporter, Totals, Transfer};
use super::target::Target;
use super::transfer::receive;
use crate::args::RecvArgs;
use crate::egress::EgressReport;
use crate::failure::{Exit, Failure};
use crate::peer;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::traffic::Stopwatch;
use ackline::runtime::{Stack, TcpListener, TcpStream};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

/// Serves until a signal; then what is under way may finish for `--grace`.
pub(super) async fn serve(
    args: &RecvArgs,
    target: &Target,
    stack: &Stack,
    listener: TcpListener,
    signals: &mut Signals,
    progress: &Progress,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let watch = Stopwatch::of_process();
    let (stop, stopped) = watch::channel(false);
    let mut ledger = Ledger { progress, reporter, totals: Totals::default() };
    let mut running = JoinSet::new();

    let mut gone = Ok(());
    loop {
        let room = running.len() < usize::from(args.max);
        tokio::select! {
            accepted = listener.accept(), if room => match accepted {
                Ok((stream, _)) => {
                    let part = progress.part();
                    running.spawn(one(stream, target.clone(), part, args.timeout, stopped.clone()));
                }
                Err(error) => {
                    gone = Err(Failure::system("accept connections", &error));
                    break;
                }
            },
            Some(ended) = running.join_next() => ledger.enter(ended)?,
            _ = signals.next() => break,
        }
    }
    drop(listener);

    if !running.is_empty() && reporter.speaks() {
        progress.say(&format!("finishing {} transfers; a second signal resets them", running.len()));
    }
    let mut patience = std::pin::pin!(async {
        tokio::select! {
            () = tokio::time::sleep(args.grace) => {}
            _ = signals.next() => {}
        }
    });
    let mut patient = true;
    while !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next() => ledger.enter(ended)?,
            () = &mut patience, if patient => {
                patient = false;
                // Received by every task that still runs.
                let _ = stop.send(true);
            }
        }
    }
    progress.clear();
    let outcome = gone.and(match ledger.totals.aborted {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Incomplete, "1 transfer was aborted")),
        n => Err(Failure::new(Exit::Incomplete, format!("{n} transfers were aborted"))),
    });
    let of_stack = Some(((&stack.stats()).into(), EgressReport::of(stack)));
    reporter.summary(progress, ledger.totals, (watch.elapsed(), watch.cpu()), of_stack, &outcome)?;
    outcome
}

/// Serves one connection; it ends early where `stopped` becomes true.
async fn one(
    mut stream: TcpStream,
    target: Target,
    progress: Progress,
    timeout: Option<Duration>,
    mut stopped: watch::Receiver<bool>,
) -> Transfer {
    let (peer, local) = (stream.peer_addr(), stream.local_addr());
    let watch = Stopwatch::of_process();
    let outcome = match target.open(Some(peer)) {
        Err(failure) => {
            stream.abort();
            Err(failure)
        }
        Ok(sink) => tokio::select! {
            outcome = receive(&mut stream, sink, &progress, timeout) => outcome,
            _ = stopped.wait_for(|stopped| *stopped) => {
                let so_far = peer::after(progress.bytes(), None);
                Err(Failure::new(Exit::Incomplete, format!("the connection with {peer} was reset {so_far}")))
            }
        },
    };
    let bytes = progress.bytes();
    Transfer {
        peer: Some(peer),
        local: Some(local),
        bytes,
        time: watch.elapsed(),
        cpu: None,
        timing: None,
        egress: None,
        outcome,
    }
}

/// Counts and reports transfers as they end.
struct Ledger<'a> {
    progress: &'a Progress,
    reporter: &'a Reporter,
    totals: Totals,
}

impl Ledger<'_> {
    fn enter(&mut self, ended: Result<Transfer, JoinError>) -> Result<(), Failure> {
        let transfer = match ended.map_err(JoinError::try_into_panic) {
            Ok(transfer) => transfer,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(cancelled)) => {
                return Err(Failure::new(Exit::Incomplete, format!("a transfer was lost: {cancelled}")));
            }
        };
        self.totals.count(&transfer);
        if let Err(failure) = &transfer.outcome {
            self.reporter.aborted(self.progress, failure);
        }
        self.reporter.transfer(self.progress, &transfer)
    }
}
