//! Neighbour resolution driven by the device's clock and wire.
//!
//! The queues of one interface share the resolver, behind a lock that is held for one look-up: an
//! answer comes to one queue, and packets of another one may wait for it. Each queue has its own
//! timer, and whichever is called first serves a deadline.

use super::Wire;
use super::frame::{self, Content};
use super::provision::Servers;
use super::resolver::{Output, Resolver, Route};
use crate::device::interface::MAX_SKIPPED;
use crate::device::{DeviceStats, NeighbourStats, OutgoingPacket};
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::timer::{self, Timer};
use crate::wakes::store;
use ackline_tcp_core::Instant;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What the device was doing if claiming its addresses fails.
const CLAIM: &str = "claim the own addresses on the interface";

/// The resolver, its timer, and whom to wake.
#[derive(Debug)]
pub(in crate::device) struct Resolution {
    resolver: Arc<Mutex<Resolver>>,
    /// The host's Ethernet address.
    mac: MacAddress,
    /// Requests for these are no packets for the stack.
    servers: Servers,
    /// Of the first queue, which reports the counters, and that the interface is up again.
    is_first: bool,
    /// Created when the driver first waits, because opening a device needs no runtime.
    timer: Option<Timer>,
    /// The resolver's next deadline, as of its state `version`.
    next: Option<Instant>,
    version: u64,
    /// The interface was down at the last check.
    was_down: bool,
    /// The driver, if it waits.
    driver: Option<Waker>,
    /// There may be an ICMP error that the stack has not read.
    has_error: bool,
    /// The one that it reads.
    error: Box<[u8]>,
}

/// Nothing panics under the lock but the allocator.
fn lock(resolver: &Mutex<Resolver>) -> MutexGuard<'_, Resolver> {
    resolver.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resolution {
    pub(in crate::device) fn new(resolver: Resolver) -> Self {
        Self::of(Arc::new(Mutex::new(resolver)), true)
    }

    /// For another queue of the same interface.
    #[cfg(feature = "af-packet")]
    pub(in crate::device) fn beside(&self) -> Self {
        Self::of(self.resolver.clone(), false)
    }

    fn of(resolver: Arc<Mutex<Resolver>>, is_first: bool) -> Self {
        let (mac, servers) = {
            let resolver = lock(&resolver);
            (resolver.mac(), resolver.servers())
        };
        Self {
            resolver,
            mac,
            servers,
            is_first,
            timer: None,
            next: None,
            version: 0,
            was_down: false,
            driver: None,
            has_error: false,
            error: Box::default(),
        }
    }

    /// The multicast groups of neighbour discovery.
    #[cfg(feature = "af-packet")]
    pub(in crate::device) fn groups(&self) -> Vec<std::net::Ipv6Addr> {
        self.resolver().groups()
    }

    /// The host's Ethernet address.
    pub(super) const fn mac(&self) -> MacAddress {
        self.mac
    }

    fn resolver(&self) -> MutexGuard<'_, Resolver> {
        lock(&self.resolver)
    }

    /// Claims the host's addresses, blocking the calling thread.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if another host has one of them.
    pub(in crate::device) fn claim(&mut self, wire: &mut impl Wire, interface: &str) -> Result<()> {
        let failed = |source| Error::System { action: CLAIM, source };
        self.resolver().claim(timer::now());
        loop {
            // Frames that do not fit into the device go a little later.
            let _ = self.send(wire);
            let mut resolver = self.resolver();
            if let Some((address, mac)) = resolver.in_use() {
                return Err(Error::AddressInUse { address, mac, interface: interface.to_owned() });
            }
            let Some(deadline) = resolver.poll_timeout().filter(|_| !resolver.is_settled()) else {
                resolver.begin(timer::now());
                return Ok(());
            };
            drop(resolver);
            wire.wait_until(deadline).map_err(failed)?;
            self.take_neighbours(wire).map_err(failed)?;
            self.resolver().handle_timeout(timer::now());
        }
    }

    /// Takes waiting frames of neighbour resolution, and drops the others; a batch at most.
    fn take_neighbours(&mut self, wire: &mut impl Wire) -> io::Result<()> {
        for _ in 0..MAX_SKIPPED {
            match wire.receive() {
                Ok(Some(slot)) => {
                    let frame = wire.frame(slot);
                    if frame::content(frame) == Content::Neighbours {
                        self.resolver().ingest(timer::now(), frame);
                    }
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next packet for the stack: in a frame up to this end, or, if `None`, the
    /// [error](Self::error). What is malformed is counted.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; any other error means that the wire is gone.
    pub(in crate::device) fn next_packet<W: Wire>(
        &mut self,
        wire: &mut W,
        stats: &mut DeviceStats,
    ) -> io::Result<Option<(W::Slot, usize)>> {
        if self.take_error() {
            return Ok(None);
        }
        let received = self.receive(wire, stats);
        if received.is_err() {
            // If the driver polls instead of waiting, nobody else does it.
            self.serve_deadline(wire);
        }
        received.map(Some)
    }

    /// Receives until a frame carries a packet: the frame, and the packet's end in it.
    fn receive<W: Wire>(&mut self, wire: &mut W, stats: &mut DeviceStats) -> io::Result<(W::Slot, usize)> {
        for _ in 0..MAX_SKIPPED {
            let Some(slot) = wire.receive()? else {
                stats.rx_malformed += 1;
                continue;
            };
            let frame = wire.frame(slot);
            match frame::content(frame) {
                Content::Neighbours => {
                    self.resolver().ingest(timer::now(), frame);
                    self.settle(wire);
                }
                Content::Packet { .. } if self.servers.are_asked(frame) => {
                    self.resolver().ingest(timer::now(), frame);
                    self.settle(wire);
                }
                Content::Packet { end } => return Ok((slot, end)),
                Content::Malformed => stats.rx_malformed += 1,
                Content::Other => {}
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The station to send a packet to; `None` if the packet was kept for later.
    ///
    /// # Errors
    /// `WouldBlock` if the device is full; `NetworkDown` while the interface is down;
    /// `HostUnreachable` if there is no route to the destination, which is reported to the stack.
    pub(in crate::device) fn route(
        &mut self,
        wire: &mut impl Wire,
        packet: &OutgoingPacket<'_>,
    ) -> io::Result<Option<MacAddress>> {
        let now = timer::now();
        if wire.is_down() {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        self.serve(now, wire);
        // Packets that waited go first.
        let mut resolver = lock(&self.resolver);
        if resolver.has_output() {
            drop(resolver);
            self.send(wire)?;
            resolver = lock(&self.resolver);
        }
        let route = resolver.route(now, packet);
        let is_settled =
            !resolver.has_output() && !resolver.has_error() && resolver.version() == self.version;
        drop(resolver);
        if !is_settled {
            self.settle(wire);
        }
        match route {
            Route::Send(mac) => Ok(Some(mac)),
            Route::Kept => Ok(None),
            Route::Refused(why) => Err(io::Error::new(io::ErrorKind::HostUnreachable, why)),
        }
    }

    /// Takes the next ICMP error for the stack: true if there is one, then [`error`](Self::error)
    /// returns it.
    fn take_error(&mut self) -> bool {
        let next = if self.has_error { self.resolver().next_error() } else { None };
        self.has_error = next.is_some();
        self.error = next.unwrap_or_default();
        self.has_error
    }

    /// Counters, of all queues.
    pub(in crate::device) fn stats(&self) -> NeighbourStats {
        if self.is_first { *self.resolver().stats() } else { NeighbourStats::default() }
    }

    pub(in crate::device) const fn error(&self) -> &[u8] {
        &self.error
    }

    /// Handles a deadline if it has passed.
    fn serve_deadline(&mut self, wire: &mut impl Wire) {
        if self.next.is_some() {
            self.serve(timer::now(), wire);
        }
    }

    /// While the interface is down time stands still: an unanswered request that could not be sent
    /// says nothing about the neighbour.
    fn serve(&mut self, now: Instant, wire: &mut impl Wire) {
        if self.next.is_some_and(|at| at <= now) && !wire.is_down() {
            self.resolver().handle_timeout(now);
            self.settle(wire);
        }
    }

    /// After an input: sends, sets the timer, and wakes the driver if there is work for it.
    fn settle(&mut self, wire: &mut impl Wire) {
        if self.has_output() {
            // The driver sends the rest when the device has room.
            let _ = self.send(wire);
        }
        let resolver = lock(&self.resolver);
        let (version, next) = (resolver.version(), resolver.poll_timeout());
        self.has_error = resolver.has_error();
        let has_work = self.has_error || resolver.has_output();
        drop(resolver);
        if self.version != version {
            (self.version, self.next) = (version, next);
            // If the timer cannot be set, the driver wakes at once and gets the error.
            let armed = self.timer.as_mut().map_or(Ok(()), |timer| timer.arm(self.next));
            if armed.is_err() {
                self.wake();
            }
        }
        if has_work {
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Handles deadlines, sends what waits for room, and registers the task to be woken. Ready if
    /// an error is waiting for the stack.
    pub(in crate::device) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        wire: &mut impl Wire,
    ) -> Poll<io::Result<()>> {
        // The driver is running; it waits for room below.
        self.driver = None;
        if std::mem::replace(&mut self.was_down, wire.is_down()) && !self.was_down && self.is_first {
            self.resolver().restored(timer::now());
        }
        self.settle(wire);
        while !wire.is_down() {
            let timer = match &mut self.timer {
                Some(timer) => timer,
                None => self.timer.insert(Timer::new()?),
            };
            timer.arm(self.next)?;
            let Poll::Ready(now) = timer.poll_expired(cx) else { break };
            self.serve(now?, wire);
        }
        while self.has_output() && wire.poll_writable(cx)?.is_ready() {
            let _ = self.send(wire);
        }
        store(&mut self.driver, cx.waker());
        self.has_error = lock(&self.resolver).has_error();
        if self.has_error { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn has_output(&self) -> bool {
        self.resolver().has_output()
    }

    /// Sends the resolver's output; an error means that the device is full or the interface down,
    /// and the rest waits.
    fn send<W: Wire>(&mut self, wire: &mut W) -> io::Result<()> {
        let mut resolver = lock(&self.resolver);
        while let Some(output) = resolver.next_output() {
            let is_message = matches!(output, Output::Frame(_));
            let outcome = match output {
                Output::Frame(frame) => wire.send_frame(frame),
                Output::Packet(station, packet) => W::front(&packet).and_then(|front| {
                    wire.send(front, &frame::header(station, self.mac, packet.header), &packet)
                }),
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => {
                    self.was_down = true;
                    if !is_message {
                        return Err(error);
                    }
                    // The request is repeated when the interface is up.
                    resolver.sent();
                }
                // A frame that the kernel refuses is lost, as it may be on the wire.
                _ => resolver.sent(),
            }
        }
        Ok(())
    }
}
