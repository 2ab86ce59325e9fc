//! The measured end as a server: clients of the kernel's connect, ask for a byte, and read until
//! the server has closed.

use crate::board::Board;
use crate::case::{CLIENTS, Who};
use crate::ground::{self, HERE, Outcome, PORT};
use crate::measure::{self, Here, LOOK};
use crate::memory::{self, MEGABYTE};
use crate::program::{self, Stream};
use crate::results::{Metric, Sample};
use crate::usage::{Runs, Usage};
use ackline::core::ListenOn;
use ackline_runtime::timer;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The threads go on when this returns: the process is to end.
pub(crate) fn run(who: Who, length: Duration) -> Outcome<Sample> {
    measure::prepare()?;
    let peer = ground::namespace()?;
    let here = Here::new(who, &peer)?;
    let (report, ended) = mpsc::channel();
    // Both here, while all threads have the same descriptors: runtimes share some.
    let (clients_runtime, runtime) = (program::runtime()?, program::runtime()?);
    let board = Arc::new(Board::new(CLIENTS));
    let resident = memory::resident()?;

    measure::spawn("here", &report, move || {
        here.run(
            &runtime,
            measure::accept_in_kernel(|stream| spawn(stream, &Handle::current())),
            async |stack| {
                let listener = stack.listen(ListenOn::Port(PORT))?;
                loop {
                    let (stream, _) = listener.accept().await?;
                    let home = stream.runtime().clone();
                    spawn(stream, &home);
                }
            },
        )
    })?;
    let (begins, begun) = mpsc::channel();
    measure::spawn("clients", &report, {
        let board = board.clone();
        move || {
            peer.enter().map_err(io::Error::other)?;
            // Whoever waits for it is there, or the process ends.
            let _ = begins.send(rustix::thread::gettid().as_raw_nonzero().get());
            clients_runtime.block_on(ask(board))
        }
    })?;
    // If it has failed, the report says why.
    let clients_thread = begun.recv().ok();

    measure::warm_up(&ended, || board.total() > 0, "nobody is served")?;
    let usage = || clients_thread.map(|clients| Usage::read(Runs::Threads, clients)).transpose();
    let before = usage()?;
    let start = timer::now();
    board.start(start);
    measure::pause(&ended, length)?;
    let (elapsed, served) = (timer::now().since(start).as_secs_f64(), board.total() as f64);

    let mut sample = Sample::default();
    sample.set(Metric::PerSecond, served / elapsed);
    if let (Some(before), Some(after)) = (before, usage()?) {
        sample.set(Metric::MicrosEach, after.since(before).here * 1e6 / served);
    }
    measure::set_times(&mut sample, &board.times());
    sample.set(Metric::Resident, memory::most_resident()?.saturating_sub(resident) as f64 / MEGABYTE);
    Ok(sample)
}

/// Serves a client in a task of its own. A client that is gone is no error of the server's.
fn spawn(mut stream: impl Stream, home: &Handle) {
    home.spawn(async move {
        let _ = async {
            let byte = stream.read_u8().await?;
            stream.write_all(&[byte]).await?;
            stream.shutdown().await
        }
        .await;
    });
}

/// Each client asks again as soon as it was served.
async fn ask(board: Arc<Board>) -> io::Result<()> {
    // Until somebody listens.
    while TcpStream::connect((HERE, PORT)).await.is_err() {
        tokio::time::sleep(LOOK).await;
    }
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let board = board.clone();
        clients.spawn(async move {
            loop {
                let began = timer::now();
                let mut stream = TcpStream::connect((HERE, PORT)).await?;
                stream.write_all(&[7]).await?;
                let mut answer = Vec::with_capacity(1);
                stream.read_to_end(&mut answer).await?;
                if answer != [7] {
                    return Err(io::Error::other(format!("{answer:?} came instead of the byte")));
                }
                board.round_trip(timer::now().since(began));
                board.add(client, 1);
            }
        });
    }
    clients.join_next().await.unwrap_or(Ok(Ok(())))?
}
