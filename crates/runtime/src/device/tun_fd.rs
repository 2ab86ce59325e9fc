//! The descriptor of a TUN device and its interface's state, shared by both TUN devices.

use super::interface::link::{Link, LinkMonitor};
use super::interface::ready_fd::ReadyFd;
use super::interface::removed;
use crate::error::Result;
use crate::netlink::Interface;
use crate::sys::readiness::OwnsFd;
use rustix::io::Errno;
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// A non-blocking TUN descriptor that tracks whether its interface is up.
#[derive(Debug)]
pub(super) struct TunFd<F: OwnsFd> {
    fd: ReadyFd<F>,
    link: LinkMonitor,
    name: String,
}

impl<F: OwnsFd> TunFd<F> {
    /// Tracks `interface`, to which `fd` is attached, in the calling thread's network namespace.
    pub(super) fn new(fd: F, interface: &Interface) -> Result<Self> {
        let link = LinkMonitor::open(interface)?;
        Ok(Self { fd: ReadyFd::new(fd), link, name: interface.name.clone() })
    }

    /// Updates the interface's state after an intended change.
    pub(super) fn refresh(&mut self) {
        self.link.refresh();
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
        match self.fd.attempt(Interest::WRITABLE, write) {
            Ok(_) => Ok(()),
            // A TUN device returns this while its interface is down.
            Err(error) if is(&error, Errno::IO) && self.link.refresh() == Link::Down => {
                Err(io::ErrorKind::NetworkDown.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Ready when a packet may be waiting, or the interface changed in a way that affects the next read or
    /// write.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.link.link();
        match (before, self.link.poll(cx)) {
            (Link::Up | Link::Gone, Link::Up) | (Link::Gone, Link::Gone) | (_, Link::Down) => {
                self.fd.poll_readable(cx)
            }
            // If it is gone, the next read tells whether it has only moved to another namespace.
            (Link::Down, Link::Up) | (_, Link::Gone) => Poll::Ready(Ok(())),
        }
    }

    /// Ready when there may be room for a packet, and the interface is up.
    pub(super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.link.poll(cx) {
            Link::Down => Poll::Pending,
            Link::Up | Link::Gone => self.fd.poll_writable(cx),
        }
    }

    /// Largest IP packet in bytes, as far as is known.
    pub(super) const fn mtu(&self) -> u32 {
        self.link.mtu()
    }

    /// True if the interface is down, as far as is known.
    pub(super) fn is_down(&self) -> bool {
        self.link.link() == Link::Down
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}
