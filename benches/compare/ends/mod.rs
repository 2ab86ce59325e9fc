//! The two ends of a measurement, and what they count.
//!
//! Every end is one thread that runs its stack and its application, and never stops by itself: the
//! process ends when it has been looked at. gVisor's is a process instead, whose runtime has as
//! many threads as it likes. The measured end connects, so that it alone decides how; the other end
//! is the kernel's TCP, the same code for every contestant.

pub(crate) mod ackline;
pub(crate) mod bare;
pub(crate) mod gvisor;
pub(crate) mod kernel;
mod queues;
pub(crate) mod smoltcp;
pub(crate) mod uring;
pub(crate) mod watch;

use crate::results::Metric;
use ackline_tcp_core::Duration;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::task::JoinSet;

/// Bytes that an application makes or takes at once.
pub(crate) const CHUNK: usize = 256 << 10;

type Look = Box<dyn Fn(&Meter) + Send + Sync>;
type Extra = Box<dyn Fn() -> Vec<(Metric, f64)> + Send + Sync>;

/// What has come through so far.
#[derive(Default)]
pub(crate) struct Meter {
    /// Bytes received, round trips or connections.
    units: AtomicU64,
    /// Of round trips, in nanoseconds.
    times: Mutex<Vec<u32>>,
    /// Brings the rest up to date.
    look: OnceLock<Look>,
    /// What an end can say of itself beside.
    extra: OnceLock<Extra>,
}

impl Meter {
    pub(crate) fn add(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    pub(crate) fn total(&self) -> u64 {
        if let Some(look) = self.look.get() {
            look(self);
        }
        self.units.load(Ordering::Relaxed)
    }

    /// One more round trip.
    pub(crate) fn round_trip(&self, took: Duration) {
        self.add_times([took]);
        self.add(1);
    }

    /// Of round trips that are counted elsewhere.
    pub(crate) fn add_times(&self, took: impl IntoIterator<Item = Duration>) {
        let nanos = took.into_iter().map(|took| u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
        self.times.lock().unwrap_or_else(PoisonError::into_inner).extend(nanos);
    }

    pub(crate) fn forget_times(&self) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn take_times(&self) -> Vec<u32> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets an end count when somebody looks, and not before.
    pub(crate) fn on_look(&self, look: impl Fn(&Self) + Send + Sync + 'static) {
        // An end calls this once.
        let _ = self.look.set(Box::new(look));
    }

    /// Lets an end say more of itself when the measurement is over.
    pub(crate) fn on_end(&self, extra: impl Fn() -> Vec<(Metric, f64)> + Send + Sync + 'static) {
        // An end calls this once.
        let _ = self.extra.set(Box::new(extra));
    }

    pub(crate) fn extra(&self) -> Vec<(Metric, f64)> {
        self.extra.get().map_or_else(Vec::new, |extra| extra())
    }
}

/// A runtime that lives on the calling thread alone.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs futures on the calling thread until one ends.
pub(crate) fn all<F: Future<Output = io::Result<()>> + Send + 'static>(
    futures: impl IntoIterator<Item = F>,
) -> io::Result<()> {
    runtime()?.block_on(first(futures))
}

/// Runs futures as tasks of this runtime until one ends.
pub(crate) async fn first<F: Future<Output = io::Result<()>> + Send + 'static>(
    futures: impl IntoIterator<Item = F>,
) -> io::Result<()> {
    let mut tasks: JoinSet<_> = futures.into_iter().collect();
    tasks.join_next().await.unwrap_or(Ok(Ok(())))?
}

/// What was read; there must be something.
pub(crate) fn some(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

/// What was read; there must be nothing more.
pub(crate) fn end(read: usize) -> io::Result<()> {
    if read == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}
