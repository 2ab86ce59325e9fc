//! Dialogues with hosts, message by message.

use super::super::{Provision, Provisioner};
use super::*;
use crate::device::NeighbourStats;
use crate::device::ethernet::neighbours::Attachment;

const ROUTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const GUEST: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
const OTHER: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x57]);
/// Type 4, and fd00::2.
const SERVER: [u8; 18] = [0, 4, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn provisioner(provision: &Provision) -> Provisioner {
    let attachment = Attachment::new(ROUTER)
        .address("10.0.2.2/24".parse().unwrap())
        .address("fd00::2/64".parse().unwrap());
    let mut provisioner = Provisioner::new(provision, &attachment, 1_400);
    provisioner.begin(Instant::ZERO);
    provisioner
}

/// What a client says.
#[derive(Clone)]
struct Said {
    host: MacAddress,
    kind: u8,
    options: Vec<(u16, Vec<u8>)>,
}

impl Said {
    fn new(kind: u8) -> Self {
        Self { host: GUEST, kind, options: vec![] }
    }

    fn from(mut self, host: MacAddress) -> Self {
        self.host = host;
        self
    }

    fn with(mut self, code: u16, contents: &[u8]) -> Self {
        self.options.push((code, contents.to_vec()));
        self
    }

    /// DUID-LL of the host (RFC 8415, section 11.4).
    fn id(self) -> Self {
        let id = [&[0, 3, 0, 1], &self.host.0[..]].concat();
        self.with(option::CLIENT_ID, &id)
    }

    fn server(self) -> Self {
        self.with(option::SERVER_ID, &SERVER)
    }

    /// An association, with an address that it has or would like.
    fn association(self, address: Option<Ipv6Addr>) -> Self {
        let mut contents = vec![0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0];
        if let Some(address) = address {
            push_address(&mut contents, address, 0);
        }
        self.with(option::IA_NA, &contents)
    }

    fn frame(&self) -> Vec<u8> {
        let mut message = vec![self.kind, 7, 8, 9];
        for (code, contents) in &self.options {
            push(&mut message, *code, contents);
        }
        frame(self.host, link_local(self.host), ALL_SERVERS, &message)
    }
}

fn frame(host: MacAddress, src_addr: Ipv6Addr, dst_addr: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let udp = UdpRepr { src_port: CLIENT_PORT, dst_port: SERVER_PORT };
    let payload_len = udp.header_len() + message.len();
    let mut bytes = vec![0; 14 + 40 + payload_len];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
    let to = MacAddress::multicast(dst_addr.into());
    EthernetRepr {
        src_addr: EthernetAddress(host.0),
        dst_addr: EthernetAddress(to.0),
        ethertype: EthernetProtocol::Ipv6,
    }
    .emit(&mut frame);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    Ipv6Repr { src_addr, dst_addr, next_header: IpProtocol::Udp, payload_len, hop_limit: 1 }
        .emit(&mut packet);
    let mut datagram = UdpPacket::new_unchecked(packet.payload_mut());
    let fill = |payload: &mut [u8]| payload.copy_from_slice(message);
    let checksums = ChecksumCapabilities::default();
    udp.emit(&mut datagram, &src_addr.into(), &dst_addr.into(), message.len(), fill, &checksums);
    bytes
}

fn ask_frame(provisioner: &mut Provisioner, now: Instant, frame: &[u8]) -> Option<Vec<u8>> {
    provisioner.ingest(now, frame, &mut NeighbourStats::default());
    let answer = provisioner.next().map(<[u8]>::to_vec);
    provisioner.sent();
    answer
}

/// What a client hears: the type, the addresses with their seconds, the status, and all options.
#[derive(Debug, PartialEq)]
struct Heard {
    kind: u8,
    addresses: Vec<(Ipv6Addr, u32)>,
    /// Of the message, or of its first association.
    status: Option<u16>,
    options: Vec<(u16, Vec<u8>)>,
}

impl Heard {
    fn option(&self, code: u16) -> Option<&[u8]> {
        self.options.iter().find(|option| option.0 == code).map(|option| &option.1[..])
    }
}

fn ask(provisioner: &mut Provisioner, now: Instant, said: &Said) -> Option<Heard> {
    let answer = ask_frame(provisioner, now, &said.frame())?;
    let frame = EthernetFrame::new_checked(&answer[..]).unwrap();
    assert_eq!(frame.dst_addr().0, said.host.0);
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!((packet.src_addr(), packet.dst_addr()), (link_local(ROUTER), link_local(said.host)));
    let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
    assert!(datagram.verify_checksum(&packet.src_addr().into(), &packet.dst_addr().into()));
    assert_eq!((datagram.src_port(), datagram.dst_port()), (547, 546));
    let message = Message::parse(datagram.payload()).unwrap();
    assert_eq!(message.transaction, [7, 8, 9]);
    let (mut addresses, mut status) = (vec![], message.options.get(option::STATUS));
    for association in associations(message.options).unwrap() {
        for (code, contents) in association.options.each() {
            match code {
                option::IA_ADDRESS => {
                    let (address, times) = contents.split_first_chunk::<16>().unwrap();
                    let valid = u32::from_be_bytes(times[4..8].try_into().unwrap());
                    addresses.push(((*address).into(), valid));
                }
                option::STATUS => status = status.or(Some(contents)),
                other => panic!("option {other}"),
            }
        }
    }
    let status = status.map(|status| u16::from_be_bytes(status[..2].try_into().unwrap()));
    let options = message.options.each().map(|(code, contents)| (code, contents.to_vec())).collect();
    let heard = Heard { kind: message.kind, addresses, status, options };
    assert_eq!(heard.option(option::SERVER_ID), Some(&SERVER[..]));
    let own = said.options.iter().find(|option| option.0 == option::CLIENT_ID);
    assert_eq!(heard.option(option::CLIENT_ID), own.map(|option| &option.1[..]));
    Some(heard)
}

/// An address that a host has now.
fn take(provisioner: &mut Provisioner, now: Instant, host: MacAddress) -> Ipv6Addr {
    let request = Said::new(kind::REQUEST).from(host).id().server().association(None);
    ask(provisioner, now, &request).expect("a reply").addresses[0].0
}

#[test]
fn a_host_solicits_requests_renews_and_releases_an_address() {
    let provision = Provision { search: vec!["lab.example".to_owned()], ..Provision::default() };
    let mut router = provisioner(&provision);
    let solicit = Said::new(kind::SOLICIT).id().association(None);
    let offer = ask(&mut router, Instant::ZERO, &solicit).expect("an advertisement");
    assert_eq!(offer.kind, kind::ADVERTISE);
    let [(address, 43_200)] = offer.addresses[..] else { panic!("{offer:?}") };
    assert!("fd00::1:0/116".parse::<Ipv6Net>().unwrap().contains(&address), "{address}");
    assert_eq!(offer.option(option::PREFERENCE), Some(&[255][..]));
    let resolver: Ipv6Addr = "fd00::2".parse().unwrap();
    assert_eq!(offer.option(option::DNS_SERVERS), Some(&resolver.octets()[..]));
    assert_eq!(offer.option(option::DOMAIN_LIST), Some(&b"\x03lab\x07example\0"[..]));
    // Identifier, T1, T2.
    let head = [&[0, 0, 0, 9][..], &21_600_u32.to_be_bytes(), &34_560_u32.to_be_bytes()].concat();
    assert!(offer.option(option::IA_NA).unwrap().starts_with(&head), "{offer:?}");

    let request = Said::new(kind::REQUEST).id().server().association(Some(address));
    let reply = ask(&mut router, Instant::ZERO, &request).expect("a reply");
    assert_eq!((reply.kind, &reply.addresses[..]), (kind::REPLY, &[(address, 43_200)][..]));
    let renew = Said::new(kind::RENEW).id().server().association(Some(address));
    let rebind = Said::new(kind::REBIND).id().association(Some(address));
    for said in [&renew, &rebind] {
        let reply = ask(&mut router, Instant::from_millis(21_600_000), said).expect("a reply");
        assert_eq!((reply.kind, &reply.addresses[..]), (kind::REPLY, &[(address, 43_200)][..]));
    }
    // The server forgets everything, and is known by the same name.
    let mut anew = provisioner(&provision);
    let reply = ask(&mut anew, Instant::ZERO, &renew).expect("a reply");
    assert_eq!(reply.addresses, [(address, 43_200)]);
    assert_ne!(take(&mut anew, Instant::ZERO, OTHER), address);
    // Another host's is taken from it.
    let wrong = Said::new(kind::RENEW).from(OTHER).id().server().association(Some(address));
    let reply = ask(&mut anew, Instant::ZERO, &wrong).expect("a reply");
    assert_eq!(reply.addresses.len(), 2);
    assert!(reply.addresses[0].0 != address && reply.addresses[1] == (address, 0), "{reply:?}");

    let release = Said::new(kind::RELEASE).id().server().association(Some(address));
    let reply = ask(&mut anew, Instant::ZERO, &release).expect("a reply");
    assert_eq!((reply.kind, reply.status), (kind::REPLY, Some(SUCCESS)));
    // Somebody else has what the host was given.
    let mine = take(&mut anew, Instant::ZERO, GUEST);
    assert_eq!(mine, address);
    let decline = Said::new(kind::DECLINE).id().server().association(Some(mine));
    assert_eq!(ask(&mut anew, Instant::ZERO, &decline).expect("a reply").status, Some(SUCCESS));
    assert_ne!(take(&mut anew, Instant::ZERO, GUEST), mine);
}

#[test]
fn a_solicitation_may_be_all_it_takes_and_settings_are_told_without_an_address() {
    let mut router = provisioner(&Provision::default());
    let rapid = Said::new(kind::SOLICIT).id().association(None).with(option::RAPID_COMMIT, &[]);
    let reply = ask(&mut router, Instant::ZERO, &rapid).expect("a reply");
    assert_eq!((reply.kind, reply.addresses.len()), (kind::REPLY, 1));
    assert_eq!(reply.option(option::RAPID_COMMIT), Some(&[][..]));

    // Section 18.2.6: with an identifier or without.
    let question = Said::new(kind::INFORMATION_REQUEST);
    for said in [question.clone(), question.id()] {
        let reply = ask(&mut router, Instant::ZERO, &said).expect("a reply");
        assert_eq!((reply.kind, &reply.addresses[..]), (kind::REPLY, &[][..]));
        assert!(reply.option(option::DNS_SERVERS).is_some());
    }
}

#[test]
fn one_association_has_an_address_and_others_hear_that_there_is_none() {
    let mut router = provisioner(&Provision::default());
    let prefix = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let several = Said::new(kind::SOLICIT).id().association(None).association(None);
    let several = several.with(option::IA_PD, &prefix).with(option::IA_TA, &[0, 0, 0, 2]);
    let offer = ask(&mut router, Instant::ZERO, &several).expect("an advertisement");
    assert_eq!((offer.addresses.len(), offer.status), (1, Some(NO_ADDRESS)));
    let delegated = offer.option(option::IA_PD).expect("an answer");
    assert_eq!(Options::parse(&delegated[12..]).unwrap().get(option::STATUS).unwrap()[..2], [0, 6]);
    let temporary = offer.option(option::IA_TA).expect("an answer");
    assert_eq!(Options::parse(&temporary[4..]).unwrap().get(option::STATUS).unwrap()[..2], [0, 2]);
    let crowd = (0..9).fold(Said::new(kind::SOLICIT).id(), |said, _| said.association(None));
    assert_eq!(ask(&mut router, Instant::ZERO, &crowd), None);
}

/// RFC 8415, section 16.
#[test]
fn messages_that_break_a_rule_or_are_for_another_server_have_no_answer() {
    let mut router = provisioner(&Provision::default());
    let mut stats = NeighbourStats::default();
    let other = |said: Said| said.with(option::SERVER_ID, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9]);
    let said = Said::new;
    let invalid = [
        said(kind::SOLICIT).association(None),
        said(kind::SOLICIT).id().server().association(None),
        said(kind::REQUEST).id().association(None),
        said(kind::REQUEST).server().association(None),
        said(kind::CONFIRM).id().server().association(None),
        said(kind::RENEW).id().association(None),
        said(kind::REBIND).id().server().association(None),
        said(kind::INFORMATION_REQUEST).id().association(None),
        said(kind::ADVERTISE).id().association(None),
        said(kind::REPLY).id().server(),
        // A relay's.
        said(12).id(),
        said(kind::SOLICIT).with(option::CLIENT_ID, &[0, 3]).association(None),
        said(kind::SOLICIT).with(option::CLIENT_ID, &[0; 131]).association(None),
        said(kind::SOLICIT).id().with(option::IA_NA, &[0; 11]),
    ];
    for (number, said) in invalid.iter().enumerate() {
        router.ingest(Instant::ZERO, &said.frame(), &mut stats);
        assert_eq!((router.next(), stats.invalid), (None, number as u64 + 1), "{number}");
    }
    for said in [
        other(said(kind::REQUEST).id()).association(None),
        other(said(kind::RENEW).id()).association(None),
        other(said(kind::INFORMATION_REQUEST)),
        said(kind::CONFIRM).id().association(None),
    ] {
        router.ingest(Instant::ZERO, &said.frame(), &mut stats);
        assert_eq!((router.next(), stats.invalid), (None, invalid.len() as u64), "{}", said.kind);
    }
    // From beyond the link, or not for servers.
    let solicit = [&[kind::SOLICIT, 7, 8, 9][..], &[0, 1, 0, 4, 0, 3, 0, 1]].concat();
    let global = frame(GUEST, "2001:db8::1".parse().unwrap(), ALL_SERVERS, &solicit);
    assert_eq!(ask_frame(&mut router, Instant::ZERO, &global), None);
    let elsewhere = frame(GUEST, link_local(GUEST), "ff02::1:3".parse().unwrap(), &solicit);
    assert!(!router.servers().are_asked(&elsewhere) && router.servers().are_asked(&global));
    let without = provisioner(&Provision { dhcp: false, ..Provision::default() });
    assert!(!without.servers().are_asked(&global));
}

#[test]
fn a_host_that_has_moved_hears_whether_its_address_fits() {
    let mut router = provisioner(&Provision::default());
    for (address, expected) in [("fd00::1:7", SUCCESS), ("fd00:1::1:7", NOT_ON_LINK)] {
        let confirm = Said::new(kind::CONFIRM).id().association(Some(address.parse().unwrap()));
        let reply = ask(&mut router, Instant::ZERO, &confirm).expect("a reply");
        assert_eq!((reply.kind, reply.status), (kind::REPLY, Some(expected)), "{address}");
    }
}

#[test]
fn a_crowd_of_forged_hosts_takes_no_memory_and_no_address_from_a_guest_that_has_one() {
    let mut router = provisioner(&Provision::default());
    let mine = take(&mut router, Instant::ZERO, GUEST);
    let mut stats = NeighbourStats::default();
    for number in 0..10_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        let said = Said::new(kind::SOLICIT).from(MacAddress([6, 6, 6, b, c, d])).id().association(None);
        router.ingest(Instant::ZERO, &said.frame(), &mut stats);
        router.sent();
    }
    assert_eq!((stats.leases_granted, stats.leases_refused), (4_095, 10_000 - 4_095), "{stats:?}");
    assert_eq!(take(&mut router, Instant::ZERO, GUEST), mine);
    let late = Said::new(kind::SOLICIT).from(OTHER).id().association(None);
    let refused = ask(&mut router, Instant::from_millis(59_000), &late).expect("an answer");
    assert_eq!((refused.kind, refused.status), (kind::ADVERTISE, Some(NO_ADDRESS)));
    let offer = ask(&mut router, Instant::from_millis(60_000), &late).expect("an answer");
    assert_eq!((offer.addresses.len(), offer.status), (1, None), "what nobody took is free");
}

#[test]
fn what_is_damaged_is_not_answered() {
    let frame = Said::new(kind::SOLICIT).id().association(None).frame();
    let mut router = provisioner(&Provision::default());
    for place in 14..frame.len() {
        for bit in 0..8 {
            let mut damaged = frame.clone();
            damaged[place] ^= 1 << bit;
            let answer = ask_frame(&mut router, Instant::ZERO, &damaged);
            // No checksum has version, class, label and hop limit.
            let is_covered = !(14..18).contains(&place) && place != 21;
            assert!(answer.is_none() || !is_covered, "bit {bit} of octet {place}");
        }
    }
    for length in 0..frame.len() {
        assert_eq!(ask_frame(&mut router, Instant::ZERO, &frame[..length]), None, "{length} octets");
    }
    // Options that end beyond the message, at every length that they may claim.
    for claimed in 0..=u16::MAX {
        let [high, low] = claimed.to_be_bytes();
        let message = [kind::SOLICIT, 7, 8, 9, 0, 1, 0, 4, 0, 3, 0, 1, 0, 3, high, low, 0, 0, 0, 9];
        let sent = super::tests::frame(GUEST, link_local(GUEST), ALL_SERVERS, &message);
        assert_eq!(ask_frame(&mut router, Instant::ZERO, &sent), None, "{claimed}");
    }
}

#[test]
fn router_advertisements_say_that_there_is_dhcp() {
    for (dhcp, expected) in [(true, 0xc0), (false, 0)] {
        let mut router = provisioner(&Provision { dhcp, ..Provision::default() });
        router.handle_timeout(Instant::ZERO, &mut NeighbourStats::default());
        // Behind type, code, checksum and hop limit.
        assert_eq!(router.next().expect("an advertisement")[14 + 40 + 5], expected);
    }
}
