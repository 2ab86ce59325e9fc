//! Following one interface: up, down, away.
//!
//! The kernel tells what happens to interfaces to sockets that joined its group for links (rtnetlink(7),
//! `RTNLGRP_LINK`). A device needs that because its own descriptor says too little: a reader of a TUN device is not
//! woken when the interface is removed, a packet socket cannot wait for an interface that is down.

use super::ready_fd::ReadyFd;
use crate::error::{Error, Result};
use crate::netlink::link_body;
use crate::netlink::message::{Request, messages, u32_at};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// What is known of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Link {
    /// It carries packets.
    Up,
    /// It exists, and carries none until it is set up again.
    Down,
    /// It does not exist in this network namespace any more: removed, or moved to another one.
    Gone,
}

/// Follows the interface of a number in the network namespace that the calling thread was in when it opened.
///
/// **A device calls [`poll`](Self::poll) whenever it is about to wait, and asks [`link`](Self::link) at any time.**
#[derive(Debug)]
pub(in crate::device) struct LinkMonitor {
    socket: ReadyFd<OwnedFd>,
    index: u32,
    link: Link,
    buffer: Box<[u8]>,
}

impl LinkMonitor {
    /// Begins to follow the interface number `index`.
    ///
    /// # Errors
    /// If the kernel refuses a netlink socket.
    pub(in crate::device) fn open(index: u32) -> Result<Self> {
        let failed = Error::on("follow the state of an interface");
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            // NETLINK_ROUTE is protocol 0, which rustix spells as no protocol.
            None,
        )
        .map_err(&failed)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, libc::RTMGRP_LINK as u32)).map_err(&failed)?;
        let buffer = vec![0; 16 * 1024].into_boxed_slice();
        let mut monitor = Self { socket: ReadyFd::new(socket), index, link: Link::Up, buffer };
        // What happened before the socket was bound was told to nobody.
        monitor.ask().map_err(failed)?;
        monitor.refresh();
        Ok(monitor)
    }

    /// What was known after the last [`poll`](Self::poll) or [`refresh`](Self::refresh).
    pub(in crate::device) const fn link(&self) -> Link {
        self.link
    }

    /// Takes in what the kernel has said since.
    pub(in crate::device) fn refresh(&mut self) -> Link {
        while self.take() {}
        self.link
    }

    /// Takes in what the kernel has said, and has the task woken when it says more.
    pub(in crate::device) fn poll(&mut self, cx: &mut Context<'_>) -> Link {
        // An error means that nobody will tell; the device's own descriptor has the last word anyway.
        while let Poll::Ready(Ok(())) = self.socket.poll_readable(cx) {
            self.refresh();
        }
        self.link
    }

    /// Asks the kernel for the interface's present state; the answer comes as one of the messages.
    fn ask(&self) -> std::result::Result<(), Errno> {
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_REQUEST, 0, &link_body(self.index, 0, 0));
        let kernel = SocketAddrNetlink::new(0, 0);
        let sent = self.socket.attempt(Interest::WRITABLE, |socket| {
            Ok(rustix::net::sendto(socket.as_fd(), &request.clone().finish(), SendFlags::empty(), &kernel)?)
        });
        sent.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Takes in one datagram; false if there is none.
    fn take(&mut self) -> bool {
        let Self { socket, buffer, index, link } = self;
        let received = socket.attempt(Interest::READABLE, |socket| {
            Ok(rustix::net::recv(socket.as_fd(), &mut buffer[..], RecvFlags::empty())?.0)
        });
        match received {
            Ok(length) => {
                for message in messages(buffer.get(..length).unwrap_or(&[])) {
                    *link = understand(message.kind, message.body, *index).unwrap_or(*link);
                }
                true
            }
            // The kernel said more than the socket could hold, so the last word is unknown.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => self.ask().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }
}

/// What a message says about the interface number `index`.
fn understand(kind: u16, body: &[u8], index: u32) -> Option<Link> {
    if i32::from(kind) == libc::NLMSG_ERROR {
        // The answer to `ask`, struct nlmsgerr: the interface is not there.
        let code = u32_at(body, 0)?.cast_signed();
        return (code == -Errno::NODEV.raw_os_error()).then_some(Link::Gone);
    }
    // A bridge tells of its ports with messages of its own family: leaving a bridge is no end.
    if *body.first()? != libc::AF_UNSPEC as u8 || u32_at(body, 4)? != index {
        return None;
    }
    match kind {
        libc::RTM_NEWLINK if u32_at(body, 8)? & libc::IFF_UP as u32 != 0 => Some(Link::Up),
        libc::RTM_NEWLINK => Some(Link::Down),
        libc::RTM_DELLINK => Some(Link::Gone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(family: u8, index: u32, flags: i32) -> [u8; 16] {
        let mut body = link_body(index, flags as u32, 0);
        body[0] = family;
        body
    }

    #[test]
    fn only_news_of_the_interface_count() {
        let up = body(0, 7, libc::IFF_UP | libc::IFF_RUNNING);
        let down = body(0, 7, libc::IFF_RUNNING);
        assert_eq!(understand(libc::RTM_NEWLINK, &up, 7), Some(Link::Up));
        assert_eq!(understand(libc::RTM_NEWLINK, &down, 7), Some(Link::Down));
        assert_eq!(understand(libc::RTM_DELLINK, &down, 7), Some(Link::Gone));
        assert_eq!(understand(libc::RTM_DELLINK, &down, 8), None);
        assert_eq!(understand(libc::RTM_DELLINK, &body(libc::AF_BRIDGE as u8, 7, 0), 7), None);
        assert_eq!(understand(libc::RTM_NEWADDR, &up, 7), None);
    }

    #[test]
    fn an_interface_that_is_not_found_is_gone() {
        let error = |code: i32| code.to_ne_bytes();
        let kind = libc::NLMSG_ERROR as u16;
        assert_eq!(understand(kind, &error(-libc::ENODEV), 7), Some(Link::Gone));
        assert_eq!(understand(kind, &error(0), 7), None);
    }

    #[test]
    fn messages_that_are_cut_short_say_nothing() {
        let whole = body(0, 7, 0);
        for length in 0..8 {
            assert_eq!(understand(libc::RTM_DELLINK, &whole[..length], 7), None, "{length} bytes");
        }
    }
}
