//! Messages of DNS as the proxy reads them: a client's question, and what a resolver says to it.
//!
//! Any octets are a question or none. Two messages are in an input, the first one's length before
//! it. The proxy's own answers to a question answer it, with the limits that it has; so does what
//! is truncated; no question answers one. Whatever the second message teaches about addresses, no
//! more names are kept than there is room for, and nobody else learns of them.
#![cfg_attr(feature = "link", no_main)]

#[expect(dead_code, reason = "the proxy needs more of it")]
#[path = "../../crates/proxy/src/names.rs"]
mod names;
#[expect(dead_code, reason = "the proxy needs more of it")]
#[path = "../../crates/proxy/src/dns/question.rs"]
mod question;

use ackline::core::Instant;
use names::{AddressNames, Names};
use question::Question;
use simple_dns::Packet;
use simple_dns::rdata::RData;
use std::net::{IpAddr, Ipv4Addr};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Names that are kept: few, so that some are forgotten.
const ROOM: usize = 8;

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let Some((&length, rest)) = octets.split_first() else { return };
    let (asked, said) = rest.split_at(rest.len().min(length.into()));
    question::is_unhelpful(said);
    let Some(question) = Question::read(asked) else { return };
    assert!(!question.is_answered_by(asked), "a question");
    assert!(question.room() >= 512);
    let name = question.name();
    assert!(!name.bytes().any(|octet| octet.is_ascii_uppercase() || octet.is_ascii_control()), "{name:?}");

    let record = [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4][..], &[192, 0, 2, 1]].concat();
    let answer = question.answered(0, &[record]);
    assert!(question.is_answered_by(&answer));
    let truncated = question.truncated(&answer);
    assert!(question.is_answered_by(&truncated) && truncated.len() <= question.room());
    if question.is_answered_by(said) {
        let truncated = question.truncated(said);
        assert!(question.is_answered_by(&truncated) && truncated.len() <= question.room());
    }

    let Ok(packet) = Packet::parse(said) else { return };
    let (names, now) = (Names::new(ROOM), Instant::from_secs(1));
    let forgotten = names.learn(now, CLIENT, &name, &packet);
    let addresses = packet.answers.iter().filter_map(|record| match &record.rdata {
        RData::A(a) => Some(IpAddr::from(Ipv4Addr::from(a.address))),
        RData::AAAA(aaaa) => Some(std::net::Ipv6Addr::from(aaaa.address).into()),
        _ => None,
    });
    let mut kept = 0;
    let mut addresses: Vec<IpAddr> = addresses.collect();
    addresses.sort();
    addresses.dedup();
    for address in &addresses {
        let known = names.of(now, CLIENT, *address);
        kept += known.names.len();
        assert!(known.names.iter().all(|known| **known == *name));
        assert!(!known.names.is_empty() || !known.is_all || forgotten == 0);
        let others = names.of(now, OTHER, *address);
        assert!(others == AddressNames::default() || !others.is_all && others.names.is_empty());
    }
    assert!(kept <= ROOM);
}
