//! Leaving the process's initial namespaces.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A new network namespace for the calling thread. Needs `CAP_SYS_ADMIN`.
pub(crate) fn unshare_net() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// A new mount namespace for the calling thread, which has a working directory of its own from then on. Needs `CAP_SYS_ADMIN`.
pub(crate) fn unshare_mounts() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
}

/// Moves the calling process into a new user namespace and a new network namespace inside it. The process
/// must be single-threaded (EINVAL otherwise).
pub(crate) fn unshare_user_and_net() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
}

/// Moves the calling process into a new user namespace. The process must be single-threaded (EINVAL otherwise).
pub(crate) fn unshare_user() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
}

/// The ID maps of a new user namespace.
#[derive(Clone, Debug)]
pub(crate) struct IdMaps {
    uid_map: String,
    gid_map: String,
}

impl IdMaps {
    /// Same IDs inside and outside. Create it before the process enters the new namespace.
    pub(crate) fn same() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self { uid_map: format!("{uid} {uid} 1"), gid_map: format!("{gid} {gid} 1") }
    }

    /// User and group 0 inside, so that capabilities survive an exec: capabilities(7). Create it before the
    /// process enters the new namespace.
    fn root() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self { uid_map: format!("0 {uid} 1"), gid_map: format!("0 {gid} 1") }
    }

    /// Writes the maps. Only uses plain system calls: it may run between fork and exec.
    pub(crate) fn install(&self) -> Result<(), Errno> {
        // An unprivileged process may write its gid_map only after it has given up setgroups(2):
        // user_namespaces(7).
        write_whole("/proc/self/setgroups", b"deny")?;
        write_whole("/proc/self/uid_map", self.uid_map.as_bytes())?;
        write_whole("/proc/self/gid_map", self.gid_map.as_bytes())
    }
}

fn write_whole(path: &str, text: &[u8]) -> Result<(), Errno> {
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // These files only accept their whole text in one write.
    rustix::io::write(&fd, text).map(drop)
}

/// Makes `command` start inside a user namespace and a network namespace of its own.
pub(crate) fn isolate(command: &mut Command) {
    let maps = IdMaps::root();
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are allowed: it makes
    // system calls on memory that was allocated before the fork, allocates nothing and takes no lock (rustix
    // turns paths of this length into C strings on the stack).
    unsafe {
        command.pre_exec(move || {
            unshare_user_and_net()
                .and_then(|()| maps.install())
                .map_err(|errno| io::Error::from_raw_os_error(errno.raw_os_error()))
        })
    };
}

/// Makes `command`'s process be killed as soon as the thread that starts it ends, however this ends.
pub(crate) fn end_with_thread(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are allowed: it makes system calls on numbers.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // Who has ended before that call sends no signal any more.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
        })
    };
}
