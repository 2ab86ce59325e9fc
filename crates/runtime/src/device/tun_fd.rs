//! The descriptor of a TUN device, and the interface that it belongs to: what the two TUN devices share.

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

/// A non-blocking TUN descriptor that knows whether its interface is up.
#[derive(Debug)]
pub(super) struct TunFd<F: OwnsFd> {
    fd: ReadyFd<F>,
    link: LinkMonitor,
    name: String,
}

impl<F: OwnsFd> TunFd<F> {
    /// Follows `interface`, which `fd` is attached to, in the calling thread's network namespace.
    pub(super) fn new(fd: F, interface: &Interface) -> Result<Self> {
        let link = LinkMonitor::open(interface.index)?;
        Ok(Self { fd: ReadyFd::new(fd), link, name: interface.name.clone() })
    }

    /// Takes in what has become of the interface, if that was changed on purpose.
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
            // The descriptor belongs to no interface any more.
            Err(error) if is(&error, Errno::BADFD) => Err(removed(&self.name)),
            outcome => outcome,
        }
    }

    /// Writes one packet, which the kernel takes as a whole or not at all.
    ///
    /// # Errors
    /// `WouldBlock`; `NetworkDown` while the interface is down; what else the kernel says.
    pub(super) fn write(&mut self, write: impl FnMut(&F) -> io::Result<usize>) -> io::Result<()> {
        match self.fd.attempt(Interest::WRITABLE, write) {
            Ok(_) => Ok(()),
            // This is what a TUN device says whose interface is down.
            Err(error) if is(&error, Errno::IO) && self.link.refresh() == Link::Down => {
                Err(io::ErrorKind::NetworkDown.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Ready when a packet may be waiting, or the interface has changed so that the next read or write ends otherwise.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.link.link();
        match (before, self.link.poll(cx)) {
            (Link::Up | Link::Gone, Link::Up) | (Link::Gone, Link::Gone) | (_, Link::Down) => {
                self.fd.poll_readable(cx)
            }
            // If it is gone, reading will tell whether the interface has only moved to another namespace.
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

    /// The interface is down, as far as is known.
    pub(super) fn is_down(&self) -> bool {
        self.link.link() == Link::Down
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}
