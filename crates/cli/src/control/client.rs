//! Asking the stacks of this user.

use super::place;
use super::protocol::{About, Request};
use crate::failure::{Exit, Failure};
use crate::output;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A stack that does not answer for this long is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// One line of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Stack(About),
    Listener(Listener),
    Connection(Value),
    Done(usize),
    Error(String),
}

/// A listener of a stack.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
pub(crate) struct Listener {
    pub(crate) local: SocketAddr,
    pub(crate) queued: usize,
}

/// What one stack answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) stack: About,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) connections: Vec<Value>,
    /// How many were shown or changed.
    pub(crate) done: usize,
}

/// Asks the stack at `control`, or else every stack of this user, or that of the process `pid`.
pub(crate) fn ask(
    control: Option<&Path>,
    pid: Option<u32>,
    request: &Request,
) -> Result<Vec<Reply>, Failure> {
    let (paths, given) = match control {
        Some(path) => (vec![path.to_owned()], true),
        None => (find(pid)?, false),
    };
    let mut replies = Vec::new();
    for path in paths {
        match exchange(&path, request) {
            Ok(Ok(reply)) => replies.push(reply),
            Ok(Err(why)) => return Err(Failure::usage(why)),
            // It has ended since it was found.
            Err(error) if !given && ended(&error) => {}
            Err(error) => return Err(Failure::file("ask the stack at", path.display(), &error)),
        }
    }
    Ok(replies)
}

fn find(pid: Option<u32>) -> Result<Vec<PathBuf>, Failure> {
    let directory = place::directory();
    let found = match place::sockets(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found.map_err(|error| Failure::file("read", directory.display(), &error))?,
    };
    let Some(pid) = pid else { return Ok(found) };
    let of = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split_once('-').and_then(|(number, _)| number.parse().ok()) == Some(pid)
    };
    let found: Vec<PathBuf> = found.into_iter().filter(of).collect();
    if found.is_empty() {
        let why =
            format!("--pid {pid}: no stack of this process has a control socket in {}", directory.display());
        return Err(Failure::new(Exit::Usage, why));
    }
    Ok(found)
}

fn ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// One request and its answer: a reply, or why the stack refused.
fn exchange(path: &Path, request: &Request) -> io::Result<Result<Reply, String>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // If it refuses at once, that is its answer.
    let sent = stream.write_all(output::json_line(request).as_bytes());
    let (mut about, mut listeners, mut connections) = (None, Vec::new(), Vec::new());
    for line in BufReader::new(stream).lines() {
        match serde_json::from_str(&line?)? {
            Line::Stack(stack) => about = Some(stack),
            Line::Listener(listener) => listeners.push(listener),
            Line::Connection(connection) => connections.push(connection),
            Line::Done(done) => {
                let stack = about.ok_or(io::ErrorKind::InvalidData)?;
                return Ok(Ok(Reply { stack, listeners, connections, done }));
            }
            Line::Error(why) => return Ok(Err(why)),
        }
    }
    sent?;
    Err(io::ErrorKind::UnexpectedEof.into())
}
