//! What answers questions beside a command's work: a thread with a runtime of its own.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

/// After an error of accepting, which is usually that the process has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

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
        let (give, given) = mpsc::channel::<Runtime>();
        let builder = thread::Builder::new().name(name.to_owned());
        let spawned = builder.spawn(move || {
            if let Ok(runtime) = given.recv() {
                runtime.block_on(work(stopped));
            }
        });
        match spawned {
            Ok(thread) => {
                // The thread waits for it.
                let _ = give.send(runtime);
                Ok(Self { stop: Some(stop), thread: Some(thread) })
            }
            Err(error) => {
                // Dropped by a task of another runtime, it would panic.
                runtime.shutdown_background();
                Err(error)
            }
        }
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

/// Accepts clients until `stopped`. Each is attended on a task of its own, `most` of them at once;
/// others are refused.
pub(crate) async fn serve<C, F>(
    most: usize,
    mut stopped: oneshot::Receiver<()>,
    accept: impl AsyncFn() -> io::Result<C>,
    attend: impl Fn(C) -> F,
    refuse: impl Fn(C),
) where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(most));
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            accepted = accept() => accepted,
        };
        match (accepted, places.clone().try_acquire_owned()) {
            (Ok(client), Ok(place)) => {
                let attended = attend(client);
                tokio::spawn(async move {
                    attended.await;
                    drop(place);
                });
            }
            (Ok(client), Err(_)) => refuse(client),
            (Err(_), _) => sleep(PAUSE).await,
        }
    }
}
