//! Which name a client knows an address by: from the answers of its resolver.

use ackline_runtime::timer;
use ackline_tcp_core::{Duration, Instant};
use lru::LruCache;
use simple_dns::rdata::RData;
use simple_dns::{Packet, PacketFlag, RCODE};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// A name lives as long as its record, but at least so long: programs keep an address for longer than they may.
const SHORTEST: Duration = Duration::from_secs(300);
/// And at most so long (RFC 8767, section 4, has a week at most).
const LONGEST: Duration = Duration::from_secs(86_400);

/// The names of addresses, each as the client knows it who has asked. One client's answers say nothing to another one.
#[derive(Debug)]
pub(crate) struct Names {
    known: Mutex<LruCache<(IpAddr, IpAddr), Known>>,
}

#[derive(Debug)]
struct Known {
    name: Arc<str>,
    until: Instant,
}

impl Names {
    /// Room for `most` of them; the one that has not been used for longest makes room.
    pub(crate) fn new(most: NonZeroUsize) -> Self {
        Self { known: Mutex::new(LruCache::new(most)) }
    }

    /// The name by which `client` knows `address`.
    pub(crate) fn of(&self, client: IpAddr, address: IpAddr) -> Option<Arc<str>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&(client, address))?;
        (timer::now() < found.until).then(|| found.name.clone())
    }

    /// Remembers what a resolver has answered `client`: the addresses of the name that it asked for, through whatever aliases. What is no
    /// answer says nothing.
    pub(crate) fn learn(&self, client: IpAddr, message: &[u8]) {
        let Ok(answer) = Packet::parse(message) else { return };
        let [question] = &answer.questions[..] else { return };
        if !answer.has_flags(PacketFlag::RESPONSE) || answer.rcode() != RCODE::NoError {
            return;
        }
        let name = question.qname.to_string().to_ascii_lowercase();
        // RFC 1035, section 2.3.4; what is no text is no name of a host.
        if name.is_empty() || name.len() > 253 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return;
        }
        let name: Arc<str> = name.into();
        let now = timer::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for record in &answer.answers {
            let address: IpAddr = match &record.rdata {
                RData::A(a) => Ipv4Addr::from(a.address).into(),
                RData::AAAA(aaaa) => Ipv6Addr::from(aaaa.address).into(),
                _ => continue,
            };
            let lives = Duration::from_secs(record.ttl.into()).max(SHORTEST).min(LONGEST);
            known.put((client, address), Known { name: name.clone(), until: now + lives });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::{A, CNAME};
    use simple_dns::{CLASS, Name, QCLASS, QTYPE, Question, ResourceRecord, TYPE};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn answer(name: &str, addresses: &[Ipv4Addr]) -> Vec<u8> {
        let mut packet = Packet::new_reply(1);
        let asked = Name::new_unchecked(name);
        packet.questions.push(Question::new(
            asked.clone(),
            QTYPE::TYPE(TYPE::A),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        let alias = Name::new_unchecked("cdn.test");
        packet.answers.push(ResourceRecord::new(asked, CLASS::IN, 1, RData::CNAME(CNAME(alias.clone()))));
        for address in addresses {
            let data = RData::A(A { address: address.to_bits() });
            packet.answers.push(ResourceRecord::new(alias.clone(), CLASS::IN, 1, data));
        }
        packet.build_bytes_vec_compressed().expect("a message")
    }

    #[test]
    fn an_address_has_the_name_that_was_asked_for_and_only_for_who_has_asked() {
        let names = Names::new(NonZeroUsize::MIN.saturating_add(1));
        let [a, b, c] = [1, 2, 3].map(|last| Ipv4Addr::new(192, 0, 2, last));
        names.learn(CLIENT, &answer("WWW.example.test", &[a, b]));
        assert_eq!(names.of(CLIENT, a.into()).as_deref(), Some("www.example.test"));
        assert_eq!(names.of([10, 0, 0, 2].into(), a.into()), None);
        // The one that was used last stays.
        names.learn(CLIENT, &answer("other.test", &[c]));
        assert_eq!(names.of(CLIENT, a.into()).as_deref(), Some("www.example.test"));
        assert_eq!(names.of(CLIENT, b.into()), None);
        assert_eq!(names.of(CLIENT, c.into()).as_deref(), Some("other.test"));
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        let names = Names::new(NonZeroUsize::MIN);
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let whole = answer("name.test", &[address]);
        let mut question = whole.clone();
        question[2] &= 0x7f;
        let mut failed = whole.clone();
        failed[3] |= 3;
        for wrong in [&question, &failed] {
            names.learn(CLIENT, wrong);
        }
        for length in 0..whole.len() {
            names.learn(CLIENT, &whole[..length]);
        }
        assert_eq!(names.of(CLIENT, address.into()), None);
        names.learn(CLIENT, &whole);
        assert!(names.of(CLIENT, address.into()).is_some());
    }
}
