//! The log of `--decisions`: one line of JSON per decision, written by a separate thread.

use crate::failure::Failure;
use crate::output;
use ackline_proxy::{Decision, Log};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// Lines that may wait for a slow file. Others are lost, and counted.
const WAITING: usize = 4_096;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970-01-01T00:00:00Z.
    time: f64,
    #[serde(flatten)]
    decision: &'a Decision,
}

/// The log, and the thread that writes it.
pub(super) struct DecisionLog {
    /// `None` is the end.
    lines: SyncSender<Option<String>>,
    has_failed: Arc<AtomicBool>,
    writer: JoinHandle<()>,
}

impl DecisionLog {
    /// Begins to write to the end of `file`.
    pub(super) fn start(file: File, path: &Path) -> Result<Self, Failure> {
        let (lines, waiting) = sync_channel(WAITING);
        let has_failed = Arc::new(AtomicBool::new(false));
        let (failed, shown) = (has_failed.clone(), path.display().to_string());
        let writer = std::thread::Builder::new().name("decisions".to_owned());
        let writer = writer
            .spawn(move || write(file, &waiting, &failed, &shown))
            .map_err(|error| Failure::system("start a thread", &error))?;
        Ok(Self { lines, has_failed, writer })
    }

    /// What the proxy calls.
    pub(super) fn log(&self) -> Log {
        let (lines, has_failed) = (self.lines.clone(), self.has_failed.clone());
        Arc::new(move |decision| {
            let time = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
            let line = serde_json::to_string(&Line { time, decision });
            !has_failed.load(Ordering::Relaxed) && line.is_ok_and(|line| lines.try_send(Some(line)).is_ok())
        })
    }

    /// Waits until all is written.
    pub(super) fn finish(self) {
        // Both fail only if the thread has ended already.
        let _ = self.lines.send(None);
        let _ = self.writer.join();
    }
}

/// The file, made if there is none.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    file.map_err(|error| Failure::file("write", format_args!("--decisions {}", path.display()), &error))
}

fn write(mut file: File, waiting: &Receiver<Option<String>>, failed: &AtomicBool, path: &str) {
    while let Ok(Some(mut line)) = waiting.recv() {
        line.push('\n');
        if failed.load(Ordering::Relaxed) {
            continue;
        }
        if let Err(error) = file.write_all(line.as_bytes()) {
            failed.store(true, Ordering::Relaxed);
            output::say(&format!(
                "ackline proxy: cannot write --decisions {path}: {error}; further ones are lost"
            ));
        }
    }
}
