//! The filters of `ss`: states, ports and addresses.
//!
//! ```text
//! FILTER := [state STATE | exclude STATE]... [EXPRESSION]
//! EXPRESSION := sport|dport [OP] :PORT, src|dst [OP] ADDRESS[/PREFIX][:PORT], not, and, or, ( )
//! ```

use ackline::core::State;
use ipnet::IpNet;
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

impl Filter {
    /// Reads the words of a filter; without any, it selects what `ss` shows: neither listeners, nor connections in SYN-RECEIVED,
    /// TIME-WAIT and CLOSED.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let text = words.join(" ").replace('(', " ( ").replace(')', " ) ");
        let mut words = Words { words: text.split_whitespace().collect(), at: 0 };
        let mut states = group("connected");
        for hidden in ["syn-recv", "time-wait", "closed"] {
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
            let port = text.parse().map_err(|_| format!("{key} {value:?}: not a port; write :80"))?;
            return Ok(Expression::Port { local, op, port });
        }
        let equal = match op {
            Op::Equal => true,
            Op::Unequal => false,
            _ => return Err(format!("{key}: addresses are compared by = and !=")),
        };
        let (net, port) = place(value).ok_or_else(|| {
            format!(
                "{key} {value:?}: not an address; write 10.0.0.2, 10.0.0.0/24, 10.0.0.2:80 or [fd00::2]:80"
            )
        })?;
        Ok(Expression::Address { local, equal, net, port })
    }
}

/// True for the first word of a condition.
fn begins(word: &str) -> bool {
    matches!(word, "sport" | "dport" | "src" | "dst" | "not" | "!" | "(")
}

/// An address or a network, and a port.
fn place(text: &str) -> Option<(Option<IpNet>, Option<u16>)> {
    if let Some(port) = text.strip_prefix(':').or_else(|| text.strip_prefix("*:")) {
        return Some((None, Some(port.parse().ok()?)));
    }
    let net = |text: &str| -> Option<IpNet> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        bare.parse().ok().or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from))
    };
    if let Some(net) = net(text) {
        return Some((Some(net), None));
    }
    let (address, port) = text.rsplit_once(':')?;
    Some((Some(net(address)?), Some(port.parse().ok()?)))
}

/// The states that `name` stands for; `None` if it is none.
fn lookup(name: &str) -> Option<[bool; STATES.len()]> {
    match name {
        "all" | "connected" | "synchronized" => Some(group(name)),
        name => {
            let mut only = [false; STATES.len()];
            set(&mut only, name, true).then_some(only)
        }
    }
}

/// The states of one of `ss`'s groups.
fn group(name: &str) -> [bool; STATES.len()] {
    STATES.map(|(state, _)| match name {
        "connected" => state != State::Listen,
        "synchronized" => !matches!(state, State::Listen | State::SynSent),
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
    format!("write all, connected, synchronized, {}", names.join(", "))
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
        assert_eq!(refused("dport = :http"), "dport \":http\": not a port; write :80");
        assert!(refused("dst example").contains("write 10.0.0.2"));
        assert!(refused("port 80").contains("\"port\" is no condition; write sport = :80"));
        assert_eq!(refused("( dport 80"), "filter: a ) is missing");
        assert!(refused("dport 80 )").contains("\")\" was not expected"));
        assert!(refused("dport 80 or").contains("\"the end\" is no condition"));
        assert!(refused(&"( ".repeat(10_000)).contains("nested more than"));
    }
}
