//! Which host has which address, and until when.
//!
//! A host's address follows from its Ethernet address, unless another host has that one: so hosts
//! keep theirs when the server starts anew and remembers nothing, and one that asks for the address
//! it had before gets it if nobody else holds it.

use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use ipnet::{Ipv4Net, Ipv6Net};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Most addresses that are given out: the first ones of the network.
const MOST: u32 = 4_096;

/// Where in the middle of an IPv6 network the given addresses begin: they are told from those that
/// hosts make themselves, and from small numbers that people give.
const FIRST6: u128 = 0x1_0000;

/// An address of either version.
pub(super) trait Address: Copy + Eq + Hash {
    /// The one so many places behind it, which exists.
    fn plus(self, places: u32) -> Self;

    /// How many places it is behind `first`, if that many can be told.
    fn places_behind(self, first: Self) -> Option<u32>;
}

impl Address for Ipv4Addr {
    fn plus(self, places: u32) -> Self {
        Self::from_bits(self.to_bits().wrapping_add(places))
    }

    fn places_behind(self, first: Self) -> Option<u32> {
        self.to_bits().checked_sub(first.to_bits())
    }
}

impl Address for Ipv6Addr {
    fn plus(self, places: u32) -> Self {
        Self::from_bits(self.to_bits().wrapping_add(places.into()))
    }

    fn places_behind(self, first: Self) -> Option<u32> {
        self.to_bits().checked_sub(first.to_bits())?.try_into().ok()
    }
}

/// The addresses of one network.
#[derive(Debug)]
pub(super) struct Leases<A> {
    /// The first address that may be given out, and how many follow it.
    first: A,
    count: u32,
    /// Of the server, and others that are nobody else's.
    reserved: Vec<A>,
    fixed: Vec<(MacAddress, A)>,
    leases: HashMap<A, Lease>,
    /// The address that each host has, or had last.
    addresses: HashMap<MacAddress, A>,
    /// No address was free, and none will be before.
    full_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    /// `None`: somebody uses the address who did not get it here.
    holder: Option<MacAddress>,
    until: Instant,
}

impl Leases<Ipv4Addr> {
    /// All addresses of `network` but its first and last one and `reserved`; `fixed` ones are given
    /// to these hosts alone.
    pub(super) fn new(network: Ipv4Net, reserved: Vec<Ipv4Addr>, fixed: Vec<(MacAddress, Ipv4Addr)>) -> Self {
        let (low, high) = (u32::from(network.network()), u32::from(network.broadcast()));
        // RFC 3021: both addresses of a /31 are hosts'.
        let (first, last) = if network.prefix_len() < 31 { (low + 1, high - 1) } else { (low, high) };
        let count = (last - first).saturating_add(1);
        Self::among(Ipv4Addr::from_bits(first), count, reserved, fixed)
    }
}

impl Leases<Ipv6Addr> {
    /// Addresses of `network` but `reserved` and the first, which is all routers' (RFC 4291, section
    /// 2.6.1).
    pub(super) fn new6(network: Ipv6Net, reserved: Vec<Ipv6Addr>) -> Self {
        let host_bits = 128 - u32::from(network.prefix_len());
        let addresses = 1_u128.checked_shl(host_bits).unwrap_or(u128::MAX);
        let start = if addresses > FIRST6 { FIRST6 } else { 1.min(addresses - 1) };
        let count = u32::try_from(addresses - start).unwrap_or(u32::MAX);
        let first = Ipv6Addr::from_bits(network.network().to_bits() + start);
        Self::among(first, count, reserved, vec![])
    }
}

impl<A: Address> Leases<A> {
    /// Of `count` addresses from `first` on, [`MOST`] at most.
    fn among(first: A, count: u32, reserved: Vec<A>, fixed: Vec<(MacAddress, A)>) -> Self {
        Self {
            first,
            count: count.min(MOST),
            reserved,
            fixed,
            leases: HashMap::new(),
            addresses: HashMap::new(),
            full_until: None,
        }
    }

    /// The address for a host that would like `wanted`: one that it can have from `now` on. `None`
    /// if there is none. O(1) unless most addresses are taken.
    pub(super) fn find(&mut self, now: Instant, host: MacAddress, wanted: Option<A>) -> Option<A> {
        if let Some((_, address)) = self.fixed.iter().find(|(mac, _)| *mac == host) {
            return Some(*address);
        }
        let known = self.addresses.get(&host).copied().filter(|address| self.is_free(now, host, *address));
        if let Some(address) = known.or(wanted.filter(|address| self.is_free(now, host, *address))) {
            return Some(address);
        }
        if self.full_until.is_some_and(|until| now < until) {
            return None;
        }
        let start = hash(host) % self.count;
        let places = (0..self.count).map(|step| (start + step) % self.count);
        let found = places.map(|place| self.first.plus(place)).find(|at| self.is_free(now, host, *at));
        let earliest = self.leases.values().map(|lease| lease.until).filter(|until| now < *until).min();
        self.full_until = earliest.filter(|_| found.is_none());
        found
    }

    /// True if the host may have this address: of this network, and nobody else's.
    pub(super) fn is_free(&self, now: Instant, host: MacAddress, address: A) -> bool {
        if let Some((_, own)) = self.fixed.iter().find(|(mac, _)| *mac == host) {
            return *own == address;
        }
        let is_ours = address.places_behind(self.first).is_some_and(|places| places < self.count);
        let is_others = self.fixed.iter().any(|(_, fixed)| *fixed == address);
        let is_held = |lease: &Lease| lease.holder != Some(host) && now < lease.until;
        is_ours
            && !is_others
            && !self.reserved.contains(&address)
            && !self.leases.get(&address).is_some_and(is_held)
    }

    /// Gives an address that [`find`](Self::find) returned, or that [is free](Self::is_free), to a
    /// host for so long.
    pub(super) fn give(&mut self, now: Instant, host: MacAddress, address: A, time: Duration) {
        if let Some(before) = self.addresses.insert(host, address)
            && before != address
        {
            self.leases.remove(&before);
        }
        // An offer does not shorten what the host has.
        let held = self.leases.get(&address).filter(|lease| lease.holder == Some(host));
        let until = held.map_or(now + time, |lease| lease.until.max(now + time));
        let lease = Lease { holder: Some(host), until };
        // A host whose lease had ended has lost its address for good.
        if let Some(Lease { holder: Some(other), .. }) = self.leases.insert(address, lease)
            && other != host
        {
            self.addresses.remove(&other);
        }
    }

    /// The host needs its address no more. It gets it again, if it is still free.
    pub(super) fn release(&mut self, now: Instant, host: MacAddress, address: A) {
        if let Some(lease) = self.leases.get_mut(&address).filter(|lease| lease.holder == Some(host)) {
            lease.until = now;
            self.full_until = None;
        }
    }

    /// Somebody else uses the address that the host was given: nobody gets it for so long.
    pub(super) fn decline(&mut self, now: Instant, host: MacAddress, address: A, time: Duration) {
        if let Some(lease) = self.leases.get_mut(&address).filter(|lease| lease.holder == Some(host)) {
            *lease = Lease { holder: None, until: now + time };
            self.addresses.remove(&host);
        }
    }
}

/// FNV-1a, so that the places of neighbouring Ethernet addresses lie apart.
fn hash(host: MacAddress) -> u32 {
    host.0.iter().fold(0x811c_9dc5, |hash, octet| (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(60);

    fn host(number: u32) -> MacAddress {
        let [_, b, c, d] = number.to_be_bytes();
        MacAddress([2, 0, 0, b, c, d])
    }

    fn leases(network: &str) -> Leases<Ipv4Addr> {
        let network: Ipv4Net = network.parse().unwrap();
        Leases::new(network.trunc(), vec![network.addr()], vec![])
    }

    fn give(leases: &mut Leases<Ipv4Addr>, now: Instant, number: u32) -> Option<Ipv4Addr> {
        let address = leases.find(now, host(number), None)?;
        leases.give(now, host(number), address, TIME);
        Some(address)
    }

    #[test]
    fn a_host_has_the_same_address_after_everything_is_forgotten() {
        let (mut first, mut again) = (leases("10.0.2.2/24"), leases("10.0.2.2/24"));
        let address = give(&mut first, Instant::ZERO, 1);
        assert!(address.is_some());
        assert_eq!(give(&mut again, Instant::ZERO, 1), address);
        // Whoever remembers another one keeps that.
        let wanted = Ipv4Addr::new(10, 0, 2, 77);
        assert_eq!(leases("10.0.2.2/24").find(Instant::ZERO, host(1), Some(wanted)), Some(wanted));
        assert_ne!(
            leases("10.0.2.77/24").find(Instant::ZERO, host(1), Some(wanted)),
            Some(wanted),
            "the server's"
        );
    }

    #[test]
    fn a_full_network_gives_out_what_has_ended() {
        let mut leases = leases("10.0.2.1/29");
        let mut given: Vec<_> =
            (0..5).filter_map(|number| give(&mut leases, Instant::ZERO, number)).collect();
        given.sort_unstable();
        assert_eq!(given, [2, 3, 4, 5, 6].map(|last| Ipv4Addr::new(10, 0, 2, last)));
        assert_eq!(give(&mut leases, Instant::ZERO, 9), None);
        assert_eq!(give(&mut leases, Instant::ZERO, 3), leases.addresses.get(&host(3)).copied(), "renewed");
        let later = Instant::ZERO + TIME;
        assert!(give(&mut leases, later, 9).is_some());
        assert_eq!(leases.addresses.len(), 5, "one host has lost its own");
        let own = leases.addresses[&host(9)];
        leases.release(later, host(9), own);
        assert_eq!(give(&mut leases, later, 10).map(|_| leases.addresses.len()), Some(5));
    }

    #[test]
    fn an_address_that_somebody_uses_is_given_to_nobody_for_a_while() {
        let mut leases = leases("10.0.2.1/30");
        let only = give(&mut leases, Instant::ZERO, 1).unwrap();
        leases.decline(Instant::ZERO, host(2), only, TIME);
        assert!(leases.is_free(Instant::ZERO, host(1), only), "not for a stranger's word");
        leases.decline(Instant::ZERO, host(1), only, TIME);
        assert_eq!(give(&mut leases, Instant::ZERO, 1), None);
        assert_eq!(give(&mut leases, Instant::ZERO + TIME, 1), Some(only));
    }

    #[test]
    fn fixed_addresses_are_those_hosts_alone() {
        let network: Ipv4Net = "10.0.2.0/29".parse().unwrap();
        let own = Ipv4Addr::new(10, 0, 2, 5);
        let mut leases = Leases::new(network, vec![], vec![(host(1), own)]);
        assert_eq!(leases.find(Instant::ZERO, host(1), Some(Ipv4Addr::new(10, 0, 2, 6))), Some(own));
        assert!(
            (2..9)
                .filter_map(|number| give(&mut leases, Instant::ZERO, number))
                .all(|address| address != own)
        );
    }
}
