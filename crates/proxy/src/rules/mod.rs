//! Rules: the first that a connection or flow matches decides its way.

pub(crate) mod decision;
pub(crate) mod rate;
pub(crate) mod server_name;

use crate::names::AddressNames;
use crate::target::Protocol;
use crate::upstream::Upstream;
use ipnet::IpNet;
use rate::RateLimit;
use server_name::ServerName;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Action of a rule on a connection or flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An upstream carries it on.
    Through(Arc<Upstream>),
    /// To the proxy's resolver, whatever address it was for.
    Resolver,
    /// The client is told at once: by an RST, or by *port unreachable*.
    Refuse,
    /// The client is told nothing.
    Drop,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Through(upstream) => upstream.fmt(f),
            Self::Resolver => f.write_str("resolver"),
            Self::Refuse => f.write_str("refuse"),
            Self::Drop => f.write_str("drop"),
        }
    }
}

/// What a connection or flow must be for an action. Of each condition one alternative must hold; a
/// condition without alternatives holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Networks that have the destination.
    pub to: Vec<IpNet>,
    /// Ports of the destination.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Names of the destination, and all names below them. A destination whose name is not known
    /// has none of them; one that has several names has each. If names of the client were forgotten
    /// that it may still use, what the rule may be for is refused.
    pub domains: Vec<String>,
    /// Names of the server, and all names below them, as a client states them in its first bytes:
    /// in TLS's *server_name*, or HTTP's *Host*. Holds for connections only, and is the client's
    /// word: it may leave the name out, or state another one.
    pub server_names: Vec<String>,
    /// Transport protocol.
    pub protocol: Option<Protocol>,
    /// Networks that have the client.
    pub from: Vec<IpNet>,
    /// The action.
    pub action: Action,
    /// Rates of all that it lets [through](Action::Through), together. Connections wait for their
    /// turn, and take turns; a datagram for whose turn too many of its flow wait is dropped.
    pub rate: Option<RateLimit>,
}

impl Rule {
    /// A rule for everything.
    #[must_use]
    pub const fn all(action: Action) -> Self {
        Self {
            to: vec![],
            ports: vec![],
            domains: vec![],
            server_names: vec![],
            protocol: None,
            from: vec![],
            action,
            rate: None,
        }
    }

    /// All that does not depend on the destination's host holds.
    fn is_for(&self, client: IpAddr, port: u16, protocol: Protocol) -> bool {
        is_in_any(&self.from, client)
            && (self.ports.is_empty() || self.ports.iter().any(|ports| ports.contains(&port)))
            && self.protocol.is_none_or(|wanted| wanted == protocol)
            && (self.server_names.is_empty() || protocol == Protocol::Tcp)
    }

    /// Whether the destination has one of the names; `None` if that cannot be said.
    fn has_name(&self, known: &AddressNames) -> Option<bool> {
        let has = |name: &Arc<str>| self.domains.iter().any(|domain| is_in(name, domain));
        if self.domains.is_empty() || known.names.iter().any(has) {
            return Some(true);
        }
        known.is_all.then_some(false)
    }

    /// Whether the client has stated one of the names; `None` if that cannot be said, or not yet.
    fn has_server_name(&self, stated: &ServerName) -> Option<bool> {
        if self.server_names.is_empty() {
            return Some(true);
        }
        match stated {
            ServerName::Stated(name) => Some(self.server_names.iter().any(|domain| is_in(name, domain))),
            ServerName::Absent => Some(false),
            ServerName::Unread | ServerName::Unreadable => None,
        }
    }
}

fn is_in_any(nets: &[IpNet], address: IpAddr) -> bool {
    nets.is_empty() || nets.iter().any(|net| net.contains(&address))
}

/// `name` is `domain`, or below it. Both are of small letters.
fn is_in(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Rules in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The first that matches decides.
    pub rules: Vec<Rule>,
    /// If none does.
    pub otherwise: Action,
}

impl Rules {
    /// One upstream for everything.
    #[must_use]
    pub fn all_through(upstream: Upstream) -> Self {
        Self { rules: vec![], otherwise: Action::Through(Arc::new(upstream)) }
    }

    /// Action on traffic of `client` to `address`, which the client knows as `known`; of a
    /// connection, whose first bytes state `server_name`.
    pub(crate) fn verdict(
        &self,
        client: IpAddr,
        address: SocketAddr,
        known: &AddressNames,
        server_name: &ServerName,
        protocol: Protocol,
    ) -> Verdict<'_> {
        let (mut by_address, mut if_named, mut if_stated) = (false, vec![], vec![]);
        let (mut action, mut rate, mut number) = (&self.otherwise, None, None);
        for (place, rule) in self.rules.iter().enumerate() {
            if !rule.is_for(client, address.port(), protocol) {
                continue;
            }
            by_address |= !rule.to.is_empty();
            if !is_in_any(&rule.to, address.ip()) {
                continue;
            }
            match (rule.has_name(known), rule.has_server_name(server_name)) {
                (Some(true), Some(true)) => {
                    (action, rate, number) = (&rule.action, rule.rate, Some(place + 1));
                    break;
                }
                (Some(false), _) | (_, Some(false)) => {}
                (None, _) => if_named.push(rule),
                (Some(true), None) => if_stated.push(rule),
            }
        }
        // Each rule with a rate has a share of its own.
        let is_same = |other: &Rule| other.action == *action && other.rate.is_none() && rate.is_none();
        let differs = |others: Vec<&Rule>| !others.into_iter().all(is_same);
        if differs(if_named) {
            return Verdict::NameForgotten;
        }
        let depends = differs(if_stated);
        if depends && *server_name == ServerName::Unreadable {
            return Verdict::ServerNameUnreadable;
        }
        Verdict::Action { action, rate, rule: number, by_address, is_final: !depends }
    }
}

/// Decision of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// This.
    Action {
        action: &'a Action,
        /// The rate of the rule that decided.
        rate: Option<RateLimit>,
        /// The rule that decided, counted from 1; `None` if none matches.
        rule: Option<usize>,
        /// A rule with networks had a say, whether it matched or not. Then the destination must be
        /// the address that it was compared with, and no name whose addresses somebody else finds.
        by_address: bool,
        /// False if another rule may decide once the client has stated the server's name.
        is_final: bool,
    },
    /// It depends on a name that was forgotten.
    NameForgotten,
    /// It depends on a server name that cannot be read reliably.
    ServerNameUnreadable,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().expect("a network")).collect()
    }

    #[test]
    fn the_first_rule_that_matches_in_all_it_says_decides() {
        let through = |url: &str| Action::Through(Arc::new(url.parse().expect("an upstream")));
        let rules = Rules {
            rules: vec![
                Rule { domains: vec!["example.org".into()], ..Rule::all(through("socks5://a:1")) },
                Rule {
                    to: nets(&["10.0.0.0/8", "fd00::/8"]),
                    ports: vec![22..=22, 8_000..=8_100],
                    protocol: Some(Protocol::Tcp),
                    ..Rule::all(Action::Refuse)
                },
                Rule { from: nets(&["192.168.1.9/32"]), ..Rule::all(Action::Drop) },
            ],
            otherwise: through("direct"),
        };
        let action = |client: &str, to: &str, name: Option<&str>, protocol| {
            let known = AddressNames { names: name.map(Arc::from).into_iter().collect(), is_all: true };
            let (client, to) = (client.parse().expect("an address"), to.parse().expect("an address"));
            match rules.verdict(client, to, &known, &ServerName::Unread, protocol) {
                Verdict::Action { action, is_final: true, .. } => action.clone(),
                other => panic!("all names are known, and none has to be stated: {other:?}"),
            }
        };
        let (me, tcp) = ("192.168.1.1", Protocol::Tcp);
        for name in ["example.org", "www.example.org"] {
            assert_eq!(action(me, "10.0.0.1:22", Some(name), tcp), through("socks5://a:1"), "{name}");
        }
        for name in [None, Some("badexample.org"), Some("example.org.test")] {
            assert_eq!(action(me, "10.0.0.1:22", name, tcp), Action::Refuse, "{name:?}");
        }
        assert_eq!(action(me, "[fd00::1]:8100", None, tcp), Action::Refuse);
        for (to, protocol) in [("10.0.0.1:8101", tcp), ("10.0.0.1:22", Protocol::Udp), ("11.0.0.1:22", tcp)] {
            assert_eq!(action(me, to, None, protocol), through("direct"), "{to}");
        }
        assert_eq!(action("192.168.1.9", "11.0.0.1:22", None, tcp), Action::Drop);
    }

    #[test]
    fn a_name_that_was_forgotten_opens_no_door_and_networks_bind_a_name_to_its_address() {
        let direct = Action::Through(Arc::new(Upstream::Direct));
        let rules = Rules {
            rules: vec![
                Rule {
                    domains: vec!["refused.test".into()],
                    ports: vec![443..=443],
                    ..Rule::all(Action::Refuse)
                },
                Rule { domains: vec!["direct.test".into()], ..Rule::all(direct.clone()) },
                Rule { to: nets(&["10.0.0.0/8"]), ports: vec![22..=22], ..Rule::all(Action::Drop) },
            ],
            otherwise: direct.clone(),
        };
        let verdict = |to: &str, names: &[&str], is_all| {
            let known = AddressNames { names: names.iter().map(|name| Arc::from(*name)).collect(), is_all };
            let to = to.parse().expect("an address");
            rules.verdict([10, 0, 0, 9].into(), to, &known, &ServerName::Unread, Protocol::Tcp)
        };
        let is = |action, rule, by_address| Verdict::Action {
            action,
            rate: None,
            rule,
            by_address,
            is_final: true,
        };
        assert_eq!(verdict("192.0.2.1:443", &[], true), is(&direct, None, false));
        assert_eq!(verdict("192.0.2.1:443", &["a.test"], false), Verdict::NameForgotten);
        // One name of several is enough, and known ones count whatever was forgotten.
        assert_eq!(
            verdict("192.0.2.1:443", &["a.test", "x.refused.test"], false),
            is(&Action::Refuse, Some(1), false)
        );
        // Whatever the name was, the outcome is the same.
        assert_eq!(verdict("192.0.2.1:80", &[], false), is(&direct, None, false));
        // Networks were looked at, whether the address is of them or not.
        assert_eq!(verdict("192.0.2.1:22", &["a.test"], true), is(&direct, None, true));
        assert_eq!(verdict("10.0.0.1:22", &["a.test"], true), is(&Action::Drop, Some(3), true));
    }

    #[test]
    fn a_server_name_decides_once_it_is_stated_and_one_that_cannot_be_read_opens_no_door() {
        let direct = Action::Through(Arc::new(Upstream::Direct));
        let named = |name: &str, action| Rule { server_names: vec![name.into()], ..Rule::all(action) };
        let both = Rule { domains: vec!["both.test".into()], ..named("both.test", direct.clone()) };
        let rules = Rules {
            rules: vec![
                both,
                Rule { ports: vec![443..=443], ..named("open.test", direct.clone()) },
                named("refused.test", Action::Refuse),
            ],
            otherwise: Action::Refuse,
        };
        let verdict = |port: u16, domains: &[&str], stated: &ServerName, protocol| {
            let known =
                AddressNames { names: domains.iter().map(|name| Arc::from(*name)).collect(), is_all: true };
            let (client, to) = ([10, 0, 0, 9].into(), ([192, 0, 2, 1], port).into());
            match rules.verdict(client, to, &known, stated, protocol) {
                Verdict::Action { action, rule, is_final, .. } => Some((*action == direct, rule, is_final)),
                Verdict::ServerNameUnreadable => None,
                Verdict::NameForgotten => panic!("all names are known"),
            }
        };
        let (tcp, stated) = (Protocol::Tcp, |name: &str| ServerName::Stated(name.into()));
        for (stated, expected) in [
            (ServerName::Unread, Some((false, None, false))),
            (stated("www.open.test"), Some((true, Some(2), true))),
            (stated("notopen.test"), Some((false, None, true))),
            (stated("refused.test"), Some((false, Some(3), true))),
            // That rule needs the name from the resolver as well.
            (stated("both.test"), Some((false, None, true))),
            (ServerName::Absent, Some((false, None, true))),
            (ServerName::Unreadable, None),
        ] {
            assert_eq!(verdict(443, &[], &stated, tcp), expected, "{stated:?}");
        }
        assert_eq!(verdict(443, &["both.test"], &stated("both.test"), tcp), Some((true, Some(1), true)));
        // Where no rule depends on the name, the decision is final without it.
        for unread in [ServerName::Unread, ServerName::Unreadable] {
            assert_eq!(verdict(80, &[], &unread, tcp), Some((false, None, true)));
            assert_eq!(verdict(443, &[], &unread, Protocol::Udp), Some((false, None, true)));
        }
    }
}
