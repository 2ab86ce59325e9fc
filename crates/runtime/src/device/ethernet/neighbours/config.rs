//! Addresses, gateways, timers and limits of neighbour resolution on one interface.

use super::address::{is_host, is_link_local};
use crate::mac::MacAddress;
use ackline_tcp_core::Duration;
use ipnet::IpNet;
use std::net::IpAddr;
use thiserror::Error;

/// How a host is attached to an Ethernet: its addresses there, and who forwards for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The interface's Ethernet address.
    pub mac: MacAddress,
    /// The host's addresses. Destinations inside one of their prefixes are reached directly.
    pub addresses: Vec<IpNet>,
    /// The next hop of everything else, at most one per IP version.
    pub gateways: Vec<IpAddr>,
    /// Neighbours with a fixed Ethernet address: never resolved, and never changed by received
    /// messages.
    pub neighbours: Vec<(IpAddr, MacAddress)>,
}

/// Why an [`Attachment`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachmentError {
    /// Unspecified, loopback, multicast or broadcast.
    #[error("{0} cannot be the address of a host on an Ethernet")]
    NotAHost(IpAddr),
    /// A group, or all zeros.
    #[error("{0} cannot be the Ethernet address of a host")]
    NotAStation(MacAddress),
    /// No own address at all.
    #[error("no own address: an Ethernet interface needs at least one, as 192.0.2.5/24")]
    NoAddress,
    /// Two gateways for the same IP version.
    #[error("{0} and {1} are two gateways for one IP version: give one")]
    TwoGateways(IpAddr, IpAddr),
    /// The gateway is one of the host's own addresses.
    #[error("the gateway {0} is an own address: give the address of the router")]
    OwnGateway(IpAddr),
    /// None of the host's networks contains the gateway.
    #[error(
        "the gateway {0} is not in the network of an own address: give a gateway inside one, or an own address whose \
         prefix contains it (or one with the prefix /32 or /128, which takes any gateway)"
    )]
    GatewayOffLink(IpAddr),
}

impl Attachment {
    /// An interface with this Ethernet address and no IP address yet.
    #[must_use]
    pub const fn new(mac: MacAddress) -> Self {
        Self { mac, addresses: Vec::new(), gateways: Vec::new(), neighbours: Vec::new() }
    }

    /// Adds an address of the host.
    #[must_use]
    pub fn address(mut self, address: IpNet) -> Self {
        self.addresses.push(address);
        self
    }

    /// Adds a gateway.
    #[must_use]
    pub fn gateway(mut self, gateway: IpAddr) -> Self {
        self.gateways.push(gateway);
        self
    }

    /// Sets a neighbour's Ethernet address.
    #[must_use]
    pub fn neighbour(mut self, address: IpAddr, mac: MacAddress) -> Self {
        self.neighbours.push((address, mac));
        self
    }

    /// Checks that hosts can be reached with these addresses and can answer.
    ///
    /// # Errors
    /// [`AttachmentError`] says what is wrong.
    pub fn check(&self) -> Result<(), AttachmentError> {
        let mut stations = self.neighbours.iter().map(|&(_, mac)| mac).chain([self.mac]);
        if let Some(mac) = stations.find(|mac| !mac.is_station()) {
            return Err(AttachmentError::NotAStation(mac));
        }
        if self.addresses.is_empty() {
            return Err(AttachmentError::NoAddress);
        }
        let own = self.addresses.iter().map(IpNet::addr);
        let others = self.gateways.iter().chain(self.neighbours.iter().map(|(address, _)| address));
        if let Some(bad) = own.chain(others.copied()).find(|&address| !is_host(address)) {
            return Err(AttachmentError::NotAHost(bad));
        }
        for (index, &gateway) in self.gateways.iter().enumerate() {
            let earlier = self.gateways.iter().take(index);
            if let Some(&other) = earlier.into_iter().find(|other| other.is_ipv4() == gateway.is_ipv4()) {
                return Err(AttachmentError::TwoGateways(other, gateway));
            }
            if self.addresses.iter().any(|own| own.addr() == gateway) {
                return Err(AttachmentError::OwnGateway(gateway));
            }
            if !self.addresses.iter().any(|own| reaches(own, gateway)) {
                return Err(AttachmentError::GatewayOffLink(gateway));
            }
        }
        Ok(())
    }
}

/// True if the gateway can be reached from this address.
fn reaches(own: &IpNet, gateway: IpAddr) -> bool {
    let alone = own.prefix_len() == own.max_prefix_len();
    own.contains(&gateway) || own.addr().is_ipv4() == gateway.is_ipv4() && (alone || is_link_local(gateway))
}

/// Timers and limits of neighbour resolution. Names in parentheses are those of RFC 4861, section
/// 10; ARP uses the same values, since RFC 826 defines none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeighbourConfig {
    /// Maximum number of neighbours to remember, at least 1, not counting gateways and fixed
    /// entries. Default 1024.
    pub max_entries: usize,
    /// Time between two requests for one neighbour (RETRANS_TIMER). Default 1 s.
    pub retransmit: Duration,
    /// Requests to the whole link before a neighbour counts as missing (MAX_MULTICAST_SOLICIT), at
    /// least 1. Default 3.
    pub multicast_requests: u32,
    /// Requests to the address that a neighbour had, before it is forgotten (MAX_UNICAST_SOLICIT),
    /// at least 1. Default 3.
    pub unicast_requests: u32,
    /// Mean time for which an answer proves that a neighbour is reachable (REACHABLE_TIME); each
    /// entry draws its own, 0.5 to 1.5 times this. Default 30 s.
    pub reachable: Duration,
    /// Time between the first packet to a neighbour that has not been heard from lately and the
    /// probe of whether it is still there (DELAY_FIRST_PROBE_TIME). Default 5 s.
    pub delay: Duration,
    /// Maximum number of answers and requests waiting for the device; more are dropped and counted.
    /// Default 64.
    pub max_outgoing: usize,
    /// Maximum bytes waiting for the resolution of one neighbour, including headers and
    /// bookkeeping; the oldest packets are dropped and counted. Default 212,992, as Linux's
    /// `unres_qlen_bytes`.
    pub max_waiting: usize,
    /// The same limit for all neighbours together. Default 1 MiB.
    pub max_waiting_total: usize,
    /// How the host claims its addresses.
    pub claim: ClaimConfig,
}

impl Default for NeighbourConfig {
    fn default() -> Self {
        Self {
            max_entries: 1024,
            retransmit: Duration::from_secs(1),
            multicast_requests: 3,
            unicast_requests: 3,
            reachable: Duration::from_secs(30),
            delay: Duration::from_secs(5),
            max_outgoing: 64,
            max_waiting: 212_992,
            max_waiting_total: 1 << 20,
            claim: ClaimConfig::default(),
        }
    }
}

/// How the host checks that nobody else has its addresses and announces them: RFC 5227 for IPv4,
/// RFC 4862, section 5.4, for IPv6.
///
/// The RFCs' times suit a host that boots with thousands of others: up to 7 s before an IPv4
/// address is used, 1 s for an IPv6 address. That is too long for a program that opens a device. On
/// a working Ethernet an answer takes less than a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimConfig {
    /// Probes before an address is used (PROBE_NUM: 3; DupAddrDetectTransmits: 1); 0 uses it at
    /// once. Default 3.
    pub probes: u32,
    /// Time between probes, and from the last probe to the first use of the address (PROBE_MIN: 1
    /// s, ANNOUNCE_WAIT: 2 s; RETRANS_TIMER: 1 s). Default 100 ms.
    pub probe_interval: Duration,
    /// Announcements that the address is this host's (ANNOUNCE_NUM: 2; MAX_NEIGHBOR_ADVERTISEMENT:
    /// 3). Default 2.
    pub announcements: u32,
    /// Time between announcements (ANNOUNCE_INTERVAL: 2 s). Default 2 s.
    pub announce_interval: Duration,
    /// Least time between two defences of one address (DEFEND_INTERVAL: 10 s). Default 10 s.
    pub defend_interval: Duration,
}

impl Default for ClaimConfig {
    fn default() -> Self {
        Self {
            probes: 3,
            probe_interval: Duration::from_millis(100),
            announcements: 2,
            announce_interval: Duration::from_secs(2),
            defend_interval: Duration::from_secs(10),
        }
    }
}
