//! Files that get their names when they are complete.
//!
//! Until then a file stands under a temporary name that no other writer has, `NAME.PID-N.partial`:
//! processes that share a folder, and write the same results into it, do not meet before the
//! rename, and whichever comes last replaces equal bytes by equal ones. The writer holds a lock
//! (flock(2)) on the file, which ends with the process, so what a killed process left is known from
//! what is being written, and is deleted by the next one that uses the folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const ENDING: &str = ".partial";

/// A file under a temporary name. Dropping it without [`finish`](Self::finish) deletes it.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    /// A new file in the folder of `path`, from whose name its own is made.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with_mode(path, 0o666)
    }

    /// [`Self::create`] for a file that nobody but its owner can read: one that holds what others
    /// have said.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::create_with_mode(path, 0o600)
    }

    /// `mode` as open(2) takes it: less the process's umask.
    fn create_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        loop {
            let path = temporary_name(path);
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => {
                    let held = Self { file, path };
                    if held.lock() {
                        return Ok(held);
                    }
                }
                // Left by a process of the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// False if the file is being deleted: somebody who looked for leftovers came between opening
    /// and locking.
    fn lock(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => is_at(&self.file, &self.path),
            Err(TryLockError::WouldBlock) => false,
            // The file system has no locks; then nobody can take it for a leftover.
            Err(TryLockError::Error(_)) => true,
        }
    }

    /// The open file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Its temporary name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it the name `path`, in place of the file that may have it.
    ///
    /// # Errors
    /// If the file cannot be renamed; it is deleted then.
    pub fn finish(self, path: &Path) -> io::Result<()> {
        self.finish_with(|from| fs::rename(from, path))
    }

    /// Has `rename` give it its name.
    ///
    /// # Errors
    /// Those of `rename`; the file is deleted then.
    pub fn finish_with<T>(mut self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let named = rename(&self.path)?;
        self.path = PathBuf::new();
        Ok(named)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // If it cannot be deleted, its name still says what it is.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A name beside `path` that this process has not used.
#[must_use]
pub fn temporary_name(path: &Path) -> PathBuf {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{serial}{ENDING}", std::process::id()));
    name.into()
}

/// Deletes the files of `folder` that processes which ended early have left; `ours` says by the
/// name that they were to have which files are meant. Files that are being written stay.
pub fn delete_leftovers(folder: &Path, ours: impl Fn(&str) -> bool) {
    // What cannot be read or deleted stays: it harms nobody.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        // Opening anything else, a pipe for one, may wait for ever.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().and_then(intended_name).is_some_and(&ours) {
            delete_leftover(&entry.path());
        }
    }
}

fn delete_leftover(path: &Path) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) {
        let _ = fs::remove_file(path);
    }
}

/// The name that the file of this temporary name was to have.
fn intended_name(temporary: &str) -> Option<&str> {
    let (name, numbers) = temporary.strip_suffix(ENDING)?.rsplit_once('.')?;
    let (process, serial) = numbers.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(serial)).then_some(name)
}

/// True if `path` is still the name of `file`.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn leftovers_go_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let live = Unfinished::create(&folder.path().join("runs.jsonl")).unwrap();
        for name in ["runs.jsonl.1-0.partial", "mine.partial", "notes.1-x.partial", "other.1-0.partial"] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        delete_leftovers(folder.path(), |name| name != "other");
        let mut left = names(folder.path());
        left.sort();
        let own = live.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec!["mine.partial", "notes.1-x.partial", "other.1-0.partial", own.as_str()];
        expected.sort_unstable();
        assert_eq!(left, expected);
        live.finish(&folder.path().join("runs.jsonl")).unwrap();
        assert!(folder.path().join("runs.jsonl").exists());
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("runs.jsonl.1-0.partial");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (done, told) = channel();
        let path = folder.path().to_owned();
        std::thread::spawn(move || {
            delete_leftovers(&path, |_| true);
            let _ = done.send(());
        });
        told.recv_timeout(Duration::from_secs(30)).expect("it waits for a reader of the pipe");
        assert!(pipe.exists());
    }

    #[test]
    fn two_writers_of_one_name_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let (one, two) = (Unfinished::create(&path).unwrap(), Unfinished::create(&path).unwrap());
        one.finish(&path).unwrap();
        two.finish(&path).unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        drop(Unfinished::create(&path).unwrap());
        assert_eq!(names(folder.path()), ["a"]);
    }
}
