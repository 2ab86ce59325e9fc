//! Where control sockets are: one for each process, in a directory that only its user can enter.

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 64;

/// What is at a socket's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupant {
    Nothing,
    /// A socket on which somebody listens.
    Listener,
    /// A socket on which nobody listens: its process was killed.
    Leftover,
    /// A file that is no socket.
    File,
}

/// The directory of the control sockets of this user: `ackline` in `$XDG_RUNTIME_DIR`, or else in `/run/user/UID`, or else
/// `/tmp/ackline-UID`.
pub(crate) fn directory() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || Some(PathBuf::from(format!("/run/user/{uid}"))).filter(|path| path.is_dir());
    match given.or_else(usual) {
        Some(runtime) => runtime.join("ackline"),
        None => PathBuf::from(format!("/tmp/ackline-{uid}")),
    }
}

/// Makes the directory if it is not there. Somebody else may have made the one in `/tmp`: that is not used.
pub(crate) fn prepare(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // A symbolic link is no directory here.
    let found = fs::symlink_metadata(directory)?;
    let own = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && own && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(ErrorKind::PermissionDenied, "not a directory of this user alone (mode 0700)"))
    }
}

/// The sockets in `directory` on which somebody listens; those of killed processes are removed.
pub(super) fn sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "sock") {
            continue;
        }
        match occupant(&path) {
            Ok(Occupant::Listener) => found.push(path),
            Ok(Occupant::Leftover) => remove(&path)?,
            Ok(Occupant::Nothing | Occupant::File) | Err(_) => {}
        }
    }
    found.sort();
    Ok(found)
}

/// Listens at `path`. The socket appears there with mode 0600 and once it accepts connections: whoever finds nobody listening
/// has found a leftover.
pub(super) fn open(path: &Path) -> io::Result<UnixListener> {
    match occupant(path)? {
        Occupant::Nothing => {}
        Occupant::Leftover => remove(path)?,
        Occupant::Listener => {
            return Err(io::Error::new(ErrorKind::AddrInUse, "another process listens there"));
        }
        Occupant::File => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is no socket is there"));
        }
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let early = path.with_file_name(name);
    remove(&early)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(&early)?)?;
    let ready = fs::set_permissions(&early, Permissions::from_mode(0o600))
        .and_then(|()| Ok(listen(&socket, BACKLOG)?))
        .and_then(|()| fs::rename(&early, path));
    if let Err(error) = ready {
        let _ = remove(&early);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

/// Removes a socket; it may be gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn occupant(path: &Path) -> io::Result<Occupant> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Ok(Occupant::File),
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
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("1-recv.sock");
        let first = open(&path).expect("free");
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
        let folder = tempfile::tempdir().expect("a folder");
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
        assert_eq!(prepare(&own).expect_err("open").kind(), ErrorKind::PermissionDenied);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("made");
        assert_eq!(prepare(&link).expect_err("a link").kind(), ErrorKind::PermissionDenied);
    }
}
