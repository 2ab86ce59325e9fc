//! What gives the other hosts of an Ethernet their configuration, so that a guest boots into a
//! network without any of its own: addresses by DHCP (RFC 2131, RFC 8415) and router advertisements
//! (RFC 4861), this host as their router, and resolvers.
//!
//! | file | owns |
//! |---|---|
//! | `leases` | which host has which address |
//! | `dhcp` | messages of DHCP |
//! | `dhcp6/` | DHCPv6 |
//! | `router` | router advertisements, and when they are due |
#![cfg_attr(
    not(feature = "frame-socket"),
    allow(dead_code, unreachable_pub, reason = "only frame sockets offer it")
)]

mod dhcp;
mod dhcp6;
mod leases;
mod router;
#[cfg(test)]
mod tests;

use crate::device::NeighbourStats;
use crate::device::ethernet::neighbours::Attachment;
use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use dhcp::{Answer, DhcpServer, is_request};
use dhcp6::{Dhcp6Server, is_request6};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use leases::Leases;
use router::Router;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Answers that may wait for the device; more are dropped, and their hosts ask again.
const MOST: usize = 64;
/// IPv6 resolvers that hosts are told.
const MOST_RESOLVERS: usize = 8;
/// RFC 2132, section 3.17: a length of one octet.
const LONGEST_DOMAIN: usize = 255;

/// How the other hosts of an Ethernet are configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provision {
    /// Addresses are given out by DHCP, IPv4's and IPv6's; default true.
    pub dhcp: bool,
    /// IPv6 networks are advertised, with this host as their router; default true.
    pub router_advertisements: bool,
    /// How long a host may use an address until it asks again. Default 12 h; at least 2 min.
    pub lease: Duration,
    /// Resolvers, of both IP versions; of IPv4 three at most, of IPv6 eight. If there are none of a
    /// version: this host's own address.
    pub resolvers: Vec<IpAddr>,
    /// The domain that hosts append to names without a dot.
    pub domain: Option<String>,
    /// Domains that hosts append to names, one after the other (RFC 3397; RFC 8106, section 5.2):
    /// the [`domain`](Self::domain) goes first if there is one. Together at most 255 octets as they
    /// are sent, each with one octet per label and one at its end.
    pub search: Vec<String>,
    /// IPv4 addresses that are given to these hosts alone.
    pub hosts: Vec<(MacAddress, Ipv4Addr)>,
}

impl Default for Provision {
    fn default() -> Self {
        Self {
            dhcp: true,
            router_advertisements: true,
            lease: Duration::from_secs(43_200),
            resolvers: vec![],
            domain: None,
            search: vec![],
            hosts: vec![],
        }
    }
}

impl Provision {
    /// Keeps an IPv4 address for one host.
    #[must_use]
    pub fn host(mut self, mac: MacAddress, address: Ipv4Addr) -> Self {
        self.hosts.push((mac, address));
        self
    }

    /// The domains of the search list as they are sent.
    fn search_list(&self) -> Vec<u8> {
        let first =
            self.domain.iter().filter(|domain| !self.search.is_empty() && !self.search.contains(domain));
        first.chain(&self.search).filter_map(|domain| encoded(domain)).flatten().collect()
    }

    /// What is wrong with it for a host with these addresses, gateways and neighbours.
    pub(in crate::device) fn fault(&self, attachment: &Attachment) -> Option<String> {
        let Attachment { addresses, gateways, neighbours, .. } = attachment;
        let served = addresses.iter().find_map(|net| match net {
            IpNet::V4(net) => Some(*net),
            IpNet::V6(_) => None,
        });
        if self.lease < Duration::from_secs(120) {
            let seconds = self.lease.as_millis() / 1_000;
            return Some(format!("a lease of {seconds} s is too short: 120 s at least"));
        }
        if self.domain.as_ref().is_some_and(|domain| domain.is_empty() || domain.len() > LONGEST_DOMAIN) {
            return Some(format!("a domain has 1 to {LONGEST_DOMAIN} octets"));
        }
        if let Some(wrong) = self.search.iter().find(|domain| encoded(domain).is_none()) {
            return Some(format!("{wrong:?} is no domain: labels of 1 to 63 octets with dots between them"));
        }
        if self.search_list().len() > LONGEST_DOMAIN {
            return Some(format!("the search domains have more than {LONGEST_DOMAIN} octets together"));
        }
        let own: Vec<IpAddr> = addresses.iter().map(IpNet::addr).collect();
        self.hosts.iter().enumerate().find_map(|(index, (mac, address))| {
            let what = |what: &str| Some(format!("{address} of the host {mac} is {what}"));
            let Some(net) = served.filter(|net| net.contains(address)) else {
                return what("in no network that DHCP serves here");
            };
            let ip = IpAddr::V4(*address);
            if own.contains(&ip) {
                return what("this host's own");
            }
            if net.prefix_len() < 31 && [net.network(), net.broadcast()].contains(address) {
                return what("the network's, and no host's");
            }
            if gateways.contains(&ip) || neighbours.iter().any(|(taken, other)| *taken == ip && other != mac)
            {
                return what("another host's already");
            }
            let twice = self.hosts.iter().take(index).find(|(other, taken)| other == mac || taken == address);
            twice.map(|(other, taken)| {
                format!("{mac}={address} and {other}={taken}: one address for each host")
            })
        })
    }
}

/// A domain as it is sent (RFC 1035, section 3.1), without compression: each label behind its
/// length, and the root.
fn encoded(domain: &str) -> Option<Vec<u8>> {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let mut octets = Vec::with_capacity(domain.len() + 2);
    for label in domain.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        octets.push(length);
        octets.extend(label.as_bytes());
    }
    octets.push(0);
    (octets.len() <= LONGEST_DOMAIN).then_some(octets)
}

/// The link-local address of which hosts know their router.
pub(in crate::device) fn link_local(mac: MacAddress) -> Ipv6Addr {
    router::link_local(mac)
}

/// The servers that a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::device) struct Servers {
    /// The address of the one of DHCP.
    dhcp: Option<Ipv4Addr>,
    /// It is one of DHCPv6.
    has_dhcp6: bool,
}

impl Servers {
    /// The frame is a request for one of them, and no packet for the stack.
    pub(in crate::device) fn are_asked(self, frame: &[u8]) -> bool {
        self.dhcp.is_some_and(|own| is_request(frame, own)) || self.has_dhcp6 && is_request6(frame)
    }
}

/// Configures other hosts: no clock, no descriptor.
#[derive(Debug)]
pub(in crate::device) struct Provisioner {
    dhcp: Option<DhcpServer>,
    dhcp6: Option<Dhcp6Server>,
    router: Option<Router>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Provisioner {
    /// On the networks of a host with an MTU, of which the first one of each version is served by
    /// DHCP. What IPv6 hosts hear comes from the [link-local address](link_local), which must be
    /// one of its own.
    pub(in crate::device) fn new(provision: &Provision, attachment: &Attachment, mtu: u32) -> Self {
        let Attachment { mac, addresses, gateways, neighbours } = attachment;
        let mac = *mac;
        let (mut v4, mut v6) = (vec![], vec![]);
        for net in addresses {
            match net {
                IpNet::V4(net) => v4.push(*net),
                IpNet::V6(net) if net.addr().is_unicast_link_local() => {}
                IpNet::V6(net) => v6.push(*net),
            }
        }
        let (mut resolvers4, mut resolvers6) = (vec![], vec![]);
        for resolver in &provision.resolvers {
            match resolver {
                IpAddr::V4(resolver) => resolvers4.push(*resolver),
                IpAddr::V6(resolver) => resolvers6.push(*resolver),
            }
        }
        let others = || gateways.iter().chain(neighbours.iter().map(|(address, _)| address));
        let dhcp = v4.first().filter(|_| provision.dhcp).map(|&own| {
            if resolvers4.is_empty() {
                resolvers4.push(own.addr());
            }
            let others = others().filter_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            });
            let reserved = v4.iter().map(Ipv4Net::addr).chain(others).collect();
            DhcpServer {
                mac,
                own,
                lease: provision.lease,
                resolvers: resolvers4,
                domain: provision.domain.clone(),
                search: provision.search_list(),
                mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
                leases: Leases::new(own.trunc(), reserved, provision.hosts.clone()),
            }
        });
        if let Some(own) = v6.first().filter(|_| resolvers6.is_empty()) {
            resolvers6.push(own.addr());
        }
        resolvers6.truncate(MOST_RESOLVERS);
        let dhcp6 = v6.first().filter(|_| provision.dhcp).map(|own| {
            let others = others().filter_map(|address| match address {
                IpAddr::V4(_) => None,
                IpAddr::V6(address) => Some(*address),
            });
            let reserved = v6.iter().map(Ipv6Net::addr).chain(others).collect();
            let leases = Leases::new6(own.trunc(), reserved);
            Dhcp6Server::new(mac, *own, provision.lease, resolvers6.clone(), provision.search_list(), leases)
        });
        let router = v6
            .first()
            .filter(|_| provision.router_advertisements)
            .map(|_| Router::new(mac, &v6, resolvers6, provision.search_list(), mtu, dhcp6.is_some()));
        Self { dhcp, dhcp6, router, outgoing: VecDeque::new() }
    }

    /// The own addresses are this host's: it is a router from now on.
    pub(in crate::device) fn begin(&mut self, now: Instant) {
        if let Some(router) = &mut self.router {
            router.begin(now);
        }
    }

    /// The servers that it has.
    pub(in crate::device) fn servers(&self) -> Servers {
        Servers { dhcp: self.dhcp.as_ref().map(DhcpServer::address), has_dhcp6: self.dhcp6.is_some() }
    }

    /// Takes a received frame; what is no question for this host is ignored.
    pub(in crate::device) fn ingest(&mut self, now: Instant, frame: &[u8], stats: &mut NeighbourStats) {
        let asked = self.dhcp.as_mut().filter(|dhcp| dhcp.takes(frame));
        let answer = asked.map(|dhcp| dhcp.answer(now, frame));
        let asked6 = self.dhcp6.as_mut().filter(|_| is_request6(frame));
        if let Some(answer) = answer.or_else(|| asked6.map(|dhcp| dhcp.answer(now, frame))) {
            match answer {
                Answer::Nothing => {}
                Answer::Granted(answer) => {
                    stats.leases_granted += 1;
                    self.push(answer, stats);
                }
                Answer::Noted(answer) => self.push(answer, stats),
                Answer::Refused(answer) => {
                    stats.leases_refused += 1;
                    answer.into_iter().for_each(|answer| self.push(answer, stats));
                }
                Answer::Invalid => stats.invalid += 1,
            }
        } else if let Some(answer) = self.router.as_mut().and_then(|router| router.solicited(now, frame)) {
            stats.router_advertisements_sent += 1;
            self.push(answer, stats);
        }
    }

    pub(in crate::device) fn handle_timeout(&mut self, now: Instant, stats: &mut NeighbourStats) {
        if let Some(advertisement) = self.router.as_mut().and_then(|router| router.expired(now)) {
            stats.router_advertisements_sent += 1;
            self.push(advertisement, stats);
        }
    }

    pub(in crate::device) fn poll_timeout(&self) -> Option<Instant> {
        self.router.as_ref().and_then(Router::poll_timeout)
    }

    /// The next frame to send; the same until [`sent`](Self::sent).
    pub(in crate::device) fn next(&self) -> Option<&[u8]> {
        self.outgoing.front().map(Vec::as_slice)
    }

    pub(in crate::device) fn sent(&mut self) {
        self.outgoing.pop_front();
    }

    fn push(&mut self, frame: Vec<u8>, stats: &mut NeighbourStats) {
        if self.outgoing.len() < MOST {
            self.outgoing.push_back(frame);
        } else {
            stats.outgoing_dropped += 1;
        }
    }
}
