//! The filters of `ss`: states, ports and addresses, as ss(8) of iproute2 reads them.
//!
//! ```text
//! FILTER := [state STATE | exclude STATE]... [EXPRESSION]
//! EXPRESSION := sport|dport [OP] :PORT, src|dst [OP] [inet:|inet6:]ADDRESS[/PREFIX][:PORT], not, and, or, ( )
//! ```
//!
//! A port may be the name of a service, and either part of an address `*`.

use ackline::core::State;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, SocketAddr};

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) state: State,
    pub(crate) local: SocketAddr,
    /// `None` for a listener.
    pub(crate) remote: Option<SocketAddr>,
}

/// Selects connections and listeners.
#[derive(Debug)]
pub(crate) struct Filter {
    /// By [`STATES`].
    states: [bool; STATES.len()],
    expression: Option<Expression>,
}

#[derive(Debug)]
enum Expression {
    Port { local: bool, op: Op, port: u16 },
    Address { local: bool, equal: bool, net: Option<IpNet>, port: Option<u16> },
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// States, and their names in `ss`.
pub(crate) const STATES: [(State, &str); 11] = [
    (State::Established, "established"),
    (State::SynSent, "syn-sent"),
    (State::SynReceived, "syn-recv"),
    (State::FinWait1, "fin-wait-1"),
    (State::FinWait2, "fin-wait-2"),
    (State::TimeWait, "time-wait"),
    (State::Closed, "closed"),
    (State::CloseWait, "close-wait"),
    (State::LastAck, "last-ack"),
    (State::Listen, "listening"),
    (State::Closing, "closing"),
];

/// Deepest nesting of `(` and `not`.
const MAX_DEPTH: usize = 32;

/// Ports of services by name: services(5).
const SERVICES: &str = "/etc/services";

impl Filter {
    /// Reads the words of a filter; without any, it selects what `ss` shows: neither listeners, nor
    /// connections in SYN-RECEIVED, TIME-WAIT and CLOSED.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let text = words.join(" ").replace('(', " ( ").replace(')', " ) ");
        let mut words = Words { words: text.split_whitespace().collect(), at: 0 };
        let mut states = group("connected");
        for hidden in ["syn-recv", "time-wait"] {
            set(&mut states, hidden, false);
        }
        let mut named = false;
        while let Some(word @ ("state" | "exclude")) = words.peek() {
            words.at += 1;
            let name =
                words.next().ok_or_else(|| format!("{word}: the name of a state is missing; {}", known()))?;
            let found = lookup(name).ok_or_else(|| format!("{word} {name:?}: no such state; {}", known()))?;
            if !named {
                // The first decides what the others add to or take from.
                states = [word == "exclude"; STATES.len()];
                named = true;
            }
            for (state, found) in states.iter_mut().zip(found) {
                if found {
                    *state = word == "state";
                }
            }
        }
        let expression = if words.peek().is_some() { Some(words.either(0)?) } else { None };
        match words.peek() {
            None => Ok(Self { states, expression }),
            Some(word) => Err(format!("filter: {word:?} was not expected there")),
        }
    }

    /// Reads a filter of addresses and ports alone, for connections without a state.
    pub(crate) fn parse_expression(text: &str) -> Result<Self, String> {
        if let Some(word @ ("state" | "exclude")) = text.split_whitespace().next() {
            return Err(format!(
                "filter: {word} is for connections that are open; write dport = :80, src 10.0.0.2"
            ));
        }
        Self::parse(&[text.to_owned()])
    }

    /// True if `subject` is one of those to show.
    pub(crate) fn selects(&self, subject: &Subject) -> bool {
        let place = STATES.iter().position(|(state, _)| *state == subject.state);
        place.is_some_and(|place| self.states[place])
            && self.expression.as_ref().is_none_or(|expression| expression.holds(subject))
    }
}

impl Expression {
    fn holds(&self, subject: &Subject) -> bool {
        let end = |local: &bool| if *local { Some(subject.local) } else { subject.remote };
        match self {
            Self::Port { local, op, port } => end(local).is_some_and(|end| op.holds(end.port(), *port)),
            Self::Address { local, equal, net, port } => {
                let same = end(local).is_some_and(|end| {
                    net.is_none_or(|net| net.contains(&end.ip()))
                        && port.is_none_or(|port| port == end.port())
                });
                same == *equal
            }
            Self::Not(inner) => !inner.holds(subject),
            Self::And(one, other) => one.holds(subject) && other.holds(subject),
            Self::Or(one, other) => one.holds(subject) || other.holds(subject),
        }
    }
}

impl Op {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "=" | "==" | "eq" => Self::Equal,
            "!=" | "ne" | "neq" => Self::Unequal,
            "<" | "lt" => Self::Less,
            "<=" | "le" | "leq" => Self::AtMost,
            ">" | "gt" => Self::Greater,
            ">=" | "ge" | "geq" => Self::AtLeast,
            _ => return None,
        })
    }

    const fn holds(self, port: u16, limit: u16) -> bool {
        match self {
            Self::Equal => port == limit,
            Self::Unequal => port != limit,
            Self::Less => port < limit,
            Self::AtMost => port <= limit,
            Self::Greater => port > limit,
            Self::AtLeast => port >= limit,
        }
    }
}

/// The words that are left.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    fn take(&mut self, choices: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| choices.contains(&word));
        self.at += usize::from(found);
        found
    }

    fn either(&mut self, depth: usize) -> Result<Expression, String> {
        let mut one = self.both(depth)?;
        while self.take(&["or", "|", "||"]) {
            one = Expression::Or(Box::new(one), Box::new(self.both(depth)?));
        }
        Ok(one)
    }

    fn both(&mut self, depth: usize) -> Result<Expression, String> {
        let mut one = self.single(depth)?;
        // Two conditions without a word in between are both demanded.
        while self.take(&["and", "&", "&&"]) || self.peek().is_some_and(begins) {
            one = Expression::And(Box::new(one), Box::new(self.single(depth)?));
        }
        Ok(one)
    }

    fn single(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > MAX_DEPTH {
            return Err(format!("filter: nested more than {MAX_DEPTH} deep"));
        }
        match self.next() {
            Some("not" | "!") => Ok(Expression::Not(Box::new(self.single(depth + 1)?))),
            Some("(") => {
                let inner = self.either(depth + 1)?;
                if self.take(&[")"]) { Ok(inner) } else { Err("filter: a ) is missing".to_owned()) }
            }
            Some(key @ ("sport" | "dport" | "src" | "dst")) => self.condition(key),
            found => Err(format!(
                "filter: {:?} is no condition; write sport = :80, dport, src 10.0.0.2, dst, state NAME",
                found.unwrap_or("the end")
            )),
        }
    }

    fn condition(&mut self, key: &str) -> Result<Expression, String> {
        let op = self.peek().and_then(Op::parse);
        self.at += usize::from(op.is_some());
        let op = op.unwrap_or(Op::Equal);
        let value = self.next().ok_or_else(|| format!("{key}: the value is missing"))?;
        let local = matches!(key, "sport" | "src");
        if matches!(key, "sport" | "dport") {
            let text = value.rsplit_once(':').map_or(value, |(_, port)| port);
            let port = port(text).map_err(|why| format!("{key} {value:?}: {why}"))?;
            return Ok(Expression::Port { local, op, port });
        }
        let equal = match op {
            Op::Equal => true,
            Op::Unequal => false,
            _ => return Err(format!("{key}: addresses are compared by = and !=")),
        };
        let (net, port) = place(value).map_err(|why| format!("{key} {value:?}: {why}"))?;
        Ok(Expression::Address { local, equal, net, port })
    }
}

/// True for the first word of a condition.
fn begins(word: &str) -> bool {
    matches!(word, "sport" | "dport" | "src" | "dst" | "not" | "!" | "(")
}

/// The number of a port, or of the service with this name.
fn port(text: &str) -> Result<u16, String> {
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.parse().map_err(|_| "not a port; write :80".to_owned());
    }
    let services = std::fs::read_to_string(SERVICES).unwrap_or_default();
    service(&services, text).ok_or_else(|| format!("not a port, and no TCP service of {SERVICES}; write :80"))
}

/// The port of a TCP service in services(5).
fn service(services: &str, name: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let (official, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
        (official == name || words.any(|alias| alias == name)).then(|| port.parse().ok())?
    })
}

/// An address or a network, and a port.
fn place(text: &str) -> Result<(Option<IpNet>, Option<u16>), String> {
    let (family, rest) = match text.split_once(':') {
        Some(("inet", rest)) => (Some(false), rest),
        Some(("inet6", rest)) => (Some(true), rest),
        _ => (None, text),
    };
    let everything = |v6| if v6 { Ipv6Net::default().into() } else { IpNet::from(Ipv4Net::default()) };
    let any = family.map(everything);
    let fits = |net: &IpNet| family.is_none_or(|v6| v6 == net.addr().is_ipv6());
    if matches!(rest, "" | "*" | "*:*") {
        return Ok((any, None));
    }
    // An IPv6 address has colons itself.
    if let Some(net) = network(rest).filter(fits) {
        return Ok((Some(net), None));
    }
    let found = rest.rsplit_once(':').and_then(|(address, digits)| match address {
        "" | "*" => Some((any, digits)),
        address => network(address).filter(fits).map(|net| (Some(net), digits)),
    });
    match found {
        Some((net, "*")) => Ok((net, None)),
        Some((net, digits)) => Ok((net, Some(port(digits)?))),
        None => Err("not an address; write 10.0.0.2, 10.0.0.0/24, 10.0.0.2:80 or [fd00::2]:80".to_owned()),
    }
}

/// An address, or a network. As everywhere in iproute2, zeros at the end of an IPv4 network may be
/// left out: 10/8.
fn network(text: &str) -> Option<IpNet> {
    let bare = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) if rest.is_empty() || rest.starts_with('/') => format!("{address}{rest}"),
        Some(_) => return None,
        None => text.to_owned(),
    };
    if let Ok(net) = bare.parse() {
        return Some(net);
    }
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(address.into());
    }
    let (octets, prefix) = bare.split_once('/')?;
    let mut address = [0; 4];
    let mut given = octets.split('.');
    for (octet, digits) in address.iter_mut().zip(&mut given) {
        *octet = digits.parse().ok()?;
    }
    let net = Ipv4Net::new(address.into(), prefix.parse().ok()?).ok()?;
    given.next().is_none().then_some(net.into())
}

/// The states that `name` stands for; `None` if it is none.
fn lookup(name: &str) -> Option<[bool; STATES.len()]> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "all" | "connected" | "synchronized" | "bucket" | "big" => Some(group(&name)),
        name => {
            // Other words that ss takes.
            let name = match name {
                "close" | "unconnected" => "closed",
                "syn-rcv" => "syn-recv",
                name => name,
            };
            let mut only = [false; STATES.len()];
            set(&mut only, name, true).then_some(only)
        }
    }
}

/// The states of one of `ss`'s groups.
fn group(name: &str) -> [bool; STATES.len()] {
    STATES.map(|(state, _)| match name {
        "connected" => !matches!(state, State::Listen | State::Closed),
        "synchronized" => !matches!(state, State::Listen | State::Closed | State::SynSent),
        // Linux keeps them in small records.
        "bucket" => matches!(state, State::SynReceived | State::TimeWait),
        "big" => !matches!(state, State::SynReceived | State::TimeWait),
        _ => true,
    })
}

fn set(states: &mut [bool; STATES.len()], name: &str, to: bool) -> bool {
    let place = STATES.iter().position(|(_, known)| *known == name);
    if let Some(place) = place {
        states[place] = to;
    }
    place.is_some()
}

fn known() -> String {
    let names: Vec<&str> = STATES.iter().map(|(_, name)| *name).collect();
    format!("write all, connected, synchronized, bucket, big, {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(text: &str, state: State) -> bool {
        let filter = Filter::parse(&[text.to_owned()]).expect("right");
        let remote = (state != State::Listen).then(|| "10.0.0.2:80".parse().expect("an address"));
        filter.selects(&Subject { state, local: "10.0.0.1:4000".parse().expect("an address"), remote })
    }

    #[test]
    fn states_are_those_of_ss() {
        assert!(selects("", State::Established) && selects("", State::CloseWait));
        assert!(!selects("", State::Listen) && !selects("", State::TimeWait));
        assert!(selects("state all", State::Listen) && selects("state listening", State::Listen));
        assert!(!selects("state listening", State::Established));
        assert!(selects("state established state time-wait", State::TimeWait));
        assert!(!selects("exclude established", State::Established));
        assert!(selects("exclude established", State::Listen));
    }

    /// The groups as ss(8) of iproute2 6.1 lists them.
    #[test]
    fn groups_of_states_are_those_of_ss() {
        let all = "established syn-sent syn-recv fin-wait-1 fin-wait-2 time-wait closed close-wait last-ack listening closing";
        for (group, missing) in [
            ("all", ""),
            ("connected", "listening closed"),
            ("synchronized", "listening closed syn-sent"),
            ("big", "syn-recv time-wait"),
            (
                "bucket",
                "established syn-sent fin-wait-1 fin-wait-2 closed close-wait last-ack listening closing",
            ),
        ] {
            for name in all.split(' ') {
                let (state, _) = STATES.into_iter().find(|(_, known)| *known == name).expect("known");
                let expected = !missing.split(' ').any(|missing| missing == name);
                assert_eq!(selects(&format!("state {group}"), state), expected, "{group}: {name}");
                assert_eq!(selects(&format!("exclude {group}"), state), !expected, "exclude {group}: {name}");
            }
        }
        assert!(selects("state SYN-RCV", State::SynReceived) && selects("state unconnected", State::Closed));
    }

    /// Examples of ss(8) and of what else `ss` takes, of connections over both versions of IP.
    #[test]
    fn hosts_are_written_as_for_ss() {
        let selected = |text: &str| -> Result<Vec<&str>, String> {
            let filter = Filter::parse(&[text.to_owned()])?;
            let all = [("10.0.0.1:4000", "193.233.7.9:80"), ("[fd00::1]:4000", "[fd00::2]:443")];
            let selects = |local: &str, remote: &str| {
                let at = |text: &str| text.parse().expect("an address");
                let (state, remote) = (State::Established, Some(at(remote)));
                filter.selects(&Subject { state, local: at(local), remote })
            };
            Ok(all
                .into_iter()
                .filter(|(local, remote)| selects(local, remote))
                .map(|(_, remote)| remote)
                .collect())
        };
        let [v4, v6] = ["193.233.7.9:80", "[fd00::2]:443"];
        for (text, expected) in [
            ("dst ::/0", vec![v6]),
            ("dst 0/0", vec![v4]),
            ("dst 193.233.7/24", vec![v4]),
            ("dst 193.233/16:80", vec![v4]),
            ("dst 10/8", vec![]),
            ("dst inet:*", vec![v4]),
            ("dst inet6:[::]/0", vec![v6]),
            ("dst inet:*:80", vec![v4]),
            ("dst [fd00::2]", vec![v6]),
            ("dst [fd00::2]:443", vec![v6]),
            ("dst [fd00::]/16:*", vec![v6]),
            ("dst fd00::2", vec![v6]),
            ("dst *:443", vec![v6]),
            ("dst = :443", vec![v6]),
            ("dst *", vec![v4, v6]),
            ("src :4000", vec![v4, v6]),
            ("sport = :4000 and ! dport = :443", vec![v4]),
            ("dport = 80 || dport = 443", vec![v4, v6]),
        ] {
            assert_eq!(selected(text), Ok(expected), "{text}");
        }
        for text in
            ["dst inet:fd00::2", "dst 300/8", "dst 1.2.3.4.5/8", "dst 10/33", "dst example", "dst :::80:x"]
        {
            let why = selected(text).expect_err(text);
            assert!(why.contains("not an address") || why.contains("not a port"), "{text}: {why}");
        }
    }

    #[test]
    fn services_have_names() {
        let services =
            "# Services\nhttp\t80/tcp\twww # WorldWideWeb\nhttps\t443/tcp\nhttps\t443/udp\nsyslog\t514/udp\n";
        assert_eq!([service(services, "https"), service(services, "www")], [Some(443), Some(80)]);
        assert_eq!([service(services, "syslog"), service(services, "WorldWideWeb")], [None; 2]);
    }

    #[test]
    fn ports_and_addresses_are_compared() {
        for text in [
            "sport = :4000",
            "dport :80",
            "dport eq 80",
            "dport < :81 and sport >= 4000",
            "dst 10.0.0.2",
            "dst 10.0.0.0/24 src 10.0.0.1:4000",
            "dst :80",
            "not dst 10.0.0.3",
            "dst != 10.0.0.3",
            "( sport = :1 or dport = :80 ) and src 10.0.0.1",
            "sport = :1 or dport = :80 and src 10.0.0.1",
            "state established dport = :80",
        ] {
            assert!(selects(text, State::Established), "{text}");
        }
        for text in ["sport = :80", "dst 10.0.0.3", "dst fd00::1", "dport = :80 and not src 10.0.0.0/8"] {
            assert!(!selects(text, State::Established), "{text}");
        }
        assert!(!selects("state all dport = :80", State::Listen), "a listener has no peer");
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let refused = |text: &str| Filter::parse(&[text.to_owned()]).expect_err("wrong");
        assert!(refused("state open").contains("\"open\": no such state; write all, connected"));
        assert_eq!(refused("dport = :80x"), "dport \":80x\": not a port; write :80");
        let unknown = "dport \":nobody-has\": not a port, and no TCP service of /etc/services; write :80";
        assert_eq!(refused("dport = :nobody-has"), unknown);
        assert!(refused("dst example").contains("write 10.0.0.2"));
        assert!(refused("port 80").contains("\"port\" is no condition; write sport = :80"));
        assert_eq!(refused("( dport 80"), "filter: a ) is missing");
        assert!(refused("dport 80 )").contains("\")\" was not expected"));
        assert!(refused("dport 80 or").contains("\"the end\" is no condition"));
        assert!(refused(&"( ".repeat(10_000)).contains("nested more than"));
    }
}
