//! Asking the stacks of this user.

use super::place;
use super::protocol::{About, Publishes, Request};
use crate::args::control::StackChoice;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::watchers::summary::Summary;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A stack that does not answer for this long is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest line of an answer; the longest that a stack sends, with every counter, has some ten
/// thousand bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// One line of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Stack(About),
    Listener(Listener),
    Connection(Value),
    Brief(Row),
    Summary(Box<Summary>),
    Counters(Vec<(String, u64)>),
    Published(Publishes),
    Done(usize),
    Error(String),
}

/// A listener of a stack.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
pub(crate) struct Listener {
    pub(crate) local: SocketAddr,
    pub(crate) queued: usize,
}

/// A connection in short; times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) cc: String,
    pub(crate) rtt: Option<u64>,
    pub(crate) snd_cwnd: u64,
    pub(crate) unacked: u32,
    pub(crate) notsent_bytes: u32,
    pub(crate) unread_bytes: u32,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) total_retrans: u64,
    pub(crate) blocked: String,
}

/// What one stack answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) stack: About,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) connections: Vec<Value>,
    pub(crate) rows: Vec<Row>,
    pub(crate) summary: Option<Summary>,
    pub(crate) counters: Vec<(String, u64)>,
    pub(crate) published: Vec<Publishes>,
    /// How many were shown or changed.
    pub(crate) done: usize,
}

/// Asks the stacks that `choice` means: one, or every stack of this user.
pub(crate) fn ask(choice: &StackChoice, request: &Request) -> Result<Vec<Reply>, Failure> {
    let given = choice.control.is_some();
    let mut replies = Vec::new();
    for path in paths(choice)? {
        match exchange(&path, request, choice.max_answer) {
            Ok(Ok(reply)) => replies.push(reply),
            Ok(Err(why)) => return Err(Failure::usage(why)),
            // It has ended since it was found.
            Err(error) if !given && ended(&error) => {}
            Err(error) => return Err(unanswered(&path, &error)),
        }
    }
    Ok(replies)
}

/// Asks the stacks that are there now, all at once, and returns why others did not answer.
pub(crate) fn ask_those_there(choice: &StackChoice, request: &Request) -> (Vec<Reply>, Vec<Failure>) {
    let paths = match paths(choice) {
        Ok(paths) => paths,
        Err(failure) => return (Vec::new(), vec![failure]),
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let ask = |path| exchange(path, request, choice.max_answer);
        let asking: Vec<_> = paths.iter().map(|path| scope.spawn(move || ask(path))).collect();
        asking.into_iter().filter_map(|asked| asked.join().ok()).collect()
    });
    let (mut replies, mut refusals) = (Vec::new(), Vec::new());
    for (path, answer) in paths.iter().zip(answers) {
        match answer {
            Ok(Ok(reply)) => replies.push(reply),
            Ok(Err(why)) => refusals.push(Failure::usage(why)),
            Err(error) if choice.control.is_none() && ended(&error) => {}
            Err(error) => refusals.push(unanswered(path, &error)),
        }
    }
    (replies, refusals)
}

/// The sockets of these stacks.
fn paths(choice: &StackChoice) -> Result<Vec<PathBuf>, Failure> {
    match &choice.control {
        Some(path) => Ok(vec![path.clone()]),
        None => find(choice.pid),
    }
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

fn unanswered(path: &Path, error: &io::Error) -> Failure {
    Failure::file("ask the stack at", path.display(), error)
}

fn ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// One request and its answer of at most `most` bytes: a reply, or why the stack refused.
fn exchange(path: &Path, request: &Request, most: u64) -> io::Result<Result<Reply, String>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // If it refuses at once, that is its answer.
    let sent = stream.write_all(output::json_line(request).as_bytes());
    let (mut about, mut summary) = (None, None);
    let (mut listeners, mut connections, mut rows, mut counters, mut published) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut lines = Lines { from: BufReader::new(stream), line: Vec::new(), left: most };
    while let Some(line) = lines.next()? {
        match serde_json::from_slice(line)? {
            Line::Stack(stack) => about = Some(stack),
            Line::Listener(listener) => listeners.push(listener),
            Line::Connection(connection) => connections.push(connection),
            Line::Brief(row) => rows.push(row),
            Line::Summary(whole) => summary = Some(*whole),
            Line::Counters(all) => counters = all,
            Line::Published(publishes) => published.push(publishes),
            Line::Done(done) => {
                let stack = about.ok_or(io::ErrorKind::InvalidData)?;
                return Ok(Ok(Reply {
                    stack,
                    listeners,
                    connections,
                    rows,
                    summary,
                    counters,
                    published,
                    done,
                }));
            }
            Line::Error(why) => return Ok(Err(why)),
        }
    }
    sent?;
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// The lines of an answer. Whoever answers may not be what the user takes it for.
struct Lines<R> {
    from: R,
    line: Vec<u8>,
    /// Bytes that the rest of the answer may have.
    left: u64,
}

impl<R: BufRead> Lines<R> {
    /// The next line, with its end; `None` behind the last.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let most = self.left.min(LONGEST_LINE);
        // One byte more tells a line of just this length from a longer one.
        let read = self.from.by_ref().take(most + 1).read_until(b'\n', &mut self.line)? as u64;
        if read > most {
            let why = if most == LONGEST_LINE {
                "a line of its answer is longer than 1 MiB"
            } else {
                "its answer is longer than --max-answer"
            };
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.left -= read;
        Ok((read > 0).then_some(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_no_more_memory_than_allowed() {
        let read = |text: &[u8], left| {
            let mut lines = Lines { from: text, line: Vec::new(), left };
            let mut read = Vec::new();
            loop {
                match lines.next() {
                    Ok(Some(line)) => read.push(line.to_vec()),
                    Ok(None) => break Ok(read),
                    Err(error) => break Err((read.len(), error.to_string())),
                }
            }
        };
        assert_eq!(read(b"1\n22\n", 5), Ok(vec![b"1\n".to_vec(), b"22\n".to_vec()]));
        assert_eq!(read(b"1\n22\n", 4), Err((1, "its answer is longer than --max-answer".to_owned())));
        let endless = vec![b'x'; 2 << 20];
        assert_eq!(
            read(&endless, u64::MAX / 2),
            Err((0, "a line of its answer is longer than 1 MiB".to_owned()))
        );
    }
}
