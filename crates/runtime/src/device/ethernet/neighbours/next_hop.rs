//! The next hop of a destination: RFC 1122, section 3.3.1.1, and RFC 4861, section 5.2.
//!
//! With the prefixes of the host's addresses and one gateway per IP version, longest-prefix match
//! reduces to: one of the host's networks, else the gateway.

use super::Neighbours;
use super::address::is_link_local;
use crate::mac::MacAddress;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};
use thiserror::Error;

/// The next hop of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// A group of stations, or all.
    Group(MacAddress),
    /// One neighbour: the destination itself or a gateway.
    Neighbour(IpAddr),
}

/// Why a destination cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// It is in none of the host's networks, and there is no gateway.
    #[error(
        "no route to {0}: it is not in the network of an own address, and there is no gateway for its IP version"
    )]
    NoRoute(IpAddr),
    /// It is one of the host's own addresses; the interface has no loopback.
    #[error("{0} is an own address: packets to it never reach the interface")]
    Own(IpAddr),
    /// It is unspecified or a loopback address.
    #[error("{0} is no address on a network")]
    NotOnNetworks(IpAddr),
    /// The table is full of gateways, which are never evicted.
    #[error("no room to remember the neighbour {0}")]
    NoRoom(IpAddr),
}

impl Neighbours {
    pub(super) fn hop(&self, dst: IpAddr) -> Result<Hop, Unreachable> {
        if dst.is_unspecified() || dst.is_loopback() {
            return Err(Unreachable::NotOnNetworks(dst));
        }
        if dst.is_multicast() {
            return Ok(Hop::Group(MacAddress::multicast(dst)));
        }
        let mut on_link = is_link_local(dst) && self.own.iter().any(|own| own.net.addr().is_ipv6());
        for own in &self.own {
            if own.net.addr() == dst {
                return Err(Unreachable::Own(dst));
            }
            if is_broadcast(&own.net, dst) {
                return Ok(Hop::Group(MacAddress::BROADCAST));
            }
            on_link |= own.net.contains(&dst);
        }
        if on_link {
            return Ok(Hop::Neighbour(dst));
        }
        let gateway = self.gateways.iter().find(|gateway| gateway.is_ipv4() == dst.is_ipv4());
        gateway.map(|&gateway| Hop::Neighbour(gateway)).ok_or(Unreachable::NoRoute(dst))
    }

    /// The source address of a request for a neighbour: the one with the longest prefix that
    /// contains it, so that the neighbour recognises the sender as one of its own network.
    pub(super) fn source_for(&self, neighbour: IpAddr) -> Option<IpAddr> {
        let same =
            self.own.iter().map(|own| &own.net).filter(|net| net.addr().is_ipv4() == neighbour.is_ipv4());
        let nearness =
            |net: &&IpNet| if net.contains(&neighbour) { 1 + u32::from(net.prefix_len()) } else { 0 };
        // The first of equals, as given.
        same.rev().max_by_key(nearness).map(IpNet::addr)
    }
}

/// RFC 919, section 7; a network of two or one has none (RFC 3021, section 2.1).
fn is_broadcast(own: &IpNet, dst: IpAddr) -> bool {
    match (own, dst) {
        (IpNet::V4(net), IpAddr::V4(dst)) => {
            dst == Ipv4Addr::BROADCAST || net.prefix_len() < 31 && dst == net.broadcast()
        }
        _ => false,
    }
}
