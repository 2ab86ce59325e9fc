//! A host's place on an Ethernet: its neighbours, the packets waiting for them, and the errors for
//! the stack.

use super::frame::addresses;
use super::neighbours::{
    Attachment, AttachmentError, Event, Frame, NeighbourConfig, NeighbourStats, Neighbours, NextHop,
    Unreachable,
};
use super::provision::{Provisioner, Servers};
use super::waiting::{GivenUp, HeldPacket, HoldQueues, unreachable};
use crate::device::OutgoingPacket;
use crate::mac::MacAddress;
use ackline_tcp_core::Instant;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Maximum number of ICMP errors waiting for the stack; more are dropped, as they may be on a
/// network.
const MAX_ERRORS: usize = 4_096;

/// What a device drives. It has no clock and no descriptor.
///
/// **After each input ([`route`](Self::route), [`ingest`](Self::ingest),
/// [`handle_timeout`](Self::handle_timeout)) send what [`next_output`](Self::next_output) gives,
/// hand the stack what [`next_error`](Self::next_error) gives, and call `handle_timeout` at
/// [`poll_timeout`](Self::poll_timeout).**
#[derive(Debug)]
pub(in crate::device) struct Resolver {
    neighbours: Neighbours,
    waiting: HoldQueues,
    /// Packets that waited and can go now, in order.
    ready: VecDeque<(MacAddress, HeldPacket)>,
    frame: Option<Frame>,
    /// What configures other hosts, if anything does.
    provisioner: Option<Provisioner>,
    /// Changes of its deadline.
    provisioned: u64,
    errors: VecDeque<Box<[u8]>>,
    in_use: Option<(IpAddr, MacAddress)>,
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Route {
    /// Send it to this station at once.
    Send(MacAddress),
    /// It was copied; it is sent or dropped later.
    Kept,
    /// It cannot be sent; the stack gets an ICMP error.
    Refused(Unreachable),
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) enum Output<'a> {
    /// A message of neighbour resolution, or of what configures other hosts.
    Frame(&'a [u8]),
    /// A packet that waited, to a station.
    Packet(MacAddress, OutgoingPacket<'a>),
}

impl Resolver {
    pub(in crate::device) fn new(
        attachment: Attachment,
        config: NeighbourConfig,
        seed: [u8; 32],
    ) -> Result<Self, AttachmentError> {
        let waiting = HoldQueues::new(config.max_waiting, config.max_waiting_total);
        let neighbours = Neighbours::new(attachment, config, seed)?;
        let (ready, errors) = (VecDeque::new(), VecDeque::new());
        let provisioner = None;
        Ok(Self {
            neighbours,
            waiting,
            ready,
            frame: None,
            provisioner,
            provisioned: 0,
            errors,
            in_use: None,
        })
    }

    /// From the end of the claim on, other hosts are configured.
    #[cfg(feature = "frame-socket")]
    pub(in crate::device) fn provide(&mut self, provisioner: Provisioner) {
        self.provisioner = Some(provisioner);
    }

    /// The host's Ethernet address.
    pub(in crate::device) const fn mac(&self) -> MacAddress {
        self.neighbours.mac()
    }

    /// The servers that this host is.
    pub(in crate::device) fn servers(&self) -> Servers {
        self.provisioner.as_ref().map(Provisioner::servers).unwrap_or_default()
    }

    /// Starts claiming the host's addresses.
    pub(in crate::device) fn claim(&mut self, now: Instant) {
        self.neighbours.claim(now);
        self.settle();
    }

    /// True once all addresses are claimed, or one is taken.
    pub(in crate::device) fn is_settled(&self) -> bool {
        self.in_use.is_some() || self.neighbours.is_settled()
    }

    /// An address that was in use when it was claimed, and the station that has it.
    pub(in crate::device) const fn in_use(&self) -> Option<(IpAddr, MacAddress)> {
        self.in_use
    }

    /// As [`Neighbours::groups`].
    #[cfg(feature = "af-packet")]
    pub(in crate::device) fn groups(&self) -> Vec<std::net::Ipv6Addr> {
        self.neighbours.groups()
    }

    pub(in crate::device) const fn stats(&self) -> &NeighbourStats {
        self.neighbours.stats()
    }

    /// Decides where a packet that is sent now goes.
    pub(in crate::device) fn route(&mut self, now: Instant, packet: &OutgoingPacket<'_>) -> Route {
        let Some((_, destination)) = addresses(packet.header) else {
            return Route::Refused(Unreachable::NotOnNetworks(IpAddr::from([0; 4])));
        };
        match self.neighbours.resolve(now, destination) {
            NextHop::Mac(mac) => Route::Send(mac),
            NextHop::Pending(hop) => {
                // A neighbour that was forgotten to make room for this one.
                self.settle();
                let dropped = self.waiting.push(hop, packet);
                let stats = &mut self.neighbours.stats;
                stats.waited += 1;
                stats.waiting_dropped += dropped;
                Route::Kept
            }
            NextHop::Unreachable(why) => {
                self.tell(packet, GivenUp::NoRoute);
                Route::Refused(why)
            }
        }
    }

    /// Takes a received frame of neighbour resolution, or a request for configuration.
    pub(in crate::device) fn ingest(&mut self, now: Instant, frame: &[u8]) {
        self.neighbours.ingest(now, frame);
        if let Some(provisioner) = self.provisioner.as_mut().filter(|_| self.neighbours.is_settled()) {
            provisioner.ingest(now, frame, &mut self.neighbours.stats);
            self.provisioned += 1;
        }
        self.settle();
    }

    pub(in crate::device) fn handle_timeout(&mut self, now: Instant) {
        self.neighbours.handle_timeout(now);
        if let Some(provisioner) = &mut self.provisioner {
            provisioner.handle_timeout(now, &mut self.neighbours.stats);
            self.provisioned += 1;
        }
        self.settle();
    }

    /// The host's addresses are its own: it may say what others are to use.
    pub(in crate::device) fn begin(&mut self, now: Instant) {
        if let Some(provisioner) = &mut self.provisioner {
            provisioner.begin(now);
            self.provisioned += 1;
        }
    }

    /// As [`Neighbours::restored`].
    pub(in crate::device) fn restored(&mut self, now: Instant) {
        self.neighbours.restored(now);
        self.settle();
    }

    pub(in crate::device) fn poll_timeout(&self) -> Option<Instant> {
        let provisioner = self.provisioner.as_ref().and_then(Provisioner::poll_timeout);
        provisioner.into_iter().chain(self.neighbours.poll_timeout()).min()
    }

    /// Another number whenever [`poll_timeout`](Self::poll_timeout) may have changed.
    pub(in crate::device) const fn version(&self) -> u64 {
        self.neighbours.version() + self.provisioned
    }

    /// What is to be sent next; the same until [`sent`](Self::sent). Requests and answers go before
    /// packets.
    pub(in crate::device) fn next_output(&mut self) -> Option<Output<'_>> {
        if self.frame.is_none() {
            self.frame = self.neighbours.poll_transmit();
        }
        let provided = self.provisioner.as_ref().and_then(Provisioner::next);
        match (&self.frame, provided, self.ready.front()) {
            (Some(frame), ..) => Some(Output::Frame(frame)),
            (None, Some(frame), _) => Some(Output::Frame(frame)),
            (None, None, Some((mac, held))) => Some(Output::Packet(*mac, held.packet())),
            (None, None, None) => None,
        }
    }

    /// The last output was sent, or refused permanently.
    pub(in crate::device) fn sent(&mut self) {
        if self.frame.take().is_some() {
            return;
        }
        match self.provisioner.as_mut().filter(|provisioner| provisioner.next().is_some()) {
            Some(provisioner) => provisioner.sent(),
            None => drop(self.ready.pop_front()),
        }
    }

    /// Something is to be sent.
    pub(in crate::device) fn has_output(&self) -> bool {
        let provides = self.provisioner.as_ref().is_some_and(|provisioner| provisioner.next().is_some());
        self.frame.is_some() || provides || !self.ready.is_empty() || self.neighbours.has_outgoing()
    }

    /// The next ICMP error for the stack.
    pub(in crate::device) fn next_error(&mut self) -> Option<Box<[u8]>> {
        self.errors.pop_front()
    }

    /// An error waits for the stack.
    pub(in crate::device) fn has_error(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Handles all pending events.
    fn settle(&mut self) {
        while let Some(event) = self.neighbours.poll_event() {
            match event {
                Event::Resolved { ip, mac } => {
                    self.ready.extend(self.waiting.take(ip).into_iter().map(|held| (mac, held)));
                }
                Event::Failed { ip } => {
                    for held in self.waiting.take(ip) {
                        self.neighbours.stats.waiting_failed += 1;
                        self.tell(&held.packet(), GivenUp::NoAnswer);
                    }
                }
                Event::InUse { ip, mac } => self.in_use = Some((ip, mac)),
                // Conflicts are only counted.
                Event::Claimed { .. } | Event::Conflict { .. } => {}
            }
        }
    }

    fn tell(&mut self, packet: &OutgoingPacket<'_>, why: GivenUp) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.extend(unreachable(packet, why));
        }
    }
}
