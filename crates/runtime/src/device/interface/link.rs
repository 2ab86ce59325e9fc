//! Tracks whether one interface is up, down or gone, and its MTU.
//!
//! The kernel reports changes to sockets in its link group (rtnetlink(7), `RTNLGRP_LINK`). The
//! device's own descriptor is not enough: a reader of a TUN device is not woken when the interface
//! is removed, and a packet socket cannot wait for an interface that is down.

use super::ready_fd::ReadyFd;
use crate::error::{Error, Result};
use crate::netlink::message::{Request, attributes, messages, u32_at};
use crate::netlink::{Interface, link_body};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::task::{Context, Poll};
use tokio::io::Interest;

/// Last known state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Link {
    /// It carries packets.
    Up,
    /// It exists, but carries nothing until it is up again.
    Down,
    /// It no longer exists in this network namespace: removed, or moved to another one.
    Gone,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct News {
    link: Link,
    /// `None` if it does not say.
    mtu: Option<u32>,
}

/// Tracks an interface in the network namespace of the thread that opened it.
///
/// **A device calls [`poll`](Self::poll) whenever it is about to wait, and asks
/// [`link`](Self::link) and [`mtu`](Self::mtu) at any time.**
#[derive(Debug)]
pub(in crate::device) struct LinkMonitor {
    socket: ReadyFd<OwnedFd>,
    index: u32,
    link: Link,
    mtu: u32,
    buffer: Box<[u8]>,
}

impl LinkMonitor {
    /// Starts tracking `interface`.
    ///
    /// # Errors
    /// If the kernel refuses a netlink socket.
    pub(in crate::device) fn open(interface: &Interface) -> Result<Self> {
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
        let &Interface { index, mtu, .. } = interface;
        let mut monitor = Self { socket: ReadyFd::new(socket), index, link: Link::Up, mtu, buffer };
        // Changes before the socket was bound were not reported.
        monitor.ask().map_err(failed)?;
        monitor.refresh();
        Ok(monitor)
    }

    /// The state as of the last [`poll`](Self::poll) or [`refresh`](Self::refresh).
    pub(in crate::device) const fn link(&self) -> Link {
        self.link
    }

    /// Largest IP packet in bytes, as of then.
    pub(in crate::device) const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Processes the kernel's pending messages.
    pub(in crate::device) fn refresh(&mut self) -> Link {
        while self.take() {}
        self.link
    }

    /// Processes the kernel's pending messages, and registers the task to be woken by the next.
    pub(in crate::device) fn poll(&mut self, cx: &mut Context<'_>) -> Link {
        // After an error no more messages come; the device's own descriptor will report failures
        // anyway.
        while let Poll::Ready(Ok(())) = self.socket.poll_readable(cx) {
            self.refresh();
        }
        self.link
    }

    /// Asks the kernel for the interface's current state; the answer arrives as one of the
    /// messages.
    fn ask(&self) -> std::result::Result<(), Errno> {
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_REQUEST, 0, &link_body(self.index, 0, 0));
        let kernel = SocketAddrNetlink::new(0, 0);
        let sent = self.socket.attempt(Interest::WRITABLE, |socket| {
            Ok(rustix::net::sendto(socket.as_fd(), &request.clone().finish(), SendFlags::empty(), &kernel)?)
        });
        sent.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Processes one datagram; false if there is none.
    fn take(&mut self) -> bool {
        let Self { socket, buffer, index, link, mtu } = self;
        let received = socket.attempt(Interest::READABLE, |socket| {
            Ok(rustix::net::recv(socket.as_fd(), &mut buffer[..], RecvFlags::empty())?.0)
        });
        match received {
            Ok(length) => {
                for message in messages(buffer.get(..length).unwrap_or(&[])) {
                    if let Some(news) = understand(message.kind, message.body, *index) {
                        *link = news.link;
                        *mtu = news.mtu.unwrap_or(*mtu);
                    }
                }
                true
            }
            // The socket's buffer overflowed, so the latest state is unknown.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => self.ask().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }
}

/// What a message says about the interface with index `index`.
fn understand(kind: u16, body: &[u8], index: u32) -> Option<News> {
    let gone = News { link: Link::Gone, mtu: None };
    if i32::from(kind) == libc::NLMSG_ERROR {
        // The answer to `ask`, struct nlmsgerr: the interface is not there.
        let code = u32_at(body, 0)?.cast_signed();
        return (code == -Errno::NODEV.raw_os_error()).then_some(gone);
    }
    // A bridge reports its ports in messages of its own family: leaving a bridge is not removal.
    if *body.first()? != libc::AF_UNSPEC as u8 || u32_at(body, 4)? != index {
        return None;
    }
    match kind {
        libc::RTM_NEWLINK => {
            let up = u32_at(body, 8)? & libc::IFF_UP as u32 != 0;
            let mtu = attributes(body.get(16..)?).find(|(kind, _)| *kind == libc::IFLA_MTU);
            let mtu = mtu.and_then(|(_, value)| u32_at(value, 0));
            Some(News { link: if up { Link::Up } else { Link::Down }, mtu })
        }
        libc::RTM_DELLINK => Some(gone),
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
        let link = |kind, body: &[u8], index| understand(kind, body, index).map(|news| news.link);
        assert_eq!(link(libc::RTM_NEWLINK, &up, 7), Some(Link::Up));
        assert_eq!(link(libc::RTM_NEWLINK, &down, 7), Some(Link::Down));
        assert_eq!(link(libc::RTM_DELLINK, &down, 7), Some(Link::Gone));
        assert_eq!(link(libc::RTM_DELLINK, &down, 8), None);
        assert_eq!(link(libc::RTM_DELLINK, &body(libc::AF_BRIDGE as u8, 7, 0), 7), None);
        assert_eq!(link(libc::RTM_NEWADDR, &up, 7), None);
    }

    #[test]
    fn an_interface_that_is_not_found_is_gone() {
        let error = |code: i32| code.to_ne_bytes();
        let kind = libc::NLMSG_ERROR as u16;
        let gone = News { link: Link::Gone, mtu: None };
        assert_eq!(understand(kind, &error(-libc::ENODEV), 7), Some(gone));
        assert_eq!(understand(kind, &error(0), 7), None);
    }

    #[test]
    fn a_message_may_say_the_mtu() {
        let up = body(0, 7, libc::IFF_UP);
        let attribute = |kind: u16, value: &[u8]| {
            let length = 4 + value.len() as u16;
            [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
        };
        let with =
            |attributes: &[u8]| understand(libc::RTM_NEWLINK, &[&up[..], attributes].concat(), 7).unwrap();
        let name = attribute(libc::IFLA_IFNAME, b"ack0");
        let mtu = attribute(libc::IFLA_MTU, &1_280_u32.to_ne_bytes());
        assert_eq!(with(&[&name[..], &mtu].concat()), News { link: Link::Up, mtu: Some(1_280) });
        assert_eq!(with(&name).mtu, None);
        assert_eq!(with(&mtu[..6]).mtu, None, "cut short");
        assert_eq!(with(&attribute(libc::IFLA_MTU, &[0; 2])).mtu, None, "too short");
    }

    #[test]
    fn messages_that_are_cut_short_say_nothing() {
        let whole = body(0, 7, 0);
        for length in 0..8 {
            assert_eq!(understand(libc::RTM_DELLINK, &whole[..length], 7), None, "{length} bytes");
        }
    }
}
