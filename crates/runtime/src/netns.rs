//! Network namespaces: a private network, without touching the machine's.
//!
//! A network namespace belongs to a thread. As root a thread can create one for itself
//! ([`Namespace::new_for_thread`]); what it opens from then on (sockets, TUN devices) lives there and can be
//! used from every thread. An ordinary user needs a user namespace around it, which only a single-threaded
//! process can enter: call [`enter_user_net_namespace`] first thing in `main`; after that threads can create
//! further namespaces. A namespace disappears, with everything in it, when the last thread and descriptor in
//! it are gone.

use crate::error::{Error, Result};
use crate::netlink::bring_loopback_up;
use crate::sys::namespace as sys;
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::LinkNameSpaceType;
use std::process::Command;

/// A handle to a network namespace, which it keeps alive.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// Moves the calling thread into a new network namespace whose loopback interface is up. Threads that it
    /// starts inherit the namespace; running threads stay where they are.
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

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Moves the calling thread into this namespace.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN` in the user namespace that owns it.
    pub fn enter(&self) -> Result<()> {
        rustix::thread::move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(Error::on("enter a network namespace"))
    }

    /// Runs `work` on a new thread inside this namespace and waits for it; the caller stays where it is.
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

/// Moves the calling process into a new user namespace, with the same user and group IDs and every capability
/// inside it, and into a new network namespace whose loopback interface is up. For ordinary users.
///
/// # Errors
/// [`Error::TooManyThreads`] once the process has a second thread; [`Error::NamespaceForbidden`] if the
/// machine does not allow unprivileged user namespaces.
pub fn enter_user_net_namespace() -> Result<()> {
    become_user(sys::unshare_user_and_net)?;
    bring_loopback_up()
}

/// Moves the calling process into a new user namespace, with the same user and group IDs and every capability inside it. It stays in
/// its network namespace, where it has the rights that it had; its threads can make namespaces of their own
/// ([`Namespace::new_for_thread`]). For ordinary users.
///
/// # Errors
/// As [`enter_user_net_namespace`].
pub fn enter_user_namespace() -> Result<()> {
    become_user(sys::unshare_user)
}

/// Enters the namespaces that `unshare` makes, among them a user namespace, as the same user.
fn become_user(unshare: fn() -> std::result::Result<(), Errno>) -> Result<()> {
    let maps = sys::IdMaps::same();
    unshare().map_err(refused)?;
    maps.install().map_err(|_| Error::NamespaceForbidden)
}

/// Makes `command` start as root of a new user namespace (its files belong to the caller) and in a new
/// network namespace, whose loopback interface is down. Spawning fails if that is not allowed.
pub fn isolate_command(command: &mut Command) {
    sys::isolate(command);
}

fn refused(errno: Errno) -> Error {
    match errno {
        Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS => Error::NamespaceForbidden,
        Errno::INVAL => Error::TooManyThreads,
        other => Error::system("make a network namespace", other),
    }
}
