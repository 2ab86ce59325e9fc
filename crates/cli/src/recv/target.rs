//! Where received data goes, so that a part never looks like the whole.
//!
//! A regular file is written under a hidden temporary name in its own directory, and renamed when the sender
//! has finished. What is dropped before that is deleted. Pipes and devices are written directly.

use crate::failure::{Exit, Failure};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names that are tried for a file in a directory before giving up.
const MAX_NUMBER: u32 = 1_000_000;

/// What `--output` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    /// A regular file that exists or not; an existing one is replaced.
    File(PathBuf),
    /// Something that exists and is no regular file: a pipe, a device.
    Special(PathBuf),
    /// A directory that gets one file for each transfer.
    Directory(PathBuf),
}

impl Target {
    /// `keep`: several transfers, each with a file of its own.
    pub(crate) fn new(output: Option<&Path>, keep: bool) -> Result<Self, Failure> {
        let target = match output {
            None if keep => Self::Directory(PathBuf::from(".")),
            None => Self::Stdout,
            Some(path) if path == Path::new("-") => Self::Stdout,
            // Links are followed, so that the file that they lead to is replaced and not the link.
            Some(path) => match fs::canonicalize(path) {
                Ok(real) if real.is_dir() => Self::Directory(path.to_owned()),
                Ok(real) if real.is_file() => Self::File(real),
                Ok(real) => Self::Special(real),
                Err(error) if error.kind() == io::ErrorKind::NotFound && names_a_file(path) => {
                    Self::File(path.to_owned())
                }
                Err(error) => return Err(Failure::file("write", path.display(), &error)),
            },
        };
        match (&target, output) {
            (Self::Directory(_), _) => {}
            (_, Some(path)) if keep => {
                return Err(Failure::usage(format!(
                    "--keep writes one file for each connection: {} is not a directory",
                    path.display()
                )));
            }
            _ => {}
        }
        Ok(target)
    }

    /// Opens it for what `from` sends.
    pub(crate) fn open(&self, from: Option<SocketAddr>) -> Result<Sink, Failure> {
        match self {
            Self::Stdout => {
                let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
                let file = file.map_err(|error| Failure::file("write to", "standard output", &error))?;
                Ok(Sink::direct(file, "standard output".to_owned(), None))
            }
            Self::Special(path) => {
                let name = path.display().to_string();
                let file = OpenOptions::new().write(true).open(path);
                let file = file.map_err(|error| Failure::file("write", &name, &error))?;
                Ok(Sink::direct(file, name, Some(path.clone())))
            }
            Self::File(path) => Sink::temporary(Place::Exactly(path.clone())),
            Self::Directory(directory) => {
                let stem = from.map_or_else(|| "unknown".to_owned(), stem);
                Sink::temporary(Place::Numbered { directory: directory.clone(), stem })
            }
        }
    }
}

/// Whether a path can be a file's: it ends with a name, and not with a slash.
fn names_a_file(path: &Path) -> bool {
    path.file_name().is_some() && !path.as_os_str().as_bytes().ends_with(b"/")
}

/// A peer's address as the beginning of a file name.
fn stem(from: SocketAddr) -> String {
    format!("{}-{}", from.ip().to_string().replace(':', "_"), from.port())
}

/// Where a finished file goes.
#[derive(Debug)]
enum Place {
    Exactly(PathBuf),
    /// The first of `STEM-1.data`, `STEM-2.data`, ... that does not exist.
    Numbered {
        directory: PathBuf,
        stem: String,
    },
}

impl Place {
    fn directory(&self) -> &Path {
        match self {
            Self::Exactly(path) => match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            },
            Self::Numbered { directory, .. } => directory,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Exactly(path) => path.display().to_string(),
            Self::Numbered { directory, .. } => format!("a file in {}", directory.display()),
        }
    }
}

/// An open output. Dropping it without [`finish`](Self::finish) deletes what is temporary.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<File>,
    name: String,
    /// Of an output that is written directly.
    path: Option<PathBuf>,
    temporary: Option<Temporary>,
}

#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    place: Place,
}

impl Sink {
    fn direct(file: File, name: String, path: Option<PathBuf>) -> Self {
        Self { file: Arc::new(file), name, path, temporary: None }
    }

    fn temporary(place: Place) -> Result<Self, Failure> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let name = place.name();
        let refused = |error: &io::Error| Failure::file("write", &name, error);
        if let Place::Exactly(path) = &place
            && let Err(error) = OpenOptions::new().write(true).open(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // A rename would replace a file that may not be written.
            return Err(refused(&error));
        }
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let path = place.directory().join(format!(".ackline-{}-{serial}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    if let Place::Exactly(old) = &place
                        && let Ok(metadata) = fs::metadata(old)
                    {
                        // As an overwritten file would keep them. Where that is refused, the data matters more.
                        let _ = file.set_permissions(metadata.permissions());
                    }
                    let temporary = Some(Temporary { path, place });
                    return Ok(Self { file: Arc::new(file), name, path: None, temporary });
                }
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(refused(&error)),
            }
        }
    }

    /// The file, for writing on another thread.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// The failure to write to it.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(Exit::File, format!("cannot write to {}: the reader has gone", self.name));
        }
        Failure::file("write", &self.name, error)
    }

    /// The data is complete: gives the file its name, which is returned.
    pub(crate) fn finish(mut self) -> Result<Option<PathBuf>, Failure> {
        (&*self.file).flush().map_err(|error| self.failure(&error))?;
        let Some(temporary) = &self.temporary else { return Ok(self.path.clone()) };
        let named = match &temporary.place {
            Place::Exactly(path) => fs::rename(&temporary.path, path).map(|()| path.clone()),
            Place::Numbered { directory, stem } => rename_to_free(&temporary.path, directory, stem),
        };
        let path = named.map_err(|error| self.failure(&error))?;
        self.temporary = None;
        Ok(Some(path))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Where it cannot be deleted, its name still says what it is.
            let _ = fs::remove_file(&temporary.path);
        }
    }
}

/// Renames without replacing anything.
fn rename_to_free(from: &Path, directory: &Path, stem: &str) -> io::Result<PathBuf> {
    for number in 1..=MAX_NUMBER {
        let to = directory.join(format!("{stem}-{number}.data"));
        match rustix::fs::renameat_with(CWD, from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(to),
            Err(Errno::EXIST) => {}
            // The file system cannot do both in one step.
            Err(Errno::INVAL | Errno::NOSYS) if to.exists() => {}
            Err(Errno::INVAL | Errno::NOSYS) => return fs::rename(from, &to).map(|()| to),
            Err(other) => return Err(other.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn write(sink: &Sink, data: &[u8]) {
        (&*sink.file()).write_all(data).expect("written");
    }

    #[test]
    fn a_file_has_its_name_only_when_finished() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        fs::write(&path, "old").expect("written");
        let sink = Target::new(Some(&path), false).expect("a file").open(None).expect("opened");
        write(&sink, b"new");
        assert_eq!(fs::read(&path).expect("read"), b"old");
        assert_eq!(names(directory.path()).len(), 2);
        assert_eq!(sink.finish().expect("renamed"), Some(fs::canonicalize(&path).expect("there")));
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(names(directory.path()), ["copy"]);
    }

    #[test]
    fn what_is_not_finished_is_deleted() {
        let directory = tempfile::tempdir().expect("a directory");
        let sink = Target::new(Some(&directory.path().join("copy")), false).expect("a file").open(None);
        let sink = sink.expect("opened");
        write(&sink, b"part");
        drop(sink);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_link_is_followed_and_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        let sink = Target::new(Some(&link), false).expect("a file").open(None).expect("opened");
        write(&sink, b"new");
        sink.finish().expect("renamed");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&file).expect("read"), b"new");
    }

    #[test]
    fn nothing_in_a_directory_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = Target::new(Some(directory.path()), true).expect("a directory");
        let from: SocketAddr = "[fd00::1]:5".parse().expect("an address");
        let sinks: Vec<Sink> = (0..3).map(|_| target.open(Some(from)).expect("opened")).collect();
        for sink in sinks {
            sink.finish().expect("renamed");
        }
        let expected: Vec<String> = (1..=3).map(|n| format!("fd00__1-5-{n}.data")).collect();
        assert_eq!(names(directory.path()), expected);
    }

    #[test]
    fn devices_are_written_directly() {
        let target = Target::new(Some(Path::new("/dev/null")), false).expect("a device");
        assert_eq!(target, Target::Special("/dev/null".into()));
        let sink = target.open(None).expect("opened");
        write(&sink, b"gone");
        assert_eq!(sink.finish().expect("nothing to rename"), Some("/dev/null".into()));
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }

    #[test]
    fn bad_targets_are_refused() {
        let missing = Target::new(Some(Path::new("/no/such/directory/file")), false).expect("may be a file");
        let failure = missing.open(None).expect_err("no directory");
        assert_eq!(failure.exit, Exit::File);
        assert!(
            failure.to_string().starts_with("cannot write /no/such/directory/file: no such file"),
            "{failure}"
        );
        let failure = Target::new(Some(Path::new("/tmp/no-such-directory/")), false).expect_err("no file");
        assert_eq!(failure.exit, Exit::File);
        let failure = Target::new(Some(Path::new("-")), true).expect_err("not with --keep");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(Target::new(Some(Path::new("/dev/null")), true).is_err());
        assert_eq!(Target::new(None, true).expect("default"), Target::Directory(".".into()));
        assert_eq!(Target::new(None, false).expect("default"), Target::Stdout);
    }
}
