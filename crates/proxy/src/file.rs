//! Rules and limits in TOML.

use crate::clients::FileLimits;
use crate::dns::{Hosts, Resolver};
use crate::filtering::Filtering;
use crate::names::NameUse;
use crate::publish::Publish;
use crate::rules::rate::RateLimit;
use crate::rules::{Action, Rule};
use crate::target::Protocol;
use crate::upstream::{Upstream, without_credentials};
use ipnet::IpNet;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use std::sync::Arc;
use toml::Spanned;

/// Contents of a file. The default is that of an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// Rules for connections and flows, in order.
    pub rules: Vec<Rule>,
    /// Action for those that no rule matches.
    pub otherwise: Option<Action>,
    /// Resolvers, in the order in which they are asked; empty if the file
    /// does not say.
    pub dns: Vec<Resolver>,
    /// Names that the proxy answers itself.
    pub hosts: Hosts,
    /// What names are used for.
    pub names: Option<NameUse>,
    /// Sources whose datagrams reach a client's UDP socket.
    pub udp_filtering: Option<Filtering>,
    /// Ports of this machine that lead to guests.
    pub publish: Vec<Publish>,
    /// Limits: those of the file, and the defaults of the others.
    pub limits: FileLimits,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Counted from 1.
    pub line: usize,
    /// The key of the value that is wrong, if it is one.
    pub key: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl std::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "line {}, {key}: {}", self.line, self.message),
            None => write!(f, "line {}: {}", self.line, self.message),
        }
    }
}

/// The tables and keys of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContents {
    default: Option<Spanned<String>>,
    #[serde(default)]
    dns: Several<Resolver>,
    #[serde(default)]
    hosts: BTreeMap<String, Spanned<Several<Address>>>,
    names: Option<Spanned<NameUse>>,
    udp_filtering: Option<Filtering>,
    #[serde(default)]
    publish: Vec<Text<Publish>>,
    #[serde(default)]
    upstream: BTreeMap<String, Spanned<Text<Upstream>>>,
    #[serde(default)]
    rule: Vec<RuleTable>,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    #[serde(default)]
    to: Several<Net>,
    #[serde(default)]
    from: Several<Net>,
    #[serde(default)]
    port: Several<Ports>,
    #[serde(default)]
    domain: Several<Domain>,
    #[serde(default)]
    server_name: Several<Domain>,
    protocol: Option<Protocol>,
    rate: Option<Spanned<RateLimit>>,
    action: Spanned<String>,
}

impl ConfigFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let wrong = |span: Option<Range<usize>>, message: &str| FileError::at(text, span, message);
        let written: FileContents =
            toml::from_str(text).map_err(|error| wrong(error.span(), error.message()))?;
        let FileContents {
            default,
            dns,
            hosts: written_hosts,
            names,
            udp_filtering,
            publish,
            upstream,
            rule,
            limits,
        } = written;
        let mut upstreams = BTreeMap::new();
        for (name, url) in upstream {
            if BUILT_IN.contains(&&*name) {
                let message = format!("{name:?} is an action of its own; give the upstream another name");
                return Err(wrong(Some(url.span()), &message));
            }
            upstreams.insert(name, Arc::new(url.into_inner().0));
        }
        let action = |named: &Spanned<String>| match named.as_ref().as_str() {
            "direct" => Ok(Action::Through(Arc::new(Upstream::Direct))),
            "resolver" => Ok(Action::Resolver),
            "refuse" => Ok(Action::Refuse),
            "drop" => Ok(Action::Drop),
            name => upstreams.get(name).cloned().map(Action::Through).ok_or_else(|| {
                let known: Vec<&str> = upstreams.keys().map(String::as_str).chain(BUILT_IN).collect();
                let shown = without_credentials(name);
                wrong(Some(named.span()), &format!("no action {shown:?}; there are {}", known.join(", ")))
            }),
        };
        let rules = rule.into_iter().map(|rule| {
            let named = &rule.action;
            let action = action(named)?;
            let server_names = rule.server_name.of(|name| name.0);
            if !server_names.is_empty() {
                let message = match rule.protocol {
                    Some(Protocol::Udp) => {
                        Some("server_name is stated in TCP connections; remove it, or protocol")
                    }
                    _ if action == Action::Resolver => {
                        Some("server_name is not stated to a resolver; remove it")
                    }
                    _ => None,
                };
                if let Some(message) = message {
                    return Err(wrong(Some(named.span()), message));
                }
            }
            if let Some(rate) = rule.rate.as_ref().filter(|_| !matches!(action, Action::Through(_))) {
                let message =
                    format!("action {:?} carries nothing on that has a rate; remove it", named.as_ref());
                return Err(wrong(Some(rate.span()), &message));
            }
            Ok(Rule {
                to: rule.to.of(|net| net.0),
                from: rule.from.of(|net| net.0),
                ports: rule.port.of(|ports| ports.0),
                domains: rule.domain.of(|domain| domain.0),
                server_names,
                protocol: rule.protocol,
                action,
                rate: rule.rate.map(Spanned::into_inner),
            })
        });
        let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
        let otherwise = default.as_ref().map(action).transpose()?;
        let mut read = FileLimits::default();
        for (key, value) in &limits {
            read.read(key, value.as_ref()).map_err(|message| wrong(Some(value.span()), &message))?;
        }
        if let Some(names) = names.as_ref().filter(|names| *names.get_ref() == NameUse::Off)
            && rules.iter().any(|rule| !rule.domains.is_empty())
        {
            let message = "rules by domain need names; write rules or upstreams";
            return Err(wrong(Some(names.span()), message));
        }
        let mut hosts = Hosts::default();
        for (name, addresses) in written_hosts {
            let span = addresses.span();
            for Address(address) in addresses.into_inner().0 {
                hosts.add(&name, address).map_err(|message| wrong(Some(span.clone()), &message))?;
            }
        }
        let names = names.map(Spanned::into_inner);
        let dns = dns.of(|resolver| resolver);
        Ok(Self {
            rules,
            otherwise,
            dns,
            hosts,
            names,
            udp_filtering,
            publish: publish.into_iter().map(|Text(publish)| publish).collect(),
            limits: read,
        })
    }
}

/// Actions that need no upstream's name.
const BUILT_IN: [&str; 4] = ["direct", "resolver", "refuse", "drop"];

impl FileError {
    fn at(text: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count();
        let key = text.lines().nth(line).and_then(|line| line.split_once('='));
        let key = key.map(|(key, _)| key.trim().to_owned());
        Self { line: line + 1, key, message: message.replace('\n', " ") }
    }
}

/// One or a list.
struct Several<T>(Vec<T>);

impl<T> Several<T> {
    fn of<U>(self, map: impl FnMut(T) -> U) -> Vec<U> {
        self.0.into_iter().map(map).collect()
    }
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<'de, T: Element> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SeveralVisitor(PhantomData))
    }
}

/// What a list may have.
trait Element: Sized {
    const EXPECTED: &str;

    fn read(text: &str) -> Option<Self>;

    /// What is wrong if it is none.
    fn read_or_say(text: &str) -> Result<Self, String> {
        Self::read(text).ok_or_else(|| format!("{text:?} is not {}", Self::EXPECTED))
    }
}

struct SeveralVisitor<T>(PhantomData<T>);

impl<'de, T: Element> Visitor<'de> for SeveralVisitor<T> {
    type Value = Several<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Several<T>, E> {
        T::read_or_say(text).map(|one| Several(vec![one])).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Several<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Several<T>, A::Error> {
        let mut all = vec![];
        while let Some(Several(more)) = list.next_element()? {
            all.extend(more);
        }
        // An empty list would be a rule for everything.
        if all.is_empty() {
            return Err(de::Error::custom(format_args!("an empty list; write {}", T::EXPECTED)));
        }
        Ok(Several(all))
    }
}

struct Net(IpNet);

impl Element for Net {
    const EXPECTED: &str = "a network, such as 10.0.0.0/8, or an address";

    fn read(text: &str) -> Option<Self> {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.ok().map(|net| Self(net.trunc()))
    }
}

struct Address(IpAddr);

impl Element for Address {
    const EXPECTED: &str = "an address, such as 10.0.0.5";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl Element for Resolver {
    const EXPECTED: &str = "a resolver, such as 192.0.2.53 or tcp://192.0.2.53";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn read_or_say(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

struct Ports(RangeInclusive<u16>);

impl Element for Ports {
    const EXPECTED: &str = "a port, or several as \"8000-8100\"";

    fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ports = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (!ports.is_empty()).then_some(Self(ports))
    }
}

struct Domain(String);

impl Element for Domain {
    const EXPECTED: &str = "a name, such as example.org, which stands for all names below it, too";

    fn read(text: &str) -> Option<Self> {
        let name = text.trim_start_matches("*.").trim_matches('.');
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (!name.is_empty() && name.bytes().all(is_name)).then(|| Self(name.to_ascii_lowercase()))
    }
}

/// A text that something is read from.
struct Text<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Limits;
    use ackline_tcp_core::{Duration, Rate};

    #[test]
    fn a_file_has_upstreams_rules_and_limits() {
        let file = ConfigFile::parse(
            "default = 'office'\n\
             dns = 'tcp://192.0.2.53'\n\
             hosts = { 'db.test' = '10.0.0.5', six = ['fd00::6', '10.0.0.6'] }\n\
             publish = ['8080:10.0.2.15:80', '53:10.0.2.15/udp']\n\
             [upstream]\n\
             office = 'socks5://me:secret@192.0.2.1:1080'\n\
             [[rule]]\n\
             to = ['10.0.0.0/8', 'fd00::1']\n\
             port = [22, '8000-8100']\n\
             protocol = 'tcp'\n\
             rate = { down = '2mbit' }\n\
             action = 'direct'\n\
             [[rule]]\n\
             domain = '*.Example.org.'\n\
             from = '192.168.1.9'\n\
             action = 'drop'\n\
             [limits]\n\
             client_connections = 7\n\
             client_total = 8\n\
             client_early = 9\n\
             early = 10\n\
             server_timeout = '500ms'\n\
             backlog = '8M'\n\
             windows = '9M'\n",
        )
        .expect("right");
        let office = "socks5://me:secret@192.0.2.1:1080".parse().expect("an upstream");
        assert_eq!(file.otherwise, Some(Action::Through(Arc::new(office))));
        let resolver = Resolver { address: ([192, 0, 2, 53], 53).into(), protocol: Protocol::Tcp };
        assert_eq!(file.dns, [resolver]);
        let mut hosts = Hosts::default();
        for (name, address) in [("db.test", "10.0.0.5"), ("six", "fd00::6"), ("six", "10.0.0.6")] {
            hosts.add(name, address.parse().expect("an address")).expect("a name");
        }
        assert_eq!(file.hosts, hosts);
        let published: Vec<String> = file.publish.iter().map(ToString::to_string).collect();
        assert_eq!(published, ["8080:10.0.2.15:80", "53:10.0.2.15:53/udp"]);
        let net = |text: &str| text.parse::<IpNet>().expect("a network");
        assert_eq!(
            file.rules,
            [
                Rule {
                    to: vec![net("10.0.0.0/8"), net("fd00::1/128")],
                    ports: vec![22..=22, 8_000..=8_100],
                    protocol: Some(Protocol::Tcp),
                    rate: Some(RateLimit { up: None, down: Some(Rate::from_bits_per_second(2_000_000)) }),
                    ..Rule::all(Action::Through(Arc::new(Upstream::Direct)))
                },
                Rule {
                    domains: vec!["example.org".into()],
                    from: vec![net("192.168.1.9/32")],
                    ..Rule::all(Action::Drop)
                },
            ]
        );
        let usual = FileLimits::default();
        let clients =
            Limits { client_connections: 7, client_total: 8, client_early: 9, early: 10, ..usual.clients };
        let server_timeout = Duration::from_millis(500);
        let limits = FileLimits { clients, server_timeout, backlog: 8 << 20, windows: 9 << 20, ..usual };
        assert_eq!(file.limits, limits);
    }

    #[test]
    fn what_is_wrong_is_told_with_line_key_and_what_would_be_right() {
        for (text, expected) in [
            (
                "default = 'offise'\n[upstream]\noffice = 'direct'\n",
                "line 1, default: no action \"offise\"; there are office, direct, resolver, refuse, drop",
            ),
            (
                "default = 'socks5://me:secret@h:1'\n",
                "line 1, default: no action \"socks5://...@h:1\"; there are direct",
            ),
            ("[upstream]\nx = 'socks4://h:1'\n", "line 2, x: no upstream; write direct, socks5://HOST:PORT"),
            ("[upstream]\ndrop = 'direct'\n", "line 2, drop: \"drop\" is an action of its own"),
            (
                "[[rule]]\nprot = 'tcp'\naction = 'drop'\n",
                "line 2, prot: unknown field `prot`, expected one of `to`",
            ),
            (
                "[[rule]]\nprotocol = 'icmp'\naction = 'drop'\n",
                "line 2, protocol: unknown variant `icmp`, expected `tcp` or `udp`",
            ),
            (
                "[[rule]]\nto = '10.0.0.0/33'\naction = 'drop'\n",
                "line 2, to: \"10.0.0.0/33\" is not a network, such as 10.0.0.0/8",
            ),
            ("[[rule]]\nto = []\naction = 'drop'\n", "line 2, to: an empty list; write a network"),
            ("[[rule]]\nport = '9-8'\naction = 'drop'\n", "line 2, port: \"9-8\" is not a port, or several"),
            ("[[rule]]\nport = 65536\naction = 'drop'\n", "line 2, port: \"65536\" is not a port"),
            ("[[rule]]\ndomain = 'a b'\naction = 'drop'\n", "line 2, domain: \"a b\" is not a name"),
            (
                "[[rule]]\nserver_name = 'a.test'\nprotocol = 'udp'\naction = 'drop'\n",
                "line 4, action: server_name is stated in TCP connections; remove it, or protocol",
            ),
            (
                "[[rule]]\nserver_name = 'a.test'\naction = 'resolver'\n",
                "line 3, action: server_name is not stated to a resolver; remove it",
            ),
            ("\n[[rule]]\nto = '::/0'\n", "line 2: missing field `action`"),
            (
                "[[rule]]\naction = 'direct'\nrate = '10'\n",
                "line 3, rate: \"10\" is not possible; write a rate from 8kbit to 1tbit (units: bit, kbit",
            ),
            (
                "[[rule]]\nrate = '1kbit'\naction = 'direct'\n",
                "line 2, rate: \"1kbit\" is not possible; write",
            ),
            ("[[rule]]\nrate = { up = 1 }\naction = 'direct'\n", "line 2, rate: invalid type: integer `1`"),
            (
                "[[rule]]\nrate = 10\naction = 'direct'\n",
                "line 2, rate: invalid type: integer `10`, expected a rate in quotes, such as \"10mbit\", or {",
            ),
            (
                "[[rule]]\nrate = {}\naction = 'direct'\n",
                "line 2, rate: an empty table; write up, down, or both",
            ),
            (
                "[[rule]]\nrate = { out = '1mbit' }\naction = 'direct'\n",
                "line 2, rate: unknown variant `out`, expected `up` or `down`",
            ),
            (
                "[[rule]]\naction = 'refuse'\nrate = '1mbit'\n",
                "line 3, rate: action \"refuse\" carries nothing on that has a rate; remove it",
            ),
            ("publish = ['http:10.0.2.15']\n", "line 1, publish: write [ADDR:]PORT[:GUEST][:PORT][/udp]"),
            ("dns = 'one.test'\n", "line 1, dns: not an address; write one like 192.0.2.53"),
            (
                "[limits]\ntotal = -1\n",
                "line 2, total: -1 is not possible; write a whole number from 0 to 4294967295",
            ),
            (
                "[limits]\nconnect_timeout = '5'\n",
                "line 2, connect_timeout: 5 is not possible; write a time from 1ms to 50s (units: ",
            ),
            (
                "[limits]\nbacklog = 'much'\n",
                "line 2, backlog: much is not possible; write a number of bytes from 0 to ",
            ),
            (
                "[limits]\nearly = 1\nearlyer = 7\n",
                "line 3, earlyer: [limits] has no parameter \"earlyer\"; did you mean \"early\"? (it takes ",
            ),
            ("[limits]\ntotal = [1]\n", "line 2, total: not a number or a text in quotes"),
            ("default = \n", "line 1, default: "),
        ] {
            let error = ConfigFile::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }
}
