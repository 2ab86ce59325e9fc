//! Leaving the process's initial namespaces.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A new network namespace for the calling thread. Needs `CAP_SYS_ADMIN`.
pub(crate) fn unshare_net() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked
    // for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// A new mount namespace for the calling thread, which has a working directory of its own from then
/// on. Needs `CAP_SYS_ADMIN`.
pub(crate) fn unshare_mounts() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked
    // for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
}

/// Moves the calling process into a new user namespace and a new network namespace inside it. The
/// process must be single-threaded (EINVAL otherwise).
pub(crate) fn unshare_user_and_net() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked
    // for.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
}

/// Moves the calling process into a new user namespace. The process must be single-threaded (EINVAL
/// otherwise).
pub(crate) fn unshare_user() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` breaks assumptions about descriptors, and it is not asked
    // for.
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

    /// User and group 0 inside, so that capabilities survive an exec: capabilities(7). Create it
    /// before the process enters the new namespace.
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
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are allowed:
    // it makes system calls on memory that was allocated before the fork, allocates nothing and
    // takes no lock (rustix turns paths of this length into C strings on the stack).
    unsafe {
        command.pre_exec(move || {
            unshare_user_and_net()
                .and_then(|()| maps.install())
                .map_err(|errno| io::Error::from_raw_os_error(errno.raw_os_error()))
        })
    };
}

/// Makes `command`'s process be killed as soon as the thread that starts it ends, however this
/// ends.
pub(crate) fn end_with_thread(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are allowed:
    // it makes system calls on numbers.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // Who has ended before that call sends no signal any more.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
        })
    };
}

/// Makes `command`'s process have no capabilities, and no way to get any.
pub(crate) fn drop_capabilities(command: &mut Command) {
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are allowed:
    // it makes system calls on numbers.
    unsafe { command.pre_exec(|| Ok(give_up_capabilities()?)) };
}

/// A user of number 0 gets the bounding set at execve(2), and anybody what a file has:
/// capabilities(7). `no_new_privs` forbids both. The bounding set keeps one that a process still
/// does not get: a file that has more than that set, as ping has it, cannot be executed.
fn give_up_capabilities() -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::clear_ambient_capability_set()?;
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if capability == CapabilitySet::NET_RAW {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel knows no more of them.
            Err(Errno::INVAL) => break,
            other => other?,
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)
}
