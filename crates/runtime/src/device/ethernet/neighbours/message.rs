//! ARP and neighbour-discovery messages in Ethernet frames, through `smoltcp::wire`.
//!
//! Parsing checks all that needs no knowledge of the host: RFC 826's fields, and the rules of RFC
//! 4861, section 7.1.

use super::address::{ALL_NODES, is_host, solicited_node};
use crate::mac::MacAddress;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Message,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
    RawHardwareAddress,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of an Ethernet header without a tag.
const ETHERNET_HEADER_LEN: usize = 14;
/// The longest message: a solicitation or advertisement with one option (Ethernet 14, IPv6 40,
/// ICMPv6 24, option 8).
const MAX_LEN: usize = ETHERNET_HEADER_LEN + 40 + 24 + 8;
/// RFC 4861, section 7.1: proof that no router forwarded the message.
const HOP_LIMIT: u8 = 255;

/// A frame to be sent: Ethernet header and message, without padding and without a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl std::ops::Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Who has `target`? From an own address of the same version; to one station if `to` names it,
    /// else to all that may have it.
    Request { from: IpAddr, target: IpAddr, to: Option<MacAddress> },
    /// Does anybody use this address, which is about to be an own one? RFC 5227, section 2.1.1; RFC
    /// 4862, section 5.4.2.
    Probe { target: IpAddr },
    /// The own address `own` is here, in answer to a station.
    Reply { own: IpAddr, to: IpAddr, mac: MacAddress },
    /// The own address is here, said to all. RFC 5227, section 2.3; RFC 4861, section 7.2.6.
    Announce { own: IpAddr },
}

/// What a frame said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Arp(Arp),
    Solicitation(Solicitation),
    Advertisement(Advertisement),
    /// Neighbour discovery that a host with fixed addresses and gateways has no use for: routers'
    /// messages and redirects.
    Unused,
}

/// An ARP request or reply for IPv4 on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) is_reply: bool,
    pub(super) sender_mac: MacAddress,
    pub(super) sender: Ipv4Addr,
    pub(super) target_mac: MacAddress,
    pub(super) target: Ipv4Addr,
}

/// A neighbour solicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solicitation {
    /// The station that sent the frame.
    pub(super) frame_source: MacAddress,
    /// Asking host; `None`: one that is about to use `target` (RFC 4862, section 5.4).
    pub(super) source: Option<Ipv6Addr>,
    pub(super) target: Ipv6Addr,
    /// The source link-layer address option.
    pub(super) mac: Option<MacAddress>,
}

/// A neighbour advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advertisement {
    pub(super) frame_source: MacAddress,
    pub(super) target: Ipv6Addr,
    /// The target link-layer address option.
    pub(super) mac: Option<MacAddress>,
    pub(super) solicited: bool,
    pub(super) overrides: bool,
}

/// A frame with neighbour resolution in it that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

/// Reads a frame; `Ok(None)` if it carries something else.
pub(super) fn parse(frame: &[u8]) -> Result<Option<Incoming>, Invalid> {
    let Ok(frame) = EthernetFrame::new_checked(frame) else { return Ok(None) };
    let source = MacAddress(frame.src_addr().0);
    match frame.ethertype() {
        EthernetProtocol::Arp => parse_arp(frame.payload()).map(Some),
        EthernetProtocol::Ipv6 => parse_ipv6(source, frame.payload()),
        _ => Ok(None),
    }
}

fn parse_arp(packet: &[u8]) -> Result<Incoming, Invalid> {
    let packet = ArpPacket::new_checked(packet).map_err(|_| Invalid)?;
    // RFC 826, "Packet Reception": hardware and protocol must be spoken here.
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_hardware_addr,
        target_protocol_addr,
    } = ArpRepr::parse(&packet).map_err(|_| Invalid)?
    else {
        return Err(Invalid);
    };
    let is_reply = match operation {
        ArpOperation::Request => false,
        ArpOperation::Reply => true,
        ArpOperation::Unknown(_) => return Err(Invalid),
    };
    let arp = Arp {
        is_reply,
        sender_mac: MacAddress(source_hardware_addr.0),
        sender: source_protocol_addr,
        target_mac: MacAddress(target_hardware_addr.0),
        target: target_protocol_addr,
    };
    // A sender is one host, or unspecified in a probe (RFC 5227, section 2.1.1), and one station.
    let known = is_host(IpAddr::V4(arp.sender)) || arp.sender.is_unspecified() && !arp.is_reply;
    if known && arp.sender_mac.is_station() { Ok(Incoming::Arp(arp)) } else { Err(Invalid) }
}

fn parse_ipv6(frame_source: MacAddress, packet: &[u8]) -> Result<Option<Incoming>, Invalid> {
    let Ok(ip) = Ipv6Packet::new_checked(packet) else { return Ok(None) };
    // A message behind extension headers is left alone; a fragmented one must be (RFC 6980, section
    // 5).
    if ip.next_header() != IpProtocol::Icmpv6 {
        return Ok(None);
    }
    let Some(&kind) = ip.payload().first() else { return Ok(None) };
    if !Icmpv6Message::from(kind).is_ndisc() {
        return Ok(None);
    }
    let icmp = Icmpv6Packet::new_checked(ip.payload()).map_err(|_| Invalid)?;
    if ip.hop_limit() != HOP_LIMIT || icmp.msg_code() != 0 {
        return Err(Invalid);
    }
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    let parsed = Icmpv6Repr::parse(&source, &destination, &icmp, &ChecksumCapabilities::default());
    let incoming = match parsed.map_err(|_| Invalid)? {
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, lladdr }) => {
            Incoming::Solicitation(Solicitation {
                frame_source,
                source: (!source.is_unspecified()).then_some(source),
                target: target_addr,
                mac: station(lladdr)?,
            })
        }
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert { flags, target_addr, lladdr }) => {
            Incoming::Advertisement(Advertisement {
                frame_source,
                target: target_addr,
                mac: station(lladdr)?,
                solicited: flags.contains(NdiscNeighborFlags::SOLICITED),
                overrides: flags.contains(NdiscNeighborFlags::OVERRIDE),
            })
        }
        _ => Incoming::Unused,
    };
    let valid = match incoming {
        // RFC 4861, section 7.1.1; a source is one host.
        Incoming::Solicitation(Solicitation { source, target, mac, .. }) => {
            let asks = source.map_or_else(
                || destination == solicited_node(target) && mac.is_none(),
                |source| is_host(IpAddr::V6(source)),
            );
            asks && is_host(IpAddr::V6(target))
        }
        // RFC 4861, section 7.1.2.
        Incoming::Advertisement(Advertisement { target, solicited, .. }) => {
            is_host(IpAddr::V6(target))
                && is_host(IpAddr::V6(source))
                && !(destination.is_multicast() && solicited)
        }
        Incoming::Arp(_) | Incoming::Unused => true,
    };
    if valid && frame_source.is_station() { Ok(Some(incoming)) } else { Err(Invalid) }
}

/// A link-layer address option's address, which must be one station's.
fn station(option: Option<RawHardwareAddress>) -> Result<Option<MacAddress>, Invalid> {
    let Some(option) = option else { return Ok(None) };
    let octets = option.as_bytes().first_chunk().copied().ok_or(Invalid)?;
    Some(MacAddress(octets)).filter(|mac| mac.is_station()).map(Some).ok_or(Invalid)
}

impl Outgoing {
    /// The frame, from the station `mac`.
    pub(super) fn frame(&self, mac: MacAddress) -> Frame {
        match *self {
            Self::Request { from: IpAddr::V4(from), target: IpAddr::V4(target), to } => {
                arp(mac, to.unwrap_or(MacAddress::BROADCAST), ArpOperation::Request, from, None, target)
            }
            Self::Probe { target: IpAddr::V4(target) } => {
                let unspecified = Ipv4Addr::UNSPECIFIED;
                arp(mac, MacAddress::BROADCAST, ArpOperation::Request, unspecified, None, target)
            }
            Self::Reply { own: IpAddr::V4(own), to: IpAddr::V4(to), mac: their } => {
                arp(mac, their, ArpOperation::Reply, own, Some(their), to)
            }
            // RFC 5227, section 3: a request, since some hosts take no notice of replies that they
            // did not ask for.
            Self::Announce { own: IpAddr::V4(own) } => {
                arp(mac, MacAddress::BROADCAST, ArpOperation::Request, own, None, own)
            }
            Self::Request { from: IpAddr::V6(from), target: IpAddr::V6(target), to } => {
                // RFC 4861, section 7.2.2: probes go to the neighbour's own address.
                let destination = if to.is_some() { target } else { solicited_node(target) };
                let to = to.unwrap_or_else(|| MacAddress::multicast(IpAddr::V6(destination)));
                let repr = NdiscRepr::NeighborSolicit { target_addr: target, lladdr: Some(option(mac)) };
                discovery(mac, to, from, destination, repr)
            }
            Self::Probe { target: IpAddr::V6(target) } => {
                let group = solicited_node(target);
                let repr = NdiscRepr::NeighborSolicit { target_addr: target, lladdr: None };
                let to = MacAddress::multicast(IpAddr::V6(group));
                discovery(mac, to, Ipv6Addr::UNSPECIFIED, group, repr)
            }
            Self::Reply { own: IpAddr::V6(own), to: IpAddr::V6(to), mac: their } => {
                let flags = NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE;
                let repr = NdiscRepr::NeighborAdvert { flags, target_addr: own, lladdr: Some(option(mac)) };
                discovery(mac, their, own, to, repr)
            }
            Self::Announce { own: IpAddr::V6(own) } => {
                let flags = NdiscNeighborFlags::OVERRIDE;
                let repr = NdiscRepr::NeighborAdvert { flags, target_addr: own, lladdr: Some(option(mac)) };
                let to = MacAddress::multicast(IpAddr::V6(ALL_NODES));
                discovery(mac, to, own, ALL_NODES, repr)
            }
            // The table holds each address with own ones of its version only.
            Self::Request { .. } | Self::Reply { .. } => Frame { bytes: [0; MAX_LEN], len: 0 },
        }
    }
}

fn arp(
    mac: MacAddress,
    to: MacAddress,
    operation: ArpOperation,
    sender: Ipv4Addr,
    target_mac: Option<MacAddress>,
    target: Ipv4Addr,
) -> Frame {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(mac.0),
        source_protocol_addr: sender,
        target_hardware_addr: EthernetAddress(target_mac.unwrap_or_default().0),
        target_protocol_addr: target,
    };
    frame(mac, to, EthernetProtocol::Arp, repr.buffer_len(), |payload| {
        repr.emit(&mut ArpPacket::new_unchecked(payload));
    })
}

fn discovery(
    mac: MacAddress,
    to: MacAddress,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    repr: NdiscRepr<'_>,
) -> Frame {
    let icmp = Icmpv6Repr::Ndisc(repr);
    let ip = Ipv6Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: IpProtocol::Icmpv6,
        payload_len: icmp.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    frame(mac, to, EthernetProtocol::Ipv6, ip.buffer_len() + icmp.buffer_len(), |payload| {
        let mut packet = Ipv6Packet::new_unchecked(payload);
        ip.emit(&mut packet);
        let mut message = Icmpv6Packet::new_unchecked(packet.payload_mut());
        icmp.emit(&source, &destination, &mut message, &ChecksumCapabilities::default());
    })
}

/// A frame whose payload of `len` octets, at most [`MAX_LEN`] with the header, `write` writes.
fn frame(
    from: MacAddress,
    to: MacAddress,
    protocol: EthernetProtocol,
    len: usize,
    write: impl FnOnce(&mut [u8]),
) -> Frame {
    let mut frame = Frame { bytes: [0; MAX_LEN], len: ETHERNET_HEADER_LEN + len };
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame.bytes[..ETHERNET_HEADER_LEN + len]);
    ethernet.set_dst_addr(EthernetAddress(to.0));
    ethernet.set_src_addr(EthernetAddress(from.0));
    ethernet.set_ethertype(protocol);
    write(ethernet.payload_mut());
    frame
}

fn option(mac: MacAddress) -> RawHardwareAddress {
    RawHardwareAddress::from_bytes(&mac.0)
}
