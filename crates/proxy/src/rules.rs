//! Rules: the first that a connection or flow matches decides its way.

use crate::names::AddressNames;
use crate::target::Protocol;
use crate::upstream::Upstream;
use ipnet::IpNet;
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
    /// Transport protocol.
    pub protocol: Option<Protocol>,
    /// Networks that have the client.
    pub from: Vec<IpNet>,
    /// The action.
    pub action: Action,
}

impl Rule {
    /// A rule for everything.
    #[must_use]
    pub const fn all(action: Action) -> Self {
        Self { to: vec![], ports: vec![], domains: vec![], protocol: None, from: vec![], action }
    }

    /// All that does not depend on the destination's host holds.
    fn is_for(&self, client: IpAddr, port: u16, protocol: Protocol) -> bool {
        is_in_any(&self.from, client)
            && (self.ports.is_empty() || self.ports.iter().any(|ports| ports.contains(&port)))
            && self.protocol.is_none_or(|wanted| wanted == protocol)
    }

    /// Whether the destination has one of the names; `None` if that cannot be said.
    fn has_name(&self, known: &AddressNames) -> Option<bool> {
        let has = |name: &Arc<str>| self.domains.iter().any(|domain| is_in(name, domain));
        if self.domains.is_empty() || known.names.iter().any(has) {
            return Some(true);
        }
        known.is_all.then_some(false)
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

    /// Action on traffic of `client` to `address`, which the client knows as `known`.
    pub(crate) fn verdict(
        &self,
        client: IpAddr,
        address: SocketAddr,
        known: &AddressNames,
        protocol: Protocol,
    ) -> Verdict<'_> {
        let (mut by_address, mut perhaps) = (false, vec![]);
        let mut action = &self.otherwise;
        for rule in self.rules.iter().filter(|rule| rule.is_for(client, address.port(), protocol)) {
            by_address |= !rule.to.is_empty();
            if !is_in_any(&rule.to, address.ip()) {
                continue;
            }
            match rule.has_name(known) {
                Some(true) => {
                    action = &rule.action;
                    break;
                }
                Some(false) => {}
                None => perhaps.push(&rule.action),
            }
        }
        if perhaps.into_iter().any(|other| other != action) {
            return Verdict::Unknown;
        }
        Verdict::Action { action, by_address }
    }
}

/// Decision of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// This; `by_address` if a rule with networks had a say, whether it matched or not. Then the
    /// destination must be the address that it was compared with, and no name whose addresses
    /// somebody else finds.
    Action { action: &'a Action, by_address: bool },
    /// It depends on a name that was forgotten.
    Unknown,
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
            match rules.verdict(client, to, &known, protocol) {
                Verdict::Action { action, .. } => action.clone(),
                Verdict::Unknown => panic!("all names are known"),
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
            rules.verdict([10, 0, 0, 9].into(), to.parse().expect("an address"), &known, Protocol::Tcp)
        };
        let is = |action, by_address| Verdict::Action { action, by_address };
        assert_eq!(verdict("192.0.2.1:443", &[], true), is(&direct, false));
        assert_eq!(verdict("192.0.2.1:443", &["a.test"], false), Verdict::Unknown);
        // One name of several is enough, and known ones count whatever was forgotten.
        assert_eq!(
            verdict("192.0.2.1:443", &["a.test", "x.refused.test"], false),
            is(&Action::Refuse, false)
        );
        // Whatever the name was, the outcome is the same.
        assert_eq!(verdict("192.0.2.1:80", &[], false), is(&direct, false));
        // Networks were looked at, whether the address is of them or not.
        assert_eq!(verdict("192.0.2.1:22", &["a.test"], true), is(&direct, true));
        assert_eq!(verdict("10.0.0.1:22", &["a.test"], true), is(&Action::Drop, true));
    }
}
