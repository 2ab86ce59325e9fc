//! Router advertisements (RFC 4861, section 6.2; resolvers: RFC 8106): hosts make addresses of
//! their own from the prefix, and have this one as their router.

use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use ipnet::Ipv6Net;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv6Message, Icmpv6Packet, IpProtocol,
    Ipv6Packet, Ipv6Repr,
};
use std::net::{IpAddr, Ipv6Addr};

/// RFC 4291, section 2.7.1.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// RFC 4861, section 10: MAX_INITIAL_RTR_ADVERTISEMENTS at most MAX_INITIAL_RTR_ADVERT_INTERVAL
/// apart, MIN_DELAY_BETWEEN_RAS between two to all hosts.
const INITIAL: u32 = 3;
const INITIAL_INTERVAL: Duration = Duration::from_secs(16);
const LEAST_DELAY: Duration = Duration::from_secs(3);
/// Between MinRtrAdvInterval (200 s) and MaxRtrAdvInterval (600 s).
const INTERVAL: Duration = Duration::from_secs(300);
/// AdvDefaultLifetime: three times MaxRtrAdvInterval, s.
const LIFETIME: u16 = 1_800;
/// How long addresses of the prefix are preferred and valid, s. RFC 4861's are 7 and 30 days, which
/// suit networks that outlive their router.
const PREFERRED: u32 = 14_400;
const VALID: u32 = 86_400;
const HOP_LIMIT: u8 = 255;

/// The link-local address of a station, from its Ethernet address (RFC 2464, section 5).
pub(super) fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0.map(u16::from);
    Ipv6Addr::new(0xfe80, 0, 0, 0, (a ^ 2) << 8 | b, c << 8 | 0xff, 0xfe00 | d, e << 8 | f)
}

/// The advertising router, and the time of its next advertisement.
#[derive(Debug)]
pub(super) struct Router {
    mac: MacAddress,
    own: Ipv6Addr,
    prefixes: Vec<Ipv6Net>,
    resolvers: Vec<Ipv6Addr>,
    /// The search list as it is sent; empty: none.
    search: Vec<u8>,
    mtu: u32,
    /// Addresses and other settings are given by DHCPv6, too.
    has_dhcp: bool,
    /// Advertisements that all hosts have got.
    sent: u32,
    last: Option<Instant>,
    next: Option<Instant>,
}

impl Router {
    /// Advertises the networks of `addresses`, from the station's link-local address.
    pub(super) fn new(
        mac: MacAddress,
        addresses: &[Ipv6Net],
        resolvers: Vec<Ipv6Addr>,
        search: Vec<u8>,
        mtu: u32,
        has_dhcp: bool,
    ) -> Self {
        let (prefixes, own) = (addresses.iter().map(Ipv6Net::trunc).collect(), link_local(mac));
        Self { mac, own, prefixes, resolvers, search, mtu, has_dhcp, sent: 0, last: None, next: None }
    }

    /// From now on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.next = Some(now);
    }

    /// A solicitation: the answer to one host, if it has an address; else all get one soon.
    pub(super) fn solicited(&mut self, now: Instant, frame: &[u8]) -> Option<Vec<u8>> {
        self.next?;
        let (source, station) = solicitation(frame)?;
        if source.is_unspecified() {
            let soon = self.last.map_or(now, |last| (last + LEAST_DELAY).max(now));
            self.next = self.next.map(|next| next.min(soon));
            return None;
        }
        Some(self.advertisement(source, station))
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// What is due to all hosts.
    pub(super) fn expired(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next.filter(|next| *next <= now)?;
        self.sent = self.sent.saturating_add(1);
        self.last = Some(now);
        self.next = Some(now + if self.sent < INITIAL { INITIAL_INTERVAL } else { INTERVAL });
        Some(self.advertisement(ALL_NODES, MacAddress::multicast(IpAddr::V6(ALL_NODES))))
    }

    fn advertisement(&self, to: Ipv6Addr, station: MacAddress) -> Vec<u8> {
        let message = self.message(to);
        let ip = Ipv6Repr {
            src_addr: self.own,
            dst_addr: to,
            next_header: IpProtocol::Icmpv6,
            payload_len: message.len(),
            hop_limit: HOP_LIMIT,
        };
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.mac.0),
            dst_addr: EthernetAddress(station.0),
            ethertype: EthernetProtocol::Ipv6,
        };
        let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + message.len()];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
        ip.emit(&mut packet);
        packet.payload_mut().copy_from_slice(&message);
        bytes
    }

    /// RFC 4861, sections 4.2 and 4.6; RFC 8106, sections 5.1 and 5.2.
    fn message(&self, to: Ipv6Addr) -> Vec<u8> {
        // M and O.
        let flags = if self.has_dhcp { 0xc0 } else { 0 };
        // Type, code, checksum; hop limit, flags.
        let mut message = vec![u8::from(Icmpv6Message::RouterAdvert), 0, 0, 0, 64, flags];
        message.extend(LIFETIME.to_be_bytes());
        // Reachable time and retransmission timer: unspecified.
        message.extend([0; 8]);
        message.extend([1, 1]);
        message.extend(self.mac.0);
        message.extend([5, 1, 0, 0]);
        message.extend(self.mtu.to_be_bytes());
        for prefix in &self.prefixes {
            // On this link; and, if there is room for an interface's identifier, for addresses.
            let flags = if prefix.prefix_len() == 64 { 0xc0 } else { 0x80 };
            message.extend([3, 4, prefix.prefix_len(), flags]);
            message.extend(VALID.to_be_bytes());
            message.extend(PREFERRED.to_be_bytes());
            message.extend([0; 4]);
            message.extend(prefix.network().octets());
        }
        if !self.resolvers.is_empty() {
            let resolvers = self.resolvers.iter().take(8);
            message.extend([25, 1 + 2 * resolvers.len() as u8, 0, 0]);
            message.extend(u32::from(LIFETIME).to_be_bytes());
            resolvers.for_each(|resolver| message.extend(resolver.octets()));
        }
        if !self.search.is_empty() {
            let units = (8 + self.search.len()).div_ceil(8);
            message.extend([31, units as u8, 0, 0]);
            message.extend(u32::from(LIFETIME).to_be_bytes());
            message.extend(&self.search);
            message.resize(message.len() + units * 8 - 8 - self.search.len(), 0);
        }
        Icmpv6Packet::new_unchecked(&mut message[..]).fill_checksum(&self.own, &to);
        message
    }
}

/// The source of a router solicitation that keeps the rules of RFC 4861, section 6.1.1, and the
/// station that sent it.
fn solicitation(frame: &[u8]) -> Option<(Ipv6Addr, MacAddress)> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let station = MacAddress(frame.src_addr().0);
    let ip = Ipv6Packet::new_checked(frame.payload()).ok()?;
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    let icmp = Icmpv6Packet::new_checked(ip.payload()).ok()?;
    let is_valid = ip.next_header() == IpProtocol::Icmpv6
        && icmp.msg_type() == Icmpv6Message::RouterSolicit
        && icmp.msg_code() == 0
        && ip.hop_limit() == HOP_LIMIT
        && !source.is_multicast()
        && station.is_station()
        && icmp.verify_checksum(&source, &destination);
    is_valid.then_some((source, station))
}
