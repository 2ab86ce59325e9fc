//! A DHCP server for the hosts of one Ethernet (RFC 2131, RFC 2132): each gets an address, the
//! server as its router, resolvers, and the MTU.

use super::leases::Leases;
use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use ipnet::Ipv4Net;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};
use std::net::Ipv4Addr;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// Octets of a message up to its options' end that clients of BOOTP expect (RFC 1542, section 2.1).
const LEAST: usize = 300;
/// How long an address is kept for a host that has been offered it.
const OFFER: Duration = Duration::from_secs(60);
/// How long an address is given to nobody after a host found somebody else there.
const DECLINED: Duration = Duration::from_secs(600);

/// RFC 2132, sections 3.17, 5.1 and 9.14.
const DOMAIN_NAME: u8 = 15;
const INTERFACE_MTU: u8 = 26;
const CLIENT_ID: u8 = 61;
/// RFC 3397, section 2.
const DOMAIN_SEARCH: u8 = 119;

/// The server, with its leases.
#[derive(Debug)]
pub(super) struct DhcpServer {
    pub(super) mac: MacAddress,
    /// Its address, and the network that it serves.
    pub(super) own: Ipv4Net,
    pub(super) lease: Duration,
    pub(super) resolvers: Vec<Ipv4Addr>,
    pub(super) domain: Option<String>,
    /// The search list as it is sent; empty: none.
    pub(super) search: Vec<u8>,
    pub(super) mtu: u16,
    pub(super) leases: Leases<Ipv4Addr>,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing is to be said.
    Nothing,
    /// A host got an address, or was told what it may have.
    Granted(Vec<u8>),
    /// What it said was noted.
    Noted(Vec<u8>),
    /// It was told that it must not use its address, or there is none left for it.
    Refused(Option<Vec<u8>>),
    /// It broke a rule.
    Invalid,
}

impl DhcpServer {
    /// Its address, which names it.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.own.addr()
    }

    /// True if the frame is for it.
    pub(super) fn takes(&self, frame: &[u8]) -> bool {
        is_request(frame, self.own.addr())
    }

    /// Answers a frame that it [takes](Self::takes).
    pub(super) fn answer(&mut self, now: Instant, frame: &[u8]) -> Answer {
        let Some(message) = payload(frame) else { return Answer::Invalid };
        let Ok(packet) = DhcpPacket::new_checked(message) else { return Answer::Invalid };
        let Ok(request) = DhcpRepr::parse(&packet) else { return Answer::Invalid };
        let host = MacAddress(request.client_hardware_address.0);
        // There are no relays on an Ethernet that ends here.
        if !host.is_station() || !request.relay_agent_ip.is_unspecified() {
            return Answer::Invalid;
        }
        // RFC 6842: it goes back as it came.
        let id = packet.options().find(|option| option.kind == CLIENT_ID).map(|option| option.data);
        let reply = Reply { request: &request, host, id };
        match request.message_type {
            DhcpMessageType::Discover => match self.leases.find(now, host, request.requested_ip) {
                Some(address) => {
                    self.leases.give(now, host, address, OFFER.min(self.lease));
                    Answer::Granted(self.message(&reply, DhcpMessageType::Offer, Some(address)))
                }
                None => Answer::Refused(None),
            },
            DhcpMessageType::Request => self.on_request(now, &reply),
            DhcpMessageType::Decline => {
                if let Some(address) = request.requested_ip {
                    self.leases.decline(now, host, address, DECLINED);
                }
                Answer::Nothing
            }
            DhcpMessageType::Release => {
                self.leases.release(now, host, request.client_ip);
                Answer::Nothing
            }
            DhcpMessageType::Inform => Answer::Granted(self.message(&reply, DhcpMessageType::Ack, None)),
            _ => Answer::Invalid,
        }
    }

    /// RFC 2131, section 4.3.2.
    fn on_request(&mut self, now: Instant, reply: &Reply<'_>) -> Answer {
        let Reply { request, host, .. } = *reply;
        if request.server_identifier.is_some_and(|server| server != self.own.addr()) {
            // It has chosen another server.
            return Answer::Nothing;
        }
        let renews = !request.client_ip.is_unspecified();
        let Some(address) = request.requested_ip.or(renews.then_some(request.client_ip)) else {
            return Answer::Invalid;
        };
        if !self.leases.is_free(now, host, address) {
            return Answer::Refused(Some(self.message(reply, DhcpMessageType::Nak, None)));
        }
        self.leases.give(now, host, address, self.lease);
        Answer::Granted(self.message(reply, DhcpMessageType::Ack, Some(address)))
    }

    /// The frame of an answer that gives the host `address`.
    fn message(&self, reply: &Reply<'_>, kind: DhcpMessageType, address: Option<Ipv4Addr>) -> Vec<u8> {
        let Reply { request, host, id } = *reply;
        let configures = kind != DhcpMessageType::Nak;
        let mtu = self.mtu.to_be_bytes();
        let domain = self.domain.as_deref().map(str::as_bytes);
        let options = [
            id.map(|data| DhcpOption { kind: CLIENT_ID, data }),
            domain.filter(|_| configures).map(|data| DhcpOption { kind: DOMAIN_NAME, data }),
            (configures && !self.search.is_empty())
                .then_some(DhcpOption { kind: DOMAIN_SEARCH, data: &self.search }),
            configures.then_some(DhcpOption { kind: INTERFACE_MTU, data: &mtu }),
        ];
        let options: Vec<_> = options.into_iter().flatten().collect();
        let own = self.own.addr();
        let lease = address.map(|_| u32::try_from(self.lease.as_millis() / 1_000).unwrap_or(u32::MAX));
        let message = DhcpRepr {
            message_type: kind,
            transaction_id: request.transaction_id,
            secs: 0,
            client_hardware_address: EthernetAddress(host.0),
            client_ip: if configures { request.client_ip } else { Ipv4Addr::UNSPECIFIED },
            your_ip: address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: configures.then_some(own),
            subnet_mask: configures.then_some(self.own.netmask()),
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: request.broadcast,
            requested_ip: None,
            client_identifier: None,
            server_identifier: Some(own),
            parameter_request_list: None,
            dns_servers: configures.then(|| self.resolvers.iter().copied().take(3).collect()),
            max_size: None,
            lease_duration: lease,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &options,
        };
        // RFC 2131, section 4.1. Without an address yet it hears a packet to the one it will have,
        // since the station is its own.
        let (to, station) = match (configures, address) {
            (true, _) if !request.client_ip.is_unspecified() => (request.client_ip, host),
            (true, Some(address)) if !request.broadcast => (address, host),
            _ => (Ipv4Addr::BROADCAST, MacAddress::BROADCAST),
        };
        self.frame(&message, to, station)
    }

    fn frame(&self, message: &DhcpRepr<'_>, to: Ipv4Addr, station: MacAddress) -> Vec<u8> {
        let checksums = ChecksumCapabilities::default();
        let length = message.buffer_len().max(LEAST);
        let udp = UdpRepr { src_port: SERVER_PORT, dst_port: CLIENT_PORT };
        let ip = Ipv4Repr {
            src_addr: self.own.addr(),
            dst_addr: to,
            next_header: IpProtocol::Udp,
            payload_len: udp.header_len() + length,
            hop_limit: 64,
        };
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.mac.0),
            dst_addr: EthernetAddress(station.0),
            ethertype: EthernetProtocol::Ipv4,
        };
        let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + ip.payload_len];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
        ip.emit(&mut packet, &checksums);
        let (from, to) = (IpAddress::Ipv4(ip.src_addr), IpAddress::Ipv4(to));
        let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
        let fill = |payload: &mut [u8]| {
            let mut packet = DhcpPacket::new_unchecked(payload);
            // The length is what it needs.
            let _ = message.emit(&mut packet);
        };
        udp.emit(&mut datagram, &from, &to, length, fill, &checksums);
        bytes
    }
}

/// What an answer answers.
#[derive(Clone, Copy)]
struct Reply<'a> {
    request: &'a DhcpRepr<'a>,
    host: MacAddress,
    id: Option<&'a [u8]>,
}

/// True if the frame carries a packet of a host to the DHCP server at `own`, or to any.
pub(super) fn is_request(frame: &[u8], own: Ipv4Addr) -> bool {
    // Ethernet's type, IP's version, no later fragment, UDP.
    let is_udp = frame.get(12..14) == Some(&[0x08, 0x00])
        && frame.get(14).is_some_and(|first| first >> 4 == 4)
        && frame.get(20..22).is_some_and(|fragment| fragment[0] & 0x1f == 0 && fragment[1] == 0)
        && frame.get(23) == Some(&17);
    let is_here = [own, Ipv4Addr::BROADCAST].iter().any(|to| frame.get(30..34) == Some(&to.octets()));
    let header = frame.get(14).map_or(0, |first| usize::from(first & 0x0f) * 4);
    let ports = frame.get(14 + header..14 + header + 4);
    is_udp
        && is_here
        && ports.is_some_and(|ports| {
            ports[..2] == CLIENT_PORT.to_be_bytes() && ports[2..] == SERVER_PORT.to_be_bytes()
        })
}

/// The payload of a UDP datagram in a frame whose checksums are right.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let checksums = ChecksumCapabilities::default();
    let ip = Ipv4Repr::parse(&packet, &checksums).ok()?;
    let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
    UdpRepr::parse(&datagram, &ip.src_addr.into(), &ip.dst_addr.into(), &checksums).ok()?;
    Some(datagram.payload())
}
