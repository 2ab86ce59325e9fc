//! What counters were when `nstat` last looked: a file of this user, beside the control sockets.

use crate::failure::Failure;
use crate::output;
use crate::watchers::control::place;
use crate::watchers::control::protocol::About;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const NAME: &str = "nstat.json";

/// The counters of one stack at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) stack: About,
    /// Microseconds since 1970.
    pub(super) at: u64,
    pub(super) counters: Vec<(String, u64)>,
}

impl Sample {
    pub(super) const fn new(stack: About, at: u64, counters: Vec<(String, u64)>) -> Self {
        Self { stack, at, counters }
    }

    pub(super) fn value(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// The file, locked until this is dropped, and what it holds.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    /// `None` if it is not there and will not be written.
    file: Option<File>,
    samples: Vec<Sample>,
}

impl History {
    /// Reads the history of this user; `update`: it is going to be written.
    pub(super) fn open(update: bool) -> Result<Self, Failure> {
        let directory = place::directory();
        let path = directory.join(NAME);
        let refused = |error: io::Error| Failure::file("use", path.display(), &error);
        let mut history = Self { path: path.clone(), file: None, samples: Vec::new() };
        let usable = if update { place::prepare(&directory) } else { place::check(&directory) };
        match usable.and_then(|()| open(&path, update)) {
            Ok(mut file) => {
                history.samples = read(&path, &mut file).map_err(refused)?;
                history.file = Some(file);
                Ok(history)
            }
            Err(error) if !update && error.kind() == io::ErrorKind::NotFound => Ok(history),
            Err(error) => Err(refused(error)),
        }
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Writes what the stacks count now. Of other stacks, the last sample stays as long as their
    /// process lives, unless `reset`.
    pub(super) fn replace(mut self, now: Vec<Sample>, reset: bool) -> Result<(), Failure> {
        let Some(mut file) = self.file else { return Ok(()) };
        let asked = |sample: &Sample| now.iter().any(|new| new.stack == sample.stack);
        self.samples.retain(|sample| !reset && !asked(sample) && lives(sample.stack.pid));
        self.samples.extend(now);
        let text = output::json_line(&self.samples);
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| Failure::file("write", self.path.display(), &error))
    }
}

/// Waits for whoever else has it.
fn open(path: &Path, update: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(update).create(update).truncate(false).mode(0o600).open(path)?;
    if update { file.lock() } else { file.lock_shared() }?;
    Ok(file)
}

fn read(path: &Path, file: &mut File) -> io::Result<Vec<Sample>> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice(&text).unwrap_or_else(|_| {
        output::say(&format!("nstat: the history in {} is not one: ignoring it", path.display()));
        Vec::new()
    }))
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}
