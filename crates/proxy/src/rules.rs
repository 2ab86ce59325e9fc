//! Which way a connection or flow takes: the first rule that it matches decides.

use crate::target::{Protocol, Target};
use crate::upstream::Upstream;
use ipnet::IpNet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What becomes of a connection or flow.
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

/// What a connection or flow must be for an action. Of each condition one alternative must hold; a condition without alternatives holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Networks that have the destination.
    pub to: Vec<IpNet>,
    /// Ports of the destination.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Names of the destination, and all names below them. A destination whose name is not known has none of them.
    pub domains: Vec<String>,
    /// What the client speaks.
    pub protocol: Option<Protocol>,
    /// Networks that have the client.
    pub from: Vec<IpNet>,
    /// What then becomes of it.
    pub action: Action,
}

impl Rule {
    /// A rule for everything.
    #[must_use]
    pub const fn all(action: Action) -> Self {
        Self { to: vec![], ports: vec![], domains: vec![], protocol: None, from: vec![], action }
    }

    fn matches(&self, client: IpAddr, target: &Target, protocol: Protocol) -> bool {
        let any = |nets: &[IpNet], address| nets.is_empty() || nets.iter().any(|net| net.contains(&address));
        let port = target.address.port();
        any(&self.to, target.address.ip())
            && any(&self.from, client)
            && (self.ports.is_empty() || self.ports.iter().any(|ports| ports.contains(&port)))
            && self.protocol.is_none_or(|wanted| wanted == protocol)
            && (self.domains.is_empty()
                || target
                    .name
                    .as_ref()
                    .is_some_and(|name| self.domains.iter().any(|domain| is_in(name, domain))))
    }
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

    pub(crate) fn action(&self, client: IpAddr, target: &Target, protocol: Protocol) -> &Action {
        let rule = self.rules.iter().find(|rule| rule.matches(client, target, protocol));
        rule.map_or(&self.otherwise, |rule| &rule.action)
    }
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
            let target = Target { address: to.parse().expect("an address"), name: name.map(Arc::from) };
            rules.action(client.parse().expect("an address"), &target, protocol).clone()
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
}
