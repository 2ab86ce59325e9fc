//! Where control sockets are: one for each process, in a directory that only its user can enter.

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 64;
/// Bytes of `sun_path` in front of its zero: unix(7).
const LONGEST_PATH: usize = 107;

/// What is at a socket's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupant {
    Nothing,
    /// A socket on which somebody listens.
    Listener,
    /// A socket on which nobody listens: its process was killed.
    Leftover,
    /// A socket of another user.
    Foreign,
    /// A file that is no socket.
    File,
}

/// The directory of the control sockets of this user: `ackline` in `$XDG_RUNTIME_DIR`, or else in
/// `/run/user/UID`, or else `/tmp/ackline-UID`.
pub(crate) fn directory() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    // sudo may leave a variable that names another user's.
    let given = given.filter(|path| fs::metadata(path).map_or(true, |found| is_own(&found)));
    let usual = || Some(PathBuf::from(format!("/run/user/{uid}"))).filter(|path| path.is_dir());
    match given.or_else(usual) {
        Some(runtime) => runtime.join("ackline"),
        None => PathBuf::from(format!("/tmp/ackline-{uid}")),
    }
}

/// Makes the directory if it is not there. Somebody else may have made the one in `/tmp`: that is
/// not used.
pub(crate) fn prepare(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made?,
    }
    check(directory)
}

/// Fails unless `directory` is this user's alone: whoever else can write there could put up a
/// socket that lies to `ackline ss`, or have files of this user replaced. Commands that listen and
/// commands that ask both check it.
pub(crate) fn check(directory: &Path) -> io::Result<()> {
    // A symbolic link is no directory here.
    let found = fs::symlink_metadata(directory)?;
    if found.is_dir() && is_own(&found) && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(ErrorKind::PermissionDenied, "not a directory of this user alone (mode 0700)"))
    }
}

fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::getuid().as_raw()
}

/// The sockets in `directory` on which somebody listens; those of killed processes are removed.
pub(super) fn sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    check(directory)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "sock") {
            continue;
        }
        match occupant(&path) {
            Ok(Occupant::Listener) => found.push(path),
            Ok(Occupant::Leftover) => remove(&path)?,
            Ok(Occupant::Nothing | Occupant::Foreign | Occupant::File) | Err(_) => {}
        }
    }
    found.sort();
    Ok(found)
}

/// The name of a socket that this process has made.
#[derive(Debug)]
pub(super) struct SocketName {
    path: PathBuf,
    /// Device and inode.
    made: (u64, u64),
}

impl SocketName {
    /// Removes the socket, unless something else has its name by now.
    pub(super) fn remove(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.made) {
            // If it cannot be removed, the next command that looks finds a leftover.
            let _ = remove(&self.path);
        }
    }
}

/// Listens at `path`. The socket appears there with mode 0600 and once it accepts connections:
/// whoever finds nobody listening has found a leftover.
pub(super) fn open(path: &Path) -> io::Result<(UnixListener, SocketName)> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not the path of a file"));
    };
    make_room(path)?;
    let suffix = format!(".{}", std::process::id());
    let mut early = OsString::from(name);
    early.push(&suffix);
    let early = path.with_file_name(early);
    if early.as_os_str().len() > LONGEST_PATH {
        let most = LONGEST_PATH - suffix.len();
        let why =
            format!("a socket's path has at most {most} bytes, and this one has {}", path.as_os_str().len());
        return Err(io::Error::new(ErrorKind::InvalidFilename, why));
    }
    make_room(&early)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(&early)?)?;
    let ready = fs::set_permissions(&early, Permissions::from_mode(0o600))
        .and_then(|()| Ok(listen(&socket, BACKLOG)?))
        .and_then(|()| fs::symlink_metadata(&early))
        .and_then(|found| fs::rename(&early, path).map(|()| (found.dev(), found.ino())));
    match ready {
        Ok(made) => Ok((UnixListener::from(socket), SocketName { path: path.to_owned(), made })),
        Err(error) => {
            let _ = remove(&early);
            Err(error)
        }
    }
}

/// Removes a leftover of this user at `path`, and nothing else.
fn make_room(path: &Path) -> io::Result<()> {
    let (kind, why) = match occupant(path)? {
        Occupant::Nothing => return Ok(()),
        Occupant::Leftover => return remove(path),
        Occupant::Listener => (ErrorKind::AddrInUse, "another process listens there"),
        Occupant::Foreign => (ErrorKind::AlreadyExists, "a socket of another user is there"),
        Occupant::File => (ErrorKind::AlreadyExists, "a file that is no socket is there"),
    };
    Err(io::Error::new(kind, why))
}

/// Removes a socket; it may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn occupant(path: &Path) -> io::Result<Occupant> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Ok(Occupant::File),
        Ok(found) if !is_own(&found) => return Ok(Occupant::Foreign),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Occupant::Nothing),
        Err(error) => return Err(error),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        // A full backlog belongs to somebody.
        Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(Occupant::Listener),
        Err(rustix::io::Errno::CONNREFUSED) => Ok(Occupant::Leftover),
        Err(rustix::io::Errno::NOENT) => Ok(Occupant::Nothing),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_and_a_leftover_is_replaced() {
        let folder = own_folder();
        let path = folder.path().join("1-recv.sock");
        let (first, _) = open(&path).expect("free");
        let mode = fs::metadata(&path).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(open(&path).expect_err("in use").kind(), ErrorKind::AddrInUse);
        assert_eq!(sockets(folder.path()).expect("readable"), std::slice::from_ref(&path));
        // As a killed process leaves it.
        drop(first);
        assert_eq!(sockets(folder.path()).expect("readable"), [] as [PathBuf; 0]);
        assert!(!path.exists(), "removed by whoever looked");
        drop(open(&path).expect("free"));
        drop(open(&path).expect("a leftover is replaced"));
    }

    #[test]
    fn a_file_is_never_replaced() {
        let folder = own_folder();
        let path = folder.path().join("notes.sock");
        fs::write(&path, "mine").expect("written");
        assert_eq!(open(&path).expect_err("no socket").kind(), ErrorKind::AlreadyExists);
        assert_eq!(sockets(folder.path()).expect("readable"), [] as [PathBuf; 0]);
        assert_eq!(fs::read(&path).expect("still there"), b"mine");
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("own");
        prepare(&own).expect("made");
        prepare(&own).expect("there");
        fs::set_permissions(&own, Permissions::from_mode(0o755)).expect("changed");
        let refused = |directory: &Path| {
            let (makes, asks) =
                (prepare(directory).expect_err("open"), sockets(directory).expect_err("open"));
            assert_eq!([makes.kind(), asks.kind()], [ErrorKind::PermissionDenied; 2]);
        };
        refused(&own);
        let link = folder.path().join("link");
        fs::set_permissions(&own, Permissions::from_mode(0o700)).expect("changed");
        std::os::unix::fs::symlink(&own, &link).expect("made");
        refused(&link);
        // Only root can give files away.
        if std::os::unix::fs::chown(&own, Some(65_534), None).is_ok() {
            refused(&own);
        }
    }

    #[test]
    fn only_a_leftover_of_this_user_and_an_own_socket_are_removed() {
        let folder = own_folder();
        let path = folder.path().join("1-recv.sock");
        let (first, name) = open(&path).expect("free");
        // Somebody has moved the socket away, and another process listens at its name.
        fs::rename(&path, folder.path().join("moved")).expect("ours");
        let (second, other) = open(&path).expect("free again");
        name.remove();
        assert!(path.exists(), "it is the second one's");
        other.remove();
        assert!(!path.exists());
        drop((first, second));

        // What has the name under which a socket is made.
        let early = folder.path().join(format!("1-recv.sock.{}", std::process::id()));
        fs::write(&early, "mine").expect("written");
        assert_eq!(open(&path).expect_err("in the way").kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&early).expect("still there"), b"mine");
        fs::remove_file(&early).expect("ours");

        drop(open(&path).expect("free"));
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            assert_eq!(open(&path).expect_err("another user's").kind(), ErrorKind::AlreadyExists);
            assert_eq!(sockets(folder.path()).expect("readable"), [] as [PathBuf; 0]);
            assert!(path.exists(), "another user's leftover is theirs to remove");
        }
    }

    #[test]
    fn a_path_that_cannot_be_a_sockets_is_refused() {
        let folder = own_folder();
        let long = folder.path().join("x".repeat(100));
        let why = open(&long).expect_err("too long").to_string();
        assert!(why.starts_with("a socket's path has at most 10"), "{why}");
        assert_eq!(open(Path::new("")).expect_err("nothing").kind(), ErrorKind::InvalidInput);
        assert_eq!(open(Path::new("/")).expect_err("a folder").kind(), ErrorKind::InvalidInput);
        assert_eq!(open(folder.path()).expect_err("a folder").kind(), ErrorKind::AlreadyExists);
        let missing = folder.path().join("none/c.sock");
        assert_eq!(open(&missing).expect_err("no folder").kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 0, "nothing is left behind");
    }

    fn own_folder() -> tempfile::TempDir {
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().expect("a folder")
    }
}
