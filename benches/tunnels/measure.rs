//! One measurement: servers, a terminator, and clients, each in the namespace where it belongs.

use crate::act;
use crate::board::Board;
use crate::case::{Case, Device};
use crate::descriptors;
use crate::net::Net;
use crate::results::{Metric, Sample};
use crate::rights::{self, Outcome};
use crate::service;
use crate::terminator::Terminator;
use rustix::process::Signal;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::time::timeout;

/// For a whole measurement, beside its length.
const PATIENCE: Duration = Duration::from_secs(180);

/// Makes and removes everything that a measurement needs.
pub(crate) fn check_rights() -> Outcome<()> {
    rights::gain_rights()?;
    Net::new(Device::Offload).map(drop)
}

/// The servers' thread goes on when this returns: the process is to end.
pub(crate) fn run(case: Case, length: Duration) -> Outcome<Sample> {
    // If the command is killed, its measurements are not to outlive it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    descriptors::allow();
    rights::gain_rights()?;
    let net = Net::new(case.who.device)?;
    // The terminator ends with the thread that has started it: this one.
    net.servers.enter()?;
    let mut terminator = Terminator::start(case.who, net.device)?;
    let board = Arc::new(Board::default());

    let (listens, listening) = mpsc::channel();
    std::thread::Builder::new().name("servers".to_owned()).spawn({
        let board = board.clone();
        move || {
            let outcome = runtime().and_then(|runtime| runtime.block_on(service::serve_all(board, &listens)));
            if let Err(error) = outcome {
                eprintln!("servers: {error}");
            }
        }
    })?;
    listening.recv().map_err(|_| "the servers do not listen")?;

    let mut sample = net.clients.run(|| {
        descriptors::own()?;
        runtime()?.block_on(async {
            let run = act::run(case.act, length, &terminator, &board);
            timeout(PATIENCE + length, run).await.map_err(|_| "it came to a standstill")?
        })
    })??;
    sample.set(Metric::Crashed, f64::from(u8::from(terminator.has_ended()?)));
    Ok(sample)
}

/// One that lives on the calling thread alone.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
