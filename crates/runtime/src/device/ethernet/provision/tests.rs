//! With the DHCP client of smoltcp, and messages by hand where it never does what is asked.

use super::*;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::dhcpv4::{Event, Socket};
use smoltcp::wire::{
    DhcpMessageType, DhcpOption, DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, HardwareAddress, Icmpv6Packet, Icmpv6Repr, IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr,
    Ipv6Packet, Ipv6Repr, NdiscRepr, RawHardwareAddress, UdpPacket, UdpRepr,
};

const ROUTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const GUEST: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
const OTHER: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x57]);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// The router, beside another one and a printer.
fn attachment() -> Attachment {
    let net = |text: &str| text.parse::<IpNet>().unwrap();
    Attachment::new(ROUTER)
        .address(net("10.0.2.2/24"))
        .address(net("10.0.2.3/24"))
        .address(net("192.0.2.1/24"))
        .address(net("fd00::2/64"))
        .gateway("10.0.2.1".parse().unwrap())
        .neighbour("10.0.2.9".parse().unwrap(), OTHER)
}

fn provisioner(provision: &Provision) -> Provisioner {
    let mut provisioner = Provisioner::new(provision, &attachment(), 1_400);
    provisioner.begin(Instant::ZERO);
    provisioner
}

fn ask(provisioner: &mut Provisioner, now: Instant, frame: &[u8]) -> Option<Vec<u8>> {
    let mut stats = NeighbourStats::default();
    provisioner.ingest(now, frame, &mut stats);
    let answer = provisioner.next().map(<[u8]>::to_vec);
    provisioner.sent();
    answer
}

/// A guest's interface: frames in and out.
#[derive(Default)]
struct Wire {
    received: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Received, Sent<'_>)> {
        Some((Received(self.received.pop_front()?), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        (caps.medium, caps.max_transmission_unit) = (Medium::Ethernet, 1_514);
        caps
    }
}

#[test]
fn a_guest_of_another_stack_configures_itself_and_renews() {
    let provision = Provision::default().host(GUEST, Ipv4Addr::new(10, 0, 2, 15));
    let mut provisioner = provisioner(&provision);
    let mut wire = Wire::default();
    let hardware = HardwareAddress::Ethernet(EthernetAddress(GUEST.0));
    let mut interface = Interface::new(Config::new(hardware), &mut wire, smoltcp::time::Instant::ZERO);
    let mut sockets = SocketSet::new(vec![]);
    let client = sockets.add(Socket::new());
    let mut stats = NeighbourStats::default();
    let mut configured = 0;
    // Two leases long, of which half is over before the client asks again.
    for second in 0..86_400 {
        let time = smoltcp::time::Instant::from_secs(second);
        for _ in 0..3 {
            interface.poll(time, &mut wire, &mut sockets);
            for frame in wire.sent.drain(..) {
                provisioner.ingest(Instant::from_millis(second as u64 * 1_000), &frame, &mut stats);
            }
            while let Some(frame) = provisioner.next() {
                wire.received.push_back(frame.to_vec());
                provisioner.sent();
            }
        }
        match sockets.get_mut::<Socket<'_>>(client).poll() {
            Some(Event::Configured(config)) => {
                assert_eq!(config.address.to_string(), "10.0.2.15/24");
                assert_eq!((config.router, &config.dns_servers[..]), (Some(OWN), &[OWN][..]));
                configured += 1;
            }
            Some(Event::Deconfigured) => assert_eq!(configured, 0, "second {second}"),
            None => {}
        }
    }
    assert!(configured >= 1, "{stats:?}");
    assert!(stats.leases_granted >= 4 && stats.leases_refused == 0, "offer, first ACK, renewals: {stats:?}");
}

/// What a client says.
struct Message<'a> {
    host: MacAddress,
    kind: DhcpMessageType,
    /// Its own, as it believes.
    address: Ipv4Addr,
    requested: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    relay: Ipv4Addr,
    id: &'a [u8],
}

impl Default for Message<'_> {
    fn default() -> Self {
        let none = Ipv4Addr::UNSPECIFIED;
        Self {
            host: GUEST,
            kind: DhcpMessageType::Discover,
            address: none,
            requested: None,
            server: None,
            relay: none,
            id: &[],
        }
    }
}

impl Message<'_> {
    fn frame(&self) -> Vec<u8> {
        let options = [DhcpOption { kind: 61, data: self.id }];
        let message = DhcpRepr {
            message_type: self.kind,
            transaction_id: 7,
            secs: 0,
            client_hardware_address: EthernetAddress(self.host.0),
            client_ip: self.address,
            your_ip: Ipv4Addr::UNSPECIFIED,
            server_ip: Ipv4Addr::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: self.relay,
            broadcast: false,
            requested_ip: self.requested,
            client_identifier: None,
            server_identifier: self.server,
            parameter_request_list: None,
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: if self.id.is_empty() { &[] } else { &options },
        };
        let length = message.buffer_len();
        let checksums = ChecksumCapabilities::default();
        let udp = UdpRepr { src_port: 68, dst_port: 67 };
        let (src_addr, dst_addr) = (self.address, Ipv4Addr::BROADCAST);
        let ip = Ipv4Repr {
            src_addr,
            dst_addr,
            next_header: IpProtocol::Udp,
            payload_len: 8 + length,
            hop_limit: 64,
        };
        let mut bytes = vec![0; 14 + 20 + 8 + length];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        let (src, dst) = (EthernetAddress(self.host.0), EthernetAddress::BROADCAST);
        EthernetRepr { src_addr: src, dst_addr: dst, ethertype: EthernetProtocol::Ipv4 }.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
        ip.emit(&mut packet, &checksums);
        let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
        let (from, to) = (IpAddress::Ipv4(src_addr), IpAddress::Ipv4(dst_addr));
        let fill = |payload: &mut [u8]| message.emit(&mut DhcpPacket::new_unchecked(payload)).unwrap();
        udp.emit(&mut datagram, &from, &to, length, fill, &checksums);
        bytes
    }
}

/// Kind, the address given, where to, which station, and the options.
#[derive(Debug, PartialEq)]
struct Heard {
    kind: DhcpMessageType,
    given: Ipv4Addr,
    to: Ipv4Addr,
    station: MacAddress,
    options: Vec<(u8, Vec<u8>)>,
}

fn heard(bytes: &[u8]) -> Heard {
    let frame = EthernetFrame::new_checked(bytes).unwrap();
    let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
    assert!(packet.verify_checksum());
    let to = packet.dst_addr();
    let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
    assert!(datagram.verify_checksum(&packet.src_addr().into(), &to.into()));
    assert_eq!((datagram.src_port(), datagram.dst_port()), (67, 68));
    assert!(datagram.payload().len() >= 300);
    let packet = DhcpPacket::new_checked(datagram.payload()).unwrap();
    let message = DhcpRepr::parse(&packet).unwrap();
    Heard {
        kind: message.message_type,
        given: message.your_ip,
        to,
        station: MacAddress(frame.dst_addr().0),
        options: packet.options().map(|option| (option.kind, option.data.to_vec())).collect(),
    }
}

#[test]
fn an_offer_says_what_a_host_needs() {
    let id = [0xff, 1, 2, 3];
    let provision = Provision { domain: Some("example.org".to_owned()), ..Provision::default() };
    let mut provisioner = provisioner(&provision);
    let answer = ask(&mut provisioner, Instant::ZERO, &Message { id: &id, ..Message::default() }.frame());
    let offer = heard(&answer.expect("an offer"));
    assert_eq!((offer.kind, offer.to, offer.station), (DhcpMessageType::Offer, offer.given, GUEST));
    let option = |kind| offer.options.iter().find(|option| option.0 == kind).map(|option| &option.1[..]);
    assert_eq!(option(1), Some(&[255, 255, 255, 0][..]), "subnet mask");
    assert_eq!(option(3), Some(&OWN.octets()[..]), "router");
    assert_eq!(option(6), Some(&OWN.octets()[..]), "resolver");
    assert_eq!(option(15), Some(&b"example.org"[..]), "domain");
    assert_eq!(option(26), Some(&1_400_u16.to_be_bytes()[..]), "MTU");
    assert_eq!(option(51), Some(&43_200_u32.to_be_bytes()[..]), "lease");
    assert_eq!(option(54), Some(&OWN.octets()[..]), "server");
    assert_eq!(option(61), Some(&id[..]), "the client's identifier: RFC 6842");
}

#[test]
fn search_domains_are_told_by_dhcp_and_router_advertisements() {
    let search = vec!["lab.example".to_owned(), "test.".to_owned()];
    let provision = Provision { domain: Some("home".to_owned()), search, ..Provision::default() };
    assert_eq!(provision.fault(&attachment()), None);
    let mut provisioner = provisioner(&provision);
    // RFC 1035, section 3.1: each label behind its length.
    let list = b"\x04home\0\x03lab\x07example\0\x04test\0";
    let offer = heard(&ask(&mut provisioner, Instant::ZERO, &Message::default().frame()).expect("an offer"));
    assert!(offer.options.contains(&(119, list.to_vec())), "{offer:?}");
    assert!(offer.options.contains(&(15, b"home".to_vec())), "{offer:?}");

    let mut stats = NeighbourStats::default();
    provisioner.handle_timeout(Instant::ZERO, &mut stats);
    provisioner.outgoing.clear();
    let asked = solicitation(link_local(GUEST));
    let answer = ask(&mut provisioner, Instant::from_millis(1_000), &asked).expect("an answer");
    // RFC 8106, section 5.2: type, length in units of eight octets, reserved, lifetime, names,
    // padding.
    let wanted = [&[31, 5, 0, 0][..], &1_800_u32.to_be_bytes(), list, &[0; 7]].concat();
    assert_eq!(wanted.len(), 40);
    assert!(answer.ends_with(&wanted), "{answer:?}");

    for wrong in ["", "a..b", &"a".repeat(64)] {
        let provision = Provision { search: vec![wrong.to_owned()], ..Provision::default() };
        assert!(provision.fault(&attachment()).expect("wrong").contains("is no domain"));
    }
    let many = vec![format!("{}.test", "a".repeat(60)); 4];
    let provision = Provision { search: many, ..Provision::default() };
    assert!(provision.fault(&attachment()).expect("too long").contains("255 octets"));
}

/// RFC 2131, section 4.3.2, table 4: what a request may say, and what is answered.
#[test]
fn requests_are_answered_by_the_clients_state() {
    let request = |address, requested, server| Message {
        kind: DhcpMessageType::Request,
        address,
        requested,
        server,
        ..Message::default()
    };
    let none = Ipv4Addr::UNSPECIFIED;
    let wanted = Ipv4Addr::new(10, 0, 2, 40);
    let elsewhere = Ipv4Addr::new(192, 168, 0, 40);
    let mut provisioner = provisioner(&Provision::default());
    let mut answer = |message: Message<'_>| {
        let answer = ask(&mut provisioner, Instant::ZERO, &message.frame());
        answer.map(|bytes| {
            let heard = heard(&bytes);
            (heard.kind, heard.given, heard.to)
        })
    };
    let ack = Some((DhcpMessageType::Ack, wanted, wanted));
    let nak = Some((DhcpMessageType::Nak, none, Ipv4Addr::BROADCAST));
    assert_eq!(answer(request(none, Some(wanted), None)), ack, "INIT-REBOOT after the server forgot");
    assert_eq!(answer(request(none, Some(elsewhere), None)), nak, "on the wrong network");
    assert_eq!(answer(request(none, Some(OWN), Some(OWN))), nak, "the server's own");
    let gateway = Ipv4Addr::new(10, 0, 2, 1);
    assert_eq!(answer(request(none, Some(gateway), None)), nak, "the gateway's");
    assert_eq!(answer(request(none, Some(wanted), Some(elsewhere))), None, "another server is chosen");
    assert_eq!(answer(request(wanted, None, None)), ack, "RENEWING");
    assert_eq!(answer(request(none, None, None)), None, "nothing is asked");
    let other = Message { host: OTHER, ..request(none, Some(wanted), None) };
    assert_eq!(answer(other), nak, "another host's");
    let relayed = Message { relay: elsewhere, ..request(none, Some(wanted), None) };
    assert_eq!(answer(relayed), None, "there are no relays here");
    let inform = Message { kind: DhcpMessageType::Inform, address: wanted, ..Message::default() };
    assert_eq!(answer(inform), Some((DhcpMessageType::Ack, none, wanted)), "no address, no lease");
    let release = Message { kind: DhcpMessageType::Release, address: wanted, ..Message::default() };
    assert_eq!(answer(release), None);
    let other = Message { host: OTHER, ..request(none, Some(wanted), None) };
    assert_eq!(answer(other), ack, "it was released");
}

#[test]
fn a_crowd_of_forged_hosts_takes_no_memory_and_no_address_from_a_guest_that_has_one() {
    let mut provisioner = provisioner(&Provision::default());
    let mut stats = NeighbourStats::default();
    let mine = heard(&ask(&mut provisioner, Instant::ZERO, &Message::default().frame()).unwrap()).given;
    let take =
        Message { kind: DhcpMessageType::Request, requested: Some(mine), ..Message::default() }.frame();
    assert!(ask(&mut provisioner, Instant::ZERO, &take).is_some());
    for number in 0..20_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        let message = Message { host: MacAddress([6, 6, 6, b, c, d]), ..Message::default() };
        provisioner.ingest(Instant::ZERO, &message.frame(), &mut stats);
    }
    assert_eq!(stats.leases_granted, 249, "of 254 addresses five are in use: {stats:?}");
    assert_eq!(stats.leases_refused, 20_000 - 249);
    assert!(provisioner.outgoing.len() <= MOST && stats.outgoing_dropped > 0);
    provisioner.outgoing.clear();
    let renew = Message { kind: DhcpMessageType::Request, address: mine, ..Message::default() }.frame();
    assert_eq!(heard(&ask(&mut provisioner, Instant::ZERO, &renew).unwrap()).kind, DhcpMessageType::Ack);
    // What was offered and not taken is free a minute later.
    let late = Message { host: OTHER, ..Message::default() }.frame();
    assert!(ask(&mut provisioner, Instant::from_millis(59_000), &late).is_none());
    assert!(ask(&mut provisioner, Instant::from_millis(60_000), &late).is_some());
}

/// A host that starts anew, or somebody under its name, asks for an offer and does not take it.
#[test]
fn an_offer_does_not_shorten_a_lease() {
    let mut provisioner = provisioner(&Provision::default());
    let discover = Message::default().frame();
    let mine = heard(&ask(&mut provisioner, Instant::ZERO, &discover).unwrap()).given;
    let take = Message { kind: DhcpMessageType::Request, requested: Some(mine), ..Message::default() };
    assert!(ask(&mut provisioner, Instant::ZERO, &take.frame()).is_some());
    assert!(ask(&mut provisioner, Instant::from_millis(1_000), &discover).is_some());
    let other = Message { host: OTHER, ..take }.frame();
    let answer = ask(&mut provisioner, Instant::from_millis(62_000), &other).unwrap();
    assert_eq!(heard(&answer).kind, DhcpMessageType::Nak);
}

#[test]
fn requests_to_other_servers_are_packets_like_others() {
    let own = Message {
        kind: DhcpMessageType::Request,
        address: Ipv4Addr::new(10, 0, 2, 40),
        ..Message::default()
    };
    let mut frame = own.frame();
    assert!(is_request(&frame, OWN));
    frame[30..34].copy_from_slice(&OWN.octets());
    assert!(is_request(&frame, OWN));
    frame[30..34].copy_from_slice(&[192, 0, 2, 7]);
    assert!(!is_request(&frame, OWN));
    let without = Provision { dhcp: false, ..Provision::default() };
    assert!(!Provisioner::new(&without, &attachment(), 1_400).servers().are_asked(&own.frame()));
}

#[test]
fn what_is_damaged_is_counted_and_changes_nothing() {
    let frame = Message::default().frame();
    let mut provisioner = provisioner(&Provision::default());
    for place in 14..frame.len() {
        for bit in 0..8 {
            let mut damaged = frame.clone();
            damaged[place] ^= 1 << bit;
            assert_eq!(ask(&mut provisioner, Instant::ZERO, &damaged), None, "bit {bit} of octet {place}");
        }
    }
    for length in 0..frame.len() {
        assert_eq!(ask(&mut provisioner, Instant::ZERO, &frame[..length]), None, "{length} octets");
    }
    assert!(ask(&mut provisioner, Instant::ZERO, &frame).is_some());
}

fn solicitation(source: Ipv6Addr) -> Vec<u8> {
    let to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    let lladdr = (!source.is_unspecified()).then(|| RawHardwareAddress::from(EthernetAddress(GUEST.0)));
    let message = Icmpv6Repr::Ndisc(NdiscRepr::RouterSolicit { lladdr });
    let length = message.buffer_len();
    let mut bytes = vec![0; 14 + 40 + length];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
    let dst_addr = EthernetAddress(MacAddress::multicast(to.into()).0);
    EthernetRepr { src_addr: EthernetAddress(GUEST.0), dst_addr, ethertype: EthernetProtocol::Ipv6 }
        .emit(&mut frame);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    let (src_addr, dst_addr) = (source, to);
    Ipv6Repr { src_addr, dst_addr, next_header: IpProtocol::Icmpv6, payload_len: length, hop_limit: 255 }
        .emit(&mut packet);
    let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
    message.emit(&source, &to, &mut icmp, &ChecksumCapabilities::default());
    bytes
}

#[test]
fn a_router_is_advertised_at_once_then_seldom_and_when_somebody_asks() {
    let mut provisioner = provisioner(&Provision::default());
    let mut stats = NeighbourStats::default();
    let mut due = vec![];
    while let Some(at) = provisioner.poll_timeout().filter(|at| *at < Instant::from_millis(700_000)) {
        provisioner.handle_timeout(at, &mut stats);
        due.push(at.since(Instant::ZERO).as_millis() / 1_000);
        provisioner.outgoing.clear();
    }
    assert_eq!(due, [0, 16, 32, 332, 632], "RFC 4861, sections 6.2.4 and 10");

    let source = link_local(GUEST);
    assert_eq!(source.to_string(), "fe80::5054:ff:fe12:3456");
    let answer =
        ask(&mut provisioner, Instant::from_millis(640_000), &solicitation(source)).expect("an answer");
    let frame = EthernetFrame::new_checked(&answer[..]).unwrap();
    assert_eq!(frame.dst_addr().0, GUEST.0);
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!((packet.src_addr(), packet.dst_addr(), packet.hop_limit()), (link_local(ROUTER), source, 255));
    let icmp = Icmpv6Packet::new_checked(packet.payload()).unwrap();
    let parsed = Icmpv6Repr::parse(&packet.src_addr(), &source, &icmp, &ChecksumCapabilities::default());
    let Ok(Icmpv6Repr::Ndisc(NdiscRepr::RouterAdvert { router_lifetime, mtu, prefix_info, lladdr, .. })) =
        parsed
    else {
        panic!("{parsed:?}")
    };
    assert_eq!((router_lifetime.secs(), mtu), (1_800, Some(1_400)));
    assert_eq!(lladdr, Some(RawHardwareAddress::from(EthernetAddress(ROUTER.0))));
    let prefix = prefix_info.expect("a prefix");
    assert_eq!((prefix.prefix.to_string(), prefix.prefix_len), ("fd00::".to_owned(), 64));
    // The resolver is behind it: type, length, reserved, lifetime, address.
    let resolver: Ipv6Addr = "fd00::2".parse().unwrap();
    let wanted = [&[25, 3, 0, 0][..], &1_800_u32.to_be_bytes(), &resolver.octets()].concat();
    assert!(answer.ends_with(&wanted));

    // A host without an address hears the next one to all, not sooner than three seconds after the
    // last.
    let nobody = solicitation(Ipv6Addr::UNSPECIFIED);
    assert_eq!(ask(&mut provisioner, Instant::from_millis(633_000), &nobody), None);
    assert_eq!(provisioner.poll_timeout(), Some(Instant::from_millis(635_000)));
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let fault = |provision: &Provision| provision.fault(&attachment()).unwrap_or_default();
    let at = |text: &str| text.parse().unwrap();
    assert_eq!(fault(&Provision::default()), "");
    assert!(fault(&Provision::default().host(GUEST, at("10.0.3.1"))).contains("in no network"));
    for (address, what) in [
        ("10.0.2.2", "this host's own"),
        ("10.0.2.3", "this host's own"),
        ("192.0.2.7", "in no network"),
        ("10.0.2.0", "the network's"),
        ("10.0.2.255", "the network's"),
        ("10.0.2.1", "another host's already"),
        ("10.0.2.9", "another host's already"),
    ] {
        let found = fault(&Provision::default().host(GUEST, at(address)));
        assert!(found.contains(what), "{address}: {found}");
    }
    let twice = Provision::default().host(GUEST, at("10.0.2.15")).host(OTHER, at("10.0.2.15"));
    assert!(fault(&twice).contains("one address for each host"));
    let short = Provision { lease: Duration::from_secs(1), ..Provision::default() };
    assert!(fault(&short).contains("120 s at least"));
}
