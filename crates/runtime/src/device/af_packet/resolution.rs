//! Neighbour resolution driven by the device's clock and socket.

use super::neighbours::{Outbound, Output, Resolver, Route};
use super::socket::PacketSocket;
use super::{LINK, vnet};
use crate::device::unsendable;
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::stack::shard::store;
use crate::timer::{self, Timer};
use ackline_tcp_core::Instant;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io;
use std::net::Ipv6Addr;
use std::task::{Context, Poll, Waker};

/// What the device was doing if claiming its addresses fails.
const CLAIM: &str = "claim the own addresses on the interface";

/// The resolver, its timer, and whom to wake.
#[derive(Debug)]
pub(super) struct Resolution {
    pub(super) resolver: Resolver,
    /// Created when the driver first waits, because opening a device needs no runtime.
    timer: Option<Timer>,
    /// The resolver's next deadline, as of its state `version`.
    next: Option<Instant>,
    version: u64,
    /// The interface was down at the last check.
    was_down: bool,
    /// The driver, if it waits.
    driver: Option<Waker>,
    /// The ICMP error that the stack reads.
    error: Box<[u8]>,
    /// Keeps the kernel reporting the multicast groups.
    _memberships: Option<OwnedFd>,
}

/// Makes the kernel report `groups` to the link's multicast routers and snooping switches by MLD (RFC 9777)
/// while the descriptor is open: RFC 4861, section 7.2.1, asks for it. Without IPv6 in the kernel or on the
/// interface there are no reports; that only matters on switches that filter multicast.
pub(super) fn report(groups: &[Ipv6Addr], interface: u32) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, flags, None).ok()?;
    groups.iter().try_for_each(|group| sockopt::set_ipv6_add_membership(&socket, group, interface)).ok()?;
    (!groups.is_empty()).then_some(socket)
}

impl Resolution {
    pub(super) fn new(resolver: Resolver, memberships: Option<OwnedFd>) -> Self {
        let error = Box::default();
        Self {
            resolver,
            timer: None,
            next: None,
            version: 0,
            was_down: false,
            driver: None,
            error,
            _memberships: memberships,
        }
    }

    /// Claims the host's addresses, blocking the calling thread.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if another host has one of them.
    pub(super) fn claim(&mut self, socket: &mut PacketSocket, interface: &str) -> Result<()> {
        let failed = |source| Error::System { action: CLAIM, source };
        self.resolver.claim(timer::now());
        loop {
            // Frames that do not fit into the device go a little later.
            let _ = self.send(socket);
            if let Some((address, mac)) = self.resolver.in_use() {
                return Err(Error::AddressInUse { address, mac, interface: interface.to_owned() });
            }
            let Some(deadline) = self.resolver.poll_timeout().filter(|_| !self.resolver.is_settled()) else {
                return Ok(());
            };
            socket.wait_until(deadline).map_err(failed)?;
            socket.take_neighbours(|frame| self.resolver.ingest(timer::now(), frame)).map_err(failed)?;
            self.resolver.handle_timeout(timer::now());
        }
    }

    /// The station to send a packet to; `None` if the packet was kept for later.
    ///
    /// # Errors
    /// `WouldBlock` if the device is full; `NetworkDown` while the interface is down; `HostUnreachable` if
    /// there is no route to the destination, which is reported to the stack.
    pub(super) fn route(
        &mut self,
        socket: &mut PacketSocket,
        packet: &Outbound<'_>,
    ) -> io::Result<Option<MacAddress>> {
        let now = timer::now();
        if socket.is_down() {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        self.serve(now, socket);
        // Packets that waited go first.
        if self.resolver.has_output() {
            self.send(socket)?;
        }
        let route = self.resolver.route(now, packet);
        self.settle(socket);
        match route {
            Route::Send(mac) => Ok(Some(mac)),
            Route::Kept => Ok(None),
            Route::Refused(why) => Err(io::Error::new(io::ErrorKind::HostUnreachable, why)),
        }
    }

    /// A frame with neighbour resolution in it arrived.
    pub(super) fn ingest(&mut self, frame: &[u8]) {
        self.resolver.ingest(timer::now(), frame);
    }

    /// Takes the next ICMP error for the stack: true if there is one, then [`error`](Self::error) returns it.
    pub(super) fn take_error(&mut self) -> bool {
        let next = self.resolver.next_error();
        let is_there = next.is_some();
        self.error = next.unwrap_or_default();
        is_there
    }

    pub(super) const fn error(&self) -> &[u8] {
        &self.error
    }

    /// Handles a deadline if it has passed.
    pub(super) fn serve_deadline(&mut self, socket: &mut PacketSocket) {
        if self.next.is_some() {
            self.serve(timer::now(), socket);
        }
    }

    /// While the interface is down time stands still: an unanswered request that could not be sent says
    /// nothing about the neighbour.
    fn serve(&mut self, now: Instant, socket: &mut PacketSocket) {
        if self.next.is_some_and(|at| at <= now) && !socket.is_down() {
            self.resolver.handle_timeout(now);
            self.settle(socket);
        }
    }

    /// After an input: sends, sets the timer, and wakes the driver if there is work for it.
    pub(super) fn settle(&mut self, socket: &mut PacketSocket) {
        if self.resolver.has_output() {
            // The driver sends the rest when the device has room.
            let _ = self.send(socket);
        }
        let version = self.resolver.version();
        if self.version != version {
            (self.version, self.next) = (version, self.resolver.poll_timeout());
            // If the timer cannot be set, the driver wakes at once and gets the error.
            let armed = self.timer.as_mut().map_or(Ok(()), |timer| timer.arm(self.next));
            if armed.is_err() {
                self.wake();
            }
        }
        if self.resolver.has_error() || self.resolver.has_output() {
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Handles deadlines, sends what waits for room, and registers the task to be woken. Ready if an error is
    /// waiting for the stack.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, socket: &mut PacketSocket) -> Poll<io::Result<()>> {
        // The driver is running; it waits for room below.
        self.driver = None;
        if std::mem::replace(&mut self.was_down, socket.is_down()) && !self.was_down {
            self.resolver.restored(timer::now());
        }
        self.settle(socket);
        while !socket.is_down() {
            let timer = match &mut self.timer {
                Some(timer) => timer,
                None => self.timer.insert(Timer::new()?),
            };
            timer.arm(self.next)?;
            let Poll::Ready(now) = timer.poll_expired(cx) else { break };
            self.serve(now?, socket);
        }
        while self.resolver.has_output() && socket.poll_writable(cx)?.is_ready() {
            let _ = self.send(socket);
        }
        store(&mut self.driver, cx.waker());
        if self.resolver.has_error() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends the resolver's output; an error means that the device is full or the interface down, and the
    /// rest waits.
    fn send(&mut self, socket: &mut PacketSocket) -> io::Result<()> {
        while let Some(output) = self.resolver.next_output() {
            let is_message = matches!(output, Output::Frame(_));
            let outcome = match output {
                Output::Frame(frame) => socket.send_frame(frame),
                Output::Packet(mac, Outbound { header, payload, segment_size, checksum }) => {
                    vnet::build_behind(LINK, header, segment_size, checksum)
                        .map_err(unsendable)
                        .and_then(|virtio| socket.send(mac, virtio, header, payload))
                }
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => {
                    self.was_down = true;
                    if !is_message {
                        return Err(error);
                    }
                    // The request is repeated when the interface is up.
                    self.resolver.sent();
                }
                // A frame that the kernel refuses is lost, as it may be on the wire.
                _ => self.resolver.sent(),
            }
        }
        Ok(())
    }
}
