//! Neighbour resolution on Ethernet: ARP (RFC 826, RFC 5227) and IPv6 neighbour discovery (RFC
//! 4861, RFC 4862).
//!
//! | file | owns |
//! |---|---|
//! | `config` | addresses and gateways, timers, limits |
//! | `entry` | one neighbour's state machine |
//! | `table` | all neighbours, bounded |
//! | `claim` | one of the host's addresses: probe, announce, defend |
//! | `next_hop` | through which neighbour a destination is reached |
//! | `hearing` | how other hosts' messages change the state |
//! | `message` | frames, through `smoltcp::wire` |
//!
//! Messages of other hosts update known neighbours, but only two things add one: a packet to be
//! sent to it, and a request or solicitation from it for one of this host's addresses. Unsolicited
//! messages (gratuitous ARP, unsolicited advertisements) add none.
//!
//! The host has no link-local IPv6 address unless it is given one, although RFC 4291, section 2.8,
//! asks for one: the one derived from the interface's Ethernet address usually belongs to the
//! kernel. Solicitations use the source that RFC 4861, section 7.2.2, prefers anyway: the host's
//! address in the neighbour's network. Router advertisements, redirects and the router flags of
//! neighbours are ignored: gateways are configured.

mod address;
mod claim;
mod config;
mod entry;
mod hearing;
mod message;
mod next_hop;
mod table;
#[cfg(test)]
mod tests;

pub use config::{Attachment, AttachmentError, ClaimConfig, NeighbourConfig};
pub use message::Frame;
pub use next_hop::Unreachable;

pub use crate::device::NeighbourStats;
use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use claim::{Claim, Due};
use entry::{Expired, NeighbourState};
use ipnet::IpNet;
use message::{Incoming, Outgoing};
use next_hop::Hop;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use table::{Room, Slot, Table};

/// Neighbour resolution of one interface: no clock, no descriptor.
///
/// **Give inputs ([`resolve`](Self::resolve), [`ingest`](Self::ingest),
/// [`handle_timeout`](Self::handle_timeout)), all stamped with the same instant; then drain
/// [`poll_transmit`](Self::poll_transmit), then [`poll_event`](Self::poll_event); then sleep until
/// [`poll_timeout`](Self::poll_timeout) or the next input.**
///
/// Call [`claim`](Self::claim) first: until [`Event::Claimed`], no message reveals an address of
/// the host.
#[derive(Debug)]
pub struct Neighbours {
    mac: MacAddress,
    own: Vec<Own>,
    gateways: Vec<IpAddr>,
    config: NeighbourConfig,
    table: Table,
    /// The destination of the last packet, and the neighbour it went to.
    last: Option<(IpAddr, Slot)>,
    outgoing: VecDeque<Outgoing>,
    /// Incremented whenever a claim's deadline may have changed.
    claim_changes: u64,
    events: VecDeque<Event>,
    rng: ChaCha8Rng,
    pub(super) stats: NeighbourStats,
}

#[derive(Debug)]
struct Own {
    net: IpNet,
    claim: Claim,
}

/// Where to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// To this station or group.
    Mac(MacAddress),
    /// To the neighbour with this address, whose resolution is under way: [`Event::Resolved`] or
    /// [`Event::Failed`] follows.
    Pending(IpAddr),
    /// Nowhere.
    Unreachable(Unreachable),
}

/// An outcome of neighbour resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A neighbour that was [`Pending`](NextHop::Pending) is at `mac`.
    Resolved {
        /// The neighbour's address.
        ip: IpAddr,
        /// Its Ethernet address.
        mac: MacAddress,
    },
    /// A neighbour that was [`Pending`](NextHop::Pending) did not answer, or was evicted.
    Failed {
        /// The neighbour's address.
        ip: IpAddr,
    },
    /// No other host uses this address; it is claimed.
    Claimed {
        /// The host's address.
        ip: IpAddr,
    },
    /// Another host has this address; it is not used.
    InUse {
        /// The host's address.
        ip: IpAddr,
        /// Its owner.
        mac: MacAddress,
    },
    /// Another host uses an address that this host has claimed; reported at most once per
    /// [`defend_interval`](ClaimConfig::defend_interval).
    Conflict {
        /// The host's address.
        ip: IpAddr,
        /// Its user.
        mac: MacAddress,
    },
}

impl Neighbours {
    /// Starts with an empty table and no claimed address. `seed` scatters the reachable times.
    ///
    /// # Errors
    /// [`AttachmentError`] if the addresses are invalid.
    pub fn new(
        attachment: Attachment,
        config: NeighbourConfig,
        seed: [u8; 32],
    ) -> Result<Self, AttachmentError> {
        attachment.check()?;
        let Attachment { mac, addresses, gateways, neighbours } = attachment;
        let own = addresses.into_iter().map(|net| Own { net, claim: Claim::Unclaimed }).collect();
        let kept = gateways.iter().chain(neighbours.iter().map(|(ip, _)| ip)).copied().collect();
        let mut table = Table::new(config.max_entries, kept);
        for (ip, mac) in neighbours {
            match table.find(ip) {
                // The last one given counts.
                Some(slot) => drop(table.update(slot, |state| *state = NeighbourState::Permanent { mac })),
                None => drop(table.insert(Instant::ZERO, ip, NeighbourState::Permanent { mac }, Room::ByUse)),
            }
        }
        Ok(Self {
            mac,
            own,
            table,
            gateways,
            config,
            last: None,
            outgoing: VecDeque::new(),
            claim_changes: 0,
            events: VecDeque::new(),
            rng: ChaCha8Rng::from_seed(seed),
            stats: NeighbourStats::default(),
        })
    }

    /// Starts probing for all of the host's addresses. Each ends with [`Event::Claimed`] or
    /// [`Event::InUse`].
    pub fn claim(&mut self, now: Instant) {
        for own in &mut self.own {
            own.claim.begin(now);
        }
        self.handle_timeout(now);
    }

    /// True once every address is either claimed or taken.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.own.iter().all(|own| !own.claim.is_probing())
    }

    /// The interface's Ethernet address.
    #[must_use]
    pub const fn mac(&self) -> MacAddress {
        self.mac
    }

    /// The multicast groups that the interface must receive: all-nodes and the solicited-node
    /// groups of the host's IPv6 addresses (RFC 4861, section 7.2.1); empty without an IPv6
    /// address.
    #[must_use]
    pub fn groups(&self) -> Vec<Ipv6Addr> {
        let own = self.own.iter().filter_map(|own| match own.net {
            IpNet::V6(net) => Some(address::solicited_node(net.addr())),
            IpNet::V4(_) => None,
        });
        let mut groups: Vec<_> = own.collect();
        if !groups.is_empty() {
            groups.push(address::ALL_NODES);
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The next hop for a packet to `dst` that is sent now. Starts a resolution if the neighbour is
    /// unknown.
    pub fn resolve(&mut self, now: Instant, dst: IpAddr) -> NextHop {
        if let Some((last, slot)) = self.last
            && last == dst
            && let Some(hop) = self.send_to(now, slot)
        {
            return hop;
        }
        let ip = match self.hop(dst) {
            Ok(Hop::Group(mac)) => return NextHop::Mac(mac),
            Ok(Hop::Neighbour(ip)) => ip,
            Err(unreachable) => return NextHop::Unreachable(unreachable),
        };
        let slot = match self.table.find(ip) {
            Some(slot) => slot,
            None => {
                let next = now + self.config.retransmit;
                let state = NeighbourState::Incomplete { sent: 1, next };
                let Some(slot) = self.insert(now, ip, state, Room::ByUse) else {
                    return NextHop::Unreachable(Unreachable::NoRoom(ip));
                };
                self.ask(ip, None);
                slot
            }
        };
        self.last = Some((dst, slot));
        self.send_to(now, slot).unwrap_or(NextHop::Pending(ip))
    }

    /// Books a packet to a neighbour.
    fn send_to(&mut self, now: Instant, slot: Slot) -> Option<NextHop> {
        self.table.touch(now, slot);
        let entry = self.table.get(slot)?;
        let hop = entry.state.mac().map_or(NextHop::Pending(entry.ip), NextHop::Mac);
        if entry.state.heeds_use(now) {
            let config = &self.config;
            self.table.update(slot, |state| state.used(now, config));
        }
        Some(hop)
    }

    /// Takes a received frame, including its Ethernet header, without a VLAN tag. Returns true if
    /// it was neighbour resolution, valid or not, so nobody else needs to see it.
    pub fn ingest(&mut self, now: Instant, frame: &[u8]) -> bool {
        match message::parse(frame) {
            Ok(None) => return false,
            Ok(Some(Incoming::Arp(arp))) => self.on_arp(now, &arp),
            Ok(Some(Incoming::Solicitation(solicitation))) => self.on_solicitation(now, &solicitation),
            Ok(Some(Incoming::Advertisement(advertisement))) => self.on_advertisement(now, &advertisement),
            Ok(Some(Incoming::Unused)) => {}
            Err(message::Invalid) => self.stats.invalid += 1,
        }
        true
    }

    fn insert(&mut self, now: Instant, ip: IpAddr, state: NeighbourState, room: Room) -> Option<Slot> {
        let (slot, evicted) = self.table.insert(now, ip, state, room)?;
        if let Some(evicted) = evicted {
            self.last = None;
            self.stats.evictions += 1;
            if evicted.state.mac().is_none() {
                self.stats.failures += 1;
                self.events.push_back(Event::Failed { ip: evicted.ip });
            }
        }
        Some(slot)
    }

    /// Serves all deadlines up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.claim_changes += 1;
        for index in 0..self.own.len() {
            let Some(own) = self.own.get_mut(index) else { break };
            let ip = own.net.addr();
            match own.claim.expired(now, &self.config.claim) {
                Due::Probe => self.push(Outgoing::Probe { target: ip }),
                Due::Claimed => {
                    self.events.push_back(Event::Claimed { ip });
                    if self.config.claim.announcements > 0 {
                        self.push(Outgoing::Announce { own: ip });
                    }
                }
                Due::Announce => self.push(Outgoing::Announce { own: ip }),
                Due::Wait => {}
            }
        }
        while let Some(slot) = self.table.due(now) {
            let config = &self.config;
            let Some(ip) = self.table.get(slot).map(|entry| entry.ip) else { break };
            match self.table.update(slot, |state| state.expired(now, config)) {
                Some(Expired::AskAll) => self.ask(ip, None),
                Some(Expired::Ask(mac)) => self.ask(ip, Some(mac)),
                Some(Expired::Forget) => self.forget(slot),
                Some(Expired::Fail) => {
                    self.forget(slot);
                    self.events.push_back(Event::Failed { ip });
                }
                // A deadline in `due` is the state's own.
                Some(Expired::Wait) | None => break,
            }
        }
    }

    /// The interface was down and carries frames again: unanswered requests are repeated. O(number
    /// of neighbours).
    pub fn restored(&mut self, now: Instant) {
        for slot in self.table.slots() {
            self.table.update(slot, |state| state.ask_anew(now));
        }
        self.handle_timeout(now);
    }

    /// A neighbour did not answer. The next packet for it asks the whole link again: RFC 4861,
    /// section 7.3.3.
    fn forget(&mut self, slot: Slot) {
        self.last = None;
        self.stats.failures += 1;
        self.table.remove(slot);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let claims = self.own.iter().filter_map(|own| own.claim.deadline());
        claims.chain(self.table.next_deadline()).min()
    }

    /// A number that changes whenever [`poll_timeout`](Self::poll_timeout) may have changed.
    pub(super) const fn version(&self) -> u64 {
        self.claim_changes + self.table.version()
    }

    /// The next frame to send. A frame that the device refuses is lost, as on the wire: the request
    /// is repeated later.
    pub fn poll_transmit(&mut self) -> Option<Frame> {
        self.outgoing.pop_front().map(|message| message.frame(self.mac))
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &NeighbourStats {
        &self.stats
    }

    /// Number of neighbours in the table, including those that have not answered yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    fn claim_of(&self, ip: IpAddr) -> Option<&Claim> {
        self.own.iter().find(|own| own.net.addr() == ip).map(|own| &own.claim)
    }

    fn ask(&mut self, ip: IpAddr, to: Option<MacAddress>) {
        // Some own address has the version of each neighbour: `hop` sees to it.
        if let Some(from) = self.source_for(ip) {
            self.stats.requests_sent += 1;
            self.push(Outgoing::Request { from, target: ip, to });
        }
    }

    fn reply(&mut self, reply: Outgoing) {
        self.stats.replies_sent += 1;
        self.push(reply);
    }

    fn push(&mut self, message: Outgoing) {
        if self.outgoing.len() < self.config.max_outgoing {
            self.outgoing.push_back(message);
        } else {
            self.stats.outgoing_dropped += 1;
        }
    }

    /// RFC 4861, section 6.3.2: from 0.5 (MIN_RANDOM_FACTOR) to 1.5 (MAX_RANDOM_FACTOR) times the
    /// mean.
    fn reachable_time(&mut self) -> Duration {
        let per_mille = 500 + u64::from(self.rng.next_u32()) % 1_001;
        self.config.reachable.mul_ratio(per_mille, 1_000)
    }
}
