//! Writing on a thread of its own: what happens in a stack is copied into a bounded queue, and
//! never waits for the file.

pub(crate) mod meter;
pub(crate) mod queue;

use meter::Meter;
use queue::{Batch, Queue, QueueEntry};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Writes what the thread takes from the queue.
pub(crate) trait Sink: Send + 'static {
    /// What waits.
    type Record: QueueEntry + Send + 'static;
    /// What became of it.
    type Summary: Send + 'static;

    /// Writes a batch.
    fn write(&mut self, batch: &mut Batch<Self::Record>);

    /// Records in files, and those that came after these had been cut short.
    fn counts(&self) -> (u64, u64);

    /// Ends the files.
    fn finish(self) -> Self::Summary;
}

/// Writes until the queue is closed.
pub(crate) fn run<S: Sink>(mut sink: S, queue: &Queue<S::Record>) -> S::Summary {
    let mut batch = Batch::default();
    while queue.take(&mut batch) {
        sink.write(&mut batch);
        let (written, unwritten) = sink.counts();
        queue.meter().set(written, unwritten);
        queue.written(&mut batch);
    }
    sink.finish()
}

/// A queue and the thread that writes what comes through it.
#[derive(Debug)]
pub(crate) struct BackgroundWriter<R: QueueEntry, T> {
    queue: Arc<Queue<R>>,
    thread: Option<JoinHandle<T>>,
}

impl<R: QueueEntry + Send + 'static, T: Send + 'static> BackgroundWriter<R, T> {
    /// Starts the thread; at most `limit` bytes wait for it.
    pub(crate) fn start<S>(name: &str, limit: usize, sink: S) -> io::Result<Self>
    where
        S: Sink<Record = R, Summary = T>,
    {
        let queue = Arc::new(Queue::new(limit));
        let taken = queue.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(sink, &taken))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue<R>> {
        &self.queue
    }

    pub(crate) fn meter(&self) -> Meter {
        self.queue.meter().clone()
    }

    /// Writes what waits, and ends. An error if the thread has panicked.
    pub(crate) fn finish(mut self) -> io::Result<T> {
        self.join().ok_or_else(|| io::Error::other("the thread that writes has panicked"))
    }
}

impl<R: QueueEntry, T> BackgroundWriter<R, T> {
    fn join(&mut self) -> Option<T> {
        self.queue.close();
        self.thread.take()?.join().ok()
    }
}

impl<R: QueueEntry, T> Drop for BackgroundWriter<R, T> {
    fn drop(&mut self) {
        self.join();
    }
}
