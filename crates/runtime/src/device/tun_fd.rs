//! The descriptor of a TUN device and its interface's state, shared by both TUN devices.
//!
//! An interface of which only the descriptor is known (`Tun::from_fd`) may be in a namespace that
//! the process cannot enter, where no netlink socket tells of it. So reads and writes tell: its MTU
//! is stated, and a timer has it read once a second, because the kernel wakes no reader of an
//! interface that was removed.

use super::interface::link::{Link, LinkMonitor};
use super::interface::ready_fd::ReadyFd;
use super::interface::removed;
use crate::error::Result;
use crate::netlink::Interface;
use crate::sys::readiness::OwnsFd;
use crate::timer::{self, Timer};
use ackline_tcp_core::Duration;
use rustix::io::Errno;
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;

/// Time between two looks at an interface of which nothing tells.
const LOOK: Duration = Duration::from_secs(1);

/// A non-blocking TUN descriptor that tracks whether its interface is up.
#[derive(Debug)]
pub(super) struct TunFd<F: OwnsFd> {
    fd: ReadyFd<F>,
    watch: Watch,
    name: String,
}

/// How the state of the interface is known.
#[derive(Debug)]
enum Watch {
    /// The kernel tells.
    Link(LinkMonitor),
    /// It may be in a network namespace that this process cannot enter: reads and writes tell.
    Attempts(Attempts),
}

/// What reads and writes have told.
#[derive(Debug)]
struct Attempts {
    mtu: u32,
    /// The last write found it down.
    down: bool,
    /// When to try again; created when the driver first waits, because opening a device needs no
    /// runtime.
    next: Option<Timer>,
}

impl<F: OwnsFd> TunFd<F> {
    /// Tracks `interface`, to which `fd` is attached, in the calling thread's network namespace.
    pub(super) fn new(fd: F, interface: &Interface) -> Result<Self> {
        let watch = Watch::Link(LinkMonitor::open(interface)?);
        Ok(Self { fd: ReadyFd::new(fd), watch, name: interface.name.clone() })
    }

    /// The same for an interface in any namespace, with the MTU `mtu`.
    pub(super) fn anywhere(fd: F, name: String, mtu: u32) -> Self {
        let watch = Watch::Attempts(Attempts { mtu, down: false, next: None });
        Self { fd: ReadyFd::new(fd), watch, name }
    }

    /// Its interface may be in any namespace.
    pub(super) const fn is_anywhere(&self) -> bool {
        matches!(self.watch, Watch::Attempts(_))
    }

    /// The descriptor.
    pub(super) fn get(&self) -> io::Result<&F> {
        self.fd.get()
    }

    /// Updates the interface's state after an intended change.
    pub(super) fn refresh(&mut self) {
        if let Watch::Link(link) = &mut self.watch {
            link.refresh();
        }
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// `WouldBlock`; `NetworkDown` if the interface was removed.
    pub(super) fn read(&self, read: impl FnMut(&F) -> io::Result<usize>) -> io::Result<usize> {
        match self.fd.attempt(Interest::READABLE, read) {
            Ok(0) => Err(removed(&self.name)),
            // The descriptor is no longer attached to an interface.
            Err(error) if is(&error, Errno::BADFD) => Err(removed(&self.name)),
            outcome => outcome,
        }
    }

    /// Writes one packet, which the kernel takes as a whole or not at all.
    ///
    /// # Errors
    /// `WouldBlock`; `NetworkDown` while the interface is down; any other error of the kernel.
    pub(super) fn write(&mut self, write: impl FnMut(&F) -> io::Result<usize>) -> io::Result<()> {
        let outcome = self.fd.attempt(Interest::WRITABLE, write).map(drop);
        // A TUN device returns this while its interface is down.
        let failed = outcome.as_ref().is_err_and(|error| is(error, Errno::IO));
        let down = match &mut self.watch {
            Watch::Link(link) => failed && link.refresh() == Link::Down,
            Watch::Attempts(attempts) => {
                attempts.down = failed;
                failed
            }
        };
        if down { Err(io::ErrorKind::NetworkDown.into()) } else { outcome }
    }

    /// Ready when a packet may be waiting, or the interface changed in a way that affects the next
    /// read or write.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let link = match &mut self.watch {
            Watch::Link(link) => link,
            // A read tells whether the interface is still there.
            Watch::Attempts(attempts) => match attempts.poll_next(cx) {
                Poll::Ready(rang) => return Poll::Ready(rang),
                Poll::Pending => return self.fd.poll_readable(cx),
            },
        };
        let before = link.link();
        match (before, link.poll(cx)) {
            (Link::Up | Link::Gone, Link::Up) | (Link::Gone, Link::Gone) | (_, Link::Down) => {
                self.fd.poll_readable(cx)
            }
            // If it is gone, the next read tells whether it has only moved to another namespace.
            (Link::Down, Link::Up) | (_, Link::Gone) => Poll::Ready(Ok(())),
        }
    }

    /// Ready when there may be room for a packet, and the interface is up, or may be.
    pub(super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.watch {
            Watch::Link(link) => {
                if link.poll(cx) == Link::Down {
                    return Poll::Pending;
                }
            }
            Watch::Attempts(attempts) => {
                if attempts.down {
                    ready!(attempts.poll_next(cx))?;
                    attempts.down = false;
                }
            }
        }
        self.fd.poll_writable(cx)
    }

    /// Largest IP packet in bytes, as far as is known.
    pub(super) const fn mtu(&self) -> u32 {
        match &self.watch {
            Watch::Link(link) => link.mtu(),
            Watch::Attempts(attempts) => attempts.mtu,
        }
    }

    /// True if the interface is down, as far as is known.
    pub(super) fn is_down(&self) -> bool {
        match &self.watch {
            Watch::Link(link) => link.link() == Link::Down,
            Watch::Attempts(attempts) => attempts.down,
        }
    }
}

impl Attempts {
    /// Ready once in a while.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let timer = match &mut self.next {
            Some(timer) => timer,
            none => {
                let mut timer = Timer::new()?;
                timer.arm(Some(timer::now() + LOOK))?;
                none.insert(timer)
            }
        };
        let now = ready!(timer.poll_expired(cx))?;
        timer.arm(Some(now + LOOK))?;
        Poll::Ready(Ok(()))
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}
