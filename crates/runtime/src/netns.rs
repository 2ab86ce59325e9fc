//! Network namespaces: a private network, without touching the machine's.
//!
//! A network namespace belongs to a thread. As root a thread can create one for itself
//! ([`Namespace::new_for_thread`]); what it opens from then on (sockets, TUN devices) lives there
//! and can be used from every thread. An ordinary user needs a user namespace around it, which only
//! a single-threaded process can enter: call [`enter_user_net_namespace`] first thing in `main`;
//! after that threads can create further namespaces. A namespace disappears, with everything in it,
//! when the last thread and descriptor in it are gone.

use crate::error::{Error, Result};
use crate::netlink::bring_loopback_up;
use crate::sys::namespace as sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::LinkNameSpaceType;
use std::path::Path;
use std::process::Command;

/// A handle to a network namespace, which it keeps alive.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// Moves the calling thread into a new network namespace whose loopback interface is up.
    /// Threads that it starts inherit the namespace; running threads stay where they are.
    ///
    /// # Errors
    /// [`Error::NamespaceForbidden`] without `CAP_SYS_ADMIN`.
    pub fn new_for_thread() -> Result<Self> {
        sys::unshare_net().map_err(refused)?;
        bring_loopback_up()?;
        Self::of_thread()
    }

    /// The calling thread's namespace.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn of_thread() -> Result<Self> {
        let fd =
            rustix::fs::open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(Error::on("open the thread's network namespace"))?;
        Ok(Self { fd })
    }

    /// The namespace at `path`: one of `ip netns` at `/run/netns/NAME`, or that of a process at
    /// `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// If there is no such file, or it may not be opened. Whether it is a network namespace,
    /// [`enter`](Self::enter) tells.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let fd = rustix::fs::open(path.as_ref(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(Error::on("open a network namespace"))?;
        Ok(Self { fd })
    }

    /// Moves the calling thread into this namespace.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN` in the user namespace that owns it and in the thread's own;
    /// [`Error::System`] with `EINVAL` if it is no network namespace.
    pub fn enter(&self) -> Result<()> {
        rustix::thread::move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(Error::on("enter a network namespace"))
    }

    /// Runs `work` on a new thread inside this namespace and waits for it; the caller stays where
    /// it is.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| work()));
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Moves the calling process into a new user namespace, with the same user and group IDs and every
/// capability inside it, and into a new network namespace whose loopback interface is up. For
/// ordinary users.
///
/// # Errors
/// [`Error::TooManyThreads`] once the process has a second thread; [`Error::NamespaceForbidden`] if
/// the machine does not allow unprivileged user namespaces.
pub fn enter_user_net_namespace() -> Result<()> {
    become_user(sys::unshare_user_and_net)?;
    bring_loopback_up()
}

/// Moves the calling process into a new user namespace, with the same user and group IDs and every
/// capability inside it. It stays in its network namespace, where it has the rights that it had;
/// its threads can make namespaces of their own ([`Namespace::new_for_thread`]). For ordinary
/// users.
///
/// # Errors
/// As [`enter_user_net_namespace`].
pub fn enter_user_namespace() -> Result<()> {
    become_user(sys::unshare_user)
}

/// Moves the calling process into the user namespace of the process `pid`, which an ordinary user
/// may do who has made that. There it has every capability, so its threads can
/// [enter](Namespace::enter) the network namespaces that belong to it. It stays in its own.
///
/// # Errors
/// [`Error::TooManyThreads`] once the process has a second thread, and if it is in that namespace
/// already; [`Error::NamespaceForbidden`] if the namespace is somebody else's; [`Error::System`] if
/// there is no such process.
pub fn join_user_namespace(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/ns/user");
    let fd = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(refused)?;
    rustix::thread::move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::User)).map_err(refused)
}

/// Enters the namespaces that `unshare` makes, among them a user namespace, as the same user.
fn become_user(unshare: fn() -> std::result::Result<(), Errno>) -> Result<()> {
    let maps = sys::IdMaps::same();
    unshare().map_err(refused)?;
    maps.install().map_err(|_| Error::NamespaceForbidden)
}

/// Moves the calling thread, and what it starts, into a new mount namespace in which the file at
/// `path` has the given contents and may be read by all; nobody else sees that. The file must
/// exist. Nothing is left behind.
///
/// # Errors
/// [`Error::NotAdmin`] without `CAP_SYS_ADMIN`, or if the machine forbids mounts; [`Error::System`]
/// if there is no such file.
pub fn replace_file_for_thread(path: &str, contents: &[u8]) -> Result<()> {
    let action = |errno| Error::system("give the program a file of its own", errno);
    sys::unshare_mounts().map_err(action)?;
    // What is mounted from here on is nobody else's.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(action)?;
    // A file system of its own has the file, and goes with the namespace. It covers a directory
    // only until the file is in its place.
    let cover = std::env::temp_dir();
    mount("tmpfs", &cover, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(action)?;
    let placed = place_file(&cover.join("file"), contents, path);
    let uncovered = unmount(&cover, UnmountFlags::DETACH);
    placed.and(uncovered).map_err(action)
}

/// Writes a file and mounts it at `path`.
fn place_file(file: &Path, contents: &[u8], path: &str) -> std::result::Result<(), Errno> {
    let readable = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let fd = rustix::fs::open(file, OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC, readable)?;
    // Whatever the mask is.
    rustix::fs::fchmod(&fd, readable)?;
    let mut rest = contents;
    while !rest.is_empty() {
        let written = rustix::io::write(&fd, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    mount_bind(file, path)
}

/// Makes `command` start as root of a new user namespace (its files belong to the caller) and in a
/// new network namespace, whose loopback interface is down. Spawning fails if that is not allowed.
pub fn isolate_command(command: &mut Command) {
    sys::isolate(command);
}

/// Makes the process of `command` be killed (`SIGKILL`) as soon as the thread that starts it ends,
/// whatever ends it. So a program whose network is this process leaves no namespace behind if this
/// process is killed. What the program itself starts is not killed, nor is a program that changes
/// its user.
pub fn end_with_thread(command: &mut Command) {
    sys::end_with_thread(command);
}

/// Makes the process of `command` have no capabilities, and no way to get any (`no_new_privs`):
/// whoever it is, it cannot enter another namespace, mount, or trace a process that can. Spawning
/// fails without `CAP_SETPCAP`.
pub fn drop_capabilities(command: &mut Command) {
    sys::drop_capabilities(command);
}

/// Lets the group of this process ping from the calling thread's network namespace without
/// capabilities: `ping_group_range` of icmp(7).
///
/// # Errors
/// If `/proc` cannot be written.
pub fn permit_ping() -> std::io::Result<()> {
    let group = rustix::process::getegid().as_raw();
    std::fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"))
}

fn refused(errno: Errno) -> Error {
    match errno {
        Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS => Error::NamespaceForbidden,
        Errno::INVAL => Error::TooManyThreads,
        other => Error::system("make or enter a namespace", other),
    }
}
