//! Where received data goes, so that a part never looks like the whole.
//!
//! A regular file has no name until the sender has finished (`O_TMPFILE`), so nothing is left of it
//! if the process is killed or the machine loses power. A file system that has no such files gets
//! one under a hidden temporary name, which is deleted if it is dropped, and by the next receiver
//! if its own was killed. Pipes and devices are written directly.

use crate::failure::{Exit, Failure};
use crate::output;
use ackline_lab::unfinished::{self, Unfinished};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
                let file = output::file()?;
                Ok(Sink::direct(file, "standard output".to_owned(), None))
            }
            Self::Special(path) => {
                let name = path.display().to_string();
                let file = OpenOptions::new().write(true).open(path);
                let file = file.map_err(|error| Failure::file("write", &name, &error))?;
                Ok(Sink::direct(file, name, Some(path.clone())))
            }
            Self::File(path) => Sink::new(FileDestination::Exactly(path.clone())),
            Self::Directory(directory) => {
                let stem = from.map_or_else(|| "unknown".to_owned(), stem);
                Sink::new(FileDestination::Numbered { directory: directory.clone(), stem })
            }
        }
    }

    /// Deletes what receivers that were killed have left where this one writes.
    pub(crate) fn delete_leftovers(&self) {
        let directory = match self {
            Self::Stdout | Self::Special(_) => return,
            Self::File(path) => directory_of(path),
            Self::Directory(directory) => directory,
        };
        unfinished::delete_leftovers(directory, |name| name == TEMPORARY);
    }
}

/// Whether a path can be a file's: it ends with a name, and not with a slash.
fn names_a_file(path: &Path) -> bool {
    path.file_name().is_some() && !path.as_os_str().as_bytes().ends_with(b"/")
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// A peer's address as the beginning of a file name.
fn stem(from: SocketAddr) -> String {
    format!("{}-{}", from.ip().to_string().replace(':', "_"), from.port())
}

/// Where a finished file goes.
#[derive(Debug)]
enum FileDestination {
    Exactly(PathBuf),
    /// The first of `STEM-1.data`, `STEM-2.data`, ... that does not exist.
    Numbered {
        directory: PathBuf,
        stem: String,
    },
}

impl FileDestination {
    fn directory(&self) -> &Path {
        match self {
            Self::Exactly(path) => directory_of(path),
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

/// An open output. Dropping it without [`finish`](Self::finish) deletes what is not complete.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<File>,
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Written as it is; with the path of what has one.
    Direct(Option<PathBuf>),
    /// A file without a name.
    Nameless(FileDestination),
    /// A file under a temporary name.
    Temporary(Unfinished, FileDestination),
}

impl Sink {
    fn direct(file: File, name: String, path: Option<PathBuf>) -> Self {
        Self { file: Arc::new(file), name, kind: Kind::Direct(path) }
    }

    fn new(place: FileDestination) -> Result<Self, Failure> {
        let name = place.name();
        let refused = |error: &io::Error| Failure::file("write", &name, error);
        if let FileDestination::Exactly(path) = &place
            && let Err(error) = OpenOptions::new().write(true).open(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // A rename would replace a file that may not be written.
            return Err(refused(&error));
        }
        let (file, temporary) = match nameless(place.directory()) {
            Some(file) => (file, None),
            None => named(place.directory())
                .map(|(file, unfinished)| (file, Some(unfinished)))
                .map_err(|error| refused(&error))?,
        };
        if let FileDestination::Exactly(old) = &place
            && let Ok(metadata) = fs::metadata(old)
        {
            // As an overwritten file would keep them. If that is refused, the data matters more.
            let _ = file.set_permissions(metadata.permissions());
        }
        let kind = match temporary {
            None => Kind::Nameless(place),
            Some(unfinished) => Kind::Temporary(unfinished, place),
        };
        Ok(Self { file: Arc::new(file), name, kind })
    }

    /// The file, for writing on another thread.
    pub(crate) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// The failure to write to it.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        failure(&self.name, error)
    }

    /// The data is complete: gives the file its name, which is returned.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Failure> {
        let Self { file, name, kind } = self;
        let named = (&*file).flush().and_then(|()| match kind {
            Kind::Direct(path) => Ok(path),
            Kind::Temporary(unfinished, place) => unfinished.finish_with(|from| place.rename(from)).map(Some),
            Kind::Nameless(place) => place.link(&file).map(Some),
        });
        named.map_err(|error| failure(&name, &error))
    }
}

fn failure(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Exit::File, format!("cannot write to {name}: the reader has gone"));
    }
    Failure::file("write", name, error)
}

/// The name from which those of temporary files are made.
const TEMPORARY: &str = ".ackline";

/// A file in `directory` that has no name; `None` if the file system has no such files, or it could
/// not be named later.
fn nameless(directory: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // The user's mask takes away from this, as from the mode of any new file.
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)).map(File::from).ok()?;
    fs::symlink_metadata(path_of(&file)).is_ok().then_some(file)
}

/// A file in `directory` under a temporary name.
fn named(directory: &Path) -> io::Result<(File, Unfinished)> {
    let unfinished = Unfinished::create(&directory.join(TEMPORARY))?;
    Ok((unfinished.file().try_clone()?, unfinished))
}

/// Where an open file can be found by name: open(2), `O_TMPFILE`.
fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

impl FileDestination {
    /// Gives a file without a name its own.
    fn link(&self, file: &File) -> io::Result<PathBuf> {
        let link = |to: &Path| rustix::fs::linkat(CWD, path_of(file), CWD, to, AtFlags::SYMLINK_FOLLOW);
        match self {
            Self::Numbered { directory, stem } => {
                first_free(directory, stem, |to| link(to).map_err(io::Error::from))
            }
            // A link replaces nothing, but a rename does.
            Self::Exactly(path) => {
                // Nobody takes it for a leftover while it has a temporary name. If locks fail,
                // nobody can take it for one.
                let _ = file.try_lock();
                let temporary = loop {
                    let name = unfinished::temporary_name(&self.directory().join(TEMPORARY));
                    match link(&name) {
                        Ok(()) => break name,
                        Err(Errno::EXIST) => {}
                        Err(other) => return Err(other.into()),
                    }
                };
                fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
                Ok(path.clone())
            }
        }
    }

    /// Gives the file that is called `from` its own name.
    fn rename(&self, from: &Path) -> io::Result<PathBuf> {
        match self {
            Self::Exactly(path) => fs::rename(from, path).map(|()| path.clone()),
            Self::Numbered { directory, stem } => first_free(directory, stem, |to| rename_to_free(from, to)),
        }
    }
}

/// The first name in `directory` that `take` takes, which fails with `AlreadyExists` if it is in
/// use.
fn first_free(directory: &Path, stem: &str, take: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    for number in 1..=MAX_NUMBER {
        let to = directory.join(format!("{stem}-{number}.data"));
        match take(&to) {
            Ok(()) => return Ok(to),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(other) => return Err(other),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Renames without replacing anything.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot do both in one step.
        Err(Errno::INVAL | Errno::NOSYS) if to.exists() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        other => other.map_err(io::Error::from),
    }
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

    /// As on a file system without nameless files.
    #[test]
    fn a_temporary_name_serves_as_well() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        fs::write(&path, "old").expect("written");
        let sink = |place: FileDestination| {
            let (file, unfinished) = named(directory.path()).expect("opened");
            Sink { file: Arc::new(file), name: place.name(), kind: Kind::Temporary(unfinished, place) }
        };
        let numbered =
            || FileDestination::Numbered { directory: directory.path().to_owned(), stem: "x".to_owned() };
        let (whole, one, two, part) = (
            sink(FileDestination::Exactly(path.clone())),
            sink(numbered()),
            sink(numbered()),
            sink(numbered()),
        );
        for sink in [&whole, &one, &two, &part] {
            write(sink, b"new");
        }
        // A receiver that starts now deletes what a killed one has left, and nothing of these.
        fs::write(directory.path().join(".ackline.1-0.partial"), "left").expect("written");
        assert_eq!(names(directory.path()).len(), 6);
        Target::Directory(directory.path().to_owned()).delete_leftovers();
        assert_eq!(names(directory.path()).len(), 5);
        for sink in [whole, one, two] {
            sink.finish().expect("renamed");
        }
        drop(part);
        assert_eq!(names(directory.path()), ["copy", "x-1.data", "x-2.data"]);
        assert_eq!(fs::read(&path).expect("read"), b"new");
    }

    #[test]
    fn a_file_has_the_permissions_of_the_one_that_it_replaces() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("copy");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("ours");
        let target = Target::new(Some(&path), false).expect("a file");
        target.open(None).expect("opened").finish().expect("named");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
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
