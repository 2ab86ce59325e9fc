//! `recv --keep`: many connections at once, until a signal.
//!
//! A connection on which nothing arrives is given up after `--timeout`. With `--max` of them under
//! way and others waiting, the one that has been silent longest makes room after a tenth of that,
//! so that connections which only stand there lock nobody out.

use super::report::{Reporter, Totals, Transfer};
use super::target::Target;
use super::transfer::receive;
use crate::args::RecvArgs;
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::report::egress::EgressReport;
use crate::report::policies::ConnPolicies;
use crate::signals::Signals;
use crate::transfer::progress::Progress;
use crate::transfer::traffic::Stopwatch;
use ackline::runtime::{Stack, TcpListener, TcpStream};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};

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
    let mut guests = Guests::default();
    let timeout = args.timeout();
    let crowded = timeout.map(|limit| limit / 10);

    let mut gone = Ok(());
    // Came when there was no room.
    let mut waiting: Option<TcpStream> = None;
    loop {
        let full = running.len() >= usize::from(args.max);
        let there_is_room = |_: &mut _| !full || crowded.is_some_and(|limit| guests.make_room(limit));
        if let Some(stream) = waiting.take_if(there_is_room) {
            let part = Arc::new(progress.part());
            let (dismiss, dismissed) = oneshot::channel();
            let ends = Ends { timeout, dismissed, stopped: stopped.clone() };
            // Beside the connection's driver.
            let beside = stream.runtime().clone();
            let task = running.spawn_on(one(stream, target.clone(), part.clone(), ends), &beside);
            guests.0.insert(task.id(), Guest { progress: part, dismiss });
        }
        tokio::select! {
            accepted = listener.accept(), if waiting.is_none() => match accepted {
                Ok((stream, _)) => waiting = Some(stream),
                Err(error) => {
                    gone = Err(Failure::system("accept connections", &error));
                    break;
                }
            },
            Some(ended) = running.join_next_with_id() => ledger.enter(guests.leave(ended))?,
            () = tokio::time::sleep(crowded.unwrap_or_default() / 4), if waiting.is_some() && crowded.is_some() => {}
            _ = signals.next() => break,
        }
    }
    if let Some(stream) = waiting {
        stream.abort();
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
            Some(ended) = running.join_next_with_id() => ledger.enter(guests.leave(ended))?,
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

/// The connections that are under way.
#[derive(Default)]
struct Guests(HashMap<Id, Guest>);

struct Guest {
    progress: Arc<Progress>,
    /// Ends the connection.
    dismiss: oneshot::Sender<()>,
}

impl Guests {
    /// Dismisses one that has been silent for at least `limit`: first those that have never sent a
    /// byte, and among them the one that has been silent longest. False if there is none.
    fn make_room(&mut self, limit: Duration) -> bool {
        let silent = self.0.iter().map(|(id, guest)| (guest.progress.silent_for(), &guest.progress, *id));
        let leaver = silent
            .filter(|(silence, ..)| *silence >= limit)
            .max_by_key(|(silence, progress, _)| (progress.bytes() == 0, *silence))
            .map(|(.., id)| id);
        let Some(guest) = leaver.and_then(|id| self.0.remove(&id)) else { return false };
        // Fails if it has just ended.
        let _ = guest.dismiss.send(());
        true
    }

    /// Forgets one that has ended.
    fn leave<T>(&mut self, ended: Result<(Id, T), JoinError>) -> Result<T, JoinError> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        self.0.remove(&id);
        ended.map(|(_, outcome)| outcome)
    }
}

/// What ends a connection before its sender does.
struct Ends {
    /// Time without progress.
    timeout: Option<Duration>,
    /// Others wait.
    dismissed: oneshot::Receiver<()>,
    /// True when the service ends.
    stopped: watch::Receiver<bool>,
}

/// Serves one connection.
async fn one(mut stream: TcpStream, target: Target, progress: Arc<Progress>, ends: Ends) -> Transfer {
    let (local, peer) = stream.addresses();
    let watch = Stopwatch::of_process();
    let Ends { timeout, dismissed, mut stopped } = ends;
    let mut given_up = false;
    // Whatever ends it before all is there resets it.
    let _ = stream.set_zero_linger();
    let outcome = match target.open(Some(peer)) {
        Err(failure) => {
            stream.abort();
            Err(failure)
        }
        Ok(sink) => tokio::select! {
            outcome = receive(&mut stream, sink, &progress, None) => outcome,
            () = progress.stalled(timeout) => {
                given_up = true;
                Err(peer::stalled(peer, progress.bytes(), None, timeout.unwrap_or_default()))
            }
            Ok(()) = dismissed => {
                given_up = true;
                let silence = progress.silent_for().as_secs_f64();
                let so_far = peer::after(progress.bytes(), None);
                let what = format!("{peer} was silent for {silence:.1} s {so_far} while others waited");
                Err(Failure::new(Exit::Network, what))
            }
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
        policies: ConnPolicies::of(&stream),
        cpu: None,
        timing: None,
        egress: None,
        silent: given_up && bytes == 0,
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
