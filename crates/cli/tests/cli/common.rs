//! Running the `ackline` binary and looking at what it said.

use ackline::runtime::testing::skip;
use rustix::process::{Pid, Signal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Longest time that any command of these tests may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Exit {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The one line that a failure prints.
    pub(crate) fn complaint(&self) -> &str {
        let lines: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("ackline: ")).collect();
        let [line] = lines[..] else { panic!("one line that begins with \"ackline: \": {self:?}") };
        line
    }
}

impl From<Output> for Exit {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// `ackline` with arguments, its three streams as pipes.
pub(crate) fn ackline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackline"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What the machine's user has cached decides nothing here.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs a command to its end.
pub(crate) fn run(args: &[&str]) -> Exit {
    BackgroundCommand::start(&mut ackline(args)).end()
}

/// Runs a shell's script in a mount namespace that it may change; `$program` is `ackline`. The script
/// ends with 99 if it cannot. `None`, after a line about it, if the test has no rights for that.
pub(crate) fn with_own_mounts(
    test: &str,
    script: &str,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Option<Exit> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).args(args);
    command.env("program", env!("CARGO_BIN_EXE_ackline")).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = BackgroundCommand::try_start(&mut command).map(BackgroundCommand::end);
    // 1 is that of unshare, 127 that of a missing program.
    let ended = ended.filter(|ended| ended.status.is_some_and(|status| ![1, 99, 127].contains(&status)));
    if ended.is_none() {
        skip(test, &"no rights for a mount");
    }
    ended
}

/// A command that runs; it is killed if the test forgets it or fails.
pub(crate) struct BackgroundCommand {
    child: Option<Child>,
}

impl BackgroundCommand {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::try_start(command).expect("the program starts")
    }

    pub(crate) fn try_start(command: &mut Command) -> Option<Self> {
        command.spawn().ok().map(|child| Self { child: Some(child) })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("there until the end")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.child.as_ref().expect("there until the end").id(), signal);
    }

    /// Lengths in bytes of the files in `directory` that it has open, with a name or without one.
    pub(crate) fn open_files(&self, directory: &Path) -> Vec<u64> {
        let id = self.child.as_ref().expect("there until the end").id();
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).expect("it runs");
        let length = |entry: std::fs::DirEntry| {
            let path = std::fs::read_link(entry.path()).ok()?;
            let inside = path.starts_with(directory) && path != directory;
            inside.then(|| entry.path().metadata()).and_then(Result::ok).map(|file| file.len())
        };
        open.filter_map(|entry| length(entry.ok()?)).collect()
    }

    /// The length of a file in `directory` that it has open and has written to, if there is one.
    pub(crate) fn written(&self, directory: &Path) -> Option<u64> {
        self.open_files(directory).into_iter().find(|&length| length > 0)
    }

    /// Does something while its output is read, which would otherwise stop it.
    pub(crate) fn end_while(self, act: impl FnOnce()) -> Exit {
        std::thread::scope(|scope| {
            let end = scope.spawn(|| self.end());
            act();
            end.join().expect("no panic")
        })
    }

    /// Does something while its output is read, and then asks it to end.
    pub(crate) fn end_while_signalled(self, act: impl FnOnce()) -> Exit {
        let id = self.child.as_ref().expect("there until the end").id();
        self.end_while(|| {
            act();
            send_signal(id, Signal::TERM);
        })
    }

    /// Waits for it; kills it if it takes too long.
    pub(crate) fn end(mut self) -> Exit {
        let mut child = self.child.take().expect("there until the end");
        drop(child.stdin.take());
        let (done, waiting) = std::sync::mpsc::channel::<()>();
        let id = child.id();
        let watchdog = std::thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                send_signal(id, Signal::KILL);
            }
        });
        let output = child.wait_with_output().expect("the child is ours");
        drop(done);
        watchdog.join().expect("no panic");
        output.into()
    }
}

impl Drop for BackgroundCommand {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Fails if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a signal to a child that has not been waited for.
fn send_signal(id: u32, signal: Signal) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
    // Fails if it has just ended.
    let _ = rustix::process::kill_process(id, signal);
}

/// What a successful `ackline` printed.
pub(crate) fn said(args: &[&str]) -> String {
    let ended = run(args);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    String::from_utf8(ended.stdout).expect("UTF-8")
}

/// Tries until `attempt` gives something.
#[expect(clippy::disallowed_methods, reason = "a test that waits for another process needs the clock")]
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes that repeat only after a long time.
pub(crate) fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(count).collect()
}

/// The names in a directory, in order; hidden ones, too.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the temporary directory's name is UTF-8")
}

/// A directory and a path in it.
pub(crate) fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(name);
    (directory, path)
}
