//! Which names a client knows an address by: from the answers of its resolver.
//!
//! Whoever has a zone may give a name of it anybody's address. So an upstream is told a name only
//! if it is the only one by which the client knows the address; otherwise a stranger's name could
//! take the place of a bank's.
//!
//! Clients share the room. If it is used up, the client that has most forgets what it has not used
//! for longest. As long as a program may still have an address from a forgotten name, nothing is
//! taken for the only name of that client's addresses, and no rule by name is taken not to match:
//! what is not known does not open a door.

use ackline_tcp_core::{Duration, Instant};
use lru::LruCache;
use serde::Deserialize;
use simple_dns::Packet;
use simple_dns::rdata::{RData, SVCB, SVCParam};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// A name lives as long as its record, but at least so long: programs keep an address for longer
/// than they may.
const SHORTEST: Duration = Duration::from_secs(300);
/// And at most so long (RFC 8767, section 4, has a week at most).
const LONGEST: Duration = Duration::from_secs(86_400);

/// Names of one address that are remembered for a client; a further one takes the place of the
/// oldest.
const MOST_OF_ADDRESS: usize = 16;

/// What the names are for that clients ask the resolver for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameUse {
    /// Nothing: none is remembered, rules have no domains, and upstreams get addresses.
    Off,
    /// Rules by domain. Upstreams get addresses.
    Rules,
    /// Rules, and an upstream gets the name instead of the address if the client knows that by this
    /// name alone, and no rule with `to` had a say in its way.
    #[default]
    Upstreams,
}

impl FromStr for NameUse {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "rules" => Ok(Self::Rules),
            "upstreams" => Ok(Self::Upstreams),
            _ => Err("write off, rules or upstreams"),
        }
    }
}

/// The names under which a client knows an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressNames {
    /// Names that are remembered.
    pub(crate) names: Vec<Arc<str>>,
    /// True if there are no others.
    pub(crate) is_all: bool,
}

impl Default for AddressNames {
    /// An address without a name.
    fn default() -> Self {
        Self { names: vec![], is_all: true }
    }
}

impl AddressNames {
    /// The name that stands for the address, if there is one that a host can have.
    pub(crate) fn only(&self) -> Option<Arc<str>> {
        match &self.names[..] {
            // RFC 1035, section 2.3.4. An octet that is no letter, digit or hyphen was escaped.
            [name] if self.is_all && name.len() <= 253 && !name.contains('\\') => Some(name.clone()),
            _ => None,
        }
    }
}

/// The names of addresses, each as the client knows it who has asked. One client's answers say
/// nothing to another one.
#[derive(Debug)]
pub(crate) struct Names {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    clients: HashMap<IpAddr, Client>,
    /// The clients by how many names they have; the last one has most.
    by_size: BTreeSet<(usize, IpAddr)>,
    /// Names of all of them.
    names: usize,
    /// How long programs may have addresses from names of clients of which nothing is remembered.
    forgot_until: Instant,
}

#[derive(Debug)]
struct Client {
    addresses: LruCache<IpAddr, Address>,
    names: usize,
    /// How long its programs may have addresses from names that were forgotten.
    forgot_until: Instant,
}

#[derive(Debug)]
struct Address {
    /// Each with the end of its life.
    names: Vec<(Arc<str>, Instant)>,
    /// How long it may have other names.
    open_until: Instant,
}

impl Names {
    /// Room for `most` names.
    pub(crate) fn new(most: usize) -> Self {
        let table = Table {
            clients: HashMap::new(),
            by_size: BTreeSet::new(),
            names: 0,
            forgot_until: Instant::ZERO,
        };
        Self { most, table: Mutex::new(table) }
    }

    /// The names by which `client` knows `address`.
    pub(crate) fn of(&self, now: Instant, client: IpAddr, address: IpAddr) -> AddressNames {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let forgot_until = table.forgot_until;
        let Some(client) = table.clients.get_mut(&client) else {
            return AddressNames { names: vec![], is_all: forgot_until <= now };
        };
        let Some(address) = client.addresses.get(&address) else {
            return AddressNames { names: vec![], is_all: client.forgot_until <= now };
        };
        let alive = address.names.iter().filter(|(_, until)| now < *until);
        AddressNames {
            names: alive.map(|(name, _)| name.clone()).collect(),
            is_all: address.open_until <= now,
        }
    }

    /// Remembers the addresses in an answer to `client` as those of the name that it has asked for,
    /// through whatever aliases. Returns how many names that may still be in use were forgotten for
    /// it.
    pub(crate) fn learn(&self, now: Instant, client: IpAddr, name: &str, answer: &Packet<'_>) -> u64 {
        let name: Arc<str> = name.into();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut forgotten = 0;
        for record in &answer.answers {
            let lives = Duration::from_secs(record.ttl.into()).max(SHORTEST).min(LONGEST);
            for address in addresses(&record.rdata) {
                forgotten += table.insert(now, client, address, &name, now + lives);
                while table.names > self.most {
                    forgotten += table.evict(now);
                }
            }
        }
        forgotten
    }
}

/// The addresses of a record: its own, or what a service gives to begin with (RFC 9460, section
/// 7.3).
fn addresses(record: &RData<'_>) -> Vec<IpAddr> {
    let hints = |service: &SVCB<'_>| {
        let hint = |param: &SVCParam<'_>| -> Vec<IpAddr> {
            match param {
                SVCParam::Ipv4Hint(hints) => hints.iter().map(|bits| Ipv4Addr::from(*bits).into()).collect(),
                SVCParam::Ipv6Hint(hints) => hints.iter().map(|bits| Ipv6Addr::from(*bits).into()).collect(),
                _ => vec![],
            }
        };
        service.iter_params().flat_map(hint).collect()
    };
    match record {
        RData::A(a) => vec![Ipv4Addr::from(a.address).into()],
        RData::AAAA(aaaa) => vec![Ipv6Addr::from(aaaa.address).into()],
        RData::HTTPS(service) => hints(service),
        RData::SVCB(service) => hints(service),
        _ => vec![],
    }
}

impl Table {
    fn insert(
        &mut self,
        now: Instant,
        client: IpAddr,
        address: IpAddr,
        name: &Arc<str>,
        until: Instant,
    ) -> u64 {
        let forgot_until = self.forgot_until;
        let known = self.clients.entry(client).or_insert_with(|| Client {
            addresses: LruCache::unbounded(),
            names: 0,
            forgot_until,
        });
        let open_until = known.forgot_until;
        let at = known.addresses.get_or_insert_mut(address, || Address { names: vec![], open_until });
        let (before, mut forgotten) = (at.names.len(), 0);
        if let Some((_, old)) = at.names.iter_mut().find(|(known, _)| known == name) {
            *old = until.max(*old);
        } else {
            at.names.retain(|(_, until)| now < *until);
            if at.names.len() >= MOST_OF_ADDRESS {
                let (_, gone) = at.names.remove(0);
                at.open_until = at.open_until.max(gone);
                forgotten = 1;
            }
            at.names.push((name.clone(), until));
        }
        let size = known.names;
        let changed = size - before + at.names.len();
        known.names = changed;
        self.resize(client, size, changed);
        forgotten
    }

    /// The client that has most forgets the address that it has not used for longest.
    fn evict(&mut self, now: Instant) -> u64 {
        let Some((size, client)) = self.by_size.last().copied() else { return 0 };
        let Some(known) = self.clients.get_mut(&client) else { return 0 };
        let Some((_, gone)) = known.addresses.pop_lru() else { return 0 };
        let in_use = gone.names.iter().filter(|(_, until)| now < *until).count();
        let last = gone.names.iter().map(|(_, until)| *until).max().unwrap_or(Instant::ZERO);
        known.forgot_until = known.forgot_until.max(last).max(gone.open_until);
        let changed = size - gone.names.len();
        known.names = changed;
        if changed == 0 {
            // Nothing is kept of a client without names, so what is not known of it is not known of
            // anybody new.
            self.forgot_until = self.forgot_until.max(known.forgot_until);
            self.clients.remove(&client);
        }
        self.resize(client, size, changed);
        in_use as u64
    }

    fn resize(&mut self, client: IpAddr, before: usize, now: usize) {
        self.by_size.remove(&(before, client));
        if now > 0 {
            self.by_size.insert((now, client));
        }
        self.names = self.names - before + now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::{A, CNAME};
    use simple_dns::{CLASS, Name, QCLASS, QTYPE, Question, ResourceRecord, TYPE};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const BANK: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn learn(names: &Names, now: Instant, client: IpAddr, name: &str, ttl: u32, addresses: &[IpAddr]) -> u64 {
        let mut packet = Packet::new_reply(1);
        let asked = Name::new_unchecked(name);
        let class = QCLASS::CLASS(CLASS::IN);
        packet.questions.push(Question::new(asked.clone(), QTYPE::TYPE(TYPE::A), class, false));
        let alias = Name::new_unchecked("cdn.test");
        packet.answers.push(ResourceRecord::new(asked, CLASS::IN, 1, RData::CNAME(CNAME(alias.clone()))));
        for address in addresses {
            let IpAddr::V4(address) = address else { panic!("{address}") };
            let data = RData::A(A { address: address.to_bits() });
            packet.answers.push(ResourceRecord::new(alias.clone(), CLASS::IN, ttl, data));
        }
        names.learn(now, client, name, &packet)
    }

    /// The `number`th address of somebody's.
    fn nth(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0xcb00_7100 + number).into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn an_address_has_the_name_that_was_asked_for_and_only_for_who_has_asked() {
        let names = Names::new(100);
        learn(&names, at(1), CLIENT, "www.example.test", 60, &[BANK, nth(1)]);
        for address in [BANK, nth(1)] {
            assert_eq!(names.of(at(2), CLIENT, address).only().as_deref(), Some("www.example.test"));
            assert_eq!(names.of(at(2), OTHER, address), AddressNames::default());
        }
        // It is no shorter than five minutes, and ends then.
        assert!(names.of(at(300), CLIENT, BANK).only().is_some());
        assert_eq!(names.of(at(301), CLIENT, BANK), AddressNames::default());
    }

    #[test]
    fn the_addresses_of_a_service_have_its_name() {
        let names = Names::new(100);
        let mut service = SVCB::new(1, Name::new_unchecked("."));
        service.set_ipv4hint(&[Ipv4Addr::new(192, 0, 2, 1).to_bits()]);
        service.set_ipv6hint(&[Ipv6Addr::LOCALHOST.to_bits()]);
        let mut packet = Packet::new_reply(1);
        let name = Name::new_unchecked("www.test");
        packet.answers.push(ResourceRecord::new(name, CLASS::IN, 60, RData::HTTPS(service.into())));
        names.learn(at(1), CLIENT, "www.test", &packet);
        for address in [BANK, Ipv6Addr::LOCALHOST.into()] {
            assert_eq!(names.of(at(2), CLIENT, address).only().as_deref(), Some("www.test"));
        }
    }

    #[test]
    fn an_address_that_has_several_names_is_known_by_none() {
        let names = Names::new(100);
        learn(&names, at(1), CLIENT, "bank.test", 600, &[BANK]);
        // Any zone may have the bank's address.
        learn(&names, at(2), CLIENT, "evil.test", 60, &[BANK]);
        let known = names.of(at(3), CLIENT, BANK);
        assert_eq!((known.only(), known.names.len()), (None, 2));
        // When that name has gone, the bank's is the only one.
        assert_eq!(names.of(at(400), CLIENT, BANK).only().as_deref(), Some("bank.test"));
        // So many that one is forgotten: it may be any.
        for number in 0..20 {
            learn(&names, at(3), CLIENT, &format!("{number}.evil.test"), 60, &[BANK]);
        }
        let known = names.of(at(4), CLIENT, BANK);
        assert_eq!((known.names.len(), known.is_all), (MOST_OF_ADDRESS, false));
        assert_eq!(names.of(at(500), CLIENT, BANK), AddressNames { names: vec![], is_all: false });
        // The bank's record has ended by then.
        assert!(names.of(at(602), CLIENT, BANK).is_all);
    }

    #[test]
    fn who_asks_for_too_much_forgets_its_own_names_alone() {
        let names = Names::new(1_000);
        learn(&names, at(1), OTHER, "bank.test", 600, &[BANK]);
        learn(&names, at(1), CLIENT, "bank.test", 600, &[BANK]);
        let mut forgotten = 0;
        for question in 0..230 {
            let addresses: Vec<_> = (0..100).map(|number| nth(question * 100 + number)).collect();
            forgotten += learn(&names, at(2), CLIENT, &format!("{question}.test"), 60, &addresses);
        }
        assert_eq!(forgotten, 23_000 + 2 - 1_000);
        assert_eq!(names.of(at(3), OTHER, BANK).only().as_deref(), Some("bank.test"));
        assert!(names.of(at(3), OTHER, nth(1)).is_all);
        // The greedy one's own bank is not taken for an address without a name, nor for somebody
        // else's.
        assert_eq!(names.of(at(3), CLIENT, BANK), AddressNames { names: vec![], is_all: false });
        learn(&names, at(3), CLIENT, "evil.test", 60, &[BANK]);
        let known = names.of(at(4), CLIENT, BANK);
        assert_eq!((known.only(), known.is_all), (None, false));
        // Until what was forgotten has ended anyway.
        assert!(names.of(at(601), CLIENT, nth(1)).is_all);
        let table = names.table.lock().unwrap();
        assert_eq!(table.names, 1_000);
        assert_eq!(table.names, table.clients.values().map(|client| client.names).sum::<usize>());
    }

    #[test]
    fn a_crowd_of_forged_clients_is_bounded_and_nobody_is_taken_for_new() {
        let names = Names::new(100);
        for number in 0..10_000 {
            learn(&names, at(1), nth(number), "evil.test", 60, &[BANK]);
        }
        let table = names.table.lock().unwrap();
        assert_eq!((table.names, table.clients.len(), table.by_size.len()), (100, 100, 100));
        drop(table);
        assert!(!names.of(at(2), CLIENT, BANK).is_all);
        assert!(names.of(at(302), CLIENT, BANK).is_all);
    }
}
