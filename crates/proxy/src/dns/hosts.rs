//! Names that the proxy answers itself, like a hosts file.

use super::question::Question;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How long a client may remember an answer, in seconds.
const TTL: u32 = 60;
/// Types and the class of questions (RFC 1035, section 3.2; RFC 3596).
const A: u16 = 1;
const AAAA: u16 = 28;
const ANY: u16 = 255;
const IN: u16 = 1;
/// Longest name and label (RFC 1035, section 2.3.4), as text.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// Names with their addresses, for every client. They need no resolver, and no
/// resolver learns that they were asked for. Default: none.
///
/// A name that is here has no other addresses and no other records: a question for one is answered
/// with none of it (RFC 2308, section 2.2). Names below it are not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: BTreeMap<String, Vec<IpAddr>>,
}

impl Hosts {
    /// Adds an address of `name`.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn add(&mut self, name: &str, address: IpAddr) -> Result<(), String> {
        let name = Self::key(name)?;
        let addresses = self.names.entry(name).or_default();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
        Ok(())
    }

    /// Adds those of `other`. What both have is `other`'s.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
    }

    /// True without any name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name as it is compared (RFC 4343).
    fn key(name: &str) -> Result<String, String> {
        let key = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_label = |label: &str| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.len() <= LONGEST_LABEL && label.bytes().all(is_letter)
        };
        if key.len() <= LONGEST_NAME && key.split('.').all(is_label) {
            Ok(key)
        } else {
            Err(format!("{name:?} is not a host name, such as db.example.org"))
        }
    }

    /// The answer to a question about one of the names.
    pub(crate) fn answer(&self, question: &Question) -> Option<Vec<u8>> {
        let [kind, class] = question.kind_and_class();
        let addresses = self.names.get(&question.name()).filter(|_| question.is_query())?;
        let found = addresses.iter().filter(|address| {
            let own = if address.is_ipv4() { A } else { AAAA };
            matches!(class, IN | ANY) && (kind == own || kind == ANY)
        });
        let records = found.map(|address| {
            // The name is that of the question, at the 12th octet (RFC 1035, section 4.1.4).
            let mut record = vec![0xc0, 12];
            let kind = if address.is_ipv4() { A } else { AAAA };
            record.extend([kind, IN].map(u16::to_be_bytes).as_flattened());
            record.extend(TTL.to_be_bytes());
            match address {
                IpAddr::V4(address) => {
                    record.extend([0, 4]);
                    record.extend(address.octets());
                }
                IpAddr::V6(address) => {
                    record.extend([0, 16]);
                    record.extend(address.octets());
                }
            }
            record
        });
        Some(question.answered(0, &records.collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::{OPT, RData};
    use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, RCODE, TYPE};

    fn hosts() -> Hosts {
        let mut hosts = Hosts::default();
        for (name, address) in
            [("db.test", "10.0.0.5"), ("DB.test.", "10.0.0.6"), ("db.test", "fd00::5"), ("six", "fd00::6")]
        {
            hosts.add(name, address.parse().expect("an address")).expect("a name");
        }
        hosts
    }

    /// A question by another hand, and the addresses in its answer.
    fn ask(name: &str, kind: TYPE, edns: bool) -> Option<Vec<IpAddr>> {
        let mut packet = Packet::new_query(7);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let class = QCLASS::CLASS(CLASS::IN);
        packet.questions.push(simple_dns::Question::new(
            Name::new_unchecked(name),
            QTYPE::TYPE(kind),
            class,
            false,
        ));
        *packet.opt_mut() = edns.then(|| OPT { opt_codes: vec![], udp_packet_size: 1_232, version: 0 });
        let message = packet.build_bytes_vec().expect("a message");
        let question = Question::read(&message).expect("a question");
        let answer = hosts().answer(&question)?;
        assert!(question.is_answered_by(&answer));
        let answer = Packet::parse(&answer).expect("a message");
        assert_eq!((answer.rcode(), answer.opt().is_some()), (RCODE::NoError, edns));
        assert!(answer.has_flags(PacketFlag::RECURSION_AVAILABLE | PacketFlag::RECURSION_DESIRED));
        let addresses = answer.answers.iter().map(|record| {
            assert_eq!((record.name.to_string().to_lowercase(), record.ttl), (name.to_lowercase(), TTL));
            match &record.rdata {
                RData::A(a) => IpAddr::V4(a.address.into()),
                RData::AAAA(a) => IpAddr::V6(a.address.into()),
                other => panic!("{other:?}"),
            }
        });
        Some(addresses.collect())
    }

    #[test]
    fn a_name_has_the_addresses_of_the_version_that_is_asked_for() {
        let of = |texts: &[&str]| {
            Some(texts.iter().map(|text| text.parse::<IpAddr>().expect("an address")).collect::<Vec<_>>())
        };
        for edns in [false, true] {
            assert_eq!(ask("db.test", TYPE::A, edns), of(&["10.0.0.5", "10.0.0.6"]));
            assert_eq!(ask("Db.Test", TYPE::AAAA, edns), of(&["fd00::5"]));
            assert_eq!(ask("six", TYPE::A, edns), of(&[]), "there is such a name, without an address");
            assert_eq!(ask("db.test", TYPE::MX, edns), of(&[]));
            assert_eq!(ask("www.db.test", TYPE::A, edns), None);
            assert_eq!(ask("test", TYPE::A, edns), None);
        }
    }

    #[test]
    fn what_is_no_name_is_refused_and_a_later_list_replaces_a_name() {
        let address: IpAddr = "10.0.0.9".parse().expect("an address");
        let long = format!("{}.test", "a".repeat(64));
        for wrong in ["", ".", "a..b", "a b", "*.test", long.as_str(), &"a.".repeat(130)] {
            let error = hosts().add(wrong, address).expect_err("no name");
            assert!(error.contains(wrong), "{error}");
        }
        let mut all = hosts();
        let mut later = Hosts::default();
        later.add("db.test", address).expect("a name");
        all.extend(later);
        assert_eq!(all.names["db.test"], [address]);
        assert!(all.names.contains_key("six") && Hosts::default().is_empty());
    }
}
