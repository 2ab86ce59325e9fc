//! How names are resolved inside: resolv.conf(5) of the program, and the resolver that stands behind it.

use crate::program::Addresses;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where programs look for their resolvers.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The port of DNS.
const DNS: u16 = 53;

/// The C library heeds no more resolvers.
const MOST: usize = 3;

/// Who resolves names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Stands behind port 53 of the base address.
    pub(crate) resolver: SocketAddr,
    /// Others, which the program can reach by their own addresses.
    others: Vec<Ipv4Addr>,
    /// Lines of the machine's file that say how to look names up.
    ways: Vec<String>,
}

impl Names {
    /// Those of this machine; `resolver` takes the place of its own.
    pub(crate) fn of_machine(resolver: Option<SocketAddr>) -> Self {
        // resolv.conf(5): without a file, the resolver is on this machine.
        let names = Self::read(&fs::read_to_string(RESOLV_CONF).unwrap_or_default());
        match resolver {
            Some(resolver) => Self { resolver, ..names }.alone(),
            None => names,
        }
    }

    /// The resolver that stands behind the base address alone.
    pub(crate) fn alone(mut self) -> Self {
        self.others.clear();
        self
    }

    /// As the machine's file says.
    fn read(text: &str) -> Self {
        let mut resolvers = vec![];
        let mut ways = vec![];
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                // An address with a scope is of a link.
                (Some("nameserver"), Some(address)) => resolvers.extend(address.parse::<IpAddr>()),
                (Some("search" | "domain" | "options"), Some(_)) => ways.push(line.trim().to_owned()),
                _ => {}
            }
        }
        let mut resolvers = resolvers.into_iter();
        let first = resolvers.next().unwrap_or(Ipv4Addr::LOCALHOST.into());
        let others = resolvers.filter_map(|address| match address {
            IpAddr::V4(address) if !address.is_loopback() => Some(address),
            // Inside there is no IPv6, and this is another machine.
            _ => None,
        });
        Self { resolver: SocketAddr::new(first, DNS), others: others.take(MOST - 1).collect(), ways }
    }

    /// The program's file.
    pub(crate) fn resolv_conf(&self, addresses: Addresses) -> String {
        let mut text = format!(
            "# Of ackline: behind port 53 of this address is {}.\nnameserver {}\n",
            self.resolver, addresses.base
        );
        for other in &self.others {
            let _ = writeln!(text, "nameserver {other}");
        }
        for way in &self.ways {
            let _ = writeln!(text, "{way}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Addresses =
        Addresses { program: Ipv4Addr::new(100, 64, 0, 2), base: Ipv4Addr::new(100, 64, 0, 1) };

    /// The resolver behind the base address, and the program's file without its comment.
    fn of(text: &str) -> (String, Vec<String>) {
        let names = Names::read(text);
        let inside = names.resolv_conf(INSIDE);
        let lines = inside.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        (names.resolver.to_string(), lines)
    }

    #[test]
    fn the_first_resolver_stands_behind_the_base_address() {
        let stub = "# systemd\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch example.org\n";
        let expected = ["nameserver 100.64.0.1", "options edns0 trust-ad", "search example.org"];
        assert_eq!(of(stub), ("127.0.0.53:53".into(), expected.map(String::from).into()));
        let none = ("127.0.0.1:53".to_owned(), vec!["nameserver 100.64.0.1".to_owned()]);
        assert_eq!(of(""), none);
        assert_eq!(of("nameserver fe80::1%eth0\n; nameserver 192.0.2.1\n"), none);
        assert_eq!(of("nameserver 2001:db8::53\n").0, "[2001:db8::53]:53");
    }

    #[test]
    fn others_are_reached_by_their_own_addresses() {
        let text = "nameserver 192.0.2.1\nnameserver ::1\nnameserver 127.0.0.1\nnameserver 192.0.2.2\n\
                    nameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        let expected = ["nameserver 100.64.0.1", "nameserver 192.0.2.2", "nameserver 192.0.2.3"];
        assert_eq!(of(text), ("192.0.2.1:53".into(), expected.map(String::from).into()));
    }
}
