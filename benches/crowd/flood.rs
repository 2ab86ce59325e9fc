//! Honest clients that connect while forged SYNs come.

use crate::case::Who;
use crate::forger::Forger;
use crate::ground::{self, HERE, Outcome, PORT};
use crate::measure::{self, Here, WARM_UP};
use crate::memory::{self, MEGABYTE};
use crate::program;
use crate::results::{Metric, Sample};
use ackline::core::{Duration, Instant, ListenOn};
use ackline_runtime::timer;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::net::TcpStream;

/// From one client to the next.
const EACH: std::time::Duration = std::time::Duration::from_millis(10);
/// A client that is not connected by then has failed.
const IN_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// What became of the clients.
#[derive(Debug, Default)]
struct Clients(Mutex<Vec<Client>>);

#[derive(Clone, Copy, Debug)]
struct Client {
    began: Instant,
    /// `None`: not connected in time.
    took: Option<Duration>,
}

impl Clients {
    fn add(&self, client: Client) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(client);
    }

    fn any_is_connected(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|client| client.took.is_some())
    }

    /// How many began in that time, and how long each of them took that was connected, the shortest
    /// first.
    fn between(&self, start: Instant, end: Instant) -> (usize, Vec<Duration>) {
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = || clients.iter().filter(|client| (start..end).contains(&client.began));
        let mut times: Vec<_> = clients().filter_map(|client| client.took).collect();
        times.sort_unstable();
        (clients().count(), times)
    }
}

/// The threads go on when this returns: the process is to end.
pub(crate) fn run(who: Who, length: std::time::Duration) -> Outcome<Sample> {
    measure::prepare()?;
    let peer = ground::namespace()?;
    let here = Here::new(who, &peer)?;
    let (report, ended) = mpsc::channel();
    // Both here, while all threads have the same descriptors: runtimes share some.
    let (clients_runtime, runtime) = (program::runtime()?, program::runtime()?);
    let clients = Arc::new(Clients::default());
    let forged = Arc::new(AtomicU64::new(0));

    measure::spawn("here", &report, move || {
        here.run(&runtime, measure::accept_in_kernel(drop), async |stack| {
            let listener = stack.listen(ListenOn::Port(PORT))?;
            loop {
                drop(listener.accept().await?);
            }
        })
    })?;
    let (flood, flooded) = mpsc::channel::<()>();
    let forger = peer.run(Forger::new)??;
    measure::spawn("forger", &report, {
        let forged = forged.clone();
        move || {
            // The process ends if nobody is there.
            flooded.recv().map_err(io::Error::other)?;
            forger.forge(&forged)
        }
    })?;
    measure::spawn("clients", &report, {
        let clients = clients.clone();
        move || {
            peer.enter().map_err(io::Error::other)?;
            clients_runtime.block_on(connect(clients))
        }
    })?;

    measure::warm_up(&ended, || clients.any_is_connected(), "nobody is connected")?;
    let resident = memory::resident()?;
    flood.send(())?;
    measure::pause(&ended, WARM_UP)?;
    let (start, before) = (timer::now(), forged.load(Ordering::Relaxed));
    measure::pause(&ended, length)?;
    let (end, after) = (timer::now(), forged.load(Ordering::Relaxed));
    // For those that began last.
    measure::pause(&ended, IN_TIME)?;

    let mut sample = Sample::default();
    let (began, times) = clients.between(start, end);
    sample.set(Metric::InTime, times.len() as f64 * 100.0 / began as f64);
    measure::set_times(&mut sample, &times);
    sample.set(Metric::Forged, (after - before) as f64 / 1e3 / end.since(start).as_secs_f64());
    sample.set(Metric::ResidentBefore, resident as f64 / MEGABYTE);
    sample.set(Metric::Resident, memory::most_resident()?.saturating_sub(resident) as f64 / MEGABYTE);
    sample.set(Metric::KernelMemory, memory::of_kernel()? as f64 / MEGABYTE);
    Ok(sample)
}

/// A client each time.
async fn connect(clients: Arc<Clients>) -> io::Result<()> {
    let mut next = tokio::time::interval(EACH);
    loop {
        next.tick().await;
        let clients = clients.clone();
        tokio::spawn(async move {
            let began = timer::now();
            let connect = TcpStream::connect((HERE, PORT));
            let connected = tokio::time::timeout(IN_TIME, connect).await.is_ok_and(|stream| stream.is_ok());
            clients.add(Client { began, took: connected.then(|| timer::now().since(began)) });
        });
    }
}
