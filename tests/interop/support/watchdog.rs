//! Ends the process if a test hangs in a way that no asynchronous timeout can end.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Must be dropped before its time is over.
#[derive(Debug)]
pub(crate) struct Watchdog {
    _leash: Sender<()>,
}

impl Watchdog {
    pub(crate) fn start(name: &str, limit: Duration) -> Self {
        let (leash, watched) = channel();
        let name = name.to_owned();
        std::thread::spawn(move || {
            if watched.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} hangs: no end in {limit:?}");
                std::process::abort();
            }
        });
        Self { _leash: leash }
    }
}
