//! What answers questions beside a command's work: a thread with a runtime of its own.

use std::io;
use std::thread::{self, JoinHandle};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A thread that runs until this is dropped.
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `work` on `runtime`. It ends soon after what it is given resolves.
    pub(crate) fn start<F: Future<Output = ()>>(
        name: &str,
        runtime: Runtime,
        work: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let builder = thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(move || runtime.block_on(work(stopped)))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If it has panicked, its message is on standard error.
            let _ = thread.join();
        }
    }
}
