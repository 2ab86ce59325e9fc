//! A DHCPv6 server for the hosts of one Ethernet (RFC 8415; RFC 3646): each gets an address,
//! resolvers and search domains, or only these if it asks for no address.
//!
//! There are no relays on an Ethernet that ends here, so a host is known by the Ethernet address
//! that its frames come from, as a [server of DHCP](super::dhcp) knows it by the one in its
//! messages. It has one address, for the first of its associations (IA_NA).

mod message;
#[cfg(test)]
mod tests;

use super::dhcp::Answer;
use super::leases::Leases;
use super::router::link_local;
use crate::mac::MacAddress;
use ackline_tcp_core::{Duration, Instant};
use ipnet::Ipv6Net;
use message::{Message, Options, kind, option, push};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol, Ipv6Packet,
    Ipv6Repr, UdpPacket, UdpRepr,
};
use std::net::Ipv6Addr;

/// RFC 8415, sections 7.1 and 7.2.
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const CLIENT_PORT: u16 = 546;
const SERVER_PORT: u16 = 547;

/// How long an address is kept for a host that has been offered it.
const OFFER: Duration = Duration::from_secs(60);
/// How long an address is given to nobody after a host found somebody else there.
const DECLINED: Duration = Duration::from_secs(600);
/// Associations of one message.
const MOST_ASSOCIATIONS: usize = 8;

/// RFC 8415, section 21.13.
const SUCCESS: u16 = 0;
const NO_ADDRESS: u16 = 2;
const NOT_ON_LINK: u16 = 4;
const NO_PREFIX: u16 = 6;

/// The server, with its leases.
#[derive(Debug)]
pub(super) struct Dhcp6Server {
    mac: MacAddress,
    /// The network that it serves.
    network: Ipv6Net,
    /// Its DUID.
    id: Vec<u8>,
    lease: Duration,
    resolvers: Vec<Ipv6Addr>,
    /// The search list as it is sent; empty: none.
    search: Vec<u8>,
    leases: Leases<Ipv6Addr>,
}

impl Dhcp6Server {
    /// On the network of `own`, its address.
    pub(super) fn new(
        mac: MacAddress,
        own: Ipv6Net,
        lease: Duration,
        resolvers: Vec<Ipv6Addr>,
        search: Vec<u8>,
        leases: Leases<Ipv6Addr>,
    ) -> Self {
        // Of 128 bits that identify it, as a UUID does (RFC 6355). Unlike the Ethernet address, this
        // one is the same when the server starts anew, so clients go on.
        let id = [&[0, 4], &own.addr().octets()[..]].concat();
        Self { mac, network: own.trunc(), id, lease, resolvers, search, leases }
    }

    /// Answers a frame that is a [request](is_request6).
    pub(super) fn answer(&mut self, now: Instant, frame: &[u8]) -> Answer {
        let Some(request) = Request::parse(frame) else { return Answer::Invalid };
        let Request { message, client, .. } = request;
        let server = message.options.get(option::SERVER_ID);
        // Section 16.
        let (needs_client, names_server) = match message.kind {
            kind::SOLICIT | kind::CONFIRM | kind::REBIND => (true, false),
            kind::REQUEST | kind::RENEW | kind::RELEASE | kind::DECLINE => (true, true),
            kind::INFORMATION_REQUEST => (false, server.is_some()),
            _ => return Answer::Invalid,
        };
        if (needs_client && client.is_none()) || server.is_some() != names_server {
            return Answer::Invalid;
        }
        if server.is_some_and(|server| server != self.id) {
            // It has chosen another server.
            return Answer::Nothing;
        }
        let Some(associations) = associations(message.options) else { return Answer::Invalid };
        match message.kind {
            kind::INFORMATION_REQUEST if !associations.is_empty() => Answer::Invalid,
            kind::INFORMATION_REQUEST => Answer::Granted(self.reply(&request, kind::REPLY, &[])),
            kind::CONFIRM => self.confirm(&request, &associations),
            kind::RELEASE | kind::DECLINE => {
                for address in associations.iter().flat_map(|association| association.addresses()) {
                    if message.kind == kind::RELEASE {
                        self.leases.release(now, request.host, address);
                    } else {
                        self.leases.decline(now, request.host, address, DECLINED);
                    }
                }
                Answer::Noted(self.reply(&request, kind::REPLY, &status(SUCCESS)))
            }
            _ => self.assign(now, &request, &associations),
        }
    }

    /// Sections 18.3.1, 18.3.2, 18.3.4, 18.3.5: an address for the first association.
    fn assign(&mut self, now: Instant, request: &Request<'_>, associations: &[Association<'_>]) -> Answer {
        let is_solicit = request.message.kind == kind::SOLICIT;
        let commits = !is_solicit || request.message.options.get(option::RAPID_COMMIT).is_some();
        let (mut body, mut has_refused) = (vec![], false);
        let mut is_first = true;
        for association in associations {
            let mut contents = association.head().to_vec();
            let may_have = association.code == option::IA_NA && std::mem::take(&mut is_first);
            let given = may_have.then(|| self.give(now, request.host, association, commits)).flatten();
            match given {
                Some(address) => {
                    let seconds = u32::try_from(self.lease.as_millis() / 1_000).unwrap_or(u32::MAX);
                    contents.extend((seconds / 2).to_be_bytes());
                    contents.extend((seconds / 5 * 4).to_be_bytes());
                    push_address(&mut contents, address, seconds);
                    // What it has had is not its own any more.
                    let others = association.addresses().filter(|other| !is_solicit && *other != address);
                    others.for_each(|other| push_address(&mut contents, other, 0));
                }
                None => {
                    has_refused = true;
                    if association.code != option::IA_TA {
                        contents.extend([0; 8]);
                    }
                    let code = if association.code == option::IA_PD { NO_PREFIX } else { NO_ADDRESS };
                    contents.extend(status(code));
                }
            }
            push(&mut body, association.code, &contents);
        }
        let kind = if commits { kind::REPLY } else { kind::ADVERTISE };
        if is_solicit && commits {
            push(&mut body, option::RAPID_COMMIT, &[]);
        } else if is_solicit {
            // There is no better one to wait for.
            push(&mut body, option::PREFERENCE, &[255]);
        }
        let answer = self.reply(request, kind, &body);
        if has_refused { Answer::Refused(Some(answer)) } else { Answer::Granted(answer) }
    }

    fn give(
        &mut self,
        now: Instant,
        host: MacAddress,
        association: &Association<'_>,
        commits: bool,
    ) -> Option<Ipv6Addr> {
        let wanted = association.addresses().next();
        let address = self.leases.find(now, host, wanted)?;
        self.leases.give(now, host, address, if commits { self.lease } else { OFFER.min(self.lease) });
        Some(address)
    }

    /// Section 18.3.3: whether the addresses fit the link, whoever gave them.
    fn confirm(&self, request: &Request<'_>, associations: &[Association<'_>]) -> Answer {
        let mut addresses = associations.iter().flat_map(|association| association.addresses()).peekable();
        if addresses.peek().is_none() {
            return Answer::Nothing;
        }
        if addresses.all(|address| self.network.contains(&address)) {
            Answer::Granted(self.reply(request, kind::REPLY, &status(SUCCESS)))
        } else {
            Answer::Refused(Some(self.reply(request, kind::REPLY, &status(NOT_ON_LINK))))
        }
    }

    /// The frame of an answer with these options, and what all answers have.
    fn reply(&self, request: &Request<'_>, kind: u8, body: &[u8]) -> Vec<u8> {
        let [a, b, c] = request.message.transaction;
        let mut message = vec![kind, a, b, c];
        push(&mut message, option::SERVER_ID, &self.id);
        if let Some(client) = request.client {
            push(&mut message, option::CLIENT_ID, client);
        }
        message.extend(body);
        let resolvers: Vec<u8> = self.resolvers.iter().flat_map(Ipv6Addr::octets).collect();
        push(&mut message, option::DNS_SERVERS, &resolvers);
        if !self.search.is_empty() {
            push(&mut message, option::DOMAIN_LIST, &self.search);
        }
        self.frame(&message, request)
    }

    fn frame(&self, message: &[u8], request: &Request<'_>) -> Vec<u8> {
        let udp = UdpRepr { src_port: SERVER_PORT, dst_port: CLIENT_PORT };
        let ip = Ipv6Repr {
            src_addr: link_local(self.mac),
            dst_addr: request.source,
            next_header: IpProtocol::Udp,
            payload_len: udp.header_len() + message.len(),
            hop_limit: 64,
        };
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.mac.0),
            dst_addr: EthernetAddress(request.host.0),
            ethertype: EthernetProtocol::Ipv6,
        };
        let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + ip.payload_len];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
        ip.emit(&mut packet);
        let (from, to) = (IpAddress::Ipv6(ip.src_addr), IpAddress::Ipv6(ip.dst_addr));
        let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
        let fill = |payload: &mut [u8]| payload.copy_from_slice(message);
        udp.emit(&mut datagram, &from, &to, message.len(), fill, &ChecksumCapabilities::default());
        bytes
    }
}

/// A message of a host.
#[derive(Clone, Copy)]
struct Request<'a> {
    host: MacAddress,
    /// Its link-local address.
    source: Ipv6Addr,
    message: Message<'a>,
    /// Its DUID.
    client: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// What a frame carries whose checksum is right, and which comes from a host on the link.
    fn parse(frame: &'a [u8]) -> Option<Self> {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        let host = MacAddress(frame.src_addr().0);
        let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
        let (source, destination) = (packet.src_addr(), packet.dst_addr());
        let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
        let checksums = ChecksumCapabilities::default();
        // RFC 8200, section 8.1: there is always one.
        let is_whole = datagram.checksum() != 0
            && UdpRepr::parse(&datagram, &source.into(), &destination.into(), &checksums).is_ok();
        if !is_whole || !source.is_unicast_link_local() || !host.is_station() {
            return None;
        }
        let message = Message::parse(datagram.payload())?;
        let client = message.options.get(option::CLIENT_ID);
        // Section 11.1: a type, and 1 to 128 octets.
        if client.is_some_and(|id| !(3..=130).contains(&id.len())) {
            return None;
        }
        Some(Self { host, source, message, client })
    }
}

/// An identity association that a host asks something for (sections 21.4, 21.5, 21.21).
#[derive(Clone, Copy)]
struct Association<'a> {
    code: u16,
    id: [u8; 4],
    options: Options<'a>,
}

impl Association<'_> {
    /// How it begins.
    const fn head(&self) -> [u8; 4] {
        self.id
    }

    /// The addresses that the host has, or would like.
    fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        let addresses = self.options.each().filter(|(code, _)| *code == option::IA_ADDRESS);
        addresses.filter_map(|(_, contents)| contents.first_chunk::<16>().copied().map(Ipv6Addr::from))
    }
}

/// All of a message. `None` if one is malformed, or they are too many.
fn associations(options: Options<'_>) -> Option<Vec<Association<'_>>> {
    let mut found = vec![];
    for (code, contents) in options.each() {
        // Behind the identifier, all but one of temporary addresses have two times.
        let times = match code {
            option::IA_NA | option::IA_PD => 8,
            option::IA_TA => 0,
            _ => continue,
        };
        let (id, rest) = contents.split_first_chunk::<4>()?;
        let options = Options::parse(rest.get(times..)?)?;
        found.push(Association { code, id: *id, options });
    }
    (found.len() <= MOST_ASSOCIATIONS).then_some(found)
}

/// An address for so many seconds, of an association (section 21.6).
fn push_address(to: &mut Vec<u8>, address: Ipv6Addr, seconds: u32) {
    let seconds = seconds.to_be_bytes();
    push(to, option::IA_ADDRESS, &[&address.octets()[..], &seconds, &seconds].concat());
}

/// The option of a status (section 21.13).
fn status(code: u16) -> Vec<u8> {
    let text = match code {
        SUCCESS => "",
        NO_ADDRESS => "no address is left for this association",
        NOT_ON_LINK => "the address is of another network",
        _ => "there are no prefixes here",
    };
    let mut bytes = vec![];
    push(&mut bytes, option::STATUS, &[&code.to_be_bytes(), text.as_bytes()].concat());
    bytes
}

/// True if the frame carries a host's packet to the DHCPv6 servers of its link.
pub(super) fn is_request6(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x86, 0xdd])
        && frame.get(20) == Some(&17)
        && frame.get(38..54) == Some(&ALL_SERVERS.octets())
        && frame.get(56..58) == Some(&SERVER_PORT.to_be_bytes())
}
